"""Corrective Newton steps on the l1 ball, against exact gaps, cvxpy and plain recomputation."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.kernels.pairwise import pairwise_steps
from onlinefw.losses import Bernoulli, Correntropy, Logistic, Poisson, Sigmoid, Square
from onlinefw.objectives import LinearObjective, RunningLeastSquares
from onlinefw.sets import KSparse, L1Ball
from onlinefw.steps import LineSearch

from ..pairs import every_pair

# The kernel --------------------------------------------------------------------------------------


def quadratic(seed, n, rank):
    """A convex quadratic x'Hx/2 - c'x, a radius, and a start inside or on the ball."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank, n))
    H, c = A.T @ A / rank, rng.standard_normal(n) * rng.choice([0.1, 1.0, 10.0])
    radius = rng.uniform(0.1, 3.0)
    x = rng.standard_normal(n) * (rng.random(n) < 0.7)
    x *= rng.choice([0.0, 0.5, 1.0]) * radius / max(np.abs(x).sum(), 1e-9)
    return H, c, x, radius


def exact_gap(H, c, x, radius):
    gradient = H @ x - c
    return radius * np.abs(gradient).max() + x @ gradient


@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), rank=st.integers(1, 10))
def test_pairwise_steps_end_with_the_gap_that_was_asked_for(seed, n, rank):
    H, c, x, radius = quadratic(seed, n, rank)
    q = H @ x - c
    tolerance = 1e-6 * (1.0 + np.abs(c).max())
    steps = pairwise_steps(H, q, x, radius, 10**5, tolerance, np.inf)
    assert steps < 10**5
    assert exact_gap(H, c, x, radius) <= 1.001 * tolerance


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 8),
    rank=st.integers(1, 10),
    steps=st.integers(0, 30),
)
def test_every_pairwise_step_is_feasible_and_lowers_the_quadratic(seed, n, rank, steps):
    H, c, x, radius = quadratic(seed, n, rank)
    q = H @ x - c
    value = 0.5 * x @ H @ x - c @ x
    for _ in range(steps):
        pairwise_steps(H, q, x, radius, 1, 0.0, np.inf)
        assert np.abs(x).sum() <= radius * (1 + 1e-12)
        np.testing.assert_allclose(q, H @ x - c, atol=1e-9 * (1 + np.abs(c).max()))
        new = 0.5 * x @ H @ x - c @ x
        assert new <= value + 1e-10 * (1 + abs(value))
        value = new


def test_a_coordinate_that_changes_its_sign_gives_its_weight_back():
    # From x = (1, 0) on the unit ball the first coordinate wants to be slightly negative; what it
    # no longer needs must be free for the second.
    H, c = np.array([[1.0, 0.0], [0.0, 0.01]]), np.array([-0.1, 0.008])
    x = np.array([1.0, 0.0])
    pairwise_steps(H, H @ x - c, x, 1.0, 1000, 1e-12, np.inf)
    np.testing.assert_allclose(x, [-0.1, 0.8], atol=1e-9)


def test_a_coordinate_that_shrinks_as_a_target_gives_weight_back():
    H, c = np.diag([1.0, 1.0, 0.01]), np.array([0.0, 0.0, 0.007])
    x = np.array([0.5, 0.5, 0.0])
    pairwise_steps(H, H @ x - c, x, 1.0, 1000, 1e-12, np.inf)
    np.testing.assert_allclose(x, [0.0, 0.0, 0.7], atol=1e-9)


def test_a_coordinate_that_is_emptied_is_exactly_zero():
    H, c = np.eye(3), np.array([5.0, 0.0, 0.0])
    x = np.array([0.0, 0.6, -0.4])
    pairwise_steps(H, H @ x - c, x, 1.0, 100, 1e-12, np.inf)
    np.testing.assert_array_equal(x[1:], 0.0)
    assert x[0] == pytest.approx(1.0)


def test_repeated_columns_are_no_obstacle():
    H, c = np.ones((4, 4)), np.full(4, 0.5)
    x = np.zeros(4)
    pairwise_steps(H, H @ x - c, x, 1.0, 1000, 1e-10, np.inf)
    assert exact_gap(H, c, x, 1.0) <= 1.1e-10


