"""How arguments are split over the shards.

Rows of a matrix are spread in turn: of n shards, shard k has the rows i with i % n == k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import Array
from ...iterates import LowRank

__all__ = ["each_one", "everybody", "only", "row_count", "rows", "same", "theta_rows"]


def same(past: Any, value: Any) -> list[Any]:
    """Give all shards the same."""
    return [value] * past.n


def rows(past: Any, values: Array | None) -> list[Any]:
    """Give each shard its rows; None stays None.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from onlinefw.past.ray.splits import rows
    >>> rows(SimpleNamespace(n=2), np.arange(5))
    [array([0, 2, 4]), array([1, 3])]
    """
    if values is None:
        return [None] * past.n
    return [np.ascontiguousarray(values[k :: past.n]) for k in range(past.n)]


def theta_rows(past: Any, theta: LowRank) -> list[Any]:
    """Give each shard its rows of theta, with all terms of theta."""
    weights, right = theta.weights, np.ascontiguousarray(theta.right)
    return [LowRank.from_factors(left, weights, right) for left in rows(past, theta.left)]


def row_count(k: int, n: int, m1: int) -> int:
    """Return how many of m1 rows shard k of n has.

    Examples
    --------
    >>> from onlinefw.past.ray.splits import row_count
    >>> [row_count(k, 3, 7) for k in range(3)]
    [3, 2, 2]
    """
    return (m1 - k + n - 1) // n


def each_one(past: Any, parts: list[Any]) -> list[Any]:
    """Give each shard one part, as its only argument."""
    return [(part,) for part in parts]


def everybody(past: Any, *args: Any) -> list[Any]:
    """Give all shards the same arguments, however many."""
    return [args] * past.n


def only(past: Any, k: int, *args: Any) -> list[Any]:
    """Give shard k the arguments, the others nothing."""
    return [args if j == k else None for j in range(past.n)]
