"""1-SFW and ORGFW as they were published, a row at a time, with lazy scales.

Zhang, Shen, Mokhtari, Hassani and Karbasi (2020), and Xie, Shen, Zhang, Wang and Qian (2020):

    d_t = (1 - rho_t) (d_{t-1} + g_t(theta_t) - g_t(theta_{t-1})) + rho_t g_t(theta_t)
    theta_{t+1} = theta_t + gamma_t (a_t - theta_t),   a_t the vertex that minimises <., d_t>,

with the gradient g_t of the newest row at both thetas; without the difference it is the older
estimate by momentum. Both d and theta are a scale times a table, so that a row touches its own
coordinates, and a step one. The table and the numbers are those of :mod:`.summary`.
"""

from __future__ import annotations

from numba import njit

from .rows import row_curvature, row_slope, row_value
from .summary import (
    ATOM,
    B_BEND,
    B_OLD,
    INTERCEPT,
    KEPT,
    MOVE,
    ROWS,
    SCALE,
    SHRINK,
    SMALL,
    VALUE,
    WEIGHT,
    clipped,
    dot,
    rescale,
)
from .tournament import SLOPE, THETA, largest, lift

#: rho_t = t^-RHO and gamma_t = (t + 1)^-GAMMA: rates for any radius. Others may be better at one.
RHO, GAMMA = 1.0, 1.0


@njit(cache=True)
def vertex_step(table, toward, starts, radius, numbers):
    """Move theta towards the vertex with the largest slope, and note the move."""
    j = largest(table, toward, starts, False)
    gamma = (numbers[ROWS] + 1.0) ** -GAMMA
    numbers[SHRINK] *= 1.0 - gamma
    if numbers[SHRINK] < SMALL:
        for k in range(len(table)):
            table[k, THETA] *= numbers[SHRINK]
        numbers[SHRINK] = 1.0
    change = -gamma * radius if table[j, SLOPE] > 0.0 else gamma * radius
    table[j, THETA] += change / numbers[SHRINK]
    numbers[ATOM], numbers[MOVE], numbers[KEPT] = j, change, 1.0 - gamma


@njit(cache=True, nogil=True, error_model="numpy")
def play_published(
    indptr,
    indices,
    data,
    y,
    w,
    loss,
    radius,
    with_intercept,
    recursive,
    table,
    toward,
    away,
    starts,
    numbers,
    z,
):
    """Learn rows one after another; see :func:`~onlinefw.kernels.summary.play_rows`.

    The gradient of a row counts as many times as its weight exceeds the mean weight.
    """
    kind, parameter, square = loss
    paid = 0.0
    for i in range(len(y)):
        start, end = indptr[i], indptr[i + 1]
        at = numbers[SHRINK] * dot(table, indices, data, start, end)
        old = at
        for p in range(start, end):
            if indices[p] == numbers[ATOM]:
                old -= numbers[MOVE] * data[p]
        old = old / numbers[KEPT] + numbers[B_OLD]
        at += numbers[INTERCEPT]
        z[i] = at
        if w[i] == 0.0:
            continue
        numbers[WEIGHT] += w[i]
        numbers[ROWS] += 1.0
        rho, heavy = numbers[ROWS] ** -RHO, w[i] * numbers[ROWS] / numbers[WEIGHT]
        numbers[SCALE] *= 1.0 - rho
        if numbers[SCALE] < SMALL:
            rescale(table, toward, away, numbers, numbers[SCALE])
            numbers[SCALE] = 1.0
        value = row_value(kind, parameter, at, y[i]) - square * y[i] * y[i]
        paid += w[i] * value
        numbers[VALUE] = (1.0 - rho) * numbers[VALUE] + rho * clipped(value)
        slope = clipped(row_slope(kind, parameter, at, y[i], heavy))
        change = rho * slope
        if recursive:
            before = clipped(row_slope(kind, parameter, old, y[i], heavy))
            change += (1.0 - rho) * (slope - before)
        for p in range(start, end):
            j = indices[p]
            table[j, SLOPE] += change / numbers[SCALE] * data[p]
            lift(toward, starts, j, abs(table[j, SLOPE]))
        numbers[B_OLD] = numbers[INTERCEPT]
        if with_intercept:
            bend = min(max(row_curvature(kind, parameter, at, y[i]), 0.0), 1e30)
            numbers[B_BEND] = (1.0 - rho) * numbers[B_BEND] + rho * heavy * bend
            if numbers[B_BEND] > 0.0:
                numbers[INTERCEPT] -= rho * slope / numbers[B_BEND]
        numbers[KEPT], numbers[MOVE] = 1.0, 0.0
        if radius > 0.0:
            vertex_step(table, toward, starts, radius, numbers)
    return paid
