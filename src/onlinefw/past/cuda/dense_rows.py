"""Dense rows on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._devices import cupy, namespace, to_host
from ..._typing import Array, Shape, State
from ..host.dense_rows import DenseRows
from ..pending import PendingMove
from ..row_store import RowStore, spaced
from . import row_kernels as kernels
from .growing import CudaGrowing
from .row_loss import CudaRowLoss

__all__ = ["CudaDenseRows", "Scratch"]


class Scratch:
    """Memory that the kernels use, shared by rows of one stride and those that replace them."""

    def __init__(self, stride: int) -> None:
        self._stride = stride  # how many numbers a row has, with its padding
        self.a = cupy().zeros(stride)  # a vector that rows are multiplied by; its padding is 0
        self._parts, self._sums = cupy().zeros(0), cupy().zeros(0)

    def memory(self, vectors: int) -> tuple[Any, Any]:
        """Return memory for partial sums and for their sum."""
        size = vectors * self._stride
        if self._sums.size < size:
            self._sums = cupy().zeros(size)
            most = max(kernels.n_parts(k * self._stride) * k for k in range(1, vectors + 1))
            self._parts = cupy().zeros(most * self._stride)
        return self._parts, self._sums


class CudaDenseRows(RowStore):
    """Rows of doubles, singles or bytes in one C-ordered array on the device, as they came.

    What is as long as theta comes back to this process: it is small, and the lmo is faster here
    than on a device.
    """

    def __init__(
        self, shape: Shape, data: CudaGrowing | None = None, scratch: Scratch | None = None
    ) -> None:
        self.shape = shape
        self.n_features = int(np.prod(shape))
        # The rows are padded to whole words with zeros; the scratch is of those that they replace.
        self._data = self._no_rows(np.dtype(float)) if data is None else data
        self.stride = self._data.buffer.shape[1]
        self._scratch = Scratch(self.stride) if scratch is None else scratch

    def _no_rows(self, dtype: np.dtype) -> CudaGrowing:
        """Return an empty array for rows of this type, padded to whole words."""
        width = kernels.WIDTHS[dtype]
        return CudaGrowing((-(-self.n_features // width) * width,), dtype)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers kept."""
        return self._data.data.dtype

    def matrix(self) -> Array:
        return to_host(self._data.data)[:, : self.n_features]

    def extended(self, batch: Any) -> CudaDenseRows:
        batch = batch.toarray() if sparse.issparse(batch) else batch
        data, scratch = self._data, self._scratch
        dtype = batch.dtype if len(self) == 0 else np.result_type(batch.dtype, self.dtype)
        if dtype != self.dtype:  # bytes came first, other numbers now
            before = data.data[:, : self.n_features].astype(dtype)
            data = self._added(self._no_rows(dtype), before)
            scratch = Scratch(data.buffer.shape[1])
        return CudaDenseRows(self.shape, self._added(data, batch), scratch)

    def _added(self, data: CudaGrowing, batch: Any) -> CudaGrowing:
        """Return padded rows with more at the end."""
        stride = data.buffer.shape[1]
        if stride == self.n_features or len(batch) == 0:
            return data.extended(batch)
        if namespace(batch) is np:
            padded = np.zeros((len(batch), stride), data.data.dtype)
            padded[:, : self.n_features] = batch
            return data.extended(padded)
        longer, new = data.lengthened(len(batch))
        new[:, : self.n_features] = batch  # the padding is 0, and is never written to
        return longer

    def kept(self, mask: Array) -> CudaDenseRows:
        return CudaDenseRows(self.shape, self._data.kept(mask), self._scratch)

    # Products -------------------------------------------------------------------------------------

    def fuses(self, loss: CudaRowLoss) -> bool:
        """Whether a warp can hold a row, so that one read is enough for a move and the gradient."""
        width = kernels.WIDTHS[self.dtype]
        return loss.is_compiled and self.stride <= 32 * width * kernels.MOST_CHUNKS[width]

    def fused_gradient(
        self, loss: CudaRowLoss, pending: PendingMove | None, z: Any, y: Any, w: Any, b: float
    ) -> Array:
        a, step, count = self._scratch.a, 0.0, 0
        if pending is not None:
            (vector, step), count = pending.image, pending.n
            a = self._sent(vector)
        parts, out = self._scratch.memory(1)
        kernels.fused_gradient(
            loss.kind, self._data.buffer, len(self), count, step, a, z, y, w, b, parts, out
        )
        return to_host(out[: self.n_features])

    def move(self, z: Any, keep: float, step: float, a: Array, count: int) -> None:
        kernels.dense_move(self._data.buffer, count, keep, step, self._sent(a), z)

    def matvec(self, vector: Array) -> Any:
        out = cupy().empty(len(self))
        self.move(out, 0.0, 1.0, vector, len(self))
        return out

    def _sent(self, vector: Array) -> Any:
        """Return a vector on the device, in the scratch memory."""
        self._scratch.a[: self.n_features].set(np.ascontiguousarray(vector, float))
        return self._scratch.a

    def rmatvec(self, vector: Any) -> Array:
        xp = cupy()
        vectors = xp.ascontiguousarray(xp.asarray(vector, float).reshape(len(self), -1).T)
        out = np.empty((self.n_features, len(vectors)))
        for first in range(0, len(vectors), kernels.MOST_LANES):
            some = vectors[first : first + kernels.MOST_LANES]
            parts, sums = self._scratch.memory(len(some))
            kernels.slope_sums(self._data.buffer, len(self), some, parts, sums)
            found = to_host(sums[: len(some) * self.stride]).reshape(len(some), self.stride)
            out[:, first : first + len(some)] = found[:, : self.n_features].T
        return out.reshape(self.n_features, *vector.shape[1:])

    def column(self, j: int) -> Any:
        return self._data.data[:, j].astype(float)

    def columns(self, indices: Array, values: Array) -> Any:
        if indices.size * 4 > self.n_features:
            return super().columns(indices, values)
        xp = cupy()
        out = xp.empty(len(self))
        where, values = xp.asarray(indices, np.int32), xp.asarray(values, float)
        kernels.some_columns(self._data.buffer, len(self), where, values, out)
        return out

    def gram(self, chosen: Array, weights: Any) -> tuple[Array, Array]:
        some, w = spaced(weights, chosen.size)
        rows = self._data.data[some][:, cupy().asarray(chosen)].astype(float)
        scaled = rows * w[:, None]
        return to_host(rows.T @ scaled), to_host(scaled.sum(axis=0))

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        return {"kind": "dense", "data": np.ascontiguousarray(self.matrix())}

    @classmethod
    def from_state(cls, state: State, shape: Shape) -> CudaDenseRows:
        return cls(shape).extended(DenseRows.from_state(state, shape).data)
