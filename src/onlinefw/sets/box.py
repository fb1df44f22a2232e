"""Boxes with a lower and an upper bound for every entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array, Direction, Shape
from ..atoms import DenseAtom
from .base import ConvexSet, Ord, as_array, finite

__all__ = ["Box"]


@dataclass(frozen=True, eq=False)
class Box(ConvexSet):
    """{lower <= x <= upper}, bounds given as numbers or arrays. A polytope.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import Box
    >>> Box(0.0, [1.0, 2.0]).lmo(np.array([1.0, -1.0])).dense()
    array([0., 2.])
    """

    lower: Array
    upper: Array

    is_polytope = True

    def __post_init__(self) -> None:
        lower, upper = np.asarray(self.lower, float), np.asarray(self.upper, float)
        try:
            np.broadcast_shapes(lower.shape, upper.shape)
        except ValueError:
            raise ValueError(
                f"Box needs bounds of one shape, got lower {lower.shape} and upper {upper.shape}"
            ) from None
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise ValueError("Box needs finite bounds: an unbounded set has no vertices to move to")
        if np.any(lower > upper):
            raise ValueError("Box needs lower <= upper in every entry")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def contains_zero(self) -> bool:  # type: ignore[override]
        """Whether 0 lies between the bounds."""
        return bool(np.all(np.less_equal(self.lower, 0)) and np.all(np.less_equal(0, self.upper)))

    @property
    def bounds_shape(self) -> Shape:
        """The common shape of the bounds; () when both are numbers."""
        return np.broadcast_shapes(np.shape(self.lower), np.shape(self.upper))

    def check_shape(self, shape: Shape) -> None:
        """Refuse points that do not match array bounds."""
        if self.bounds_shape not in ((), tuple(shape)):
            raise ValueError(
                f"this Box has bounds of shape {self.bounds_shape}, but the points "
                f"have shape {tuple(shape)}; give bounds of that shape, or numbers"
            )

    def lmo(self, direction: Direction) -> DenseAtom:
        """Return the corner with the lower bound where g > 0, else the upper bound."""
        g = as_array(direction, self)
        finite(float(np.abs(g).max(initial=0.0)), self)
        return DenseAtom(np.where(g > 0, self.lower, self.upper))

    def _project(self, point: Array) -> Array:
        """Clip every entry."""
        return np.clip(point, self.lower, self.upper)

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether every entry lies between its bounds."""
        slack = tol * max(float(np.abs(self.lower).max()), float(np.abs(self.upper).max()))
        return bool(np.all(point >= self.lower - slack) and np.all(point <= self.upper + slack))

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        width = np.subtract(self.upper, self.lower)
        if width.ndim == 0:
            if ord == np.inf:
                return float(width)
            width = np.broadcast_to(width, self._shape(shape))
        if ord == "nuc":
            if width.ndim != 2:
                raise ValueError(f"the nuclear norm needs a matrix shape, got {width.shape}")
            return np.sqrt(min(width.shape)) * float(np.linalg.norm(width))
        return float(np.linalg.norm(width.reshape(-1), ord))
