"""A pointwise loss over all rows along a line of predictions, on the device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..._devices import to_host
from ..host.row_line import RowLine
from .row_loss import CudaRowLoss

__all__ = ["CudaRowLine"]


class CudaRowLine:
    """The sum of w phi(z + t direction + b, y), as :class:`~onlinefw.past.host.row_line.RowLine`.

    One pass on the device gives value and slope, and no pass is repeated. For a loss of the user's
    own the arrays are in this process's memory, and the direction is copied there as well.
    """

    def __init__(self, loss: CudaRowLoss, z: Any, y: Any, w: Any, direction: Any) -> None:
        self.direction = direction
        self._loss, self._weighed = loss, (z, y, w)
        self._known: dict[tuple[float, float], tuple[float, float]] = {}

    @cached_property
    def _here(self) -> RowLine:
        return RowLine(self._loss.own, *self._weighed, to_host(self.direction))

    def _at(self, t: float, b: float) -> tuple[float, float]:
        found = self._known.get((t, b))
        if found is None:
            value, _, _, slope, _ = self._loss.sums(*self._weighed, b, self.direction, t).tolist()
            found = self._known[t, b] = (value, slope)
        return found

    def value(self, t: float, b: float) -> float:
        return self._at(t, b)[0] if self._loss.is_compiled else self._here.value(t, b)

    def slope(self, t: float, b: float) -> float:
        return self._at(t, b)[1] if self._loss.is_compiled else self._here.slope(t, b)
