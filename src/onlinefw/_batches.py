"""Batches that have not been read: a handle says where the data of a round are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from ._typing import Array

__all__ = ["BatchHandle", "naming"]


@dataclass(frozen=True)
class BatchHandle(ABC):
    """Where the data of a round are, not the data: some rows of one file.

    ``open()`` reads them, in whichever process it is called. A handle is pickled alone, without
    those that follow, so it may be sent to a worker and kept in a log.

    Attributes
    ----------
    holds : str
        "rows" (of features, for linear models) or "ratings" (entries of a matrix).
    file, start, stop
        Which rows of which file.
    columns
        The names of the columns.
    partition : int
        The number of the file: worker ``partition % n`` reads it.
    following : BatchHandle or None
        The handle of the next round, whose data may be read ahead.
    """

    holds: ClassVar[str]

    file: str
    start: int
    stop: int
    columns: Any
    partition: int = 0
    following: Self | None = field(default=None, repr=False, compare=False)

    @abstractmethod
    def open(self) -> tuple[Any, Array, Array | None]:
        """Read the batch: X, y and the weights, None where there are none."""

    @property
    def where(self) -> tuple[str, int, int, Any]:
        """File, first row, end and columns: ``type(handle)(*handle.where)`` opens the same data."""
        return self.file, self.start, self.stop, self.columns

    def alone(self) -> Self:
        """Return the same handle without those that follow, which it would keep alive."""
        return self if self.following is None else replace(self, following=None)

    def __len__(self) -> int:
        return self.stop - self.start

    def __reduce__(self) -> Any:
        return type(self), (*self.where, self.partition)

    def __str__(self) -> str:
        return f"{self.file}, rows {self.start + 1} to {self.stop}"


@contextmanager
def naming(handle: BatchHandle) -> Iterator[None]:
    """Let an error about the data of a handle begin with the file and the rows."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise ValueError(f"{handle}: {error}") from None
