"""Streams of matrix entries, and learners of all kinds that follow them."""

from dataclasses import dataclass

import numpy as np

import onlinefw as ofw
from onlinefw.losses import Loss

ROWS, COLUMNS, ROUNDS, BATCH = 31, 22, 25, 60


@dataclass(frozen=True)
class Pseudohuber(Loss):
    """A loss of the user's own: there is no kernel for it."""

    convex = True
    smoothness = 1.0

    def value(self, z, y):
        return np.sqrt(1.0 + (z - y) ** 2) - 1.0

    def derivative(self, z, y):
        return (z - y) / np.sqrt(1.0 + (z - y) ** 2)

    def second_derivative(self, z, y):
        return (1.0 + (z - y) ** 2) ** -1.5


def _values(rng, X, kind):
    truth = rng.standard_normal((ROWS, 2)) @ rng.standard_normal((2, COLUMNS))
    z = truth[X[:, 0], X[:, 1]]
    if kind == "labels":
        return np.where(z > 0.0, 1.0, -1.0)
    if kind == "counts":
        return rng.poisson(np.exp(np.clip(z, -2.0, 1.0))).astype(float)
    return z + 0.1 * rng.standard_normal(z.size) + 2.0


def stream(kind="numbers", weights=False, growing=False):
    """Batches of (X, y, w), some entries more than once."""
    rng = np.random.default_rng(1)
    X = np.column_stack(
        (rng.integers(ROWS, size=ROUNDS * BATCH), rng.integers(COLUMNS, size=ROUNDS * BATCH))
    )
    if growing:  # the first batches see a corner of the matrix only
        early = np.arange(len(X)) < len(X) // 2
        X[early] //= 2
    y = _values(rng, X, kind)
    w = rng.integers(0, 3, len(y)).astype(float) if weights else None
    for k in range(0, len(y), BATCH):
        part = slice(k, k + BATCH)
        yield X[part], y[part], None if w is None else w[part]


def radius(kind):
    return {"numbers": 80.0, "labels": 40.0, "counts": 10.0}[kind]


#: name -> what is special about it.
MATRIX_PROBLEMS = {
    "square": {},
    "single precision": {"dtype": np.float32},
    "weights": {"weights": True},
    "growing": {"growing": True, "shape": (2, 1)},
    "logistic": {"loss": ofw.losses.Logistic(), "kind": "labels"},
    "poisson, line search": {
        "loss": ofw.losses.Poisson(),
        "kind": "counts",
        "step": ofw.steps.LineSearch(),
    },
    "correntropy, line search": {
        "loss": ofw.losses.Correntropy(4.0),
        "step": ofw.steps.LineSearch(),
    },
    "square, line search": {"step": ofw.steps.LineSearch()},
    "own loss, line search": {"loss": Pseudohuber(), "step": ofw.steps.LineSearch()},
    "biases, growing": {"offsets": False, "growing": True, "shape": (2, 1)},
    "joint biases": {"offsets": True},
    "joint biases, correntropy": {"offsets": True, "loss": ofw.losses.Correntropy(4.0)},
    "inner steps": {"inner_steps": 3},
    "recompressed": {"max_atoms": 12},
    "ridge sweeps": {"corrective": "auto", "weights": True, "offsets": True},
    "given ridge": {"corrective": 0.5},
    "weighted trace norm": {"ball": "weighted", "corrective": "auto"},
    "clicks": {"unobserved": 0.1, "weights": True},
    "clicks, line search": {"unobserved": 1.0, "step": ofw.steps.LineSearch()},
    "clicks, growing": {"unobserved": 0.1, "growing": True, "shape": (2, 1), "offsets": False},
    "clicks, fading": {"unobserved": 0.1, "half_life": 200.0, "weights": True},
    "clicks, weighted trace norm": {"unobserved": 0.01, "ball": "weighted", "inner_steps": 2},
    "clicks, ridge sweeps": {"unobserved": 0.1, "corrective": "auto", "offsets": True},
}


def pairs(problems, *everywhere):
    """Every problem with one number of workers, some with each of 1, 2 and 3."""
    some = [(name, 1 + k % 3) for k, name in enumerate(problems) if name not in everywhere]
    return some + [(name, workers) for name in everywhere for workers in (1, 2, 3)]


def make_learner(name, workers=None, **options):
    what = MATRIX_PROBLEMS[name]
    joint = what.get("offsets")
    objective = ofw.objectives.ObservedEntries(
        what.get("shape", (ROWS, COLUMNS)),
        what.get("loss", ofw.losses.Square()),
        dtype=what.get("dtype", float),
        growing=what.get("growing", False),
        offsets=None if joint is None else ofw.objectives.RunningBiases(joint=joint),
        max_atoms=what.get("max_atoms"),
        half_life=what.get("half_life"),
        unobserved=what.get("unobserved", 0.0),
        workers=workers,
        **options,
    )
    ball = ofw.sets.TraceNormBall(radius(what.get("kind", "numbers")))
    if what.get("ball") == "weighted":
        rng = np.random.default_rng(2)
        p, q = rng.dirichlet(np.full(ROWS, 5.0)), rng.dirichlet(np.full(COLUMNS, 5.0))
        ball = ofw.sets.WeightedTraceNormBall(3.0, p, q)
    ridge = what.get("corrective")
    return ofw.OnlineFrankWolfe(
        objective,
        ball,
        step=what.get("step", ofw.steps.Harmonic(2)),
        inner_steps=what.get("inner_steps", 1),
        corrective=None if ridge is None else ofw.RidgeSweeps(3, ridge=ridge),
    )


def batches_of(name):
    what = MATRIX_PROBLEMS[name]
    names = ("kind", "weights", "growing")
    return list(stream(**{key: what[key] for key in names if key in what}))


def past_of(learner):
    """What a learner's objective keeps of the past."""
    objective = learner.objective
    return objective._past if hasattr(objective, "_past") else objective._shared.past


def follow(learner, batches):
    """Everything that a run shows."""
    rounds = [learner.observe(*batch) for batch in batches]
    return np.array([(r.loss, r.gap, r.step_size) for r in rounds])


def tolerance(learner):
    return 1e-3 if learner.objective.dtype == np.float32 else 1e-7


def assert_same(one, other, resumed=False):
    """Two learners are in the same place, to rounding, and know the same about it.

    A state holds predictions after a move that has waited, which saves a read where only
    predictions are asked for.
    """
    tol = tolerance(one)
    a, b = one.objective, other.objective
    scale = 1.0 + np.abs(a.theta.dense()).max()
    np.testing.assert_allclose(b.theta.dense(), a.theta.dense(), rtol=0, atol=tol * scale)
    np.testing.assert_allclose(b.value(), a.value(), rtol=tol)
    np.testing.assert_allclose(b.gradient().toarray(), a.gradient().toarray(), atol=tol)
    np.testing.assert_allclose(other.certificate(), one.certificate(), rtol=1e-3, atol=tol)
    np.testing.assert_allclose(b.smoothness(), a.smoothness(), rtol=tol)
    assert b.n_entries == a.n_entries
    assert b.n_newest == a.n_newest
    if a.quadratic and not resumed:  # other losses are searched along lines, until rounding ends it
        assert b.reads == a.reads
    for mine, yours in zip(a._past.seen(), b._past.seen(), strict=True):
        np.testing.assert_array_equal(mine, yours)
    np.testing.assert_array_equal(a.columns_of(3), b.columns_of(3))
