"""Sparse rows in this process's memory: they grow by batches and multiply by atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._growing import GrowingArray
from ..._threads import balanced_blocks, share
from ..._typing import Array, Shape, State
from ...kernels import columns as kernels
from ..row_store import RowStore
from .dense_rows import ENTRIES_PER_START

__all__ = ["MIN_TAIL_PER_FEATURE", "TAIL_SHARE", "SparseRows"]

#: Tails with fewer nonzeros than this per feature are not worth merging ...
MIN_TAIL_PER_FEATURE = 0.25
#: ... nor tails with fewer than this share of the nonzeros in columns.
TAIL_SHARE = 0.125
#: Another thread for products of columns pays from so many times more of them on.
GRAM_PER_START = 16


class SparseRows(RowStore):
    """Rows in compressed columns, with the newest ones in a short row-wise tail.

    Steps along a coordinate need columns, batches arrive as rows. So the bulk is held by columns
    (a column is a slice, X'r is a dot product per column) and new rows wait in a tail, which is
    merged when it has grown to an eighth of the bulk: each nonzero is moved a bounded number of
    times, and looking a column up in the tail reads few indices. No read is fused: moves along a
    column are cheap, and gradients read columns.
    """

    def __init__(self, shape: Shape, dtype: Any = float) -> None:
        self.shape = shape
        self.n_features = int(np.prod(shape))
        nothing = np.zeros(self.n_features + 1, np.int64), np.empty(0, np.int32), np.empty(0, dtype)
        self._set_bulk(*nothing, 0)
        self._set_tail(*_no_tail(dtype))

    def _set_bulk(self, indptr: Array, indices: Array, data: Array, n_rows: int) -> None:
        self._indptr, self._indices, self._data = indptr, indices, data
        self._bulk_rows = n_rows

    def _set_tail(self, indptr: GrowingArray, indices: GrowingArray, data: GrowingArray) -> None:
        self._tail_indptr, self._tail_indices, self._tail_data = indptr, indices, data

    def _copy(self) -> SparseRows:
        """Return the same rows, in the same memory."""
        copy = SparseRows.__new__(SparseRows)
        copy.__dict__.update(self.__dict__)
        return copy

    def __len__(self) -> int:
        return self._bulk_rows + len(self._tail_indptr) - 1

    @property
    def _tail(self) -> tuple[Array, Array, Array]:
        return self._tail_indptr.data, self._tail_indices.data, self._tail_data.data

    def extended(self, batch: Any) -> SparseRows:
        batch, longer = sparse.csr_array(batch), self._copy()
        if batch.dtype != self._data.dtype:
            dtype = batch.dtype if len(self) == 0 else np.result_type(batch.dtype, self._data.dtype)
            if dtype != self._data.dtype:
                longer._data = self._data.astype(dtype)
                longer._tail_data = self._tail_data.astype(dtype)
        longer._set_tail(
            self._tail_indptr.extended(batch.indptr[1:] + len(self._tail_data)),
            self._tail_indices.extended(batch.indices),
            longer._tail_data.extended(batch.data),
        )
        least = MIN_TAIL_PER_FEATURE * self.n_features
        if len(longer._tail_data) > max(least, TAIL_SHARE * self._data.size):
            return longer.merged()
        return longer

    def merged(self) -> SparseRows:
        if len(self) == self._bulk_rows:
            return self
        bulk, merged = (self._indptr, self._indices, self._data), self._copy()
        indptr, indices, data = kernels.append_rows(*bulk, *self._tail, self._bulk_rows)
        merged._set_bulk(indptr, indices, data, len(self))
        merged._set_tail(*_no_tail(self._data.dtype))
        return merged

    def kept(self, mask: Array) -> SparseRows:
        kept = sparse.csc_array(self.matrix()[np.flatnonzero(mask)])
        rows, indices = SparseRows(self.shape, self._data.dtype), kept.indices
        rows._set_bulk(
            kept.indptr.astype(np.int64),
            indices.astype(np.int32, copy=False),
            kept.data,
            kept.shape[0],
        )
        return rows

    def matrix(self) -> Any:
        whole = self.merged()
        bulk = (whole._data, whole._indices, whole._indptr)
        return sparse.csc_array(bulk, shape=(len(whole), self.n_features)).tocsr()

    # Products -------------------------------------------------------------------------------------

    def matvec(self, vector: Array) -> Array:
        vector = np.asarray(vector, float)
        bulk = sparse.csc_array((self._bulk_rows, self.n_features))
        # Assigned, not passed: the constructor would check (and may copy) every index.
        bulk.data, bulk.indices, bulk.indptr = self._data, self._indices, self._indptr
        tail = sparse.csr_array((len(self) - self._bulk_rows, self.n_features))
        tail.indptr, tail.indices, tail.data = self._tail
        return np.concatenate((bulk @ vector, tail @ vector))

    def rmatvec(self, vector: Array) -> Array:
        R = np.ascontiguousarray(vector.reshape(len(self), -1), dtype=float)
        out = np.zeros((self.n_features, R.shape[1]))
        blocks = balanced_blocks(self._indptr, self._data.size * R.shape[1] // ENTRIES_PER_START)
        bulk = self._indptr, self._indices, self._data
        if R.shape[1] == 1:
            share(kernels.column_dots, blocks, *bulk, R[:, 0], out[:, 0])
        else:
            share(kernels.column_dots_of_several, blocks, *bulk, R, out)
        kernels.scatter_rows(*self._tail, R[self._bulk_rows :], out)
        return out.reshape(self.n_features, *vector.shape[1:])

    def column(self, j: int) -> Array:
        out = np.zeros(len(self))
        start, end = self._indptr[j], self._indptr[j + 1]
        out[self._indices[start:end]] += self._data[start:end]
        hits = np.flatnonzero(self._tail_indices.data == j)
        if hits.size:
            rows = np.searchsorted(self._tail_indptr.data, hits, side="right") - 1
            out[self._bulk_rows + rows] += self._tail_data.data[hits]
        return out

    def columns(self, indices: Array, values: Array) -> Array:
        out = np.zeros(len(self))
        some = np.flatnonzero(values)
        chosen, values = indices[some], np.asarray(values[some], float)
        bulk = self._indptr, self._indices, self._data
        kernels.add_columns(chosen, values, *bulk, out[: self._bulk_rows])
        if len(self) > self._bulk_rows:
            vector = np.zeros(self.n_features)
            vector[chosen] = values
            tail = sparse.csr_array((len(self) - self._bulk_rows, self.n_features))
            tail.indptr, tail.indices, tail.data = self._tail
            out[self._bulk_rows :] = tail @ vector
        return out

    def gram(self, chosen: Array, weights: Array) -> tuple[Array, Array]:
        whole = self.merged()
        bulk = (whole._indptr, whole._indices, whole._data)
        starts, positions, values = kernels.some_columns(chosen, *bulk, whole._bulk_rows)
        n = chosen.size
        # A row with k of the chosen entries has k^2 / 2 products.
        work = positions.size * (positions.size // len(self)) if len(self) else 0
        blocks = balanced_blocks(starts, work // GRAM_PER_START)
        grams, crosses = np.zeros((len(blocks) - 1, n, n)), np.zeros((len(blocks) - 1, n))
        share(kernels.add_gram, blocks, starts, positions, values, weights, grams, crosses)
        gram, cross = grams[0], crosses[0]
        for other, its_cross in zip(grams[1:], crosses[1:], strict=True):
            gram += other
            cross += its_cross
        kernels.mirror(gram)
        return gram, cross

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        return {
            "kind": "sparse",
            "bulk_rows": self._bulk_rows,
            "bulk_data": self._data.copy(),
            "bulk_indices": self._indices.copy(),
            "bulk_indptr": self._indptr.copy(),
            "tail_data": self._tail_data.data.copy(),
            "tail_indices": self._tail_indices.data.copy(),
            "tail_indptr": self._tail_indptr.data.copy(),
        }

    @classmethod
    def from_state(cls, state: State, shape: Shape) -> SparseRows:
        bulk, tail = _compressed(state, "bulk"), _compressed(state, "tail")
        n, n_rows = int(np.prod(shape)), int(state["bulk_rows"])
        check_compressed(*bulk, n, n_rows)
        check_compressed(*tail, len(tail[0]) - 1, n)
        for data in (bulk[2], tail[2]):
            if data.dtype.kind not in "buif" or not np.isfinite(data).all():
                raise ValueError(f"the values of rows are {data.dtype}, not finite numbers")
        rows = cls(shape, bulk[2].dtype)
        rows._set_bulk(
            bulk[0].astype(np.int64), bulk[1].astype(np.int32), np.array(bulk[2]), n_rows
        )
        rows._set_tail(
            GrowingArray.holding(tail[0].astype(np.int64)),
            GrowingArray.holding(tail[1].astype(np.int32)),
            GrowingArray.holding(tail[2].astype(bulk[2].dtype)),
        )
        return rows


def _compressed(state: State, part: str) -> tuple[Array, Array, Array]:
    indptr, indices, data = (
        np.asarray(state[f"{part}_{name}"]) for name in ("indptr", "indices", "data")
    )
    return indptr, indices, data


def _no_tail(dtype: Any) -> tuple[GrowingArray, GrowingArray, GrowingArray]:
    indptr = GrowingArray.holding(np.zeros(1, np.int64))
    return indptr, GrowingArray(dtype=np.int32), GrowingArray(dtype=dtype)


def check_compressed(indptr: Array, indices: Array, data: Array, n_rows: int, width: int) -> None:
    """Refuse compressed rows that point outside their matrix, before a kernel reads there."""
    flat = indptr.ndim == indices.ndim == data.ndim == 1
    if not flat or indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise ValueError("compressed rows are three flat arrays: pointers, columns, numbers")
    whole = indptr.size == n_rows + 1 and indices.size == data.size
    if not whole or indptr[0] != 0 or indptr[-1] != indices.size:
        raise ValueError("the pointers of the compressed rows do not fit their columns")
    if (np.diff(indptr.astype(np.int64)) < 0).any():
        raise ValueError("the pointers of the compressed rows are out of order")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < width:
        raise ValueError(
            f"a column of the compressed rows lies outside the matrix, which has {width}"
        )
