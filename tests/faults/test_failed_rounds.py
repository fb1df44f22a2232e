"""A round happens or it does not: it fails at any line, and the model is as before or after.

Or it says that it is broken, and nothing else.
"""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import losses
from onlinefw._whole import BrokenModel
from onlinefw.objectives import (
    GradientOracle,
    LinearObjective,
    ObservedEntries,
    RunningLeastSquares,
    running_sums,
)
from onlinefw.sets import Box, L1Ball, Simplex, TraceNormBall
from onlinefw.steps import LineSearch

from ..files.zoo import FEW, ZOO, all_told, stream
from .failing import lines_of

#: Random lines at which a round of each model fails.
MOMENTS = 12


def told(model, X):
    return [model.n_rounds_, *map(np.asarray, all_told(model, X))]


def same(one, other, rtol=0.0):
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True)
        if isinstance(a, np.ndarray) and a.dtype.kind == "f"
        else np.array_equal(a, b)
        for a, b in zip(one, other, strict=True)
    )


def asks(model, X):
    """Everything that can be asked of a model."""
    return [
        lambda: model.predict(X),
        lambda: model.n_rounds_,
        lambda: model.state_dict(),
        lambda: pickle.dumps(model),
    ]


def played(model, act, batch):
    """Let a model do something with a batch."""
    if act == "learn":
        model.learn(**batch)
        return model
    return model.partial_fit(**batch) if act == "partial_fit" else model.refine()


@pytest.mark.parametrize(
    ("name", "act"),
    [
        pytest.param(n, act, marks=() if n in FEW else pytest.mark.slow)
        for n in ZOO
        for act in ("partial_fit", "learn", "refine")
        if act != "refine" or "summary" not in n  # where no rows are kept nothing is refined
    ],
)
def test_a_model_is_that_of_before_or_after_or_says_that_it_is_broken(name, act):
    *batches, last = stream(name, 0)[:5]
    if act == "learn" and not getattr(ZOO[name](), "takes_events", False):  # there a row is a round
        last = {**last, "X": last["X"][:1], "y": last["y"][:1]}
    model = ZOO[name]()
    for batch in batches:
        model.partial_fit(**batch)
    seed = len(name)
    happens_or_not(model, lambda one: played(one, act, last), batches[0]["X"], told, seed)


def happens_or_not(model, play, X, told, seed, moments=MOMENTS):
    """Let a model fail at random lines while it plays, and look what it tells afterwards."""
    kept = pickle.dumps(model)
    before, after = told(model, X), pickle.loads(kept)
    lines_of(lambda: play(after))
    after = told(after, X)
    again = pickle.loads(kept)
    n_lines, _ = lines_of(lambda: play(again))  # what is computed once was computed before
    outcomes = set()
    for moment in np.random.default_rng(seed).integers(1, n_lines, size=moments):
        one = pickle.loads(kept)
        _, error = lines_of(lambda one=one: play(one), int(moment))
        if error is None:  # it had fewer lines this time
            continue
        try:
            now = told(one, X)
        except BrokenModel:
            outcomes.add("broken")
            for ask in (*asks(one, X), lambda one=one: play(one)):
                with pytest.raises(BrokenModel, match="go back to the last checkpoint"):
                    ask()
            continue
        outcomes.add("before" if same(now, before) else "after")
        assert same(now, before) or same(now, after), f"torn {error}"
        if same(now, before):
            play(one)
            assert same(told(one, X), after, rtol=1e-6), f"goes on otherwise {error}"
    assert outcomes <= {"before", "after", "broken"} and outcomes


LEARNERS = {
    "rows": lambda: ofw.OnlineFrankWolfe(LinearObjective(losses.Logistic()), L1Ball(2.0)),
    "rows, recent": lambda: ofw.OnlineAwayFrankWolfe(
        LinearObjective(losses.Square(), past="recent", max_past=20), Simplex()
    ),
    # The fifth batch of seven rows ends after 35 half-lives: all weights are rescaled.
    "rows, fading": lambda: ofw.OnlineFrankWolfe(
        LinearObjective(losses.Logistic(), half_life=1.0), L1Ball(2.0)
    ),
    "rows, fading sample": lambda: ofw.OnlineFrankWolfe(
        LinearObjective(losses.Logistic(), past="reservoir", max_past=9, half_life=1.0),
        L1Ball(2.0),
    ),
    "sums, fading": lambda: ofw.OnlineFrankWolfe(
        RunningLeastSquares(6, half_life=1.0, fit_intercept=True), L1Ball(2.0)
    ),
    "rows, pairwise": lambda: ofw.OnlinePairwiseFrankWolfe(
        LinearObjective(losses.Logistic(), fit_intercept=True), L1Ball(2.0), LineSearch()
    ),
    "rows, pairwise, dense atoms": lambda: ofw.OnlinePairwiseFrankWolfe(
        LinearObjective(losses.Square()), Box(-1.0, 1.0)
    ),
    "sums, blended": lambda: ofw.OnlinePairwiseFrankWolfe(
        RunningLeastSquares(6), L1Ball(0.7), inner_steps=2, blended=True
    ),
    "sums": lambda: ofw.OnlineFrankWolfe(RunningLeastSquares(6), L1Ball(2.0)),
    "entries": lambda: ofw.OnlineFrankWolfe(
        ObservedEntries((9, 8), growing=True), TraceNormBall(5.0)
    ),
    "factors": lambda: ofw.OnlineFactors((9, 8), chains=2, rank=3),
    "factors, fading": lambda: ofw.OnlineFactors((9, 8), chains=2, rank=3, half_life=1.0),
    "factors, of clicks": lambda: ofw.OnlineFactors((9, 8), rank=3, unobserved=0.1),
    "factors, of clicks, fading": lambda: ofw.OnlineFactors((9, 8), unobserved=0.1, half_life=1.0),
    "entries, fading": lambda: ofw.OnlineFrankWolfe(
        ObservedEntries((9, 8), growing=True, half_life=1.0), TraceNormBall(5.0)
    ),
    "oracle": lambda: ofw.OnlineFrankWolfe(
        GradientOracle(lambda theta, t: theta - 1.0, 6), L1Ball(2.0)
    ),
}


