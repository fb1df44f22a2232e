"""Stored rows of data, dense or sparse: they grow by batches and multiply by atoms.

Appending is amortised; every product is one pass (or, for a column, much less). Numbers are kept
in the precision in which they came: doubles, singles or (dense) bytes.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._growing import GrowingArray
from .._threads import balanced_blocks, blocks_for, threads_for
from .._typing import Array, Shape, State
from ..kernels import columns as by_column
from ..kernels import rows as by_row

__all__ = ["DenseRows", "Rows", "SparseRows"]

#: Dense second-order models look at about this many rows per coordinate: what they leave out
#: costs a shorter step, what they look at costs coordinates^2 each.
ROWS_PER_COORDINATE, LEAST_ROWS = 8, 2048
#: Products are so fast that a second thread pays only for this many times longer loops.
ENTRIES_PER_START = 8
#: Rows of bytes become floating-point numbers so many at a time.
CHUNK = 2048


class Rows(Protocol):
    """N stored rows x_i of n features."""

    shape: Shape

    def __len__(self) -> int: ...

    def append(self, batch: Any) -> None:
        """Add rows at the end."""
        ...

    def keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False."""
        ...

    def matvec(self, vector: Array) -> Array:
        """Return X v."""
        ...

    def rmatvec(self, vector: Array) -> Array:
        """Return X' r, for one vector (N,) or several (N, k)."""
        ...

    def column(self, j: int) -> Array:
        """Return X e_j."""
        ...

    def columns(self, indices: Array, values: Array) -> Array:
        """Return the sum of values_k X e_{indices_k}."""
        ...

    def bilinear(self, u: Array, v: Array) -> Array:
        """Return u' x_i v for every (matrix-shaped) row."""
        ...

    def gram(self, chosen: Array, weights: Array) -> tuple[Array, Array]:
        """Return X_S' diag(w) X_S and X_S' w for the (increasing) chosen columns S.

        Dense rows may look at a part of the data and scale the result up.
        """
        ...

    def state_dict(self) -> State:
        """Return the rows as plain arrays."""
        ...


