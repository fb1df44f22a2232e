"""Different ids in order, each with its index: one table for integers, one for text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np

from .._state import check_state, texts_from_state, texts_state
from .._typing import Array, State

__all__ = ["IntegerTable", "Table", "TextTable", "as_objects", "table_from_state"]

_HALF = np.uint64(32)
_WORD = 2**64 - 1


def as_objects(values: Iterable[Any]) -> Array:
    """Return values as an array of objects: numpy's own text drops what it takes for padding."""
    listed = list(values)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


class IntegerTable:
    """Different integers in order, each with its index 0, 1, 2, ...

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.readers.id_tables import IntegerTable
    >>> table = IntegerTable()
    >>> table.append(np.array([196, 22]))
    >>> table.indices(np.array([22, 7])), table.get(196), table.ids
    (array([ 1, -1]), 0, array([196,  22]))

    Notes
    -----
    Open addressing with linear probing, at most half full, so that few steps are needed. Every
    table hashes by two random odd factors of its own, so that nobody can choose integers that meet
    in one place; indices do not depend on them.
    """

    def __init__(self) -> None:
        self._n = 0
        self._forgotten: list[int] = []
        self._factors = np.frombuffer(os.urandom(16), np.uint64) | np.uint64(1)
        self._first, self._second = self._factors.tolist()
        self._bits = 4
        self._keys = np.zeros(1 << self._bits, dtype=np.int64)
        self._indices = np.full(1 << self._bits, -1, dtype=np.int64)
        # Capacity doubles, so that a chunk at a time costs no more than all at once.
        self._integers = np.empty(16, dtype=np.int64)

    def __len__(self) -> int:
        return self._n

    @property
    def ids(self) -> Array:
        """All of them, in order; None for those that were forgotten."""
        ids = self._integers[: self._n].copy()
        if not self._forgotten:
            return ids
        with_gaps = as_objects(ids.tolist())
        with_gaps[self._forgotten] = None
        return with_gaps

    def take(self, indices: Any) -> Array:
        """Return those with these indices."""
        return self._integers[: self._n][indices]

    def get(self, integer: Any) -> int:
        """Return the index of one integer; -1 for what is not in the table."""
        if type(integer) is not int:
            return -1
        slot = self._slot(integer)
        while (index := self._indices.item(slot)) >= 0 and self._keys.item(slot) != integer:
            slot = (slot + 1) & (len(self._keys) - 1)
        return index

    def _slot(self, integer: int) -> int:
        """Return where the search for an integer begins."""
        spread = (integer * self._first & _WORD) ^ (integer * self._first & _WORD) >> 32
        return (spread * self._second & _WORD) >> (64 - self._bits)

    def forget(self, index: int) -> None:
        """Remove the integer with this index, which no other will get."""
        slot, mask = self._slot(int(self._integers[index])), len(self._keys) - 1
        while self._indices.item(slot) != index:
            slot = (slot + 1) & mask
        # Those that had to go on because of it move up, so that they are found.
        hole = slot
        while self._indices.item(slot := (slot + 1) & mask) >= 0:
            home = self._slot(self._keys.item(slot))
            if (slot - home) & mask >= (slot - hole) & mask:
                self._keys[hole], self._indices[hole] = self._keys[slot], self._indices[slot]
                hole = slot
        self._keys[hole], self._indices[hole], self._integers[index] = 0, -1, 0
        self._forgotten.append(index)

    def state_dict(self) -> State:
        """Return the integers as a plain array; 0 for those forgotten, whose indices are beside."""
        state = {"kind": "int", "ids": self._integers[: self._n].copy()}
        return _with_forgotten(state, self._forgotten)

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
            grown[: self._n] = self._integers[: self._n]
            self._integers = grown
        self._integers[self._n : n] = integers
        first, self._n = self._n, n
        if 2 * n > len(self._keys):
            self._bits = int(2 * n - 1).bit_length()
            self._keys = np.zeros(1 << self._bits, dtype=np.int64)
            self._indices = np.full(1 << self._bits, -1, dtype=np.int64)
            first = 0
        self._insert(np.setdiff1d(np.arange(first, n), self._forgotten))

    def begin_with(self, integers: Array, forgotten: list[int]) -> None:
        """Add the first integers, of which some were forgotten."""
        self._forgotten = forgotten
        self.append(integers)

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
        spread = integers.astype(np.int64, copy=False).view(np.uint64) * self._factors[0]
        spread ^= spread >> _HALF  # the first factor alone leaves evenly spaced integers in clumps
        spread *= self._factors[1]
        return (spread >> np.uint64(64 - self._bits)).astype(np.int64)