@given(seed=st.integers(0, 10**6), n=st.integers(2, 8), share=st.floats(0.2, 0.9))
def test_with_a_cap_they_end_at_the_minimum_over_the_hull_of_k_sparse_vectors(seed, n, share):
    H, c, x, radius = quadratic(seed, n, 10)
    cap = share * radius
    x = np.clip(x, -cap, cap)
    pairwise_steps(H, H @ x - c, x, radius, 10**5, 1e-9 * (1.0 + np.abs(c).max()), cap)
    assert np.abs(x).max() <= cap * (1 + 1e-12)
    assert np.abs(x).sum() <= radius * (1 + 1e-12)
    gradient = H @ x - c
    # The best vertex puts the cap on the steepest coordinates, as far as the radius goes.
    left, best = radius, 0.0
    for slope in np.sort(np.abs(gradient))[::-1]:
        best += slope * min(cap, left)
        left -= min(cap, left)
    assert x @ gradient + best <= 1e-6 * (1.0 + np.abs(c).max()) * max(1.0, radius)


# The learner -------------------------------------------------------------------------------------

LOSSES = {
    "square": (Square(), lambda z, y: cp.sum_squares(z - y) / 2),
    "logistic": (Logistic(), lambda z, y: cp.sum(cp.logistic(-cp.multiply(y, z)))),
    "bernoulli": (Bernoulli(), lambda z, y: cp.sum(cp.logistic(z) - cp.multiply(y, z))),
    "poisson": (Poisson(), lambda z, y: cp.sum(cp.exp(z) - cp.multiply(y, z))),
}


def problem(name, rng, n_rows=200, n=30):
    X = rng.standard_normal((n_rows, n))
    signal = X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2]
    if name == "poisson":
        return X, rng.poisson(np.exp(0.5 * signal)).astype(float)
    noisy = signal + 0.7 * rng.standard_normal(n_rows)
    if name == "bernoulli":
        return X, (noisy > 0).astype(float)
    return X, np.sign(noisy) if name == "logistic" else noisy


def optimum(name, X, y, radius):
    theta = cp.Variable(X.shape[1])
    total = LOSSES[name][1](X @ theta, y)
    problem = cp.Problem(cp.Minimize(total / len(y)), [cp.norm1(theta) <= radius])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # 1e-7 is asked for
        return problem.solve(solver="CLARABEL")


def newton(objective, radius, **options):
    return ofw.OnlineFrankWolfe(
        objective, L1Ball(radius), inner_steps="auto", corrective=ofw.NewtonSteps(), **options
    )


@pytest.mark.parametrize(
    ("name", "radius", "kind"), every_pair([*LOSSES], [0.5, 2.0, 20.0], [np.asarray, sp.csr_array])
)
def test_auto_rounds_end_within_one_percent_of_the_optimum(name, radius, kind, rng):
    X, y = problem(name, rng)
    loss = LOSSES[name][0]
    objective = LinearObjective(loss)
    learner = newton(objective, radius)
    for k in range(0, 200, 50):
        learner.observe(kind(X[k : k + 50]), y[k : k + 50])
    value = float(loss.value(X @ learner.theta, y).mean())
    assert objective.value() == pytest.approx(value, abs=1e-12)
    assert np.abs(learner.theta).sum() <= radius * (1 + 1e-12)
    above = value - optimum(name, X, y, radius)
    gap = learner.certificate()
    assert -1e-6 <= above <= gap + 1e-6
    assert gap <= 0.01 * abs(value)


@pytest.mark.parametrize("name", ["square", "logistic"])
def test_k_sparse_vectors_are_corrected_too(name, rng):
    X, y = problem(name, rng)
    loss, total = LOSSES[name]
    ball = KSparse(4, 0.3)
    learner = ofw.OnlineFrankWolfe(
        LinearObjective(loss), ball, inner_steps="auto", corrective=ofw.NewtonSteps()
    )
    for k in range(0, 200, 50):
        learner.observe(X[k : k + 50], y[k : k + 50])
    learner.correct()
    assert ball.contains(learner.theta)
    theta = cp.Variable(30)
    limits = [cp.norm1(theta) <= 1.2, cp.norm_inf(theta) <= 0.3]
    best = cp.Problem(cp.Minimize(total(X @ theta, y) / 200), limits).solve(solver="CLARABEL")
    value = float(loss.value(X @ learner.theta, y).mean())
    assert -1e-6 <= value - best <= learner.certificate() + 1e-6
    assert learner.certificate() <= 0.01 * value


def test_sums_and_rows_take_the_same_newton_steps(rng):
    X, y = problem("square", rng)
    thetas = []
    for objective in (RunningLeastSquares(30), LinearObjective(Square())):
        learner = newton(objective, 1.5)
        kinds = [learner.observe(X[k : k + 40], y[k : k + 40]).kind for k in range(0, 200, 40)]
        assert "fw" not in kinds
        thetas.append(learner.theta)
    np.testing.assert_allclose(thetas[0], thetas[1], atol=1e-9)


