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
        bend = objective._carried.bends(objective.intercept)
        bend /= objective.total_weight
        self.hessian, cross = objective._rows.gram(chosen, bend)
        total = float(bend.sum())
        # How much the intercept falls when a coordinate rises.
        self._pull = np.zeros(chosen.size)
        if objective.fit_intercept and total > 0.0:
            self._pull = cross / total
            self.hessian -= np.multiply.outer(cross, self._pull)

    def move(self, change: Array) -> float:
        """Move theta by ``change``, or by a part of it that lowers F; return the part.

        Both ends of the change must be in the set, so all between are.
        """
        objective = self._objective
        carried, weight, b = objective._carried, objective.total_weight, objective.intercept
        image = objective._rows.columns(self._chosen, change)
        follow = -float(self._pull @ change)
        slope = float(self.gradient @ change)
        start, part = carried.total(b) / weight, 1.0
        for _ in range(HALVINGS):
            limit = start + 1e-4 * part * slope + ROUNDING * abs(start)
            if carried.total_along(image, part, b + part * follow) / weight <= limit:
                break
            part *= 0.5
        else:
            return 0.0
        carried.shift(image, part)
        if objective.fit_intercept:
            objective._b = b + part * follow
        iterate = objective.iterate
        assert isinstance(iterate, DenseIterate)
        iterate.shift(self._chosen, part * change)
        objective._moved()
        return part
