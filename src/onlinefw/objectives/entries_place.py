"""Observed entries and an iterate that was put somewhere: factors, predictions, curvature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from .._typing import Array
from ..iterates import LowRank
from ..kernels import blocks as kernels

if TYPE_CHECKING:
    from .entries import ObservedEntries

__all__ = ["as_factors", "heaviest_entry", "move_entries", "predict_entries"]


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


def predict_entries(objective: ObservedEntries) -> None:
    """Recompute z of every stored entry from the factors of theta, row by row."""
    theta = objective._low_rank
    move_entries(objective, 0.0, theta.left, theta.right * theta.weights.astype(objective.dtype))


def move_entries(objective: ObservedEntries, keep: float, left: Array, right: Array) -> None:
    """Z <- keep z + left_i right_j at every stored entry."""
    dtype = objective.dtype
    by_rank = np.empty(right.shape, dtype)
    by_rank[objective._store.rank] = right
    left, keep = np.ascontiguousarray(left, dtype), dtype.type(keep)
    blocks = objective._store.blocks()
    bulk, tail = objective._store.parts
    kernels.factor_rows(blocks, bulk.indptr, bulk.col, left, by_rank, keep, bulk.z)
    kernels.tail_factor(tail.row, tail.col, left, by_rank, keep, tail.z)
    objective.reads += 1


def heaviest_entry(objective: ObservedEntries) -> float:
    """Bound the largest total weight of one entry, which may stand in the bulk and in the tail."""
    bulk = objective._store.bulk
    if objective._store.combine:  # an entry stands there once
        total = float(bulk.c.max(initial=0.0))
    else:
        total = float(kernels.heaviest(objective._store.blocks(), bulk.indptr, bulk.col, bulk.c))
    tail = objective._store.tail
    keys = tail.row.astype(np.int64) * objective._matrix_shape[1] + tail.col
    repeats = np.unique(keys, return_inverse=True)[1]
    weights = np.bincount(repeats, tail.c)
    return total + float(weights.max(initial=0.0))
