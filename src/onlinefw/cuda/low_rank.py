"""A matrix held as low-rank factors on a CUDA device."""

from __future__ import annotations

from typing import Any

import cupy as cp

from .._devices import to_host
from .._typing import Array
from ..iterates import LowRank
from .entry_kernels import kernels

__all__ = ["CudaLowRank"]


class CudaLowRank(LowRank):
    """A :class:`~onlinefw.iterates.LowRank` whose factors are CuPy arrays.

    ``dense`` and ``entries`` still answer with numpy arrays.
    """

    _xp: Any = cp

    def _entries(self, rows: Array, cols: Array) -> Array:
        there = (cp.asarray(index.astype("u4")) for index in (rows, cols))
        return to_host(self.entries_there(*there))

    def entries_there(self, rows: Array, cols: Array) -> Array:
        """Return theta at indices that are on the device (unsigned, 32 bit), on the device."""
        n = rows.size
        out = cp.zeros(n, self.dtype)
        if self._k:
            weights = cp.asarray(self.weights.astype(self.dtype))
            run = kernels(self.dtype.name)
            run.factor_entries(32 * n, n, rows, cols, *self.factors_there, weights, self._k, out)
        return out

    def _append(self, u: Array, weight: float, v: Array) -> None:
        self._make_room()
        u, v = (cp.ascontiguousarray(x, dtype=float) for x in (u, v))
        kernels(self.dtype.name).set_columns(
            u.size + v.size, u.size, v.size, u, v, *self.factors_there, self._k
        )
        self._weights[self._k] = weight / self._scale
        self._k += 1

    @property
    def factors_there(self) -> tuple[Array, int, Array, int]:
        """Left and right factor, each with the distance between its rows."""
        size = self.dtype.itemsize
        left, right = self._left, self._right
        return left, left.strides[0] // size, right, right.strides[0] // size
