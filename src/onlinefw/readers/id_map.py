"""Ids of any kind to 0, 1, 2, ... in the order in which they first appear."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import repeat
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, State
from .._validation import check_unmasked
from .cells import as_text, id_cell, ids_from_cells

__all__ = ["IdMap"]

_HALF = np.uint64(32)


class IntegerTable:
    """Different integers in order, each with its index 0, 1, 2, ...

    Open addressing with linear probing, at most half full, so that few steps are needed. Every
    table hashes by two random odd factors of its own, so that nobody can choose integers that meet
    in one place; indices do not depend on them.
    """

    def __init__(self) -> None:
        self._n = 0
        self._factors = np.frombuffer(os.urandom(16), np.uint64) | np.uint64(1)
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
        spread = integers.astype(np.int64, copy=False).view(np.uint64) * self._factors[0]
        spread ^= spread >> _HALF  # the first factor alone leaves evenly spaced integers in clumps
        spread *= self._factors[1]
        return (spread >> np.uint64(64 - self._bits)).astype(np.int64)


class IdMap:
    """Ids to indices 0, 1, 2, ... in the order of their first appearance.

    An id is an integer or text; 7 and "7" are the same id, "007" is another. While all of them are
    integers they are kept as such.

    Examples
    --------
    >>> from onlinefw.readers import IdMap
    >>> users = IdMap()
    >>> users.add([196, 186, 196, 22])
    array([0, 1, 0, 2])
    >>> users.lookup([22, 1000])
    array([ 2, -1])
    >>> users.add(["alice", "22"]), users.ids.tolist()
    (array([3, 2]), ['196', '186', '22', 'alice'])
    """

    def __init__(self) -> None:
        # One or the other: integers until the first text comes.
        self._integers: IntegerTable | None = IntegerTable()
        self._indices: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._indices) if self._integers is None else len(self._integers)

    @property
    def ids(self) -> Array:
        """The ids in order: int64, or text (dtype object) if any of them is text."""
        if self._integers is not None:
            return self._integers.integers.copy()
        out = np.empty(len(self), dtype=object)
        out[:] = list(self._indices)
        return out

    def lookup(self, ids: ArrayLike) -> Array:
        """Return the indices of ids; -1 for ids that are not in the map."""
        given = _as_ids(ids)
        if self._integers is None:
            return self._text_indices(as_text(given))
        if given.dtype == object:
            return np.array([self._of_text(text) for text in given], dtype=np.int64)
        return self._integers.indices(given)

    def add(self, ids: ArrayLike) -> Array:
        """Return the indices of ids; new ids get the next indices."""
        given = _as_ids(ids)
        if given.dtype == object:
            self._become_text()
        if self._integers is None:
            return self._add_texts(as_text(given))
        indices = self._integers.indices(given)
        unknown = np.flatnonzero(indices < 0)
        if len(unknown):
            different, first = np.unique(given[unknown], return_index=True)
            self._integers.append(different[np.argsort(first)])
            indices[unknown] = self._integers.indices(given[unknown])
        return indices

    def state_dict(self) -> State:
        """The ids as plain arrays: int64, or UTF-8 bytes with the end of each id."""
        if self._integers is not None:
            return {"kind": "int", "ids": self.ids}
        encoded = [text.encode("utf-8") for text in self._indices]
        ends = np.cumsum([len(e) for e in encoded], dtype=np.int64)
        return {"kind": "str", "utf8": np.frombuffer(b"".join(encoded), np.uint8), "ends": ends}

    @classmethod
    def from_state(cls, state: State) -> IdMap:
        """Make the map again from its state."""
        self = cls()
        if state["kind"] == "int":
            self.add(np.asarray(state["ids"], dtype=np.int64))
            expected = len(state["ids"])
        else:
            data = np.asarray(state["utf8"], dtype=np.uint8).tobytes()
            ends = np.asarray(state["ends"], dtype=np.int64).tolist()
            self._become_text()
            pairs = zip([0, *ends[:-1]], ends, strict=True) if ends else ()
            for begin, end in pairs:
                self._indices.setdefault(data[begin:end].decode("utf-8"), len(self._indices))
            expected = len(ends)
        if len(self) != expected:
            raise ValueError("the state of an IdMap holds an id twice")
        return self

    # Pickles hold plain arrays, as checkpoints do, and no hash table.
    __getstate__ = state_dict

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(self.from_state(state).__dict__)

    def _of_text(self, text: str) -> int:
        assert self._integers is not None
        found = ids_from_cells([_cell(text)])
        return -1 if found.dtype == object else int(self._integers.indices(found)[0])

    def _become_text(self) -> None:
        if self._integers is not None:
            texts = map(str, self._integers.integers.tolist())
            self._indices = {text: index for index, text in enumerate(texts)}
            self._integers = None

    def _text_indices(self, texts: Array) -> Array:
        given = texts.tolist()
        return np.fromiter(map(self._indices.get, given, repeat(-1)), np.int64, len(given))

    def _add_texts(self, texts: Array) -> Array:
        indices = self._text_indices(texts)
        unknown = np.flatnonzero(indices < 0)
        known = self._indices
        # len(known) is taken before the text is put in, so it is the next index.
        indices[unknown] = [known.setdefault(t, len(known)) for t in texts[unknown].tolist()]
        return indices


def _as_ids(ids: ArrayLike) -> Array:
    """Return ids as int64 or text; integers of another type or among text are integers."""
    if not isinstance(ids, np.ndarray):
        # Not through an array: numpy's own text drops what it takes for padding.
        return ids_from_cells([_cell(i) for i in cast(Iterable[Any], ids)])
    check_unmasked("ids", ids)
    given = ids
    if given.ndim != 1:
        raise ValueError(f"ids must be one-dimensional, not of shape {given.shape}")
    if given.dtype == np.int64 or (given.dtype.kind in "iu" and given.dtype != np.uint64):
        return given.astype(np.int64, copy=False)
    if given.dtype.kind not in "OUSu" and len(given):
        raise TypeError(f"ids must be integers or text, not {given.dtype}")
    if given.dtype == object and set(map(type, given.tolist())) <= {str}:
        return given
    return ids_from_cells([_cell(i) for i in given.tolist()])


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        raise TypeError(f"an id must be an integer or text, not {value!r}")
    cell, reason, problem = id_cell(value.decode() if isinstance(value, bytes) else value)
    if reason:
        raise ValueError(f"an id must be an integer or text: {problem}")
    return cell
