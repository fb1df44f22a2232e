"""What a parser gives to the reader: the usable rows of one block, and the bad ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._typing import Array
from ..losses import Loss
from .cells import id_cell, ids_from_cells, number_cell, remedy_for
from .errors import BadRow

__all__ = ["Batch", "Column", "Wanted", "checked_one_by_one"]


@dataclass(frozen=True)
class Column:
    """A column: its index in the record (from 0) or its key, and what to call it.

    ``loss``, of a target, limits the values that are allowed; ``if_text`` is the remedy to name if
    the column has text where numbers should be.
    """

    index: int
    name: str
    loss: Loss | None = field(default=None, repr=False)
    if_text: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Wanted:
    """The columns to take: ids (or labels), then numbers; and how they make up the fields.

    ``fields`` gets a list of id arrays and a list of number arrays.
    """

    ids: tuple[Column, ...]
    numbers: tuple[Column, ...]
    fields: Callable[[list[Array], list[Array]], dict[str, Any]]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them, ids first."""
        return self.ids + self.numbers


@dataclass(frozen=True)
class Batch:
    """The records of one block.

    Attributes
    ----------
    fields : dict
        Arrays by field name, one entry for each good row.
    rows : ndarray of int64
        The numbers of the good rows.
    bad : list of BadRow
        The others.
    n_records : int
        Good and bad.
    start : dict
        Where the block begins: ``offset`` in bytes, and how many rows and lines are before it.
    pause : bool
        The stream pauses after it: give out the rows read so far.
    """

    fields: dict[str, Any]
    rows: Array
    bad: list[BadRow]
    n_records: int
    start: dict[str, int]
    pause: bool = False


#: A record: its row, its line, and its wanted cells or what is wrong with it.
Record = tuple[int, "int | None", "list[Any] | BadRow"]


def checked_one_by_one(
    records: Iterable[Record], wanted: Wanted
) -> tuple[dict[str, Any], Array, list[BadRow]]:
    """Check each record: slower than a block at once, but finds what is wrong in which.

    Returns the fields of the good records, their row numbers, and the bad ones.
    """
    good: list[list[Any]] = []
    rows: list[int] = []
    bad: list[BadRow] = []
    for row, line, cells in records:
        if isinstance(cells, BadRow):
            bad.append(cells)
            continue
        outcome = _checked(row, line, cells, wanted)
        if isinstance(outcome, BadRow):
            bad.append(outcome)
        else:
            good.append(outcome)
            rows.append(row)
    k = len(wanted.ids)
    columns: Iterator[tuple[Any, ...]] = zip(*good, strict=True) if good else iter([])
    cells_by_column = list(columns) or [() for _ in wanted.columns]
    ids = [ids_from_cells(list(c)) for c in cells_by_column[:k]]
    numbers = [np.array(c, dtype=np.float64) for c in cells_by_column[k:]]
    return wanted.fields(ids, numbers), np.array(rows, dtype=np.int64), bad


def _checked(row: int, line: int | None, cells: list[Any], wanted: Wanted) -> list[Any] | BadRow:
    values = []
    for j, (column, cell) in enumerate(zip(wanted.columns, cells, strict=True)):
        is_id = j < len(wanted.ids)
        value, reason, problem = id_cell(cell) if is_id else number_cell(cell, column.loss)
        if reason:
            remedy = remedy_for(reason)
            if reason == "not a number" and column.if_text:
                remedy = column.if_text
            return BadRow(reason, problem, row, line, column.name, remedy)
        values.append(value)
    return values
