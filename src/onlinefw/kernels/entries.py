"""Loops over the observed entries of a matrix.

A store in compressed rows, and a short unsorted tail of the newest entries.

Per entry: its column, its prediction z, the total weight c and target s of what was observed there,
and the unscaled slope g of the loss. Columns are numbered by ``rank``.

Where entries that were not observed count as zeros, the parameter of the square loss is their
weight. What is said of all entries together is kept elsewhere, so the slope of an observed one is
that of the weight c less theirs; once for an entry, so the tail has a column ``first``.

Long loops run over ``blocks`` of rows or entries, which threads share (``_threads.share``). Every
block has sums of its own, in ``acc`` or ``sums``, so that results do not depend on timing.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit

from .lanes import LANES, add_scaled, load, moved, not_unrolled, store, zero

#: Which derivative a kernel uses: sums c G'(z) - s, or weights c times phi'(z, s) ...
QUADRATIC, BERNOULLI, POISSON, EXPONENTIAL, LOGISTIC, SIGMOID, CORRENTROPY = range(7)
#: ... or none: the slopes are given, since the loss is the user's own.
GIVEN = -1


@njit(inline="always")
def _expit(z):
    e = exp(-abs(z))  # no branch: the processor would guess wrong half of the time
    return (1.0 if z >= 0 else e) / (1.0 + e)


@njit(cache=True)
def slope(kind, parameter, z, c, s):
    """Return the derivative of one entry's total loss at z."""
    if kind == QUADRATIC:
        return c * z - s
    if kind == BERNOULLI:
        return c * _expit(z) - s
    if kind == POISSON:
        return c * exp(z) - s
    if kind == EXPONENTIAL:
        if z <= -parameter:
            return -c / z - s
        return c * (1.0 / parameter + (z + parameter) / (parameter * parameter)) - s
    if kind == LOGISTIC:
        return -c * s * _expit(-s * z)
    if kind == SIGMOID:
        e = exp(-abs(parameter * z))  # p (1 - p) is even, and so exact on both sides
        return -c * parameter * s * (e / ((1.0 + e) * (1.0 + e)))
    e = z - s
    return c * e / parameter * exp(-0.5 * e * e / parameter)


@njit(inline="always")
def _scatter(a, col, g, total, start, end, distinct):
    """a[col_k] += g_k total. Four at a time where no column comes twice in a row of the store.

    Loop counters are unsigned: a signed index would be tested for being negative every time.
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    k = start
    if distinct:
        even = end - ((end - start) & three)
        while k < even:
            c0, c1, c2, c3 = col[k], col[k + one], col[k + two], col[k + three]
            a0 = a[c0] + g[k] * total
            a1 = a[c1] + g[k + one] * total
            a2 = a[c2] + g[k + two] * total
            a3 = a[c3] + g[k + three] * total
            a[c0] = a0
            a[c1] = a1
            a[c2] = a2
            a[c3] = a3
            k += four
    while k < end:
        a[col[k]] += g[k] * total
        k += one


@njit(inline="always")
def row_dot(col, g, v, start, end, zero):
    """Return the sum of g_k v[col_k] in the precision of ``zero``.

    Four independent chains hide the latency of each.
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    even = end - ((end - start) & three)
    s0 = s1 = s2 = s3 = zero
    k = start
    while k < even:
        s0 += g[k] * v[col[k]]
        s1 += g[k + one] * v[col[k + one]]
        s2 += g[k + two] * v[col[k + two]]
        s3 += g[k + three] * v[col[k + three]]
        k += four
    while k < end:
        s0 += g[k] * v[col[k]]
        k += one
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True)
def normal(from_block, to_block, blocks, indptr, col, g, row_scale, v, y, acc, distinct):
    """Let y += G v, then acc += G' (row_scale y) by block: one read of the store for both."""
    weighted = len(row_scale) > 0
    for block in range(from_block, to_block):
        a = acc[block]
        for i in range(blocks[block], blocks[block + 1]):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            total = y[i] + row_dot(col, g, v, start, end, g.dtype.type(0))
            y[i] = total
            if weighted:
                total = total * row_scale[i]
            _scatter(a, col, g, total, start, end, distinct)


