"""Chunks of a given size from files, from the beginning or from any position."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from .._typing import Array
from ..losses import Loss
from .batches import Batch
from .cells import as_text
from .chunks import Chunk, RatingChunk, RowChunk
from .columns import ColumnSpec
from .errors import BadRow, BadRows, DataError, shortened
from .files import DataFile, Dialect, empty, open_source
from .plans import Plan, RatingPlan, RowPlan
from .sources import Source, find_sources
from .streams import Stopped

__all__ = ["Reader", "read_ratings", "read_rows"]

C = TypeVar("C", bound=Chunk)
OnBadRow = Literal["raise", "skip"]
Paths = str | os.PathLike[str] | Sequence[str]


class Reader(Generic[C]):
    """An iterator of chunks; made by :func:`read_ratings` and :func:`read_rows`.

    Attributes
    ----------
    position : dict
        Where to go on after the last chunk handed out, as JSON values.
    bad_rows : BadRows
        The rows left out so far (``on_bad_row="skip"``).
    has_header : bool or None
        Whether columns have names of their own; None before a pipe is read.
    """

    def __init__(
        self,
        sources: list[Source],
        plan: Plan,
        dialect: Dialect,
        chunk_rows: int,
        on_bad_row: OnBadRow,
        position: dict[str, Any] | None,
    ) -> None:
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be at least 1, not {chunk_rows}")
        if on_bad_row not in ("raise", "skip"):
            raise ValueError(f"on_bad_row must be 'raise' or 'skip', not {on_bad_row!r}")
        self._sources, self._plan, self._dialect = sources, plan, dialect
        self._chunk_rows, self._on_bad_row = chunk_rows, on_bad_row
        self._texts: list[str] = []
        self.has_header: bool | None = None
        self.bad_rows = BadRows()
        self._first = 0
        self._start: dict[str, int] | None = None
        if position is not None:
            self._restore(position)
        self._check_columns()
        self._find_width()
        self.position: dict[str, Any] = position or self._position(0, None, 0)
        self._chunks = self._read()

    def __iter__(self) -> Iterator[C]:
        return self

    def __next__(self) -> C:
        chunk = next(self._chunks)
        self.position = chunk.position
        return chunk

    def close(self) -> None:
        """Close the file that is being read."""
        self._chunks.close()

    def __enter__(self) -> Reader[C]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def feature_names(self) -> list[str] | None:
        """The names (or numbers, as text) of the features; None for ratings and LIBSVM."""
        return getattr(self._plan, "feature_names", None)

    @property
    def id_names(self) -> tuple[str, str] | None:
        """The names (or numbers, as text) of the columns of users and items; None for rows."""
        return getattr(self._plan, "id_names", None)

    @property
    def n_features(self) -> int | None:
        """How many features each row has; None for ratings."""
        names = self.feature_names
        return len(names) if names else getattr(self._plan, "n_features", None)

    def _restore(self, position: dict[str, Any]) -> None:
        self._first = self._source_of(position)
        goes_on = position["offset"] is not None and not position["pipe"]
        if goes_on and self._sources[self._first].name == position["name"]:
            self._start = {k: position[k] for k in ("offset", "row", "line", "passed")}
        self._texts = list(position["texts"])
        self.bad_rows = BadRows.from_state(position["bad_rows"])
        if isinstance(self._plan, RowPlan):
            if position["feature_names"] is not None:
                self._plan.feature_names = list(position["feature_names"])
            self._plan.n_features = position["n_features"]

    def _source_of(self, position: dict[str, Any]) -> int:
        """Return which source to go on with; a pipe goes on with what comes."""
        names = [source.name for source in self._sources]
        index, name = position["file"], position["name"]
        if index < len(names) and names[index] == name:
            return int(index)
        if name in names:
            return names.index(name)
        if position["pipe"]:
            return 0
        if "-" in names:
            return names.index("-")
        raise DataError(
            "reading stopped in this file, which is not among those given",
            file=name,
            remedy="give the same files to go on",
        )

    def _position(self, index: int, batch: Batch | None, passed: int) -> dict[str, Any]:
        at = batch.start if batch else {"offset": None, "row": 0, "line": 0}
        return {
            "file": index,
            "name": self._sources[index].name,
            "pipe": self._sources[index].is_pipe,
            **at,
            "passed": passed,
            "texts": list(self._texts),
            "bad_rows": self.bad_rows.state_dict(),
            "feature_names": self.feature_names,
            "n_features": self.n_features,
        }

    def _check_columns(self) -> None:
        """Refuse missing columns before any row is read; not of a pipe, which opens only once."""
        for source in self._sources:
            if not source.is_pipe:
                with closing(open_source(source, self._plan, self._dialect)) as file:
                    self.has_header = file.has_header

    def _find_width(self) -> None:
        """Read LIBSVM files once to find how many features they have."""
        if not self._needs_width() or any(source.is_pipe for source in self._sources):
            return
        width = 0
        for source in self._sources:
            with closing(open_source(source, self._plan, self._dialect)) as file:
                for batch in file.batches(None, self._chunk_rows):
                    self._refuse(batch.bad, source, file)
                    width = max(width, batch.fields["X"].shape[1])
        cast(RowPlan, self._plan).n_features = width

    def _refuse(self, bad: list[BadRow], source: Source, file: DataFile) -> None:
        if not bad or self._on_bad_row == "skip":
            return
        first = bad[0]
        if first.row == 1 and first.reason == "not a number" and not file.has_header:
            remedy = "if the first line is a header, say --header; otherwise correct it"
            first = replace(first, remedy=remedy)
        raise first.error(source.name)

    def _read(self) -> Generator[C, None, None]:
        with suppress(Stopped):
            yield from self._read_all()

    def _read_all(self) -> Iterator[C]:
        for index in range(self._first, len(self._sources)):
            start = self._start if index == self._first else None
            with closing(open_source(self._sources[index], self._plan, self._dialect)) as file:
                self.has_header = file.has_header
                if self._needs_width():
                    raise DataError(
                        "how many features LIBSVM rows have is not known from a pipe",
                        file=self._sources[index].name,
                        remedy="say it (--n-features)",
                    )
                yield from self._read_file(index, file, start)

    def _needs_width(self) -> bool:
        """Whether rows are LIBSVM's, and how many features they have is not known yet."""
        plan = self._plan
        return isinstance(plan, RowPlan) and not plan.feature_names and not plan.n_features

    def _read_file(self, index: int, file: DataFile, start: dict[str, int] | None) -> Iterator[C]:
        source = self._sources[index]
        passed_before = start["row"] + start["passed"] if start else 0
        any_records = start is not None
        held = _Held()
        batch: Batch | None = None
        for batch in file.batches(start, self._chunk_rows):
            any_records |= batch.n_records > 0
            bad = [b for b in batch.bad if b.row > passed_before]
            self._refuse(bad, source, file)
            self._unify(batch)
            n = len(batch.rows)
            i = int(np.searchsorted(batch.rows, passed_before, side="right"))
            while n - i + len(held) >= self._chunk_rows:
                j = i + self._chunk_rows - len(held)
                held.add(batch, i, j)
                last = int(batch.rows[j - 1]) if j < n else batch.start["row"] + batch.n_records
                bad = self._count(bad, last, source)
                yield self._chunk(held, index, batch, last - batch.start["row"])
                i = j
            held.add(batch, i, n)
            self._count(bad, batch.start["row"] + batch.n_records, source)
            if batch.pause and len(held):
                yield self._chunk(held, index, batch, batch.n_records)
        if len(held) and batch is not None:
            yield self._chunk(held, index, batch, batch.n_records)
        if not any_records:
            raise empty(source.name)
        if start and passed_before > (batch.start["row"] + batch.n_records if batch else 0):
            raise shortened(source.name)

    def _unify(self, batch: Batch) -> None:
        """Keep ids as text once one was text, so that it does not matter where chunks begin."""
        for name in self._plan.id_fields:
            ids = batch.fields[name]
            if len(ids) and ids.dtype == object and name not in self._texts:
                self._texts.append(name)
            if name in self._texts:
                batch.fields[name] = as_text(ids)

    def _count(self, bad: list[BadRow], last: int, source: Source) -> list[BadRow]:
        """Count the rows left out up to the last row passed; the others are still to come."""
        for b in bad:
            if b.row <= last:
                self.bad_rows.add(source.name, b)
        return [b for b in bad if b.row > last]

    def _chunk(self, held: _Held, index: int, batch: Batch, passed: int) -> C:
        fields, rows = held.take()
        position = self._position(index, batch, passed)
        name = self._sources[index].name
        return cast(C, self._plan.chunk(fields, file=name, rows=rows, position=position))


