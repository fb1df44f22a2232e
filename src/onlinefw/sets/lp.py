"""Balls of the l_p norms of the entries: L1Ball, L2Ball, LinfBall, LpBall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from .._typing import Array, Direction, Shape
from ..atoms import Atom, DenseAtom, SignedCoordinate
from ..linalg import vector_norm
from .base import ConvexSet, Ord, as_array, finite, opposite_coordinate, positive
from .projections import project_l1_ball

__all__ = ["L1Ball", "L2Ball", "LinfBall", "LpBall"]


class _Ball(ConvexSet):
    """``{||x||_p <= radius}`` over the entries of a vector or matrix."""

    radius: float
    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius, type(self).__name__))

    def lmo(self, direction: Direction) -> Atom:
        """Return the point of the sphere that is aligned with -direction (Hoelder's equality).

        On the l1 ball that is ``-radius sign(g_i) e_i`` for the largest ``|g_i|``, on the l2 ball
        ``-radius g / ||g||``, and on the cube -radius sign(g), with radius where g is zero.
        """
        if self.p == 1.0:
            return opposite_coordinate(direction, self.radius, self)
        return _lp_vertex(as_array(direction, self), self.p, self.radius, self)

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether ``||point||_p <= radius (1 + tol)``."""
        return bool(vector_norm(point.reshape(-1), self.p) <= self.radius * (1 + tol))

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        if ord == "nuc":
            return self._nuclear_diameter(shape)
        # max ||x||_q over ||x||_p <= r is r for q >= p, r n^(1/q - 1/p) below.
        exponent = 1.0 / ord - 1.0 / self.p
        return 2.0 * self.radius * (self._size(shape) ** exponent if exponent > 0 else 1.0)

    def _nuclear_diameter(self, shape: Shape | None) -> float:
        if self.p == 1:
            return 2.0 * self.radius
        rows, cols = self._shape(shape)
        k = min(rows, cols)
        if self.p <= 2:  # attained by a diagonal; an upper bound by interpolation of p = 1, 2
            return 2.0 * self.radius * k ** (1.0 - 1.0 / self.p)
        return 2.0 * self.radius * np.sqrt(k) * (rows * cols) ** (0.5 - 1.0 / self.p)


@dataclass(frozen=True)
class L1Ball(_Ball):
    """``{||x||_1 <= radius}``: sparse models. A polytope whose vertices are signed coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import L1Ball
    >>> L1Ball(2.0).lmo(np.array([1.0, -3.0, 0.5])).dense()
    array([0., 2., 0.])
    >>> L1Ball(2.0).diameter()
    4.0
    """

    radius: float

    p = 1.0
    is_polytope = True

    def _project(self, point: Array) -> Array:
        """Project by sorting, O(n log n)."""
        return project_l1_ball(point.reshape(-1), self.radius).reshape(point.shape)


@dataclass(frozen=True)
class L2Ball(_Ball):
    """``{||x||_2 <= radius}`` over all entries (Frobenius norm for matrices).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import L2Ball
    >>> L2Ball(1.0).lmo(np.array([3.0, 4.0])).dense()
    array([-0.6, -0.8])
    """

    radius: float

    p = 2.0

    def _project(self, point: Array) -> Array:
        """Scale down to the radius."""
        norm = vector_norm(point.reshape(-1), 2.0)
        return point * (self.radius / norm) if norm > self.radius else point.copy()


@dataclass(frozen=True)
class LinfBall(_Ball):
    """``{max |x_i| <= radius}``: a cube. A polytope.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import LinfBall
    >>> LinfBall(1.0).lmo(np.array([3.0, -4.0])).dense()
    array([-1.,  1.])
    """

    radius: float

    p = np.inf
    is_polytope = True

    def _project(self, point: Array) -> Array:
        """Clip every entry."""
        return np.clip(point, -self.radius, self.radius)


@dataclass(frozen=True)
class LpBall(_Ball):
    """``{||x||_p <= radius}`` for any p >= 1 (``inf`` allowed).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import LpBall
    >>> v = LpBall(1.5, 2.0).lmo(np.array([1.0, -2.0, 0.0])).dense()
    >>> round(float(np.linalg.norm(v, 1.5)), 12)
    2.0
    """

    p: float
    radius: float

    def __post_init__(self) -> None:
        if not (isinstance(self.p, (int, float, np.number)) and self.p >= 1):
            raise ValueError(f"LpBall needs p >= 1, got {self.p!r}")
        object.__setattr__(self, "p", float(self.p))
        super().__post_init__()

    @property
    def is_polytope(self) -> bool:  # type: ignore[override]
        """Only the l1 ball and the cube are polytopes."""
        return self.p in (1.0, np.inf)

    def _project(self, point: Array) -> Array:
        """Project by root finding on the multiplier (closed forms for p = 1, 2, inf)."""
        for p, ball in ((1.0, L1Ball), (2.0, L2Ball), (np.inf, LinfBall)):
            if self.p == p:
                return ball(self.radius)._project(point)
        return _project_lp(point.reshape(-1), self.p, self.radius).reshape(point.shape)


def _lp_vertex(g: Array, p: float, radius: float, owner: ConvexSet) -> Atom:
    """Return -radius sign(g) |g|^(q-1) / |||g|^(q-1)||_p with 1/p + 1/q = 1."""
    largest = finite(float(np.abs(g).max(initial=0.0)), owner)
    if p == np.inf:
        return DenseAtom(np.where(g > 0, -radius, radius))
    if largest == 0.0:
        return SignedCoordinate(0, -radius, g.shape)
    scaled = g / largest
    aligned = scaled if p == 2 else np.copysign(np.abs(scaled) ** (1.0 / (p - 1.0)), scaled)
    return DenseAtom(aligned * (-radius / vector_norm(aligned.reshape(-1), p)))


def _project_lp(point: Array, p: float, radius: float) -> Array:
    """Project onto the l_p ball, 1 < p < inf, p != 2.

    With y = |point| / radius the projection x satisfies x_i + m x_i^(p-1) = y_i for a multiplier
    m >= 0 and ||x||_p = 1. For given m each x_i is the root of an increasing function on
    [0, y_i]; the norm of x decreases in m, so m is found by bracketing and Brent's method.
    """
    norm = vector_norm(point, p)
    if norm <= radius:
        return point.copy()
    if norm <= radius * (1.0 + 1e-14):  # outside by rounding only: the multiplier would underflow
        return point * (radius / norm)
    y = np.abs(point) / radius

    def shrink(m: float) -> Array:
        return _solve_shrinkage(y, m, p)

    def excess(log_m: float) -> float:
        return vector_norm(shrink(np.exp(log_m)), p) - 1.0

    low, high = -1.0, 1.0
    while excess(low) < 0.0 and low > -700.0:
        low *= 2.0
    while excess(high) > 0.0 and high < 700.0:
        high *= 2.0
    x = shrink(np.exp(brentq(excess, low, high, xtol=1e-15, rtol=8.9e-16, maxiter=500)))
    return np.copysign(x * (radius / vector_norm(x, p)), point)


def _solve_shrinkage(y: Array, m: float, p: float) -> Array:
    """Solve x + m x^(p-1) = y for x in [0, y], entry by entry: Newton inside a bracket."""
    # Each of the two terms alone bounds the root from above.
    with np.errstate(over="ignore"):
        low, high = np.zeros_like(y), np.minimum(y, (y / m) ** (1.0 / (p - 1.0)))
    x = 0.5 * high
    for _ in range(100):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            f = x + m * x ** (p - 1.0) - y
            slope = 1.0 + m * (p - 1.0) * x ** (p - 2.0)
            step = x - f / slope
        low, high = np.where(f < 0, x, low), np.where(f > 0, x, high)
        inside = np.isfinite(step) & (step > low) & (step < high)
        new = np.where(f == 0.0, x, np.where(inside, step, 0.5 * (low + high)))
        if np.all(np.abs(new - x) <= 4e-16 * new):
            return new
        x = new
    return x
