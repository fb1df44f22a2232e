"""Ratings in partitioned Parquet files, which workers read themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._batches import BatchHandle
from .._typing import Array
from .parquet_footers import check_columns, largest, ranges
from .parquet_stream import read_columns
from .rounds import FileRounds

__all__ = ["ParquetBatch", "ParquetRatings"]


@dataclass(frozen=True)
class ParquetBatch(BatchHandle):
    """A handle: which rows of which file are the ratings of a round, not the ratings themselves.

    ``columns`` are the names of the columns of users, items and ratings.
    """

    holds = "ratings"

    columns: tuple[str, str, str]

    def open(self) -> tuple[Array, Array, None]:
        """Return the (row, column) pairs, the values, and None: all count alike."""
        user, item, rating = read_columns(self.file, self.columns, self.start, self.stop)
        return np.column_stack((user, item)), rating, None

    def read(self) -> tuple[Array, Array]:
        """Return the (row, column) pairs and the values."""
        return self.open()[:2]

    def value_range(self) -> tuple[float, float]:
        """Return bounds of the ratings: those of their row groups, if the file has them."""
        known = [
            bounds
            for first, n, bounds in ranges(self.file, self.columns[2])
            if first < self.stop and self.start < first + n
        ]
        if None in known:
            rating = self.open()[1]
            return float(rating.min()), float(rating.max())
        low, high = zip(*known, strict=True)
        return float(min(low)), float(max(high))


class ParquetRatings(FileRounds[ParquetBatch]):
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
        Files, or folders of ``*.parquet`` files; on several machines, in a folder that all see.
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

    _kind = ParquetBatch

    def __init__(
        self,
        source: Any,
        *,
        user: str = "user",
        item: str = "item",
        rating: str = "rating",
        batch_size: int = 100_000,
    ) -> None:
        super().__init__(source, batch_size)
        self.columns = (user, item, rating)
        for file in self.files:
            check_columns(file, self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, from what the files' footers say about users and items."""
        user, item, _ = self.columns
        rows, cols = (max(largest(file, name) for file in self.files) for name in (user, item))
        return rows + 1, cols + 1

    def __repr__(self) -> str:
        return f"ParquetRatings({len(self.files)} files, {sum(self._lengths)} ratings)"
