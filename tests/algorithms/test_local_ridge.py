"""Local corrections: the row and the column of every observation are solved exactly."""

import pickle
from dataclasses import replace
from math import ceil, sqrt

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import onlinefw as ofw
from onlinefw import losses
from onlinefw.algorithms import local_ridge
from onlinefw.algorithms.local_ridge import BIAS_RIDGE
from onlinefw.kernels import local_ridge as kernels
from onlinefw.kernels.local_events import MOST_TURNS, turns_between
from onlinefw.kernels.local_models import ridge_unit, start_factors
from onlinefw.losses import Logistic
from onlinefw.objectives import ObservedEntries, RunningBiases
from onlinefw.past.host.growing_rank import with_rank
from onlinefw.sets import L1Ball, TraceNormBall

SHAPE = 12, 9


class Own(Logistic):
    """A loss of the user's own, which no compiled loop knows."""


def events(n, seed=0, shape=SHAPE, repeats=True):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    X = np.column_stack([rng.integers(0, m, n) for m in shape])
    return X, 3.0 + truth[X[:, 0], X[:, 1]] + 0.3 * rng.standard_normal(n)


def learner(ridge=(2.0, 0.1), *, radius=1e100, rank=3, dtype=float, growing=True, **more):
    objective = ObservedEntries((1, 1) if growing else SHAPE, dtype=dtype, growing=growing)
    corrective = ofw.LocalRidge(rank, ridge, **more)
    return ofw.OnlineFrankWolfe(objective, TraceNormBall(radius), corrective=corrective)


class Plain:
    """The same, written with dense matrices and numpy's solver."""

    def __init__(self, ridges, rank=3, biased=True):
        self.ridges, self.rank, self.biased, self.seen = ridges, rank, biased, []
        start = np.zeros((SHAPE[1], len(ridges) * 8))
        start_factors(start, len(ridges), 0, rank, np.arange(SHAPE[1]))
        self.v = [start[:, 8 * m : 8 * m + rank].copy() for m in range(len(ridges))]
        self.u = [np.zeros((SHAPE[0], rank)) for _ in ridges]
        self.row, self.column = ([np.zeros(n) for _ in ridges] for n in SHAPE)
        self.memories = np.zeros(SHAPE[0]), np.zeros(SHAPE[1])
        n = len(ridges)
        self.weights = np.append(np.full(n, 1.0 / n), [0.0, 0.0])
        self.spread = np.diag([0.01 * (n > 1)] * n + [0.02] * 2)
        self.turn = [-1, -1]

    def moments(self):
        values = np.array([[y, w] for _, _, y, w in self.seen]).reshape(-1, 2)
        mean = np.average(values[:, 0], weights=values[:, 1])
        sigma = sqrt(np.average((values[:, 0] - mean) ** 2, weights=values[:, 1]))
        return mean if self.biased else 0.0, sigma or 1.0

    def theta(self):
        pairs = zip(self.weights, self.u, self.v, strict=False)
        return self.moments()[1] * sum(w * u @ v.T for w, u, v in pairs)

    def learn(self, i, j, y, w):
        predicted = self.meet(i, j, y) if self.seen else 0.0
        self.seen.append((i, j, y, w))
        for m in range(len(self.ridges)):
            self.solve_row(m, i)
            self.solve_column(m, j)
        if len(self.seen) % 8 == 0:
            self.go_round()
        return predicted

    def go_round(self):
        """Every eighth event solves some more rows and columns, in turns."""
        for side, solve in enumerate((self.solve_row, self.solve_column)):
            n = 1 + max(one[side] for one in self.seen)
            for _ in range(min(max(ceil(16 * n / len(self.seen)), 1), 16)):
                self.turn[side] = (self.turn[side] + 1) % n
                if any(one[side] == self.turn[side] for one in self.seen):
                    for m in range(len(self.ridges)):
                        solve(m, self.turn[side])

    def meet(self, i, j, y):
        mean, sigma = self.moments()
        known = any(one[0] == i for one in self.seen)
        x = []
        for u, v, row, column in zip(self.u, self.v, self.row, self.column, strict=True):
            offset = (row[i] - mean if known else 0.0) + column[j]
            product = u[i] @ v[j] if any(one[1] == j for one in self.seen) else 0.0
            x.append(offset / sigma + product)
        alone = (y - mean) / sigma - self.weights[:-2] @ x
        x = np.array([*x, self.memories[0][i] / sigma, self.memories[1][j] / sigma])
        predicted = mean + sigma * (self.weights @ x)
        gain = self.spread @ x / (1.0 + x @ self.spread @ x)
        self.weights = self.weights + gain * ((y - predicted) / sigma)
        self.spread = self.spread - np.outer(gain, x @ self.spread)
        for memory, k in zip(self.memories, (i, j), strict=True):
            memory[k] += 0.15 * (sigma * alone - memory[k])
        values = [one[2] for one in self.seen]
        return min(max(predicted, min(values)), max(values))

    def solve_row(self, m, i):
        mean, sigma = self.moments()
        mine = [(j, y, w) for k, j, y, w in self.seen if k == i]
        targets = [(y - mean - self.column[m][j]) / sigma for j, y, _ in mine]
        features = [self.v[m][j] for j, _, _ in mine]
        self.u[m][i], b = self.regression(m, features, targets, [w for *_, w in mine])
        self.row[m][i] = mean + sigma * b

    def solve_column(self, m, j):
        _, sigma = self.moments()
        mine = [(i, y, w) for i, k, y, w in self.seen if k == j]
        targets = [(y - self.row[m][i]) / sigma for i, y, _ in mine]
        features = [self.u[m][i] for i, _, _ in mine]
        self.v[m][j], b = self.regression(m, features, targets, [w for *_, w in mine])
        self.column[m][j] = sigma * b

    def regression(self, m, features, targets, weights):
        a, b = self.ridges[m]
        X = np.column_stack((np.array(features), np.ones(len(targets))))
        w = np.array(weights)
        penalty = np.append(np.full(self.rank, a + b * w.sum()), BIAS_RIDGE)
        if not self.biased:
            X, penalty = X[:, :-1], penalty[:-1]
        found = np.linalg.solve((X * w[:, None]).T @ X + np.diag(penalty), X.T @ (w * targets))
        return (found[:-1], found[-1]) if self.biased else (found, 0.0)


