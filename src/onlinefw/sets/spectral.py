"""Sets of matrices described by their singular values or eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from .._typing import Array, Direction, Shape
from .._validation import check_sparse
from ..atoms import RankOne
from ..iterates import LowRank
from ..linalg import PairOperator, top_singular_pair
from .base import ConvexSet, Ord, finite, positive
from .projections import project_l1_ball, project_simplex

__all__ = ["Spectrahedron", "TraceNormBall", "WeightedTraceNormBall"]


@dataclass(frozen=True)
class TraceNormBall(ConvexSet):
    """{sum of singular values <= radius}: low-rank matrices. Vertices are rank-one.

    Directions may be ndarrays, sparse matrices or LinearOperators (with ``rmatvec``).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import TraceNormBall
    >>> TraceNormBall(2.0).lmo(np.diag([1.0, -3.0])).dense().round(12) + 0.0
    array([[0., 0.],
           [0., 2.]])
    """

    radius: float

    needs_matrix = True
    has_rank_one_atoms = True
    scales = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius, "TraceNormBall"))

    def lmo(self, direction: Direction) -> RankOne:
        """Return -radius u v' for the top singular pair (u, v)."""
        if isinstance(direction, PairOperator):
            u, _, v = direction.top_pair(self.radius, self.scales)
            return RankOne(u, -self.radius, v)
        matrix = _finite_matrix(direction, self)
        u, _, v = top_singular_pair(matrix)
        return RankOne(u, -self.radius, v)

    def norm(self, point: Any) -> float:
        """Return the trace norm of an ndarray or a LowRank."""
        return float(_singular_values(point).sum())

    def _project(self, point: Array) -> Array:
        """Project the singular values onto the l1 ball (one full SVD)."""
        u, s, vt = linalg.svd(point, full_matrices=False)
        return (u * project_l1_ball(s, self.radius)) @ vt

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether the trace norm is within the radius."""
        return self.norm(point) <= self.radius * (1 + tol)

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        # A rank-one matrix with flat factors has the largest sum of entries.
        return 2.0 * self.radius * (np.sqrt(self._size(shape)) if ord == 1 else 1.0)


@dataclass(frozen=True, eq=False)
class WeightedTraceNormBall(ConvexSet):
    """{trace norm of diag(rows) X diag(columns) <= radius}: heavy rows and columns cost more.

    With the square roots of how often rows and columns are observed, what is seen often is
    regularised in proportion; without weights rarely seen rows overfit under uneven sampling.

    Parameters
    ----------
    radius : float
        The radius of the ball.
    rows, columns : array-like
        Positive weights.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import WeightedTraceNormBall
    >>> ball = WeightedTraceNormBall(2.0, rows=[1.0, 4.0], columns=[1.0, 1.0])
    >>> ball.lmo(np.diag([1.0, -3.0])).dense().round(12) + 0.0
    array([[-2.,  0.],
           [ 0.,  0.]])
    """

    radius: float
    rows: Array
    columns: Array

    needs_matrix = True
    has_rank_one_atoms = True
    has_projection = False
    scales: ClassVar[Any]

    def __post_init__(self) -> None:
        name = "WeightedTraceNormBall"
        object.__setattr__(self, "radius", positive("radius", self.radius, name))
        for side in ("rows", "columns"):
            weights = np.array(getattr(self, side), dtype=float)
            if weights.ndim != 1 or not (np.isfinite(weights) & (weights > 0)).all():
                raise ValueError(f"{name} needs positive weights for {side}, got {weights}")
            object.__setattr__(self, side, weights)
        object.__setattr__(self, "scales", (1.0 / self.rows, 1.0 / self.columns))

    def check_shape(self, shape: Shape) -> None:
        """Refuse matrices that do not have one weight per row and column."""
        super().check_shape(shape)
        if tuple(shape) != (self.rows.size, self.columns.size):
            raise ValueError(
                f"{self} does not fit matrices of shape {tuple(int(n) for n in shape)}; make a "
                "ball with a weight for each of their rows and columns"
            )

    def lmo(self, direction: Direction) -> RankOne:
        """Return -radius u v' for the top singular pair of the weighted direction."""
        if isinstance(direction, PairOperator):
            u, _, v = direction.top_pair(self.radius, self.scales)
            return RankOne(u, -self.radius, v)
        a, b = self.scales
        matrix = _finite_matrix(direction, self)
        self.check_shape(matrix.shape)
        if isinstance(matrix, np.ndarray):
            u, _, v = top_singular_pair(a[:, None] * matrix * b)
        else:
            left, right = (aslinearoperator(sparse.diags_array(x)) for x in (a, b))
            u, _, v = top_singular_pair(left @ aslinearoperator(matrix) @ right)
        return RankOne(a * u, -self.radius, b * v)

    def norm(self, point: Any) -> float:
        """Return the weighted trace norm of an ndarray or a LowRank."""
        if isinstance(point, LowRank):
            return float(point.singular_values(self.rows, self.columns).sum())
        return float(_singular_values(self.rows[:, None] * np.asarray(point) * self.columns).sum())

    def _contains(self, point: Any, tol: float) -> bool:
        return self.norm(point) <= self.radius * (1 + tol)

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        a, b = self.scales
        if ord == 1:
            return float(2.0 * self.radius * np.linalg.norm(a) * np.linalg.norm(b))
        return float(2.0 * self.radius * a.max() * b.max())

    def __repr__(self) -> str:
        shape = (self.rows.size, self.columns.size)
        return f"WeightedTraceNormBall(radius={self.radius:g}, shape={shape})"


