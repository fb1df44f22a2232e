"""An array on the device that grows along its first axis at amortised constant cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._devices import cupy, namespace
from ..._typing import Array, Shape

__all__ = ["CudaGrowing", "write"]


def write(part: Any, items: Any) -> None:
    """Fill a contiguous part of an array on the device, from there or this process's memory."""
    if namespace(items) is np:
        # A small copy from ordinary memory is part of the command itself: it does not wait for
        # the device, and pinned memory would not make it faster.
        part.set(np.ascontiguousarray(items, part.dtype))
    else:
        part[...] = items


class CudaGrowing:
    """A buffer on the device with spare items at its end; ``data`` is the part in use.

    Longer arrays share the buffer while it has spare items, so only the longest may be extended.

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

    @classmethod
    def holding(cls, buffer: Any, size: int | None = None) -> CudaGrowing:
        """Return an array of the first ``size`` items of a buffer (or all), in its memory."""
        array = cls.__new__(cls)
        array.buffer, array._size = buffer, len(buffer) if size is None else size
        return array

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

    def lengthened(self, n: int) -> tuple[CudaGrowing, Any]:
        """Return an array with n more items, and those: 0, or what was written there before."""
        old, size, buffer = self._size, self._size + n, self.buffer
        if size > len(buffer):
            # Zeros, because the padding of rows must be 0.
            buffer = cupy().zeros((max(size, 2 * old), *buffer.shape[1:]), buffer.dtype)
            buffer[:old] = self.data
        return CudaGrowing.holding(buffer, size), buffer[old:size]

    def extended(self, items: Any) -> CudaGrowing:
        """Return an array with more items at the end; this one does not change."""
        longer, new = self.lengthened(len(items))
        if len(items):
            write(new, items)
        return longer

    def kept(self, mask: Array) -> CudaGrowing:
        """Return the items where ``mask`` (in this process's memory) is True."""
        return CudaGrowing.holding(self.data[cupy().asarray(np.flatnonzero(mask))])

    def astype(self, dtype: Any) -> CudaGrowing:
        """Return a copy with numbers of another type."""
        return CudaGrowing.holding(self.data.astype(dtype))
