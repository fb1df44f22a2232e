"""Chunks of a given size from files, from the beginning or from any position."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from .._typing import Array
from .batches import Batch
from .cells import as_text
from .chunks import Chunk, RowChunk
from .errors import BadRow, BadRows, DataError, asked_at_once, shortened
from .files import DataFile, Dialect, empty, open_source
from .missing import REASONS
from .plans import Plan, RowPlan
from .sources import Source
from .streams import Stopped
from .treatment import Treatment

__all__ = ["OnBadRow", "Reader", "joined"]

C = TypeVar("C", bound=Chunk)
OnBadRow = Literal["raise", "skip"]


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
        if isinstance(chunk, RowChunk) and isinstance(self._plan, RowPlan):
            self._plan.treatment.fill(chunk.X)
            chunk.position["treatment"] = self.treatment
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
        """The names (or numbers, as text) of the features; None for ratings and LIBSVM.

        A column of text makes several features.
        """
        return self._plan.treatment.names if isinstance(self._plan, RowPlan) else None

    @property
    def feature_columns(self) -> list[str] | None:
        """The columns that features are made of; None for ratings and LIBSVM."""
        return getattr(self._plan, "feature_names", None)

    @property
    def column_names(self) -> dict[str, str]:
        """The names (or numbers, as text) of user, item, rating and target, where they are read."""
        return self._plan.column_names

    @property
    def all_names(self) -> list[str] | None:
        """The names of all columns of the first file, used or not; None if they have none."""
        return self._plan.all_names

    @property
    def n_features(self) -> int | None:
        """How many features each row has; None for ratings."""
        names = self.feature_names
        return len(names) if names else getattr(self._plan, "n_features", None)

    @property
    def treatment(self) -> dict[str, Any] | None:
        """How cells that are missing or text were treated so far, as JSON values.

        ``read_rows(..., like=treatment)`` treats other rows in the same way. None if every cell
        must be a number.
        """
        return self._plan.treatment.state_dict() if isinstance(self._plan, RowPlan) else None

    def _restore(self, position: dict[str, Any]) -> None:
        self._first = self._source_of(position)
        goes_on = position["offset"] is not None and not position["pipe"]
        if goes_on and self._sources[self._first].name == position["name"]:
            self._start = {k: position[k] for k in ("offset", "row", "line", "passed")}
        self._texts = list(position["texts"])
        self.bad_rows = BadRows.from_state(position["bad_rows"])
        self._restore_columns(position)

    def _restore_columns(self, position: dict[str, Any]) -> None:
        if not isinstance(self._plan, RowPlan):
            return
        if position["feature_names"] is not None:
            self._plan.feature_names = list(position["feature_names"])
        self._plan.n_features = position["n_features"]
        if position.get("treatment") is not None:
            self._plan.treatment = Treatment.from_state(position["treatment"])

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
            **self._columns_found(),
        }

    def _columns_found(self) -> dict[str, Any]:
        names = getattr(self._plan, "feature_names", None)
        width = len(names) if names else getattr(self._plan, "n_features", None)
        return {"feature_names": names, "n_features": width, "treatment": self.treatment}

    def _check_columns(self) -> None:
        """Refuse missing columns before any row is read; not of a pipe, which opens only once."""
        for source in self._sources:
            if not source.is_pipe:
                with closing(open_source(source, self._plan, self._dialect)) as file:
                    self.has_header = file.has_header
        if isinstance(self._plan, RowPlan) and self._plan.treatment.looks_for_text:
            self._look_for_text(self._plan)

    def _look_for_text(self, plan: RowPlan) -> None:
        from .text_look import look_for_text

        first = self._sources[0]
        if first.is_pipe:
            raise DataError(
                "--text needs a file: its first rows tell which columns are text",
                file=first.name,
                remedy="write what comes through the pipe to a file first",
            )
        look_for_text(first, plan, self._dialect, bool(self.has_header))

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
        treatment = self._plan.treatment if isinstance(self._plan, RowPlan) else None
        if treatment and treatment.missing == "drop":
            bad = [b for b in bad if b.reason not in REASONS]
        if not bad or self._on_bad_row == "skip":
            return
        nothing_said = treatment and treatment.text is None and treatment.missing == "refuse"
        first = asked_at_once(bad) if nothing_said else bad[0]
        if first.row == 1 and first.reason == "not a number" and not file.has_header:
            remedy = f"if the first line is a header, say --header; otherwise {first.remedy}"
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
        fields = {name: joined([part[name] for part, _ in self._parts]) for name in names}
        rows = np.concatenate([rows for _, rows in self._parts])
        self._parts, self._n = [], 0
        return fields, rows


def joined(parts: list[Any]) -> Any:
    """Put pieces of a field together; None if there is no such field."""
    if parts[0] is None:
        return None
    if sp.issparse(parts[0]):
        return parts[0].copy() if len(parts) == 1 else sp.vstack(parts, format="csr")
    if any(part.dtype == object for part in parts):
        parts = [as_text(part) for part in parts]
    # Always a copy: Arrow's memory may not be written to.
    return np.concatenate(parts)
