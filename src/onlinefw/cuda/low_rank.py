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
            strides = [factor.strides[0] // self.dtype.itemsize for factor in self._factors]
            kernels(self.dtype.name).factor_entries(
                32 * n, n, rows, cols, self._left, strides[0], self._right, strides[1],
                weights, self._k, out,
            )  # fmt: skip
        return out

    @property
    def _factors(self) -> tuple[Array, Array]:
        return self._left, self._right
