"""The three kinds of past, spread over workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...iterates import LowRank
from ...losses import Loss
from . import entries, gram, rows
from .entries_placement import EntriesPlacement
from .split_past import SplitPast

if TYPE_CHECKING:
    from ..place import Place

__all__ = ["spread_entries", "spread_gram", "spread_rows"]


def spread_entries(place: Place, theta: LowRank, dtype: Any, loss: Loss) -> Any:
    """Return an :class:`~onlinefw.past.protocols.EntriesPast` without entries, on workers."""
    assert place.workers is not None
    placement = EntriesPlacement(theta, dtype, loss, place.workers)
    return SplitPast(entries.TABLE, placement, place.device, place.workers, place.log_dir)


def spread_rows(place: Place) -> Any:
    """Return a :class:`~onlinefw.past.protocols.RowsPast` without rows, on workers."""
    assert place.workers is not None
    placement = rows.RowsPlacement(place.workers)
    return SplitPast(rows.TABLE, placement, place.device, place.workers, place.log_dir)


def spread_gram(place: Place, n: int) -> Any:
    """Return a :class:`~onlinefw.past.protocols.GramPast` of no rows, on workers."""
    assert place.workers is not None
    placement = gram.GramPlacement(n, place.workers)
    return SplitPast(gram.TABLE, placement, place.device, place.workers, place.log_dir)
