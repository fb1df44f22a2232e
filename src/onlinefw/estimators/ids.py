"""What the rows and the columns of a matrix are called, and their numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._state import check_state
from .._typing import Array, State
from ..readers.id_tables import IntegerTable, Table, TextTable, table_from_state
from .pairs import SIDES, Column, Pairs, column_of
from .stream import Batch

__all__ = ["Fresh", "Ids", "check_kind"]

#: Up to so many pairs are looked up one by one, which takes less time than an array would.
FEW = 16
KINDS = {TextTable: "text", IntegerTable: "whole numbers"}


class Fresh:
    """Ids that have been numbered and not yet learned: ``ids[0]`` has the number ``first``."""

    __slots__ = ("first", "ids", "learned")

    def __init__(self, first: int, ids: Array) -> None:
        self.first, self.ids = first, ids
        #: So many of them have been learned.
        self.learned = 0


class Ids:
    """The ids of rows and columns, in the order in which the model has learned them.

    A batch is numbered aside: ids that are new get the next numbers in its ``fresh``, and become
    known with the round that learns them.

    Examples
    --------
    >>> from onlinefw.estimators.ids import Ids
    >>> ids = Ids.of(["ann", "bob"], [7, 9])
    >>> ids.few([["bob", 7]]), ids.rows.ids
    (array([[1, 0]]), array(['ann', 'bob'], dtype=object))
    """

    def __init__(self, rows: Table, columns: Table) -> None:
        self.rows, self.columns = rows, columns

    @classmethod
    def like(cls, sides: Any) -> Self:
        """Make empty ids of the kinds of these, of rows and of columns."""
        return cls(*(TextTable() if one.ids.dtype == object else IntegerTable() for one in sides))

    @classmethod
    def of(cls, row_ids: Any, column_ids: Any) -> Self:
        """Make ids that are all known."""
        sides = [_named(what, ids) for what, ids in zip(SIDES, (row_ids, column_ids), strict=True)]
        known = cls.like(sides)
        for table, side in zip(known.tables, sides, strict=True):
            table.append(side.ids)
        return known

    @property
    def tables(self) -> tuple[Table, Table]:
        """Those of the rows and of the columns."""
        return self.rows, self.columns

    # Numbers --------------------------------------------------------------------------------------

    def few(self, X: Any) -> Array | None:
        """Return the numbers of a few pairs that are all known; None if X is anything else."""
        if type(X) is np.ndarray and X.ndim == 2:
            X = X.tolist() if len(X) <= FEW else None
        if type(X) is not list or not 0 < len(X) <= FEW:
            return None
        row, column = self.rows.get, self.columns.get
        try:
            found = [[row(r), column(c)] for r, c in X]
        except (TypeError, ValueError):  # what has no hash, or no pairs
            return None
        return None if min(map(min, found)) < 0 else np.array(found)

    def look_up(self, pairs: Pairs, sides: tuple[str, str] = SIDES) -> tuple[Array, Array]:
        """Return the numbers of rows and columns; -1 for ids that are not known."""
        self.check_kinds(pairs, sides)
        both = zip(self.tables, pairs, strict=True)
        rows, columns = (table.indices(side.ids)[side.codes] for table, side in both)
        return rows, columns

    def number(
        self, pairs: Pairs, sides: tuple[str, str] = SIDES
    ) -> tuple[Array, tuple[Fresh, Fresh]]:
        """Return numbers of all, as X of a batch, and its ids that are new; nothing changes."""
        self.check_kinds(pairs, sides)
        X, fresh = np.empty((pairs.n, 2), np.int64), []
        for k, (table, side) in enumerate(zip(self.tables, pairs, strict=True)):
            X[:, k], new = _numbered(table, side)
            fresh.append(new)
        return X, (fresh[0], fresh[1])

    def check_kinds(self, pairs: Pairs, sides: tuple[str, str] = SIDES) -> None:
        """Refuse text where ids are whole numbers, and whole numbers where they are text."""
        for what, table, side in zip(sides, self.tables, pairs, strict=True):
            check_kind(what, table, side)

    def current(self, batch: Batch) -> Batch:
        """Number new ids of a batch again, if another thread has taught the model some since."""
        fresh = batch.fresh
        both = zip(self.tables, fresh, strict=True)
        if all(len(table) == new.first + new.learned for table, new in both):
            return batch
        X, renewed = batch.X.copy(), []
        for k, (table, new) in enumerate(zip(self.tables, fresh, strict=True)):
            own = X[:, k] >= new.first
            side = column_of(SIDES[k], new.ids[X[own, k] - new.first])
            X[own, k], newer = _numbered(table, side)
            renewed.append(newer)
        return batch._replace(X=X, fresh=tuple(renewed))

    def learned(self, batch: Batch) -> None:
        """Know the ids of a batch from now on."""
        for k, (table, new) in enumerate(zip(self.tables, batch.fresh, strict=True)):
            n = int(batch.X[:, k].max()) + 1 - len(table)
            if n > 0:
                table.append(new.ids[new.learned : new.learned + n])
                new.learned += n

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return the ids as plain arrays."""
        return {"rows": self.rows.state_dict(), "columns": self.columns.state_dict()}

    @classmethod
    def from_state(cls, state: State, shape: tuple[int, int]) -> Self:
        """Make the ids that ``state_dict`` described, of a matrix of this shape."""
        check_state(state, "rows", "columns")
        ids = cls(table_from_state(state["rows"]), table_from_state(state["columns"]))
        for what, table, size in zip(SIDES, ids.tables, shape, strict=True):
            if len(table) > size:
                raise ValueError(f"there are {len(table)} {what} ids for {size} {what}s")
        return ids


def check_kind(what: str, table: Table, side: Column, where: str = "X") -> None:
    """Refuse ids of another kind than those of a table."""
    if side.is_text != isinstance(table, TextTable):
        other = "text" if side.is_text else "a whole number"
        raise ValueError(
            f"the {what} ids of this model are {KINDS[type(table)]}, and "
            f"{side.ids[:1].tolist()[0]!r:.40} is {other}: convert the {what} ids of {where}, "
            "or call fit to begin anew"
        )


def _numbered(table: Table, side: Column) -> tuple[Array, Fresh]:
    numbers = table.indices(side.ids)
    unknown = np.flatnonzero(numbers < 0)
    first = len(table)
    numbers[unknown] = first + np.arange(unknown.size)
    return numbers[side.codes], Fresh(first, side.ids[unknown])


def _named(what: str, ids: Any) -> Column:
    """Return the names of all rows or columns, which must differ."""
    values = ids if isinstance(ids, np.ndarray) else np.array(list(ids), dtype=object)
    if values.ndim != 1:
        raise ValueError(f"{what} ids must be one-dimensional, got shape {values.shape}")
    side = column_of(what, values)
    if side.ids.size < side.codes.size:
        twice = values[np.flatnonzero(side.codes != np.arange(side.codes.size))[0]]
        raise ValueError(f"{what} ids must differ from each other, got {twice!r:.40} twice")
    return side