ONE = ((2.0, 0.1),)


@pytest.mark.parametrize(
    ("ridges", "biased", "weighted"),
    [
        (ONE, True, False),
        (ONE, False, True),
        (local_ridge.RIDGES, True, True),
        (local_ridge.RIDGES, False, False),
    ],
)
def test_it_does_what_a_dense_computation_does(ridges, biased, weighted):
    X, y = events(150)
    w = np.random.default_rng(5).uniform(0.5, 2.0, 150) if weighted else np.ones(150)
    plain = Plain(ridges, biased=biased)
    expected = [plain.learn(i, j, *rest) for (i, j), *rest in zip(X, y, w, strict=True)]
    ridge = "auto" if len(ridges) > 1 else ridges[0]
    fast = learner(ridge, growing=False, biases=biased)
    np.testing.assert_allclose(fast.learn(X, y, w if weighted else None), expected, atol=1e-9)
    np.testing.assert_allclose(fast.theta.dense(), plain.theta(), atol=1e-9)
    of_rows, of_columns = fast.corrective.models.memories()
    z = fast.objective.predict(X[:, 0], X[:, 1]) + of_rows[X[:, 0]] + of_columns[X[:, 1]]
    found = fast.corrective.predict(X[:, 0], X[:, 1])
    np.testing.assert_allclose(found, z, atol=1e-9)


def test_a_batch_solves_every_row_and_column_once():
    X, y = events(80)
    plain = Plain(ONE)
    plain.seen = [(i, j, value, 1.0) for (i, j), value in zip(X, y, strict=True)]
    for i in np.unique(X[:, 0]):
        plain.solve_row(0, i)
    for j in np.unique(X[:, 1]):
        plain.solve_column(0, j)
    fast = learner(growing=False)
    round_ = fast.observe(X, y)
    assert (round_.kind, round_.t, np.isnan(round_.gap)) == ("hold", 1, True)
    np.testing.assert_allclose(fast.theta.dense(), plain.theta(), atol=1e-9)


