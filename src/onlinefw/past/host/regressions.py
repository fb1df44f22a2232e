"""Ridge regressions of all rows and columns of a sparse matrix in the memory of this process."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..._threads import balanced_blocks, share
from ..._typing import Array
from ...kernels.ridge import NOTHING_COMMON, normal_rows, ridge_rows
from ...kernels.transpose import column_counts, row_ends, transpose_columns
from ..unobserved import Zeros

__all__ = ["ColumnSlices", "HostRegressions"]

#: At most so many entries are sorted by column at once: 12 bytes each, 200 MB.
SLICE = 2**24

Columns = tuple[Array, Array, Array, Array]


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
    zeros : Zeros, optional
        What all other entries are.
    """

    def __init__(
        self,
        indptr: Array,
        col: Array,
        weight: Array,
        target: Array,
        position: Array,
        zeros: Zeros | None = None,
    ) -> None:
        self._zeros = zeros
        self._by_row = indptr, col, weight, target
        self._position = position
        self._blocks = balanced_blocks(indptr)
        self._by_column = ColumnSlices(self._blocks, *self._by_row, position.size)

    def solve_rows(self, right: Array, ridge: Array) -> Array:
        by_rank = np.empty_like(right)
        by_rank[self._position] = right
        out = np.empty((ridge.size, right.shape[1]), right.dtype)
        zeros, common = self._zeros, NOTHING_COMMON
        if zeros is not None:
            common = zeros.common(right, zeros.columns), zeros.rows.astype(float)
        ridge_rows(self._blocks, *self._by_row, by_rank, ridge, out, common)
        return out

    def solve_columns(self, left: Array, ridge: Array) -> Array:
        left, penalty = np.ascontiguousarray(left), np.empty_like(ridge)
        penalty[self._position] = ridge
        out = np.empty((ridge.size, left.shape[1]), left.dtype)
        common, offset = self._common_of_columns(left)
        for columns, (indptr, row, weight, target) in self._by_column:
            blocks = balanced_blocks(indptr)
            arrays = indptr, row, weight, target, left, penalty[columns], out[columns]
            ridge_rows(blocks, *arrays, (common, offset[columns]))
        return out[self._position]

    def _common_of_columns(self, left: Array) -> tuple[Array, Array]:
        zeros = self._zeros
        if zeros is None:
            return NOTHING_COMMON
        offset = np.empty(self._position.size)
        offset[self._position] = zeros.columns
        return zeros.common(left, zeros.rows), offset

    def column_equations(self, left: Array) -> Array:
        """Return the columns' normal equations, as :func:`~onlinefw.kernels.ridge.normal_rows`."""
        left, rank = np.ascontiguousarray(left), left.shape[1]
        out = np.empty((self._position.size, rank * (rank + 3) // 2))
        for columns, (indptr, row, weight, target) in self._by_column:
            blocks = balanced_blocks(indptr)
            normal_rows(blocks, indptr, row, weight, target, left, out[columns])
        if self._zeros is not None:
            common, offset = self._common_of_columns(left)
            upper = np.triu_indices(rank, 0, rank + 1)
            out += common[upper]
            out[:, upper[1] == rank] += offset[:, None] * common[:, rank + 1]
        return out[self._position]


class ColumnSlices:
    """Entries by column, for loops over all columns.

    Few entries are sorted once and kept. Of many, one slice of columns is sorted at a time, in each
    loop again, so that the matrix is never in memory twice.

    They come as for :func:`~onlinefw.kernels.ridge.ridge_rows`, columns ascending in every row. A
    column with more than ``slice_size`` entries is a slice of its own.
    """

    def __init__(
        self,
        blocks: Array,
        indptr: Array,
        col: Array,
        weight: Array,
        target: Array,
        n_cols: int,
        slice_size: int = SLICE,
    ) -> None:
        self._blocks, self._indptr, self._col = blocks, indptr, col
        self._weight, self._target = weight, target
        if col.size <= slice_size:
            self._cuts = [0, n_cols]
        else:
            self._cuts = _cuts(column_counts(blocks, indptr, col, n_cols), slice_size)
        self._kept: Columns | None = None

    def __iter__(self) -> Iterator[tuple[slice, Columns]]:
        """Yield ranges of columns, each with its indptr, rows, weights and targets."""
        starts, ends = self._indptr[:-1], self._indptr[1:]
        if len(self._cuts) == 2:
            if self._kept is None:
                self._kept = self._transposed(starts, ends, *self._cuts)
            yield slice(*self._cuts), self._kept
            return
        for first, last in pairwise(self._cuts):
            stops = np.empty_like(starts)
            share(row_ends, self._blocks, starts, ends, self._col, last, stops)
            yield slice(first, last), self._transposed(starts, stops, first, last)
            starts = stops

    def _transposed(self, starts: Array, stops: Array, first: int, last: int) -> Columns:
        columns: Columns = transpose_columns(
            self._blocks, starts, stops, self._col, (first, last), self._weight, self._target
        )
        return columns


def _cuts(counts: Array, slice_size: int) -> list[int]:
    """Cut the columns into ranges with at most ``slice_size`` entries, or of one column."""
    total = np.concatenate(([0], np.cumsum(counts)))
    cuts = [0]
    while cuts[-1] < counts.size:
        fitting = int(np.searchsorted(total, total[cuts[-1]] + slice_size, side="right")) - 1
        cuts.append(max(cuts[-1] + 1, fitting))
    return cuts
