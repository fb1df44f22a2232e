"""What the entries say of a row or a column, for whoever recommends."""

from __future__ import annotations

from .._typing import Array
from ..past.protocols import EntriesPast

__all__ = ["SeenEntries"]


class SeenEntries:
    """The part of :class:`~onlinefw.objectives.ObservedEntries` that tells what was seen."""

    _past: EntriesPast
    _has_offsets: bool

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed, increasing."""
        return self._past.columns_of(row)

    def seen(self) -> tuple[Array, Array]:
        """Return the observed columns of every row, compressed: indptr, columns."""
        return self._past.seen()

    @property
    def column_offsets(self) -> Array | None:
        """What is predicted besides theta in every column; None without offsets."""
        return self._past.col_offset if self._has_offsets else None