def test_all_of_a_new_row_in_a_batch_are_predicted_alike():
    """Until the row is solved, nothing is known of it but the mean and the columns."""
    X, y = events(80)
    one = learner(growing=True, clip=False)
    one.observe(X, y)
    models, new = one.corrective.models, np.full(3, SHAPE[0])
    one.objective.grow(SHAPE[0] + 1, SHAPE[1]), models.grow(SHAPE[0] + 1, SHAPE[1])
    found = models.learn(new, np.full(3, 4), np.full(3, models.mean), solving=False)
    np.testing.assert_allclose(found, found[0], atol=0.5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 20.0), st.floats(0.0, 0.5), st.integers(1, 9))
def test_no_solution_raises_the_penalised_squares(seed, a, b, rank):
    """J, with the biases' own penalty, is a parabola in a row's part, and its minimum is taken."""
    X, y = events(60, seed)
    fast = learner((a, b), rank=rank, growing=False)
    fast.learn(X, y)
    models = fast.corrective.models
    rows, columns = (np.bincount(X[:, k], minlength=SHAPE[k]) for k in (0, 1))

    def J():
        u, _, v = models.factors()
        sides = zip(models.offsets(), SHAPE, strict=True)
        (row, column), sigma = [side.all(n, float) for side, n in sides], models.sigma
        u, v = u[:, :rank], v[:, :rank]
        z = row[X[:, 0]] + column[X[:, 1]] + sigma * np.einsum("ik,ik->i", u[X[:, 0]], v[X[:, 1]])
        seen = rows > 0
        biases = ((row[seen] - models.mean) ** 2).sum() + (column**2).sum()
        penalties = (a + b * rows) @ (u**2).sum(1) + (a + b * columns) @ (v**2).sum(1)
        return ((y - z) ** 2).sum() + sigma**2 * penalties + BIAS_RIDGE * biases

    before = J()
    for i in range(SHAPE[0]):
        models.solve(np.array([i]), np.empty(0, int))
        after = J()
        assert after <= before * (1.0 + 1e-12)
        before = after
    for j in range(SHAPE[1]):
        models.solve(np.empty(0, int), np.array([j]))
        after = J()
        assert after <= before * (1.0 + 1e-12)
        before = after


LOSSES = {
    "logistic": (Logistic(), lambda z: np.where(z > 3.0, 1.0, -1.0)),
    "bernoulli": (losses.Bernoulli(), lambda z: (z > 3.0).astype(float)),
    "poisson": (losses.Poisson(), lambda z: np.maximum(0.0, np.round(z))),
    "exponential": (losses.Exponential(), lambda z: np.abs(z) + 0.1),
    "sigmoid": (losses.Sigmoid(3.0), lambda z: np.where(z > 3.0, 1.0, -1.0)),
    "correntropy": (losses.Correntropy(2.0), lambda z: z),
}


def learned(loss, to_values, seed=0, n=80, rank=2, weights=None):
    X, z = events(n, seed)
    y = to_values(z)
    objective = ObservedEntries(SHAPE, loss, dtype=float)
    corrective = ofw.LocalRidge(rank, (0.5, 0.1))
    one = ofw.OnlineFrankWolfe(objective, TraceNormBall(1e100), corrective=corrective)
    one.learn(X, y, weights)
    return one, X, y


def row_problem(one, X, y, i, w):
    """Return the regression of a row as a function of its factors and bias, and these."""
    models, rank = one.corrective.models, one.corrective.rank
    mine, loss = X[:, 0] == i, one.objective.loss
    _, _, v = models.factors()
    features = np.column_stack((v[X[mine, 1], :rank], np.ones(mine.sum())))
    column = models.offsets()[1].all(SHAPE[1], float)[X[mine, 1]]
    worth = ridge_unit(models.models.loss, models.mean, models.moments)
    n = w[mine].sum()
    penalty = worth * np.append(np.full(rank, 0.5 + 0.1 * n), BIAS_RIDGE)

    def J(x):
        z = models.mean + column + models.sigma * (features @ x)
        return w[mine] @ loss.value(z, y[mine]) + 0.5 * penalty @ x**2

    def found():
        u, offset = models.factors()[0][i, :rank], models.offsets()[0].all(SHAPE[0], float)[i]
        return np.append(u, (offset - models.mean) / models.sigma)

    return J, found


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), weighted=st.booleans())
def test_no_solution_raises_losses_and_penalties(name, seed, weighted):
    w = np.random.default_rng(seed).uniform(0.5, 2.0, 80) if weighted else np.ones(80)
    one, X, y = learned(*LOSSES[name], seed, weights=w if weighted else None)
    for i in np.unique(X[:, 0]):
        J, found = row_problem(one, X, y, i, w)
        before = J(found())
        one.corrective.models.solve(np.array([i]), np.empty(0, int))
        assert J(found()) <= before + 1e-9 * abs(before)


