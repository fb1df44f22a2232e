"""Rows of features with labels, as every classification set is returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._typing import Array

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows:
    """Rows of features with labels, in a training and a test part.

    Attributes
    ----------
    X_train, X_test : ndarray or scipy.sparse.csr_matrix
        One example per row.
    y_train, y_test : ndarray
        One label per row.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.datasets import Rows
    >>> rows = Rows(np.eye(3), np.array([1, -1, 1]), np.eye(3)[:1], np.array([1]))
    >>> rows.X_train.shape, rows.X_test.shape
    ((3, 3), (1, 3))
    """

    X_train: Any
    y_train: Array
    X_test: Any
    y_test: Array
