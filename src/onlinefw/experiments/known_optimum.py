"""Quadratics whose minimiser over the set is known exactly, and learners with inexact gradients.

A minimiser is chosen first, and then the quadratic of which it is one: f(theta) - f(theta*) is then
the sum of two terms that are not negative, computed without cancellation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import theory
from .._typing import Array
from ..algorithms import Learner
from ..objectives import GradientOracle
from ..sets import ConvexSet, L1Ball, L2Ball
from ..steps import Harmonic
from .convex_problems import ALGORITHMS

__all__ = ["MU", "KnownOptimum", "L", "inside", "nothing", "on_a_face", "on_a_flat_face"]

#: Curvatures of the strongly convex quadratics.
MU, L = 0.5, 2.0
#: One error in so many points the other way.
REVERSED = 0.1


@dataclass(frozen=True)
class KnownOptimum:
    """f(theta) = f* + <slope, theta - star> + (theta - star)'Q(theta - star) / 2 on a set."""

    constraint: ConvexSet
    #: A minimiser over the set.
    star: Array
    Q: Array
    #: grad f(star): 0 inside the set.
    slope: Array
    #: mu, L, rho, diameter, and delta or width.
    constants: dict[str, float]

    def excess(self, theta: Array) -> float:
        """Return f(theta) - min f."""
        d = theta - self.star
        return max(0.0, float(self.slope @ d)) + 0.5 * float(d @ self.Q @ d)

    def gradient(self, theta: Array) -> Array:
        """Return grad f(theta)."""
        return self.slope + self.Q @ (theta - self.star)

    def learner(self, algorithm: str, sigma: float, alpha: float, K: int, seed: int) -> Learner:
        """Return a learner with steps K / (K + t - 1) and an inexact gradient.

        The error has norm sigma (K + t - 1)^-alpha: l2 on an l2 ball, largest entry on an l1 ball.
        It points along a direction, now and then the other way.
        """
        n, rng = self.star.size, np.random.default_rng([seed, 8])
        direction = rng.standard_normal(n)
        direction /= np.linalg.norm(direction, np.inf if self.constraint.is_polytope else 2)

        def gradient(theta: Array, t: int) -> Array:
            sign = -1.0 if rng.random() < REVERSED else 1.0
            return self.gradient(theta) + sign * sigma / (K + t - 1.0) ** alpha * direction

        return ALGORITHMS[algorithm](GradientOracle(gradient, n), self.constraint, step=Harmonic(K))

    def worst(self) -> float:
        """Return the excess of the worst vertex of a polytope; of a sphere, what is found."""
        n = self.star.size
        if self.constraint.is_polytope:
            points = np.vstack([np.eye(n), -np.eye(n)])
        else:
            points = np.vstack([np.linalg.eigh(self.Q)[1].T, -np.linalg.eigh(self.Q)[1].T])
        return max(self.excess(point) for point in points)


def inside(n: int, delta: float, seed: int, ball: str = "l2") -> KnownOptimum:
    """Return a strongly convex quadratic with its minimiser inside, delta from the boundary."""
    rng = np.random.default_rng([seed, 9])
    star = rng.standard_normal(n)
    if ball == "l2":
        constraint: ConvexSet = L2Ball(1.0)
        star *= (1.0 - delta) / np.linalg.norm(star)
        rho = constraint.diameter(2)
    else:
        # The nearest facet of the l1 ball is that of the minimiser's signs.
        constraint = L1Ball(1.0)
        star *= (1.0 - np.sqrt(n) * delta) / np.abs(star).sum()
        rho = constraint.diameter(1)
    known = {"mu": MU, "L": L, "delta": delta, "rho": rho, "diameter": constraint.diameter(2)}
    if constraint.is_polytope:
        known["width"] = theory.pyramidal_width(constraint, n)
    return KnownOptimum(constraint, star, _curved(rng, n), np.zeros(n), known)


def on_a_face(n: int, k: int, margin: float, seed: int) -> KnownOptimum:
    """Return a strongly convex quadratic with its minimiser on a face of k vertices of the l1 ball.

    ``margin`` is the length of every entry of grad f there on the face, and at least twice that of
    any other.
    """
    rng = np.random.default_rng([seed, 10])
    star, signs = _on_face(rng, n, k)
    slope = -margin * np.where(signs == 0.0, rng.uniform(-0.5, 0.5, n), signs)
    return KnownOptimum(L1Ball(1.0), star, _curved(rng, n), slope, _of_l1_ball(n))


def on_a_flat_face(n: int, m: int, k: int, margin: float, seed: int) -> KnownOptimum:
    """Return the same for f(theta) = g(A theta) with an m x n matrix A, m < n: mu = 0.

    grad f = A'u has to be minus ``margin`` times the signs on the face, and shorter elsewhere: A is
    drawn until the smallest such u does it.
    """
    rng = np.random.default_rng([seed, 11])
    star, signs = _on_face(rng, n, k)
    face = signs != 0.0
    while True:
        A = rng.standard_normal((m, n)) / np.sqrt(m)
        u = -margin * np.linalg.pinv(A[:, face].T) @ signs[face]
        slope = A.T @ u
        if np.abs(slope[~face]).max() <= 0.8 * margin:
            break
    known = _of_l1_ball(n) | {"mu": 0.0, "L": float(np.linalg.norm(A, 2) ** 2)}
    return KnownOptimum(L1Ball(1.0), star, A.T @ A, slope, known)


def nothing() -> Iterator[tuple[None, None]]:
    """Yield what a gradient oracle observes."""
    while True:
        yield None, None


def _curved(rng: np.random.Generator, n: int) -> Array:
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return (basis * np.linspace(MU, L, n)) @ basis.T


def _on_face(rng: np.random.Generator, n: int, k: int) -> tuple[Array, Array]:
    """Return a point inside a face of k vertices of the l1 ball, and its signs."""
    weights, where = rng.random(k) + 0.2, rng.choice(n, size=k, replace=False)
    signs = np.zeros(n)
    signs[where] = rng.choice([-1.0, 1.0], size=k)
    star = np.zeros(n)
    star[where] = signs[where] * weights / weights.sum()
    return star, signs


def _of_l1_ball(n: int) -> dict[str, float]:
    ball = L1Ball(1.0)
    return {
        "mu": MU,
        "L": L,
        "rho": ball.diameter(1),
        "diameter": ball.diameter(2),
        "width": theory.pyramidal_width(ball, n),
    }
