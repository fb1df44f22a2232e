"""An array that grows along its first axis at amortised constant cost."""

from __future__ import annotations

from typing import Any, Self

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

    data: Array

    def __init__(self, item_shape: tuple[int, ...] = (), dtype: DTypeLike = float) -> None:
        self._hold(np.empty((0, *item_shape), dtype=dtype), 0)

    def _hold(self, buffer: Array, size: int) -> None:
        self._buffer, self.data = buffer, buffer[:size]

    @classmethod
    def holding(cls, items: Array) -> Self:
        """Return an array that starts with these items, in their own memory."""
        array = cls.__new__(cls)
        array._hold(items, len(items))
        return array

    def __len__(self) -> int:
        return len(self.data)

    def _buffer_for(self, size: int) -> Array:
        """Return the buffer, or a longer copy of it if ``size`` items do not fit."""
        if size <= len(self._buffer):
            return self._buffer
        # Spare space takes no memory before it is written to.
        shape = (max(size, 2 * len(self.data)), *self._buffer.shape[1:])
        grown = np.empty(shape, self._buffer.dtype)
        grown[: len(self.data)] = self.data
        return grown

    def extended(self, items: Any) -> Self:
        """Return an array with more items at the end; this one stays what it is.

        Both share memory where the items fit, so only the newest may be extended again.
        """
        before = len(self.data)
        size = before + len(items)
        buffer = self._buffer_for(size)
        buffer[before:size] = items
        longer = object.__new__(type(self))
        longer._buffer, longer.data = buffer, buffer[:size]
        return longer

    def append(self, items: Any) -> None:
        """Add items at the end, all of them or (where memory is missing) none."""
        longer = self.extended(items)
        self._buffer, self.data = longer._buffer, longer.data

    def kept(self, mask: Array) -> Self:
        """Return the items where ``mask`` is True, in memory of their own."""
        return self.holding(self.data[mask])

    def swap_remove(self, k: int) -> None:
        """Remove item k by putting the last one in its place."""
        last = len(self.data) - 1
        self._buffer[k] = self._buffer[last]
        self.data = self._buffer[:last]

    def astype(self, dtype: DTypeLike) -> Self:
        """Return a copy with numbers of another type."""
        return self.holding(self.data.astype(dtype))

    def __getstate__(self) -> dict[str, Any]:
        # Without the spare space, which holds whatever was in that memory before.
        return {"data": self.data}

    def __setstate__(self, state: dict[str, Any]) -> None:
        data = state["data"]
        data = data if data.flags.owndata and data.flags.writeable else data.copy()
        self._hold(data, len(data))

    def clear(self) -> None:
        """Forget the items, keep the buffer."""
        self.data = self._buffer[:0]
