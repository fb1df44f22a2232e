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

#: Points of the trapezoidal rule on [0, FARTHEST]: the integrands are smooth, even and below 1e-17
#: at its end, so the rule is exact to rounding once the spacing is below their width.
POINTS, FARTHEST = 2001, 9.0


@dataclass(frozen=True)
class FlippedLabels:
    """A stream of Gaussian features with labels of which some are wrong.

    Attributes
    ----------
    theta : ndarray (n,)
        The true classifier theta_bar; only its direction matters.
    flip : float
        The probability of a wrong label.
    sharpness : float
        k of the sigmoid loss.
    seed : int
        The stream is the same every time it is started.
    """

    theta: Array
    flip: float
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
    def _nodes(self) -> tuple[Array, Array]:
        z = np.linspace(0.0, FARTHEST, POINTS)
        weights = np.full(POINTS, 2.0 * z[1] / np.sqrt(2.0 * np.pi)) * np.exp(-0.5 * z**2)
        weights[0] *= 0.5
        return z, weights

    def gradient(self, theta: Array) -> Array:
        """Return grad f(theta).

        The derivative of the loss is -k y p (1 - p) with p (1 - p) even in y, and given x the mean
        of y is (1 - 2 flip) sign(<theta_bar, x>). With u = theta / ||theta|| and theta_bar along
        c u + q v (v a unit vector orthogonal to u), x = z u + w v + what does not matter, so

            grad f = -k (1 - 2 flip) E[p (1 - p) sign(c z + q w) (z u + w v)],

        where p depends on z alone: the mean over w is 2 Phi(c z / q) - 1 along u and
        2 phi(c z / q) along v, and an integral over z is left.
        """
        length = float(np.linalg.norm(theta))
        truth = self.theta / np.linalg.norm(self.theta)
        u = theta / length if length > 0.0 else truth
        cosine = float(u @ truth)
        rest = truth - cosine * u
        sine = float(np.linalg.norm(rest))
        z, weights = self._nodes
        slope = expit(self.sharpness * length * z) * expit(-self.sharpness * length * z)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            a = cosine * z / max(sine, 1e-300)
            along_u = float(weights @ (slope * z * (2.0 * ndtr(a) - 1.0)))
            along_v = float(weights @ (slope * 2.0 * np.exp(-0.5 * a**2))) / np.sqrt(2.0 * np.pi)
        v = rest / sine if sine > 0.0 else np.zeros_like(rest)
        return -self.sharpness * (1.0 - 2.0 * self.flip) * (along_u * u + along_v * v)
