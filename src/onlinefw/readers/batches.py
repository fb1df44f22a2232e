"""What a parser gives to the reader: the usable rows of one block, and the bad ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._typing import Array
from ..losses import Loss
from .cells import (
    Outcome,
    id_cell,
    ids_from_arrow,
    ids_from_cells,
    number_cell,
    numbers,
    remedy_for,
    text_cell,
    texts_from_arrow,
)
from .errors import BadRow, shown
from .id_tables import as_objects
from .missing import REASONS, is_missing

__all__ = ["Batch", "Column", "Record", "Wanted", "numbered"]


@dataclass(frozen=True)
class Column:
    """A column: its index in the record (from 0) or its key, and what to call it.

    ``loss``, of a target, limits the values that are allowed. Of a feature, ``may_miss`` says
    whether there may be gaps (NaN) in it; ``if_missing`` and ``if_text`` are the remedies to name
    for a value that is missing, and for text where numbers should be.
    """

    index: int
    name: str
    loss: Loss | None = field(default=None, repr=False)
    if_text: str | None = field(default=None, repr=False)
    if_missing: str | None = field(default=None, repr=False)
    may_miss: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class Batch:
    """The records of one block: those that can be used, and the bad ones."""

    #: Arrays by field name, one entry for each good row.
    fields: dict[str, Any]
    #: The numbers of the good rows.
    rows: Array
    bad: list[BadRow]
    #: Good and bad.
    n_records: int
    #: Where the block begins: ``offset`` in bytes, and how many rows and lines are before it.
    start: dict[str, int]
    #: The stream pauses after it: give out the rows read so far.
    pause: bool = False


#: A record: its row, its line, and its wanted cells or what is wrong with it.
Record = tuple[int, "int | None", "list[Any] | BadRow"]


def numbered(start: dict[str, int], n: int) -> Array:
    """The numbers of the n rows of a block in which nothing is wrong."""
    return np.arange(start["row"] + 1, start["row"] + 1 + n)


@dataclass(frozen=True)
class Wanted:
    """The columns to take: ids (or labels), numbers and texts; and how they make up the fields.

    ``fields`` gets a list of arrays for each of these.
    """

    ids: tuple[Column, ...]
    numbers: tuple[Column, ...]
    fields: Callable[[list[Array], list[Array], list[Array]], dict[str, Any]]
    texts: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them, ids first."""
        return self.ids + self.numbers + self.texts

    def at_once(
        self, cells: Callable[[Column], Any], n: int, start: dict[str, int]
    ) -> Batch | None:
        """The batch of n rows of Arrow columns, or None if anything is wrong in them."""
        ids = [ids_from_arrow(cells(column)) for column in self.ids]
        values = [
            numbers(cells(column), column.loss, may_miss=column.may_miss) for column in self.numbers
        ]
        texts = [texts_from_arrow(cells(column)) for column in self.texts]
        gaps = (
            (found == "").any() and not column.may_miss
            for column, found in zip(self.texts, texts, strict=True)
        )
        if any(found is None for found in ids + values) or any(gaps):
            return None
        fields = self.fields(ids, values, texts)  # type: ignore[arg-type]
        return Batch(fields, numbered(start, n), [], n, start)

    def one_by_one(self, records: Iterable[Record], start: dict[str, int]) -> Batch:
        """The batch of some records: slower than all at once, but finds what is wrong in which."""
        good: list[list[Any]] = []
        rows: list[int] = []
        bad: list[BadRow] = []
        for row, line, cells in records:
            outcome = cells if isinstance(cells, BadRow) else _checked(row, line, cells, self)
            if isinstance(outcome, BadRow):
                bad.append(outcome)
            else:
                good.append(outcome)
                rows.append(row)
        k, m = len(self.ids), len(self.ids) + len(self.numbers)
        by_column = list(zip(*good, strict=True)) or [() for _ in self.columns]
        ids = [ids_from_cells(list(cells)) for cells in by_column[:k]]
        values = [np.array(cells, dtype=np.float64) for cells in by_column[k:m]]
        texts = [as_objects(list(cells)) for cells in by_column[m:]]
        numbers_of_rows = np.array(rows, dtype=np.int64)
        n = len(rows) + len(bad)
        return Batch(self.fields(ids, values, texts), numbers_of_rows, bad, n, start)


def _checked(row: int, line: int | None, cells: list[Any], wanted: Wanted) -> list[Any] | BadRow:
    values = []
    wrong: list[tuple[Column, str, str]] = []
    k, m = len(wanted.ids), len(wanted.ids) + len(wanted.numbers)
    for j, (column, cell) in enumerate(zip(wanted.columns, cells, strict=True)):
        if j < k:
            value, reason, problem = id_cell(cell)
        else:
            value, reason, problem = (
                _feature(cell, column, is_text=j >= m)
                if column.if_missing or column.may_miss
                else number_cell(cell, column.loss)
            )
        if reason:
            wrong.append((column, reason, problem))
        values.append(value)
    return _bad_row(row, line, wrong) if wrong else values


def _bad_row(row: int, line: int | None, wrong: list[tuple[Column, str, str]]) -> BadRow:
    """The row, by the first thing that is wrong; what can be treated is named for all columns."""
    column, reason, problem = wrong[0]
    remedy = remedy_for(reason)
    if reason == "not a number" and column.if_text:
        remedy = column.if_text
    elif reason in REASONS and column.if_missing:
        remedy = column.if_missing
    features = [(c.name, r) for c, r, _ in wrong if c.if_text]
    texts = tuple(name for name, r in features if r == "not a number")
    gaps = tuple(name for name, r in features if r in REASONS)
    return BadRow(reason, problem, row, line, column.name, remedy, texts, gaps)


def _feature(cell: Any, column: Column, is_text: bool) -> Outcome:
    """A cell of a column that may have gaps, or that says what to do about them."""
    if is_text:
        value, reason, problem = text_cell(cell)
        return (
            (value, "", "") if reason == "empty" and column.may_miss else (value, reason, problem)
        )
    if not is_missing(cell):
        return number_cell(cell, column.loss)
    if column.may_miss:
        return np.nan, "", ""
    outcome = number_cell(cell)
    return outcome if outcome[1] == "empty" else (None, "missing", f"{shown(cell)} is no value")
