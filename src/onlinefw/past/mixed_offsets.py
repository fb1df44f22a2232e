"""Offsets of several models and their weights: what a mixture of them adds to its factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._typing import Array

__all__ = ["MixedOffsets"]


class MixedOffsets(NamedTuple):
    """What a mixture of models adds in every row, or in every column.

    The weights of the models change with every observation, and with them the offsets of all rows
    and columns. So they are computed when somebody asks for them, and not before.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.mixed_offsets import MixedOffsets
    >>> of_models, observed = np.array([[3.0, 5.0], [0.0, 0.0]]), np.array([1, 0])
    >>> MixedOffsets(of_models, np.array([0.5, 0.5]), 3.0, observed).all(2, float)
    array([4., 3.])
    """

    of_models: Array  # (n, models)
    weights: Array  # (models,)
    mean: float  # the offset of a row or column without observations
    observed: Array  # (n,): how many observations each has

    def all(self, n: int, dtype: Any) -> Array:
        """Return the offsets of the first n rows or columns, of which the last may be new."""
        beyond = np.zeros(n)
        known = self.of_models[:n]
        observed = self.observed[: len(known)] > 0
        beyond[: len(known)][observed] = (known[observed] - self.mean) @ self.weights
        return (self.mean + beyond).astype(dtype)
