"""Rows that fade: F_t is the mean with weights 2**(-age / half_life), recomputed densely."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import LinearObjective, RunningLeastSquares
from onlinefw.objectives.fading_sample import FadingSample
from onlinefw.objectives.half_life import BLOCK, KEPT, Clock
from onlinefw.sets import L1Ball

N = 5


def faded(w, half_life, newest=None):
    """Weights at the end of a stream, of which so many rows count; those of weight 0 pass by."""
    ages = np.count_nonzero(w > 0.0) - np.cumsum(w > 0.0)
    most = np.ceil(KEPT * half_life) if newest is None else newest
    return np.where(ages < most, w * 2.0 ** (-ages / half_life), 0.0)


def stream(rng, sizes, weighted=False):
    for size in sizes:
        X = rng.standard_normal((size, N)) * (rng.random((size, N)) < 0.7)
        y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(size) + 0.2)
        w = rng.integers(0, 3, size).astype(float) if weighted else np.ones(size)
        w[0] = 1.0
        yield X, y, w


def objectives(half_life, **more):
    yield LinearObjective(Logistic(), half_life=half_life, **more), Logistic()
    yield LinearObjective(Square(), half_life=half_life, **more), Square()


def check(learner, loss, X, y, w, tol=1e-10):
    """Value, gradient and certificate are those of the weighted mean."""
    objective = learner.objective
    share = w / w.sum()
    z = X @ learner.theta + objective.intercept
    gradient = X.T @ (share * loss.derivative(z, y))
    assert objective.value() == pytest.approx(share @ loss.value(z, y), rel=tol, abs=tol)
    np.testing.assert_allclose(objective.gradient(), gradient, rtol=tol, atol=tol)
    radius = learner.constraint.radius
    gap = learner.theta @ gradient + radius * np.abs(gradient).max()
    assert learner.certificate() == pytest.approx(gap, rel=tol, abs=tol)


HALF_LIVES = st.sampled_from([1.0, 1.7, 3.0, 25.0, 1e4])
SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=8)


@given(HALF_LIVES, SIZES, st.booleans(), st.booleans(), st.integers(0, 100))
def test_rows_count_as_much_as_they_have_faded(half_life, sizes, intercept, weighted, seed):
    for objective, loss in objectives(half_life, fit_intercept=intercept):
        learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0), inner_steps=2)
        seen = [np.empty((0, N)), np.empty(0), np.empty(0)]
        for batch in stream(np.random.default_rng(seed), sizes, weighted):
            learner.observe(*batch)
            seen = [np.concatenate(pair) for pair in zip(seen, batch, strict=True)]
        check(learner, loss, *seen[:2], faded(seen[2], half_life))


@given(HALF_LIVES, SIZES, st.booleans(), st.booleans(), st.integers(0, 100))
def test_sums_count_rows_as_much_as_they_have_faded(half_life, sizes, intercept, weighted, seed):
    objective = RunningLeastSquares(N, half_life=half_life, fit_intercept=intercept)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0), inner_steps=2)
    seen = [np.empty((0, N)), np.empty(0), np.empty(0)]
    for batch in stream(np.random.default_rng(seed), sizes, weighted):
        learner.observe(*batch)
        seen = [np.concatenate(pair) for pair in zip(seen, batch, strict=True)]
    # Sums drop no rows. Their differences are exact to rounding of what they are made of only.
    check(learner, Square(), *seen[:2], faded(seen[2], half_life, np.inf), tol=1e-7)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("max_past", [7, 40])
def test_of_the_newest_rows_both_limits_hold(kind, max_past, rng):
    objective = LinearObjective(Logistic(), past="recent", max_past=max_past, half_life=2.0)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0))
    seen = [np.empty((0, N)), np.empty(0), np.empty(0)]
    for batch in stream(rng, [1, 30, 3, 3, 3, 3, 50, 2], weighted=True):
        learner.observe(kind(batch[0]), *batch[1:])
        seen = [np.concatenate(pair) for pair in zip(seen, batch, strict=True)]
        check(learner, Logistic(), *seen[:2], faded(seen[2], 2.0, min(max_past, 20)))
    assert objective.n_kept == min(max_past, 20)


@pytest.mark.slow
@pytest.mark.parametrize("make", ["rows", "sums"])
def test_the_certificate_bounds_the_distance_to_the_minimum_of_what_still_counts(make, rng):
    loss = Logistic() if make == "rows" else Square()
    objective = (
        LinearObjective(loss, half_life=15.0)
        if make == "rows"
        else RunningLeastSquares(N, half_life=15.0)
    )
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(1.5), inner_steps=3)
    seen = [np.empty((0, N)), np.empty(0), np.empty(0)]
    for t, (X, y, w) in enumerate(stream(rng, [10] * 25)):
        y = y if t < 12 else -y  # a change at half time
        learner.observe(X, y, w)
        seen = [np.concatenate(pair) for pair in zip(seen, (X, y, w), strict=True)]
        X_, y_, w_ = seen[0], seen[1], faded(seen[2], 15.0)
        theta = cp.Variable(N)
        each = (
            cp.logistic(-cp.multiply(y_, X_ @ theta))
            if make == "rows"
            else cp.square(X_ @ theta - y_) / 2
        )
        problem = cp.Problem(
            cp.Minimize(w_ / w_.sum() @ each), [cp.norm1(theta) <= learner.constraint.radius]
        )
        least = problem.solve()
        assert objective.value() - least <= learner.certificate() + 1e-6
        assert learner.certificate() < 1.0


# However the stream is cut ------------------------------------------------------------------------


def newton(objective):
    corrective = ofw.NewtonSteps(growth=1.3)
    return ofw.OnlineFrankWolfe(objective, L1Ball(2.0), inner_steps="auto", corrective=corrective)


MAKERS = {
    "rows": lambda h: LinearObjective(Logistic(), half_life=h, fit_intercept=True),
    "recent": lambda h: LinearObjective(Logistic(), half_life=h, past="recent", max_past=30),
    "sample": lambda h: LinearObjective(
        Logistic(), half_life=h, past="reservoir", max_past=30, random_state=3
    ),
    "sums": lambda h: RunningLeastSquares(N, half_life=h, fit_intercept=True),
}


@pytest.mark.parametrize("half_life", [1.3, 8.0, 500.0])
@pytest.mark.parametrize("make", list(MAKERS))
def test_a_resumed_learner_goes_on_to_the_last_bit(make, half_life, rng):
    first, more = list(stream(rng, [9] * 20, True)), list(stream(rng, [9] * 20, True))
    one = newton(MAKERS[make](half_life))
    for batch in first:
        one.observe(*batch)
    others = [type(one).from_state(one.state_dict()), pickle.loads(pickle.dumps(one))]
    for batch in more:
        for learner in (one, *others):
            learner.observe(*batch)
    for other in others:
        assert other.objective.half_life == half_life
        np.testing.assert_array_equal(one.theta, other.theta)
        assert one.certificate() == other.certificate()
        assert one.objective.value() == other.objective.value()


@pytest.mark.parametrize("make", ["rows", "sums"])
def test_states_from_before_half_lives_load(make, rng):
    one = newton(MAKERS[make](None))
    for batch in stream(rng, [9] * 5):
        one.observe(*batch)
    state = one.state_dict()
    state["objective"]["past"].pop("clock")
    state["objective"]["past"].pop("sample", None)
    other = type(one).from_state(state)
    assert other.objective.half_life is None
    assert other.certificate() == one.certificate()


@pytest.mark.parametrize("make", list(MAKERS))
def test_when_weights_are_rescaled_makes_no_difference(make, rng, monkeypatch):
    data = list(stream(rng, [11] * 60, True))  # 66 half-lives
    thetas = []
    for block in (BLOCK, 2, 128):
        monkeypatch.setattr("onlinefw.objectives.half_life.BLOCK", block)
        learner = newton(MAKERS[make](10.0))
        for batch in data:
            learner.observe(*batch)
        assert (learner.objective.shift > 0) == (block < 128)
        thetas.append((*learner.theta, learner.certificate(), learner.objective.value()))
    assert thetas[0] == thetas[1] == thetas[2]


@pytest.mark.parametrize("past", ["all", "reservoir"])
def test_memory_is_flat_however_long_the_stream(past, rng):
    most = {"max_past": 100} if past == "reservoir" else {}
    objective = LinearObjective(Logistic(), past=past, half_life=10.0, random_state=0, **most)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0))
    sizes, lengths = [], []
    for t, batch in enumerate(stream(rng, [50] * 220)):
        learner.observe(*batch)
        lengths.append(len(objective._shared.past))
        if t >= 10:
            sizes.append(len(pickle.dumps(learner)))
    assert objective.n_kept == 100
    assert max(lengths) <= 2 * 100 + 50
    assert max(sizes[100:]) <= 1.1 * max(sizes[:100])


def test_a_clock_that_cannot_be_is_refused():
    objective = MAKERS["rows"](3.0)
    state = objective.state_dict()
    state["past"]["clock"]["shift"] = BLOCK
    with pytest.raises(ValueError, match="half-life of the state is impossible"):
        MAKERS["rows"](3.0).load_state(state)


# A random sample ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "half_life"), [(10, 20.0), (40, 12.0), (150, 12.0)])
def test_a_sample_counts_what_all_faded_rows_count(size, half_life):
    """Its weights have the faded weights as their expectations, whatever its size."""
    n, trials = 100, 4000
    own = np.tile([1.0, 2.0], n // 2)
    counts = np.zeros((trials, n))
    clock = Clock(half_life)
    for seed in range(trials):
        sample = FadingSample(size)
        sample.draw(clock, own, np.random.default_rng(seed))
        counts[seed] = sample.weights(0)
    expected = own * 2.0 ** (np.arange(1, n + 1) / half_life)
    error = counts.std(axis=0) / np.sqrt(trials)
    assert (np.abs(counts.mean(axis=0) - expected) <= 5.0 * error + 1e-9 * expected).all()
    assert ((counts > 0.0).sum(axis=1) == min(size, n)).all()


def test_a_short_sample_has_rows_in_proportion_to_what_they_weigh():
    n, trials, half_life = 200, 3000, 40.0
    kept = np.zeros(n)
    for seed in range(trials):
        sample = FadingSample(4)
        sample.draw(Clock(half_life), np.ones(n), np.random.default_rng(seed))
        weights = sample.weights(0)
        kept += weights > 0.0
        assert np.unique(weights[weights > 0.0]).size <= 3  # nearly all count alike
    by_age = kept.reshape(5, 40).sum(axis=1)[::-1]  # a half-life each, the newest first
    np.testing.assert_allclose(by_age / by_age.sum(), 2.0 ** -np.arange(5) / 1.9375, atol=0.02)


def test_a_sample_does_not_depend_on_pieces(rng):
    w = rng.integers(0, 3, 300).astype(float)
    weights = []
    for size in (300, 7, 1):
        clock, sample, draws = Clock(9.0), FadingSample(25), np.random.default_rng(1)
        for start in range(0, 300, size):
            sample.draw(clock, w[start : start + size], draws)
            clock = clock.after(w[start : start + size])[0]
        weights.append(sample.weights(clock.shift))
    np.testing.assert_array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[0], weights[2])
    assert np.count_nonzero(weights[0]) == 25
