"""Ratings in partitioned Parquet files, which workers read themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from .._validation import check_whole

__all__ = ["ParquetBatch", "ParquetRatings"]


@dataclass(frozen=True)
class ParquetBatch:
    """Some rows of one file: where the ratings of a round are, not the ratings.

    Attributes
    ----------
    file, start, stop
        Which rows.
    columns : (str, str, str)
        The names of the columns of users, items and ratings.
    partition : int
        The number of the file: worker ``partition % n`` reads it.
    following : ParquetBatch or None
        The batch of the next round, which may be read ahead.
    """

    file: str
    start: int
    stop: int
    columns: tuple[str, str, str]
    partition: int = 0
    following: ParquetBatch | None = field(default=None, repr=False, compare=False)

    def read(self) -> tuple[Array, Array]:
        """Return the (row, column) pairs and the values."""
        user, item, rating = _rows(self.file, self.columns, self.start, self.stop)
        return np.column_stack((user, item)), rating

    @property
    def place(self) -> tuple[str, int, int, tuple[str, str, str]]:
        """What is needed to read it, without the batches that follow."""
        return self.file, self.start, self.stop, self.columns

    def value_range(self) -> tuple[float, float]:
        """Return bounds of the ratings: those of their row groups, if the file says them."""
        groups = _ranges(self.file, self.columns[2])
        ranges = [
            known for first, n, known in groups if first < self.stop and self.start < first + n
        ]
        if None in ranges:
            rating = self.read()[1]
            return float(rating.min()), float(rating.max())
        low, high = zip(*ranges, strict=True)
        return float(min(low)), float(max(high))

    def __str__(self) -> str:
        return f"{self.file}, rows {self.start + 1} to {self.stop}"


class ParquetRatings:
    """Rounds from partitioned Parquet: an iterable of :class:`ParquetBatch`.

    Every file is cut into batches. The rounds take the first batch of each file, then the second
    of each, and so on: whichever worker reads them, the rounds are the same. Give the batches to a
    learner on :class:`~onlinefw.objectives.ObservedEntries`, or all of it to the ``fit`` of
    :class:`~onlinefw.FrankWolfeMatrixCompletion`. With workers, worker ``p % n`` reads
    file p and sends every worker its rows; the ratings never come to the driver (with ``offsets``
    they do: it learns the means). A restarted worker reads the files again.

    Parameters
    ----------
    source : path, or list of paths
        Files, or folders of ``*.parquet`` files; on several machines, in a place that all see.
    user, item, rating : str
        The columns. Users and items are numbered from 0.
    batch_size : int
        Ratings a round.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, onlinefw as ofw
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from onlinefw.distributed import ParquetRatings
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         columns = {"user": rng.integers(9, size=50), "item": rng.integers(7, size=50)}
    ...         table = pa.table({**columns, "rating": rng.standard_normal(50)})
    ...         pq.write_table(table, pathlib.Path(folder) / f"part-{part}.parquet")
    ...     ratings = ParquetRatings(folder, batch_size=20)
    ...     objective = ofw.objectives.ObservedEntries(ratings.shape)  # workers=2: on Ray
    ...     learner = ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(5.0))
    ...     rounds = [learner.observe(batch) for batch in ratings]
    >>> len(rounds), objective.n_observations
    (6, 100)
    """

    def __init__(
        self,
        source: Any,
        *,
        user: str = "user",
        item: str = "item",
        rating: str = "rating",
        batch_size: int = 100_000,
    ) -> None:
        self.files = _files(source)
        self.columns = (user, item, rating)
        self.batch_size = check_whole("batch_size", batch_size)
        self._lengths = [_length(file, self.columns) for file in self.files]

    def __len__(self) -> int:
        return len(self._places())

    def _places(self) -> list[tuple[int, int]]:
        """(partition, start) of every round."""
        size = self.batch_size
        most = max(self._lengths, default=0)
        return [
            (partition, start)
            for start in range(0, most, size)
            for partition, length in enumerate(self._lengths)
            if start < length
        ]

    def __iter__(self) -> Iterator[ParquetBatch]:
        batches: list[ParquetBatch] = []
        following = None
        for partition, start in reversed(self._places()):
            stop = min(start + self.batch_size, self._lengths[partition])
            file = self.files[partition]
            following = ParquetBatch(file, start, stop, self.columns, partition, following)
            batches.append(following)
        while batches:
            yield batches.pop()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, from what the files' footers say about users and items."""
        largest = [max(_largest(file, name) for file in self.files) for name in self.columns[:2]]
        return largest[0] + 1, largest[1] + 1

    def __repr__(self) -> str:
        return f"ParquetRatings({len(self.files)} files, {sum(self._lengths)} ratings)"


def _files(source: Any) -> list[str]:
    paths = list(source) if isinstance(source, (list, tuple)) else [source]
    files: list[str] = []
    for path in map(Path, paths):
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not found or not found[0].exists():
            raise ValueError(f"{path} has no Parquet files; name a file, or a folder of *.parquet")
        files.extend(str(file.resolve()) for file in found)
    if not files:
        raise ValueError("ParquetRatings needs at least one file")
    return files


def _version(file: str) -> tuple[int, int]:
    """What changes when a file does."""
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size


def _open(file: str) -> Any:
    return _open_version(file, _version(file))


@lru_cache(maxsize=256)
def _open_version(file: str, version: tuple[int, int]) -> Any:
    from ..readers.parquet import open_parquet

    return open_parquet(file)


def _length(file: str, columns: Sequence[str]) -> int:
    opened = _open(file)
    for name in columns:
        if name not in opened.schema_arrow.names:
            has = ", ".join(opened.schema_arrow.names)
            raise ValueError(f"{file} has no column {name!r}; it has {has}")
    return opened.metadata.num_rows


def _largest(file: str, name: str) -> int:
    ranges = [known for _, _, known in _ranges(file, name)]
    if None in ranges:
        raise ValueError(
            f"{file} does not say how large {name} is; pass the shape, or growing=True"
        )
    return max((int(high) for _, high in ranges), default=-1)


def _ranges(file: str, name: str) -> list[tuple[int, int, Any]]:
    """Return first row, length, and (smallest, largest) or None if unknown, of all row groups."""
    metadata = _open(file).metadata
    place = metadata.schema.to_arrow_schema().names.index(name)
    found, first = [], 0
    for group in range(metadata.num_row_groups):
        n = metadata.row_group(group).num_rows
        said = metadata.row_group(group).column(place).statistics
        known = said is not None and said.has_min_max
        found.append((first, n, (said.min, said.max) if known else None))
        first += n
    return found


@lru_cache(maxsize=2)
def _group(
    file: str, version: tuple[int, int], columns: tuple[str, ...], group: int
) -> tuple[Array, ...]:
    table = _open(file).read_row_group(group, columns=list(columns), use_threads=False)
    return tuple(table.column(name).to_numpy() for name in columns)


def _rows(file: str, columns: tuple[str, ...], start: int, stop: int) -> list[Array]:
    """Some rows of a file; the row groups they are in are read once, mostly."""
    metadata, version, parts, first = _open(file).metadata, _version(file), [], 0
    for group in range(metadata.num_row_groups):
        n = metadata.row_group(group).num_rows
        if first < stop and start < first + n:
            some = slice(max(start - first, 0), stop - first)
            parts.append([column[some] for column in _group(file, version, columns, group)])
        first += n
    return [np.concatenate(column) for column in zip(*parts, strict=True)]
