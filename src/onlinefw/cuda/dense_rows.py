"""Dense rows on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._devices import cupy, namespace, to_host
from .._typing import Array, Shape, State
from ..objectives.rows import LEAST_ROWS, ROWS_PER_COORDINATE, DenseRows
from . import row_kernels as kernels
from .growing import CudaGrowing

__all__ = ["CudaDenseRows"]


class CudaDenseRows:
    """Rows of doubles, singles or bytes in one C-ordered array on the device, as they came.

    Products with rows are arrays on the device; what is as long as theta comes back to this
    process: it is small, and linear minimisation is faster here than a device would be.

    Parameters
    ----------
    shape : tuple of int
        Of the features of a row.
    dtype : dtype
        Of the numbers.
    """

    def __init__(self, shape: Shape, dtype: Any = float) -> None:
        self.shape = shape
        self.n_features = int(np.prod(shape))
        self._use(np.dtype(dtype))

    def _use(self, dtype: np.dtype) -> None:
        """Prepare for rows of these numbers: they are padded to whole words, with zeros."""
        width = kernels.WIDTHS[dtype]
        self.stride = -(-self.n_features // width) * width
        self._data = CudaGrowing((self.stride,), dtype)
        self._a = cupy().zeros(self.stride)
        self._parts, self._sums = cupy().zeros(0), cupy().zeros(0)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers kept."""
        return self._data.dtype

    @property
    def data(self) -> Array:
        """A copy of the rows in this process's memory."""
        return to_host(self._data.data)[:, : self.n_features]

    @property
    def is_fused(self) -> bool:
        """Whether a warp can hold a row, so that one read serves a move and the gradient."""
        width = kernels.WIDTHS[self.dtype]
        return self.stride <= 32 * width * kernels.MOST_CHUNKS[width]

    def append(self, batch: Any) -> None:
        """Add rows at the end, from the device or from this process's memory."""
        batch = batch.toarray() if sparse.issparse(batch) else batch
        wider = np.result_type(batch.dtype, self.dtype)
        if wider != self.dtype:  # bytes came first, other numbers now
            before = self._data.data[:, : self.n_features].astype(wider)
            self._use(wider)
            self._add(before)
        self._add(batch)

    def _add(self, batch: Any) -> None:
        if self.stride == self.n_features:
            self._data.append(batch)
        elif namespace(batch) is np:
            padded = np.zeros((len(batch), self.stride), self.dtype)
            padded[:, : self.n_features] = batch
            self._data.append(padded)
        else:
            new = self._data.lengthen(len(self) + len(batch))
            new[:, : self.n_features] = batch

    def keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False."""
        self._data.keep(mask)

    # Products -------------------------------------------------------------------------------------

    def fused_gradient(
        self,
        loss: tuple[int, float],
        pending: tuple[Array, float, int] | None,
        z: Any,
        y: Any,
        w: Any,
        b: float,
    ) -> Array:
        """Move the first predictions along an atom; return sum w phi'(z + b, y) x."""
        a, step, moved = pending or (None, 0.0, 0)
        if a is not None:
            self._send(a)
        parts, out = self._room(1)
        kernels.fused_gradient(
            loss, self._data.buffer, len(self), moved, step, self._a, z, y, w, b, parts, out
        )
        return to_host(out[: self.n_features])

    def move(self, z: Any, a: Array, step: float, moved: int) -> None:
        """z_i <- (1 - step) z_i + step <x_i, a> for i < moved."""
        self._send(a)
        kernels.dense_move(self._data.buffer, moved, 1.0 - step, step, self._a, z)

    def matvec(self, vector: Array) -> Any:
        """Return X v."""
        self._send(vector)
        out = cupy().empty(len(self))
        kernels.dense_move(self._data.buffer, len(self), 0.0, 1.0, self._a, out)
        return out

    def _send(self, a: Array) -> None:
        """Put a vector where the kernels find it."""
        self._a[: self.n_features].set(np.ascontiguousarray(a, float))

    def _room(self, lanes: int) -> tuple[Any, Any]:
        """Return memory for partial sums and for their sum."""
        size = lanes * self.stride
        if self._sums.size < size:
            self._sums = cupy().zeros(size)
            most = max(kernels.n_parts(k * self.stride) * k for k in range(1, lanes + 1))
            self._parts = cupy().zeros(most * self.stride)
        return self._parts, self._sums

    def rmatvec(self, vector: Any) -> Array:
        """Return X' r, for one vector (N,) or several (N, k)."""
        xp = cupy()
        lanes = xp.ascontiguousarray(xp.asarray(vector, float).reshape(len(self), -1).T)
        out = np.empty((self.n_features, len(lanes)))
        for first in range(0, len(lanes), kernels.MOST_LANES):
            some = lanes[first : first + kernels.MOST_LANES]
            parts, sums = self._room(len(some))
            kernels.slope_sums(self._data.buffer, len(self), some, parts, sums)
            found = to_host(sums[: len(some) * self.stride]).reshape(len(some), self.stride)
            out[:, first : first + len(some)] = found[:, : self.n_features].T
        return out.reshape(self.n_features, *vector.shape[1:])

    def column(self, j: int) -> Any:
        """Return X e_j."""
        return self._data.data[:, j].astype(float)

    def columns(self, indices: Array, values: Array) -> Any:
        """Return the sum of values_k X e_{indices_k}."""
        if indices.size * 4 > self.n_features:
            vector = np.zeros(self.n_features)
            vector[indices] = values
            return self.matvec(vector)
        xp = cupy()
        out = xp.empty(len(self))
        where, values = xp.asarray(indices, np.int32), xp.asarray(values, float)
        kernels.some_columns(self._data.buffer, len(self), where, values, out)
        return out

    def bilinear(self, u: Array, v: Array) -> Any:
        """Return u' x_i v."""
        return self.matvec(np.multiply.outer(u, v).reshape(-1))

    def gram(self, chosen: Array, weights: Any) -> tuple[Array, Array]:
        """Return X_S' diag(w) X_S and X_S' w, from evenly spaced rows if there are many."""
        every = max(1, len(self) // max(LEAST_ROWS, ROWS_PER_COORDINATE * chosen.size))
        w = weights[::every]
        if every > 1 and float(w.sum()) > 0.0:
            w = w * (float(weights.sum()) / float(w.sum()))
        rows = self._data.data[::every][:, cupy().asarray(chosen)].astype(float)
        scaled = rows * w[:, None]
        return to_host(rows.T @ scaled), to_host(scaled.sum(axis=0))

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return the rows as one array, as :class:`DenseRows` does."""
        return {"kind": "DenseRows", "data": np.ascontiguousarray(self.data)}

    def on_host(self) -> DenseRows:
        """Return the same rows in this process's memory."""
        return DenseRows.from_state(self.state_dict(), self.shape)

    @classmethod
    def from_host(cls, rows: DenseRows) -> CudaDenseRows:
        """Make rows on the device from others."""
        copy = cls(rows.shape, rows.dtype)
        copy.append(rows.data)
        return copy
