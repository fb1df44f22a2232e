"""How the answers of shards are joined into one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import Array
from .shards import added

__all__ = ["compressed", "first", "interleaved", "sums", "total"]


def first(answers: list[Any]) -> Any:
    """Return the first answer: all are the same, or only one shard was asked."""
    return answers[0]


def total(answers: list[Any]) -> Any:
    """Return the sum of numbers, or of arrays."""
    return added(*answers) if isinstance(answers[0], np.ndarray) else float(sum(answers))


def sums(answers: list[Any]) -> Any:
    """Return the sums of tuples, part by part; None if the answers are None."""
    if answers[0] is None:
        return None
    return tuple(total(list(part)) for part in zip(*answers, strict=True))


def interleaved(answers: list[Any]) -> Array:
    """Return all rows, of which shard k of n has every n-th from row k on.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.ray.joins import interleaved
    >>> interleaved([np.array([0, 2, 4]), np.array([1, 3])])
    array([0, 1, 2, 3, 4])
    """
    rows = np.empty((sum(map(len, answers)), *answers[0].shape[1:]), answers[0].dtype)
    for k, part in enumerate(answers):
        rows[k :: len(answers)] = part
    return rows


def compressed(answers: list[Any]) -> tuple[Array, Array]:
    """Return indptr and indices of compressed rows, of which shard k of n has every n-th.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.ray.joins import compressed
    >>> even = np.array([0, 2, 3]), np.array([4, 5, 9])
    >>> odd = np.array([0, 1]), np.array([7])
    >>> compressed([even, odd])
    (array([0, 2, 3, 4]), array([4, 5, 7, 9]))
    """
    lengths = interleaved([np.diff(indptr) for indptr, _ in answers])
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    indices = np.empty(indptr[-1], answers[0][1].dtype)
    for k, (local, values) in enumerate(answers):
        starts = indptr[:-1][k :: len(answers)]
        shift = np.repeat(starts - local[:-1], np.diff(local))
        indices[np.arange(values.size) + shift] = values
    return indptr, indices
