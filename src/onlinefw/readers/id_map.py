"""Ids of any kind to 0, 1, 2, ... in the order in which they first appear."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, State
from .cells import as_text, id_cell, ids_from_cells

__all__ = ["IdMap"]

#: Integers below this are looked up in a table; most ids are such.
_TABLE_LIMIT = 1 << 24


class IdMap:
    """Ids to places 0, 1, 2, ... in the order of their first appearance.

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
        self._n = 0
        # Capacity doubles, so that adding ids one chunk at a time costs no more than at once.
        self._integers: Array | None = np.empty(16, dtype=np.int64)
        self._texts: list[str] = []
        self._table = np.full(16, -1, dtype=np.int64)
        self._places: dict[Any, int] = {}

    def __len__(self) -> int:
        return self._n

    @property
    def ids(self) -> Array:
        """The ids in order: int64, or text (dtype object) if any of them is text."""
        if self._integers is not None:
            return self._integers[: self._n].copy()
        out = np.empty(self._n, dtype=object)
        out[:] = self._texts
        return out

    def lookup(self, ids: ArrayLike) -> Array:
        """Their places; -1 for those that are not there."""
        given = _as_ids(ids)
        if self._integers is None:
            return self._text_places(as_text(given))
        if given.dtype == object:
            return np.array([self._of_text(text) for text in given], dtype=np.int64)
        return self._integer_places(given)

    def add(self, ids: ArrayLike) -> Array:
        """Their places; those that are not there get the next ones."""
        given = _as_ids(ids)
        if given.dtype == object:
            self._become_text()
        if self._integers is None:
            return self._add_texts(as_text(given))
        places = self._integer_places(given)
        unknown = places < 0
        if unknown.any():
            self._add_integers(given[unknown])
            places[unknown] = self._integer_places(given[unknown])
        return places

    def state_dict(self) -> State:
        """The ids as plain arrays: int64, or UTF-8 bytes with the end of each id."""
        if self._integers is not None:
            return {"kind": "int", "ids": self.ids}
        encoded = [text.encode("utf-8") for text in self._texts]
        ends = np.cumsum([len(e) for e in encoded], dtype=np.int64)
        return {"kind": "str", "utf8": np.frombuffer(b"".join(encoded), np.uint8), "ends": ends}

    @classmethod
    def from_state(cls, state: State) -> IdMap:
        """The map whose state this is."""
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
                self._place(data[begin:end].decode("utf-8"))
            expected = len(ends)
        if len(self) != expected:
            raise ValueError("the state of an IdMap holds an id twice")
        return self

    def _integer_places(self, ids: Array) -> Array:
        small = (ids >= 0) & (ids < len(self._table))
        if small.all():
            return self._table[ids]
        places = np.full(len(ids), -1, dtype=np.int64)
        places[small] = self._table[ids[small]]
        if self._places:
            rest = ids[~small].tolist()
            found = map(self._places.get, rest, repeat(-1))
            places[~small] = np.fromiter(found, np.int64, len(rest))
        return places

    def _of_text(self, text: str) -> int:
        found = ids_from_cells([_cell(text)])
        return -1 if found.dtype == object else int(self._integer_places(found)[0])

    def _add_integers(self, ids: Array) -> None:
        assert self._integers is not None
        different, first = np.unique(ids, return_index=True)
        new = different[np.argsort(first)]
        n = self._n + len(new)
        if n > len(self._integers):
            grown = np.empty(max(n, 2 * len(self._integers)), dtype=np.int64)
            grown[: self._n] = self._integers[: self._n]
            self._integers = grown
        self._integers[self._n : n] = new
        places = np.arange(self._n, n)
        small = (new >= 0) & (new < _TABLE_LIMIT)
        if small.any():
            self._grow_table(int(new[small].max()) + 1)
            self._table[new[small]] = places[small]
        self._places.update(zip(new[~small].tolist(), places[~small].tolist(), strict=True))
        self._n = n

    def _grow_table(self, size: int) -> None:
        if size > len(self._table):
            grown = np.full(min(max(size, 2 * len(self._table)), _TABLE_LIMIT), -1, np.int64)
            grown[: len(self._table)] = self._table
            self._table = grown

    def _become_text(self) -> None:
        if self._integers is None:
            return
        self._texts = [str(i) for i in self._integers[: self._n].tolist()]
        self._places = {text: place for place, text in enumerate(self._texts)}
        self._integers = None
        self._table = self._table[:0]

    def _text_places(self, texts: Array) -> Array:
        given = texts.tolist()
        return np.fromiter(map(self._places.get, given, repeat(-1)), np.int64, len(given))

    def _add_texts(self, texts: Array) -> Array:
        places = self._text_places(texts)
        unknown = np.flatnonzero(places < 0)
        places[unknown] = [self._place(text) for text in texts[unknown].tolist()]
        return places

    def _place(self, text: str) -> int:
        place = self._places.setdefault(text, self._n)
        if place == self._n:
            self._texts.append(text)
            self._n += 1
        return place


def _as_ids(ids: ArrayLike) -> Array:
    """Int64, or text; integers of another dtype or among text are what they look like."""
    if not isinstance(ids, np.ndarray):
        # Not through an array: numpy's own text drops what it takes for padding.
        return ids_from_cells([_cell(i) for i in cast(Iterable[Any], ids)])
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
