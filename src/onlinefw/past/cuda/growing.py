"""Arrays on the device that grow along their first axis at amortised constant cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..._devices import cupy, namespace
from ..._growing import GrowingArray
from ..._typing import Array, Shape
from ..columns import Columns

__all__ = ["CudaColumns", "CudaGrowing"]


def _write(part: Any, items: Any) -> None:
    """Fill a contiguous part of an array on the device, from there or this process's memory."""
    if namespace(items) is np:
        # A small copy from ordinary memory is part of the command itself: it does not wait for
        # the device, and pinned memory would not make it faster.
        part.set(np.ascontiguousarray(items, part.dtype))
    else:
        part[...] = items


class CudaGrowing(GrowingArray):
    """The same on the device."""

    def __init__(self, shape: Shape = (), dtype: Any = float) -> None:
        self._hold(cupy().zeros((0, *shape), dtype), 0)

    @property
    def buffer(self) -> Any:
        """The whole memory, with spare items at its end."""
        return self._buffer

    def lengthened(self, n: int) -> tuple[Self, Any]:
        """Return an array with n more items, and those: 0, or what was written there before."""
        old, size, buffer = len(self), len(self) + n, self._buffer
        if size > len(buffer):
            # Zeros, because the padding of rows must be 0.
            buffer = cupy().zeros((max(size, 2 * old), *buffer.shape[1:]), buffer.dtype)
            buffer[:old] = self.data
        longer = self.holding(buffer)
        longer._hold(buffer, size)
        return longer, buffer[old:size]

    def extended(self, items: Any) -> Self:
        longer, new = self.lengthened(len(items))
        if len(items):
            _write(new, items)
        return longer

    def kept(self, mask: Array) -> Self:
        return super().kept(cupy().asarray(np.flatnonzero(mask)))


class CudaColumns(Columns):
    """Columns on the device, to which items from this process's memory can be added as well."""

    __slots__ = ()

    @classmethod
    def empty(cls, dtypes: Sequence[Any], xp: Any = None) -> Columns:
        return super().empty(dtypes, cupy() if xp is None else xp)

    def extended(self, *values: Any) -> Columns:
        longer, new = self.lengthened(len(values[0]))
        if len(values[0]):
            for part, items in zip(new, values, strict=True):
                _write(part, items)
        return longer

    def kept(self, mask: Array) -> Columns:
        return super().kept(cupy().asarray(np.flatnonzero(mask)))
