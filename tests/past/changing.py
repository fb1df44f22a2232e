"""Observations whose truth is another one after half of them."""

import numpy as np


def changing_rows(n=1000):
    """Rows with a number each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    old, new = 3.0 * X[:, 0] - 2.0 * X[:, 1], 3.0 * X[:, 2] - 2.0 * X[:, 3]
    return X, np.where(np.arange(n) < n // 2, old, new) + 0.3 * rng.standard_normal(n)


def changing_ratings(n=9000):
    """Ratings of 40 rows and 30 columns."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(40, size=n), rng.integers(30, size=n)))
    U, V = rng.standard_normal((2, 40, 2)), rng.standard_normal((30, 2))
    old, new = (np.sum(u[X[:, 0]] * V[X[:, 1]], axis=1) for u in U)
    z = np.where(np.arange(n) < n // 2, old, new)
    return X, 3.0 + z + 0.2 * rng.standard_normal(n)