@dataclass(frozen=True)
class Spectrahedron(ConvexSet):
    """{symmetric positive semidefinite, trace = trace}. Vertices are trace * v v'.

    Of a direction that is not symmetric only the symmetric part matters.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import Spectrahedron
    >>> Spectrahedron().lmo(np.diag([1.0, -3.0])).dense()
    array([[0., 0.],
           [0., 1.]])
    """

    trace: float = 1.0

    needs_matrix = True
    _needs_square = True
    has_rank_one_atoms = True
    contains_zero = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "trace", positive("trace", self.trace, "Spectrahedron"))

    def lmo(self, direction: Direction) -> RankOne:
        """Return trace * v v' for an eigenvector v of the smallest eigenvalue."""
        matrix = _finite_matrix(direction, self)
        self.check_shape(matrix.shape)
        v = _bottom_eigenvector(matrix)
        return RankOne(v, self.trace, v)

    def _project(self, point: Array) -> Array:
        """Project the eigenvalues of the symmetric part onto the simplex."""
        values, vectors = linalg.eigh(0.5 * (point + point.T))
        return (vectors * project_simplex(values, self.trace)) @ vectors.T

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether the point is symmetric, positive semidefinite and of the right trace."""
        point, slack = np.asarray(point), tol * self.trace
        if np.abs(point - point.T).max() > slack or abs(np.trace(point) - self.trace) > slack:
            return False
        return bool(linalg.eigvalsh(0.5 * (point + point.T)).min() >= -slack)

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        if shape is not None and shape[0] == 1:
            return 0.0
        factor = {2: np.sqrt(2.0), np.inf: 1.0, "nuc": 2.0}
        if ord == 1:
            return self.trace * np.sqrt(2.0) * self._shape(shape)[0]
        return self.trace * factor[ord]


def _finite_matrix(direction: Direction, owner: ConvexSet) -> Direction:
    if isinstance(direction, LinearOperator):
        return direction
    if sparse.issparse(direction):
        check_sparse("the direction", direction)
        finite(float(np.abs(direction.data).max(initial=0.0)), owner)
        return direction
    matrix = np.asarray(direction, dtype=float)
    owner.check_shape(matrix.shape)
    finite(float(np.abs(matrix).max(initial=0.0)), owner)
    return matrix


def _singular_values(point: Any) -> Array:
    if isinstance(point, LowRank):
        return point.singular_values()
    return np.linalg.svd(point, compute_uv=False)


def _bottom_eigenvector(matrix: Direction) -> Array:
    n = matrix.shape[0]
    if isinstance(matrix, np.ndarray) and n <= 256:
        return linalg.eigh(0.5 * (matrix + matrix.T), subset_by_index=[0, 0])[1][:, 0]
    if n < 3:  # too small for ARPACK
        return _bottom_eigenvector(aslinearoperator(matrix).matmat(np.eye(n)))
    operator = aslinearoperator(matrix)
    symmetric = LinearOperator(
        (n, n), lambda x: 0.5 * (operator.matvec(x) + operator.rmatvec(x)), dtype=float
    )
    start = np.random.default_rng(0).standard_normal(n)
    if not symmetric.matvec(start).any():  # zero: every vector is an eigenvector
        return np.eye(1, n)[0]
    return eigsh(symmetric, k=1, which="SA", v0=start, ncv=min(n, 40))[1][:, 0]
