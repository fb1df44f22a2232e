"""Ridge regressions of rows and columns that are spread over workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._typing import Array
from .interleaved import join_rows

if TYPE_CHECKING:
    from .entries import ShardedEntries

__all__ = ["SplitRegressions", "solved"]

#: Columns are solved so many numbers of their equations at a time.
AT_ONCE = 2**22


class SplitRegressions:
    """Rows are whole, so workers solve them; of columns they return parts of normal equations."""

    def __init__(self, entries: ShardedEntries) -> None:
        self._entries = entries

    def solve_rows(self, right: Array, ridge: Array) -> Array:
        """Return the rows' factor, with a penalty for each row."""
        entries, right = self._entries, np.ascontiguousarray(right)
        args = [(right, part) for part in entries._split(ridge)]
        return join_rows(entries.shards.ask("solve_rows", args))

    def solve_columns(self, left: Array, ridge: Array) -> Array:
        """Return the columns' factor, with a penalty for each column."""
        entries = self._entries
        args = [(part,) for part in entries._split(left)]
        parts = entries.shards.ask("column_equations", args)
        return solved(parts, ridge, left.shape[1]).astype(left.dtype)


def solved(parts: list[Array], ridge: Array, rank: int) -> Array:
    """Add up packed normal equations [A | b], and a ridge, and solve them.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.distributed.entries_regressions import solved
    >>> solved([np.array([[1.0, 8.0]]), np.array([[4.0, 8.0]])], np.array([3.0]), 1)
    array([[2.]])
    """
    row, column = np.triu_indices(rank, 0, rank + 1)
    out = np.empty((ridge.size, rank))
    size = max(1, AT_ONCE // (rank * (rank + 1)))
    for start in range(0, ridge.size, size):
        some = slice(start, start + size)
        total = parts[0][some] + sum(part[some] for part in parts[1:])
        equations = np.zeros((len(total), rank, rank + 1))
        equations[:, row, column] = total
        matrix, target = equations[:, :, :rank], equations[:, :, rank]
        matrix = matrix + np.triu(matrix, 1).transpose(0, 2, 1)
        matrix[:, np.arange(rank), np.arange(rank)] += ridge[some, None]
        out[some] = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    return out
