"""Some rows of some columns of a Parquet file; rows that are read in order are decoded once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from .._typing import Array
from .parquet_footers import version_of

__all__ = ["read_columns"]

#: How many values are decoded at a time, about, and how many rows at least.
VALUES, LEAST_ROWS = 2**19, 2**10
#: Bytes of a column that are read at a time.
BUFFER = 2**16
#: Files stay open, at the row after the last one read, until together they have this many columns
#: (each keeps a page in memory); but this many files at least.
MOST_COLUMNS, LEAST_FILES = 1024, 2

_streams: OrderedDict[tuple[Any, ...], _Stream] = OrderedDict()
#: A file is read by one thread at a time, since its position is shared.
_reading = threading.Lock()


class _Stream:
    """The rows of a file from a given one on, decoded when they are asked for."""

    def __init__(self, file: str, columns: tuple[str, ...], first: int) -> None:
        from .parquet import groups_after, open_parquet

        opened = open_parquet(file, BUFFER)
        groups, self.at = groups_after(opened.metadata, first)
        size = max(LEAST_ROWS, VALUES // len(columns))
        self._decoded = opened.iter_batches(
            size, row_groups=groups, columns=list(columns), use_threads=False
        )
        self._left: Any = None
        self.take(first - self.at)

    def take(self, n: int) -> list[Any]:
        """Return the next n rows, in parts; fewer at the end of the file."""
        parts = []
        while n > 0:
            if self._left is None:
                self._left = next(self._decoded, None)
                if self._left is None:
                    break
            part = self._left.slice(0, n)
            taken = part.num_rows
            self._left = self._left.slice(taken) if taken < self._left.num_rows else None
            self.at, n = self.at + taken, n - taken
            parts.append(part)
        return parts


def read_columns(file: str, columns: tuple[str, ...], start: int, stop: int) -> list[Array]:
    """Return some rows of a file, column by column.

    Rounds take a batch of each file in turn, and row groups are mostly much longer than batches:
    so files stay open, and the rows after those that were read last are decoded only once.
    """
    import pyarrow as pa

    with _reading:
        name = file, version_of(file), columns
        stream = _streams.pop(name, None)
        if stream is None or stream.at != start:
            stream = _Stream(file, columns, start)
        parts = stream.take(stop - start)
        _streams[name] = stream
        while len(_streams) > max(LEAST_FILES, MOST_COLUMNS // len(columns)):
            _streams.popitem(last=False)
    if stream.at < stop:
        raise ValueError(f"{file} has only {stream.at} rows now: somebody has changed it")
    table = pa.Table.from_batches(parts)
    return [table.column(column).to_numpy() for column in columns]
