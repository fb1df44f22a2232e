"""Generated streams whose truth stays, jumps at half time, or rotates slowly.

Each of the three tasks has a truth that is cos(angle) times one draw plus sin(angle) times another.
The angle is 0 for ever, or 0 until half time and then a right angle, or it grows evenly to a right
angle, which it reaches with the last observation. So all three streams are equally hard at every
moment for someone who knows the truth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CHANGES = ("never", "abrupt", "rotating")


class Stream(NamedTuple):
    """Observations in order: rows with their targets, or (row, column) with their ratings."""

    X: np.ndarray
    y: np.ndarray


def _mixture(change, n):
    """Return cos and sin of the angle at each of n observations."""
    k = np.arange(n)
    angle = {
        "never": np.zeros(n),
        "abrupt": np.where(2 * k >= n, 0.5 * np.pi, 0.0),
        "rotating": 0.5 * np.pi * (k + 1) / n,
    }[change]
    return np.cos(angle), np.sin(angle)


def _sparse_truths(rng, p, k):
    """Return two vectors with k entries of -1 and +1 each, nowhere both."""
    where = rng.permutation(p)[: 2 * k]
    truths = np.zeros((2, p))
    truths[0, where[:k]], truths[1, where[k:]] = rng.choice([-1.0, 1.0], (2, k))
    return truths


def _margins(rng, change, n, p, k):
    X = rng.standard_normal((n, p))
    a, b = _sparse_truths(rng, p, k)
    cos, sin = _mixture(change, n)
    return X, cos * (X @ a) + sin * (X @ b)


def regression(change, seed, n=10_000, p=300, k=12, noise=0.5):
    """Rows with p standard normal features, of which k count at a time."""
    rng = np.random.default_rng(seed)
    X, z = _margins(rng, change, n, p, k)
    return Stream(X, z + noise * rng.standard_normal(n))


def classification(change, seed, n=10_000, p=100, k=10):
    """Labels 0 and 1, by the logistic model; about one in seven is against its margin."""
    rng = np.random.default_rng(seed)
    X, z = _margins(rng, change, n, p, k)
    return Stream(X, (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(int))


def ratings(change, seed, n=20_000, shape=(200, 150), rank=2, noise=0.25):
    """Ratings around 3 at random entries: biases of rows and columns, and tastes that change."""
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(side, size=n) for side in shape)
    row_bias, column_bias = (0.3 * rng.standard_normal(side) for side in shape)
    tastes = rng.standard_normal((2, shape[0], rank)) / rank**0.5
    traits = rng.standard_normal((shape[1], rank))
    cos, sin = _mixture(change, n)
    taste = cos[:, None] * tastes[0, rows] + sin[:, None] * tastes[1, rows]
    z = 3.0 + row_bias[rows] + column_bias[columns] + (taste * traits[columns]).sum(axis=1)
    return Stream(np.column_stack((rows, columns)), z + noise * rng.standard_normal(n))


TASKS = {"regression": regression, "classification": classification, "ratings": ratings}