def batch_for(kind, rng):
    if kind == "oracle":
        return ()
    if kind.startswith(("entries", "factors")):
        return np.column_stack((rng.integers(12, size=7), rng.integers(10, size=7))), rng.random(7)
    X = rng.standard_normal((7, 6))
    return X, np.sign(X[:, 0])


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        *((kind, "observe") for kind in LEARNERS),
        *((kind, "learn") for kind in LEARNERS if kind.startswith("factors")),
        ("factors", "refine"),
        ("factors", "forget"),
        ("factors, of clicks", "forget"),
    ],
)
def test_so_is_a_learner(kind, act):
    def play(learner, batch):
        if act == "forget":
            return learner.forget(3)
        return getattr(learner, act)(*(batch if act in ("observe", "learn") else ()))

    def played(rounds):
        rng, learner = np.random.default_rng(1), LEARNERS[kind]()
        for _ in range(min(rounds, 4)):
            learner.observe(*batch_for(kind, rng))
        batch = batch_for(kind, rng)
        if rounds > 4:
            play(learner, batch)
        return learner, batch

    def theta(learner):
        owner = learner.objective if hasattr(learner, "objective") else learner
        return learner.t, owner.n_observations, np.array(learner.theta)

    before, after = theta(played(4)[0]), theta(played(5)[0])
    for _ in range(2):
        learner, batch = played(4)
        n_lines, _ = lines_of(lambda one=learner, batch=batch: play(one, batch))
    for moment in np.random.default_rng(2).integers(1, n_lines, size=40):
        learner, batch = played(4)
        _, error = lines_of(lambda one=learner, batch=batch: play(one, batch), int(moment))
        try:
            t, n, now = theta(learner)
        except BrokenModel:
            with pytest.raises(BrokenModel):
                play(learner, batch)
            with pytest.raises(BrokenModel):
                learner.certificate()
            continue
        wanted = before if (t, n) == before[:2] else after
        assert (t, n) == wanted[:2], error
        np.testing.assert_array_equal(now, wanted[2])
        if wanted is before:
            play(learner, batch)
            np.testing.assert_allclose(np.asarray(learner.theta), after[2], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["regressor, rows", "classifier, two classes", "search, rows"])
def test_a_fit_that_fails_before_its_first_round_leaves_the_model_before(name):
    batches = stream(name, 0)
    X, y = batches[0]["X"], batches[0]["y"]
    model = ZOO[name]().fit(X, y)
    before = told(model, X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, 3), np.nan), y[:4])
    assert same(told(model, X), before)
    fresh = ZOO[name]()
    with pytest.raises(ValueError, match="NaN"):
        fresh.fit(np.full((4, 3), np.nan), y[:4])
    assert not fresh.__sklearn_is_fitted__() and not hasattr(fresh, "n_features_in_")


@pytest.mark.parametrize("growth", [None, 1.3])
def test_sums_that_got_a_part_of_a_batch_are_broken(growth, monkeypatch, rng):
    """The first rows of a long batch are in X'X, or wait, when memory for the others is missing."""
    monkeypatch.setattr(running_sums, "MOST_CENTRED", 30)
    monkeypatch.setattr(running_sums, "BLOCK", 4)
    objective = ofw.objectives.RunningLeastSquares(3, fit_intercept=True)
    corrective = None if growth is None else ofw.NewtonSteps(growth=growth)
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(1.0), corrective=corrective)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    learner.observe(X[:200], y[:200])
    past, add, calls = objective._shared.past, objective._shared.past.add, []

    def fails(*args):
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError
        add(*args)

    monkeypatch.setattr(past, "add", fails)
    with pytest.raises(MemoryError):
        learner.observe(X[200:240], y[200:240])
    with pytest.raises(ofw.BrokenModel):
        learner.observe(X[240:], y[240:])
