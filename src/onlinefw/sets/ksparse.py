"""The convex hull of vectors with k entries of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array, Direction, Shape
from ..atoms import SparseAtom
from .base import ConvexSet, Ord, as_array, finite, positive
from .projections import project_capped_l1

__all__ = ["KSparse"]


@dataclass(frozen=True)
class KSparse(ConvexSet):
    """``{max |x_i| <= radius, ||x||_1 <= k radius}``: vertices have k entries of size radius.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import KSparse
    >>> KSparse(2, 1.0).lmo(np.array([1.0, -3.0, 0.5])).dense()
    array([-1.,  1.,  0.])
    """

    k: int
    radius: float

    is_polytope = True

    def __post_init__(self) -> None:
        if int(self.k) != self.k or self.k < 1:
            raise ValueError(f"KSparse needs a whole k >= 1, got {self.k!r}")
        object.__setattr__(self, "k", int(self.k))
        object.__setattr__(self, "radius", positive("radius", self.radius, "KSparse"))

    def lmo(self, direction: Direction) -> SparseAtom:
        """Return ``-radius sign(g_i)`` on the k largest ``|g_i|``."""
        g = as_array(direction, self)
        flat = g.reshape(-1)
        sizes = np.abs(flat)
        finite(float(sizes.max()), self)
        k = min(self.k, flat.size)
        # Sorted positions, so that one vertex always has one key in the active set.
        chosen = np.sort(np.argpartition(sizes, flat.size - k)[flat.size - k :])
        return SparseAtom(chosen, np.where(flat[chosen] > 0, -self.radius, self.radius), g.shape)

    def _project(self, point: Array) -> Array:
        """Project by sorting the breakpoints of the threshold, O(n log n)."""
        flat = project_capped_l1(point.reshape(-1), self.radius, self.k * self.radius)
        return flat.reshape(point.shape)

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether both norms are within their bounds."""
        sizes = np.abs(point)
        bound = self.radius * (1 + tol)
        return bool(sizes.max() <= bound and sizes.sum() <= self.k * bound)

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        k = self.k if shape is None else min(self.k, self._size(shape))
        if ord == "nuc":  # k entries on a diagonal, or the bound by the Frobenius norm
            side = min(self._shape(shape))
            return 2.0 * self.radius * (k if k <= side else np.sqrt(side * k))
        return 2.0 * self.radius * k ** (1.0 / ord)
