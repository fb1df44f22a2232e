"""The loss along a line, from the sums of all shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .entries import ShardedEntries

__all__ = ["Parabola", "SplitLine", "parabola"]


class Parabola:
    """A quadratic loss: everything is known from the start."""

    def __init__(self, value: float, slope: float, curvature: float) -> None:
        self._value, self._slope, self.curvature = value, slope, curvature

    def value(self, c: float) -> float:
        """Return the loss at c."""
        return self._value + c * (self._slope + 0.5 * c * self.curvature)

    def slope(self, c: float) -> float:
        """Return its derivative."""
        return self._slope + c * self.curvature


def parabola(parts: list[Any]) -> Parabola:
    """Return the sum of the shards' parabolas."""
    return Parabola(*(float(sum(column)) for column in zip(*parts, strict=True)))


class SplitLine:
    """Any other loss: each evaluation asks all shards."""

    curvature = None

    def __init__(self, entries: ShardedEntries) -> None:
        self._entries = entries

    def value(self, c: float) -> float:
        """Return the loss at c."""
        return self._sum("line_value", c)

    def slope(self, c: float) -> float:
        """Return its derivative."""
        return self._sum("line_slope", c)

    def _sum(self, method: str, c: float) -> float:
        self._entries.reads += 1
        return float(sum(self._entries._ask(method, float(c))))
