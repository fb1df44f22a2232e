"""The expected sigmoid loss of Gaussian features with flipped labels, and its gradient.

x ~ N(0, I), y = sign(<theta_bar, x>), flipped with probability ``flip``;
f(theta) = E 1 / (1 + exp(k y <theta, x>)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, ndtr

from .._typing import Array

__all__ = ["FlippedLabels"]

#: Half the line is cut at FARTHEST (the normal density is below 1e-17 there) into pieces that
#: shrink towards 0, where an integrand may bend on any scale; NODES Gauss-Legendre points in each.
FARTHEST, SMALLEST, PIECES, NODES = 9.0, 1e-4, 20, 16


@dataclass(frozen=True)
class FlippedLabels:
    """A stream of Gaussian features with labels of which some are wrong; the same every time."""

    #: The true classifier theta_bar; only its direction matters.
    theta: Array
    #: The probability of a wrong label.
    flip: float
    #: k of the sigmoid loss.
    sharpness: float
    seed: int

    @classmethod
    def make(
        cls, n: int, nonzeros: int, *, flip: float, sharpness: float, seed: int
    ) -> FlippedLabels:
        """Make one with a sparse Gaussian classifier."""
        rng = np.random.default_rng([seed, 5])
        theta = np.zeros(n)
        theta[rng.choice(n, size=nonzeros, replace=False)] = rng.standard_normal(nonzeros)
        return cls(theta, flip, sharpness, seed)

    def rounds(self, T: int, batch: int) -> Iterator[tuple[Array, Array]]:
        """Yield T batches (X, y)."""
        rng = np.random.default_rng([self.seed, 6])
        for _ in range(T):
            X = rng.standard_normal((batch, self.theta.size))
            wrong = rng.random(batch) < self.flip
            yield X, np.where((X @ self.theta >= 0) ^ wrong, 1.0, -1.0)

    @cached_property
    def _normal(self) -> tuple[Array, Array]:
        """Points z > 0 and weights for the mean of an even function of a standard normal z."""
        ends = np.concatenate(([0.0], np.geomspace(SMALLEST, FARTHEST, PIECES)))
        x, w = np.polynomial.legendre.leggauss(NODES)
        half, middle = np.diff(ends)[:, None] / 2.0, (ends[1:] + ends[:-1])[:, None] / 2.0
        z, weights = (middle + half * x).ravel(), (half * w).ravel()
        return z, weights * 2.0 * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)

    def gradient(self, theta: Array) -> Array:
        """Return grad f(theta).

        The derivative of the loss is -k y p (1 - p) with p (1 - p) even in y, and given x the mean
        of y is (1 - 2 flip) sign(<theta_bar, x>). With u = theta / ||theta|| and theta_bar along
        c u + q v (v a unit vector orthogonal to u), x = z u + w v + an independent rest, so

            grad f = -k (1 - 2 flip) E[p (1 - p) sign(c z + q w) (z u + w v)],

        where p depends on z alone: the mean over w is 2 Phi(c z / q) - 1 along u and
        2 phi(c z / q) along v, and an integral over z is left. Along v the two normal densities
        make one of standard deviation q.
        """
        k, length = self.sharpness, float(np.linalg.norm(theta))
        truth = self.theta / np.linalg.norm(self.theta)
        u = theta / length if length > 0.0 else truth
        cosine = float(u @ truth)
        rest = truth - cosine * u
        q = float(np.linalg.norm(rest))
        z, weights = self._normal
        with np.errstate(over="ignore"):
            side = 2.0 * ndtr(cosine * z / max(q, np.finfo(float).tiny)) - 1.0
        along_u = float(weights @ (_bell(k * length * z) * z * side))
        # The integral has a factor q, and rest = q v: nothing is divided by a small q.
        along_rest = float(weights @ _bell(k * length * q * z)) * np.sqrt(2.0 / np.pi)
        return -k * (1.0 - 2.0 * self.flip) * (along_u * u + along_rest * rest)


def _bell(a: Array) -> Array:
    """Return p (1 - p) for p = 1 / (1 + exp(a))."""
    return expit(a) * expit(-a)
