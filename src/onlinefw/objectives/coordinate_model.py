"""A second-order model of F in a few coordinates, and the step that it suggests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._typing import Array
from ..iterates import DenseIterate
from .intercept import ROUNDING

if TYPE_CHECKING:
    from .linear import LinearObjective

__all__ = ["CoordinateModel"]

#: A step is halved at most this often.
HALVINGS = 30


class CoordinateModel:
    """Gradient and Hessian of a linear objective in the chosen (increasing) coordinates.

    The intercept follows theta: it is eliminated from the model. A loss that is not convex has a
    convex model.
    """

    def __init__(self, objective: LinearObjective, chosen: Array) -> None:
        self._objective, self._chosen = objective, chosen
        self.gradient = objective.gradient().reshape(-1)[chosen]
        self.hessian, cross, bend = objective._second_order(chosen)
        # How much the intercept falls when a coordinate rises.
        self._pull = np.zeros(chosen.size)
        if objective.fit_intercept and bend > 0.0:
            self._pull = cross / bend
            self.hessian -= np.multiply.outer(cross, self._pull)

    def move(self, change: Array) -> float:
        """Move theta by ``change``, or by a part of it that lowers F; return the part.

        Both ends of the change must be in the set, so all between are.
        """
        objective = self._objective
        b = objective.intercept
        trial = objective._trial(self._chosen, change)
        follow = -float(self._pull @ change)
        slope = float(self.gradient @ change)
        start, part = trial.value(0.0, b), 1.0
        for _ in range(HALVINGS):
            limit = start + 1e-4 * part * slope + ROUNDING * abs(start)
            if trial.value(part, b + part * follow) <= limit:
                break
            part *= 0.5
        else:
            return 0.0
        trial.move(part)
        if objective.fit_intercept:
            objective._b = b + part * follow
        iterate = objective.iterate
        assert isinstance(iterate, DenseIterate)
        iterate.shift(self._chosen, part * change)
        objective._moved()
        return part
