"""What is asked of entries where all others count as zeros (clicks)."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from .._devices import namespace
from .._typing import Array

__all__ = ["StoredZeros", "UnobservedPast", "Zeros", "first_of"]


class UnobservedPast(Protocol):
    """The part of :class:`~onlinefw.past.protocols.EntriesPast` for entries that were not observed.

    All entries count as zeros, for which the caller sees, and those that were observed weigh less
    by as much, once each.

    """

    def n_distinct(self) -> int:
        """Return how many entries were observed, repeated ones once."""
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
    _y: Any

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

    def n_distinct(self) -> int:
        """Return how many entries were observed, repeated ones once."""
        return self._store.n_distinct

    @property
    def first(self) -> Array | None:
        """Which entries of the tail weigh less (1) and which do not (0); None if none does."""
        return self._store.tail.arrays[6] if self.unobserved > 0.0 else None

    def products(self) -> Array:
        """Return G V of the last read, with what was added to it."""
        return self._y


class Zeros(NamedTuple):
    """Entries that were not observed count as zeros: their weight, and what is added to theta.

    All entries are zeros, and what was observed weighs less by as much. So a regression has the
    squares of all features, of which there is one sum for all.
    """

    weight: float
    rows: Array
    columns: Array

    def common(self, features: Array, their_offset: Array) -> Array:
        """Return what all regressions on these features have in common, as ``ridge_rows`` says.

        numpy or CuPy.
        """
        xp, x = namespace(features), features.astype(float)
        parts = x.T @ x, -(x.T @ their_offset.astype(float)), -x.sum(axis=0)
        return self.weight * xp.column_stack(parts)


def first_of(keys: Array, before: Array) -> Array:
    """Return whether each key is there for the first time, also not among those before.

    numpy or CuPy. Of equal keys it is the earliest, which is sorted in before the others.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.unobserved import first_of
    >>> first_of(np.array([5, 3, 5, 8]), before=np.array([8, 1])).tolist()
    [True, True, False, False]
    """
    xp: Any = namespace(keys)
    order = xp.argsort(keys, kind="stable")
    ordered, found = keys[order], xp.ones(keys.size, bool)
    found[1:] = ordered[1:] != ordered[:-1]
    out = xp.empty(keys.size, bool)
    out[order] = found & ~xp.isin(ordered, before)
    return out
