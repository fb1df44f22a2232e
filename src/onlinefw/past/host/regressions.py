"""Ridge regressions of all rows and columns of a sparse matrix in the memory of this process."""

from __future__ import annotations

import numpy as np

from ..._threads import balanced_blocks
from ..._typing import Array
from ...kernels.ridge import normal_rows, ridge_rows
from .column_slices import ColumnSlices

__all__ = ["HostRegressions"]


class HostRegressions:
    """Every row's regression on the columns' factor, and every column's on the rows' factor.

    Parameters
    ----------
    indptr, col : ndarray
        Compressed rows; columns are numbered by ``position``.
    weight : ndarray
        Of the entries; empty if all are 1.
    target : ndarray
        What is to be predicted, times its weight.
    position : ndarray of int
        The number of each column.
    """

    def __init__(
        self, indptr: Array, col: Array, weight: Array, target: Array, position: Array
    ) -> None:
        self._by_row = indptr, col, weight, target
        self._position = position
        self._blocks = balanced_blocks(indptr)
        self._by_column = ColumnSlices(self._blocks, *self._by_row, position.size)

    def solve_rows(self, right: Array, ridge: Array) -> Array:
        by_rank = np.empty_like(right)
        by_rank[self._position] = right
        out = np.empty((ridge.size, right.shape[1]), right.dtype)
        ridge_rows(self._blocks, *self._by_row, by_rank, ridge, out)
        return out

    def solve_columns(self, left: Array, ridge: Array) -> Array:
        left, penalty = np.ascontiguousarray(left), np.empty_like(ridge)
        penalty[self._position] = ridge
        out = np.empty((ridge.size, left.shape[1]), left.dtype)
        for columns, (indptr, row, weight, target) in self._by_column:
            blocks = balanced_blocks(indptr)
            ridge_rows(blocks, indptr, row, weight, target, left, penalty[columns], out[columns])
        return out[self._position]

    def column_equations(self, left: Array) -> Array:
        """Return the columns' normal equations, as :func:`~onlinefw.kernels.ridge.normal_rows`."""
        left, rank = np.ascontiguousarray(left), left.shape[1]
        out = np.empty((self._position.size, rank * (rank + 3) // 2))
        for columns, (indptr, row, weight, target) in self._by_column:
            blocks = balanced_blocks(indptr)
            normal_rows(blocks, indptr, row, weight, target, left, out[columns])
        return out[self._position]
