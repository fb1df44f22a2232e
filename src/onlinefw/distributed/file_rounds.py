"""Rounds from partitioned files: which rows of which file come when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from .._validation import check_whole
from .parquet_files import files_in, n_rows

__all__ = ["FileBatch", "FileRounds"]

Batch = TypeVar("Batch", bound="FileBatch")


@dataclass(frozen=True)
class FileBatch:
    """Some rows of one file: where the data of a round are, not the data.

    Attributes
    ----------
    file, start, stop
        Which rows.
    columns
        The names of the columns.
    partition : int
        The number of the file: worker ``partition % n`` reads it.
    following : FileBatch or None
        The batch of the next round, which may be read ahead.
    """

    file: str
    start: int
    stop: int
    columns: Any
    partition: int = 0
    following: Self | None = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> tuple[str, int, int, Any]:
        """What is needed to read it, without the batches that follow."""
        return self.file, self.start, self.stop, self.columns

    def __reduce__(self) -> Any:
        # Alone: all the batches that follow would travel as well.
        return type(self), (*self.place, self.partition)

    def __str__(self) -> str:
        return f"{self.file}, rows {self.start + 1} to {self.stop}"


class FileRounds(Generic[Batch]):
    """Cuts every file into batches; an iterable of them.

    The rounds take the first batch of each file, then the second of each, and so on: whichever
    worker reads them, the rounds are the same.
    """

    _kind: type[Batch]
    columns: Any

    def __init__(self, source: Any, batch_size: int) -> None:
        self.files = files_in(source)
        self.batch_size = check_whole("batch_size", batch_size)
        self._lengths = [n_rows(file) for file in self.files]

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

    def __iter__(self) -> Iterator[Batch]:
        batches: list[Batch] = []
        following: Batch | None = None
        for partition, start in reversed(self._places()):
            stop = min(start + self.batch_size, self._lengths[partition])
            file = self.files[partition]
            following = self._kind(file, start, stop, self.columns, partition, following)
            batches.append(following)
        while batches:
            yield batches.pop()
