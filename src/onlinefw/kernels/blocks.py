"""Loops over the observed entries with several vectors at once.

Factors and blocks of vectors hold what belongs to one row (or column) side by side, so that the
innermost loop runs over neighbours in memory.
"""

from __future__ import annotations

from numba import njit


# Unlike a sparse product, a short dense one gains from leaving the order of additions open.
@njit(cache=True, fastmath={"reassoc", "contract"})
def _dot(a, b):
    total = a.dtype.type(0)
    for r in range(len(a)):
        total += a[r] * b[r]
    return total


@njit(cache=True, nogil=True)
def factor_rows(from_block, to_block, blocks, indptr, col, left, right, z):
    """z_k = <left_i, right_j> over a sorted store."""
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(indptr[i], indptr[i + 1]):
                z[k] = _dot(left[i], right[col[k]])


@njit(cache=True)
def tail_factor(row, col, left, right, z):
    """z_k = <left_i, right_j> over the tail."""
    for k in range(len(row)):
        z[k] = _dot(left[row[k]], right[col[k]])


@njit(cache=True, nogil=True)
def forward(from_block, to_block, blocks, indptr, col, g, v, y):
    """y += G v over a sorted store, for blocks of vectors."""
    for block in range(from_block, to_block):
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(indptr[i], indptr[i + 1]):
                gk, j = g[k], col[k]
                for r in range(v.shape[1]):
                    y[i, r] += gk * v[j, r]


@njit(cache=True, nogil=True)
def backward(from_block, to_block, blocks, indptr, col, g, y, acc):
    """Add G' Y to acc, which has a part per block, over a sorted store."""
    for block in range(from_block, to_block):
        a = acc[block]
        for i in range(blocks[block], blocks[block + 1]):
            for k in range(indptr[i], indptr[i + 1]):
                gk, j = g[k], col[k]
                for r in range(y.shape[1]):
                    a[j, r] += gk * y[i, r]


@njit(cache=True, nogil=True)
def heaviest(from_block, to_block, blocks, indptr, col, c, largest):
    """Find the largest total weight of an entry, by block; repeats are next to each other."""
    for block in range(from_block, to_block):
        best = 0.0
        for i in range(blocks[block], blocks[block + 1]):
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                if k == indptr[i] or col[k] != col[k - 1]:
                    total = 0.0
                total += c[k]
                best = max(best, total)
        largest[block] = best
