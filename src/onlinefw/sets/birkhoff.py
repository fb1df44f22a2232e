"""The Birkhoff polytope of doubly stochastic matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._typing import Direction, Shape
from ..atoms import SparseAtom
from .base import ConvexSet, Ord, as_array, finite

__all__ = ["Birkhoff"]


@dataclass(frozen=True)
class Birkhoff(ConvexSet):
    """{n x n, non-negative, every row and column sums to 1}. Vertices are permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import Birkhoff
    >>> Birkhoff().lmo(np.array([[3.0, 1.0], [1.0, 2.0]])).dense()
    array([[0., 1.],
           [1., 0.]])
    """

    is_polytope = True
    needs_matrix = True
    _needs_square = True
    contains_zero = False

    def lmo(self, direction: Direction) -> SparseAtom:
        """Solve one assignment problem."""
        cost = as_array(direction, self)
        self.check_shape(cost.shape)
        finite(float(np.abs(cost).max(initial=0.0)), self)
        rows, cols = linear_sum_assignment(cost)
        return SparseAtom(rows * cost.shape[1] + cols, np.ones(rows.size), cost.shape)

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether the matrix is doubly stochastic."""
        return bool(
            point.min() >= -tol
            and np.abs(point.sum(axis=0) - 1).max() <= tol
            and np.abs(point.sum(axis=1) - 1).max() <= tol
        )

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        if ord == np.inf and (shape is None or shape[0] > 1):
            return 1.0
        n = self._shape(shape)[0]
        if n == 1:
            return 0.0
        # Two permutations that differ everywhere; for the nuclear norm by one n-cycle, whose
        # singular values are |1 - e^(2 pi i k / n)|.
        return {1: 2.0 * n, 2: np.sqrt(2.0 * n), "nuc": 2.0 / np.tan(np.pi / (2 * n))}[ord]
