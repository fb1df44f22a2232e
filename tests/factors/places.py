"""A stream of ratings, and learners that follow it at any place."""

import numpy as np

import onlinefw as ofw


def batches(rounds=8, size=60, weighted=False, shape=(31, 22)):
    """Batches in which the matrix grows, some entries more than once."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    for k in range(rounds):
        part = 1 + k // 2 * (np.array(shape) - 1) // max(1, (rounds - 1) // 2)
        X = np.column_stack([rng.integers(n, size=size) for n in np.minimum(shape, part)])
        y = 3.0 + truth[X[:, 0], X[:, 1]] + 0.3 * rng.standard_normal(size)
        yield X, y, rng.uniform(0.5, 2.0, size) if weighted else None


def learner(**options):
    return ofw.OnlineFactors(**{"chains": 3, "rank": 3, "dtype": float, **options})


def follow(one, data):
    return np.array([one.observe(*batch).loss for batch in data])


def assert_same(found, expected, tol=1e-9):
    X = np.indices(expected.shape).reshape(2, -1)
    np.testing.assert_allclose(found.predict(*X), expected.predict(*X), rtol=tol, atol=tol)
    for of_rows in (True, False):
        one, other = (x.model.side(of_rows) for x in (found, expected))
        n = expected.shape[not of_rows]
        for name in ("means", "samples"):
            np.testing.assert_allclose(
                getattr(one, name)[:n], getattr(other, name)[:n], rtol=10 * tol, atol=10 * tol
            )
        scale = np.abs(other.priors).max()
        np.testing.assert_allclose(one.priors, other.priors, atol=tol * scale)
        np.testing.assert_array_equal(one.solved, other.solved)
    np.testing.assert_allclose(found.model.noise, expected.model.noise, rtol=10 * tol)
    assert found.n_observations == expected.n_observations


def together(data):
    """Return all batches as one."""
    X, y, w = zip(*data, strict=True)
    return np.concatenate(X), np.concatenate(y), None if w[0] is None else np.concatenate(w)


def estimator(**more):
    model = ofw.FrankWolfeMatrixCompletion(
        corrective="factors", chains=2, dtype="float64", batch_size=60
    )
    return model.set_params(**more)
