"""The n largest of many scores: one pass, with a short heap that most scores do not enter."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["best_in_rows", "best_of_products"]


@njit(cache=True, nogil=True)
def _sift_down(items, scores, n):
    """Let the first of a heap sink: the worst is on top, of equal scores the latest item."""
    item, score = items[0], scores[0]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        other = child + 1
        if other < n and (
            scores[other] < scores[child]
            or (scores[other] == scores[child] and items[other] > items[child])
        ):
            child = other
        if scores[child] < score or (scores[child] == score and items[child] > item):
            items[k], scores[k] = items[child], scores[child]
            k = child
        else:
            break
    items[k], scores[k] = item, score


@njit(cache=True, nogil=True)
def _begin(items, scores):
    for k in range(items.size):
        items[k], scores[k] = -1, -np.inf


@njit(cache=True, nogil=True)
def _take_out(items, scores):
    """Sort a heap, the best first."""
    n = items.size
    for end in range(n - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        scores[0], scores[end] = scores[end], scores[0]
        _sift_down(items, scores, end)


@njit(cache=True, nogil=True)
def best_in_rows(from_block, to_block, blocks, table, items, scores):
    """Write the best columns of each row of a table of scores, and these, the best first.

    ``items`` and ``scores`` have a row of n for each of the table; what is -inf there is left out,
    and where fewer are left ``items`` is -1. Of equal scores the first columns are the best.
    """
    for r in range(blocks[from_block], blocks[to_block]):
        _begin(items[r], scores[r])
        for j in range(table.shape[1]):
            if table[r, j] > scores[r, 0]:
                items[r, 0], scores[r, 0] = j, table[r, j]
                _sift_down(items[r], scores[r], items.shape[1])
        _take_out(items[r], scores[r])


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _product(factors, j, vector):
    total = factors.dtype.type(0)
    for p in range(vector.size):
        total += factors[j, p] * vector[p]
    return total


@njit(cache=True, nogil=True)
def best_of_products(from_block, to_block, blocks, factors, offsets, vector, items, scores):
    """Write the best rows j of <factors_j, vector> + offsets_j, those of each block apart.

    An offset of -inf leaves j out.
    """
    for b in range(from_block, to_block):
        _begin(items[b], scores[b])
        for j in range(blocks[b], blocks[b + 1]):
            if offsets[j] == -np.inf:
                continue
            score = _product(factors, j, vector) + offsets[j]
            if score > scores[b, 0]:
                items[b, 0], scores[b, 0] = j, score
                _sift_down(items[b], scores[b], items.shape[1])
        _take_out(items[b], scores[b])
