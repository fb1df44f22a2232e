"""Any matrix as low-rank factors."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._typing import Array
from ..iterates import LowRank

__all__ = ["as_factors"]


def as_factors(point: Array | LowRank, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Return (left, weights, right) with point = left diag(weights) right'."""
    if not isinstance(point, LowRank):
        point = np.asarray(point, dtype=float)
    if tuple(point.shape) != shape:
        raise ValueError(f"the point has shape {tuple(point.shape)}, but theta has shape {shape}")
    parts = (point.left, point.weights, point.right) if isinstance(point, LowRank) else (point,)
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError("the point has NaN or infinity: theta cannot be put there")
    return parts if len(parts) == 3 else _svd(*parts)


def _svd(point: Array) -> tuple[Array, Array, Array]:
    u, s, vt = linalg.svd(point, full_matrices=False)
    k = int(np.count_nonzero(s > s[0] * np.finfo(float).eps))
    return u[:, :k], s[:k], vt[:k].T
