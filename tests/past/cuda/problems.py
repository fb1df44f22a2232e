"""Small problems that every device must solve alike."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinefw import losses

#: Every loss with the targets it allows, made from numbers z.
LOSSES = {
    "square": (losses.Square(), lambda z: z),
    "gaussian": (losses.Gaussian(), lambda z: z),
    "bernoulli": (losses.Bernoulli(), lambda z: (z > 0.0).astype(float)),
    "poisson": (losses.Poisson(), lambda z: np.floor(np.abs(3.0 * z))),
    "exponential": (losses.Exponential(0.1), lambda z: np.abs(z) + 0.1),
    "logistic": (losses.Logistic(), lambda z: np.where(z > 0.0, 1.0, -1.0)),
    "sigmoid": (losses.Sigmoid(3.0), lambda z: np.where(z > 0.0, 1.0, -1.0)),
    "correntropy": (losses.Correntropy(0.5), lambda z: z),
}
KINDS = ("float64", "float32", "uint8", "sparse float64", "sparse float32")


class Quartic(losses.Loss):
    """A loss of the user's own."""

    convex = True

    def value(self, z, y):
        return np.subtract(z, y) ** 4

    def derivative(self, z, y):
        return 4.0 * np.subtract(z, y) ** 3

    def second_derivative(self, z, y):
        return 12.0 * np.subtract(z, y) ** 2


def make_rows(rng, n_rows, n_features, kind):
    """Return rows of a kind, of moderate size."""
    if kind == "uint8":
        return rng.integers(0, 256, (n_rows, n_features), dtype=np.uint8)
    X = rng.standard_normal((n_rows, n_features)).astype(kind.split()[-1])
    if kind.startswith("sparse"):
        X[rng.random(X.shape) < 0.7] = 0.0
        return sp.csr_array(X)
    return X


def as_double(X):
    """Return rows as a dense array of doubles."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)


def scale_of(kind):
    """Return what rows of a kind are divided by to be about 1."""
    return 255.0 if kind == "uint8" else 1.0


def batches(rng, kind, targets, *, n_features=12, rounds=25, size=7):
    """Yield rows of a kind with targets and weights."""
    truth = rng.standard_normal(n_features) / np.sqrt(n_features)
    for _ in range(rounds):
        X = make_rows(rng, size, n_features, kind)
        z = (X.astype(float) @ truth) / scale_of(kind)
        yield X, targets(z + 0.1 * rng.standard_normal(size)), rng.random(size) + 0.5


def follow(places, make, stream):
    """Play the same rounds in two places; compare what they report and where they are."""
    one, other = (make(place) for place in places)
    for X, y, w in stream:
        a, b = one.observe(X, y, w), other.observe(X, y, w)
        assert a.kind == b.kind
        assert b.loss == pytest.approx(a.loss, rel=1e-5, abs=1e-9)
        assert b.gap == pytest.approx(a.gap, rel=1e-4, abs=1e-7)
        np.testing.assert_allclose(other.theta, one.theta, rtol=1e-4, atol=1e-7)
    assert other.objective.value() == pytest.approx(one.objective.value(), rel=1e-5)
    assert other.objective.intercept == pytest.approx(one.objective.intercept, rel=1e-4, abs=1e-6)
    assert other.certificate() == pytest.approx(one.certificate(), rel=1e-3, abs=1e-7)
    np.testing.assert_allclose(
        other.objective.predictions(), one.objective.predictions(), rtol=1e-4, atol=1e-6
    )
    return one, other
