"""Loops over the observed entries of a matrix.

A store in compressed rows, and a short unsorted tail of the newest entries.

Per entry: its column, the carried prediction z, the total weight c and target s of what was
observed there, and the unscaled slope g of the loss. ``acc`` has one row per thread, so that
results do not depend on timing.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit, prange

from .lanes import add_scaled, load, store, zero

#: Which derivative a kernel uses: sums c G'(z) - s, or weights c times phi'(z, s).
QUADRATIC, BERNOULLI, POISSON, EXPONENTIAL, LOGISTIC, SIGMOID, CORRENTROPY = range(7)


@njit(inline="always")
def _expit(z):
    e = exp(-abs(z))  # no branch: half of the guesses which one is taken would be wrong
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
def _row_dot(col, g, v, start, end):
    """Return the sum of g_k v[col_k], in four independent chains."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    even = end - ((end - start) & three)
    s0 = s1 = s2 = s3 = g.dtype.type(0)
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


@njit(cache=True, parallel=True)
def normal(blocks, indptr, col, g, row_scale, v, y, acc, distinct):
    """Y += G v, then acc += G' (row_scale y) by thread: one read of the store for both products."""
    for thread in prange(len(blocks) - 1):
        a = acc[thread]
        for i in range(blocks[thread], blocks[thread + 1]):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            total = y[i] + _row_dot(col, g, v, start, end)
            y[i] = total
            _scatter(a, col, g, total * row_scale[i], start, end, distinct)


@njit(cache=True, parallel=True)
def weighted_sums(blocks, indptr, col, c, z, share, rows, columns, row_sums, acc):
    """Sum c_k (columns[col_k] + share z_k) in every row, c_k (rows_i + share z_k) in every column.

    The latter by thread.
    """
    for thread in prange(len(blocks) - 1):
        a = acc[thread]
        for i in range(blocks[thread], blocks[thread + 1]):
            total = 0.0
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                zk = share * z[k]
                total += c[k] * (columns[col[k]] + zk)
                a[col[k]] += c[k] * (rows[i] + zk)
            row_sums[i] += total


@njit(cache=True, parallel=True)
def targets(blocks, indptr, col, c, s, row_offset, col_offset, out):
    """out_k = s_k - c_k times the entry's offset: what is left for theta to explain."""
    for thread in prange(len(blocks) - 1):
        for i in range(blocks[thread], blocks[thread + 1]):
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[k] = s[k] - c[k] * (row_offset[i] + col_offset[col[k]])


def _fused(quadratic):
    """Compile the fused kernel for parabolas, or for all other losses.

    Testing the loss for every entry is slow. So is a loop in a function of its own, even an
    inlined one: references to its arrays are counted for every row.
    """

    @njit(cache=True, parallel=True, fastmath={"contract"})
    def move_and_normal(
        blocks, indptr, col, z, c, s, g, keep, u, row_offset, columns, kind, parameter,
        row_scale, v, y, acc, sums,
    ):  # fmt: skip
        """Move every prediction along an atom, renew the slopes, and multiply 8 vectors.

        z <- keep z + u_i columns[j, 0], g <- slope at z + row_offset_i + columns[j, 1],
        y += G V, acc += G' (row_scale y) and sums = <z, g> by thread. One read of everything.
        """
        one, move, offset = np.uint64(1), np.uint64(0), np.uint64(1)
        for thread in prange(len(blocks) - 1):
            a = acc[thread]
            z_dot_g = 0.0  # rows are summed in the store's own precision, this in double precision
            for i in range(blocks[thread], blocks[thread + 1]):
                start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
                u_i, offset_i, total = u[i], row_offset[i], load(y, i)
                zg = g.dtype.type(0)
                k = start
                while k < end:
                    j = col[k]
                    zk = keep * z[k] + u_i * columns[j, move]
                    at = zk + (offset_i + columns[j, offset])
                    if quadratic:
                        gk = c[k] * at - s[k]
                    else:
                        gk = g.dtype.type(slope(kind, parameter, at, c[k], s[k]))
                    z[k] = zk
                    g[k] = gk
                    total = add_scaled(total, gk, load(v, j))
                    zg += zk * gk
                    k += one
                z_dot_g += zg
                store(y, i, total)
                total = add_scaled(zero(u_i), row_scale[i], total)
                k = start
                while k < end:
                    store(a, col[k], add_scaled(load(a, col[k]), g[k], total))
                    k += one
            sums[thread] = z_dot_g

    return move_and_normal


