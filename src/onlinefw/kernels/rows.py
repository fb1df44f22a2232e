"""Loops over the stored rows of a linear model, each read from memory once per call.

Rows are dense, of float32, float64 or uint8. The predictions z, targets y and weights w are always
in double precision. Products with rows of float32 and uint8 are formed in single precision, and
sums over rows in single precision over a few rows only, then in double precision.

``blocks`` are the boundaries of the rows that each thread works on. Every block has sums of its
own, which are added in order, so that results do not depend on timing.
"""

from __future__ import annotations

from math import exp, expm1, inf, isinf, log, log1p, sqrt

import numpy as np
from numba import njit, prange

from .entries import (
    BERNOULLI,
    CORRENTROPY,
    EXPONENTIAL,
    LOGISTIC,
    POISSON,
    QUADRATIC,
    SIGMOID,
    _expit,
    slope,
)
from .few import on_one_thread
from .wide import LINE, add_product, add_up, everywhere, fetch, read, read_first, write

#: Rows that are summed in the precision of the products before double precision.
CHUNK = 128
#: Rows are prefetched this many bytes before they are read.
AHEAD = 2**14
#: Slopes in single precision are clipped to this, as 0 times infinity would be NaN.
LARGE = 1e30
#: Sums over all rows are formed in this many parts, whatever the number of threads.
PARTS = 16
#: Beyond this many standard deviations a Gaussian is 0 in floating point (see ``losses``).
FAR = 40.0


@njit(cache=True)
def row_slope(kind, parameter, z, y, w):
    """Return w phi'(z, y)."""
    if kind == CORRENTROPY and abs(z - y) > FAR * sqrt(parameter):
        return 0.0
    return w * slope(kind, parameter, z, 1.0, y)


@njit(inline="always")
def _softplus(z):
    return max(z, 0.0) + log1p(exp(-abs(z)))


@njit(inline="always")
def _error(parameter, z, y):
    return min(max((z - y) / sqrt(parameter), -FAR), FAR)


@njit(cache=True)
def row_value(kind, parameter, z, y):
    """Return phi(z, y)."""
    if kind == QUADRATIC:
        return 0.5 * (z - y) * (z - y)
    if kind == BERNOULLI:
        return _softplus(-z if y == 1.0 else z)
    if kind == POISSON:
        rate = exp(z)
        if isinf(rate) or y == 0.0:
            return rate
        return rate - y * z
    if kind == EXPONENTIAL:
        above = max(z + parameter, 0.0) / parameter
        total = above * (1.0 + 0.5 * above) - log(-min(z, -parameter))
        return inf if isinf(total) else total - y * z
    if kind == LOGISTIC:
        return _softplus(-y * z)
    if kind == SIGMOID:
        return _expit(-parameter * y * z)
    e = _error(parameter, z, y)
    return -expm1(-0.5 * e * e)


@njit(cache=True)
def row_curvature(kind, parameter, z, y):
    """Return phi''(z, y)."""
    if kind == QUADRATIC:
        return 1.0
    if kind in (BERNOULLI, LOGISTIC):
        return _expit(z) * _expit(-z)
    if kind == POISSON:
        return exp(z)
    if kind == EXPONENTIAL:
        root = 1.0 / min(z, -parameter)
        return root * root
    if kind == SIGMOID:
        p, q = _expit(-parameter * y * z), _expit(parameter * y * z)
        return parameter * parameter * p * q * (q - p)
    e = _error(parameter, z, y)
    return (1.0 - e * e) / parameter * exp(-0.5 * e * e)


