"""A pointwise loss over all rows along a line of predictions."""

from __future__ import annotations

import numpy as np

from ..._typing import Array
from .row_loss import RowLoss

__all__ = ["RowLine"]


class RowLine:
    """The sum of w phi(z + t direction + b, y) over rows; it does not change the predictions."""

    __slots__ = ("_loss", "_w", "_y", "_z", "direction")

    def __init__(self, loss: RowLoss, z: Array, y: Array, w: Array, direction: Array) -> None:
        self._loss, self._z, self._y, self._w = loss, z, y, w
        self.direction = direction

    def value(self, t: float, b: float) -> float:
        """Return the sum at t."""
        return self._loss.total(self._z + t * self.direction, self._y, self._w, b)

    def slope(self, t: float, b: float) -> float:
        """Return its derivative in t."""
        slopes = self._loss.slopes(self._z + t * self.direction, self._y, self._w, b)
        with np.errstate(over="ignore"):  # an infinite slope is an answer: t is too large
            return float(slopes @ self.direction)
