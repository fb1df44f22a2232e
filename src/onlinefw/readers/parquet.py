"""Parquet: batches of rows, from any row on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .batches import Batch, Record, Wanted
from .errors import DataError

__all__ = ["groups_after", "open_parquet", "parquet_batches"]

_BATCH_ROWS = 1 << 16


def open_parquet(name: str, buffer_size: int = 0) -> Any:
    """The file, its footer read; with a buffer, columns are read in pieces of that size."""
    try:
        return pq.ParquetFile(name, page_checksum_verification=True, buffer_size=buffer_size)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(name) from error


def _damaged(name: str) -> DataError:
    return DataError(
        "this is not a whole Parquet file", file=name, remedy="write or fetch the file again"
    )


def parquet_batches(file: Any, name: str, wanted: Wanted, after_row: int) -> Iterator[Batch]:
    """The batches from the one that holds the row after ``after_row``."""
    groups, row = groups_after(file.metadata, after_row)
    columns = list(dict.fromkeys(c.name for c in wanted.columns))
    batches = file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False)
    while True:
        try:
            table = next(batches, None)
            if table is None:
                return
            batch = _batch(table, wanted, row)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _damaged(name) from error
        yield batch
        row += table.num_rows


def groups_after(metadata: Any, after_row: int) -> tuple[list[int], int]:
    """The row groups that are still to be read, and the rows before them."""
    row = 0
    for group in range(metadata.num_row_groups):
        n = metadata.row_group(group).num_rows
        if row + n > after_row:
            return list(range(group, metadata.num_row_groups)), row
        row += n
    return [], row


def _batch(table: Any, wanted: Wanted, row: int) -> Batch:
    start = {"offset": row, "row": row, "line": row}
    batch = wanted.at_once(lambda column: table.column(column.name), table.num_rows, start)
    if batch is not None:
        return batch
    cells = zip(*(_cells(table.column(c.name)) for c in wanted.columns), strict=True)
    records: Iterator[Record] = ((row + i, None, list(c)) for i, c in enumerate(cells, 1))
    return wanted.one_by_one(records, start)


def _cells(column: Any) -> list[Any]:
    """The cells of a column; times as text, since Python's own have no nanoseconds."""
    return (column.cast(pa.string()) if pa.types.is_temporal(column.type) else column).to_pylist()
