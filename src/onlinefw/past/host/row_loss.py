"""A pointwise loss over all rows, at the predictions or along a line of them.

There are compiled loops for the built-in losses, and numpy for others.
"""

from __future__ import annotations

import numpy as np

from ..._threads import SMALL_LOOP, blocks_for, share
from ..._typing import Array
from ...kernels import entries as kinds
from ...kernels import rows as kernels
from ...losses import (
    Bernoulli,
    Correntropy,
    Exponential,
    Gaussian,
    Logistic,
    Loss,
    Poisson,
    Sigmoid,
    SignedLabels,
    Square,
)

__all__ = ["RowLine", "RowLoss", "compiled"]

#: A row's loss takes as long as so many entries of a matrix ...
WORK = 4
#: ... so loops over fewer rows than this run on one thread: to start others takes longer.
FEW = SMALL_LOOP // WORK
#: The number that kernels have for each loss, and the attribute that is its parameter.
_KINDS: dict[type[Loss], tuple[int, str | None]] = {
    Square: (kinds.QUADRATIC, None),
    Gaussian: (kinds.QUADRATIC, None),
    Bernoulli: (kinds.BERNOULLI, None),
    Poisson: (kinds.POISSON, None),
    Exponential: (kinds.EXPONENTIAL, "floor"),
    Logistic: (kinds.LOGISTIC, None),
    Sigmoid: (kinds.SIGMOID, "sharpness"),
    Correntropy: (kinds.CORRENTROPY, "sigma"),
}


def compiled(loss: Loss) -> tuple[int, float]:
    """Return the kernels' kind and parameter of a loss; (-1, 0) for one of the user's own."""
    kind, name = _KINDS.get(type(loss), (-1, None))
    return kind, 0.0 if name is None else float(getattr(loss, name))


class RowLoss:
    """Sums and slopes of w phi(z + b, y) over rows."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.kind, self.parameter = compiled(loss)
        # A Gaussian has the slopes of a square, but other values.
        self.is_compiled = self.kind >= 0
        self.compiled_values = self.is_compiled and not isinstance(loss, Gaussian)

    def total(self, z: Array, y: Array, w: Array, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        if self.compiled_values:
            blocks = _blocks(z)
            sums = np.zeros(len(blocks) - 1)
            share(kernels.values, blocks, self.kind, self.parameter, z, y, w, b, sums)
            return float(sums.sum())
        return float(w @ self.loss.value(z + b, y))

    def slopes(self, z: Array, y: Array, w: Array, b: float) -> Array:
        """Return w phi'(z + b, y) of every row."""
        if self.is_compiled:
            out = np.empty(len(z))
            share(kernels.slopes, _blocks(z), self.kind, self.parameter, z, y, w, b, out)
            return out
        return w * self.loss.derivative(z + b, y)

    def curvatures(self, z: Array, y: Array, w: Array, b: float) -> Array:
        """Return w times a curvature >= 0 of phi at (z + b, y) of every row."""
        return w * self.loss.model_curvature(z + b, y)

    def parabola(
        self, z: Array, y: Array, w: Array, b: float, direction: Array
    ) -> tuple[float, float, float]:
        """Return value, slope and curvature at 0 of a quadratic loss along z + t direction."""
        slope = float(self.slopes(z, y, w, b) @ direction)
        curvatures = w * self.loss.second_derivative(z + b, y)
        return self.total(z, y, w, b), slope, float(curvatures @ direction**2)

    def totals(self, z: Array, y: Array, w: Array, b: float) -> tuple[float, float, float]:
        """Return the sums of w phi, of w phi' and of w phi'', all at (z + b, y)."""
        if self.compiled_values:
            blocks = _blocks(z)
            sums = np.zeros((len(blocks) - 1, 3))
            share(kernels.totals, blocks, self.kind, self.parameter, z, y, w, b, sums)
            value, slope, curvature = sums.sum(axis=0).tolist()
            return value, slope, curvature
        loss, at = self.loss, z + b
        terms = loss.value(at, y), loss.derivative(at, y), loss.second_derivative(at, y)
        value, slope, curvature = (float(w @ term) for term in terms)
        return value, slope, curvature

    def limits(self, z: Array, y: Array, w: Array) -> tuple[float, float]:
        """Return the smallest and largest b at which some z + b is y (0, for labels -1 and 1)."""
        return kernels.extremes(z, y, w, isinstance(self.loss, SignedLabels))


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


def _blocks(z: Array) -> Array:
    return blocks_for(len(z), WORK * len(z))
