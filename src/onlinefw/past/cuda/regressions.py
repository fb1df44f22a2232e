"""Ridge regressions of all rows and columns of a sparse matrix on a GPU."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy import sparse

from ..._typing import Array
from ..unobserved import Zeros
from .entry_store import CudaSortedStore

__all__ = ["CudaRegressions"]

#: At most so many bytes of normal equations are computed and solved at once.
AT_ONCE = 2**30

Common = tuple[Array, Array]


class CudaRegressions:
    """Every row's regression on the columns' factor, and every column's on the rows' factor.

    The normal matrices of all rows are one sparse product, of the weights with the outer products
    of the other side's rows; batched solves follow.
    """

    def __init__(
        self, store: CudaSortedStore, row_offset: Array, col_offset: Array, zeros: Zeros | None
    ) -> None:
        self._zeros = zeros
        weight = store.c if zeros is None else store.c - store.c.dtype.type(zeros.weight)
        target = store.s - weight * (row_offset[store.row] + col_offset[store.col])
        self._by_row = _Sided(store.indptr, store.col, weight, target, store.shape)
        order, (m1, m2) = store.by_column, store.shape
        by_column = store.column_ptr, store.row_by_column, weight[order], target[order]
        self._by_column = _Sided(*by_column, (m2, m1))

    def solve_rows(self, right: Array, ridge: Array) -> Array:
        right = cp.ascontiguousarray(cp.asarray(right))
        return self._by_row.solve(right, ridge, self._common(right, of_rows=True))

    def solve_columns(self, left: Array, ridge: Array) -> Array:
        left = cp.ascontiguousarray(cp.asarray(left))
        return self._by_column.solve(left, ridge, self._common(left, of_rows=False))

    def column_equations(self, left: Array) -> Array:
        left = cp.asarray(left, dtype=float)
        return self._by_column.equations(left, self._common(left, of_rows=False))

    def _common(self, features: Array, of_rows: bool) -> Common | None:
        """Return what zeros add to all regressions, and the offset that each has of its own."""
        zeros = self._zeros
        if zeros is None:
            return None
        own, their = (zeros.rows, zeros.columns) if of_rows else (zeros.columns, zeros.rows)
        return zeros.common(features, their), own.astype(float)


class _Sided:
    """The regressions of all rows, or of all columns."""

    def __init__(
        self, indptr: Array, index: Array, weight: Array, target: Array, shape: tuple[int, int]
    ) -> None:
        where = (index.astype(cp.int32), indptr.astype(cp.int32))
        self._weight, self._target = (
            sparse.csr_matrix((values, *where), shape=shape) for values in (weight, target)
        )

    def solve(self, other: Array, ridge: Array, common: Common | None) -> Any:
        n, k = self._weight.shape[0], other.shape[1]
        upper = np.triu_indices(k)
        outer = other[:, upper[0]] * other[:, upper[1]]
        position = np.zeros((k, k), int)  # of the pair (a, b) among the upper ones
        position[upper] = position.T[upper] = np.arange(upper[0].size)
        position = cp.asarray(position.reshape(-1))
        diagonal = cp.eye(k, dtype=other.dtype)
        right_side = self._target @ other
        everywhere = cp.zeros((k, k), other.dtype)
        if common is not None:
            (sums, offset), dtype = common, other.dtype
            everywhere = sums[:, :k].astype(dtype)
            right_side += (sums[:, k] + offset[:, None] * sums[:, k + 1]).astype(dtype)
        penalty = cp.asarray(ridge, dtype=other.dtype)
        out = cp.empty((n, k), other.dtype)
        step = max(1, AT_ONCE // (2 * k * k * other.dtype.itemsize))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            weight = self._weight if step >= n else self._weight[rows]
            normal = (weight @ outer).take(position, axis=1).reshape(-1, k, k)
            normal += everywhere + penalty[rows, None, None] * diagonal
            out[rows] = cp.linalg.solve(normal, right_side[rows, :, None])[:, :, 0]
        return out

    def equations(self, other: Array, common: Common | None) -> Any:
        """Return [A | b] of every row, the upper triangle packed, in double precision."""
        rank = other.shape[1]
        row, column = np.triu_indices(rank, 0, rank + 1)
        given = column == rank
        out = cp.empty((self._weight.shape[0], row.size))
        out[:, np.flatnonzero(given)] = self._target.astype(float) @ other
        outer = other[:, row[~given]] * other[:, column[~given]]
        out[:, np.flatnonzero(~given)] = self._weight.astype(float) @ outer
        if common is not None:
            sums, offset = common
            out += sums[row, column]
            out[:, np.flatnonzero(given)] += offset[:, None] * sums[:, rank + 1]
        return out