@pytest.mark.parametrize("name", ["logistic", "bernoulli", "poisson", "exponential"])
def test_a_row_solved_again_and_again_is_at_the_minimum(name):
    one, X, y = learned(*LOSSES[name])
    w = np.ones(80)
    for i in range(3):
        J, found = row_problem(one, X, y, i, w)
        for _ in range(10):
            one.corrective.models.solve(np.array([i]), np.empty(0, int))
        best = minimize(J, np.zeros(3), tol=1e-12, method="BFGS")
        np.testing.assert_allclose(J(found()), best.fun, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_other_losses_are_learned_in_pieces_and_after_a_break(name):
    loss, to_values = LOSSES[name]
    one, _, y = learned(loss, to_values)
    two = ofw.OnlineFrankWolfe.from_state(one.state_dict())
    more, z = events(60, 7)
    found = np.concatenate(
        [two.learn(more[:20], to_values(z[:20])), two.learn(more[20:], to_values(z[20:]))]
    )
    np.testing.assert_array_equal(found, one.learn(more, to_values(z)))
    assert one.objective.value() < loss.value(np.zeros(80), y).mean() or name == "poisson"


def test_learning_in_pieces_is_learning_at_once():
    X, y = events(200)
    whole = learner("auto")
    expected = whole.learn(X, y)
    pieces = learner("auto")
    parts = np.split(np.arange(200), [1, 2, 39, 41, 120])
    found = np.concatenate([pieces.learn(X[part], y[part]) for part in parts])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(pieces.theta.dense(), whole.theta.dense())


@pytest.mark.parametrize("size", [1, 50])
def test_all_rows_are_solved_again_while_the_data_double(size):
    """Also where there are few observations a row, and the second half has other rows."""
    X, y = events(800, shape=(200, 20))
    X[400:, 0] += 200
    one = learner()
    one.learn(X[:400], y[:400])
    seen = np.unique(X[:400, 0])
    before = one.corrective.models.models.rows.factors[seen]
    for k in range(400, 800, size):
        one.observe(X[k : k + size], y[k : k + size])
    after = one.corrective.models.models.rows.factors[seen]
    assert (before != after).any(axis=1).all()


def test_turns_are_bounded_and_come_to_all_while_events_double():
    assert turns_between(0, 8, 10**9) == MOST_TURNS  # few events, and one far row
    for n in (8, 100, 5000):
        for last in (0, n // 50, n // 2, n - 1):
            assert turns_between(n, 2 * n, last) > last
            assert turns_between(n, 2 * n, last) <= max(n // 8 + 1, 4 * (last + 1))


LONG = (2, 9)  # rows of a thousand entries and more have running sums


def test_a_long_row_is_solved_from_running_sums_that_are_made_anew_in_pieces():
    X, y = events(4000, shape=LONG)
    one = learner()
    one.learn(X, y)
    models, rows = one.corrective.models, np.array([0, 1])

    def solved(**how):
        models.solve(rows, np.empty(0, int), **how)
        return models.models.rows.factors.copy()

    running = solved()
    for _ in range(2 * 4000 // kernels.PIECE):  # the columns stay as they are
        up_to_date = solved()
    exact = solved(anew=True)
    np.testing.assert_allclose(up_to_date, exact, rtol=1e-9, atol=1e-12)
    assert 0.0 < np.abs(running - exact).max() < 0.01 * np.abs(exact).max()


@pytest.mark.parametrize("how", ["pieces", "batches", "resumed"])
def test_running_sums_do_not_depend_on_the_boundaries_of_calls(how):
    X, y = events(2600, shape=LONG)
    whole, other = learner("auto"), learner("auto")
    expected = whole.learn(X, y)[1500:]
    found = []
    other.learn(X[:1500], y[:1500])
    for part in np.array_split(np.arange(1500, 2600), 1100 if how == "batches" else 7):
        if how == "resumed":
            other = ofw.OnlineFrankWolfe.from_state(other.state_dict())
        if how == "batches":
            other.observe(X[part], y[part])
        else:
            found.append(other.learn(X[part], y[part]))
    np.testing.assert_array_equal(other.theta.dense(), whole.theta.dense())
    if found:
        np.testing.assert_array_equal(np.concatenate(found), expected)


def of_rank(rank, n, shape=(60, 50), seed=0):
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((m, rank)) / rank**0.25 for m in shape)
    X = np.column_stack([rng.integers(0, m, n) for m in shape])
    return X, np.einsum("ik,ik->i", left[X[:, 0]], right[X[:, 1]]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize(("truth", "found"), [(2, 14), (10, 14), (25, 21)])
def test_the_rank_grows_while_all_of_it_is_in_use(truth, found):
    X, y = of_rank(truth, 17_000)
    one = learner("auto", rank="auto")
    one.learn(X, y)
    assert one.corrective.models.models.rank == found
    assert np.linalg.matrix_rank(one.theta.dense(), 1e-6) <= 3 * found


def test_more_rank_does_not_change_theta():
    X, y = of_rank(10, 2000)
    one = learner("auto", rank=6)
    one.learn(X, y)
    models, shape = one.corrective.models, one.objective.shape
    wider = with_rank(models.models, 14, np.arange(shape[1]))
    for m in range(3):
        for side in ("rows", "columns"):
            old, new = (getattr(each, side).factors for each in (models.models, wider))
            old, new = (x.reshape(len(x), 3, -1)[:, m] for x in (old, new))
            np.testing.assert_array_equal(new[:, :6], old[:, :6])
            assert (new[: shape[0], 6:14] == 0.0).all() == (side == "rows")
            assert (new[:, 14:] == 0.0).all()


def test_when_the_rank_grows_does_not_depend_on_the_boundaries_of_calls():
    X, y = of_rank(25, 17_000)
    whole = learner("auto", rank="auto")
    expected = whole.learn(X, y)
    assert whole.corrective.models.models.rank == 21
    for resumed in (False, True):
        other, found = learner("auto", rank="auto"), []
        for part in np.split(np.arange(17_000), [1, 500, 1300, 7999, 8000, 8001, 16_500]):
            found.append(other.learn(X[part], y[part]))
            if resumed:
                other = ofw.OnlineFrankWolfe.from_state(other.state_dict())
        np.testing.assert_array_equal(np.concatenate(found), expected)


def test_a_mixture_predicts_at_least_as_well_as_the_best_of_its_models():
    X, y = events(4000, shape=(60, 50))
    mixed = learner("auto").learn(X, y)
    alone = [learner(ridge).learn(X, y) for ridge in local_ridge.RIDGES]
    errors = [np.mean((found - y)[2000:] ** 2) for found in (mixed, *alone)]
    assert errors[0] <= 1.01 * min(errors[1:])


@pytest.mark.parametrize("how", ["state", "pickle"])
def test_a_resumed_run_is_an_uninterrupted_one(how):
    X, y = events(300)
    one = learner("auto", dtype=np.float32)
    one.learn(X[:170], y[:170], np.linspace(1.0, 2.0, 170))
    two = ofw.OnlineFrankWolfe.from_state(one.state_dict()) if how == "state" else None
    two = pickle.loads(pickle.dumps(one)) if two is None else two
    np.testing.assert_array_equal(two.theta.dense(), one.theta.dense())
    np.testing.assert_array_equal(two.learn(X[170:], y[170:]), one.learn(X[170:], y[170:]))
    assert two.t == one.t == 300


def test_units_make_no_difference():
    X, y = events(200)
    one, two = learner("auto"), learner("auto")
    expected, found = 7.0 * one.learn(X, y) - 40.0, two.learn(X, 7.0 * y - 40.0)
    assert found[0] == 0.0
    np.testing.assert_allclose(found[1:], expected[1:], 1e-6)


@pytest.mark.parametrize("radius", [0.5, 4.0, 1e6])
def test_theta_is_in_the_ball(radius):
    X, y = events(200)
    one = learner(radius=radius)
    for part in np.split(np.arange(200), 4):
        one.learn(X[part], y[part])
        assert one.constraint.contains(one.theta.dense(), 1e-6)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_certificate_bounds_the_distance_to_the_optimum(corrected):
    X, y = events(150)
    one = learner(growing=False)
    one.learn(X, y)
    if corrected:
        one.correct()
    objective = one.objective
    ball = one.corrective.ball(objective)
    rows, columns = objective._past.row_offset, objective._past.col_offset
    theta = cp.Variable(SHAPE)
    offsets = rows[X[:, 0]] + columns[X[:, 1]]
    loss = cp.sum_squares(theta[X[:, 0], X[:, 1]] + offsets - y) / (2 * len(y))
    norm = cp.normNuc(cp.diag(ball.rows) @ theta @ cp.diag(ball.columns))
    best = cp.Problem(cp.Minimize(loss), [norm <= ball.radius]).solve(solver=cp.SCS, eps=1e-7)
    gap = objective.value() - best
    bound = objective.certificate(ball)
    assert -1e-4 < gap <= bound + 1e-6
    assert bound < objective.value()  # it says something


def test_memories_help_where_errors_of_a_row_resemble_each_other():
    rng = np.random.default_rng(0)
    n, m = 4000, 20
    X = np.column_stack((rng.integers(0, m, n), rng.integers(0, 30, n)))
    mood = np.cumsum(rng.standard_normal((n, m)) * 0.2, axis=0)  # of each row, it wanders
    noise = 0.3 * rng.standard_normal(n)
    one, two = learner(), learner()
    moody, calm = mood[np.arange(n), X[:, 0]] + noise, noise
    wandering, steady = one.learn(X, moody), two.learn(X, calm)
    weights = [each.corrective.models.memory_weights[0] for each in (one, two)]
    assert weights[0] > 0.3 > 0.15 > abs(weights[1])
    assert np.mean((wandering - moody)[2000:] ** 2) < 0.5 * np.var(moody[2000:])
    assert np.mean((steady - calm)[2000:] ** 2) < 1.2 * 0.09


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[0, 0], [1, 10**12]], [1.0, 2.0], "columns"),
        ([[0, -1]], [1.0], "negative|-1"),
        ([[0, 1]], [np.nan], "NaN|nan"),
        ([["a", 1]], [1.0], "a|number"),
    ],
)
def test_bad_events_are_refused_before_anything_changes(X, y, words):
    good, values = events(50)
    one, two = learner(), learner()
    one.learn(good, values), two.learn(good, values)
    with pytest.raises((ValueError, TypeError), match=words):
        one.learn(X, y)
    np.testing.assert_array_equal(one.learn(good, values), two.learn(good, values))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ridge": (0.0, 1.0)}, "a > 0"),
        ({"ridge": 3.0}, "ridge"),
        ({"rank": 0}, "rank"),
    ],
)
def test_wrong_parameters_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        ofw.LocalRidge(**change)


