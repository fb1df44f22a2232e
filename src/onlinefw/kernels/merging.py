"""Loops that sort observed entries by row and column, merge sorted ones, and list columns by row.

Stores are described in :mod:`onlinefw.kernels.entries`.
"""

from __future__ import annotations

import numpy as np
from numba import njit


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


@njit(cache=True, nogil=True)
def merged_lengths(from_block, to_block, blocks, indptr, col, tail_ptr, tail_col, combine, lengths):
    """Lengths of the rows after the (sorted) tail has been merged into the bulk."""
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
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


@njit(cache=True, nogil=True)
def merge_rows(from_block, to_block, blocks, indptr, tail_ptr, combine, new_ptr, old, tail, new):
    """Fill ``new`` with the merged rows. It, ``old`` and ``tail`` are (col, z, c, s) tuples."""
    col, z, c, s = old
    t_col, t_z, t_c, t_s = tail
    n_col, n_z, n_c, n_s = new
    origin = new_ptr[blocks[0]]
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
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


@njit(cache=True, nogil=True)
def copy_four(from_block, to_block, blocks, new, old, start):
    """Copy each of four arrays into another, from ``start`` on."""
    a, b, c, d = new
    to_a, to_b, to_c, to_d = old
    for block in range(from_block, to_block):
        low, high = blocks[block], blocks[block + 1]
        to_a[start + low : start + high] = a[low:high]
        to_b[start + low : start + high] = b[low:high]
        to_c[start + low : start + high] = c[low:high]
        to_d[start + low : start + high] = d[low:high]


@njit(cache=True)
def renumber(numbers, col):
    """Give every column another number."""
    for k in range(len(col)):
        col[k] = numbers[col[k]]


@njit(cache=True, nogil=True)
def sort_rows(from_block, to_block, blocks, indptr, col, z, c, s, g):
    """Sort every row by column; entries of one column stay in order."""
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
            start, end = indptr[i], indptr[i + 1]
            order = np.argsort(col[start:end], kind="mergesort")
            col[start:end] = col[start:end][order]
            z[start:end] = z[start:end][order]
            c[start:end] = c[start:end][order]
            s[start:end] = s[start:end][order]
            g[start:end] = g[start:end][order]


@njit(cache=True, nogil=True)
def count_seen(from_block, to_block, blocks, indptr, col, tail_ptr, tail_col, lengths):
    """Count the distinct columns of every row in two sorted lists together."""
    for i in range(blocks[from_block], blocks[to_block]):
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


@njit(cache=True, nogil=True)
def fill_seen(from_block, to_block, blocks, indptr, col, tail_ptr, tail_col, columns, new_ptr, out):
    """Fill ``out`` with the original numbers (``columns``) of these columns, increasing."""
    for i in range(blocks[from_block], blocks[to_block]):
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
