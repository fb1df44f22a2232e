"""Rows sorted by a column, such as the time: all are read first, and kept in memory."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any, cast

import numpy as np

from .._typing import Array
from .cells import number_cell
from .chunks import Chunk
from .errors import BadRows, DataError, shortened, shown
from .id_tables import as_objects
from .reader import C, Reader, joined
from .streams import Stopped

__all__ = ["SortedReader"]

#: As text, dates and times in this form are in the order of time.
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:?00)?)?", re.ASCII)


class SortedReader(Reader[C]):
    """A reader of files whose rows come in the order of a column, ``plan.sort_by``.

    Rows with equal keys stay as they are in the files. To go on from a position, all is read and
    sorted again.
    """

    def __init__(self, *args: Any) -> None:
        self._passed, self._rows_before = 0, None
        super().__init__(*args)

    def _restore(self, position: dict[str, Any]) -> None:
        if "sorted" not in position:
            raise ValueError("position comes from a reader of rows that are not sorted")
        self._passed, self._rows_before = position["sorted"], position["rows"]
        self._restore_columns(position)

    def _check_columns(self) -> None:
        for source in self._sources:
            if source.is_pipe:
                raise DataError(
                    "--sort-by needs files: a pipe may never end",
                    file=source.name,
                    remedy="sort before the pipe, or write it to a file first",
                )
        super()._check_columns()

    def _read(self) -> Generator[C, None, None]:
        with suppress(Stopped):
            yield from self._in_order()

    def _in_order(self) -> Iterator[C]:
        self.bad_rows = BadRows()  # of all rows, which are read again when reading goes on
        chunks = []
        for chunk in self._read_all():
            if self._dialect.stop():
                raise Stopped
            chunks.append(chunk)
        if not chunks:  # all rows were left out
            return
        keys = [_keys(chunk, str(self._plan.sort_by)) for chunk in chunks]
        if len({part.dtype == object for part in keys}) > 1:
            raise _mixed(self._names, str(self._plan.sort_by))
        names = [f.name for f in fields(chunks[0]) if f.name not in ("file", "position", "order")]
        columns = {name: joined([getattr(chunk, name) for chunk in chunks]) for name in names}
        order = np.argsort(np.concatenate(keys), kind="stable")
        del chunks, keys
        if self._rows_before not in (None, len(order)):
            raise shortened(self._names) if len(order) < self._rows_before else _grown(self._names)
        for start in range(self._passed, len(order), self._chunk_rows):
            rows = order[start : start + self._chunk_rows]
            taken = {name: None if v is None else v[rows] for name, v in columns.items()}
            position = {
                "sorted": start + len(rows),
                "rows": len(order),
                "bad_rows": self.bad_rows.state_dict(),
                **self._columns_found(),
            }
            yield cast(C, self._plan.chunk(taken, file=self._names, position=position))

    @property
    def _names(self) -> str:
        return ", ".join(source.name for source in self._sources)


def _mixed(files: str, column: str) -> DataError:
    return DataError(
        "some rows have numbers to sort by, and some have dates",
        file=files,
        column=column,
        remedy="sort by another column (--sort-by), or write them in one form",
    )


def _grown(files: str) -> DataError:
    return DataError(
        "there are more rows than when they were sorted last",
        file=files,
        remedy="go on with the files as they were",
    )


def _keys(chunk: Chunk, column: str) -> Array:
    """Return what rows are sorted by: numbers, or dates as text."""
    ids = cast(Array, chunk.order)
    if ids.dtype != object:
        return ids
    texts = ids.tolist()
    read = {text: number_cell(text) for text in set(texts)}
    if not any(reason for _, reason, _ in read.values()):
        return np.array([read[text][0] for text in texts], dtype=np.float64)
    for row, text in zip(chunk.rows.tolist(), texts, strict=True):
        if read[text][1] and not _DATE.fullmatch(text):
            raise DataError(
                f"{shown(text)} is neither a number nor a date such as 2024-12-31",
                file=chunk.file,
                row=row,
                column=column,
                remedy="correct it, or sort by another column (--sort-by)",
            )
    if not all(reason for _, reason, _ in read.values()):
        raise _mixed(chunk.file, column)
    return as_objects([text.replace("T", " ") for text in texts])
