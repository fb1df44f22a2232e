"""Entries that leave a past: those that have faded away, and those of a row that is forgotten."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from .._devices import namespace
from .._typing import Array

__all__ = ["Forgotten", "LeavingEntries", "sums_of"]


class Forgotten(NamedTuple):
    """What a row had: columns, weights, and values (of repeats that are summed up, means)."""

    columns: Array
    weights: Array
    values: Array


def sums_of(c: Array, s: Array, sums_repeats: bool) -> tuple[float, float]:
    """Return weight and weighted squares of entries, as counts have them.

    Of several observations that are summed up in one entry the squares are those of their mean.
    """
    xp: Any = namespace(c)
    c, s = c.astype(float), s.astype(float)
    some = c > 0.0
    squares = xp.square(s[some]) / c[some] if sums_repeats else c * xp.square(s)
    return float(c.sum()), float(squares.sum())


class LeavingEntries(ABC):
    """The part of a past in the memory of one process or GPU that lets entries fade and leave."""

    sums_repeats: bool
    _store: Any
    _line: Any
    _regressions: Any
    _due: bool

    @property
    @abstractmethod
    def n_newest(self) -> int:
        """How many entries are in the tail."""

    @abstractmethod
    def merge(self, n: int) -> None:
        """Sort the n oldest entries of the tail in."""

    def rescale(self, factor: float) -> None:
        """Multiply the weights of all entries with a power of two."""
        self._line = self._regressions = None
        self._due = True
        self._store = self._store.rescaled(factor, self.sums_repeats)

    def drop(self, least: float) -> tuple[float, float]:
        """Drop entries that weigh less; return their weight and weighted squares."""
        self.merge(self.n_newest)
        self._store, gone = self._store.without_light(least, self.sums_repeats)
        return gone

    def forget(self, row: int) -> Forgotten:
        """Remove a row's entries; return what they were."""
        self.merge(self.n_newest)
        self._store, (columns, c, s) = self._store.without_row(row, self.sums_repeats)
        c, s = c.astype(float), s.astype(float)
        return Forgotten(columns, c, self._values(c, s))

    def value_range(self) -> tuple[float, float]:
        """Return the smallest and the largest value kept."""
        c, s = (self._store.values(name).astype(float) for name in ("c", "s"))
        values = self._values(c, s)[c > 0.0]
        return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))

    def _values(self, c: Array, s: Array) -> Array:
        """Return the values that belong to weights and targets, 0 without weight."""
        return np.divide(s, c, where=c > 0.0, out=0.0 * s) if self.sums_repeats else s
