"""The intercept: one number outside the constraint set, minimised exactly on carried predictions.

Where F is convex, its gradient in the intercept is then 0, so the Frank-Wolfe gap in theta
certifies both together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._devices import namespace
from .._typing import Array
from ..losses import Loss, SignedLabels

__all__ = ["best_intercept"]

#: Newton steps stop when the slope has fallen below this share of the mean slope, or after so many.
SHARE, MAX_STEPS = 1e-12, 60
#: Values of F that differ by less, relatively, are the same.
ROUNDING = 1e-13

#: (sum of slopes, sum of curvatures) of the rows at an intercept.
Sums = Callable[[float], tuple[float, float]]


def best_intercept(
    loss: Loss,
    z: Array,
    y: Array,
    w: Array,
    start: float | None,
    *,
    sums: Sums,
    value: Callable[[float], float],
) -> float:
    """Return the b that minimises sum w phi(z + b, y) (a local minimum, if phi is not convex).

    Parameters
    ----------
    loss, z, y, w
        The loss, and predictions, targets and weights of the rows.
    start : float, optional
        Where to start from.
    sums : callable
        The sums of w phi'(z + b, y) and of w phi''(z + b, y) at a given b.
    value : callable
        The sum of w phi(z + b, y) at a given b.
    """
    if loss.quadratic:
        slope, bend = sums(0.0)
        return -slope / bend
    total = float(w.sum())
    if loss.convex:
        return _root(sums, start or 0.0, total)
    low, high = _sensible_range(loss, z, y, w)
    if start is None:
        start = 0.0 if isinstance(loss, SignedLabels) else _median(y - z, w)
    return _descend(sums, value, total, min(max(start, low), high), low, high)


def _median(values: Array, w: Array) -> float:
    xp = namespace(values)
    order = xp.argsort(values)
    reached = int((xp.cumsum(w[order]) < 0.5 * w.sum()).sum())
    return float(values[order[min(reached, values.size - 1)]])


def _root(sums: Sums, b: float, total: float) -> float:
    """Find where an increasing slope is 0: Newton steps, kept inside what is known to hold it.

    Steps outside are of limited length, so a slope that never turns (only one class so far) ends
    at a finite b.
    """
    low, high, reach = -np.inf, np.inf, 1.0
    for _ in range(MAX_STEPS):
        slope, bend = sums(b)
        if abs(slope) <= SHARE * total or high - low <= 1e-14 * (1.0 + abs(b)):
            break
        low, high = (b, high) if slope < 0.0 else (low, b)
        newton = b - slope / bend if bend > 0.0 else -np.sign(slope) * np.inf
        newton = min(max(newton, b - reach), b + reach)
        if not low < newton < high:
            newton = 0.5 * (low + high) if np.isfinite(high - low) else b - np.sign(slope) * reach
        b, reach = newton, 2.0 * reach
    return float(b)


def _sensible_range(loss: Loss, z: Array, y: Array, w: Array) -> tuple[float, float]:
    """Return intercepts that leave some row undecided.

    A bounded loss would push the intercept of unbalanced classes to infinity, where nothing can
    be learned any more.
    """
    at = (-z if isinstance(loss, SignedLabels) else y - z)[w > 0.0]
    return float(at.min()), float(at.max())


def _descend(
    sums: Sums, value: Callable[[float], float], total: float, b: float, low: float, high: float
) -> float:
    """Take Newton (or, where F bends down, gradient) steps that lower F, halved as needed."""

    def lowers(at: float, best: float, slope: float) -> bool:
        """Whether F is lower there, or the same to rounding and flatter."""
        new = value(at)
        if abs(new - best) > ROUNDING * abs(best):
            return new < best
        return abs(sums(at)[0]) < abs(slope)

    for _ in range(MAX_STEPS):
        slope, bend = sums(b)
        length = abs(slope) / bend if bend > 0.0 else 0.25 * (high - low)
        length = min(length, 0.25 * (high - low))
        if abs(slope) <= SHARE * total:
            break
        best, here = value(b), b
        while length > 1e-15 * (1.0 + abs(here)) and b == here:
            trial = min(max(here - np.sign(slope) * length, low), high)
            if lowers(trial, best, slope):
                b = trial
            length *= 0.5
        if b == here:
            break
    return float(b)