class _Held:
    """Rows that wait until there are enough for a chunk."""

    def __init__(self) -> None:
        self._parts: list[tuple[dict[str, Any], Array]] = []
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, batch: Batch, i: int, j: int) -> None:
        if j > i:
            part = {k: v if v is None else v[i:j] for k, v in batch.fields.items()}
            self._parts.append((part, batch.rows[i:j]))
            self._n += j - i

    def take(self) -> tuple[dict[str, Any], Array]:
        names = self._parts[0][0]
        fields = {name: _joined([part[name] for part, _ in self._parts]) for name in names}
        rows = np.concatenate([rows for _, rows in self._parts])
        self._parts, self._n = [], 0
        return fields, rows


def _joined(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    if sp.issparse(parts[0]):
        return parts[0].copy() if len(parts) == 1 else sp.vstack(parts, format="csr")
    if any(part.dtype == object for part in parts):
        parts = [as_text(part) for part in parts]
    # Always a copy: Arrow's memory may not be written to.
    return np.concatenate(parts)


def read_ratings(
    paths: Paths,
    *,
    user: ColumnSpec | None = None,
    item: ColumnSpec | None = None,
    rating: ColumnSpec | None = None,
    needs_rating: bool = True,
    loss: Loss | None = None,
    chunk_rows: int = 65_536,
    on_bad_row: OnBadRow = "raise",
    position: dict[str, Any] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    pause: float = 0.2,
    block_bytes: int = 1 << 22,
    stop: Callable[[], bool] = lambda: False,
) -> Reader[RatingChunk]:
    r"""Read ratings in chunks.

    Parameters
    ----------
    paths : str, path, or sequence of them
        Files, patterns (``"part-*.csv"``, sorted), or ``"-"`` for standard input; ``.gz`` and
        ``.zst`` are read as they are.
    user, item, rating : str or int, optional
        Columns by name, or by number counted from 1 as cut and awk do. By default those whose
        names are obvious: user, user_id, userId; item, item_id, movieId; rating, stars, score,
        value.
    needs_rating : bool
        False to read pairs of user and item only.
    loss : Loss, optional
        A rating that this loss is not defined for makes a row a bad one.
    chunk_rows : int
        Rows of a chunk; fewer at the end of a file, and when a pipe pauses.
    on_bad_row : {"raise", "skip"}
        Whether a row that cannot be used is an error, or is left out and counted.
    position : dict, optional
        Go on from here: the ``position`` of a reader or chunk. Standard input goes on with
        what comes.
    format : {"csv", "tsv", "parquet", "libsvm", "jsonl"}, optional
        By default what the name's ending says (.csv .tsv .txt .data .dat .parquet .libsvm .svm
        .jsonl .ndjson), otherwise what the beginning looks like.
    delimiter : str, optional
        What separates the cells; by default what the format says, or the first line shows.
    header : bool, optional
        Whether the first line names the columns. By default it does if columns are given by
        name or not at all; if they are given by number, it does if it has no number where there
        should be one.
    pause : float
        Seconds without data after which the rows that came through a pipe are handed out.
    block_bytes : int
        Text is read in blocks of about this size.
    stop : callable
        Called while a pipe has no data; True ends the reading.

    Returns
    -------
    Reader
        An iterator of :class:`RatingChunk`.

    Raises
    ------
    DataError
        One line that names file, row, column, value and remedy.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from onlinefw.readers import read_ratings
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> path = folder / "u.data"
    >>> _ = path.write_text("196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    >>> chunk = next(read_ratings(path, user=1, item=2, rating=3))
    >>> chunk.users, chunk.items, chunk.values, chunk.first_row
    (array([196, 186]), array([242, 302]), array([3., 3.]), 1)
    """
    plan = RatingPlan(user, item, rating, needs_rating, loss)
    dialect = Dialect(delimiter, header, pause, block_bytes, stop)
    sources = find_sources(paths, format)
    return Reader(sources, plan, dialect, chunk_rows, on_bad_row, position)


def read_rows(
    paths: Paths,
    *,
    target: ColumnSpec | None = None,
    features: str | Sequence[ColumnSpec] | None = None,
    labels: bool = False,
    needs_target: bool = True,
    n_features: int | None = None,
    zero_based: bool = False,
    loss: Loss | None = None,
    dtype: Any = np.float64,
    chunk_rows: int = 65_536,
    on_bad_row: OnBadRow = "raise",
    position: dict[str, Any] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    pause: float = 0.2,
    block_bytes: int = 1 << 22,
    stop: Callable[[], bool] = lambda: False,
) -> Reader[RowChunk]:
    r"""Read rows of features in chunks.

    Parameters
    ----------
    paths : str, path, or sequence of them
        As for :func:`read_ratings`.
    target : str or int, optional
        The column to predict; by default the one called target, label, class or y.
    features : str or sequence, optional
        Columns: ``"age,height"``, ``"3-10"``, or a list. By default all but the target.
    labels : bool
        The target is a label (an integer or text) rather than a number. "1.0" is 1, "01" is text.
    needs_target : bool
        False to read rows to predict; a ``target`` that is there is left out of the features.
    n_features : int, optional
        How many there are; LIBSVM from a pipe needs it, and LIBSVM files are read twice
        without it.
    zero_based : bool
        LIBSVM indices count from 0 rather than from 1.
    loss : Loss, optional
        A target that this loss is not defined for makes a row a bad one.
    dtype : dtype
        Of the features.
    chunk_rows, on_bad_row, position, format, delimiter, header, pause, block_bytes, stop
        As for :func:`read_ratings`.

    Returns
    -------
    Reader
        An iterator of :class:`RowChunk`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from onlinefw.readers import read_rows
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = path.write_text("length,width,kind\n5.1,3.5,setosa\n7.0,3.2,versicolor\n")
    >>> chunk = next(read_rows(path, target="kind", labels=True))
    >>> chunk.X.tolist(), chunk.y.tolist()
    ([[5.1, 3.5], [7.0, 3.2]], ['setosa', 'versicolor'])
    """
    plan = RowPlan(target, features, labels, needs_target, dtype, n_features, zero_based, loss)
    dialect = Dialect(delimiter, header, pause, block_bytes, stop)
    sources = find_sources(paths, format)
    return Reader(sources, plan, dialect, chunk_rows, on_bad_row, position)
