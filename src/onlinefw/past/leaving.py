"""Entries that leave a past: those that have faded away, and those of a row that is forgotten."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._devices import namespace
from .._typing import Array

__all__ = ["Forgotten", "sums_of"]


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
