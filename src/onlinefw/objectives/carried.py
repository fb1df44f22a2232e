"""What is carried at observed entries, in columns of equal length."""

from __future__ import annotations

from .._growing import GrowingArray
from .._typing import Array

__all__ = ["Carried"]


class Carried:
    """Columns of entries, by name."""

    _columns: dict[str, GrowingArray]

    @property
    def col(self) -> Array:
        """The column of each entry."""
        return self._columns["col"].data

    @property
    def z(self) -> Array:
        """The carried prediction of each entry."""
        return self._columns["z"].data

    @property
    def c(self) -> Array:
        """The weight of each entry."""
        return self._columns["c"].data

    @property
    def s(self) -> Array:
        """The target of each entry (times its weight, where repeats are summed up)."""
        return self._columns["s"].data

    @property
    def g(self) -> Array:
        """The slope of each entry."""
        return self._columns["g"].data
