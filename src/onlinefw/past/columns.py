"""Several arrays of one length that grow together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._devices import namespace
from .._typing import Array

__all__ = ["Columns"]


class Columns:
    """Arrays of one length, which never changes: to add items is to make other, longer columns.

    Longer columns share the memory of the shorter ones, whose buffers have spare items at the end.
    Whoever holds the shorter ones does not see what is written there, and replaces them by the
    longer ones in one assignment. So only the longest may be lengthened again.

    Parameters
    ----------
    buffers : sequence of arrays
        The memory: numpy or CuPy arrays.
    size : int
        How much of it is in use.

    Attributes
    ----------
    arrays : tuple of arrays
        The parts in use, as views.
    """

    __slots__ = ("_buffers", "_size", "arrays")

    def __init__(self, buffers: Sequence[Any], size: int) -> None:
        self._buffers, self._size = buffers, size
        arrays = []
        for buffer in buffers:
            arrays.append(buffer[:size])
        self.arrays = tuple(arrays)

    @classmethod
    def empty(cls, dtypes: Sequence[Any], xp: Any = np) -> Columns:
        """Return columns of length 0."""
        return cls([xp.empty(0, dtype) for dtype in dtypes], 0)

    def __len__(self) -> int:
        return self._size

    def _buffers_for(self, size: int) -> Sequence[Any]:
        if size <= len(self._buffers[0]):
            return self._buffers
        return [_grown(buffer, self._size, 2 * size) for buffer in self._buffers]

    def lengthened(self, n: int) -> tuple[Columns, list[Any]]:
        """Return columns with n more items, and views of these, which the caller fills."""
        old, size = self._size, self._size + n
        buffers = self._buffers_for(size)
        return type(self)(buffers, size), [buffer[old:size] for buffer in buffers]

    def extended(self, *values: Any) -> Columns:
        """Return columns with these items at the end."""
        old, size = self._size, self._size + len(values[0])
        buffers = self._buffers_for(size)
        for buffer, items in zip(buffers, values, strict=True):
            buffer[old:size] = items
        return Columns(buffers, size)

    def kept(self, mask: Array) -> Columns:
        """Return the items where ``mask`` is True, in memory of their own."""
        kept = [array[mask] for array in self.arrays]
        return type(self)(kept, len(kept[0]))

    def replaced(self, changed: dict[int, Array]) -> Columns:
        """Return columns of which some, by their number, are others of the same length."""
        arrays = [changed.get(k, array) for k, array in enumerate(self.arrays)]
        return type(self)(arrays, self._size)

    def chosen(self, numbers: Sequence[int]) -> Columns:
        """Return some of the columns, in this order."""
        return type(self)([self._buffers[k] for k in numbers], self._size)

    def without_first(self, n: int) -> Columns:
        """Return columns without the n first items, in memory of their own."""
        return type(self)([array[n:].copy() for array in self.arrays], self._size - n)


def _grown(buffer: Any, used: int, size: int) -> Any:
    # The system gives no memory to the spare items before they are written.
    grown = namespace(buffer).empty((size, *buffer.shape[1:]), buffer.dtype)
    grown[:used] = buffer[:used]
    return grown