@pytest.mark.parametrize(
    ("objective", "ball", "words"),
    [
        (ofw.objectives.RunningLeastSquares(3), L1Ball(1.0), "ObservedEntries"),
        (ObservedEntries((3, 3), Own()), TraceNormBall(1.0), "onlinefw.losses"),
        (ObservedEntries((3, 3), offsets=RunningBiases()), TraceNormBall(1.0), "offsets"),
    ],
)
def test_what_it_cannot_correct_is_refused(objective, ball, words):
    with pytest.raises(ValueError, match=words):
        ofw.OnlineFrankWolfe(objective, ball, corrective=ofw.LocalRidge())


def damaged(state, path, value):
    *place, last = path.split(".")
    for name in place:
        state = state[name]
    state[last] = value(state[last])


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("rank", lambda x: x + 1, "rank"),
        ("models.rows.factors", lambda x: x.astype(np.float16), "factors"),
        ("models.columns.offsets", lambda x: np.full_like(x, np.nan), "offsets"),
        ("models.ridges", lambda x: -x, "ridge"),
        ("models.mixture.spread", lambda x: x[1:], "spread"),
        ("models.moments", lambda x: x[:3], "moments"),
        ("models.turns", lambda x: x + 100, "turns"),
        ("models.shape", lambda x: [x[0], 10**9], "rows|columns|lists|factors"),
        ("models.n_observations", lambda x: x + 1, "do not fit"),
        ("models.check_at", lambda x: 5, "check_at"),
        ("models.columns.place", lambda x: x + 7, "sums of columns"),
        ("models.rows.added", lambda x: x + 1000, "sums of more"),
        ("models.rows.equations", lambda x: x[..., :3], "equations"),
    ],
)
def test_a_damaged_state_is_refused_in_one_line(path, value, words):
    state = learned_state(1200, (1, 9))
    damaged(state["corrective"]["state"], path, value)
    with pytest.raises(ValueError, match=words) as refusal:
        ofw.OnlineFrankWolfe.from_state(state)
    assert "\n" not in str(refusal.value)