@njit(cache=True, parallel=True)
def slopes(kind, parameter, z, y, w, b):
    """Return w phi'(z + b, y) of every row."""
    out = np.empty(len(z))
    for part in prange(PARTS):
        for i in range(part * len(z) // PARTS, (part + 1) * len(z) // PARTS):
            out[i] = row_slope(kind, parameter, z[i] + b, y[i], w[i])
    return out


# Functions of their own: within a parallel one, these would be parallel loops as well.
@njit(cache=True)
def _zeros(parts, n):
    return np.zeros((parts, n))


@njit(cache=True)
def _add_parts(acc, out):
    out[:] = 0.0
    for part in range(len(acc)):
        out += acc[part]


@njit(cache=True, parallel=True)
def value_sum(kind, parameter, z, y, w, b):
    """Return the sum of w phi(z + b, y); half squares for parabolas."""
    acc, out = _zeros(PARTS, 1), np.empty(1)
    for part in prange(PARTS):
        total = 0.0
        for i in range(part * len(z) // PARTS, (part + 1) * len(z) // PARTS):
            total += w[i] * row_value(kind, parameter, z[i] + b, y[i])
        acc[part, 0] = total
    _add_parts(acc, out)
    return out[0]


@njit(cache=True, parallel=True)
def totals(kind, parameter, z, y, w, b):
    """Return the sums of w phi(z + b, y), of w phi'(z + b, y) and of w phi''(z + b, y)."""
    acc, out = _zeros(PARTS, 3), np.empty(3)
    for part in prange(PARTS):
        value = first = second = 0.0
        for i in range(part * len(z) // PARTS, (part + 1) * len(z) // PARTS):
            at = z[i] + b
            value += w[i] * row_value(kind, parameter, at, y[i])
            first += row_slope(kind, parameter, at, y[i], w[i])
            second += w[i] * row_curvature(kind, parameter, at, y[i])
        acc[part, 0], acc[part, 1], acc[part, 2] = value, first, second
    _add_parts(acc, out)
    return out[0], out[1], out[2]


@njit(cache=True)
def extremes(z, y, w, signed):
    """Return the smallest and largest y - z of the rows that count (-z, for labels -1 and 1)."""
    low, high = inf, -inf
    for i in range(len(z)):
        if w[i] > 0.0:
            at = -z[i] if signed else y[i] - z[i]
            low, high = min(low, at), max(high, at)
    return low, high


@njit(cache=True)
def blend(z, keep, image, step):
    """z <- keep z + step image."""
    for i in range(len(z)):
        z[i] = keep * z[i] + step * image[i]


@njit(cache=True)
def _padded(a, n):
    longer = np.zeros(n, a.dtype)
    longer[: len(a)] = a
    return longer


@njit(cache=True, parallel=True, fastmath={"contract"})
def fused_gradient(X, blocks, moved, keep, step, a, z, y, w, b, kind, parameter, out):
    """z_i <- keep z_i + step <x_i, a> for i < moved, then out = sum_i w_i phi'(z_i + b, y_i) x_i.

    While two rows are multiplied by a, the two before them, whose slopes are known by then, are
    added to the gradient: they are still in the cache. So memory is read without pauses.
    """
    n, number = np.uint64(X.shape[1]), a.dtype.type
    width = np.uint64(LINE // a.itemsize)
    rest, ahead, zero = n % width, np.uint64(AHEAD), number(0)
    whole, limit = n - rest, LARGE if a.itemsize == 4 else inf
    acc, a = _zeros(len(blocks) - 1, X.shape[1]), _padded(a, whole + width)
    for thread in prange(len(blocks) - 1):
        total, part = acc[thread], np.zeros(whole + width, a.dtype)
        first, end = blocks[thread], blocks[thread + 1]
        p0 = p1 = np.uint64(first)  # the two rows before, and their slopes
        s0 = s1 = zero
        for i in range(first, end + 2 if first < end else first, 2):
            # Past the end of the block the last row is read again; it is not used.
            r0, r1 = np.uint64(min(i, end - 1)), np.uint64(min(i + 1, end - 1))
            d0, d1, t0, t1 = everywhere(zero), everywhere(zero), everywhere(s0), everywhere(s1)
            j = np.uint64(0)
            while j < whole:
                fetch(X, (r0, j), ahead)
                fetch(X, (r1, j), ahead)
                a_j, g = read(a, (j,), zero), read(part, (j,), zero)
                d0 = add_product(d0, a_j, read(X, (r0, j), zero))
                d1 = add_product(d1, a_j, read(X, (r1, j), zero))
                g = add_product(g, t0, read(X, (p0, j), zero))
                write(part, j, add_product(g, t1, read(X, (p1, j), zero)))
                j += width
            if rest:
                a_j, g = read(a, (j,), zero), read(part, (j,), zero)
                d0 = add_product(d0, a_j, read_first(X, (r0, j), zero, rest))
                d1 = add_product(d1, a_j, read_first(X, (r1, j), zero, rest))
                g = add_product(g, t0, read_first(X, (p0, j), zero, rest))
                write(part, j, add_product(g, t1, read_first(X, (p1, j), zero, rest)))
            p0, p1, s0, s1 = r0, r1, zero, zero
            if i < end:
                if i < moved:
                    z[i] = keep * z[i] + step * add_up(d0)
                s = row_slope(kind, parameter, z[i] + b, y[i], w[i])
                s0 = number(min(max(s, -limit), limit))
            if i + 1 < end:
                if i + 1 < moved:
                    z[i + 1] = keep * z[i + 1] + step * add_up(d1)
                s = row_slope(kind, parameter, z[i + 1] + b, y[i + 1], w[i + 1])
                s1 = number(min(max(s, -limit), limit))
            if (i - first) % CHUNK == 0 or i >= end:
                for k in range(n):
                    total[k] += part[k]
                    part[k] = zero
    _add_parts(acc, out)


@njit(cache=True, parallel=True, fastmath={"contract"})
def move_rows(X, blocks, keep, step, a, z):
    """z_i <- keep z_i + step <x_i, a>."""
    n, number = np.uint64(X.shape[1]), a.dtype.type
    width = np.uint64(LINE // a.itemsize)
    rest, ahead, zero = n % width, np.uint64(AHEAD), number(0)
    whole = n - rest
    a = _padded(a, whole + width)
    for thread in prange(len(blocks) - 1):
        end = blocks[thread + 1]
        for i in range(blocks[thread], end, 2):
            r0, r1 = np.uint64(i), np.uint64(min(i + 1, end - 1))
            d0, d1 = everywhere(zero), everywhere(zero)
            j = np.uint64(0)
            while j < whole:
                fetch(X, (r0, j), ahead)
                fetch(X, (r1, j), ahead)
                a_j = read(a, (j,), zero)
                d0 = add_product(d0, a_j, read(X, (r0, j), zero))
                d1 = add_product(d1, a_j, read(X, (r1, j), zero))
                j += width
            if rest:
                a_j = read(a, (j,), zero)
                d0 = add_product(d0, a_j, read_first(X, (r0, j), zero, rest))
                d1 = add_product(d1, a_j, read_first(X, (r1, j), zero, rest))
            z[r0] = keep * z[r0] + step * add_up(d0)
            if i + 1 < end:
                z[r1] = keep * z[r1] + step * add_up(d1)


@njit(cache=True, parallel=True, fastmath={"contract"})
def slope_gradient(X, blocks, s, out):
    """Write sum_i s_i x_i to out; the products are of the type of s."""
    n, number = np.uint64(X.shape[1]), s.dtype.type
    width = np.uint64(LINE // s.itemsize)
    rest, ahead, zero = n % width, np.uint64(AHEAD), number(0)
    whole, acc = n - rest, _zeros(len(blocks) - 1, X.shape[1])
    for thread in prange(len(blocks) - 1):
        total, part = acc[thread], np.zeros(whole + width, s.dtype)
        first, end = blocks[thread], blocks[thread + 1]
        for i in range(first, end, 2):
            r0, r1 = np.uint64(i), np.uint64(min(i + 1, end - 1))
            t0, t1 = everywhere(s[r0]), everywhere(s[r1] if i + 1 < end else zero)
            j = np.uint64(0)
            while j < whole:
                fetch(X, (r0, j), ahead)
                fetch(X, (r1, j), ahead)
                g = add_product(read(part, (j,), zero), t0, read(X, (r0, j), zero))
                write(part, j, add_product(g, t1, read(X, (r1, j), zero)))
                j += width
            if rest:
                g = add_product(read(part, (j,), zero), t0, read_first(X, (r0, j), zero, rest))
                write(part, j, add_product(g, t1, read_first(X, (r1, j), zero, rest)))
            if (i - first) % CHUNK == 0 or i + 2 >= end:
                for k in range(n):
                    total[k] += part[k]
                    part[k] = zero
    _add_parts(acc, out)


few_slopes, few_values, few_totals = map(on_one_thread, (slopes, value_sum, totals))
few_fused_gradient, few_move_rows, few_slope_gradient = map(
    on_one_thread, (fused_gradient, move_rows, slope_gradient)
)
