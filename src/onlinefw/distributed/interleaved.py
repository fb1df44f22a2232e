"""Rows in turn: of n workers, worker k has the rows i with i % n == k."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..iterates import LowRank

__all__ = ["join_compressed", "join_rows", "rows_of", "split_rows", "split_theta"]


def rows_of(k: int, n: int, m1: int) -> int:
    """Return how many of m1 rows worker k of n has.

    Examples
    --------
    >>> from onlinefw.distributed.interleaved import rows_of
    >>> [rows_of(k, 3, 7) for k in range(3)]
    [3, 2, 2]
    """
    return (m1 - k + n - 1) // n


def split_rows(rows: Array, n: int) -> list[Array]:
    """Return the rows of each worker.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.distributed.interleaved import join_rows, split_rows
    >>> parts = split_rows(np.arange(5), 2)
    >>> parts
    [array([0, 2, 4]), array([1, 3])]
    >>> join_rows(parts)
    array([0, 1, 2, 3, 4])
    """
    return [np.ascontiguousarray(rows[k::n]) for k in range(n)]


def split_theta(theta: LowRank, n: int) -> list[LowRank]:
    """Return the rows of theta of each worker; it may hold as many terms as it happens to."""
    weights, right = theta.weights, np.ascontiguousarray(theta.right)
    return [LowRank.from_factors(left, weights, right) for left in split_rows(theta.left, n)]


def join_rows(parts: list[Array]) -> Array:
    """Return all rows, from those of each worker."""
    rows = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    for k, part in enumerate(parts):
        rows[k :: len(parts)] = part
    return rows


def join_compressed(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return indptr and indices of compressed rows, from those of each worker.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.distributed.interleaved import join_compressed
    >>> even = np.array([0, 2, 3]), np.array([4, 5, 9])
    >>> odd = np.array([0, 1]), np.array([7])
    >>> join_compressed([even, odd])
    (array([0, 2, 3, 4]), array([4, 5, 7, 9]))
    """
    indptr = np.concatenate(([0], np.cumsum(join_rows([np.diff(ptr) for ptr, _ in parts]))))
    indices = np.empty(indptr[-1], parts[0][1].dtype)
    for k, (local, values) in enumerate(parts):
        starts = indptr[:-1][k :: len(parts)]
        shift = np.repeat(starts - local[:-1], np.diff(local))
        indices[np.arange(values.size) + shift] = values
    return indptr, indices
