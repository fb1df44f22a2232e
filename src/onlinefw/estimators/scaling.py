"""Columns on one scale: a ball treats all coefficients alike, so all features should be alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from .._typing import Array, State

__all__ = ["Scaling"]


@dataclass(frozen=True)
class Scaling:
    """(x - center) / scale, column by column."""

    center: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, sample_weight: Array | None = None) -> Self:
        """Learn means and standard deviations from some rows; a constant column keeps its scale.

        Both are rounded to about two digits, which is enough, so that a repeated row and a row of
        twice the weight give the same to the last bit, in any order.
        """
        center = np.average(X, axis=0, weights=sample_weight).astype(float)
        spread = np.sqrt(np.average((X - center) ** 2, axis=0, weights=sample_weight))
        # A column that is constant up to rounding has a spread that is rounding only.
        constant = spread <= 1e-9 * np.abs(center)
        scale = np.where((spread > 0.0) & ~constant, spread, 1.0)
        digit = 2.0 ** np.floor(np.log2(scale))
        scale = np.round(64.0 * scale / digit) * digit / 64.0
        return cls(np.round(64.0 * center / scale) * scale / 64.0, scale)

    def apply(self, X: Any) -> Any:
        """Return rows on the new scale, in their precision."""
        X = X.toarray() if sparse.issparse(X) else X
        scaled = X - self.center
        scaled /= self.scale
        return scaled.astype(X.dtype, copy=False) if X.dtype.kind == "f" else scaled

    def undo(self, coef: Array, intercept: Any) -> tuple[Array, Any]:
        """Return coefficients and intercept for rows as they are, from those for scaled rows."""
        coef = coef / self.scale
        return coef, intercept - coef @ self.center

    def state_dict(self) -> State:
        """Return the means and scales."""
        return {"center": self.center, "scale": self.scale}

    @classmethod
    def from_state(cls, state: State, n_features: int) -> Self:
        """Make the scaling that ``state_dict`` described."""
        center, scale = (np.array(state[name], float) for name in ("center", "scale"))
        if not center.shape == scale.shape == (n_features,) or not (scale > 0.0).all():
            raise ValueError(f"the scales are not those of {n_features} columns")
        return cls(center, scale)
