"""Whose the rows of a past are, so that they can be forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._growing import GrowingArray
from .._state import check_state, texts_from_state, texts_state
from .._typing import Array, State

__all__ = ["RowIds"]


class RowIds:
    """A number for every row held (-1: nobody's), and the id that has each number.

    Ids are whole numbers or text, one kind in a past. One that has no rows left is not kept.

    Parameters
    ----------
    n : int
        How many rows without ids there are so far.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.objectives.row_ids import RowIds
    >>> ids = RowIds(1)
    >>> ids.append(np.array(["ann", "bob", "ann"], dtype=object), 3)
    >>> ids.rows_of(["ann"])
    array([False,  True, False,  True])
    """

    def __init__(self, n: int = 0) -> None:
        self._rows = GrowingArray.holding(np.full(n, -1, np.int64))
        self._numbers: dict[Any, int] = {}

    @classmethod
    def of(cls, ids: Array) -> RowIds:
        """Return the ids of some rows."""
        found = cls()
        found.append(ids, len(ids))
        return found

    @property
    def all(self) -> Array:
        """The id of every row, as objects; None for a row of nobody."""
        ids = np.array([*self._numbers, None], dtype=object)  # the last one is for -1
        return ids[self._rows.data]

    @property
    def kind(self) -> type | None:
        """Of what kind the ids are, ``str`` or ``int``; None if there are none."""
        return next(map(type, self._numbers), None)

    def __contains__(self, one: Any) -> bool:
        return one in self._numbers

    def append(self, ids: Array | None, n: int) -> None:
        """Add n rows with their ids: objects, None for a row of nobody; or none has one."""
        if ids is None:
            self._rows.append(np.full(n, -1))
            return
        known = self._numbers
        # len(known) is taken before the id is put in, so it is the next number.
        own = [-1 if one is None else known.setdefault(one, len(known)) for one in ids.tolist()]
        self._rows.append(np.array(own, np.int64))

    def rows_of(self, ids: Iterable[Any]) -> Array:
        """Return a mask of the rows that these ids have, if any."""
        numbers = [self._numbers[one] for one in ids if one in self._numbers]
        return np.isin(self._rows.data, numbers)

    def keep(self, mask: Array) -> None:
        """Remove the rows where ``mask`` is False, and the ids that have no others."""
        rows = self._rows.data[mask]
        used = np.zeros(len(self._numbers) + 1, bool)
        used[rows] = True  # the last one is for -1
        left = [one for one, k in self._numbers.items() if used[k]]
        number = np.append(np.cumsum(used[:-1]) - 1, -1)
        self._rows = GrowingArray.holding(number[rows])
        self._numbers = {one: k for k, one in enumerate(left)}

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return the numbers of all rows, and the ids in the order of theirs."""
        ids = list(self._numbers)
        text = self.kind is str
        of = {"ids": texts_state(ids) if text else np.array(ids, np.int64)}
        return {"rows": self._rows.data.copy(), "kind": "str" if text else "int", **of}

    @classmethod
    def from_state(cls, state: State, n: int) -> RowIds:
        """Make the ids that ``state_dict`` described, of so many rows."""
        check_state(state, "rows", "kind", "ids")
        rows, ids = np.array(state["rows"], np.int64), state["ids"]
        if state["kind"] == "str":
            ids = texts_from_state(ids)
        elif isinstance(ids, np.ndarray) and ids.dtype == np.int64 and ids.ndim == 1:
            ids = ids.tolist()
        else:
            raise ValueError("the ids of rows must be text or whole numbers")
        numbers = {one: k for k, one in enumerate(ids)}
        if len(numbers) < len(ids) or rows.shape != (n,):
            raise ValueError(f"the ids of a state do not fit its {n} rows")
        if rows.size and not -1 <= rows.min() <= rows.max() < len(ids):
            raise ValueError("a row of the state has an id that is not there")
        found = cls()
        found._rows, found._numbers = GrowingArray.holding(rows), numbers
        return found
