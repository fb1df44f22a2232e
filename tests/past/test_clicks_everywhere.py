"""Clicks in memory, with workers and on GPUs: what F_t is and how far theta is from its best."""

from contextlib import nullcontext

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import _devices
from onlinefw._devices import to_host
from onlinefw.atoms import RankOne
from onlinefw.objectives import ObservedEntries, RunningBiases, entries_gradient, merge_rule
from onlinefw.sets import TraceNormBall, WeightedTraceNormBall
from onlinefw.steps import LineSearch

from ..objectives.test_unobserved import ALPHAS, Dense, events, prediction
from .ray.in_process import kill_before, ray_in_process

SHAPE = (9, 13)
PLACES = {
    "memory": {},
    "workers": {"workers": 3},
    "gpu": {"device": "cuda"},
    "workers with gpus": {"device": "cuda", "workers": 2},
}


@pytest.fixture(
    params=[pytest.param(p, marks=pytest.mark.gpu) if "gpu" in p else p for p in PLACES]
)
def place(request, monkeypatch):
    options = PLACES[request.param]
    if "device" in options and _devices._why_not():
        pytest.skip(_devices._why_not())
    with ray_in_process(monkeypatch) if "workers" in options else nullcontext():
        yield options


@pytest.fixture(params=[10**6, 8], ids=["all in the tail", "merged often"])
def tail(request, monkeypatch):
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", request.param)
    monkeypatch.setattr(merge_rule, "MERGE_COST", 0.0)
    monkeypatch.setattr(merge_rule, "NEWEST", 4)


def close(found, expected, tol=1e-9):
    scale = np.abs(expected).max(initial=1e-30)
    np.testing.assert_allclose(to_host(found), expected, rtol=0, atol=tol * scale)


