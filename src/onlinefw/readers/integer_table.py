"""Integers to indices: a hash table whose every step is done for a whole array at once."""

from __future__ import annotations

import numpy as np

from .._typing import Array

__all__ = ["IntegerTable"]

#: Fibonacci hashing: 2^64 / golden ratio spreads runs of integers evenly.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class IntegerTable:
    """Different integers in order, each with its index 0, 1, 2, ...

    Open addressing with linear probing, at most half full, so that few steps are needed.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.readers.integer_table import IntegerTable
    >>> table = IntegerTable()
    >>> table.append(np.array([50, -3]))
    >>> table.indices(np.array([-3, 7, 50]))
    array([ 1, -1,  0])
    """

    def __init__(self) -> None:
        self._n = 0
        self._bits = 4
        self._keys = np.zeros(1 << self._bits, dtype=np.int64)
        self._indices = np.full(1 << self._bits, -1, dtype=np.int64)
        # Capacity doubles, so that a chunk at a time costs no more than all at once.
        self._integers = np.empty(16, dtype=np.int64)

    def __len__(self) -> int:
        return self._n

    @property
    def integers(self) -> Array:
        """All of them, in order."""
        return self._integers[: self._n]

    def indices(self, integers: Array) -> Array:
        """Return the index of each integer; -1 for those that are not in the table."""
        slots = self._first_slots(integers)
        found = self._indices[slots]
        searching = np.flatnonzero((found >= 0) & (self._keys[slots] != integers))
        slots = slots[searching]
        while len(searching):
            slots = (slots + 1) & (len(self._keys) - 1)
            here = self._indices[slots]
            found[searching] = here
            again = (here >= 0) & (self._keys[slots] != integers[searching])
            slots, searching = slots[again], searching[again]
        return found

    def append(self, integers: Array) -> None:
        """Add integers that differ from each other and from those in the table."""
        n = self._n + len(integers)
        if n > len(self._integers):
            grown = np.empty(max(n, 2 * len(self._integers)), dtype=np.int64)
            grown[: self._n] = self.integers
            self._integers = grown
        self._integers[self._n : n] = integers
        first, self._n = self._n, n
        if 2 * n > len(self._keys):
            self._bits = int(2 * n - 1).bit_length()
            self._keys = np.zeros(1 << self._bits, dtype=np.int64)
            self._indices = np.full(1 << self._bits, -1, dtype=np.int64)
            first = 0
        self._insert(np.arange(first, n))

    def _insert(self, indices: Array) -> None:
        slots = self._first_slots(self._integers[indices])
        while len(indices):
            free = self._indices[slots] < 0
            # Where several want one slot, one of them gets it and the others go on.
            self._indices[slots[free]] = indices[free]
            going_on = self._indices[slots] != indices
            inserted = ~going_on
            self._keys[slots[inserted]] = self._integers[indices[inserted]]
            indices = indices[going_on]
            slots = (slots[going_on] + 1) & (len(self._keys) - 1)

    def _first_slots(self, integers: Array) -> Array:
        spread = integers.astype(np.int64, copy=False).view(np.uint64) * _SPREAD
        return (spread >> np.uint64(64 - self._bits)).astype(np.int64)
