"""What is asked of entries where all others count as zeros (clicks)."""

from __future__ import annotations

from typing import Any, Protocol

from .._typing import Array

__all__ = ["ListedZeros", "StoredZeros", "UnobservedPast"]


class UnobservedPast(Protocol):
    """The part of :class:`~onlinefw.past.protocols.EntriesPast` for entries that were not observed.

    All entries count as zeros, for which the caller sees, and those that were observed weigh less
    by as much, once each.

    """

    @property
    def n_distinct(self) -> int:
        """How many entries were observed, repeated ones once."""
        ...

    def set_unobserved(self, weight: float) -> None:
        """Let observed entries weigh less by this in all slopes, sums and regressions.

        Regressions also have the zeros everywhere.
        """
        ...

    def products(self) -> Array:
        """Return G V of the last read, with what was added to it, at the place of theta."""
        ...


class StoredZeros:
    """The same of entries in the memory of one process or GPU."""

    parameter: float
    unobserved: float = 0.0
    _store: Any
    _line: Any
    _regressions: Any
    _due: bool

    def set_unobserved(self, weight: float) -> None:
        """Let observed entries weigh less by this: it is the parameter of the square loss."""
        if weight == self.unobserved:
            return
        self._line = self._regressions = None
        self._due = True
        if self.unobserved == 0.0:
            self._find_first()
        self.unobserved = self.parameter = float(weight)

    def _find_first(self) -> None:
        """Find which entries of the tail are the first of their kind."""
        self._store = self._store.with_first()

    @property
    def n_distinct(self) -> int:
        """How many entries were observed, repeated ones once."""
        return self._store.n_distinct


class ListedZeros(StoredZeros):
    """The same of entries in lists, which have each entry once where others count as zeros."""

    lists: Any

    def _find_first(self) -> None:
        """There is no tail; lists that have entries were made with each once."""

    @property
    def n_distinct(self) -> int:
        """How many entries were observed."""
        return len(self.lists)
