"""Columns on one scale: a ball treats all coefficients alike, so all features should be alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from .._typing import Array

__all__ = ["Scaling"]


@dataclass(frozen=True)
class Scaling:
    """(x - center) / scale, column by column; sparse rows are left as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.fitting.scaling import Scaling
    >>> scaling = Scaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> scaling.apply(np.array([[3.0, 6.0]]))
    array([[1., 1.]])
    >>> coef, intercept = scaling.undo(np.array([2.0, 0.0]), 1.0)
    >>> coef @ [3.0, 6.0] + intercept == 2.0 * 1.0 + 1.0
    np.True_
    """

    center: Array | None = None
    scale: Array | None = None

    @classmethod
    def of(cls, X: Any) -> Self:
        """Learn means and standard deviations from some rows; a constant column keeps its scale."""
        if sparse.issparse(X):
            return cls()
        spread = X.std(axis=0)
        return cls(X.mean(axis=0), np.where(spread > 0.0, spread, 1.0))

    def apply(self, X: Any) -> Any:
        """Return rows on the new scale."""
        return X if self.center is None else (X - self.center) / self.scale

    def undo(self, coef: Array, intercept: Any) -> tuple[Array, Any]:
        """Return coefficients and intercept for rows as they are, from those for scaled rows."""
        if self.center is None:
            return coef, intercept
        coef = coef / self.scale
        return coef, intercept - coef @ self.center
