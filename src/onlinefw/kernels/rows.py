"""Loops over the stored rows of a linear model, each read from memory once per call.

Rows are dense, of float32, float64 or uint8. The predictions z, targets y and weights w are always
in double precision. Products with rows of float32 and uint8 are formed in single precision, and
sums over rows in single precision over a few rows only, then in double precision.

``blocks`` are the boundaries of ranges of rows, which threads share (``_threads.share``). Every
block has sums of its own, so that results do not depend on timing.
"""

from __future__ import annotations

from math import exp, expm1, inf, isinf, log, log1p, sqrt

import numpy as np
from numba import njit

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
from .wide import LINE, add_product, add_up, everywhere, fetch, read, read_first, write

#: Rows that are summed in the precision of the products before double precision.
CHUNK = 128
#: Rows are prefetched this many bytes before they are read.
AHEAD = 2**14
#: Slopes in single precision are clipped to this, as 0 times infinity would be NaN.
LARGE = 1e30
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


@njit(cache=True, nogil=True)
def slopes(from_block, to_block, blocks, kind, parameter, z, y, w, b, out):
    """out_i = w_i phi'(z_i + b, y_i)."""
    for i in range(blocks[from_block], blocks[to_block]):
        out[i] = row_slope(kind, parameter, z[i] + b, y[i], w[i])


@njit(cache=True, nogil=True)
def values(from_block, to_block, blocks, kind, parameter, z, y, w, b, sums):
    """Sum w phi(z + b, y) by block; half squares for parabolas."""
    for block in range(from_block, to_block):
        total = 0.0
        for i in range(blocks[block], blocks[block + 1]):
            total += w[i] * row_value(kind, parameter, z[i] + b, y[i])
        sums[block] = total


@njit(cache=True, nogil=True)
def totals(from_block, to_block, blocks, kind, parameter, z, y, w, b, sums):
    """Sum w phi(z + b, y), w phi'(z + b, y) and w phi''(z + b, y) by block."""
    for block in range(from_block, to_block):
        value, first, second = totals_between(
            blocks[block], blocks[block + 1], kind, parameter, z, y, w, b
        )
        sums[block, 0], sums[block, 1], sums[block, 2] = value, first, second


@njit(inline="always")
def _sigmoid_terms(parameter, z, y):
    """Return phi, phi' and phi'' of a sigmoid: what the three above say, of one exponential."""
    margin = parameter * y * z
    e = exp(-abs(margin))
    p = (1.0 if margin <= 0.0 else e) / (1.0 + e)
    q = (1.0 if margin >= 0.0 else e) / (1.0 + e)
    slope = -parameter * y * (e / ((1.0 + e) * (1.0 + e)))
    return p, slope, parameter * parameter * p * q * (q - p)


@njit(cache=True)
def totals_between(start, end, kind, parameter, z, y, w, b):
    """Return the three sums over the rows from ``start`` to ``end``."""
    value = first = second = 0.0
    for i in range(start, end):
        at = z[i] + b
        if kind == SIGMOID:
            phi, slope, bend = _sigmoid_terms(parameter, at, y[i])
            value += w[i] * phi
            first += w[i] * slope
            second += w[i] * bend
        else:
            value += w[i] * row_value(kind, parameter, at, y[i])
            first += row_slope(kind, parameter, at, y[i], w[i])
            second += w[i] * row_curvature(kind, parameter, at, y[i])
    return value, first, second


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


@njit(cache=True, nogil=True, fastmath={"contract"})
def fused_gradient(
    from_block, to_block, blocks, X, moved, keep, step, a, z, y, w, b, kind, parameter, acc
):
    """z_i <- keep z_i + step <x_i, a> for i < moved; then sum w_i phi'(z_i + b, y_i) x_i by block.

    While two rows are multiplied by a, the two before them, whose slopes are known by then, are
    added to the gradient: they are still in the cache. So memory is read without pauses.
    """
    n, number = np.uint64(X.shape[1]), a.dtype.type
    width = np.uint64(LINE // a.itemsize)
    rest, ahead, zero = n % width, np.uint64(AHEAD), number(0)
    whole, limit = n - rest, LARGE if a.itemsize == 4 else inf
    a = _padded(a, whole + width)
    for block in range(from_block, to_block):
        total, part = acc[block], np.zeros(whole + width, a.dtype)
        first, end = blocks[block], blocks[block + 1]
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


@njit(cache=True, nogil=True, fastmath={"contract"})
def move_rows(from_block, to_block, blocks, X, keep, step, a, z):
    """z_i <- keep z_i + step <x_i, a>."""
    n, number = np.uint64(X.shape[1]), a.dtype.type
    width = np.uint64(LINE // a.itemsize)
    rest, ahead, zero = n % width, np.uint64(AHEAD), number(0)
    whole = n - rest
    a = _padded(a, whole + width)
    for block in range(from_block, to_block):
        end = blocks[block + 1]
        for i in range(blocks[block], end, 2):
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


@njit(cache=True, nogil=True, fastmath={"contract"})
def slope_gradient(from_block, to_block, blocks, X, s, acc):
    """Sum s_i x_i by block; the products are of the type of s."""
    n, number = np.uint64(X.shape[1]), s.dtype.type
    width = np.uint64(LINE // s.itemsize)
    rest, ahead, zero = n % width, np.uint64(AHEAD), number(0)
    whole = n - rest
    for block in range(from_block, to_block):
        total, part = acc[block], np.zeros(whole + width, s.dtype)
        first, end = blocks[block], blocks[block + 1]
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
