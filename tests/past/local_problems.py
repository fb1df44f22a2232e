"""Streams for local corrections, and learners that follow them at any place."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.sets import TraceNormBall


def batches(rounds=8, size=60, weighted=False, shape=(31, 22)):
    """Batches in which the matrix grows, some entries more than once."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    for k in range(rounds):
        part = 1 + k // 2 * (np.array(shape) - 1) // max(1, (rounds - 1) // 2)
        X = np.column_stack([rng.integers(n, size=size) for n in np.minimum(shape, part)])
        y = 3.0 + truth[X[:, 0], X[:, 1]] + 0.3 * rng.standard_normal(size)
        yield X, y, rng.uniform(0.5, 2.0, size) if weighted else None


def learner(
    workers=None, ridge="auto", dtype=float, radius=1e100, device="cpu", half_life=None, **more
):
    objective = ofw.objectives.ObservedEntries(
        (1, 1), dtype=dtype, growing=True, workers=workers, device=device, half_life=half_life
    )
    corrective = ofw.LocalRidge(3, ridge, **more)
    return ofw.OnlineFrankWolfe(objective, TraceNormBall(radius), corrective=corrective)


def follow(one, data):
    return np.array([one.observe(*batch).loss for batch in data])


def assert_same(found, expected, tol=1e-9):
    scale = np.abs(expected.theta.dense()).max()
    difference = found.theta.dense() - expected.theta.dense()
    np.testing.assert_allclose(difference, 0.0, atol=tol * scale)
    X = np.indices(expected.objective.shape).reshape(2, -1)
    for one in ("corrective", "objective"):
        z, at = (getattr(model, one).predict(*X) for model in (found, expected))
        np.testing.assert_allclose(z, at, rtol=tol, atol=tol)
    assert found.objective.value() == pytest.approx(expected.objective.value(), rel=10 * tol)
    balls = [model.corrective.ball(model.objective) for model in (found, expected)]
    gaps = [m.objective.certificate(b) for m, b in zip((found, expected), balls, strict=True)]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-3)
    assert found.objective.n_observations == expected.objective.n_observations


def together(data):
    """Return all batches as one."""
    X, y, w = zip(*data, strict=True)
    return np.concatenate(X), np.concatenate(y), None if w[0] is None else np.concatenate(w)
