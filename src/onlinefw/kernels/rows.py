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

#: Rows worked on together: what is read and written per column is shared by them.
GROUP = 4
#: Rows whose slopes are summed in the precision of the products before double precision.
CHUNK = 128
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
def value_sum(kind, parameter, z, y, w, b):
    """Return the sum of w phi(z + b, y); half squares for parabolas."""
    sums = np.zeros(PARTS)
    for part in prange(PARTS):
        total = 0.0
        for i in range(part * len(z) // PARTS, (part + 1) * len(z) // PARTS):
            total += w[i] * row_value(kind, parameter, z[i] + b, y[i])
        sums[part] = total
    return sums.sum()


@njit(cache=True, parallel=True)
def intercept_sums(kind, parameter, z, y, w, b):
    """Return the sums of w phi'(z + b, y) and of w phi''(z + b, y)."""
    sums = np.zeros((2, PARTS))
    for part in prange(PARTS):
        first = second = 0.0
        for i in range(part * len(z) // PARTS, (part + 1) * len(z) // PARTS):
            at = z[i] + b
            first += row_slope(kind, parameter, at, y[i], w[i])
            second += w[i] * row_curvature(kind, parameter, at, y[i])
        sums[0, part] = first
        sums[1, part] = second
    return sums[0].sum(), sums[1].sum()


@njit(cache=True, parallel=True, fastmath={"reassoc", "contract"})
def fused_gradient(X, blocks, moved, keep, step, a, z, y, w, b, kind, parameter, out):
    """z_i <- keep z_i + step <x_i, a> for i < moved, then out = sum_i w_i phi'(z_i + b, y_i) x_i.

    Groups of rows: their products with a, their slopes, their part of the gradient. A group that
    is cut short by its block's end repeats the last row with slope 0.
    """
    n, number = np.uint64(X.shape[1]), a.dtype.type
    acc = np.zeros((len(blocks) - 1, X.shape[1]))
    for thread in prange(len(blocks) - 1):
        total, part = acc[thread], np.zeros(X.shape[1], a.dtype)
        d, s = np.zeros(GROUP, a.dtype), np.zeros(GROUP, a.dtype)
        first, end = blocks[thread], blocks[thread + 1]
        for i in range(first, end, GROUP):
            r0, r1 = np.uint64(i), np.uint64(min(i + 1, end - 1))
            r2, r3 = np.uint64(min(i + 2, end - 1)), np.uint64(min(i + 3, end - 1))
            if i < moved:
                d0 = d1 = d2 = d3 = number(0)
                for j in range(n):
                    d0 += number(X[r0, j]) * a[j]
                    d1 += number(X[r1, j]) * a[j]
                    d2 += number(X[r2, j]) * a[j]
                    d3 += number(X[r3, j]) * a[j]
                d[0], d[1], d[2], d[3] = d0, d1, d2, d3
            for k in range(GROUP):
                r = i + k
                if r >= end:
                    s[k] = 0.0
                    continue
                if r < moved:
                    z[r] = keep * z[r] + step * d[k]
                s[k] = row_slope(kind, parameter, z[r] + b, y[r], w[r])
            s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
            for j in range(n):
                part[j] += (s0 * number(X[r0, j]) + s1 * number(X[r1, j])) + (
                    s2 * number(X[r2, j]) + s3 * number(X[r3, j])
                )
            if (i - first) % CHUNK == CHUNK - GROUP or i + GROUP >= end:
                for j in range(n):
                    total[j] += part[j]
                    part[j] = 0.0
    _add_up(acc, out)


@njit(cache=True)
def _add_up(acc, out):
    out[:] = 0.0
    for thread in range(len(acc)):
        out += acc[thread]


@njit(cache=True, parallel=True, fastmath={"reassoc", "contract"})
def move_rows(X, blocks, keep, step, a, z):
    """z_i <- keep z_i + step <x_i, a>."""
    n, number = np.uint64(X.shape[1]), a.dtype.type
    for thread in prange(len(blocks) - 1):
        for i in range(np.uint64(blocks[thread]), np.uint64(blocks[thread + 1])):
            d = number(0)
            for j in range(n):
                d += number(X[i, j]) * a[j]
            z[i] = keep * z[i] + step * d


@njit(cache=True, parallel=True, fastmath={"reassoc", "contract"})
def slope_gradient(X, blocks, s, out):
    """Write sum_i s_i x_i to out; s has the precision the products are to be formed in."""
    n, number = np.uint64(X.shape[1]), s.dtype.type
    acc = np.zeros((len(blocks) - 1, X.shape[1]))
    for thread in prange(len(blocks) - 1):
        total, part = acc[thread], np.zeros(X.shape[1], s.dtype)
        first, end = blocks[thread], blocks[thread + 1]
        for i in range(first, end, GROUP):
            r0, r1 = np.uint64(i), np.uint64(min(i + 1, end - 1))
            r2, r3 = np.uint64(min(i + 2, end - 1)), np.uint64(min(i + 3, end - 1))
            s0, s1 = s[r0], s[r1] if i + 1 < end else number(0)
            s2, s3 = s[r2] if i + 2 < end else number(0), s[r3] if i + 3 < end else number(0)
            for j in range(n):
                part[j] += (s0 * number(X[r0, j]) + s1 * number(X[r1, j])) + (
                    s2 * number(X[r2, j]) + s3 * number(X[r3, j])
                )
            if (i - first) % CHUNK == CHUNK - GROUP or i + GROUP >= end:
                for j in range(n):
                    total[j] += part[j]
                    part[j] = 0.0
    _add_up(acc, out)