def learned_state(n=100, shape=SHAPE):
    X, y = events(n, shape=shape)
    one = learner("auto")
    one.learn(X, y)
    return one.state_dict()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("rows.other", lambda x: x + 100, "lists of rows"),
        ("rows.length", lambda x: -x, "negative"),
        ("columns.length", lambda x: x[::-1].copy(), "agree"),
        ("columns.value", lambda x: x[1:], "value"),
        ("columns.weight", lambda x: np.ones(100), "agree on weights"),
    ],
)
def test_damaged_lists_are_refused_in_one_line(path, value, words):
    state = learned_state()
    damaged(state["objective"]["past"]["lists"], path, value)
    with pytest.raises(ValueError, match=words) as refusal:
        ofw.OnlineFrankWolfe.from_state(state)
    assert "\n" not in str(refusal.value)


def test_models_of_another_matrix_are_refused():
    X, y = events(100)
    one, other = learner(growing=False), learner()
    one.learn(X, y), other.learn(X[X[:, 0] < 5], y[X[:, 0] < 5])
    state = one.state_dict()
    state["corrective"] = other.state_dict()["corrective"]
    with pytest.raises(ValueError, match="do not fit"):
        ofw.OnlineFrankWolfe.from_state(state)


def test_a_learner_works_with_a_copy():
    corrective = ofw.LocalRidge(3)
    X, y = events(20)
    objective = ObservedEntries(SHAPE)
    ofw.OnlineFrankWolfe(objective, TraceNormBall(1.0), corrective=corrective).learn(X, y)
    assert corrective == replace(corrective) and corrective.models is None


