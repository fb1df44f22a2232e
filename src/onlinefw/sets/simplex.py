"""The scaled probability simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array, Direction, Shape
from ..atoms import SignedCoordinate
from .base import ConvexSet, Ord, as_array, finite, positive
from .projections import project_simplex

__all__ = ["Simplex"]


@dataclass(frozen=True)
class Simplex(ConvexSet):
    """{x >= 0, sum x = radius}: mixtures. A polytope that does not contain 0.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import Simplex
    >>> Simplex().lmo(np.array([1.0, -3.0, 0.5])).dense()
    array([0., 1., 0.])
    >>> Simplex().project(np.array([0.5, 0.5, 0.5]))
    array([0.33333333, 0.33333333, 0.33333333])
    """

    radius: float = 1.0

    is_polytope = True
    contains_zero = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius, "Simplex"))

    def lmo(self, direction: Direction) -> SignedCoordinate:
        """Return radius e_i for the smallest g_i."""
        flat = as_array(direction, self).reshape(-1)
        k = int(flat.argmin())
        finite(float(flat[k]), self)
        return SignedCoordinate(k, self.radius, np.shape(direction))

    def _project(self, point: Array) -> Array:
        """Project by sorting, O(n log n)."""
        return project_simplex(point.reshape(-1), self.radius).reshape(point.shape)

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether all entries are non-negative and sum to the radius."""
        slack = tol * self.radius
        return bool(point.min() >= -slack and abs(point.sum() - self.radius) <= slack)

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        if shape is not None and self._size(shape) == 1:
            return 0.0
        if ord == "nuc":  # two entries in different rows and columns, if there are two of each
            return self.radius * (2.0 if min(self._shape(shape)) > 1 else np.sqrt(2.0))
        return self.radius * 2.0 ** (1.0 / ord)
