"""Entries in compressed rows, sorted by columns: all of them, or those of some columns."""

from __future__ import annotations

import numpy as np
from numba import njit

from .._threads import share


@njit(cache=True, nogil=True)
def row_ends(from_block, to_block, blocks, starts, ends, col, last, out):
    """In every row, find the first entry from ``starts`` on whose column is ``last`` or later."""
    for i in range(blocks[from_block], blocks[to_block]):
        low, high = starts[i], ends[i]
        while low < high:
            middle = (low + high) // 2
            if np.int64(col[middle]) < last:
                low = middle + 1
            else:
                high = middle
        out[i] = low


@njit(cache=True, nogil=True)
def _count_columns(from_block, to_block, blocks, starts, ends, col, first, place):
    """Count the entries of every column, by block of rows."""
    one, first = np.uint64(1), np.uint64(first)
    for block in range(from_block, to_block):
        count = place[block]
        for i in range(blocks[block], blocks[block + 1]):
            k, end = np.uint64(starts[i]), np.uint64(ends[i])
            while k < end:
                count[np.uint64(col[k]) - first] += one
                k += one


@njit(cache=True, nogil=True)
def _place_columns(
    from_block, to_block, blocks, starts, ends, col, first, weight, target, place,
    row, t_weight, t_target,
):  # fmt: skip
    """Put every entry into the next place of its column. Every block has places of its own."""
    one, first = np.uint64(1), np.uint64(first)
    for block in range(from_block, to_block):
        following = place[block]
        for i in range(blocks[block], blocks[block + 1]):
            k, end = np.uint64(starts[i]), np.uint64(ends[i])
            while k < end:
                j = np.uint64(col[k]) - first
                at = following[j]
                following[j] = at + one
                row[at] = i
                t_target[at] = target[k]
                if len(weight):
                    t_weight[at] = weight[k]
                k += one


def column_counts(blocks, indptr, col, n_cols):
    """Return how many entries each column has."""
    counts = np.zeros((len(blocks) - 1, n_cols), np.uint64)
    share(_count_columns, blocks, indptr[:-1], indptr[1:], col, 0, counts)
    return counts.sum(axis=0).astype(np.int64)


def transpose(blocks, indptr, col, n_cols, weight, target):
    """Sort all entries of compressed rows by columns: see ``transpose_columns``."""
    return transpose_columns(blocks, indptr[:-1], indptr[1:], col, (0, n_cols), weight, target)


def transpose_columns(blocks, starts, ends, col, columns, weight, target):
    """Sort entries by columns, and by rows within a column.

    Row i has the entries from starts[i] to ends[i], whose columns are in the range ``columns``; an
    empty weight (1 for all) stays empty. Returns where the columns start, and the row, weight and
    target of every entry.
    """
    first, last = columns
    place = np.zeros((len(blocks) - 1, last - first), np.uint64)
    share(_count_columns, blocks, starts, ends, col, first, place)
    indptr = np.zeros(last - first + 1, np.int64)
    np.cumsum(place.sum(axis=0), out=indptr[1:])
    # In every column the first block's entries come first.
    following = np.cumsum(place, axis=0) - place + indptr[:-1].astype(np.uint64)
    n = int(indptr[-1])
    row = np.empty(n, np.uint32)
    t_weight = np.empty(n if weight.size else 0, weight.dtype)
    t_target = np.empty(n, target.dtype)
    share(
        _place_columns, blocks, starts, ends, col, first, weight, target, following,
        row, t_weight, t_target,
    )  # fmt: skip
    return indptr, row, t_weight, t_target
