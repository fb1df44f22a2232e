"""Sparse rows on the device."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from ..._arrays import here
from ..._devices import cupy, to_host
from ..._typing import Array, Shape, State
from ..host.sparse_rows import MIN_TAIL_PER_FEATURE, TAIL_SHARE, SparseRows
from ..row_store import RowStore
from . import row_kernels as kernels
from .growing import CudaGrowing

__all__ = ["CudaSparseRows"]

#: A long column is summed in segments of so many nonzeros, by a warp each.
SEGMENT = 512
#: Second-order models make so many numbers dense at a time.
MOST_DENSE = 2**25


class CudaSparseRows(RowStore):
    """All rows in compressed rows; the older ones in compressed columns as well.

    X v reads the rows. X' r and a column of X read the columns, and the newest rows (the tail) by
    row; the tail becomes columns when it has grown to an eighth of what is in columns. The sum over
    the tail is in no fixed order, so two runs agree to rounding only.

    Data may be singles; sums are doubles. (cuSPARSE multiplies numbers of one type only, and its
    sums are in no fixed order at all.)
    """

    _values: Any  # of the columns

    def __init__(self, shape: Shape, dtype: Any = float) -> None:
        self.shape = shape
        self.n_features = int(np.prod(shape))
        self._indptr = CudaGrowing(dtype=np.int64).extended(np.zeros(1, np.int64))
        self._indices, self._data = CudaGrowing(dtype=np.int32), CudaGrowing(dtype=dtype)
        self._position = cupy().full(self.n_features, -1, np.int32)
        self._merge()

    def __len__(self) -> int:
        return len(self._indptr) - 1

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers kept."""
        return self._data.data.dtype

    @property
    def _rows(self) -> tuple[Any, Any, Any]:
        return self._indptr.buffer, self._indices.buffer, self._data.buffer

    def extended(self, batch: Any) -> CudaSparseRows:
        batch, longer = sparse.csr_array(here(batch)), copy(self)
        dtype = batch.dtype if len(self) == 0 else np.result_type(batch.dtype, self.dtype)
        if dtype != self.dtype:
            longer._data, longer._values = self._data.astype(dtype), self._values.astype(dtype)
        longer._add(batch)
        least = MIN_TAIL_PER_FEATURE * self.n_features
        if len(longer._data) - self._merged > max(least, TAIL_SHARE * self._merged):
            longer._merge()
        return longer

    def _add(self, batch: Any) -> None:
        before = len(self._data)
        self._indptr = self._indptr.extended(batch.indptr[1:].astype(np.int64) + before)
        self._indices = self._indices.extended(batch.indices)
        self._data = self._data.extended(batch.data)

    def matrix(self) -> Any:
        arrays = (self._data.data, self._indices.data, self._indptr.data)
        return sparse.csr_array(tuple(map(to_host, arrays)), shape=(len(self), self.n_features))

    def _merge(self) -> None:
        """Make columns of all rows."""
        xp = cupy()
        self._bulk_rows, self._merged = len(self), len(self._data)
        lengths = xp.zeros(self.n_features, np.int64)
        self._row_indices, self._values = xp.zeros(0, np.int32), self._data.data
        if self._merged:
            indices = self._indices.data
            order = xp.argsort(indices)  # stable: rows stay in order within a column
            self._row_indices = self._row_of_each()[order].astype(np.int32)
            self._values = self._data.data[order]
            lengths += xp.bincount(indices, minlength=self.n_features)
        self._column_ptr = _starts(lengths)
        self._cut()

    def _cut(self) -> None:
        """Cut the columns into segments: find the first of each column, and where each starts."""
        xp = cupy()
        lengths = self._column_ptr[1:] - self._column_ptr[:-1]
        self._segments = _starts((lengths + (SEGMENT - 1)) // SEGMENT)
        self._n_segments = int(self._segments[-1])
        self._cuts, self._sums = xp.zeros(self._n_segments + 1, np.int64), xp.zeros(0)
        if self._n_segments:
            ids = xp.arange(self._n_segments)
            column = xp.searchsorted(self._segments[1:], ids, side="right")
            self._cuts[:-1] = self._column_ptr[column] + SEGMENT * (ids - self._segments[column])
            self._cuts[-1:] = self._merged
            self._sums = xp.zeros(self._n_segments)

    def _row_of_each(self) -> Any:
        """Return the row of every nonzero."""
        xp = cupy()
        ends = self._indptr.data[1:]
        return xp.searchsorted(ends, xp.arange(len(self._data)), side="right")

    def kept(self, mask: Array) -> CudaSparseRows:
        xp, fewer = cupy(), copy(self)
        stays = xp.asarray(mask)
        lengths = (self._indptr.data[1:] - self._indptr.data[:-1])[stays]
        if len(self._data):
            entries = stays[self._row_of_each()]
            fewer._indices = CudaGrowing.holding(self._indices.data[entries])
            fewer._data = CudaGrowing.holding(self._data.data[entries])
        fewer._indptr = CudaGrowing.holding(_starts(lengths))
        fewer._merge()
        return fewer

    # Products -------------------------------------------------------------------------------------

    def matvec(self, vector: Array) -> Any:
        xp = cupy()
        out = xp.empty(len(self))
        v = xp.asarray(np.ascontiguousarray(vector, float))
        kernels.sparse_move(*self._rows, len(self), v, 0.0, 1.0, out)
        return out

    def rmatvec(self, vector: Any) -> Array:
        xp = cupy()
        vectors = xp.ascontiguousarray(xp.asarray(vector, float).reshape(len(self), -1).T)
        sums = xp.empty((len(vectors), self.n_features))
        for r, out in zip(vectors, sums, strict=True):
            self._add_up(r, out)
        return to_host(sums).T.reshape(self.n_features, *vector.shape[1:])

    def _add_up(self, r: Any, out: Any) -> None:
        bulk = (self._row_indices, self._values)
        kernels.segment_dots(self._cuts, self._n_segments, *bulk, r, self._sums)
        kernels.add_segments(self.dtype, self._segments, self.n_features, self._sums, out)
        if self._bulk_rows < len(self):
            kernels.scatter_tail(*self._rows, self._bulk_rows, len(self), r, out)

    def column(self, j: int) -> Any:
        out = cupy().zeros(len(self))
        by_column = (self._column_ptr, self._row_indices, self._values)
        kernels.sparse_column(j, by_column, self._rows, self._bulk_rows, len(self), out)
        return out

    def gram(self, chosen: Array, weights: Any) -> tuple[Array, Array]:
        xp = cupy()
        k = chosen.size
        where = xp.asarray(chosen)
        self._position[where] = xp.arange(k, dtype=np.int32)
        gram, cross = xp.zeros((k, k)), xp.zeros(k)
        size = max(1, MOST_DENSE // max(1, k))
        for first in range(0, len(self), size):
            end = min(first + size, len(self))
            rows = xp.zeros((end - first, k))
            kernels.gather_columns(*self._rows, first, end, self._position, rows)
            scaled = rows * weights[first:end, None]
            gram += rows.T @ scaled
            cross += scaled.sum(axis=0)
        self._position[where] = -1
        return to_host(gram), to_host(cross)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        tail = slice(self._merged, None)
        return {
            "kind": "sparse",
            "bulk_rows": self._bulk_rows,
            "bulk_data": to_host(self._values),
            "bulk_indices": to_host(self._row_indices),
            "bulk_indptr": to_host(self._column_ptr),
            "tail_data": to_host(self._data.data[tail]),
            "tail_indices": to_host(self._indices.data[tail]),
            "tail_indptr": to_host(self._indptr.data[self._bulk_rows :]) - self._merged,
        }

    @classmethod
    def from_state(cls, state: State, shape: Shape) -> CudaSparseRows:
        SparseRows.from_state(state, shape)  # refuses what cannot be rows
        rows, n = cls(shape, np.asarray(state["bulk_data"]).dtype), int(np.prod(shape))
        bulk = tuple(state[f"bulk_{name}"] for name in ("data", "indices", "indptr"))
        tail = tuple(state[f"tail_{name}"] for name in ("data", "indices", "indptr"))
        rows._add(sparse.csc_array(bulk, shape=(int(state["bulk_rows"]), n)).tocsr())
        rows._merge()
        rows._add(sparse.csr_array(tail, shape=(len(tail[2]) - 1, n)))
        return rows


def _starts(lengths: Any) -> Any:
    """Return where each of consecutive pieces starts, and where the last one ends."""
    xp = cupy()
    out = xp.zeros(len(lengths) + 1, np.int64)
    if len(lengths):
        out[1:] = xp.cumsum(lengths)
    return out
