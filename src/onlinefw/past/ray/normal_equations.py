"""Ridge regressions of columns: their normal equations are sums over shards."""

from __future__ import annotations

import numpy as np

from ..._typing import Array

__all__ = ["solved"]

#: Equations with so many coefficients in all are solved at a time.
AT_ONCE = 2**22


def solved(parts: list[Array], ridge: Array, rank: int) -> Array:
    """Add up packed normal equations [A | b] of shards, add a ridge, and solve them.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.ray.normal_equations import solved
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
