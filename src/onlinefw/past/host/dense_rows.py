"""Dense rows in this process's memory: they grow by batches and multiply by atoms.

Numbers are kept in the precision in which they came: doubles, singles or bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._growing import GrowingArray
from ..._threads import blocks_for, share
from ..._typing import Array, Shape, State
from ...kernels import rows as kernels
from ...kernels.bytes import fused_bytes, suits
from ..pending import PendingMove
from ..row_store import RowStore, spaced
from .row_loss import RowLoss

__all__ = ["ENTRIES_PER_START", "DenseRows"]

#: Products are fast, so a second thread pays only in loops that are this many times longer.
ENTRIES_PER_START = 8
#: Rows of bytes become floating-point numbers so many at a time.
CHUNK = 2048


class DenseRows(RowStore):
    """Rows in one C-ordered array."""

    def __init__(self, shape: Shape, data: GrowingArray | None = None) -> None:
        self.shape = shape
        self._data = GrowingArray((int(np.prod(shape)),)) if data is None else data
        self.data = self._data.data
        self.n_features = self.data.shape[1]
        #: The type of numbers to compute with: double precision for doubles only.
        self.working_dtype: Any = float if self.data.dtype == float else np.float32
        # How long a loop over all entries is, for the choice of threads.
        self._work = self.data.size // ENTRIES_PER_START

    def __len__(self) -> int:
        return len(self.data)

    def _blocks(self, count: int | None = None) -> Array:
        """Return the boundaries of the rows that each thread works on, up to some row."""
        blocks = blocks_for(len(self.data), self._work, None)
        return blocks if count is None else np.minimum(blocks, count)

    def extended(self, batch: Any) -> DenseRows:
        batch = batch.toarray() if sparse.issparse(batch) else batch
        data = self._data
        if len(data.data) == 0:
            data = GrowingArray(data.data.shape[1:], batch.dtype)
        elif batch.dtype != data.data.dtype:
            wider = np.result_type(batch.dtype, data.data.dtype)
            if wider != data.data.dtype:  # bytes came first, other numbers now
                data = data.astype(wider)
        return DenseRows(self.shape, data.extended(batch))

    def kept(self, mask: Array) -> DenseRows:
        return DenseRows(self.shape, self._data.kept(mask))

    def matrix(self) -> Array:
        return self.data

    # Products -------------------------------------------------------------------------------------

    def fuses(self, loss: RowLoss) -> bool:
        return loss.is_compiled

    def fused_gradient(
        self, loss: RowLoss, pending: PendingMove | None, z: Array, y: Array, w: Array, b: float
    ) -> Array:
        """Move the predictions of the first rows; return sum w phi'(z + b, y) x."""
        data, n = self.data, self.n_features
        keep, (a, step), count = pending or (1.0, (np.zeros(n), 0.0), 0)
        a = a.astype(self.working_dtype, copy=False)
        blocks = blocks_for(len(data), self._work, None)
        acc = np.zeros((len(blocks) - 1, n))
        fused = fused_bytes if suits(data) else kernels.fused_gradient
        moving = count, keep, step, a
        share(fused, blocks, data, *moving, z, y, w, b, loss.kind, loss.parameter, acc)
        return acc[0] if len(acc) == 1 else acc.sum(axis=0)

    def move(self, z: Array, keep: float, step: float, a: Array, count: int) -> None:
        """Let z <- keep z + step X a at the first ``count`` rows."""
        a = a.astype(self.working_dtype, copy=False)
        share(kernels.move_rows, self._blocks(count), self.data, keep, step, a, z)

    def matvec(self, vector: Array) -> Array:
        out = np.zeros(len(self))
        self.move(out, 0.0, 1.0, np.asarray(vector), len(self))
        return out

    def rmatvec(self, vector: Array) -> Array:
        if vector.ndim == 1:
            blocks, vector = self._blocks(), np.asarray(vector, self.working_dtype)
            acc = np.zeros((len(blocks) - 1, self.n_features))
            share(kernels.slope_gradient, blocks, self.data, vector, acc)
            return acc.sum(axis=0)
        total = np.zeros((vector.shape[1], self.n_features))
        for start in range(0, len(self), CHUNK):
            part = slice(start, start + CHUNK)
            rows = self.data[part].astype(self.working_dtype, copy=False)
            total += vector[part].T.astype(self.working_dtype) @ rows
        return total.T

    def column(self, j: int) -> Array:
        return self.data[:, j].astype(float)

    def columns(self, indices: Array, values: Array) -> Array:
        if indices.size * 4 > self.n_features:
            return super().columns(indices, values)
        return self.data[:, indices].astype(self.working_dtype, copy=False) @ values

    def gram(self, chosen: Array, weights: Array) -> tuple[Array, Array]:
        some, w = spaced(weights, chosen.size)
        root = np.sqrt(w).astype(self.working_dtype)
        # BLAS computes half of a product with itself, and needs no second copy of the rows.
        rows = self.data[some, chosen] * root[:, None]
        return (rows.T @ rows).astype(float, copy=False), (rows.T @ root).astype(float, copy=False)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        return {"kind": "dense", "data": self.data.copy()}

    @classmethod
    def from_state(cls, state: State, shape: Shape) -> DenseRows:
        data = np.asarray(state["data"])
        if data.ndim != 2 or data.shape[1] != int(np.prod(shape)):
            raise ValueError(f"the rows have shape {data.shape}, but theta has shape {shape}")
        if data.dtype not in (np.float64, np.float32, np.uint8):
            raise ValueError(f"the rows are {data.dtype}, not doubles, singles or bytes")
        return cls(shape, GrowingArray.holding(np.array(data, order="C")))
