"""The intercept: one number outside the constraint set, minimised exactly on the predictions held.

Where F is convex, its gradient in the intercept is then 0, so the Frank-Wolfe gap in theta
certifies both together.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..losses import Loss, SignedLabels
from ..past.protocols import RowsPast

__all__ = ["best_intercept"]


def best_intercept(loss: Loss, past: RowsPast, m: int, weight: float, start: float | None) -> float:
    """Return the b that minimises sum w phi(z + b, y) (a local minimum, if phi is not convex).

    z are the predictions of model m, ``weight`` is the sum of w, ``start`` is where to begin.
    """
    from ..kernels.intercept import few_rows_descent, few_rows_root, searches

    if loss.quadratic:
        _, slope, bend = past.totals(m, 0.0)
        return -slope / bend
    signed = isinstance(loss, SignedLabels)
    if start is None:
        start = 0.0 if loss.convex or signed else _median(*past.residuals(m))
    rows = past.few_rows(m)
    if rows is not None:
        if loss.convex:
            return few_rows_root(rows, weight, start)
        return few_rows_descent(rows, weight, start, signed)
    root, descent = searches(past.totals)
    if loss.convex:
        return root(m, weight, start)
    return descent(m, weight, start, *past.limits(m))


def _median(values: Array, w: Array) -> float:
    order = np.argsort(values)
    reached = np.searchsorted(np.cumsum(w[order]), 0.5 * w.sum())
    return float(values[order[min(reached, values.size - 1)]])
