"""The best items for one user or for many, exactly: products in blocks, and short heaps."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._threads import blas_threads_for, blocks_for, n_threads
from .._typing import Array
from ..native import BLOCKS, Pointer, in_threads, struct

__all__ = ["best_items", "best_items_of_one"]

#: So many scores are computed at a time: they stay in the cache until the best are found.
SCORES = 2**18

BestOfProducts = struct(
    "BestOfProducts",
    **BLOCKS,
    rank=int,
    n=int,
    factors=Pointer("real", read=True),
    offsets=Pointer("real", read=True),
    vector=Pointer("real", read=True),
    items=Pointer(np.int64),
    scores=Pointer("real"),
)
BestInRows = struct(
    "BestInRows",
    **BLOCKS,
    columns=int,
    n=int,
    table=Pointer("real", read=True),
    items=Pointer(np.int64),
    scores=Pointer("real"),
)


def best_items_of_one(vector: Array, factors: Array, offsets: Array, n: int) -> tuple[Array, Array]:
    """Return the items j with the n largest <factors_j, vector> + offsets_j, and these scores.

    The best comes first; of equal scores, the first item. An offset of -inf leaves an item out, so
    there may be fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.estimators.best_items import best_items_of_one
    >>> best_items_of_one(np.ones(2), np.eye(3, 2), np.array([0.0, 0.5, 9.0]), 2)
    (array([2, 1]), array([9. , 1.5]))
    """
    m, n = len(factors), min(n, len(factors))
    blocks = blocks_for(m, m * vector.size, None)
    items, scores = _room(len(blocks) - 1, n, factors.dtype)
    dtype = factors.dtype
    call = BestOfProducts(
        dtype, blocks=blocks, rank=vector.size, n=n, factors=np.ascontiguousarray(factors),
        offsets=np.ascontiguousarray(offsets, dtype), vector=np.ascontiguousarray(vector, dtype),
        items=items, scores=scores,
    )  # fmt: skip
    in_threads("best_of_products", call)
    if len(items) == 1:
        best, values = items[0], scores[0]
    else:
        found, values = items.reshape(-1), scores.reshape(-1)
        order = np.lexsort((found, -values))[:n]
        best, values = found[order], values[order]
    there = values > -np.inf
    return best[there], values[there]


def best_items(
    vectors: Array, factors: Array, offsets: Array, n: int, taken: tuple[Array, Array] | None = None
) -> tuple[Array, Array]:
    """Return the n best items for each of many vectors: two arrays of n columns.

    Where fewer are left, items are -1 and scores -inf.

    Parameters
    ----------
    vectors, factors : ndarray
        One row for each user, and one for each item.
    offsets : ndarray
        What is added for each item; -inf leaves it out for all.
    n : int
        How many.
    taken : (ndarray, ndarray), optional
        Items that are left out for each user, compressed: ``indptr`` and the items.
    """
    items, scores = _room(len(vectors), n, factors.dtype)
    offsets = offsets.astype(factors.dtype, copy=False)
    size = max(1, min(len(vectors), SCORES * n_threads() // max(1, len(factors))))
    right = np.ascontiguousarray(factors.T)
    for start in range(0, len(vectors), size):
        part = slice(start, start + size)
        some = np.asarray(vectors[part], factors.dtype)
        with blas_threads_for(some.size * len(factors)):
            table = some @ right
        table += offsets
        if taken is not None:
            _leave_out(table, start, *taken)
        call = BestInRows(
            table.dtype, blocks=blocks_for(len(some), table.size, None), columns=len(factors), n=n,
            table=table, items=items[part], scores=scores[part],
        )  # fmt: skip
        in_threads("best_in_rows", call)
    return items, scores


def _leave_out(table: Array, start: int, indptr: Array, items: Any) -> None:
    ends = indptr[start : start + len(table) + 1]
    rows = np.repeat(np.arange(len(table)), np.diff(ends))
    table[rows, items[ends[0] : ends[-1]]] = -np.inf


def _room(rows: int, n: int, dtype: Any) -> tuple[Array, Array]:
    return np.empty((rows, n), np.int64), np.empty((rows, n), dtype)