@njit(cache=True)
def begin_normal(row, col, g, rank, v, by_rank, y):
    """Put v in the order of the store, and let y = G v over the tail."""
    for j in range(len(rank)):
        by_rank[rank[j]] = v[j]
    y[:] = 0
    for k in range(len(row)):
        y[row[k]] += g[k] * by_rank[col[k]]


@njit(cache=True)
def end_normal(row, col, g, rank, row_scale, y, acc):
    """Add G' (row_scale y) over the tail; return the sum of all parts in the order of columns."""
    first = acc[0]
    for k in range(len(row)):
        i = row[k]
        first[col[k]] += (g[k] * row_scale[i] if len(row_scale) else g[k]) * y[i]
    w = np.empty(len(rank), acc.dtype)
    for j in range(len(rank)):
        total = first[rank[j]]
        for part in range(1, len(acc)):
            total += acc[part, rank[j]]
        w[j] = total
    return w


@njit(cache=True, nogil=True)
def weighted_sums(
    from_block, to_block, blocks, indptr, col, c, z, share, rows, columns, row_sums, acc
):
    """Sum c_k (columns[col_k] + share z_k) in every row, c_k (rows_i + share z_k) in every column.

    The latter by block.
    """
    for block in range(from_block, to_block):
        a = acc[block]
        for i in range(blocks[block], blocks[block + 1]):
            total = 0.0
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                zk = share * z[k]
                total += c[k] * (columns[col[k]] + zk)
                a[col[k]] += c[k] * (rows[i] + zk)
            row_sums[i] += total


@njit(cache=True)
def tail_weighted_sums(row, col, c, z, share, rows, columns, row_sums, col_sums):
    """Add the same sums over the tail."""
    for k in range(len(row)):
        i, j, zk = row[k], col[k], share * z[k]
        row_sums[i] += c[k] * (columns[j] + zk)
        col_sums[j] += c[k] * (rows[i] + zk)


@njit(cache=True, nogil=True)
def targets(from_block, to_block, blocks, indptr, col, c, s, less, row_offset, col_offset, out):
    """out_k = s_k - (c_k - less) times the entry's offset: what is left for theta to explain."""
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[k] = s[k] - (c[k] - less) * (row_offset[i] + col_offset[col[k]])


def _fused(quadratic):
    """Compile the fused kernel for parabolas or for all other losses.

    Testing the loss for every entry is slow. So is a loop in a function of its own, even an
    inlined one: references to its arrays are counted for every row.
    """

    @njit(cache=True, nogil=True, fastmath={"contract"})
    def move_and_normal(
        from_block, to_block, blocks, indptr, col, z, c, s, g, keep, u, row_offset, columns,
        kind, parameter, row_scale, v, y, acc, sums,
    ):  # fmt: skip
        """Move every prediction along an atom, refresh the slopes, and multiply 8 vectors.

        z <- keep z + u_i columns[j, 0], g <- slope at z + row_offset_i + columns[j, 1],
        y += G V, acc += G' (row_scale y) and sums = <z, g> by block. One read of everything.
        ``u`` and ``row_scale`` may be empty: nothing is added, and all rows weigh 1.
        """
        one, move, offset = np.uint64(1), np.uint64(0), np.uint64(1)
        moving, weighted = len(u) > 0, len(row_scale) > 0
        less = g.dtype.type(parameter)
        for block in range(from_block, to_block):
            a = acc[block]
            z_dot_g = 0.0  # rows are summed in the store's own precision, this in double precision
            for i in range(blocks[block], blocks[block + 1]):
                start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
                u_i, offset_i, total = g.dtype.type(0), row_offset[i], load(y, i)
                if moving:
                    u_i = u[i]
                zg = g.dtype.type(0)
                k = start
                while k < end:
                    not_unrolled()
                    j = col[k]
                    zk = moved(keep, z[k], u_i, columns[j, move])
                    at = zk + (offset_i + columns[j, offset])
                    if quadratic:
                        gk = (c[k] - less) * at - s[k]
                    elif kind == GIVEN:
                        gk = g[k]
                    else:
                        gk = g.dtype.type(slope(kind, parameter, at, c[k], s[k]))
                    z[k] = zk
                    g[k] = gk
                    total = add_scaled(total, gk, load(v, j))
                    zg += zk * gk
                    k += one
                z_dot_g += zg
                store(y, i, total)
                if weighted:
                    total = add_scaled(zero(u_i), row_scale[i], total)
                k = start
                while k < end:
                    store(a, col[k], add_scaled(load(a, col[k]), g[k], total))
                    k += one
            sums[block] = z_dot_g

    return move_and_normal


