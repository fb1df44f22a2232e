"""A polytope given by its vertices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.spatial.distance import pdist

from .._typing import Array, Direction, Shape
from ..atoms import DenseAtom
from .base import ConvexSet, Ord, as_array, finite

__all__ = ["Polytope"]


@dataclass(frozen=True, eq=False)
class Polytope(ConvexSet):
    """The convex hull of the rows of ``vertices`` (or of its matrices, if it is 3-dimensional).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import Polytope
    >>> triangle = Polytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> triangle.lmo(np.array([1.0, -1.0])).dense()
    array([0., 1.])
    >>> triangle.contains([0.3, 0.3]), triangle.contains([0.7, 0.7])
    (True, False)
    """

    vertices: ArrayLike

    is_polytope = True

    def __post_init__(self) -> None:
        vertices = np.array(self.vertices, dtype=float)
        if vertices.ndim not in (2, 3) or vertices.size == 0:
            raise ValueError(
                f"Polytope needs a non-empty (n_vertices, n) or (n_vertices, m1, m2) array, "
                f"got shape {vertices.shape}"
            )
        if not np.isfinite(vertices).all():
            raise ValueError("Polytope needs finite vertices")
        vertices.flags.writeable = False
        object.__setattr__(self, "vertices", vertices)

    @property
    def _flat(self) -> Array:
        vertices = np.asarray(self.vertices)
        return vertices.reshape(vertices.shape[0], -1)

    @cached_property
    def contains_zero(self) -> bool:  # type: ignore[override]
        """Whether 0 is in the hull."""
        return self.contains(np.zeros(np.shape(self.vertices)[1:]))

    def check_shape(self, shape: Shape) -> None:
        """Refuse points of another shape than the vertices."""
        wanted = np.shape(self.vertices)[1:]
        if tuple(shape) != wanted:
            raise ValueError(
                f"the vertices of this Polytope have shape {wanted}, but the points "
                f"have shape {tuple(shape)}; they must agree"
            )

    def lmo(self, direction: Direction) -> DenseAtom:
        """Compare all vertices."""
        g = as_array(direction, self)
        self.check_shape(g.shape)
        scores = self._flat @ g.reshape(-1)
        k = int(scores.argmin())
        finite(float(scores[k]), self)
        return DenseAtom(np.asarray(self.vertices)[k], key=k)

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether the point is a convex combination of the vertices (a linear program)."""
        flat = self._flat
        scale = float(np.abs(flat).max())
        if scale == 0.0:
            return not point.any()
        # Weights that minimise the largest deviation of their combination from the point.
        vertices, wanted = flat / scale, point.reshape(-1) / scale
        n_vertices, n = flat.shape
        ones = np.ones((n, 1))
        result = linprog(
            np.append(np.zeros(n_vertices), 1.0),
            A_ub=np.block([[vertices.T, -ones], [-vertices.T, -ones]]),
            b_ub=np.concatenate((wanted, -wanted)),
            A_eq=np.append(np.ones(n_vertices), 0.0)[None, :],
            b_eq=[1.0],
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status != 0:
            return False
        # The solver's own tolerance must not decide: use what its weights really combine to.
        weights = np.clip(result.x[:n_vertices], 0.0, None)
        return bool(np.abs(weights / weights.sum() @ vertices - wanted).max() <= tol)

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        vertices = np.asarray(self.vertices)
        if vertices.shape[0] == 1:
            return 0.0
        if ord == "nuc":
            if vertices.ndim != 3:
                raise ValueError("the nuclear norm needs a polytope of matrices")
            return max(
                float(np.linalg.norm(a - b, "nuc"))
                for i, a in enumerate(vertices)
                for b in vertices[:i]
            )
        metric = {1: "cityblock", 2: "euclidean", np.inf: "chebyshev"}[ord]
        return float(pdist(self._flat, metric).max())