def assert_as_dense(objective, dense, ball):
    """Value, gradient and its products, gap, certificate and lines are those of matrices."""
    z, theta, rng = prediction(objective), objective.theta.dense(), np.random.default_rng(0)
    at = objective._low_rank._xp.asarray
    expected, gradient = dense.gradient(z), objective.gradient()
    close(objective.value(), dense.value(z))
    close(gradient.toarray(), expected)
    (m1, m2), (a, b) = expected.shape, ball.scales or (np.ones(len(z)), np.ones(len(z.T)))
    u, v, scaled = rng.standard_normal(m1), rng.standard_normal(m2), a[:, None] * expected * b
    close(gradient._matmat(at(v[:, None])), expected @ v[:, None])
    close(gradient._rmatmat(at(u[:, None])), expected.T @ u[:, None])
    for found, product in zip(
        gradient.normal(at(v), ball.scales), (scaled @ v, scaled.T @ (scaled @ v)), strict=True
    ):
        close(found, product)
    gap = np.sum(expected * theta) + ball.radius * np.linalg.norm(scaled, 2)
    gradient.look_closely()
    assert objective.gap(gradient, ball.lmo(gradient)) == pytest.approx(gap, rel=1e-6)
    assert gap * (1 - 1e-9) <= objective.certificate(ball) <= gap * (1 + 1e-6)
    line, direction = objective.line(RankOne(at(u), 0.3, at(v))), 0.3 * np.outer(u, v) - theta
    for t in (0.0, 0.4, 1.0):
        close(line.value(t), dense.value(z + t * direction))
        close(line.slope(t), np.sum(dense.gradient(z + t * direction) * direction), 1e-7)
    i, j = rng.integers(m1, size=20), rng.integers(m2, size=20)
    close(objective.predict(i, j), z[i, j])


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"half_life": 30.0},
        {"growing": True},
        {"offsets": "running"},
        {"weighted": True, "half_life": 80.0, "offsets": "running"},
    ],
    ids=str,
)
def test_everything_is_as_with_dense_matrices(place, options, alpha):
    rng, options = np.random.default_rng(1), dict(options)
    growing, weighted = options.get("growing", False), options.pop("weighted", False)
    if "offsets" in options:
        options["offsets"] = RunningBiases()
    shape, ball = (2, 3) if growing else SHAPE, TraceNormBall(4.0)
    if weighted:
        ball = WeightedTraceNormBall(4.0, *(1.0 + rng.random(n) for n in SHAPE))
    objective = ObservedEntries(shape, dtype=float, unobserved=alpha, **options, **place)
    dense = Dense(alpha, shape, options.get("half_life"))
    learner = ofw.OnlineFrankWolfe(objective, ball)
    for t in range(6):
        X, y, w = events(rng, 25, (3 + t, 5 + t) if growing else SHAPE)
        learner.observe(X, y, w)
        dense.observe(X, y, w)
        assert objective._past.n_distinct() == dense.seen.sum()
    assert_as_dense(objective, dense, ball)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_certificate_bounds_the_distance_to_the_best_matrix(place, alpha):
    """The best matrix is found by another solver, on dense matrices."""
    cvxpy = pytest.importorskip("cvxpy")
    rng, radius, dense = np.random.default_rng(6), 2.0, Dense(alpha, (8, 6))
    objective = ObservedEntries((8, 6), dtype=float, unobserved=alpha, **place)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(radius), step=LineSearch())
    for _ in range(40):
        X, _, w = events(rng, 5, (8, 6))
        learner.observe(X, np.ones(5), w)
        dense.observe(X, np.ones(5), w)
    x = cvxpy.Variable((8, 6))
    total = cvxpy.sum(cvxpy.multiply(dense.weights / 2, x**2) - cvxpy.multiply(dense.s, x))
    problem = cvxpy.Problem(cvxpy.Minimize(total), [cvxpy.normNuc(x) <= radius])
    best = (problem.solve() + dense.squares / 2) / dense.weights.sum()
    excess = objective.value() - best
    assert -1e-6 <= excess <= learner.certificate() + 1e-6
    gradient = dense.gradient(objective.theta.dense())
    gap = np.sum(gradient * objective.theta.dense()) + radius * np.linalg.norm(gradient, 2)
    assert learner.certificate() == pytest.approx(gap, rel=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_large_matrices_have_a_certificate_from_products(place, alpha, monkeypatch):
    monkeypatch.setattr(entries_gradient, "SMALL_MATRIX", 0)
    rng, ball, dense = np.random.default_rng(7), TraceNormBall(5.0), Dense(alpha, (40, 30))
    objective = ObservedEntries((40, 30), dtype=float, unobserved=alpha, **place)
    learner = ofw.OnlineFrankWolfe(objective, ball)
    for _ in range(12):
        X, y, w = events(rng, 60, (40, 30))
        learner.observe(X, y, w)
        dense.observe(X, y, w)
    gradient = dense.gradient(prediction(objective))
    gap = np.sum(gradient * objective.theta.dense()) + 5.0 * np.linalg.norm(gradient, 2)
    assert gap * (1 - 1e-9) <= learner.certificate() <= 1.5 * gap


@pytest.mark.parametrize("alpha", ALPHAS)
def test_sweeps_solve_the_regressions_of_all_entries(place, alpha):
    rng, dense = np.random.default_rng(4), Dense(alpha, SHAPE)
    objective = ObservedEntries(SHAPE, dtype=float, unobserved=alpha, **place)
    X, y, w = events(rng, 70, SHAPE)
    objective.add(objective.check(X, y, w))
    dense.observe(X, y, w)
    rows, columns = (rng.standard_normal(n) for n in SHAPE)
    objective.set_offsets(rows, columns)
    past, at = objective.regressions(everything=True), objective._low_rank._xp.asarray
    factors = [rng.standard_normal((n, 3)) for n in SHAPE]
    ridges = [0.1 + rng.random(n) for n in SHAPE]
    found = (
        past.solve_rows(at(factors[1]), ridges[0]),
        past.solve_columns(at(factors[0]), ridges[1]),
    )
    target = dense.s - dense.weights * (rows[:, None] + columns)
    for side, (weights, values) in enumerate(
        ((dense.weights, target), (dense.weights.T, target.T))
    ):
        features, expected = factors[1 - side], []
        for weight, value, ridge in zip(weights, values, ridges[side], strict=True):
            A = (weight * features.T) @ features + ridge * np.eye(3)
            expected.append(np.linalg.solve(A, features.T @ value))
        close(found[side], np.array(expected))


def test_single_precision_is_double_to_rounding(place):
    rng, dense = np.random.default_rng(3), Dense(0.1, SHAPE)
    objective = ObservedEntries(SHAPE, unobserved=0.1, **place)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(4.0), step=LineSearch())
    for _ in range(10):
        X, y, w = events(rng, 40, SHAPE)
        learner.observe(X, y, w)
        dense.observe(X, y, w)
    z = prediction(objective).astype(float)
    assert objective.value() == pytest.approx(dense.value(z), rel=1e-5)
    close(objective.gradient().toarray(), dense.gradient(z), 1e-4)


