"""A matrix held as low-rank factors on a GPU."""

from __future__ import annotations

from typing import Any

import cupy as cp

from ..._devices import to_host
from ..._typing import Array
from ...iterates import LowRank
from .entry_kernels import kernels

__all__ = ["CudaLowRank"]


class CudaLowRank(LowRank):
    """A :class:`~onlinefw.iterates.LowRank` whose factors are CuPy arrays.

    ``dense`` and ``entries`` return numpy arrays all the same.
    """

    _xp: Any = cp

    def at(self, rows: Array, cols: Array) -> Array:
        """Return theta at indices that have been checked, as a numpy array."""
        indices = (cp.asarray(index.astype("u4")) for index in (rows, cols))
        return to_host(self.at_device(*indices))

    def at_device(self, rows: Array, cols: Array) -> Array:
        """Return theta on the device, at indices that are there (unsigned, 32 bit)."""
        n, k = rows.size, self.n_atoms
        out = cp.zeros(n, self.dtype)
        if k:
            weights = cp.asarray(self.weights.astype(self.dtype))
            run = kernels(self.dtype.name)
            run.factor_entries(32 * n, n, rows, cols, *self.device_factors, weights, k, out)
        return out

    def _set_columns(self, left: Array, right: Array, k: int, u: Array, v: Array) -> None:
        u, v = (cp.ascontiguousarray(cp.asarray(x), dtype=float) for x in (u, v))
        size = self.dtype.itemsize
        factors = left, left.strides[0] // size, right, right.strides[0] // size
        kernels(self.dtype.name).set_columns(u.size + v.size, u.size, v.size, u, v, *factors, k)

    @property
    def device_factors(self) -> tuple[Array, int, Array, int]:
        """Left and right factor, each with the distance between its rows."""
        size, held = self.dtype.itemsize, self._held
        left, right = held.left, held.right
        return left, left.strides[0] // size, right, right.strides[0] // size
