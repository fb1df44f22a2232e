"""Exact Euclidean projections that several sets share. All work on flat arrays."""

from __future__ import annotations

import numpy as np

from .._typing import Array

__all__ = ["project_capped_l1", "project_l1_ball", "project_simplex"]


def project_simplex(point: Array, radius: float) -> Array:
    """Project onto {x >= 0, sum x = radius}: sort, O(n log n)."""
    # Subtracting the maximum changes nothing (the projection is invariant along the vector of
    # ones) and keeps the running sums from losing the radius to rounding.
    shifted = point - point.max()
    descending = np.sort(shifted)[::-1]
    excess = np.cumsum(descending) - radius
    counts = np.arange(1, point.size + 1)
    last = int(np.flatnonzero(descending * counts > excess)[-1])
    return np.maximum(shifted - excess[last] / counts[last], 0.0)


def project_l1_ball(point: Array, radius: float) -> Array:
    """Project onto {||x||_1 <= radius} through the simplex of absolute values."""
    magnitudes = np.abs(point)
    if magnitudes.sum() <= radius:
        return point.copy()
    return np.copysign(project_simplex(magnitudes, radius), point)


def project_capped_l1(point: Array, cap: float, radius: float) -> Array:
    """Project onto {||x||_inf <= cap, ||x||_1 <= radius}.

    The answer is sign(x) clip(|x| - threshold, 0, cap); the l1 norm of that is piecewise linear
    and decreasing in the threshold, with breakpoints |x_i| and |x_i| - cap, so the threshold is
    found by sorting the breakpoints and interpolating on the right piece.
    """
    magnitudes = np.abs(point)
    clipped = np.minimum(magnitudes, cap)
    if clipped.sum() <= radius:
        return np.copysign(clipped, point)
    breaks = np.unique(np.concatenate(([0.0], magnitudes, np.maximum(magnitudes - cap, 0.0))))

    def norm(threshold: float) -> float:
        return float(np.clip(magnitudes - threshold, 0.0, cap).sum())

    low, high = 0, breaks.size - 1  # norm(breaks[low]) > radius >= norm(breaks[high]) = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if norm(breaks[middle]) > radius else (low, middle)
    a, b = breaks[low], breaks[high]
    norm_a, norm_b = norm(a), norm(b)
    threshold = a + (norm_a - radius) * (b - a) / (norm_a - norm_b)
    return np.copysign(np.clip(magnitudes - threshold, 0.0, cap), point)
