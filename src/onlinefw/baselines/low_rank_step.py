"""One projected-gradient step of a low-rank theta on the trace-norm ball."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator

from .._typing import Array
from ..iterates import LowRank
from ..sets.projections import project_l1_ball
from .block_svd import block_svd

__all__ = ["full_step", "truncated_step"]

#: Random vectors in the block that a truncated SVD starts from, beyond what is known.
EXTRA = 4


def full_step(theta: LowRank, gradient: Array, eta: float, radius: float) -> LowRank:
    """Return the projection of theta - eta gradient, by an SVD of the dense matrix."""
    u, s, vt = linalg.svd(theta.dense() - eta * gradient, full_matrices=False)
    return _low_rank(u, project_l1_ball(s, radius), vt.T)


def truncated_step(
    theta: LowRank,
    gradient: LinearOperator,
    eta: float,
    radius: float,
    max_rank: int,
    near: Array,
    seed: int,
) -> LowRank:
    """Return the projection of the leading ``max_rank`` part of theta - eta gradient.

    The block to start from holds theta's own right vectors, the gradient's top one (``near``),
    where new rank comes from, and a few random ones.
    """
    rank = min(max_rank, *theta.shape)
    width = min(rank + 1 + EXTRA, theta.shape[1])
    random = np.random.default_rng(seed).standard_normal((theta.shape[1], width))
    start = np.column_stack((near, theta.right, random))[:, :width]

    def threshold(s: Array) -> float:
        return float(s[0] - project_l1_ball(s, radius)[0])

    point = theta.as_operator() - eta * gradient
    u, s, v = block_svd(point, rank, start, threshold)
    return _low_rank(u, project_l1_ball(s, radius), v)


def _low_rank(u: Array, s: Array, v: Array) -> LowRank:
    kept = s > 0.0
    point = LowRank((u.shape[0], v.shape[0]))
    point.put(u[:, kept], s[kept], v[:, kept])
    return point
