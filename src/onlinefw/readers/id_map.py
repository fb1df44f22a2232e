"""Ids of any kind to 0, 1, 2, ... in the order in which they first appear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, State
from .._validation import check_unmasked
from .cells import as_text, id_cell, ids_from_cells
from .id_tables import IntegerTable, Table, TextTable, table_from_state

__all__ = ["IdMap"]


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
        # Integers until the first text comes.
        self._table: Table = IntegerTable()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def ids(self) -> Array:
        """The ids in order: int64, or text (dtype object) if any of them is text."""
        return self._table.ids

    def lookup(self, ids: ArrayLike) -> Array:
        """Return the indices of ids; -1 for ids that are not in the map."""
        given = _as_ids(ids)
        if isinstance(self._table, TextTable):
            return self._table.indices(as_text(given))
        if given.dtype == object:
            return np.array([self._of_text(text) for text in given], dtype=np.int64)
        return self._table.indices(given)

    def add(self, ids: ArrayLike) -> Array:
        """Return the indices of ids; new ids get the next indices."""
        given = _as_ids(ids)
        if given.dtype == object:
            self._become_text()
        if isinstance(self._table, TextTable):
            given = as_text(given)
        indices = self._table.indices(given)
        unknown = np.flatnonzero(indices < 0)
        if len(unknown):
            self._table.append(_different(given[unknown]))
            indices[unknown] = self._table.indices(given[unknown])
        return indices

    def state_dict(self) -> State:
        """The ids as plain arrays: int64, or UTF-8 bytes with the end of each id."""
        return self._table.state_dict()

    @classmethod
    def from_state(cls, state: State) -> IdMap:
        """Make the map again from its state."""
        self = cls()
        self._table = table_from_state(state)
        return self

    # Pickles hold plain arrays, as checkpoints do, and no hash table.
    __getstate__ = state_dict

    def __setstate__(self, state: State) -> None:
        self._table = table_from_state(state)

    def _of_text(self, text: str) -> int:
        found = ids_from_cells([_cell(text)])
        return -1 if found.dtype == object else int(self._table.indices(found)[0])

    def _become_text(self) -> None:
        if isinstance(self._table, IntegerTable):
            texts = list(map(str, self._table.ids.tolist()))
            self._table = TextTable()
            self._table.append(texts)


def _different(ids: Array) -> Any:
    """Return the different ids, in the order of their first appearance."""
    if ids.dtype == object:
        return list(dict.fromkeys(ids.tolist()))
    different, first = np.unique(ids, return_index=True)
    return different[np.argsort(first)]


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
