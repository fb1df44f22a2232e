"""Projected gradient learners and batch solvers."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import onlinefw as ofw
from onlinefw.baselines import (
    OnlineProjectedGradient,
    StochasticProjectedGradient,
    batch_away_frank_wolfe,
    batch_frank_wolfe,
)
from onlinefw.baselines.block_svd import block_svd
from onlinefw.losses import Logistic, Poisson, Sigmoid, Square
from onlinefw.objectives import (
    GradientOracle,
    LinearObjective,
    ObservedEntries,
    RunningLeastSquares,
)
from onlinefw.sets import Birkhoff, L1Ball, L2Ball, Polytope, Product, Simplex, TraceNormBall
from onlinefw.steps import Harmonic, LineSearch, ShortStep

from ..algorithms.test_online_fw import stream
from ..algorithms.test_state import assert_same_run


def test_online_projected_gradient_follows_the_aggregated_gradient(rng):
    learner = OnlineProjectedGradient(LinearObjective(Square()), L1Ball(1.0), step=0.2)
    theta, X_all, y_all = np.zeros(5), [], []
    for X, y in stream(rng, 30, (5,)):
        X_all.append(X)
        y_all.append(y)
        A, b = np.vstack(X_all), np.concatenate(y_all)
        gradient = A.T @ (A @ theta - b) / len(b)
        theta = L1Ball(1.0).project(theta - 0.2 * gradient)
        round_ = learner.observe(X, y)
        np.testing.assert_allclose(learner.theta, theta, atol=1e-12)
        assert round_.kind == "pg"
        assert round_.step_size == 0.2
        assert round_.gap >= 0


def test_stochastic_projected_gradient_follows_the_current_batch_only(rng):
    learner = StochasticProjectedGradient(
        RunningLeastSquares(5), L1Ball(1.0), step=lambda t: 0.3 / np.sqrt(t)
    )
    theta = np.zeros(5)
    for t, (X, y) in enumerate(stream(rng, 30, (5,)), start=1):
        gradient = X.T @ (X @ theta - y) / len(y)
        theta = L1Ball(1.0).project(theta - 0.3 / np.sqrt(t) * gradient)
        round_ = learner.observe(X, y)
        np.testing.assert_allclose(learner.theta, theta, atol=1e-12)
        assert np.isnan(round_.gap)
    assert learner.certificate() > 0  # on everything seen


def test_the_default_step_is_one_over_the_smoothness(rng):
    A = rng.standard_normal((20, 5))
    y = rng.standard_normal(20)
    L = np.linalg.norm(A, 2) ** 2 / 20
    for learner_class in (OnlineProjectedGradient, StochasticProjectedGradient):
        for make in (lambda: LinearObjective(Square()), lambda: RunningLeastSquares(5)):
            learner = learner_class(make(), L2Ball(1.0))
            for _ in range(3):
                assert learner.observe(A, y).step_size == pytest.approx(1 / L, rel=1e-5)


def test_projected_gradient_reaches_the_optimum_of_a_fixed_problem(rng):
    X, y = rng.standard_normal((40, 6)), rng.choice([-1.0, 1.0], 40)
    learner = OnlineProjectedGradient(LinearObjective(Logistic()), L1Ball(1.0), inner_steps=500)
    learner.observe(X, y)
    assert learner.certificate() < 1e-6


def test_projected_gradient_on_matrices(rng):
    target = rng.standard_normal((6, 4))
    objective = LinearObjective(Square(), shape=(6, 4))
    learner = OnlineProjectedGradient(objective, TraceNormBall(3.0), inner_steps=100)
    learner.observe(np.eye(24), target.ravel())
    np.testing.assert_allclose(learner.theta, TraceNormBall(3.0).project(target), atol=1e-8)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OnlineProjectedGradient(RunningLeastSquares(4), Birkhoff()), "projection"),
        (
            lambda: OnlineProjectedGradient(GradientOracle(lambda th, t: th, 3), L1Ball(1.0)),
            "smoothness of a GradientOracle",
        ),
        (
            lambda: StochasticProjectedGradient(GradientOracle(lambda th, t: th, 3), L1Ball(1.0)),
            "needs batches",
        ),
        (lambda: OnlineProjectedGradient(LinearObjective(Poisson()), L1Ball(1.0)), "not smooth"),
        (lambda: OnlineProjectedGradient(RunningLeastSquares(4), L1Ball(1.0), step=-1.0), "-1.0"),
        (lambda: OnlineProjectedGradient(RunningLeastSquares(4), L1Ball(1.0), step="a"), "'a'"),
        (lambda: OnlineProjectedGradient(RunningLeastSquares(4), L1Ball(1.0), step=np.inf), "inf"),
        (
            lambda: OnlineProjectedGradient(RunningLeastSquares(4), L1Ball(1.0), step=LineSearch()),
            "LineSearch",
        ),
        (
            lambda: OnlineProjectedGradient(
                RunningLeastSquares(4), Product([(Polytope(np.eye(2)), 2), (L1Ball(1.0), 2)])
            ),
            "needs a projection",
        ),
        (
            lambda: OnlineProjectedGradient(ObservedEntries((3, 4), Poisson()), TraceNormBall(1.0)),
            "not smooth",
        ),
        (
            lambda: StochasticProjectedGradient(ObservedEntries((3, 4)), TraceNormBall(1.0)),
            "sorts every batch.*OnlineProjectedGradient",
        ),
        (
            lambda: OnlineProjectedGradient(RunningLeastSquares(4), L1Ball(1.0), max_rank=2),
            r"L1Ball\(radius=1.0\) is not one",
        ),
        (
            lambda: OnlineProjectedGradient(
                LinearObjective(Square(), shape=(3, 4)), TraceNormBall(1.0), max_rank=2
            ),
            "ObservedEntries.*keeps a dense one",
        ),
        (
            lambda: OnlineProjectedGradient(
                ObservedEntries((3, 4)), TraceNormBall(1.0), max_rank=0
            ),
            "at least 1 or None, got 0",
        ),
        (
            lambda: OnlineProjectedGradient(
                ObservedEntries((3, 4)), TraceNormBall(1.0), max_rank=1.5
            ),
            "got 1.5",
        ),
        (
            lambda: OnlineProjectedGradient(
                GradientOracle(lambda th, t: th, (3, 3), low_rank=True),
                TraceNormBall(1.0),
                step=0.1,
            ),
            "low_rank=False",
        ),
    ],
)
def test_projected_gradient_refuses_what_it_cannot_use(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# Projected gradient on observed entries -----------------------------------------------------------


def rank_three(rng, rounds, size, shape):
    truth = rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1]))
    for _ in range(rounds):
        X = np.column_stack([rng.integers(side, size=size) for side in shape])
        yield X, truth[X[:, 0], X[:, 1]] + 0.3 * rng.standard_normal(size)


def dense_projected_gradient(batches, shape, radius, eta, rank=None):
    """O-PG for the square loss, in plain numpy; of each SVD the leading ``rank`` part."""
    theta, count, total, n = np.zeros(shape), np.zeros(shape), np.zeros(shape), 0
    for X, y in batches:
        np.add.at(count, (X[:, 0], X[:, 1]), 1.0)
        np.add.at(total, (X[:, 0], X[:, 1]), y)
        n += len(y)
        u, s, vt = np.linalg.svd(theta - eta(n) * (count * theta - total) / n, full_matrices=False)
        s = s[:rank]
        if s.sum() > radius:  # the threshold by bisection
            low, high = 0.0, s[0]
            for _ in range(200):
                middle = 0.5 * (low + high)
                is_low = np.maximum(s - middle, 0.0).sum() > radius
                low, high = (middle, high) if is_low else (low, middle)
            s = np.maximum(s - high, 0.0)
        theta = (u[:, : s.size] * s) @ vt[: s.size]
        yield theta


def eta_of(n):
    return n / 8.0


def entries_learner(shape, radius, batch_size, **kwargs):
    objective = ObservedEntries(shape, dtype=kwargs.pop("dtype", float))
    return OnlineProjectedGradient(
        objective, TraceNormBall(radius), step=lambda t: eta_of(t * batch_size), **kwargs
    )


@pytest.mark.parametrize(
    ("dtype", "rank", "tol"),
    [
        (np.float64, None, 1e-9),
        (np.float64, 12, 1e-7),  # all of them
        (np.float64, 100, 1e-7),
        (np.float64, 2, 1e-5),
        (np.float32, None, 1e-3),
        (np.float32, 12, 1e-3),
    ],
)
def test_projected_gradient_on_entries_is_the_plain_dense_one(dtype, rank, tol, rng):
    shape, radius = (12, 17), 25.0
    batches = list(rank_three(rng, 15, 80, shape))
    learner = entries_learner(shape, radius, 80, max_rank=rank, dtype=dtype)
    thetas = dense_projected_gradient(batches, shape, radius, eta_of, rank)
    for (X, y), theta in zip(batches, thetas, strict=True):
        round_ = learner.observe(X, y)
        np.testing.assert_allclose(learner.theta.dense(), theta, atol=tol * np.abs(theta).max())
        assert round_.kind == "pg"
        assert TraceNormBall(radius).contains(learner.theta, tol=1e-5)
    rows, cols = X[:5].T
    np.testing.assert_allclose(learner.theta.entries(rows, cols), theta[rows, cols], rtol=10 * tol)


def test_all_singular_values_by_blocks_are_those_of_the_full_step(rng):
    shape = (17, 12)
    full, blocks = (entries_learner(shape, 25.0, 80, max_rank=rank) for rank in (None, 12))
    for X, y in rank_three(rng, 30, 80, shape):
        full.observe(X, y)
        blocks.observe(X, y)
        np.testing.assert_allclose(blocks.theta.dense(), full.theta.dense(), atol=1e-7)


def test_a_rank_that_the_projection_does_not_reach_costs_no_accuracy(rng):
    shape, radius = (60, 70), 25.0  # few of its singular values survive the projection
    batches = list(rank_three(rng, 15, 3000, shape))
    learner = entries_learner(shape, radius, 3000, max_rank=20)
    thetas = dense_projected_gradient(batches, shape, radius, eta_of)
    for (X, y), theta in zip(batches, thetas, strict=True):
        learner.observe(X, y)
        assert np.linalg.matrix_rank(theta) < 20
        np.testing.assert_allclose(learner.theta.dense(), theta, atol=1e-5)


@pytest.mark.parametrize("max_rank", [None, 8])
def test_the_default_step_on_entries_comes_from_the_entry_seen_most_often(max_rank, rng):
    shape = (12, 17)
    batches = list(rank_three(rng, 10, 500, shape))
    objective = ObservedEntries(shape, dtype=float)
    learner = OnlineProjectedGradient(objective, TraceNormBall(25.0), max_rank=max_rank)
    counts = np.zeros(shape)
    for X, y in batches:
        step = learner.observe(X, y).step_size
        np.add.at(counts, (X[:, 0], X[:, 1]), 1.0)
        assert step <= counts.sum() / counts.max() <= 3.0 * step
    learner.inner_steps = 300
    learner.observe(*batches[0])
    assert learner.certificate() < 1e-3


@pytest.mark.parametrize("max_rank", [None, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cut", [0, 7])
def test_projected_gradient_on_entries_resumes_bit_for_bit(max_rank, dtype, cut, rng, tmp_path):
    assert_same_run(
        lambda: OnlineProjectedGradient(
            ObservedEntries((12, 17), dtype=dtype), TraceNormBall(9.0), max_rank=max_rank
        ),
        list(rank_three(rng, 20, 120, (12, 17))),
        cut,
        tmp_path,
    )


@pytest.mark.parametrize("shape", [(40, 300), (300, 40)])
def test_block_svd_finds_the_leading_triples(shape, rng):
    A = rng.standard_normal((shape[0], 6)) @ rng.standard_normal((6, shape[1]))
    A += 0.1 * rng.standard_normal(shape)
    s = np.linalg.svd(A, compute_uv=False)
    start = rng.standard_normal((shape[1], 8))
    u, found, v = block_svd(aslinearoperator(A), 6, start, lambda s: 0.0)
    np.testing.assert_allclose(found, s[:6], rtol=1e-9)
    np.testing.assert_allclose(A @ v, u * found, atol=1e-9 * s[0])
    np.testing.assert_allclose(A.T @ u, v * found, atol=1e-6 * s[0])
    np.testing.assert_allclose(u.T @ u, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(v.T @ v, np.eye(6), atol=1e-12)


def test_block_svd_of_nothing_and_of_less_than_was_asked_for(rng):
    start = rng.standard_normal((9, 5))
    assert not block_svd(aslinearoperator(np.zeros((7, 9))), 5, start, lambda s: 0.0)[1].any()
    A = np.outer(rng.standard_normal(7), rng.standard_normal(9))
    u, s, v = block_svd(aslinearoperator(A), 5, start, lambda s: 0.0)
    np.testing.assert_allclose((u * s) @ v.T, A, atol=1e-12)


# Batch solvers -----------------------------------------------------------------------------------


def observed(loss, X, y, **kwargs):
    objective = LinearObjective(loss, **kwargs)
    objective.observe(X, y)
    return objective


@pytest.mark.parametrize("solver", [batch_frank_wolfe, batch_away_frank_wolfe])
@pytest.mark.parametrize("loss", [Square(), Logistic()], ids=str)
@pytest.mark.parametrize("step", [LineSearch(), ShortStep(5.0), Harmonic(2)], ids=str)
def test_batch_solvers_reach_the_optimum_that_cvxpy_finds(solver, loss, step, rng):
    X, y = rng.standard_normal((60, 8)), rng.choice([-1.0, 1.0], 60)
    theta = cp.Variable(8)
    terms = (
        cp.logistic(cp.multiply(-y, X @ theta))
        if loss == Logistic()
        else cp.square(X @ theta - y) / 2
    )
    problem = cp.Problem(cp.Minimize(cp.sum(terms) / 60), [cp.norm1(theta) <= 1.0])
    problem.solve(solver=cp.CLARABEL)
    result = solver(observed(loss, X, y), L1Ball(1.0), step=step, max_iter=3000, tol=1e-4)
    assert result.objective - problem.value <= result.gap + 1e-7
    assert result.success == (result.gap <= 1e-4)
    assert result.objective == pytest.approx(problem.value, abs=2e-3)
    assert L1Ball(1.0).contains(result.theta)
    if step == LineSearch():
        assert result.success
        assert np.all(np.diff(result.history["objective"]) <= 1e-12)


def test_away_steps_converge_linearly_and_leave_only_the_support(rng):
    X = rng.standard_normal((100, 20))
    truth = np.zeros(20)
    truth[[2, 5]] = 2.0, -3.0
    result = batch_away_frank_wolfe(
        observed(Square(), X, X @ truth), L1Ball(2.0), max_iter=500, tol=1e-12
    )
    assert result.success
    assert result.nit < 200
    assert set(np.flatnonzero(result.theta)) <= {2, 5}
    assert len(result.active_set) <= 2
    np.testing.assert_allclose(result.active_set.combination((20,)), result.theta, atol=1e-12)


def test_a_result_has_what_scipy_users_expect(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    result = batch_frank_wolfe(observed(Square(), X, y), L1Ball(0.5), max_iter=7, tol=0.0)
    assert not result.success
    assert "max_iter=7" in result.message
    assert result.nit == 7
    assert len(result.history["objective"]) == len(result.history["gap"]) == 8
    assert len(result.history["step_size"]) == 7
    assert result.gap == result.history["gap"][-1]
    value = np.mean((X @ result.theta - y) ** 2) / 2
    assert result.objective == pytest.approx(value)


def test_the_callback_sees_every_step_and_can_stop(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    seen = []

    def callback(intermediate):
        seen.append(intermediate.nit)
        if len(seen) == 5:
            raise StopIteration

    result = batch_frank_wolfe(observed(Square(), X, y), L1Ball(0.5), tol=0.0, callback=callback)
    assert seen == [1, 2, 3, 4, 5]
    assert "callback" in result.message
    assert result.nit == 5


@pytest.mark.parametrize("solver", [batch_frank_wolfe, batch_away_frank_wolfe])
def test_every_result_speaks_of_its_own_theta(solver, rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    results = []

    def callback(intermediate):
        results.append(intermediate)
        if len(results) == 6:
            raise StopIteration

    results.append(solver(observed(Square(), X, y), L1Ball(0.5), tol=0.0, callback=callback))
    for result in results:
        residual = X @ result.theta - y
        gradient = X.T @ residual / 30
        assert result.objective == pytest.approx(np.mean(residual**2) / 2)
        assert result.gap == pytest.approx(gradient @ result.theta + 0.5 * np.abs(gradient).max())
        if solver is batch_away_frank_wolfe:
            combined = result.active_set.combination((4,))
            np.testing.assert_allclose(combined, result.theta, atol=1e-12)


def test_a_steep_loss_is_approached_from_zero(rng):
    """A full first step to a vertex of a large ball would overflow exp(z)."""
    X, y = rng.standard_normal((50, 3)), rng.poisson(2.0, 50)
    result = batch_frank_wolfe(observed(Poisson(), X, y), L1Ball(1000.0), max_iter=50)
    assert np.isfinite(result.objective)
    assert np.all(np.diff(result.history["objective"]) <= 1e-9)


def test_the_largest_smoothness_seen_is_kept(rng):
    learner = StochasticProjectedGradient(RunningLeastSquares(3), L1Ball(1.0))
    X = rng.standard_normal((10, 3))
    first = learner.observe(10 * X, np.ones(10)).step_size
    assert learner.observe(X, np.ones(10)).step_size == first  # not a longer one
    assert learner.observe(X, np.ones(10)).step_size == first


def test_an_oracle_may_answer_with_lists_and_sparse_matrices():
    target = np.array([[0.5, 0.2], [0.3, 0.1]])
    for kind in (np.asarray, sp.csr_array, np.ndarray.tolist):
        objective = GradientOracle(lambda theta, t, kind=kind: kind(theta - target), (2, 2))
        result = batch_frank_wolfe(objective, L1Ball(2.0), max_iter=300)
        np.testing.assert_allclose(result.theta, target, atol=0.02)
        oracle = GradientOracle(lambda theta, t, kind=kind: kind(theta - target), (2, 2))
        learner = OnlineProjectedGradient(oracle, L1Ball(2.0), step=1.0)
        learner.observe()
        np.testing.assert_allclose(learner.theta, target)


def test_one_objective_serves_several_batch_solvers_one_after_the_other(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    objective = observed(Square(), X, y)
    first = batch_frank_wolfe(objective, L1Ball(0.5), tol=1e-8, max_iter=5000)
    second = batch_away_frank_wolfe(objective, L1Ball(0.5), tol=1e-8)
    np.testing.assert_allclose(first.theta, second.theta, atol=1e-3)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(0.5))
    np.testing.assert_array_equal(learner.theta, np.zeros(4))
    with pytest.raises(ValueError, match="already belongs to a learner"):
        batch_frank_wolfe(objective, L1Ball(0.5))


def test_nonconvex_objectives_never_go_up(rng):
    X, y = rng.standard_normal((80, 6)), rng.choice([-1.0, 1.0], 80)
    result = batch_frank_wolfe(observed(Sigmoid(), X, y), L1Ball(2.0), max_iter=200)
    assert np.all(np.diff(result.history["objective"]) <= 1e-12)


def test_an_oracle_is_searched_with_its_gradient_or_its_value():
    target = np.array([0.5, 0.2, 0.3])
    for value in (None, lambda theta: 0.5 * float(np.sum((theta - target) ** 2))):
        objective = GradientOracle(lambda theta, t: theta - target, 3, value=value)
        result = batch_away_frank_wolfe(objective, Simplex(), tol=1e-10)
        assert result.success
        np.testing.assert_allclose(result.theta, target, atol=1e-5)


def test_matrices_and_rank_one_atoms(rng):
    target = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5))
    objective = observed(Square(), np.eye(30), target.ravel(), shape=(6, 5))
    radius = 0.5 * np.linalg.norm(target, "nuc")
    result = batch_frank_wolfe(objective, TraceNormBall(radius), max_iter=3000, tol=1e-5)
    expected = TraceNormBall(radius).project(target)
    np.testing.assert_allclose(result.theta, expected, atol=0.05)


def test_batch_solvers_refuse_what_does_not_fit(rng):
    empty = LinearObjective(Square(), n_features=3)
    with pytest.raises(ValueError, match="nothing has been observed yet"):
        batch_frank_wolfe(empty, L1Ball(1.0))
    full = observed(Square(), np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match="needs a polytope"):
        batch_away_frank_wolfe(full, L2Ball(1.0))
    with pytest.raises(ValueError, match="set of matrices"):
        batch_frank_wolfe(full, TraceNormBall(1.0))
    with pytest.raises(ValueError, match="LineSearch"):
        batch_frank_wolfe(full, L1Ball(1.0), step=0.5)
    batch_frank_wolfe(full, L1Ball(1.0))  # none of the refusals has claimed it


def test_a_line_search_is_exact_for_a_quadratic_loss_of_the_users_own(rng):
    class Steep(Square):
        def value(self, z, y):
            return 2.0 * (z - y) ** 2

        def derivative(self, z, y):
            return 4.0 * (z - y)

        def second_derivative(self, z, y):
            return np.full_like(z, 4.0)

    X, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    results = []
    for loss in (Square(), Steep()):
        objective = LinearObjective(loss, n_features=4)
        objective.observe(X, y)
        results.append(batch_frank_wolfe(objective, L1Ball(0.5), max_iter=5, tol=0.0).theta)
    np.testing.assert_allclose(results[0], results[1], atol=1e-12)
