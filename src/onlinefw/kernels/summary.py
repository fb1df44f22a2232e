"""Rows learned one at a time from a summary of all before them, on the l1 ball.

The table has a row for each coordinate: theta, the estimated slope of F and an estimated curvature,
both divided by a common scale that shrinks from row to row, so that a row touches its own
coordinates only.

Row t, of weight w_t, has the share rho_t = 1 - (1 - w_t / W_t)^FORGET of everything so far, where
W_t = fade W_{t-1} + w_t is the total weight (fade is 1 unless rows have a half-life). With g_t the
gradient of its loss at theta_t,

    D_t = (1 - rho_t) D_{t-1} + rho_t diag(c_t x_t^2)
    d_t = (1 - rho_t) (d_{t-1} + D_{t-1} (theta_t - theta_{t-1})) + rho_t g_t(theta_t).

That is the recursion of 1-SFW and ORGFW. They estimate the change of older gradients by that of the
newest row's gradient, of which a row has a few coordinates, and those with all its noise. Here it
is the mean over all rows, of the diagonal only.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p

from numba import njit

from .entries import BERNOULLI, CORRENTROPY, LOGISTIC, POISSON, QUADRATIC, SIGMOID
from .rows import row_curvature, row_slope, row_value
from .tournament import BEND, SLOPE, THETA, key_of, largest, lift

#: How much older rows are forgotten: 1 is the plain mean over all rows, whose gradients were taken
#: at older thetas; more lets go of those sooner.
FORGET = 1.5
#: Slopes and curvatures of one row are clipped to this: infinity times 0 would be NaN.
LARGE = 1e30
#: The table is multiplied by its scale when that has become smaller than this.
SMALL = 1e-100
#: Numbers that a summary has beside its table.
(
    INTERCEPT,
    B_SLOPE,
    B_BEND,
    SCALE,
    WEIGHT,
    SLACK,
    VALUE,
    ROWS,
    SHRINK,
    ATOM,
    MOVE,
    KEPT,
    B_OLD,
) = range(13)
N_NUMBERS = 13
#: The sum of |theta| is added up anew after so many rows, against rounding drift.
REFRESH_EVERY = 2**16


@njit(inline="always")
def clipped(x):
    """Return x within bounds that products cannot leave."""
    return min(max(x, -LARGE), LARGE)


@njit(cache=True, error_model="numpy")
def bend(kind, parameter, z, y, slope):
    """Return the curvature of the parabola that stands for a row's loss around z.

    It touches the loss at z and has its minimum where the loss has it, so that a row alone is never
    overshot. Where that is at infinity (labels, counts of 0), the curvature is that of the loss; of
    the sigmoid, which is not convex, the same as ``Sigmoid.model_curvature``.
    """
    if kind == QUADRATIC:
        return 1.0
    if kind in (BERNOULLI, LOGISTIC) or (kind == POISSON and y == 0.0):
        return row_curvature(kind, parameter, z, y)
    if kind == SIGMOID:
        e = exp(-abs(parameter * z))
        return parameter * abs(slope) * max((1.0 - e) / (1.0 + e), 0.25)
    if kind == CORRENTROPY:
        return slope / (z - y) if z != y else 1.0 / parameter
    if kind == POISSON:
        best = log(y)
    else:
        best = -1.0 / y if y * parameter <= 1.0 else parameter * (y * parameter - 2.0)
    if abs(z - best) <= 1e-6 * abs(best):
        return row_curvature(kind, parameter, best, y)
    return slope / (z - best)


@njit(inline="always")
def guarded(kind, z, slope, own):
    """Return a curvature for the intercept, which no ball keeps from going too far.

    On the wrong side the curvature of a label's loss vanishes, and its slope does not: the minimum
    is then taken to be on the other side of 0, as far as z, or at 2.
    """
    if kind in (LOGISTIC, BERNOULLI) and slope * z > 0.0:
        return max(own, abs(slope) / (2.0 * max(abs(z), 2.0)))
    return own


@njit(cache=True)
def rescale(table, toward, away, numbers, factor):
    """Multiply slopes and curvatures, with the bounds on them; bounds stay bounds."""
    for j in range(len(table)):
        table[j, SLOPE] *= factor
        table[j, BEND] *= factor
    for k in range(len(toward)):
        toward[k] *= factor
        if away[k] != -inf:
            away[k] *= factor
    numbers[B_SLOPE] *= factor
    numbers[B_BEND] *= factor


@njit(inline="always")
def shift(table, toward, away, starts, j, change):
    """Move one coordinate, and its slope along its curvature."""
    table[j, THETA] += change
    table[j, SLOPE] += table[j, BEND] * change
    lift(toward, starts, j, key_of(table, j, False))
    lift(away, starts, j, key_of(table, j, True))


@njit(inline="always")
def best_on(descent, curvature, longest):
    """Return the best step along a parabola, and what it lowers it by."""
    step = longest if descent >= curvature * longest else descent / curvature
    return step, step * (descent - 0.5 * curvature * step)


@njit(cache=True, error_model="numpy")
def pairwise_step(table, toward, away, starts, slack):
    """Move weight between two vertices of the ball, or the origin; return the slack then.

    The target is the vertex that linear minimisation finds: the largest slope. The source is the
    active vertex with the worst slope, or the origin while there is slack; or the worst vertex
    gives weight back to the origin. What lowers the parabolas most is done.
    """
    j = largest(table, toward, starts, False)
    k = largest(table, away, starts, True)
    steep, own = abs(table[j, SLOPE]), table[j, BEND]
    if steep == 0.0:
        return slack
    ahead = -1.0 if table[j, SLOPE] > 0.0 else 1.0
    step, gain = best_on(steep, own, slack)
    source, target, most = False, True, 0.0
    if k >= 0:
        worse, other, most = key_of(table, k, True), table[k, BEND], abs(table[k, THETA])
        if worse > 0.0:
            back, lowered = best_on(worse, other, most)
            if lowered > gain:
                step, gain, source, target = back, lowered, True, False
        if j != k and steep + worse > 0.0:
            across, lowered = best_on(steep + worse, own + other, most)
            if lowered > gain:
                step, gain, source, target = across, lowered, True, True
    if not gain > 0.0:
        return slack
    if source:
        whole = step == most
        change = -table[k, THETA] if whole else (-step if table[k, THETA] > 0.0 else step)
        shift(table, toward, away, starts, k, change)
        slack += step
    if target:
        before = abs(table[j, THETA])
        shift(table, toward, away, starts, j, ahead * step)
        slack -= abs(table[j, THETA]) - before
    return max(slack, 0.0)


@njit(cache=True)
def refresh_slack(table, radius):
    """Return the radius less the sum of |theta|, which is brought back into the ball."""
    total = 0.0
    for j in range(len(table)):
        total += abs(table[j, THETA])
    if total > radius:
        for j in range(len(table)):
            table[j, THETA] *= radius / total
    return max(radius - total, 0.0)


@njit(cache=True)
def share(numbers, w, fade):
    """Count a row of weight w; return the share that all before it keep, and its own."""
    before = fade * numbers[WEIGHT]
    numbers[WEIGHT] = before + w
    numbers[ROWS] += 1.0
    if before == 0.0:
        return 0.0, 1.0
    exponent = FORGET * log1p(-w / numbers[WEIGHT]) if w < numbers[WEIGHT] else -inf
    return exp(exponent), -expm1(exponent)


@njit(inline="always")
def dot(table, indices, data, start, end):
    """Return <theta, x> of a row."""
    z = 0.0
    for p in range(start, end):
        z += table[indices[p], THETA] * data[p]
    return z


@njit(cache=True, nogil=True, error_model="numpy")
def play_rows(
    indptr,
    indices,
    data,
    y,
    w,
    loss,
    radius,
    with_intercept,
    fade,
    table,
    toward,
    away,
    starts,
    numbers,
    z,
):
    """Learn rows one after another; z becomes what was predicted for each before.

    ``loss`` is its kind, its parameter, and what is taken off for each y^2. A radius of 0 leaves
    theta as it is: the rows change the estimates only. ``fade`` is what is left of the weight of
    all rows before one. Returns the sum of w times the loss.
    """
    kind, parameter, square = loss
    paid = 0.0
    for i in range(len(y)):
        start, end = indptr[i], indptr[i + 1]
        at = dot(table, indices, data, start, end) + numbers[INTERCEPT]
        z[i] = at
        if w[i] == 0.0:
            continue
        kept, rho = share(numbers, w[i], fade)
        if numbers[SCALE] * kept < SMALL:
            rescale(table, toward, away, numbers, numbers[SCALE] * kept)
            numbers[SCALE] = 1.0
        else:
            numbers[SCALE] *= kept
        value = row_value(kind, parameter, at, y[i]) - square * y[i] * y[i]
        paid += w[i] * value
        numbers[VALUE] = kept * numbers[VALUE] + rho * clipped(value)
        slope = clipped(row_slope(kind, parameter, at, y[i], 1.0))
        first = rho * slope / numbers[SCALE]
        own = min(bend(kind, parameter, at, y[i], slope), LARGE)
        second = rho * own / numbers[SCALE]
        for p in range(start, end):
            j, x = indices[p], data[p] * 1.0
            if x == 0.0:
                continue
            d = table[j, SLOPE] + first * x
            table[j, SLOPE] = d
            table[j, BEND] += second * x * x
            lift(toward, starts, j, abs(d))
            theta = table[j, THETA]
            if theta != 0.0:
                lift(away, starts, j, d if theta > 0.0 else -d)
        if with_intercept:
            numbers[B_SLOPE] += first
            numbers[B_BEND] += rho * guarded(kind, at, slope, own) / numbers[SCALE]
            if numbers[B_BEND] > 0.0:  # its minimum is taken at once: it is in no ball
                numbers[INTERCEPT] -= numbers[B_SLOPE] / numbers[B_BEND]
                numbers[B_SLOPE] = 0.0
        if radius > 0.0:
            numbers[SLACK] = pairwise_step(table, toward, away, starts, numbers[SLACK])
            if numbers[ROWS] % REFRESH_EVERY == 0.0:
                numbers[SLACK] = refresh_slack(table, radius)
    return paid
