"""Active ALT: the penalised and the constrained problem, against an exact solver."""

import cvxpy as cp
import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.baselines import active_alt, batch_frank_wolfe
from onlinefw.iterates import LowRank
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import LinearObjective, ObservedEntries
from onlinefw.sets import L1Ball, TraceNormBall
from onlinefw.steps import Harmonic

SHAPE = (12, 9)


def data(seed, n=150, weighted=True):
    """Entries of a noisy rank-3 matrix; many are observed twice or more, with other noise."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((SHAPE[0], 3)) @ rng.standard_normal((3, SHAPE[1]))
    X = np.column_stack((rng.integers(0, SHAPE[0], n), rng.integers(0, SHAPE[1], n)))
    y = matrix[X[:, 0], X[:, 1]] + 0.3 * rng.standard_normal(n)
    return X, y, rng.random(n) + 0.2 if weighted else np.ones(n)


def observed(X, y, w, dtype=float):
    objective = ObservedEntries(SHAPE, dtype=dtype)
    for part in np.array_split(np.arange(y.size), 3):
        objective.observe(X[part], y[part], w[part])
    return objective


def mean_loss(theta, X, y, w):
    return float(w @ (theta[X[:, 0], X[:, 1]] - y) ** 2 / 2 / w.sum())


def exact(X, y, w, *, penalty=None, radius=None):
    """The least value by cvxpy, in units of the mean loss."""
    theta = cp.Variable(SHAPE)
    rows, cols = sorted({(i, j) for i, j in X.tolist()}), X.tolist()
    picked = {ij: theta[ij] for ij in rows}
    z = cp.hstack([picked[tuple(ij)] for ij in cols])
    loss = cp.sum(cp.multiply(w, cp.square(z - y))) / 2
    norm = cp.normNuc(theta)
    if radius is not None:
        problem = cp.Problem(cp.Minimize(loss), [norm <= radius])
    else:
        problem = cp.Problem(cp.Minimize(loss + penalty * norm))
    problem.solve(solver=cp.CLARABEL)
    return problem.value / w.sum()


@pytest.mark.parametrize("penalty", [0.3, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_penalised_optimum_is_the_one_that_cvxpy_finds(penalty, weighted):
    X, y, w = data(0, weighted=weighted)
    result = active_alt(observed(X, y, w), penalty=penalty, tol=1e-7)
    theta = result.theta.dense()
    value = mean_loss(theta, X, y, w) + penalty * np.linalg.norm(theta, "nuc") / w.sum()
    assert result.success
    assert result.penalty == penalty
    assert result.objective == pytest.approx(mean_loss(theta, X, y, w))
    assert -1e-8 <= value - exact(X, y, w, penalty=penalty) <= result.gap + 1e-8


@pytest.mark.parametrize("radius", [0.5, 5.0, 20.0])
@pytest.mark.parametrize("seed", [0, 2])
def test_the_constrained_optimum_is_the_one_that_cvxpy_finds(radius, seed):
    X, y, w = data(seed)
    result = active_alt(observed(X, y, w), TraceNormBall(radius), tol=1e-6)
    theta = result.theta.dense()
    assert result.success
    assert TraceNormBall(radius).contains(theta)
    assert result.objective == pytest.approx(mean_loss(theta, X, y, w))
    assert -1e-7 <= result.objective - exact(X, y, w, radius=radius) <= result.gap + 1e-7


def test_a_ball_larger_than_any_need_is_not_filled():
    X, y, w = data(1)
    result = active_alt(observed(X, y, w), TraceNormBall(1000.0), tol=1e-6)
    assert result.success
    assert np.linalg.norm(result.theta.dense(), "nuc") < 100.0
    assert result.objective <= exact(X, y, w, radius=1000.0) + 1e-6


def test_the_two_problems_meet():
    """The penalty that a radius asks for has the solution with that trace norm."""
    X, y, w = data(3)
    objective = observed(X, y, w)
    penalised = active_alt(objective, penalty=1.0, tol=1e-9, max_iter=1000)
    radius = float(penalised.history["trace_norm"][-1])
    constrained = active_alt(objective, TraceNormBall(radius), tol=1e-9, max_iter=1000)
    assert constrained.penalty == pytest.approx(1.0, rel=1e-2)
    np.testing.assert_allclose(constrained.theta.dense(), penalised.theta.dense(), atol=1e-3)


def test_the_gap_is_the_frank_wolfe_gap_of_the_theta_returned():
    X, y, w = data(4)
    result = active_alt(observed(X, y, w), TraceNormBall(8.0), tol=0.0, max_iter=4)
    theta, gradient = result.theta.dense(), np.zeros(SHAPE)
    np.add.at(gradient, (X[:, 0], X[:, 1]), w * (theta[X[:, 0], X[:, 1]] - y) / w.sum())
    gap = np.sum(gradient * theta) + 8.0 * np.linalg.norm(gradient, 2)
    assert result.gap == pytest.approx(gap, rel=1e-6)


def test_a_penalty_above_every_singular_value_gives_zero():
    X, y, w = data(0)
    result = active_alt(observed(X, y, w), penalty=1e6)
    assert result.success
    assert result.gap == pytest.approx(0.0, abs=1e-12)
    assert result.theta.n_atoms == 0
    assert not result.theta.dense().any()


@pytest.mark.parametrize("target", [{"penalty": 1.0}, {"constraint": TraceNormBall(1.0)}], ids=str)
def test_nothing_but_zeros_is_solved_by_zero(target):
    X, y, w = data(0)
    result = active_alt(observed(X, 0 * y, w), **target)
    assert result.success
    assert result.objective == result.gap == 0.0


def test_entries_of_no_weight_do_not_count():
    X, y, w = data(5)
    extra = np.array([[0, 0], [3, 4]])
    objective = observed(X, y, w)
    objective.observe(np.vstack((extra, X[:1])), [50.0, -50.0, y[0]], [0.0, 0.0, 1e-12])
    result = active_alt(objective, penalty=1.0, tol=1e-8)
    expected = active_alt(observed(X, y, w), penalty=1.0, tol=1e-8)
    np.testing.assert_allclose(result.theta.dense(), expected.theta.dense(), atol=1e-3)


@pytest.mark.parametrize(
    "target", [{"penalty": 3.0}, {"constraint": TraceNormBall(300.0)}], ids=str
)
def test_few_columns_solve_a_larger_matrix_and_a_full_svd_confirms_the_gap(target, rng):
    matrix = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 150))
    seen = rng.random(matrix.shape) < 0.3
    noisy = matrix + 0.1 * rng.standard_normal(matrix.shape)
    objective = ObservedEntries(matrix.shape)
    objective.observe(np.argwhere(seen), noisy[seen])
    result = active_alt(objective, extra=10, **target)
    theta = result.theta.dense()
    slopes = np.where(seen, noisy - theta, 0.0)
    sigma, norm = np.linalg.norm(slopes, 2), np.linalg.norm(theta, "nuc")
    # the solution for the penalty sigma, and for the radius norm, has <slopes, theta> = sigma norm
    assert result.success
    assert (sigma * norm - np.sum(slopes * theta)) / seen.sum() <= 2e-4
    assert sigma == pytest.approx(result.penalty, rel=1e-3)
    assert result.history["rank"][-1] == np.linalg.matrix_rank(theta) < 20


def test_the_objective_is_only_read_even_while_a_learner_has_it():
    X, y, w = data(6)
    objective = observed(X, y, w)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(8.0))
    learner.observe(X, y)
    before, certificate = learner.theta.dense(), learner.certificate()
    best = active_alt(objective, TraceNormBall(8.0), tol=1e-6)
    np.testing.assert_array_equal(learner.theta.dense(), before)
    distance = objective.value() - best.objective
    assert -1e-6 <= distance <= certificate + 1e-6


def test_single_precision_data_are_as_good_as_their_values():
    X, y, w = data(7)
    single = active_alt(observed(X, y, w, np.float32), penalty=1.0)
    double = active_alt(observed(X, y, w), penalty=1.0)
    assert single.success
    np.testing.assert_allclose(single.theta.dense(), double.theta.dense(), atol=1e-3)


def test_it_ends_where_batch_frank_wolfe_is_going():
    X, y, w = data(8)
    objective = observed(X, y, w)
    best = active_alt(objective, TraceNormBall(6.0), tol=1e-6)
    slow = batch_frank_wolfe(objective, TraceNormBall(6.0), step=Harmonic(2), max_iter=500)
    assert best.objective <= slow.objective + 1e-6
    assert slow.objective == pytest.approx(best.objective, abs=0.02)


def test_a_result_has_what_scipy_users_expect():
    X, y, w = data(0)
    result = active_alt(observed(X, y, w), penalty=0.3, max_iter=3, tol=0.0)
    assert isinstance(result.theta, LowRank)
    assert not result.success
    assert "max_iter=3" in result.message
    assert result.nit == 3
    assert all(len(values) == 4 for values in result.history.values())
    assert result.gap == result.history["gap"][-1]
    penalised = result.history["objective"] + 0.3 * result.history["trace_norm"] / w.sum()
    assert np.all(np.diff(penalised) <= 1e-12)


def test_the_callback_sees_every_iteration_and_can_stop():
    X, y, w = data(0)
    seen = []

    def callback(intermediate):
        seen.append((intermediate.nit, intermediate.objective))
        if len(seen) == 3:
            raise StopIteration

    result = active_alt(observed(X, y, w), penalty=0.3, tol=0.0, callback=callback)
    assert [nit for nit, _ in seen] == [1, 2, 3]
    assert "callback" in result.message
    assert (result.nit, result.objective) == seen[-1]


def test_the_same_random_state_gives_the_same_theta():
    X, y, w = data(9)
    first, second = (active_alt(observed(X, y, w), penalty=0.5, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.theta.dense(), second.theta.dense())


def refused(objective=None, constraint=None, **kwargs):
    return active_alt(observed(*data(0)) if objective is None else objective, constraint, **kwargs)


def logistic():
    objective = ObservedEntries(SHAPE, Logistic())
    objective.observe([[0, 0]], [1.0])
    return objective


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: refused(logistic(), penalty=1.0), "Logistic.*batch_frank_wolfe"),
        (lambda: refused(LinearObjective(Square()), penalty=1.0), "ObservedEntries"),
        (lambda: refused(ObservedEntries(SHAPE), penalty=1.0), "nothing has been observed"),
        (lambda: refused(constraint=L1Ball(1.0)), "TraceNormBall"),
        (lambda: refused(), "either a constraint"),
        (lambda: refused(constraint=TraceNormBall(1.0), penalty=1.0), "either a constraint"),
        (lambda: refused(penalty=0.0), "positive, finite penalty, got 0.0"),
        (lambda: refused(penalty=np.nan), "nan"),
        (lambda: refused(penalty=1.0, max_iter=0), "max_iter"),
        (lambda: refused(penalty=1.0, sweeps=0), "sweeps"),
        (lambda: refused(penalty=1.0, extra=0), "extra column"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_factors_become_an_iterate_that_can_go_on(rng):
    left, weights, right = rng.standard_normal((6, 7)), rng.random(7), rng.standard_normal((5, 7))
    theta = LowRank.from_factors(left, weights, right, max_atoms=3)
    expected = (left * weights) @ right.T
    np.testing.assert_allclose(theta.dense(), expected)
    left[:] = 0.0  # it has its own copies
    atom = ofw.atoms.RankOne(np.eye(6)[0], 2.0, np.eye(5)[1])
    theta.move(atom, 0.25)
    np.testing.assert_allclose(theta.dense(), 0.75 * expected + 0.25 * atom.dense(), atol=1e-12)
    with pytest.raises(ValueError, match="factors"):
        LowRank.from_factors(left, weights[:3], right)
