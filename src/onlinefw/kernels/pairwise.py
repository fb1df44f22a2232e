"""Pairwise Frank-Wolfe steps on a quadratic over the l1 ball, with dense matrices of modest size.

The vertices are the signed coordinates, and the origin for the weight that is not needed. Each step
moves weight from one active vertex to another: the target is the vertex with the steepest descent,
the source is the one that lowers the quadratic most together with it. With a ``cap`` on every
coordinate the set is that of K-sparse vectors; a coordinate at its cap is no target.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Numbers for the origin, and for no vertex at all.
ORIGIN, NO_VERTEX = -1, -2


@njit(inline="always")
def _sign(x):
    return 1.0 if x > 0.0 else -1.0


@njit(inline="always")
def _gain(descent, curvature):
    """Return twice what a step of any length can lower a parabola by."""
    return descent * descent / max(curvature, 1e-300)


@njit(cache=True)
def _best_pair(row, diagonal, q, x, slack, target):
    """Return source and target of the step, and the largest difference of their scores.

    ``row`` is the target's row of H. The diagonal is passed by itself: in H its entries are far
    apart.
    """
    slope, own = abs(q[target]), diagonal[target]
    toward = -_sign(q[target])
    source, best, widest = NO_VERTEX, 0.0, 0.0
    if slack > 0.0:
        source, best, widest = ORIGIN, _gain(slope, own), slope
    chosen = target
    for i in range(len(x)):
        if x[i] == 0.0:
            continue
        sign = _sign(x[i])
        score = sign * q[i]
        descent = slope + score
        widest = max(widest, descent)
        if descent > 0.0 and i != target:
            bend = own + diagonal[i] - 2.0 * toward * sign * row[i]
            gain = _gain(descent, bend)
            if gain > best:
                source, best, chosen = i, gain, target
        if score > 0.0:
            gain = _gain(score, diagonal[i])
            if gain > best:
                source, best, chosen = i, gain, ORIGIN
    return source, chosen, widest


@njit(inline="always")
def _step(descent, curvature, longest):
    return longest if descent >= curvature * longest else descent / curvature


@njit(cache=True, fastmath={"reassoc", "contract"})
def _add_rows(q, a, row_a, b, row_b):
    for k in range(len(q)):
        q[k] += a * row_a[k] + b * row_b[k]


@njit(inline="always")
def _steepest(q, x, cap):
    """Return the coordinate with the steepest descent that is not at its cap; -1 if all are."""
    target, most = -1, -1.0
    for j in range(len(x)):
        if abs(q[j]) > most and -_sign(q[j]) * x[j] < cap:
            target, most = j, abs(q[j])
    return target


@njit(cache=True)
def pairwise_steps(H, q, x, radius, max_steps, tolerance, cap):
    """Minimise q0'(x - x0) + (x - x0)'H(x - x0)/2 over the l1 ball, from x = x0 on, in place.

    ``q`` is the gradient at x and stays so; no coordinate gets larger than ``cap``. Stops when the
    pairwise gap is at most ``tolerance``; returns the number of steps.
    """
    diagonal = np.diag(H).copy()
    slack = radius
    for j in range(len(x)):
        slack -= abs(x[j])
    for taken in range(max_steps):
        if slack < 1e-12 * radius:
            slack = 0.0
        target = _steepest(q, x, cap)
        if target < 0:
            return taken
        source, chosen, widest = _best_pair(H[target], diagonal, q, x, slack, target)
        if widest * radius <= tolerance or source == NO_VERTEX:
            return taken
        toward = -_sign(q[target])
        if chosen == ORIGIN:
            sign = _sign(x[source])
            step = _step(sign * q[source], diagonal[source], abs(x[source]))
            slack += step
            _leave(x, source, sign, step)
            _add_rows(q, -sign * step, H[source], 0.0, H[source])
        elif source == ORIGIN:
            step = _step(abs(q[target]), diagonal[target], min(slack, cap - toward * x[target]))
            slack += _enter(x, target, toward, step) - step
            _add_rows(q, toward * step, H[target], 0.0, H[target])
        else:
            sign = _sign(x[source])
            bend = diagonal[target] + diagonal[source]
            bend -= 2.0 * toward * sign * H[target, source]
            longest = min(abs(x[source]), cap - toward * x[target])
            step = _step(abs(q[target]) + sign * q[source], bend, longest)
            _leave(x, source, sign, step)
            slack += _enter(x, target, toward, step)
            _add_rows(q, toward * step, H[target], -sign * step, H[source])
    return max_steps


@njit(inline="always")
def _leave(x, source, sign, step):
    """Take a step from a coordinate, leaving exactly 0 if it was the longest possible."""
    x[source] = 0.0 if step >= abs(x[source]) else x[source] - sign * step


@njit(inline="always")
def _enter(x, target, toward, step):
    """Add a step to a coordinate; return the weight that is free again if it was on the other side.

    x holds the difference of the two sides only, so what cancels goes to the origin.
    """
    opposite = -toward * x[target]
    x[target] += toward * step
    return 2.0 * min(step, opposite) if opposite > 0.0 else 0.0
