"""Rows that leave F_t because somebody is to be forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .linear import LinearObjective
from .row_ids import RowIds
from .row_objective import RowObjective

__all__ = ["can_forget", "forget_rows", "has_others", "ids_of"]


def can_forget(objective: RowObjective) -> bool:
    """Whether an objective keeps rows, so that those of an id can leave."""
    return isinstance(objective, LinearObjective)


def ids_of(objective: RowObjective) -> RowIds | None:
    """Return whose rows an objective has; None if no row has an id."""
    return getattr(objective._shared, "ids", None)


def has_others(objective: RowObjective, ids: Iterable[Any]) -> bool:
    """Whether rows of others count, so that there is an F_t without these ids."""
    return objective._shared.has_others(ids)


def forget_rows(objectives: Sequence[Any], ids: Iterable[Any]) -> None:
    """Remove the rows of these ids from the past that all these objectives share.

    Each theta stays as it is, and is to be corrected.
    """
    objectives[0]._shared.forget(ids)
    for one in objectives:
        one._batch = None  # it may be theirs
        one._forget_derived()
