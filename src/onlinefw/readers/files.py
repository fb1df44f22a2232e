"""One file opened: its columns found, and its batches from the beginning or from a position."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .batches import Batch
from .blocks import Cut, after_last_line, after_last_record, split, whole_records
from .columns import Table, check_names, is_number, is_obvious, names_columns
from .errors import DataError, shown
from .plans import Plan, RowPlan
from .sources import Source, sniff_delimiter, sniff_format
from .streams import ByteStream

__all__ = ["DataFile", "Dialect", "open_source"]


#: A block with an error is split into pieces below this size, which are read record by record.
_SMALL = 1 << 15

_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True)
class Dialect:
    """How to read text: what the user has said, None where the file is to show it."""

    delimiter: str | None = None
    header: bool | None = None
    pause: float = 0.2
    block_bytes: int = 1 << 22
    stop: Callable[[], bool] = lambda: False


def open_source(source: Source, plan: Plan, dialect: Dialect) -> DataFile:
    """Open a source and find its columns."""
    if source.format == "parquet":
        return _ParquetFile(source, plan)
    stream = ByteStream(source, dialect.pause, dialect.stop)
    try:
        return _open_text(stream, source, plan, dialect)
    except BaseException:
        stream.close()
        raise


def _open_text(stream: ByteStream, source: Source, plan: Plan, dialect: Dialect) -> DataFile:
    line = stream.first_line()
    if not line.strip():
        raise empty(source.name)
    _check_line_ends(line, source.name)
    format = source.format or sniff_format(line)
    begin = {"offset": stream.first_line_begins, "row": 0, "line": stream.lines_before}
    if format == "libsvm":
        if not isinstance(plan, RowPlan):
            raise DataError(
                "LIBSVM text holds rows of features, not ratings",
                file=source.name,
                remedy="give ratings as CSV, Parquet or JSON lines",
            )
        _check_libsvm(plan, source.name)
        from .libsvm import LibsvmParser

        return _TextFile(stream, LibsvmParser(plan), after_last_line, begin, dialect, True)
    if format == "jsonl":
        from .json_lines import JsonLinesParser

        keys = _keys(line, source.name)
        wanted = plan.wanted(Table(source.name, keys, len(keys)))
        return _TextFile(stream, JsonLinesParser(wanted), after_last_line, begin, dialect, True)

    from .delimited import DelimitedParser, split_line

    delimiter = dialect.delimiter or sniff_delimiter(line, format)
    try:
        cells = split_line(line, delimiter)
    except csv.Error as error:
        raise DataError(
            f"the first line cannot be split into cells ({error})",
            file=source.name,
            remedy="name the delimiter with --delimiter",
        ) from None
    header = _has_header(cells, plan) if dialect.header is None else dialect.header
    guessed = header and dialect.header is None
    table = Table(source.name, cells if header else None, len(cells), guessed)
    if not table.looks_like_data:
        check_names(table)
    if dialect.header and table.looks_like_data:
        raise DataError(
            "the header is all numbers: the first row is data, it seems",
            file=source.name,
            remedy="say --no-header",
        )
    if header:
        begin = {"offset": stream.first_line_ends, "row": 0, "line": stream.lines_before + 1}
    parser = DelimitedParser(plan.wanted(table), len(cells), delimiter)
    cut = after_last_record(delimiter.encode()) if parser.quotes else after_last_line
    return _TextFile(stream, parser, cut, begin, dialect, header)


def _check_libsvm(plan: RowPlan, name: str) -> None:
    """Refuse what only columns with names or numbers can do."""
    asked = {"--drop": plan.drop, "--sort-by": plan.sort_by, "--text": plan.treatment.text}
    for option, value in asked.items():
        if value:
            raise DataError(
                f"{option} is for columns, which LIBSVM rows do not have",
                file=name,
                remedy="leave the option out, or give the rows as CSV, Parquet or JSON lines",
            )


def empty(name: str) -> DataError:
    """Return the error for a file without rows."""
    return DataError("there are no rows in it", file=name, remedy="check how it was made")


def _check_line_ends(line: str, name: str) -> None:
    """Refuse text with carriage returns where line ends should be; between quotes they may be."""
    if "\r" in line and "\r" in _QUOTED.sub("", line):
        raise DataError(
            "lines end with a carriage return alone",
            file=name,
            remedy="end them with a newline, for example by tr '\\r' '\\n'",
        )


def _keys(line: str, name: str) -> list[str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise DataError(
            f"{shown(line)} is not a JSON object",
            file=name,
            row=1,
            remedy="JSON lines have one {...} per line, without brackets or commas around them",
        )
    return list(record)


def _has_header(cells: list[str], plan: Plan) -> bool:
    """Whether the first line names the columns.

    It does if columns are asked for by name or must be guessed; if they are given by number, it
    does if no cell in a column of numbers is a number.
    """
    specs = [str(spec) for spec in plan.specs]
    if any(map(names_columns, specs)):
        return True
    numeric = plan.numeric_specs()
    if numeric is None:
        # Columns may be called 0, 1, 2, ..., but a target that must be guessed has a name.
        guessed = not specs and any(map(is_obvious, cells))
        return guessed or not any(map(is_number, cells))
    indices = [int(spec) - 1 for spec in numeric]
    if not specs:
        return True
    judged = [cells[index] for index in indices if 0 <= index < len(cells)]
    if judged:
        return not any(map(is_number, judged))
    return any(map(is_obvious, cells))


class _TextFile:
    """Text, and whether its columns have names of their own."""

    def __init__(
        self,
        stream: ByteStream,
        parser: Any,
        cut: Cut,
        begin: dict[str, int],
        dialect: Dialect,
        has_header: bool,
    ) -> None:
        self.stream, self.parser, self.cut, self.begin = stream, parser, cut, begin
        self.dialect, self.has_header = dialect, has_header

    def batches(self, start: dict[str, int] | None, enough_rows: int) -> Iterator[Batch]:
        """The batches from the beginning, or from where a batch began."""
        at = start or self.begin
        row, line = at["row"], at["line"]
        self.stream.skip_to(at["offset"])
        blocks = whole_records(
            self.stream,
            self.cut,
            offset=at["offset"],
            block_bytes=self.dialect.block_bytes,
            enough_lines=enough_rows,
        )
        for block in blocks:
            to_do = [block]
            while to_do:
                part = to_do.pop()
                where = {"offset": part.offset, "row": row, "line": line}
                batch = self.parser.at_once(part.data, where) if part.data else None
                if batch is None:
                    # Something is wrong in it: read record by record only the piece that has it.
                    pieces = [part] if len(part.data) < _SMALL else split(part, self.cut)
                    if len(pieces) > 1:
                        to_do += reversed(pieces)
                        continue
                    batch = self.parser.one_by_one(part.data, where)
                yield replace(batch, pause=part.pause)
                row += batch.n_records
                line += part.data.count(b"\n")

    def close(self) -> None:
        self.stream.close()


class _ParquetFile:
    has_header = True

    def __init__(self, source: Source, plan: Plan) -> None:
        from .parquet import open_parquet

        if source.is_pipe:
            raise DataError(
                "Parquet cannot be read from a pipe", file=source.name, remedy="name the file"
            )
        self.name = source.name
        self.file = open_parquet(self.name)
        names = self.file.schema_arrow.names
        table = Table(self.name, names, len(names))
        check_names(table)
        self.wanted = plan.wanted(table)

    def batches(self, start: dict[str, int] | None, enough_rows: int) -> Iterator[Batch]:
        from .parquet import parquet_batches

        return parquet_batches(self.file, self.name, self.wanted, start["row"] if start else 0)

    def close(self) -> None:
        self.file.close()


#: An open file.
DataFile = _TextFile | _ParquetFile
