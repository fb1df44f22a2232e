"""An array that grows along its first axis at amortised constant cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ._typing import Array

__all__ = ["GrowingArray"]


class GrowingArray:
    """A buffer that doubles when it is full; ``data`` is a view of the part in use.

    Examples
    --------
    >>> from onlinefw._growing import GrowingArray
    >>> a = GrowingArray((2,))
    >>> a.append([[1.0, 2.0], [3.0, 4.0]])
    >>> a.data
    array([[1., 2.],
           [3., 4.]])
    """

    def __init__(self, item_shape: tuple[int, ...] = (), dtype: DTypeLike = float) -> None:
        self._buffer = np.empty((0, *item_shape), dtype=dtype)
        self._size = 0

    @classmethod
    def holding(cls, items: Array) -> GrowingArray:
        """Return an array that starts with these items, in their own memory."""
        array = cls()
        array._buffer, array._size = items, len(items)
        return array

    def __len__(self) -> int:
        return self._size

    @property
    def data(self) -> Array:
        """The part in use, as a view."""
        return self._buffer[: self._size]

    def lengthen(self, size: int) -> None:
        """Make room for ``size`` items; what the new ones are is up to the caller."""
        if size > len(self._buffer):
            # Spare room is no memory before it is used.
            grown = np.empty(
                (max(size, 2 * self._size), *self._buffer.shape[1:]), self._buffer.dtype
            )
            grown[: self._size] = self.data
            self._buffer = grown
        self._size = size

    def append(self, items: Array | Sequence[float] | Sequence[Sequence[float]]) -> None:
        """Add items at the end."""
        items = np.asarray(items, dtype=self._buffer.dtype)
        before = self._size
        self.lengthen(before + len(items))
        self._buffer[before : self._size] = items

    def extended(self, items: Any) -> GrowingArray:
        """Return an array with more items at the end; this one stays what it is.

        Both share memory where there is room, so only the newest may be extended again.
        """
        items = np.asarray(items, dtype=self._buffer.dtype)
        buffer, before, size = self._buffer, self._size, self._size + len(items)
        if size > len(buffer):
            buffer = np.empty((max(size, 2 * before), *buffer.shape[1:]), buffer.dtype)
            buffer[:before] = self.data
        buffer[before:size] = items
        longer = GrowingArray.__new__(GrowingArray)
        longer._buffer, longer._size = buffer, size
        return longer

    def kept(self, mask: Array) -> GrowingArray:
        """Return the items where ``mask`` is True, in memory of their own."""
        return GrowingArray.holding(self.data[mask])

    def swap_remove(self, k: int) -> None:
        """Remove item k by putting the last one in its place."""
        self._size -= 1
        self._buffer[k] = self._buffer[self._size]

    def drop_first(self, n: int) -> None:
        """Remove the first n items."""
        rest = self._buffer[n : self._size].copy()
        self._size = len(rest)
        self._buffer[: self._size] = rest

    def keep(self, mask: Array) -> None:
        """Remove the items where ``mask`` is False, and give their memory back."""
        self._buffer = self.data[mask]
        self._size = len(self._buffer)

    def astype(self, dtype: DTypeLike) -> GrowingArray:
        """Return a copy with numbers of another type."""
        copy = GrowingArray(self._buffer.shape[1:], dtype)
        copy.append(self.data)
        return copy

    def __getstate__(self) -> dict[str, Any]:
        # Without the spare room, which holds whatever was in that memory before.
        return {"data": self.data}

    def __setstate__(self, state: dict[str, Any]) -> None:
        data = state["data"]
        self._buffer = data if data.flags.owndata and data.flags.writeable else data.copy()
        self._size = len(self._buffer)

    def clear(self) -> None:
        """Forget the items, keep the buffer."""
        self._size = 0
