"""Loops over sparse rows that are kept by columns, with a short tail of the newest ones by rows.

Loop counters are unsigned: a signed index would be tested for being negative every time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .entries import row_dot

_ONE = np.uint64(1)
#: Squares of so many rows and columns stay in the cache.
BLOCK = 32


@njit(cache=True, nogil=True)
def column_dots(from_block, to_block, blocks, indptr, indices, data, r, out):
    """out_j = <column j, r>, for columns that are not empty."""
    for block in range(from_block, to_block):
        start = np.uint64(indptr[blocks[block]])
        for j in range(blocks[block], blocks[block + 1]):
            end = np.uint64(indptr[j + 1])
            if start < end:  # most columns of wide data are empty
                out[j] = row_dot(indices, data, r, start, end, 0.0)
            start = end


@njit(cache=True, nogil=True)
def column_dots_of_several(from_block, to_block, blocks, indptr, indices, data, R, out):
    """out_j = R' (column j): several vectors share one read."""
    for block in range(from_block, to_block):
        for j in range(blocks[block], blocks[block + 1]):
            for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                i, value = indices[k], data[k]
                for c in range(R.shape[1]):
                    out[j, c] += value * R[i, c]


@njit(cache=True)
def scatter_rows(indptr, indices, data, R, out):
    """Add X' R to out for rows kept by rows."""
    for i in range(len(indptr) - 1):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            for c in range(R.shape[1]):
                out[indices[k], c] += data[k] * R[i, c]


@njit(cache=True)
def append_rows(indptr, indices, data, tail_indptr, tail_indices, tail_data, n_rows):
    """Return the columns with the tail's rows (numbered from ``n_rows`` on) at their ends."""
    n = len(indptr) - 1
    grown = np.zeros(n + 1, np.int64)
    for k in range(len(tail_indices)):
        grown[tail_indices[k] + 1] += 1
    for j in range(n):
        grown[j + 1] += grown[j] + indptr[j + 1] - indptr[j]
    new_indices = np.empty(grown[n], indices.dtype)
    new_data = np.empty(grown[n], data.dtype)
    place = np.empty(n, np.int64)
    for j in range(n):
        start, length = indptr[j], indptr[j + 1] - indptr[j]
        new_indices[grown[j] : grown[j] + length] = indices[start : start + length]
        new_data[grown[j] : grown[j] + length] = data[start : start + length]
        place[j] = grown[j] + length
    for i in range(len(tail_indptr) - 1):
        for k in range(tail_indptr[i], tail_indptr[i + 1]):
            j = tail_indices[k]
            new_indices[place[j]] = n_rows + i
            new_data[place[j]] = tail_data[k]
            place[j] += 1
    return grown, new_indices, new_data


@njit(cache=True)
def some_columns(chosen, indptr, indices, data, n_rows):
    """Return the chosen columns by rows: pointers, positions in ``chosen``, values."""
    starts = np.zeros(n_rows + 1, np.int64)
    for c in chosen:
        for k in range(indptr[c], indptr[c + 1]):
            starts[indices[k] + 1] += 1
    for i in range(n_rows):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    positions = np.empty(starts[n_rows], np.uint32)
    values = np.empty(starts[n_rows], data.dtype)
    for p in range(len(chosen)):
        for k in range(indptr[chosen[p]], indptr[chosen[p] + 1]):
            i = indices[k]
            positions[place[i]] = p
            values[place[i]] = data[k]
            place[i] += 1
    return starts, positions, values


@njit(cache=True, nogil=True)
def add_gram(from_block, to_block, blocks, starts, positions, values, weights, grams, crosses):
    """gram += X' diag(weights) X (lower triangle) and cross += X' weights, by block of rows.

    ``positions`` increase within each row.
    """
    for block in range(from_block, to_block):
        gram, cross = grams[block], crosses[block]
        for i in range(blocks[block], blocks[block + 1]):
            if weights[i] == 0.0:
                continue
            for k in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
                scaled = weights[i] * values[k]
                row = gram[positions[k]]
                cross[positions[k]] += scaled
                for l in range(np.uint64(starts[i]), k + _ONE):
                    row[positions[l]] += scaled * values[l]


@njit(cache=True)
def mirror(gram):
    """Copy the lower triangle to the upper one, in blocks, as one of the two is read by columns."""
    n = len(gram)
    for a in range(0, n, BLOCK):
        for b in range(0, a + BLOCK, BLOCK):
            for j in range(a, min(a + BLOCK, n)):
                for i in range(b, min(b + BLOCK, j)):
                    gram[i, j] = gram[j, i]


@njit(cache=True)
def add_columns(chosen, values, indptr, indices, data, out):
    """out += the sum of values_k times column chosen_k."""
    for p in range(len(chosen)):
        for k in range(np.uint64(indptr[chosen[p]]), np.uint64(indptr[chosen[p] + 1])):
            out[indices[k]] += values[p] * data[k]