@pytest.mark.parametrize("loss", [Sigmoid(3.0), Correntropy(1.0), Logistic(), Square()], ids=str)
def test_a_correction_never_raises_the_objective(loss, rng):
    X, y = problem("logistic", rng)
    for fit_intercept in (False, True):
        objective = LinearObjective(loss, fit_intercept=fit_intercept)
        learner = ofw.OnlineFrankWolfe(objective, L1Ball(3.0), corrective=ofw.NewtonSteps(5))
        learner.observe(X, y)
        value = objective.value()
        for _ in range(15):
            round_ = learner.refine()
            assert np.abs(learner.theta).sum() <= 3.0 * (1 + 1e-12)
            if round_.kind == "corrective":
                assert objective.value() <= value * (1 + 1e-12)
            value = objective.value()


def test_at_most_so_many_coordinates_enter_at_a_time(rng):
    X, y = problem("square", rng)
    objective = RunningLeastSquares(30)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(50.0), corrective=ofw.NewtonSteps(4))
    for t in range(1, 5):
        learner.observe(X, y)
        assert np.count_nonzero(learner.theta) <= 4 * t


def test_predictions_follow_newton_steps_with_an_intercept(rng):
    X, y = problem("logistic", rng)
    for kind in (np.asarray, sp.csr_array):
        objective = LinearObjective(Logistic(), fit_intercept=True)
        learner = newton(objective, 3.0)
        for k in range(0, 200, 20):
            learner.observe(kind(X[k : k + 20]), y[k : k + 20])
        np.testing.assert_allclose(objective.predictions(), X @ learner.theta, atol=1e-12)


@pytest.mark.parametrize("size", [30, 300])
def test_many_coordinates_are_corrected_too(size, rng):
    """Above a hundred coordinates the model is minimised less exactly; the gap still falls."""
    X = rng.standard_normal((400, size))
    y = X @ rng.standard_normal(size) + rng.standard_normal(400)
    learner = ofw.OnlineFrankWolfe(
        RunningLeastSquares(size),
        L1Ball(0.7 * size),
        inner_steps="auto",
        corrective=ofw.NewtonSteps(size),
    )
    round_ = learner.observe(X, y)
    assert round_.n_steps <= 20
    assert learner.certificate() <= 0.01 * learner.objective.value()


def test_models_of_a_part_of_the_coordinates_are_feasible_and_reach_the_gap(rng, monkeypatch):
    monkeypatch.setattr("onlinefw.algorithms.newton_steps.LARGEST_MODEL", 7)
    X = rng.standard_normal((200, 40))
    y = X @ rng.standard_normal(40) + rng.standard_normal(200)
    for radius in (5.0, 25.0, 1000.0):
        objective = RunningLeastSquares(40)
        learner = ofw.OnlineFrankWolfe(
            objective, L1Ball(radius), LineSearch(), corrective=ofw.NewtonSteps(3)
        )
        learner.observe(X, y)
        value = objective.value()
        for _ in range(300):
            learner.refine()
            assert np.abs(learner.theta).sum() <= radius * (1 + 1e-12)
            assert objective.value() <= value * (1 + 1e-12)
            value = objective.value()
        assert np.count_nonzero(learner.theta) > 7
        assert learner.certificate() <= 0.01 * value


def test_newton_steps_survive_a_state(rng):
    X, y = problem("logistic", rng)
    learner = newton(LinearObjective(Logistic(), fit_intercept=True), 2.0)
    learner.observe(X[:70], y[:70])
    resumed = ofw.OnlineFrankWolfe.from_state(learner.state_dict())
    for k in range(70, 200, 30):
        one = learner.observe(X[k : k + 30], y[k : k + 30])
        other = resumed.observe(X[k : k + 30], y[k : k + 30])
        assert one == other
    np.testing.assert_array_equal(learner.theta, resumed.theta)


def test_correcting_now_is_one_newton_step(rng):
    X, y = problem("logistic", rng)
    one, other = (
        ofw.OnlineFrankWolfe(LinearObjective(Logistic()), L1Ball(2.0), corrective=ofw.NewtonSteps())
        for _ in range(2)
    )
    for learner in (one, other):
        learner.observe(X, y)
    one.correct()
    assert other.refine().kind == "corrective"
    np.testing.assert_array_equal(one.theta, other.theta)
    assert (one.t, one.n_steps, other.t, other.n_steps) == (1, 1, 2, 2)


@pytest.mark.parametrize("candidates", [0, -1, 2.5, "many"])
def test_impossible_numbers_of_candidates_are_refused(candidates):
    with pytest.raises(ValueError, match="candidates of NewtonSteps must be a whole number"):
        ofw.NewtonSteps(candidates)