class TextTable:
    """Different texts in order, each with its index 0, 1, 2, ...

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.readers.id_tables import TextTable
    >>> table = TextTable()
    >>> table.append(["ann", "bob"])
    >>> table.indices(["bob", "eve"]), table.get("ann"), table.ids.tolist()
    (array([ 1, -1]), 0, ['ann', 'bob'])
    """

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}
        self._texts: list[Any] = []
        self._forgotten: list[int] = []

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def ids(self) -> Array:
        """All of them, in order; None for those that were forgotten."""
        return as_objects(self._texts)

    def take(self, indices: Any) -> Array:
        """Return those with these indices."""
        texts = self._texts
        return as_objects(texts[k] for k in np.asarray(indices).tolist())

    def get(self, text: Any) -> int:
        """Return the index of one text; -1 for what is not in the table."""
        return self._indices.get(text, -1)

    def indices(self, texts: Any) -> Array:
        """Return the index of each text; -1 for those that are not in the table."""
        return np.fromiter(map(self._indices.get, texts, repeat(-1)), np.int64, len(texts))

    def append(self, texts: Any) -> None:
        """Add texts that differ from each other and from those in the table."""
        first = len(self._texts)
        self._texts.extend(texts)
        new = self._texts[first:]
        self._indices.update(zip(new, range(first, first + len(new)), strict=True))

    def begin_with(self, texts: list[str], forgotten: list[int]) -> None:
        """Add the first texts, of which some were forgotten."""
        self.append(texts)
        gone = set(forgotten)
        if gone:
            self._texts = [None if k in gone else text for k, text in enumerate(texts)]
            named = enumerate(self._texts)
            self._indices = {text: k for k, text in named if text is not None}
            self._forgotten = forgotten

    def forget(self, index: int) -> None:
        """Remove the text with this index, which no other will get."""
        del self._indices[self._texts[index]]
        self._texts[index] = None
        self._forgotten.append(index)

    def state_dict(self) -> State:
        """Return the texts as UTF-8 bytes with the end of each; those forgotten are empty."""
        texts = texts_state(text or "" for text in self._texts)
        return _with_forgotten({"kind": "str", **texts}, self._forgotten)


Table = IntegerTable | TextTable


def table_from_state(state: State) -> Table:
    """Return the table that ``state_dict`` described.

    Examples
    --------
    >>> from onlinefw.readers.id_tables import TextTable, table_from_state
    >>> table = TextTable()
    >>> table.append(["ann", "bob"])
    >>> table_from_state(table.state_dict()).get("bob")
    1
    """
    check_state(state, "kind")
    forgotten = _forgotten(state)
    table: Table
    if state["kind"] == "int":
        check_state(state, "ids")
        table, ids = IntegerTable(), state["ids"]
        if not isinstance(ids, np.ndarray) or ids.dtype != np.int64 or ids.ndim != 1:
            raise ValueError("ids that are integers must be a one-dimensional array of int64")
        kept = np.delete(ids, forgotten[forgotten < ids.size])
        different = np.unique(kept).size
    elif state["kind"] == "str":
        table, ids = TextTable(), texts_from_state(state)
        kept = np.delete(as_objects(ids), forgotten[forgotten < len(ids)])
        different = len(set(kept.tolist()))
    else:
        raise ValueError(f"there are no ids of the kind {state['kind']!r:.40}")
    if different < len(ids) - forgotten.size:
        raise ValueError("the ids of a state hold an id twice")
    if forgotten.size and forgotten.max() >= len(ids):
        raise ValueError("more ids are forgotten than a state has")
    table.begin_with(ids, forgotten.tolist())
    return table


def _with_forgotten(state: State, forgotten: list[int]) -> State:
    """Return a state that says which ids are forgotten, if some are."""
    return {**state, "forgotten": np.array(sorted(forgotten))} if forgotten else state


def _forgotten(state: State) -> Array:
    """Return the indices of forgotten ids; most states have none."""
    forgotten = state.get("forgotten", np.zeros(0, np.int64))
    if not isinstance(forgotten, np.ndarray) or forgotten.dtype != np.int64 or forgotten.ndim != 1:
        raise ValueError("forgotten ids must be a one-dimensional array of int64")
    if (forgotten < 0).any() or np.unique(forgotten).size < forgotten.size:
        raise ValueError("forgotten ids must be different indices")
    return forgotten
