"""The intercept: one number outside the constraint set, minimised exactly on the predictions held.

Where F is convex, its gradient in the intercept is then 0, so the Frank-Wolfe gap in theta
certifies both together.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..kernels.intercept import ROUNDING, compiled_descent, compiled_root, searches
from ..kernels.rows import extremes
from ..losses import Loss, SignedLabels
from ..past.protocols import RowsPast

__all__ = ["ROUNDING", "best_intercept"]


def best_intercept(loss: Loss, past: RowsPast, m: int, weight: float, start: float | None) -> float:
    """Return the b that minimises sum w phi(z + b, y) (a local minimum, if phi is not convex).

    z are the predictions of model m, ``weight`` is the sum of w, ``start`` is where to begin.
    """
    if loss.quadratic:
        _, slope, bend = past.totals(m, 0.0)
        return -slope / bend
    rows = past.few_rows(m)
    root, descent = searches(past.totals) if rows is None else (compiled_root, compiled_descent)
    data = m if rows is None else rows
    if loss.convex:
        return root(data, weight, start or 0.0)
    # A bounded loss would push the intercept of unbalanced classes to infinity, where nothing can
    # be learned any more: some row must stay undecided.
    signed = isinstance(loss, SignedLabels)
    if rows is None:
        low, high = past.limits(m)
    else:
        _, _, z, y, w = rows
        low, high = extremes(z, y, w, signed)
    if start is None:
        start = 0.0 if signed else _median(*past.residuals(m))
    return descent(data, weight, min(max(start, low), high), low, high)


def _median(values: Array, w: Array) -> float:
    order = np.argsort(values)
    reached = np.searchsorted(np.cumsum(w[order]), 0.5 * w.sum())
    return float(values[order[min(reached, values.size - 1)]])
