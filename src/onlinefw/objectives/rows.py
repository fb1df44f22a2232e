"""Stored rows of data, dense or sparse: they grow by batches and multiply by atoms.

Appending is amortised; every product is one pass (or, for a column, much less).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._growing import GrowingArray
from .._typing import Array, Shape, State

__all__ = ["DenseRows", "Rows", "SparseRows"]


class Rows(Protocol):
    """N stored rows x_i of n features."""

    def __len__(self) -> int: ...

    def append(self, batch: Any) -> None:
        """Add rows at the end."""
        ...

    def matvec(self, vector: Array) -> Array:
        """Return X v."""
        ...

    def rmatvec(self, vector: Array) -> Array:
        """Return X' r."""
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

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._data = GrowingArray((int(np.prod(shape)),))

    def __len__(self) -> int:
        return len(self._data)

    def append(self, batch: Any) -> None:
        """Add rows at the end."""
        self._data.append(batch.toarray() if sparse.issparse(batch) else batch)

    def matvec(self, vector: Array) -> Array:
        """Return X v."""
        return self._data.data @ vector

    def rmatvec(self, vector: Array) -> Array:
        """Return X' r."""
        return vector @ self._data.data

    def column(self, j: int) -> Array:
        """Return X e_j."""
        return self._data.data[:, j]

    def columns(self, indices: Array, values: Array) -> Array:
        """Return the sum of values_k X e_{indices_k}."""
        return self._data.data[:, indices] @ values

    def bilinear(self, u: Array, v: Array) -> Array:
        """Return u' x_i v: one pass over the data, then one over (N, m1)."""
        return (self._data.data.reshape(-1, v.size) @ v).reshape(-1, u.size) @ u

    def state_dict(self) -> State:
        """Return the rows as one array."""
        return {"kind": "DenseRows", "data": self._data.data.copy()}

    @classmethod
    def from_state(cls, state: State, shape: Shape) -> DenseRows:
        """Make the rows that ``state_dict`` described."""
        rows = cls(shape)
        rows.append(state["data"])
        return rows


class SparseRows:
    """Rows in compressed columns, with the newest ones in a short row-wise tail.

    Gradient steps along a coordinate need columns, batches arrive as rows. So the bulk is kept by
    columns (a column is a slice, X'r is a dot product per column) and new rows wait in a tail,
    which is merged when it has grown to half of the bulk: each nonzero is moved a bounded number
    of times, and looking a column up in the tail reads no more than a third of the indices.

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

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.n_features = int(np.prod(shape))
        self._bulk = sparse.csc_array((0, self.n_features))
        self._tail_data = GrowingArray()
        self._tail_indices = GrowingArray(dtype=np.int32)
        self._tail_indptr = GrowingArray(dtype=np.int64)
        self._tail_indptr.append([0])

    def __len__(self) -> int:
        return self._bulk.shape[0] + len(self._tail_indptr) - 1

    @property
    def _tail(self) -> Any:
        shape = (len(self._tail_indptr) - 1, self.n_features)
        tail = sparse.csr_array(shape)
        # Assigned, not passed: the constructor would check (and may copy) every index.
        tail.data, tail.indices = self._tail_data.data, self._tail_indices.data
        tail.indptr = self._tail_indptr.data.astype(np.int32)
        return tail

    def append(self, batch: Any) -> None:
        """Add rows at the end."""
        batch = sparse.csr_array(batch)
        self._tail_indptr.append(batch.indptr[1:] + len(self._tail_data))
        self._tail_data.append(batch.data)
        self._tail_indices.append(batch.indices)
        floor = self._MIN_TAIL_PER_FEATURE * self.n_features
        if len(self._tail_data) > max(floor, 0.5 * self._bulk.nnz):
            self._bulk = sparse.vstack([self._bulk, self._tail], format="csc")
            for part in (self._tail_data, self._tail_indices, self._tail_indptr):
                part.clear()
            self._tail_indptr.append([0])

    def matvec(self, vector: Array) -> Array:
        """Return X v."""
        return np.concatenate((self._bulk @ vector, self._tail @ vector))

    def rmatvec(self, vector: Array) -> Array:
        """Return X' r."""
        n = self._bulk.shape[0]
        out = self._bulk.T @ vector[:n]
        if len(self) > n:
            out += self._tail.T @ vector[n:]
        return out

    def column(self, j: int) -> Array:
        """Return X e_j."""
        out = np.zeros(len(self))
        start, end = self._bulk.indptr[j], self._bulk.indptr[j + 1]
        out[self._bulk.indices[start:end]] = self._bulk.data[start:end]
        hits = np.flatnonzero(self._tail_indices.data == j)
        if hits.size:
            rows = np.searchsorted(self._tail_indptr.data, hits, side="right") - 1
            out[self._bulk.shape[0] + rows] = self._tail_data.data[hits]
        return out

    def columns(self, indices: Array, values: Array) -> Array:
        """Return the sum of values_k X e_{indices_k}."""
        vector = np.zeros(self.n_features)
        vector[indices] = values
        few = indices.size * 16 <= self.n_features
        bulk = self._bulk[:, indices] @ values if few else self._bulk @ vector
        return np.concatenate((bulk, self._tail @ vector))

    def bilinear(self, u: Array, v: Array) -> Array:
        """Return u' x_i v: each column of the data has one coefficient u_a v_b."""
        return self.matvec(np.multiply.outer(u, v).reshape(-1))

    def state_dict(self) -> State:
        """Return bulk and tail as plain arrays."""
        return {
            "kind": "SparseRows",
            "bulk_rows": self._bulk.shape[0],
            "bulk_data": self._bulk.data.copy(),
            "bulk_indices": self._bulk.indices.copy(),
            "bulk_indptr": self._bulk.indptr.copy(),
            "tail_data": self._tail_data.data.copy(),
            "tail_indices": self._tail_indices.data.copy(),
            "tail_indptr": self._tail_indptr.data.copy(),
        }

    @classmethod
    def from_state(cls, state: State, shape: Shape) -> SparseRows:
        """Make the rows that ``state_dict`` described."""
        rows = cls(shape)
        rows._bulk = sparse.csc_array(
            (
                np.array(state["bulk_data"]),
                np.array(state["bulk_indices"]),
                np.array(state["bulk_indptr"]),
            ),
            shape=(int(state["bulk_rows"]), rows.n_features),
        )
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
