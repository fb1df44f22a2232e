"""An array on the device that grows along its first axis at amortised constant cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._devices import cupy, namespace
from .._typing import Array, Shape

__all__ = ["CudaGrowing"]


class CudaGrowing:
    """A buffer on the device that doubles when it is full; ``data`` is the part in use.

    Parameters
    ----------
    shape : tuple of int
        Of one item.
    dtype : dtype
        Of the numbers.
    """

    def __init__(self, shape: Shape = (), dtype: Any = float) -> None:
        self.buffer = cupy().zeros((0, *shape), dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def data(self) -> Any:
        """The part in use, as a view."""
        return self.buffer[: self._size]

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        return self.buffer.dtype

    def lengthen(self, size: int) -> Any:
        """Make room for ``size`` items; return the new ones, which are 0 unless used before."""
        before = self._size
        if size > len(self.buffer):
            # Zeros, so that what pads short items is 0.
            shape = (max(size, 2 * before), *self.buffer.shape[1:])
            grown = cupy().zeros(shape, self.buffer.dtype)
            grown[:before] = self.data
            self.buffer = grown
        self._size = size
        return self.buffer[before:size]

    def append(self, items: Any) -> None:
        """Add items at the end, from the device or from this process's memory."""
        if len(items) == 0:
            return
        new = self.lengthen(self._size + len(items))
        if namespace(items) is np:
            # A small copy from ordinary memory goes along with the command itself, so it neither
            # waits for the device nor gains from pinned memory.
            new.set(np.ascontiguousarray(items, self.dtype))
        else:
            new[...] = items

    def keep(self, mask: Array) -> None:
        """Remove the items where ``mask`` (in this process's memory) is False."""
        self.hold(self.data[cupy().asarray(np.flatnonzero(mask))])

    def zero(self, indices: Array) -> None:
        """Set some items to 0."""
        self.buffer[cupy().asarray(indices)] = 0

    def hold(self, items: Any) -> None:
        """Become these items, in their own memory on the device."""
        self.buffer, self._size = items, len(items)

    def astype(self, dtype: Any) -> CudaGrowing:
        """Return a copy with numbers of another type."""
        copy = CudaGrowing(self.buffer.shape[1:], dtype)
        copy.hold(self.data.astype(dtype))
        return copy
