"""The intercept: one number outside the constraint set, minimised exactly on carried predictions.

Where F is convex, its gradient in the intercept is then 0, so the Frank-Wolfe gap in theta
certifies both together.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._typing import Array
from ..losses import Loss, SignedLabels
from .row_loss import RowLoss

__all__ = ["InterceptRows", "RowSums", "best_intercept"]

#: Newton steps stop when the slope has fallen below this share of the mean slope, or after so many.
SHARE, MAX_STEPS = 1e-12, 60
#: Values of F that differ by less, relatively, are the same.
ROUNDING = 1e-13


class InterceptRows(Protocol):
    """What is asked about the rows, wherever they are."""

    @property
    def weight(self) -> float:
        """The sum of w."""
        ...

    def sums(self, b: float) -> tuple[float, float]:
        """Return the sums of w phi'(z + b, y) and of w phi''(z + b, y)."""
        ...

    def value(self, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        ...

    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest intercept that leave some row undecided."""
        ...

    def residuals(self) -> tuple[Array, Array]:
        """Return y - z and w."""
        ...


class RowSums:
    """The answers for predictions z, targets y and weights w in this process."""

    def __init__(self, row_loss: RowLoss, z: Array, y: Array, w: Array) -> None:
        self._loss, self._z, self._y, self._w = row_loss, z, y, w

    @property
    def weight(self) -> float:
        """The sum of w."""
        return float(self._w.sum())

    def sums(self, b: float) -> tuple[float, float]:
        """Return the sums of w phi'(z + b, y) and of w phi''(z + b, y)."""
        return self._loss.sums(self._z, self._y, self._w, b)

    def value(self, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        return float(self._w @ self._loss.loss.value(self._z + b, self._y))

    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest intercept that leave some row undecided.

        A bounded loss would push the intercept of unbalanced classes to infinity, where nothing
        can be learned any more.
        """
        labels = isinstance(self._loss.loss, SignedLabels)
        at = (-self._z if labels else self._y - self._z)[self._w > 0.0]
        return float(at.min(initial=np.inf)), float(at.max(initial=-np.inf))

    def residuals(self) -> tuple[Array, Array]:
        """Return y - z and w."""
        return self._y - self._z, self._w


def best_intercept(loss: Loss, rows: InterceptRows, start: float | None) -> float:
    """Return the b that minimises sum w phi(z + b, y) (a local minimum, if phi is not convex).

    Parameters
    ----------
    loss : Loss
        The loss.
    rows : InterceptRows
        What is known about predictions, targets and weights.
    start : float, optional
        Where to start from.
    """
    if loss.quadratic:
        slope, bend = rows.sums(0.0)
        return -slope / bend
    if loss.convex:
        return _root(rows, start or 0.0)
    low, high = rows.limits()
    if start is None:
        start = 0.0 if isinstance(loss, SignedLabels) else _median(*rows.residuals())
    return _descend(rows, min(max(start, low), high), low, high)


def _median(values: Array, w: Array) -> float:
    order = np.argsort(values)
    reached = np.searchsorted(np.cumsum(w[order]), 0.5 * w.sum())
    return float(values[order[min(reached, values.size - 1)]])


def _root(rows: InterceptRows, b: float) -> float:
    """Find where an increasing slope is 0: Newton steps, kept inside what is known to hold it.

    Steps outside are of limited length, so a slope that never turns (only one class so far) ends
    at a finite b.
    """
    low, high, reach, total = -np.inf, np.inf, 1.0, rows.weight
    for _ in range(MAX_STEPS):
        slope, bend = rows.sums(b)
        if abs(slope) <= SHARE * total or high - low <= 1e-14 * (1.0 + abs(b)):
            break
        low, high = (b, high) if slope < 0.0 else (low, b)
        newton = b - slope / bend if bend > 0.0 else -np.sign(slope) * np.inf
        newton = min(max(newton, b - reach), b + reach)
        if not low < newton < high:
            newton = 0.5 * (low + high) if np.isfinite(high - low) else b - np.sign(slope) * reach
        b, reach = newton, 2.0 * reach
    return float(b)


def _descend(rows: InterceptRows, b: float, low: float, high: float) -> float:
    """Take Newton (or, where F bends down, gradient) steps that lower F, halved as needed."""

    def lowers(at: float, best: float, slope: float) -> bool:
        """Whether F is lower there, or the same to rounding and flatter."""
        new = rows.value(at)
        if abs(new - best) > ROUNDING * abs(best):
            return new < best
        return abs(rows.sums(at)[0]) < abs(slope)

    total = rows.weight
    for _ in range(MAX_STEPS):
        slope, bend = rows.sums(b)
        length = abs(slope) / bend if bend > 0.0 else 0.25 * (high - low)
        length = min(length, 0.25 * (high - low))
        if abs(slope) <= SHARE * total:
            break
        best, here = rows.value(b), b
        while length > 1e-15 * (1.0 + abs(here)) and b == here:
            trial = min(max(here - np.sign(slope) * length, low), high)
            if lowers(trial, best, slope):
                b = trial
            length *= 0.5
        if b == here:
            break
    return float(b)