@pytest.mark.parametrize("how", ["state", "pickle"])
def test_a_step_of_refine_is_saved(how):
    X, y = events(200)
    one = learner(radius=50.0)
    one.learn(X, y)
    one.refine()
    two = ofw.OnlineFrankWolfe.from_state(one.state_dict()) if how == "state" else None
    two = pickle.loads(pickle.dumps(one)) if two is None else two
    np.testing.assert_allclose(two.theta.dense(), one.theta.dense(), atol=1e-12)


@pytest.mark.parametrize("radius", [5.0, 1e4])
def test_a_step_of_refine_is_searched_whatever_the_step_rule(radius):
    """The first step of a rule has length 1, and would leave an atom alone."""
    X, y = events(200)
    one = learner(radius=radius)
    one.learn(X, y)
    before = one.objective.value()
    round_ = one.refine()
    assert round_.kind == "fw" and 0.0 <= round_.step_size < 1.0
    assert one.objective.value() <= before * (1.0 + 1e-12)


def test_a_first_observation_without_weight():
    X, y = events(50)
    w = np.ones(50)
    w[0] = 0.0
    one = learner()
    assert np.isfinite(one.learn(X, y, w)).all()


def test_a_matrix_that_has_grown_predicts_before_it_learns():
    X, y = events(50)
    one = learner()
    one.learn(X, y)
    one.objective.grow(40, 30)
    assert np.isfinite(one.objective.predict(np.array([39, 0]), np.array([0, 29]))).all()


def test_entries_that_were_there_before_are_learned_too():
    X, y = events(100)
    objective = ObservedEntries(SHAPE, dtype=float)
    objective.observe(X, y)
    one = ofw.OnlineFrankWolfe(objective, TraceNormBall(1e100), corrective=ofw.LocalRidge(3))
    one.learn(X[:20], y[:20])
    one.correct()
    two = ofw.OnlineFrankWolfe.from_state(one.state_dict())
    np.testing.assert_array_equal(two.theta.dense(), one.theta.dense())
    assert one.objective.n_observations == 120
    assert np.abs(one.theta.dense()).max() > 0.0
