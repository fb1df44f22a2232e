"""Loops that evaluate the loss of all observed entries, and its course along a line.

The line is ``x + t d``, where x is the prediction with its offsets and d = a - z, with the atom's
entry a = u_i right_j. Sums are in double precision, whatever the precision of the store. Each part
of them is added up by itself, so that results do not depend on timing. Stores and the tail are
described in :mod:`onlinefw.kernels.entries`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .entries import slope


@njit(inline="always")
def _quadratic_loss(c, s, g):
    """Return c x^2 / 2 - s x, where g = c x - s is the slope (an entry of weight 0 has no loss)."""
    c, s, g = np.float64(c), np.float64(s), np.float64(g)
    return 0.5 * (g * g - s * s) / c if c > 0.0 else 0.0


@njit(cache=True, nogil=True)
def quadratic_total(from_block, to_block, blocks, c, s, g, sums):
    """Sum the loss of all entries from their slopes, by block."""
    one = np.uint64(1)  # unsigned counters: see kernels.entries
    for block in range(from_block, to_block):
        k, end = np.uint64(blocks[block]), np.uint64(blocks[block + 1])
        total = 0.0
        while k < end:
            total += _quadratic_loss(c[k], s[k], g[k])
            k += one
        sums[block] = total


@njit(cache=True, nogil=True)
def quadratic_line(from_block, to_block, blocks, indptr, col, z, c, s, g, u, right, sums):
    """Sum value and slope at t = 0, and the curvature, by block: one read of a sorted store."""
    for block in range(from_block, to_block):
        value, first, second = 0.0, 0.0, 0.0
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                d = np.float64(u[i] * right[col[k]] - z[k])
                value += _quadratic_loss(c[k], s[k], g[k])
                first += g[k] * d
                second += c[k] * d * d
        sums[block, 0] = value
        sums[block, 1] = first
        sums[block, 2] = second


@njit(cache=True)
def tail_quadratic_line(row, col, z, c, s, g, u, right):
    """Return the same three sums over the tail."""
    sums = np.zeros(3)
    for k in range(len(row)):
        d = np.float64(u[row[k]] * right[col[k]] - z[k])
        sums[0] += _quadratic_loss(c[k], s[k], g[k])
        sums[1] += g[k] * d
        sums[2] += c[k] * d * d
    return sums


@njit(cache=True, nogil=True)
def shifted_line(
    from_block, to_block, blocks, indptr, col, z, c, s, g, less, row_offset, offset, u, right, sums
):
    """Do the same where weights are c - less, which may be 0 or negative; u may be empty.

    The value is x (g - s) / 2, with offsets in the order of the store.
    """
    on_line = len(u) > 0
    for block in range(from_block, to_block):
        value, first, second = 0.0, 0.0, 0.0
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                x = np.float64(z[k] + (row_offset[i] + offset[col[k]]))
                value += 0.5 * x * (np.float64(g[k]) - np.float64(s[k]))
                if on_line:
                    d = np.float64(u[i] * right[col[k]] - z[k])
                    first += g[k] * d
                    second += (c[k] - less) * d * d
        sums[block, 0] = value
        sums[block, 1] = first
        sums[block, 2] = second


@njit(cache=True)
def tail_shifted_line(row, col, z, c, s, g, first, less, row_offset, offset, u, right):
    """Return the same three sums over the tail."""
    sums, on_line = np.zeros(3), len(u) > 0
    for k in range(len(row)):
        i, j = row[k], col[k]
        x = np.float64(z[k] + (row_offset[i] + offset[j]))
        sums[0] += 0.5 * x * (np.float64(g[k]) - np.float64(s[k]))
        if on_line:
            d = np.float64(u[i] * right[j] - z[k])
            sums[1] += g[k] * d
            sums[2] += (c[k] - less * first[k]) * d * d
    return sums


@njit(cache=True, nogil=True)
def directions(from_block, to_block, blocks, indptr, col, z, u, right, out):
    """out_k = u_i right_j - z_k over a sorted store."""
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[k] = u[i] * right[col[k]] - z[k]


@njit(cache=True, nogil=True)
def line_slope(from_block, to_block, blocks, kind, parameter, x, d, c, s, t, sums):
    """Sum d_k times the slope of entry k at x_k + t d_k, by block."""
    one = np.uint64(1)
    for block in range(from_block, to_block):
        k, end = np.uint64(blocks[block]), np.uint64(blocks[block + 1])
        total = 0.0
        while k < end:
            dk = np.float64(d[k])
            total += dk * slope(kind, parameter, x[k] + t * dk, np.float64(c[k]), np.float64(s[k]))
            k += one
        sums[block] = total
