"""Streams of rows, and learners of all kinds that follow them."""

import numpy as np
from scipy import sparse

import onlinefw as ofw
from onlinefw.objectives import LinearObjective, RunningLeastSquares

from .problems import Pseudohuber

FEATURES, ROUNDS, BATCH = 20, 24, 15

#: name -> what is special about it.
ROW_PROBLEMS = {
    "square": {},
    "square, intercept": {"intercept": True},
    "logistic, intercept, weights": {"loss": "Logistic", "intercept": True, "weights": True},
    "sigmoid": {"loss": "Sigmoid"},
    "sigmoid, intercept": {"loss": "Sigmoid", "intercept": True},
    "correntropy, intercept": {"loss": "Correntropy", "intercept": True},
    "sparse": {"sparse": True},
    "sparse logistic, line search": {
        "loss": "Logistic",
        "sparse": True,
        "step": ofw.steps.LineSearch(),
    },
    "bytes, then doubles": {"bytes": True},
    "trace norm": {"ball": ofw.sets.TraceNormBall(3.0), "shape": (4, 5)},
    "trace norm, logistic, line search": {
        "ball": ofw.sets.TraceNormBall(3.0),
        "shape": (4, 5),
        "loss": "Logistic",
        "step": ofw.steps.LineSearch(),
    },
    "away": {"away": True},
    "away, sparse logistic, intercept": {
        "away": True,
        "sparse": True,
        "loss": "Logistic",
        "intercept": True,
    },
    "pairwise": {"pairwise": True},
    "pairwise, sparse logistic, intercept": {
        "pairwise": True,
        "sparse": True,
        "loss": "Logistic",
        "intercept": True,
        "step": ofw.steps.LineSearch(),
    },
    "pairwise, dense atoms, line search": {
        "pairwise": True,
        "ball": ofw.sets.Box(-0.3, 0.5),
        "step": ofw.steps.LineSearch(),
    },
    "newton": {"corrective": True, "loss": "Logistic", "intercept": True},
    "newton, sparse": {"corrective": True, "sparse": True, "loss": "Logistic"},
    "own loss, intercept": {"loss": "Pseudohuber", "intercept": True},
    "recent": {"past": "recent", "max_past": 70},
    "reservoir": {"past": "reservoir", "max_past": 50, "loss": "Logistic"},
    "fading": {"half_life": 10.0, "loss": "Logistic", "intercept": True, "weights": True},
    "fading sample": {"half_life": 10.0, "past": "reservoir", "max_past": 50, "loss": "Logistic"},
    "sums, fading": {"sums": True, "half_life": 10.0, "intercept": True},
    "sums": {"sums": True},
    "sums, intercept, sparse": {"sums": True, "intercept": True, "sparse": True},
    "sums, away": {"sums": True, "away": True, "weights": True},
    "sums, pairwise": {"sums": True, "pairwise": True, "weights": True},
    "sums, newton": {"sums": True, "corrective": True},
}

LOSSES = {
    "Square": ofw.losses.Square(),
    "Logistic": ofw.losses.Logistic(),
    "Sigmoid": ofw.losses.Sigmoid(3.0),
    "Correntropy": ofw.losses.Correntropy(4.0),
    "Pseudohuber": Pseudohuber(),
}


def row_batches(name):
    what = ROW_PROBLEMS[name]
    rng = np.random.default_rng(4)
    truth = np.where(np.arange(FEATURES) < 3, 1.0, 0.0)
    for t in range(ROUNDS):
        X = rng.standard_normal((BATCH, FEATURES))
        if what.get("bytes") and t < 9:
            X = rng.integers(0, 5, (BATCH, FEATURES), dtype=np.uint8)
        y = X @ truth + 0.3 * rng.standard_normal(BATCH) + 0.5
        if what.get("loss") in ("Logistic", "Sigmoid"):
            y = np.where(y > 0.0, 1.0, -1.0)
        if what.get("sparse"):
            X = sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
        w = rng.integers(0, 3, BATCH) + (np.arange(BATCH) == 0.0) if what.get("weights") else None
        yield X, y, w


def make_row_learner(name, workers=None, **where):
    what = ROW_PROBLEMS[name]
    where |= {"fit_intercept": what.get("intercept", False), "half_life": what.get("half_life")}
    if what.get("sums"):
        objective = RunningLeastSquares(FEATURES, workers=workers, **where)
    else:
        size = {"shape": what["shape"]} if "shape" in what else {"n_features": FEATURES}
        objective = LinearObjective(
            LOSSES[what.get("loss", "Square")],
            past=what.get("past", "all"),
            max_past=what.get("max_past"),
            random_state=0,
            workers=workers,
            **size,
            **where,
        )
    ball = what.get("ball", ofw.sets.L1Ball(3.0))
    step = what.get("step", ofw.steps.Harmonic(2))
    if what.get("away"):
        return ofw.OnlineAwayFrankWolfe(objective, ball, step)
    if what.get("pairwise"):
        return ofw.OnlinePairwiseFrankWolfe(objective, ball, step)
    corrective = ofw.NewtonSteps() if what.get("corrective") else None
    return ofw.OnlineFrankWolfe(objective, ball, step, corrective=corrective)


def assert_same_rows(one, other, tol=1e-8):
    """Two learners are in the same place, to rounding, and know the same about it."""
    a, b = one.objective, other.objective
    np.testing.assert_allclose(b.theta, a.theta, atol=tol)
    np.testing.assert_allclose(b.value(), a.value(), rtol=tol)
    np.testing.assert_allclose(b.gradient(), a.gradient(), atol=tol)
    np.testing.assert_allclose(b.intercept, a.intercept, atol=tol)
    np.testing.assert_allclose(other.certificate(), one.certificate(), atol=tol)
    np.testing.assert_allclose(b.smoothness(), a.smoothness(), rtol=1e-4)
    np.testing.assert_allclose(b.batch_gradient(), a.batch_gradient(), atol=tol)
    assert b.n_observations == a.n_observations
    if isinstance(a, LinearObjective):
        assert b.n_kept == a.n_kept
        np.testing.assert_allclose(b.predictions(), a.predictions(), atol=tol)