move_and_normal_quadratic, move_and_normal_general = _fused(True), _fused(False)


@njit(cache=True, fastmath={"contract"})
def begin_read(
    row, col, z, c, s, g, first, rank, keep, u, v, n_moved, row_offset, col_offset, kind,
    parameter, V, columns, block, y, acc,
):  # fmt: skip
    """Do over the tail what the fused kernel does over the store, except the transposed product.

    The n_moved oldest entries of the tail move. What belongs to columns is put in the order of the
    store on the way: ``columns`` gets v and col_offset, ``block`` the vectors V. Returns <z, g>.
    """
    width, moving = V.shape[1], len(u) > 0
    less = g.dtype.type(parameter if kind == QUADRATIC else 0.0)
    for j in range(len(rank)):
        p = rank[j]
        columns[p, 0] = v[j] if moving else 0
        columns[p, 1] = col_offset[j]
        for q in range(LANES):
            block[p, q] = V[j, q] if q < width else 0.0
    y[:] = 0
    acc[:] = 0
    z_dot_g = 0.0
    for k in range(len(row)):
        i, j = row[k], col[k]
        if k < n_moved:
            z[k] = moved(keep, z[k], u[i] if moving else g.dtype.type(0), columns[j, 0])
        if kind != GIVEN:
            at, ck = z[k] + (row_offset[i] + columns[j, 1]), c[k] - less * first[k]
            g[k] = slope(kind, parameter, at, ck, s[k])
        store(y, i, add_scaled(load(y, i), g[k], load(block, j)))
        z_dot_g += np.float64(z[k]) * np.float64(g[k])
    return z_dot_g


@njit(cache=True)
def end_read(row, col, g, rank, row_scale, y, acc, width):
    """Add the tail's transposed product; return the sum of all parts in the order of columns."""
    first = acc[0]
    for k in range(len(row)):
        i = row[k]
        scaled = g[k] * row_scale[i] if len(row_scale) else g[k]
        store(first, col[k], add_scaled(load(first, col[k]), scaled, load(y, i)))
    w = np.empty((len(rank), width))
    for j in range(len(rank)):
        for q in range(width):
            total = first[rank[j], q]
            for part in range(1, len(acc)):
                total += acc[part, rank[j], q]
            w[j, q] = total
    return w


@njit(cache=True)
def overlap(V, W):
    """Return V' W; where it overflows, without a warning."""
    return np.dot(V.T, W)


@njit(cache=True, nogil=True)
def move_rows(from_block, to_block, blocks, indptr, col, z, keep, u, right):
    """z_k = keep z_k + u_i right_j over a sorted store; an empty u adds nothing."""
    moving = len(u) > 0
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                z[k] = moved(keep, z[k], u[i], right[col[k]]) if moving else keep * z[k]


@njit(cache=True)
def move_tail(row, col, z, keep, u, right, n_moved):
    """Let the n_moved oldest entries of the tail do the same."""
    moving = len(u) > 0
    for k in range(n_moved):
        z[k] = moved(keep, z[k], u[row[k]], right[col[k]]) if moving else keep * z[k]


@njit(cache=True)
def tail_forward(row, col, g, v, y):
    """Y += G V over the tail, for (n, k) blocks."""
    for k in range(len(row)):
        for q in range(v.shape[1]):
            y[row[k], q] += g[k] * v[col[k], q]


@njit(cache=True)
def tail_backward(row, col, g, y, w):
    """W += G' Y over the tail, for (n, k) blocks."""
    for k in range(len(row)):
        for q in range(y.shape[1]):
            w[col[k], q] += g[k] * y[row[k], q]


@njit(cache=True, nogil=True)
def sum_of_squares(from_block, to_block, blocks, x, sums):
    """Sum the squares in double precision, by block."""
    for block in range(from_block, to_block):
        total = 0.0
        for k in range(blocks[block], blocks[block + 1]):
            total += np.float64(x[k]) * np.float64(x[k])
        sums[block] = total
