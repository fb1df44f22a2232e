"""A second-order model of F in a few coordinates, and the step that it suggests."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dger

from .._typing import Array
from ..kernels import ROUNDING

__all__ = ["CoordinateModel"]

#: A step is halved at most this often.
HALVINGS = 30


class CoordinateModel:
    """Gradient and Hessian of a linear objective in the chosen (increasing) coordinates.

    The intercept goes along with theta: it is eliminated from the model. A loss that is not convex
    has a convex model. ``cross`` are the mixed second derivatives with the intercept, ``bend`` is
    its own.
    """

    def __init__(
        self,
        objective: Any,
        chosen: Array,
        gradient: Array,
        hessian: Array,
        cross: Array,
        bend: float,
    ) -> None:
        self._objective, self._chosen = objective, chosen
        self.gradient, self.hessian = gradient, hessian
        # How much the intercept falls when a coordinate rises.
        self._pull = np.zeros(chosen.size)
        if objective.fit_intercept and bend > 0.0:
            self._pull = cross / bend
            # In place: the outer product of a thousand coordinates is as large as the Hessian.
            dger(-1.0, self._pull, cross, a=self.hessian.T, overwrite_a=True)

    def move(self, change: Array) -> float:
        """Move theta by ``change``, or by a part of it that lowers F; return the part.

        Both ends of the change must be in the set, so all between are.
        """
        objective = self._objective
        b = objective.intercept
        line = objective.begin_change(self._chosen, change)
        fall = float(self._pull @ change)
        slope = float(self.gradient @ change)
        start, part = line.value(0.0, b), 1.0
        for _ in range(HALVINGS):
            limit = start + 1e-4 * part * slope + ROUNDING * abs(start)
            if line.value(part, b - part * fall) <= limit:
                break
            part *= 0.5
        else:
            return 0.0
        objective.finish_change(self._chosen, change, part, b - part * fall)
        return part