move_and_normal_quadratic = _fused(True)
move_and_normal_general = _fused(False)


@njit(cache=True)
def tail_move(row, col, z, keep, u, right):
    """Move the tail's predictions."""
    for k in range(len(row)):
        z[k] = keep * z[k] + u[row[k]] * right[col[k]]


@njit(cache=True)
def tail_slopes(row, col, z, c, s, g, row_offset, col_offset, kind, parameter):
    """Renew the tail's slopes."""
    for k in range(len(row)):
        at = z[k] + (row_offset[row[k]] + col_offset[col[k]])
        g[k] = slope(kind, parameter, at, c[k], s[k])


@njit(cache=True)
def tail_forward(row, col, g, v, y):
    """Y += G V over the tail, for (n, k) blocks."""
    for k in range(len(row)):
        for q in range(v.shape[1]):
            y[row[k], q] += g[k] * v[col[k], q]


@njit(cache=True)
def tail_backward(row, col, g, row_scale, y, w):
    """W += G' (row_scale Y) over the tail, for (n, k) blocks."""
    for k in range(len(row)):
        scaled = g[k] * row_scale[row[k]]
        for q in range(y.shape[1]):
            w[col[k], q] += scaled * y[row[k], q]


@njit(cache=True)
def tail_forward_block(row, col, g, v, y):
    """Y += G V over the tail, for blocks of 8 vectors."""
    for k in range(len(row)):
        store(y, row[k], add_scaled(load(y, row[k]), g[k], load(v, col[k])))


@njit(cache=True)
def tail_backward_block(row, col, g, row_scale, y, w):
    """W += G' (row_scale Y) over the tail, for blocks of 8 vectors."""
    for k in range(len(row)):
        scaled = g[k] * row_scale[row[k]]
        store(w, col[k], add_scaled(load(w, col[k]), scaled, load(y, row[k])))


@njit(cache=True)
def sort_by_row(row, col, indptr, order):
    """Fill ``order`` with the positions of entries by row, then column, then age.

    ``indptr`` has zeros, and gets where the rows start. Rows are found by counting; within a row,
    which is short as a rule, by insertion.
    """
    for k in range(len(row)):
        indptr[row[k] + 1] += 1
    for i in range(len(indptr) - 1):
        indptr[i + 1] += indptr[i]
    following = indptr[:-1].copy()
    for k in range(len(row)):
        order[following[row[k]]] = k
        following[row[k]] += 1
    for i in range(len(indptr) - 1):
        start, end = indptr[i], indptr[i + 1]
        if end - start > 64:
            part = order[start:end].copy()
            order[start:end] = part[np.argsort(col[part], kind="mergesort")]
            continue
        for p in range(start + 1, end):
            k = order[p]
            q = p
            while q > start and col[order[q - 1]] > col[k]:
                order[q] = order[q - 1]
                q -= 1
            order[q] = k


@njit(cache=True, parallel=True)
def merged_lengths(blocks, indptr, col, tail_ptr, tail_col, combine, lengths):
    """Lengths of the rows after the (sorted) tail has been merged into the bulk."""
    for thread in prange(len(blocks) - 1):
        for i in range(blocks[thread], blocks[thread + 1]):
            a, a_end = indptr[i], indptr[i + 1]
            b, b_end = tail_ptr[i], tail_ptr[i + 1]
            n = (a_end - a) + (b_end - b)
            if combine:
                last = np.int64(-1)
                while b < b_end:
                    j = np.int64(tail_col[b])
                    while a < a_end and np.int64(col[a]) < j:
                        a += 1
                    if j == last or (a < a_end and np.int64(col[a]) == j):
                        n -= 1
                    last = j
                    b += 1
            lengths[i] = n


@njit(cache=True, parallel=True)
def merge_rows(blocks, indptr, tail_ptr, combine, new_ptr, old, tail, new):
    """Fill ``new`` with the merged rows. It, ``old`` and ``tail`` are (col, z, c, s) tuples."""
    col, z, c, s = old
    t_col, t_z, t_c, t_s = tail
    n_col, n_z, n_c, n_s = new
    origin = new_ptr[blocks[0]]
    for thread in prange(len(blocks) - 1):
        for i in range(blocks[thread], blocks[thread + 1]):
            a, a_end = indptr[i], indptr[i + 1]
            b, b_end = tail_ptr[i], tail_ptr[i + 1]
            k = new_ptr[i] - origin
            first = k
            while a < a_end or b < b_end:
                from_bulk = b >= b_end or (a < a_end and col[a] <= t_col[b])
                if from_bulk:
                    n_col[k], n_z[k], n_c[k], n_s[k] = col[a], z[a], c[a], s[a]
                    a += 1
                    k += 1
                elif combine and k > first and n_col[k - 1] == t_col[b]:
                    n_c[k - 1] += t_c[b]
                    n_s[k - 1] += t_s[b]
                    b += 1
                else:
                    n_col[k], n_z[k], n_c[k], n_s[k] = t_col[b], t_z[b], t_c[b], t_s[b]
                    b += 1
                    k += 1


