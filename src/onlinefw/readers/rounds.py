"""Rounds from partitioned files: which rows of which file come when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from .._batches import BatchHandle
from .._validation import check_whole
from .parquet_footers import files_in, n_rows

__all__ = ["FileRounds"]

Batch = TypeVar("Batch", bound=BatchHandle)


class FileRounds(Generic[Batch]):
    """An iterable of batches, into which every file is cut.

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
        return len(self._starts())

    def _starts(self) -> list[tuple[int, int]]:
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
        for partition, start in reversed(self._starts()):
            stop = min(start + self.batch_size, self._lengths[partition])
            file = self.files[partition]
            following = self._kind(file, start, stop, self.columns, partition, following)
            batches.append(following)
        while batches:
            yield batches.pop()
