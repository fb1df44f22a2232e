"""Clicks: entries that were not observed count as zeros, compared with dense matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw import losses
from onlinefw.atoms import RankOne
from onlinefw.objectives import ObservedEntries, RunningBiases, entries_gradient, merge_rule
from onlinefw.sets import TraceNormBall, WeightedTraceNormBall
from onlinefw.steps import LineSearch

from ..algorithms.test_state import assert_same_run

ALPHAS = (0.01, 0.1, 1.0)


class Dense:
    """F_t as two dense matrices: the weight and the weighted target of every entry."""

    def __init__(self, alpha, shape, half_life=None):
        self.alpha, self.half_life = alpha, half_life
        self.c, self.s, self.seen = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
        self.squares = 0.0

    def observe(self, X, y, w):
        m1, m2 = np.maximum(self.c.shape, X.max(axis=0) + 1)
        grown = (0, m1 - self.c.shape[0]), (0, m2 - self.c.shape[1])
        self.c, self.s, self.seen = (np.pad(x, grown) for x in (self.c, self.s, self.seen))
        for (i, j), value, weight in zip(X, y, w, strict=True):
            if self.half_life is not None and weight > 0.0:
                older = 2.0 ** (-1.0 / self.half_life)
                self.c, self.s, self.squares = (older * x for x in (self.c, self.s, self.squares))
            self.c[i, j] += weight
            self.s[i, j] += weight * value
            self.squares += weight * value**2
            self.seen[i, j] = True

    @property
    def weights(self):
        return np.where(self.seen, self.c, self.alpha)

    def value(self, z):
        total = np.sum(self.weights * z**2 / 2 - self.s * z) + self.squares / 2
        return total / self.weights.sum()

    def gradient(self, z):
        return (self.weights * z - self.s) / self.weights.sum()


def events(rng, n, shape):
    """Observations with many repeats, of other values and weights."""
    X = np.column_stack([rng.integers(m, size=n) for m in shape])
    return X, rng.choice([1.0, 1.0, 2.0, -0.5], n), rng.choice([1.0, 1.0, 0.5, 3.0], n)


def prediction(objective):
    """Theta plus offsets, as a dense matrix."""
    past = objective._past
    return objective.theta.dense() + past.row_offset[:, None] + past.col_offset


def assert_same(objective, dense, ball, tol=1e-9):
    """Value, gradient, products, gap, certificate, smoothness and lines are those of matrices."""
    z, theta = prediction(objective), objective.theta.dense()
    expected = dense.gradient(z)
    scale = np.abs(expected).max()
    assert objective.value() == pytest.approx(dense.value(z), rel=tol, abs=tol)
    gradient = objective.gradient()
    np.testing.assert_allclose(gradient.toarray(), expected, atol=tol * scale)
    (m1, m2), rng = expected.shape, np.random.default_rng(0)
    u, v = rng.standard_normal(m1), rng.standard_normal(m2)
    np.testing.assert_allclose(gradient @ v, expected @ v, atol=m2 * tol * scale)
    np.testing.assert_allclose(gradient.T @ u, expected.T @ u, atol=m1 * tol * scale)
    a, b = (np.ones(m1), np.ones(m2)) if ball.scales is None else ball.scales
    scaled = a[:, None] * expected * b
    y, w = gradient.normal(v, ball.scales)
    np.testing.assert_allclose(y, scaled @ v, atol=m2 * tol * scale)
    np.testing.assert_allclose(w, scaled.T @ (scaled @ v), atol=m1 * m2 * tol * scale**2)
    top, at_theta = np.linalg.norm(scaled, 2), np.sum(expected * theta)
    assert gradient.theta_dot == pytest.approx(at_theta, abs=tol)
    gradient.look_closely()
    atom = ball.lmo(gradient)
    gap = at_theta + ball.radius * top
    assert objective.gap(gradient, atom) == pytest.approx(gap, abs=1e3 * tol * (1.0 + abs(gap)))
    assert gap - tol <= objective.certificate(ball) <= gap + 1e-6 * (1 + abs(gap))
    assert gradient.frobenius_bound >= np.linalg.norm(expected) - tol
    largest = dense.weights.max() / dense.weights.sum()
    assert objective.smoothness() == pytest.approx(largest, rel=1e-6) or (
        objective.n_newest > 0 and objective.smoothness() >= largest * (1 - 1e-6)
    )
    line = objective.line(RankOne(u, 0.3, v))
    direction = 0.3 * np.outer(u, v) - theta
    for t in (0.0, 0.4, 1.0):
        assert line.value(t) == pytest.approx(dense.value(z + t * direction), rel=tol, abs=tol)
        slope = np.sum(dense.gradient(z + t * direction) * direction)
        assert line.slope(t) == pytest.approx(slope, rel=1e-7, abs=100 * tol)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from(ALPHAS),
    half_life=st.sampled_from([None, None, 30.0]),
    offsets=st.sampled_from([None, "given", "running"]),
    growing=st.booleans(),
    weighted=st.booleans(),
    merged=st.booleans(),
)
def test_everything_is_as_with_dense_matrices(
    seed, alpha, half_life, offsets, growing, weighted, merged
):
    rng = np.random.default_rng(seed)
    shape = (9, 13)
    objective = ObservedEntries(
        (2, 3) if growing else shape,
        dtype=float,
        unobserved=alpha,
        half_life=half_life,
        growing=growing,
        offsets=RunningBiases() if offsets == "running" else None,
    )
    dense = Dense(alpha, objective.shape, half_life)
    ball = TraceNormBall(4.0)
    learner = ofw.OnlineFrankWolfe(objective, ball)
    for t in range(6):
        end = (3 + t, 5 + t) if growing else shape
        X, y, w = events(rng, 25, end)
        learner.observe(X, y, w)
        dense.observe(X, y, w)
        if offsets == "given":
            objective.set_offsets(*(rng.standard_normal(n) for n in objective.shape))
        if merged and t % 2:
            objective._past.merge(objective.n_newest // 2)
    if weighted and not growing:
        ball = WeightedTraceNormBall(4.0, *(1.0 + rng.random(n) for n in shape))
        objective.constrain(ball)
    assert_same(objective, dense, ball)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_in_single_precision_to_rounding(alpha):
    rng = np.random.default_rng(3)
    objective, dense = ObservedEntries((9, 13), unobserved=alpha), Dense(alpha, (9, 13))
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(4.0))
    for _ in range(10):
        X, y, w = events(rng, 40, (9, 13))
        learner.observe(X, y, w)
        dense.observe(X, y, w)
    z = prediction(objective).astype(float)
    assert objective.value() == pytest.approx(dense.value(z), rel=1e-5)
    np.testing.assert_allclose(objective.gradient().toarray(), dense.gradient(z), atol=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_sweeps_solve_the_regressions_of_all_entries(alpha):
    rng = np.random.default_rng(4)
    objective, dense = (
        ObservedEntries((9, 13), dtype=float, unobserved=alpha),
        Dense(alpha, (9, 13)),
    )
    X, y, w = events(rng, 70, (9, 13))
    objective.add(objective.check(X, y, w))
    dense.observe(X, y, w)
    rows, columns = rng.standard_normal(9), rng.standard_normal(13)
    objective.set_offsets(rows, columns)
    past = objective.regressions(everything=True)
    left, right = rng.standard_normal((9, 3)), rng.standard_normal((13, 3))
    ridge = 0.1 + rng.random(9), 0.1 + rng.random(13)
    found = past.solve_rows(right, ridge[0]), past.solve_columns(left, ridge[1])
    packed = past.column_equations(left)
    target = dense.s - dense.weights * (rows[:, None] + columns)
    for i in range(9):
        A = (dense.weights[i] * right.T) @ right + ridge[0][i] * np.eye(3)
        np.testing.assert_allclose(found[0][i], np.linalg.solve(A, right.T @ target[i]), atol=1e-9)
    for j in range(13):
        A, b = (dense.weights[:, j] * left.T) @ left, left.T @ target[:, j]
        solution = np.linalg.solve(A + ridge[1][j] * np.eye(3), b)
        np.testing.assert_allclose(found[1][j], solution, atol=1e-9)
        np.testing.assert_allclose(
            packed[j], np.column_stack((A, b))[np.triu_indices(3, 0, 4)], atol=1e-9
        )


@pytest.mark.parametrize("ridge", [0.5, "auto"])
def test_ridge_sweeps_lower_the_objective(ridge):
    rng = np.random.default_rng(5)
    X = np.column_stack((rng.integers(30, size=9000), rng.integers(20, size=9000)))
    X = X[(X.sum(axis=1) % 3) == 0]
    values = []
    for corrective in (None, ofw.RidgeSweeps(3, ridge=ridge, growth=1.2)):
        objective = ObservedEntries((30, 20), dtype=float, unobserved=0.1)
        ball = TraceNormBall(20.0)
        learner = ofw.OnlineFrankWolfe(objective, ball, corrective=corrective)
        for part in np.array_split(X, 8):
            learner.observe(part, np.ones(len(part)))
        if corrective is not None:
            learner.correct()
        values.append(objective.value())
    assert values[1] < values[0]


def test_line_search_converges_to_the_best_matrix():
    rng = np.random.default_rng(6)
    X, _, w = events(rng, 60, (8, 6))
    objective, ball = ObservedEntries((8, 6), dtype=float, unobserved=0.2), TraceNormBall(2.0)
    objective.add(objective.check(X, np.ones(60), w))
    result = ofw.baselines.batch_frank_wolfe(objective, ball, step=LineSearch(), max_iter=300)
    dense = Dense(0.2, (8, 6))
    dense.observe(X, np.ones(60), w)
    theta = np.zeros((8, 6))
    for _ in range(3000):  # projected gradient, on dense matrices
        theta = ball.project(
            theta - dense.gradient(theta) * dense.weights.sum() / dense.weights.max()
        )
    assert result.objective == pytest.approx(dense.value(theta), abs=1e-4)
    assert result.objective - dense.value(theta) <= result.gap


def test_repeated_events_add_weight_wherever_they_are_kept(monkeypatch):
    """In the tail, and between tail and sorted entries, an entry is one entry."""
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", 4)
    objective, dense = ObservedEntries((3, 4), dtype=float, unobserved=0.5), Dense(0.5, (3, 4))
    objective.put(np.arange(12.0).reshape(3, 4) / 10)
    X = np.array([[0, 1], [0, 1], [2, 3], [0, 1], [1, 1], [2, 3], [0, 0], [0, 1]])
    for part in (X[:2], X[2:7], X[7:], X):
        objective.add(objective.check(part, np.ones(len(part))))
        dense.observe(part, np.ones(len(part)), np.ones(len(part)))
        assert objective._past.n_distinct() == dense.seen.sum()
        assert_same(objective, dense, TraceNormBall(1.0))


def test_large_matrices_have_a_certificate_from_products(monkeypatch):
    rng = np.random.default_rng(7)
    objective, dense = ObservedEntries((40, 30), dtype=float, unobserved=0.1), Dense(0.1, (40, 30))
    ball = TraceNormBall(5.0)
    learner = ofw.OnlineFrankWolfe(objective, ball)
    for _ in range(20):
        X, y, w = events(rng, 40, (40, 30))
        learner.observe(X, y, w)
        dense.observe(X, y, w)
    gradient = dense.gradient(prediction(objective))
    gap = np.sum(gradient * objective.theta.dense()) + 5.0 * np.linalg.norm(gradient, 2)
    monkeypatch.setattr(entries_gradient, "SMALL_MATRIX", 0)
    assert gap * (1 - 1e-9) <= learner.certificate() <= 1.5 * gap


@pytest.mark.parametrize("half_life", [None, 50.0])
def test_a_resumed_run_is_the_same_run(tmp_path, half_life):
    rng = np.random.default_rng(9)
    batches = [events(rng, 30, (9, 13)) for _ in range(12)]

    def make():
        objective = ObservedEntries((9, 13), unobserved=0.1, half_life=half_life)
        return ofw.OnlineFrankWolfe(objective, TraceNormBall(4.0))

    assert_same_run(make, batches, 5, tmp_path)


def test_a_state_of_an_earlier_version_has_no_zeros():
    objective = ObservedEntries((3, 4), dtype=float)
    objective.add(objective.check([[0, 1]], [1.0]))
    state = objective.state_dict()
    for part, name in ((state, "squared_norm"), (state["past"], "unobserved")):
        del part[name]
    del state["options"]["unobserved"]
    assert ObservedEntries.from_state(state).unobserved == 0.0


def test_rows_can_be_forgotten_and_entries_fade_away():
    rng = np.random.default_rng(10)
    objective, dense = ObservedEntries((9, 13), dtype=float, unobserved=0.1), Dense(0.1, (9, 13))
    X, y, w = events(rng, 60, (9, 13))
    objective.add(objective.check(X, y, w))
    objective.forget(3)
    kept = X[:, 0] != 3
    dense.observe(X[kept], y[kept], w[kept])
    objective.put(rng.standard_normal((9, 13)))
    z = prediction(objective)
    np.testing.assert_allclose(objective.gradient().toarray(), dense.gradient(z), atol=1e-12)


def test_the_cost_does_not_follow_the_unobserved_entries():
    """A billion entries were not observed here."""
    objective = ObservedEntries((30_000, 40_000), unobserved=0.01)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(10.0))
    rng = np.random.default_rng(11)
    for _ in range(3):
        X = np.column_stack((rng.integers(30_000, size=100), rng.integers(40_000, size=100)))
        round_ = learner.observe(X, np.ones(100))
    assert round_.gap > 0.0


@pytest.mark.parametrize("weight", [-0.1, np.nan, np.inf, "auto", None, True])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(ValueError, match="unobserved must be the weight"):
        ObservedEntries((3, 4), unobserved=weight)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Gaussian(), losses.Poisson()])
def test_other_losses_are_refused(loss):
    with pytest.raises(ValueError, match="needs the square loss"):
        ObservedEntries((3, 4), loss, unobserved=0.1)


def test_a_solver_that_knows_no_zeros_refuses_them():
    objective = ObservedEntries((3, 4), unobserved=0.1)
    objective.add(objective.check([[0, 1]], [1.0]))
    with pytest.raises(ValueError, match="all others count as zeros"):
        ofw.baselines.active_alt(objective, TraceNormBall(1.0))
