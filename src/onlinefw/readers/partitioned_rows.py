"""Rows of linear models in partitioned Parquet files, which workers read themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._batches import BatchHandle
from .._typing import Array
from .._validation import KEPT
from .parquet_footers import check_columns, numeric_types, shown
from .parquet_stream import read_columns
from .rounds import FileRounds

__all__ = ["ParquetRows", "ParquetRowsBatch", "RowColumns"]


class RowColumns(NamedTuple):
    """The names of the columns of features, of the target, and of the weight if there is one."""

    features: tuple[str, ...]
    target: str
    weight: str | None


@dataclass(frozen=True)
class ParquetRowsBatch(BatchHandle):
    """A handle: which rows of which file are those of a round, not the rows themselves.

    ``columns`` are the names of the columns: ``features``, ``target`` and ``weight``.
    """

    holds = "rows"

    columns: RowColumns

    def open(self) -> tuple[Array, Array, Array | None]:
        """Return the rows, their targets, and their weights if the files have any."""
        features, target, weight = self.columns
        names = (*features, target) if weight is None else (*features, target, weight)
        values = read_columns(self.file, names, self.start, self.stop)
        p = len(features)
        return np.column_stack(values[:p]), values[p], None if weight is None else values[p + 1]

    def read(self) -> tuple[Array, Array, Array | None]:
        """Return the same as :meth:`open`."""
        return self.open()

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features."""
        return len(self), len(self.columns.features)

    @property
    def dtype(self) -> np.dtype:
        """The type of numbers that its rows are kept in."""
        return _kept_type(self.file, self.columns.features)


class ParquetRows(FileRounds[ParquetRowsBatch]):
    """Rounds from partitioned Parquet: an iterable of :class:`ParquetRowsBatch`.

    Every file is cut into batches. The rounds take the first batch of each file, then the second
    of each, and so on: whichever worker reads them, the rounds are the same. Give the batches to a
    learner on :class:`~onlinefw.objectives.LinearObjective`, or all of it to the ``fit`` of
    :class:`~onlinefw.FrankWolfeRegressor`. With workers, worker ``p % n`` reads file p and keeps
    its rows, which never come to the driver (for
    :class:`~onlinefw.objectives.RunningLeastSquares` they do: its sums need them). A restarted
    worker reads the files again.

    Parameters
    ----------
    source : path, or list of paths
        Files, or folders of ``*.parquet`` files; on several machines, in a folder that all see.
    target : str
        The column of targets.
    features : list of str, optional
        The columns of features; by default all columns of numbers but those of target and weight.
    weight : str, optional
        A column that says how much each row counts.
    batch_size : int
        Rows a round.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, onlinefw as ofw
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from onlinefw.distributed import ParquetRows
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         a, b = rng.standard_normal((2, 50))
    ...         table = pa.table({"a": a, "b": b, "target": a - b})
    ...         pq.write_table(table, pathlib.Path(folder) / f"part-{part}.parquet")
    ...     rows = ParquetRows(folder, batch_size=20)
    ...     objective = ofw.objectives.LinearObjective(ofw.losses.Square())  # workers=2: on Ray
    ...     learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(3.0))
    ...     rounds = [learner.observe(batch) for batch in rows]
    >>> rows.feature_names, len(rounds), objective.n_observations
    (['a', 'b'], 6, 100)
    """

    _kind = ParquetRowsBatch

    def __init__(
        self,
        source: Any,
        *,
        target: str = "target",
        features: Sequence[str] | None = None,
        weight: str | None = None,
        batch_size: int = 10_000,
    ) -> None:
        super().__init__(source, batch_size)
        if isinstance(features, str):
            raise ValueError(f"features must be a list of names of columns, got {features!r}")
        others = [target] if weight is None else [target, weight]
        for file in self.files:
            check_columns(file, others)
        if features is None:
            names = _common_features(self.files, others)
        else:
            names = [str(name) for name in features]
        _check_distinct([*names, *others])
        for file in self.files:
            _check_features(file, names)
        self.columns = RowColumns(tuple(names), target, weight)

    @property
    def feature_names(self) -> list[str]:
        """The columns of features."""
        return list(self.columns.features)

    @property
    def n_features(self) -> int:
        """How many features."""
        return len(self.columns.features)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features."""
        return sum(self._lengths), self.n_features

    @property
    def dtype(self) -> np.dtype:
        """The type of numbers that all rows can be kept in."""
        return np.result_type(*(_kept_type(file, self.columns.features) for file in self.files))

    def __repr__(self) -> str:
        n, p = self.shape
        return f"ParquetRows({len(self.files)} files, {n} rows, {p} features)"


def _kept_type(file: str, features: tuple[str, ...]) -> np.dtype:
    """Return what rows of these columns become when they are checked."""
    types = numeric_types(file)
    common = np.result_type(*{types[name] for name in features})
    return common if common in KEPT else np.dtype(float)


def _common_features(files: list[str], others: list[str]) -> list[str]:
    """Return all columns of numbers but some; the files must agree about them."""
    found = [[name for name in numeric_types(file) if name not in others] for file in files]
    first = found[0]
    for file, names in zip(files, found, strict=True):
        differ = sorted(set(first) ^ set(names))
        if differ:
            raise ValueError(
                f"{files[0]} and {file} have different columns of numbers ({shown(differ)}); name "
                "those to learn from, features=[...]"
            )
    return first


def _check_distinct(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(
                f"column {name!r} is named twice; features, target, weight must differ"
            )
        seen.add(name)


def _check_features(file: str, features: list[str]) -> None:
    if not features:
        raise ValueError(
            f"{file} has no columns of numbers to learn from; name some, features=[...]"
        )
    check_columns(file, features)
    known = numeric_types(file)
    for name in features:
        if name not in known:
            raise ValueError(f"column {name!r} of {file} does not hold numbers; leave it out")
