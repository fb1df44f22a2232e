"""F along a line from theta, for line searches."""

from __future__ import annotations

from typing import Any

__all__ = ["Parabola", "PastLine"]


class Parabola:
    """A quadratic F: value, slope and curvature at 0 say everything.

    Examples
    --------
    >>> from onlinefw.objectives.lines import Parabola
    >>> line = Parabola(1.0, -2.0, 4.0)
    >>> line.value(0.5), line.slope(0.5)
    (0.5, 0.0)
    """

    def __init__(self, value: float, slope: float, curvature: float) -> None:
        self._value, self._slope, self.curvature = value, slope, curvature

    def value(self, c: float) -> float:
        """Return F at c."""
        return self._value + c * (self._slope + 0.5 * c * self.curvature)

    def slope(self, c: float) -> float:
        """Return dF/dc at c."""
        return self._slope + c * self.curvature


class PastLine:
    """Any other F: the past computes every value and slope on the line that it has begun.

    Its sums, to which it lacks a ``constant``, are divided by the weight. ``before`` and ``after``
    are arguments of ``line_value`` and ``line_slope`` before and after c.
    """

    curvature = None

    def __init__(
        self,
        past: Any,
        weight: float,
        before: tuple[Any, ...] = (),
        after: tuple[Any, ...] = (),
        constant: float = 0.0,
    ) -> None:
        self._past, self._weight, self._constant = past, weight, constant
        self._before, self._after = before, after

    def value(self, c: float, *after: float) -> float:
        """Return F at c."""
        total = self._past.line_value(*self._before, float(c), *(after or self._after))
        return (total + self._constant) / self._weight

    def slope(self, c: float, *after: float) -> float:
        """Return dF/dc at c."""
        slope = self._past.line_slope(*self._before, float(c), *(after or self._after))
        return slope / self._weight
