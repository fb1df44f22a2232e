"""Predictions as they are written: CSV, Parquet or JSON lines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from .._files import whole_file

__all__ = ["FORMATS", "check_format", "table_sink"]

FORMATS = (".csv", ".parquet", ".jsonl")


def check_format(out: Path, spreadsheet_safe: bool) -> None:
    """Refuse a file whose ending is not that of a format, or options of another one."""
    if out.suffix not in FORMATS:
        raise ValueError(
            f"{out}: predictions are written as CSV, Parquet or JSON lines; name a file that ends "
            f"in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, or - for standard output"
        )
    if spreadsheet_safe and out.suffix != ".csv":
        raise ValueError("--spreadsheet-safe is for CSV; leave it out, or name a .csv file with -o")


def _filled(column: Any) -> Any:
    """Return a column in which numbers and texts that are missing are NaN and empty."""
    import pyarrow as pa

    if not column.null_count:
        return column
    if pa.types.is_floating(column.type):
        return column.fill_null(float("nan"))
    # An empty string is written as "", so that no line is blank: readers skip blank lines.
    return column.fill_null("") if pa.types.is_string(column.type) else column


@contextmanager
def table_sink(out: Path | None) -> Iterator[Any]:
    """Yield a function that writes tables: to a file by its ending, or CSV to standard output."""
    kinds = {".parquet": _ParquetSink, ".jsonl": _JsonLinesSink}
    with _opened(out) as file:
        sink = kinds.get("" if out is None else out.suffix, _CsvSink)(file)
        try:
            yield sink.write
        finally:
            sink.close()


@contextmanager
def _opened(out: Path | None) -> Iterator[Any]:
    if out is None:
        yield sys.stdout.buffer
        return
    try:
        with whole_file(out) as file:
            yield file
    except OSError as error:
        reason = f"{error.strerror or error}; nothing was written"
        raise OSError(error.errno, reason, str(out)) from error


class _Sink:
    """What writes tables to an open file."""

    def __init__(self, file: Any) -> None:
        self._file, self._writer, self._schema = file, cast(Any, None), None

    def write(self, columns: dict[str, Any]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _CsvSink(_Sink):
    """Writes CSV; the type of an id column may change from integers to text on the way."""

    def write(self, columns: dict[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import csv

        table = pa.table({name: _filled(column) for name, column in columns.items()})
        if table.num_columns == 1 and table.column(0).null_count:  # nulls would be blank lines
            (name,) = table.column_names
            table = pa.table({name: _filled(table.column(name).cast(pa.string()))})
        if table.schema != self._schema:
            self.close()
            options = csv.WriteOptions(include_header=self._schema is None)
            self._writer = csv.CSVWriter(self._file, table.schema, write_options=options)
            self._schema = table.schema
        self._writer.write_table(table)


class _ParquetSink(_Sink):
    def write(self, columns: dict[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table({name: _filled(column) for name, column in columns.items()})
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        for now, before in zip(table.schema, self._writer.schema, strict=True):
            if now.type != before.type:
                raise ValueError(
                    f"the column {now.name!r} has {before.type} values first and {now.type} "
                    "later, which Parquet cannot hold; write CSV instead (-o predictions.csv)"
                )
        self._writer.write_table(table)


class _JsonLinesSink(_Sink):
    """Writes one object for each row; null where there is no prediction."""

    def write(self, columns: dict[str, Any]) -> None:
        values = [map(_json_value, column.to_pylist()) for column in columns.values()]
        for row in zip(*values, strict=True):
            text = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
            self._file.write(f"{text}\n".encode("utf-8", "surrogateescape"))


def _json_value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