class DenseRows:
    """Rows in one C-ordered array.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.objectives.rows import DenseRows
    >>> rows = DenseRows((2,))
    >>> rows.append(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows.column(1)
    array([2., 4.])
    """

    def __init__(self, shape: Shape, dtype: Any = float) -> None:
        self.shape = shape
        self._data = GrowingArray((int(np.prod(shape)),), dtype)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def data(self) -> Array:
        """The rows."""
        return self._data.data

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers kept."""
        return self._data.data.dtype

    @property
    def working_dtype(self) -> np.dtype:
        """The type of numbers to compute with: double precision for doubles only."""
        return np.dtype(float) if self.dtype == float else np.dtype(np.float32)

    @property
    def work(self) -> int:
        """How long a loop over all entries is, for the choice of threads."""
        return self.data.size // ENTRIES_PER_START

    @property
    def blocks(self) -> Array:
        """Boundaries of the rows that each thread works on."""
        return blocks_for(len(self), self.work)

    def append(self, batch: Any) -> None:
        """Add rows at the end."""
        batch = batch.toarray() if sparse.issparse(batch) else batch
        wider = np.result_type(batch.dtype, self.dtype)
        if wider != self.dtype:  # bytes came first, other numbers now
            self._data = self._data.astype(wider)
        self._data.append(batch)

    def keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False."""
        self._data.keep(mask)

    def matvec(self, vector: Array) -> Array:
        """Return X v."""
        out = np.zeros(len(self))
        a = np.asarray(vector, self.working_dtype)
        with threads_for(self.work):
            by_row.move_rows(self.data, self.blocks, 0.0, 1.0, a, out)
        return out

    def rmatvec(self, vector: Array) -> Array:
        """Return X' r, for one vector (N,) or several (N, k)."""
        if vector.ndim == 1:
            out = np.zeros(self.data.shape[1])
            slopes = np.asarray(vector, self.working_dtype)
            with threads_for(self.work):
                by_row.slope_gradient(self.data, self.blocks, slopes, out)
            return out
        total = np.zeros((vector.shape[1], self.data.shape[1]))
        for start in range(0, len(self), CHUNK):
            part = slice(start, start + CHUNK)
            rows = self.data[part].astype(self.working_dtype, copy=False)
            total += vector[part].T.astype(self.working_dtype) @ rows
        return total.T

    def column(self, j: int) -> Array:
        """Return X e_j."""
        return self.data[:, j].astype(float)

    def columns(self, indices: Array, values: Array) -> Array:
        """Return the sum of values_k X e_{indices_k}."""
        if indices.size * 4 > self.data.shape[1]:
            vector = np.zeros(self.data.shape[1])
            vector[indices] = values
            return self.matvec(vector)
        return self.data[:, indices].astype(self.working_dtype, copy=False) @ values

    def bilinear(self, u: Array, v: Array) -> Array:
        """Return u' x_i v."""
        return self.matvec(np.multiply.outer(u, v).reshape(-1))

    def gram(self, chosen: Array, weights: Array) -> tuple[Array, Array]:
        """Return X_S' diag(w) X_S and X_S' w, from evenly spaced rows if there are many."""
        every = max(1, len(self) // max(LEAST_ROWS, ROWS_PER_COORDINATE * chosen.size))
        w = weights[::every]
        if every > 1 and w.any():
            w = w * (weights.sum() / w.sum())
        rows = self.data[::every, chosen].astype(self.working_dtype, copy=False)
        scaled = rows * w[:, None].astype(self.working_dtype)
        return (rows.T @ scaled).astype(float), scaled.sum(axis=0, dtype=float)

    def state_dict(self) -> State:
        """Return the rows as one array."""
        return {"kind": "DenseRows", "data": self.data.copy()}

    @classmethod
    def from_state(cls, state: State, shape: Shape) -> DenseRows:
        """Make the rows that ``state_dict`` described."""
        data = np.asarray(state["data"])
        rows = cls(shape, data.dtype)
        rows.append(data)
        return rows


class SparseRows:
    """Rows in compressed columns, with the newest ones in a short row-wise tail.

    Gradient steps along a coordinate need columns, batches arrive as rows. So the bulk is kept by
    columns (a column is a slice, X'r is a dot product per column) and new rows wait in a tail,
    which is merged when it has grown to an eighth of the bulk: each nonzero is moved a bounded
    number of times, and looking a column up in the tail reads few indices.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from onlinefw.objectives.rows import SparseRows
    >>> rows = SparseRows((3,))
    >>> rows.append(sp.csr_array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> rows.column(1)
    array([2., 0.])
    """

    #: Tails with fewer nonzeros than this per feature are not worth merging.
    _MIN_TAIL_PER_FEATURE = 0.25
    _TAIL_SHARE = 0.125

    def __init__(self, shape: Shape, dtype: Any = float) -> None:
        self.shape = shape
        self.n_features = int(np.prod(shape))
        self._bulk_rows = 0
        self._indptr = np.zeros(self.n_features + 1, np.int64)
        self._indices = np.empty(0, np.int32)
        self._data = np.empty(0, dtype)
        self._blocks = np.array([0, self.n_features])
        self._clear_tail()

    def _clear_tail(self) -> None:
        self._tail_data = GrowingArray(dtype=self._data.dtype)
        self._tail_indices = GrowingArray(dtype=np.int32)
        self._tail_indptr = GrowingArray(dtype=np.int64)
        self._tail_indptr.append([0])

    def __len__(self) -> int:
        return self._bulk_rows + len(self._tail_indptr) - 1

    @property
    def _tail(self) -> tuple[Array, Array, Array]:
        return self._tail_indptr.data, self._tail_indices.data, self._tail_data.data

    def append(self, batch: Any) -> None:
        """Add rows at the end."""
        batch = sparse.csr_array(batch)
        wider = np.result_type(batch.dtype, self._data.dtype)
        if wider != self._data.dtype:
            self._data = self._data.astype(wider)
            self._tail_data = self._tail_data.astype(wider)
        self._tail_indptr.append(batch.indptr[1:] + len(self._tail_data))
        self._tail_data.append(batch.data)
        self._tail_indices.append(batch.indices)
        floor = self._MIN_TAIL_PER_FEATURE * self.n_features
        if len(self._tail_data) > max(floor, self._TAIL_SHARE * self._data.size):
            self._merge()

    def _merge(self) -> None:
        if len(self) == self._bulk_rows:
            return
        bulk = (self._indptr, self._indices, self._data)
        indptr, indices, data = by_column.append_rows(*bulk, *self._tail, self._bulk_rows)
        self._set_bulk(indptr, indices, data, len(self))
        self._clear_tail()

    def _set_bulk(self, indptr: Array, indices: Array, data: Array, n_rows: int) -> None:
        self._indptr, self._indices, self._data = indptr, indices, data
        self._bulk_rows, self._blocks = n_rows, balanced_blocks(indptr)

    def keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False."""
        self._merge()
        shape = (self._bulk_rows, self.n_features)
        bulk = sparse.csc_array((self._data, self._indices, self._indptr), shape=shape)
        kept = bulk.tocsr()[np.flatnonzero(mask)].tocsc()
        indices = kept.indices.astype(np.int32, copy=False)
        self._set_bulk(kept.indptr.astype(np.int64), indices, kept.data, kept.shape[0])

    def matvec(self, vector: Array) -> Array:
        """Return X v."""
        return self._product(np.asarray(vector, float))

    def _product(self, vector: Array) -> Array:
        shape = (self._bulk_rows, self.n_features)
        bulk = sparse.csc_array(shape)
        # Assigned, not passed: the constructor would check (and may copy) every index.
        bulk.data, bulk.indices, bulk.indptr = self._data, self._indices, self._indptr
        tail = sparse.csr_array((len(self) - self._bulk_rows, self.n_features))
        tail.indptr, tail.indices, tail.data = self._tail
        return np.concatenate((bulk @ vector, tail @ vector))

    def rmatvec(self, vector: Array) -> Array:
        """Return X' r, for one vector (N,) or several (N, k)."""
        R = np.ascontiguousarray(vector.reshape(len(self), -1), dtype=float)
        out = np.zeros((self.n_features, R.shape[1]))
        bulk = (self._blocks, self._indptr, self._indices, self._data)
        with threads_for(self._data.size * R.shape[1] // ENTRIES_PER_START):
            if R.shape[1] == 1:
                by_column.column_dots(*bulk, R[:, 0], out[:, 0])
            else:
                by_column.column_dots_of_several(*bulk, R, out)
        by_column.scatter_rows(*self._tail, R[self._bulk_rows :], out)
        return out.reshape(self.n_features, *vector.shape[1:])

    def column(self, j: int) -> Array:
        """Return X e_j."""
        out = np.zeros(len(self))
        self._add_column(j, 1.0, out)
        return out

    def _add_column(self, j: int, value: float, out: Array) -> None:
        start, end = self._indptr[j], self._indptr[j + 1]
        out[self._indices[start:end]] += value * self._data[start:end]
        hits = np.flatnonzero(self._tail_indices.data == j)
        if hits.size:
            rows = np.searchsorted(self._tail_indptr.data, hits, side="right") - 1
            out[self._bulk_rows + rows] += value * self._tail_data.data[hits]

    def columns(self, indices: Array, values: Array) -> Array:
        """Return the sum of values_k X e_{indices_k}."""
        vector = np.zeros(self.n_features)
        vector[indices] = values
        return self._product(vector)

    def bilinear(self, u: Array, v: Array) -> Array:
        """Return u' x_i v: each column of the data has one coefficient u_a v_b."""
        return self.matvec(np.multiply.outer(u, v).reshape(-1))

    def gram(self, chosen: Array, weights: Array) -> tuple[Array, Array]:
        """Return X_S' diag(w) X_S and X_S' w: sparse rows are all looked at."""
        self._merge()
        bulk = (self._indptr, self._indices, self._data)
        starts, positions, values = by_column.some_columns(chosen, *bulk, self._bulk_rows)
        gram, cross = np.zeros((chosen.size, chosen.size)), np.zeros(chosen.size)
        by_column.add_gram(starts, positions, values, weights, gram, cross)
        return gram, cross

    def state_dict(self) -> State:
        """Return bulk and tail as plain arrays."""
        return {
            "kind": "SparseRows",
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
        """Make the rows that ``state_dict`` described."""
        data = np.array(state["bulk_data"])
        rows = cls(shape, data.dtype)
        indptr = np.array(state["bulk_indptr"], np.int64)
        indices = np.array(state["bulk_indices"], np.int32)
        rows._set_bulk(indptr, indices, data, int(state["bulk_rows"]))
        rows._tail_data.append(state["tail_data"])
        rows._tail_indices.append(state["tail_indices"])
        rows._tail_indptr.clear()
        rows._tail_indptr.append(state["tail_indptr"])
        return rows


def rows_from_state(state: State, shape: Shape) -> DenseRows | SparseRows:
    """Make the rows that ``state_dict`` described."""
    kinds: dict[str, Any] = {"DenseRows": DenseRows, "SparseRows": SparseRows}
    if state["kind"] not in kinds:
        raise ValueError(f"unknown kind of rows {state['kind']!r} in the state")
    return kinds[state["kind"]].from_state(state, shape)