def learned(batches, half_life, corrective, **place):
    objective = ObservedEntries(SHAPE, dtype=float, unobserved=0.1, half_life=half_life, **place)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(30.0), corrective=corrective)
    for batch in batches:
        learner.observe(*batch)
    return learner


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize(
    ("half_life", "corrective"),
    [(None, None), (50.0, None), (None, ofw.RidgeSweeps(2, ridge=0.5, growth=1.2, start=50))],
)
def test_a_run_goes_on_in_another_place(place, half_life, corrective):
    rng = np.random.default_rng(9)
    batches = [events(rng, 30, SHAPE) for _ in range(12)]
    whole = learned(batches, half_life, corrective)
    half = learned(batches[:5], half_life, corrective, **place)
    back = ofw.OnlineFrankWolfe.from_state(half.state_dict())
    there = ofw.OnlineFrankWolfe.from_state(back.state_dict(), **place)
    half.objective.use_place("cpu", None)
    for learner in (back, there, half):
        for batch in batches[5:]:
            learner.observe(*batch)
        close(learner.theta.dense(), whole.theta.dense(), 1e-7)
        close(learner.objective.value(), whole.objective.value())
        close(learner.certificate(), whole.certificate(), 1e-6)


def test_rows_can_be_forgotten(place):
    rng, dense = np.random.default_rng(10), Dense(0.1, SHAPE)
    objective = ObservedEntries(SHAPE, dtype=float, unobserved=0.1, **place)
    X, _, w = events(rng, 60, SHAPE)
    y = np.ones(60)  # of repeated values only the mean is known when they leave
    objective.add(objective.check(X, y, w))
    objective.put(rng.standard_normal(SHAPE))
    objective.gradient()
    objective.forget(3)
    kept = X[:, 0] != 3
    dense.observe(X[kept], y[kept], w[kept])
    assert_as_dense(objective, dense, TraceNormBall(2.0))


@pytest.mark.parametrize("half_life", [None, 40.0])
def test_workers_that_die_know_what_was_observed(monkeypatch, half_life):
    rng = np.random.default_rng(11)
    batches = [events(rng, 30, SHAPE) for _ in range(12)]
    whole = learned(batches, half_life, None)
    with ray_in_process(monkeypatch):
        half = learned(batches[:5], half_life, None, workers=3)
        learner = ofw.OnlineFrankWolfe.from_state(half.state_dict(), workers=3)
        shards = learner.objective._past.shards
        kill_before(shards, {1, 5, 9})
        for batch in batches[5:]:
            learner.observe(*batch)
        assert shards.restarts == 3
        close(learner.theta.dense(), whole.theta.dense(), 1e-7)
        assert learner.certificate() == pytest.approx(whole.certificate(), rel=1e-6)
        lost = learner.state_dict()["objective"]["past"]
        assert lost["unobserved"] == pytest.approx(0.1 * learner.objective.unit)
