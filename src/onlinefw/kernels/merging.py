"""Loops that sort observed entries by row and column, merge sorted ones, and list columns by row.

Stores are described in :mod:`onlinefw.kernels.entries`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .._threads import balanced_blocks, share


def sort_by_row(row, col, indptr, order):
    """Fill ``order`` with the positions of entries by row, then column, then age.

    ``indptr`` has zeros, and gets where the rows start.
    """
    _count_rows(row, indptr)
    share(_order_rows, balanced_blocks(indptr), row, col, indptr, order)


@njit(cache=True)
def _count_rows(row, indptr):
    for k in range(len(row)):
        indptr[row[k] + 1] += 1
    for i in range(len(indptr) - 1):
        indptr[i + 1] += indptr[i]


@njit(cache=True, nogil=True)
def _order_rows(from_block, to_block, blocks, row, col, indptr, order):
    """Order the entries of some rows: all entries are looked at, and theirs put into their places.

    Columns go along, so that rows are sorted in memory that is near. Rows are short as a rule, so
    by insertion.
    """
    low, high = blocks[from_block], blocks[to_block]
    origin, following = indptr[low], indptr[low:high].copy()
    columns = np.empty(indptr[high] - origin, col.dtype)
    for k in range(len(row)):
        i = np.int64(row[k])
        if low <= i < high:
            at = following[i - low]
            following[i - low] = at + 1
            order[at] = k
            columns[at - origin] = col[k]
    for i in range(low, high):
        start, end = indptr[i], indptr[i + 1]
        if end - start > 64:
            by_column = np.argsort(columns[start - origin : end - origin], kind="mergesort")
            order[start:end] = order[start:end].copy()[by_column]
            continue
        for p in range(start + 1, end):
            k, j, q = order[p], columns[p - origin], p
            while q > start and columns[q - 1 - origin] > j:
                order[q], columns[q - origin] = order[q - 1], columns[q - 1 - origin]
                q -= 1
            order[q], columns[q - origin] = k, j


@njit(cache=True, nogil=True)
def take_four(from_block, to_block, blocks, order, old, new):
    """Fill each of four arrays with the items of another, in this order."""
    a, b, c, d = old
    to_a, to_b, to_c, to_d = new
    for k in range(blocks[from_block], blocks[to_block]):
        at = order[k]
        to_a[k], to_b[k], to_c[k], to_d[k] = a[at], b[at], c[at], d[at]


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
    one = np.uint64(1)
    for i in range(blocks[from_block], blocks[to_block]):
        a, a_end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        first = k = np.uint64(new_ptr[i] - origin)
        for b in range(np.uint64(tail_ptr[i]), np.uint64(tail_ptr[i + 1])):
            while a < a_end and col[a] <= t_col[b]:
                n_col[k], n_z[k], n_c[k], n_s[k] = col[a], z[a], c[a], s[a]
                a += one
                k += one
            if combine and k > first and n_col[k - one] == t_col[b]:
                n_c[k - one] += t_c[b]
                n_s[k - one] += t_s[b]
            else:
                n_col[k], n_z[k], n_c[k], n_s[k] = t_col[b], t_z[b], t_c[b], t_s[b]
                k += one
        while a < a_end:
            n_col[k], n_z[k], n_c[k], n_s[k] = col[a], z[a], c[a], s[a]
            a += one
            k += one


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


@njit(cache=True)
def first_of_entries(indptr, col, tail_row, tail_col, keys, order, n_cols, first):
    """Write 1 where a new entry is the first of its kind, 0 where there is one already.

    There may be one in the sorted store, in the tail, or earlier among the new ones. ``keys`` are
    row * n_cols + column of the new ones, ``order`` sorts them, older ones first.
    """
    ordered = keys[order]
    for k in range(len(tail_row)):
        key = np.int64(tail_row[k]) * n_cols + np.int64(tail_col[k])
        at = np.searchsorted(ordered, key)
        if at < len(ordered) and ordered[at] == key:
            first[order[at]] = 0
    for at in range(len(ordered)):
        k = order[at]
        if at > 0 and ordered[at] == ordered[at - 1]:
            first[k] = 0
            continue
        i, j = ordered[at] // n_cols, ordered[at] % n_cols
        low, high = indptr[i], indptr[i + 1]
        while low < high:
            middle = (low + high) // 2
            if np.int64(col[middle]) < j:
                low = middle + 1
            else:
                high = middle
        if low < indptr[i + 1] and np.int64(col[low]) == j:
            first[k] = 0