@njit(cache=True, parallel=True)
def copy_four(new, old, start):
    """Copy each of four arrays into another, from ``start`` on."""
    a, b, c, d = new
    to_a, to_b, to_c, to_d = old
    parts, n = 16, len(a)
    for part in prange(parts):
        low, high = part * n // parts, (part + 1) * n // parts
        to_a[start + low : start + high] = a[low:high]
        to_b[start + low : start + high] = b[low:high]
        to_c[start + low : start + high] = c[low:high]
        to_d[start + low : start + high] = d[low:high]


@njit(cache=True, parallel=True)
def sort_rows(blocks, indptr, col, z, c, s, g):
    """Sort every row by column; entries of one column stay in order."""
    for thread in prange(len(blocks) - 1):
        for i in range(blocks[thread], blocks[thread + 1]):
            start, end = indptr[i], indptr[i + 1]
            order = np.argsort(col[start:end], kind="mergesort")
            col[start:end] = col[start:end][order]
            z[start:end] = z[start:end][order]
            c[start:end] = c[start:end][order]
            s[start:end] = s[start:end][order]
            g[start:end] = g[start:end][order]


@njit(cache=True, parallel=True)
def count_seen(indptr, col, tail_ptr, tail_col, lengths):
    """Count the distinct columns of every row in two sorted lists together."""
    for i in prange(len(lengths)):
        b, b_end = tail_ptr[i], tail_ptr[i + 1]
        n, last = b_end - b, np.int64(-1)
        for a in range(indptr[i], indptr[i + 1]):
            j = np.int64(col[a])
            while b < b_end and tail_col[b] < j:
                b += 1
            if j != last and not (b < b_end and tail_col[b] == j):
                n += 1
            last = j
        lengths[i] = n


@njit(cache=True, parallel=True)
def fill_seen(indptr, col, tail_ptr, tail_col, columns, new_ptr, out):
    """Fill ``out`` with these columns, by their names, increasing."""
    for i in prange(len(new_ptr) - 1):
        b, b_end = tail_ptr[i], tail_ptr[i + 1]
        start, end = new_ptr[i], new_ptr[i + 1]
        k, last = start, np.int64(-1)
        for q in range(b, b_end):
            out[k] = columns[tail_col[q]]
            k += 1
        for a in range(indptr[i], indptr[i + 1]):
            j = np.int64(col[a])
            while b < b_end and tail_col[b] < j:
                b += 1
            if j != last and not (b < b_end and tail_col[b] == j):
                out[k] = columns[j]
                k += 1
            last = j
        out[start:end].sort()


@njit(cache=True, parallel=True)
def sum_of_squares(x):
    """Return the sum in double precision, part by part."""
    sums, n = np.zeros(64), len(x)
    for part in prange(64):
        total = 0.0
        for k in range(part * n // 64, (part + 1) * n // 64):
            total += np.float64(x[k]) * np.float64(x[k])
        sums[part] = total
    return sums.sum()


@njit(cache=True, parallel=True)
def set_column(factor, k, values):
    """factor[:, k] = values: every number has a cache line of its own, so two threads help."""
    parts = 16
    n = len(values)
    for part in prange(parts):
        for i in range(part * n // parts, (part + 1) * n // parts):
            factor[i, k] = values[i]


@njit(cache=True, parallel=True)
def factor_entries(left, right, weights, rows, cols, out):
    """out_i = sum over k of left[rows_i, k] weights_k right[cols_i, k]."""
    n = len(rows)
    threads = 16
    for part in prange(threads):
        for i in range(part * n // threads, (part + 1) * n // threads):
            r, q = rows[i], cols[i]
            total = 0.0
            for k in range(len(weights)):
                total += left[r, k] * weights[k] * right[q, k]
            out[i] = total
