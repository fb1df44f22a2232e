"""Matrix completion: the store, its products, the inexact LMO and its certificate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw import _threads, losses
from onlinefw.linalg import krylov_pair
from onlinefw.objectives import (
    ObservedEntries,
    RunningBiases,
    entries_gradient,
    held_entries,
    merge_rule,
)
from onlinefw.past.entries_state import all_entries
from onlinefw.sets import L1Ball, TraceNormBall, WeightedTraceNormBall
from onlinefw.steps import LineSearch

from ..algorithms.test_state import assert_same_run
from ..pairs import every_pair
from ..test_losses import TARGETS

SHAPE = (12, 17)


def observations(rng, count, targets, shape=SHAPE):
    rows, cols = rng.integers(shape[0], size=count), rng.integers(shape[1], size=count)
    return np.column_stack((rows, cols)), rng.choice(targets, count)


def dense_gradient(loss, batches, theta):
    """The gradient of the mean loss: every observation at its place in a dense matrix."""
    gradient, total = np.zeros(theta.shape), 0.0
    for X, y, w in batches:
        at = X[:, 0], X[:, 1]
        np.add.at(gradient, at, w * loss.derivative(theta[at], y))
        total += np.sum(w)
    return gradient / total


def mean_loss(loss, batches, theta):
    values = [loss.value(theta[X[:, 0], X[:, 1]], y) for X, y, _ in batches]
    return np.average(np.concatenate(values), weights=np.concatenate([w for _, _, w in batches]))


def play(objective, batches, radius=3.0):
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(radius))
    for X, y, w in batches:
        learner.observe(X, y, w)
    return learner


def sort_all_in(objective):
    """Leave no entry in the tail."""
    objective.regressions(everything=True)


def assert_predictions(objective, theta, tol):
    """The predictions held are those of theta at every entry."""
    state = objective.state_dict()["past"]
    rows, cols, _, _ = all_entries(state)
    z = np.concatenate((state["sorted"]["z"], state["tail"]["z"]))
    np.testing.assert_allclose(z, theta[rows, cols], atol=tol)


EVERY_LOSS = [*TARGETS, "own"]


class Pseudo(losses.Loss):
    convex, smoothness = True, 1.0

    def value(self, z, y):
        return np.sqrt(1 + np.square(z - y)) - 1

    def derivative(self, z, y):
        return (z - y) / np.sqrt(1 + np.square(z - y))

    def second_derivative(self, z, y):
        return (1 + np.square(z - y)) ** -1.5


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_value_equal_a_dense_recomputation(loss, dtype, rng):
    loss, targets = (Pseudo(), [-1.0, 2.0]) if loss == "own" else (loss, TARGETS[loss])
    batches = [
        (*observations(rng, 40, targets), rng.uniform(0.5, 2.0, 40)) for _ in range(60)
    ]  # many repeated entries, several merges
    objective = ObservedEntries(SHAPE, loss, dtype=dtype)
    learner = play(objective, batches)
    theta = learner.theta.dense().astype(float)
    expected = dense_gradient(loss, batches, theta)
    gradient = objective.gradient()
    tol = 1e-5 if dtype == np.float32 else 1e-12
    v, u = rng.standard_normal(17), rng.standard_normal(12)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(gradient @ v, expected @ v, atol=20 * tol * scale)
    np.testing.assert_allclose(gradient.T @ u, expected.T @ u, atol=20 * tol * scale)
    once, twice = gradient.normal(v)
    np.testing.assert_allclose(once, expected @ v, atol=20 * tol * scale)
    np.testing.assert_allclose(twice, expected.T @ (expected @ v), atol=50 * tol * scale**2)
    assert gradient.theta_dot == pytest.approx(np.sum(theta * expected), rel=100 * tol)
    assert gradient.frobenius_bound >= np.linalg.norm(expected) * (1 - tol)
    assert objective.value() == pytest.approx(mean_loss(loss, batches, theta), rel=100 * tol)


@pytest.mark.parametrize("loss", list(TARGETS), ids=str)
def test_repeated_entries_are_summed_exactly_where_sums_are_sufficient(loss, rng):
    X, y = observations(rng, 3000, TARGETS[loss])
    objective = ObservedEntries(SHAPE, loss, dtype=float)
    for part in np.split(np.arange(3000), 30):
        objective.observe(X[part], y[part])
    sort_all_in(objective)
    distinct = len(np.unique(X[:, 0] * 17 + X[:, 1]))
    summed = isinstance(loss, (losses.Square, losses.Gaussian, losses.Bernoulli, losses.Poisson))
    summed |= isinstance(loss, losses.Exponential)
    assert objective.n_entries == (distinct if summed else 3000)
    assert objective.n_observations == 3000


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.0, 0.1, 10.0]),
    tail=st.sampled_from([0, 300, 10**6]),
    combine=st.booleans(),
)
def test_any_order_of_batches_moves_and_merges_carries_the_right_predictions(
    seed, share, tail, combine
):
    rng = np.random.default_rng(seed)
    loss, targets = (
        (losses.Square(), [1.0, -2.0]) if combine else (losses.Sigmoid(2.0), [-1.0, 1.0])
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_rule, "MERGE_COST", share)
        patch.setattr(merge_rule, "SHORTEST_TAIL", tail)
        objective = ObservedEntries(SHAPE, loss, dtype=float)
        learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(2.0))
        for _ in range(12):
            learner.observe(*observations(rng, int(rng.integers(1, 1500)), targets))
    assert_predictions(objective, learner.theta.dense(), 1e-12)


def exact_run(batches, radius, shape=SHAPE):
    """O-FW for the square loss with a full SVD in every round, in plain numpy."""
    theta, count, total, n = np.zeros(shape), np.zeros(shape), np.zeros(shape), 0
    for t, (X, y) in enumerate(batches, start=1):
        np.add.at(count, (X[:, 0], X[:, 1]), 1.0)
        np.add.at(total, (X[:, 0], X[:, 1]), y)
        n += len(y)
        gradient = (count * theta - total) / n
        u, _, vt = np.linalg.svd(gradient)
        theta = theta + 2 / (t + 1) * (-radius * np.outer(u[:, 0], vt[0]) - theta)
    return theta, count, total


def noisy_low_rank(rng, rounds, size, shape=SHAPE):
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    for _ in range(rounds):
        X, _ = observations(rng, size, [0.0], shape)
        yield X, truth[X[:, 0], X[:, 1]] + 0.3 * rng.standard_normal(size)


def test_with_a_tight_singular_pair_it_is_the_exact_algorithm(rng):
    batches = list(noisy_low_rank(rng, 60, 30))
    objective = ObservedEntries(SHAPE, dtype=float, lmo_steps=50, lmo_tol=0.0)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(20.0))
    for X, y in batches:
        learner.observe(X, y)
    np.testing.assert_allclose(learner.theta.dense(), exact_run(batches, 20.0)[0], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_the_default_inexact_pair_the_objective_is_within_one_percent(dtype, rng):
    shape = (30, 40)
    batches = list(noisy_low_rank(rng, 200, 60, shape))
    learner = ofw.OnlineFrankWolfe(ObservedEntries(shape, dtype=dtype), TraceNormBall(60.0))
    for X, y in batches:
        learner.observe(X, y)
    theta, count, total = exact_run(batches, 60.0, shape)
    n = count.sum()
    yy = sum(float(y @ y) for _, y in batches)
    exact = (0.5 * np.sum(count * theta**2) - np.sum(total * theta) + 0.5 * yy) / n
    assert learner.objective.value() <= 1.01 * exact


@pytest.mark.parametrize("small", [0, 10**9], ids=["random start", "dense norm"])
def test_the_certificate_is_never_below_the_true_gap_and_round_gap_never_above(
    small, rng, monkeypatch
):
    monkeypatch.setattr(entries_gradient, "SMALL_MATRIX", small)
    shape, radius = (30, 40), 60.0
    learner = ofw.OnlineFrankWolfe(ObservedEntries(shape, dtype=float), TraceNormBall(radius))
    batches = []
    for X, y in noisy_low_rank(rng, 60, 60, shape):
        before = np.asarray(learner.theta)
        batches.append((X, y, np.ones(len(y))))
        round_ = learner.observe(X, y)
        if len(batches) % 20 == 0:
            for theta, bound in ((before, None), (np.asarray(learner.theta), "certificate")):
                gradient = dense_gradient(losses.Square(), batches, theta)
                gap = np.sum(gradient * theta) + radius * np.linalg.norm(gradient, 2)
                if bound is None:
                    assert round_.gap <= gap + 1e-9
                else:
                    assert gap <= learner.certificate() + 1e-9


def test_reads_are_counted_and_those_of_the_certificate_apart(rng):
    objective = ObservedEntries((600, 700), dtype=float)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(50.0))
    rounds = [learner.observe(X, y) for X, y in noisy_low_rank(rng, 10, 2000, (600, 700))]
    assert all(1 <= round_.reads <= 5 for round_ in rounds)
    before = objective.reads
    learner.certificate()
    assert objective.reads == before
    assert objective.certificate_reads > 0


def test_rounds_carry_an_upper_bound_every_so_often(rng):
    shape, radius = (30, 40), 60.0
    learner = ofw.OnlineFrankWolfe(
        ObservedEntries(shape, dtype=float), TraceNormBall(radius), certify_every=5
    )
    plain = ofw.OnlineFrankWolfe(ObservedEntries(shape, dtype=float), TraceNormBall(radius))
    batches = []
    for X, y in noisy_low_rank(rng, 20, 60, shape):
        theta = np.asarray(learner.theta)
        round_, other = learner.observe(X, y), plain.observe(X, y)
        batches.append((X, y, np.ones(len(y))))
        assert round_.gap == other.gap  # asking changes nothing
        assert np.isnan(other.gap_upper)
        if round_.t % 5:
            assert np.isnan(round_.gap_upper)
        else:
            gradient = dense_gradient(losses.Square(), batches, theta)
            gap = np.sum(gradient * theta) + radius * np.linalg.norm(gradient, 2)
            assert round_.gap <= gap + 1e-9
            assert gap <= round_.gap_upper + 1e-9


def test_an_exact_lmo_is_its_own_bound(rng):
    learner = ofw.OnlineFrankWolfe(ofw.objectives.RunningLeastSquares(3), L1Ball(1.0))
    round_ = learner.observe(rng.standard_normal((5, 3)), np.ones(5))
    assert round_.gap_upper == round_.fw_gap
    with pytest.raises(ValueError, match="certify_every"):
        ofw.OnlineFrankWolfe(ofw.objectives.RunningLeastSquares(3), L1Ball(1.0), certify_every=0)


def test_rows_and_columns_grow_while_streaming(rng):
    growing = ObservedEntries((1, 1), dtype=float, growing=True)
    fixed = ObservedEntries(SHAPE, dtype=float, max_atoms=200)
    a, b = (ofw.OnlineFrankWolfe(o, TraceNormBall(5.0)) for o in (growing, fixed))
    limits = [(2, 3), (5, 5), (12, 9), (12, 17)] * 2
    for shape in sorted(limits):
        X, y = observations(rng, 400, [1.0, -1.0, 2.0], shape)
        X[0] = np.array(shape) - 1
        a.observe(X, y)
        b.observe(X, y)
        assert a.theta.shape == growing.shape
    assert growing.shape == SHAPE
    assert a.certificate() > 0
    assert_predictions(growing, a.theta.dense(), 1e-9)
    assert growing.value() <= 1.5 * fixed.value()


def test_a_growing_matrix_keeps_the_memory_bound_of_its_present_shape(rng, monkeypatch):
    # 50 atoms at the final shape
    monkeypatch.setitem(held_entries.FACTOR_BYTES, "cpu", 8 * 50 * 500)
    objective = ObservedEntries((1, 1), dtype=float, growing=True)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(5.0))
    for shape in [(20, 30), (200, 300)] * 40:
        X, y = observations(rng, 30, [1.0, -1.0], shape)
        X[0] = np.array(shape) - 1
        learner.observe(X, y)
    assert learner.theta.max_atoms == 50
    assert learner.theta.n_atoms <= 50


def test_values_that_overflow_in_single_precision_are_refused():
    objective = ObservedEntries(SHAPE)
    with pytest.raises(ValueError, match="dtype=float"):
        objective.observe([[0, 0]], [1e30])
    assert objective.n_observations == 0
    ObservedEntries(SHAPE, dtype=float).observe([[0, 0]], [1e30])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cut", [0, 1, 13, 39])
def test_resumed_equals_uninterrupted(dtype, cut, rng, tmp_path):
    batches = list(noisy_low_rank(rng, 40, 120))
    assert_same_run(
        lambda: ofw.OnlineFrankWolfe(ObservedEntries(SHAPE, dtype=dtype), TraceNormBall(9.0)),
        batches,
        cut,
        tmp_path,
    )


@pytest.mark.slow
def test_the_store_takes_about_twenty_bytes_an_entry(rng):
    objective = ObservedEntries((2000, 3000))
    X, y = observations(rng, 200_000, [1.0, 2.0], (2000, 3000))
    objective.observe(X, y)
    sort_all_in(objective)
    assert objective.n_newest == 0
    held = objective._past._store.sorted.arrays[1:]
    assert sum(part.nbytes for part in held) / objective.n_entries <= 20


@pytest.mark.slow
def test_threads_change_rounding_only_and_runs_repeat_exactly(rng, monkeypatch):
    monkeypatch.setattr(_threads, "SMALL_LOOP", 0)
    batches = list(noisy_low_rank(rng, 30, 500, (60, 70)))

    def run(threads):
        before = _threads.use_threads(threads)
        try:
            learner = ofw.OnlineFrankWolfe(
                ObservedEntries((60, 70), dtype=float, lmo_steps=20), TraceNormBall(30.0)
            )
            rounds = [learner.observe(X, y).gap for X, y in batches]
        finally:
            _threads.use_threads(before)
        return rounds

    one, two = run(1), run(2)
    assert run(1) == one
    assert run(2) == two
    np.testing.assert_allclose(one[:10], two[:10], rtol=1e-6)


def test_popular_columns_come_first(rng):
    objective = ObservedEntries((50, 60))
    cols = np.minimum(rng.geometric(0.2, 3000) - 1, 59)
    shuffled = rng.permutation(60)[cols]
    objective.observe(np.column_stack((rng.integers(50, size=3000), shuffled)), np.ones(3000))
    sort_all_in(objective)
    objective._past._store = objective._past._store.reranked()
    state = objective.state_dict()["past"]
    counts = np.bincount(state["sorted"]["col"], minlength=60)  # distinct entries per position
    assert counts.sum() == objective.n_entries
    assert np.all(np.diff(counts) <= 0)
    rows, cols, _, _ = all_entries(state)
    distinct = np.unique(np.column_stack((rows, cols)), axis=0)
    expected = np.bincount(distinct[:, 1], minlength=60)[np.argsort(state["rank"])]
    np.testing.assert_array_equal(expected, counts)


def test_krylov_steps_never_overestimate_and_converge(rng):
    G = rng.standard_normal((40, 30))
    top = np.linalg.norm(G, 2)
    start = rng.standard_normal(30)
    values = [
        krylov_pair(lambda v: (G @ v, G.T @ (G @ v)), start / np.linalg.norm(start), steps=k)[1]
        for k in range(1, 31)
    ]
    assert np.all(np.diff(values) >= -1e-12)
    assert values[-1] == pytest.approx(top, rel=1e-9)
    assert max(values) <= top * (1 + 1e-12)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (None, [1.0], "X is missing"),
        ([[0, 1, 2]], [1.0], "row and a column"),
        (np.empty((0, 2), int), [], "empty"),
        ([[0.5, 1.0]], [1.0], r"whole-number.*\[0.5, 1.0\] in row 0"),
        ([[np.nan, 1.0]], [1.0], r"whole-number.*nan"),
        ([[np.inf, 1.0]], [1.0], "index inf"),
        ([[2**32, 1]], [1.0], "index 4294967296.*below"),
        ([[-1, 0]], [1.0], "negative index -1"),
        ([[12, 0]], [1.0], "row 12.*growing=True"),
        ([[0, 17]], [1.0], "column 17.*growing=True"),
        ([[0, 1]], [np.nan], "nan"),
        ([[0, 1]], [1.0, 2.0], "1 rows but y has 2"),
    ],
)
def test_bad_batches_are_refused_and_nothing_changes(X, y, words):
    objective = ObservedEntries(SHAPE)
    objective.observe([[0, 0]], [1.0])
    before = repr(objective.state_dict())
    with pytest.raises(ValueError, match=words):
        objective.observe(X, y)
    assert repr(objective.state_dict()) == before


def test_impossible_stores_and_sets_are_refused():
    with pytest.raises(ValueError, match="float32 or float64"):
        ObservedEntries(SHAPE, dtype=int)
    with pytest.raises(ValueError, match="rows, columns"):
        ObservedEntries((3,))
    with pytest.raises(ValueError, match="TraceNormBall"):
        ofw.OnlineFrankWolfe(ObservedEntries(SHAPE), L1Ball(1.0))


@pytest.mark.slow
def test_the_papers_synthetic_problem_in_small(rng):
    """h_t = ||theta_t - truth||^2 / (2 m1 m2) falls about like 1/t once it has begun to fall."""
    data = ofw.datasets.make_matrix_completion((40, 200), rank=3, n_observations=200_000, seed=0)
    truth = data.left @ data.right.T
    learner = ofw.OnlineFrankWolfe(
        ObservedEntries((40, 200)), TraceNormBall(1.1 * np.linalg.norm(truth, "nuc"))
    )
    X, h, B = np.column_stack((data.rows, data.cols)), [], 200
    for t in range(1000):
        part = slice(t * B, (t + 1) * B)
        learner.observe(X[part], data.values[part])
        if t + 1 in (250, 500, 1000):
            h.append(np.sum((learner.theta.dense() - truth) ** 2) / (2 * truth.size))
    slope = np.log(h[-1] / h[0]) / np.log(4.0)
    assert -1.5 < slope < -0.7


# Offsets and weighted balls ----------------------------------------------------------------------


def uneven_ball(rng, radius, shape=SHAPE):
    return WeightedTraceNormBall(
        radius, rng.uniform(0.5, 2.0, shape[0]), rng.uniform(0.5, 2.0, shape[1])
    )


def dense_offsets(rng, objective):
    """Set random offsets; return them as a matrix."""
    m1, m2 = objective.shape
    rows, columns = rng.standard_normal(m1), rng.standard_normal(m2)
    objective.set_offsets(rows, columns)
    return (rows[:, None] + columns).astype(objective.dtype).astype(float)


@pytest.mark.parametrize(
    ("loss", "dtype", "weighted"), every_pair(EVERY_LOSS, [np.float32, np.float64], [False, True])
)
def test_with_offsets_and_weights_all_is_as_in_a_dense_recomputation(
    loss, dtype, weighted, rng, monkeypatch
):
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", 300)
    loss, targets = (Pseudo(), [-1.0, 2.0]) if loss == "own" else (loss, TARGETS[loss])
    objective = ObservedEntries((4, 3), loss, dtype=dtype, growing=True)
    radius = 3.0
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(radius))
    batches, shapes = [], [(4, 3), (9, 17), *[SHAPE] * 60]
    for shape in shapes:
        X, y = observations(rng, 40, targets, shape)
        X[0] = np.array(shape) - 1
        batches.append((X, y, rng.uniform(0.5, 2.0, 40)))
        learner.observe(*batches[-1])
        offset = dense_offsets(rng, objective)
    if weighted:
        learner.constraint = uneven_ball(rng, radius)
        objective.constrain(learner.constraint)
    assert objective.shape == SHAPE
    assert 0 < objective.n_newest < objective.n_entries
    theta = learner.theta.dense().astype(float)
    expected = dense_gradient(loss, batches, theta + offset)
    scale, tol = np.abs(expected).max(), 1e-4 if dtype == np.float32 else 1e-11
    assert objective.value() == pytest.approx(mean_loss(loss, batches, theta + offset), rel=tol)
    gradient = objective.gradient()
    np.testing.assert_allclose(gradient.toarray(), expected, atol=tol * scale)
    v, u = rng.standard_normal(17), rng.standard_normal(12)
    np.testing.assert_allclose(gradient @ v, expected @ v, atol=20 * tol * scale)
    np.testing.assert_allclose(gradient.T @ u, expected.T @ u, atol=20 * tol * scale)
    a, b = (np.ones(12), np.ones(17)) if not weighted else learner.constraint.scales
    scaled = a[:, None] * expected * b
    once, twice = gradient.normal(v, learner.constraint.scales)
    bound = 50 * tol * np.linalg.norm(scaled)
    np.testing.assert_allclose(once, scaled @ v, atol=bound)
    np.testing.assert_allclose(twice, scaled.T @ (scaled @ v), atol=bound * np.linalg.norm(scaled))
    rows, cols = rng.integers(12, size=50), rng.integers(17, size=50)
    np.testing.assert_allclose(
        objective.predict(rows, cols), (theta + offset)[rows, cols], atol=10 * tol
    )
    gap = np.sum(theta * expected) + radius * np.linalg.norm(scaled, 2)
    found = objective.gap(gradient, learner.constraint.lmo(gradient))
    assert found <= gap + 100 * tol * scale
    assert learner.certificate() == pytest.approx(gap, rel=100 * tol, abs=100 * tol * scale)


@pytest.mark.parametrize("small", [0, 10**9], ids=["random start", "dense norm"])
@pytest.mark.parametrize("offsets", [False, True])
def test_over_a_weighted_ball_the_certificate_is_never_below_the_true_gap(
    small, offsets, rng, monkeypatch
):
    monkeypatch.setattr(entries_gradient, "SMALL_MATRIX", small)
    shape, radius = (30, 40), 60.0
    ball, biases = uneven_ball(rng, radius, shape), RunningBiases() if offsets else None
    learner = ofw.OnlineFrankWolfe(ObservedEntries(shape, dtype=float, offsets=biases), ball)
    batches = []
    for X, y in noisy_low_rank(rng, 40, 60, shape):
        batches.append((X, y, np.ones(len(y))))
        learner.observe(X, y)
        if len(batches) % 10 == 0:
            theta = at = np.asarray(learner.theta)
            if offsets:
                at = theta + biases.mean + biases.rows[:, None] + biases.columns
            gradient = dense_gradient(losses.Square(), batches, at)
            top = np.linalg.norm(gradient / ball.rows[:, None] / ball.columns, 2)
            gap = np.sum(gradient * theta) + radius * top
            assert gap - 1e-9 <= learner.certificate() <= 1.5 * gap
            unattached = ObservedEntries.from_state(learner.objective.state_dict())
            assert gap - 1e-9 <= unattached.certificate(ball)


def exact_weighted_run(batches, ball, steps, offsets=None):
    """O-FW for the square loss, with an SVD of the scaled gradient, in plain numpy."""
    shape = ball.rows.size, ball.columns.size
    theta, count, total, n = np.zeros(shape), np.zeros(shape), np.zeros(shape), 0
    for t, (X, y) in enumerate(batches, start=1):
        np.add.at(count, (X[:, 0], X[:, 1]), 1.0)
        np.add.at(total, (X[:, 0], X[:, 1]), y)
        n += len(y)
        gradient = (count * (theta + (0.0 if offsets is None else offsets)) - total) / n
        u, _, vt = np.linalg.svd(gradient / ball.rows[:, None] / ball.columns)
        atom = -ball.radius * np.outer(u[:, 0] / ball.rows, vt[0] / ball.columns)
        if steps == "harmonic":
            gamma = 2 / (t + 1)
        else:
            curvature = np.sum(count * (atom - theta) ** 2) / n
            gamma = np.clip(np.sum(gradient * (theta - atom)) / curvature, 0.0, 1.0)
        theta = theta + gamma * (atom - theta)
    return theta


@pytest.mark.parametrize("steps", ["harmonic", "line search"])
@pytest.mark.parametrize("offsets", [False, True])
def test_over_a_weighted_ball_it_is_the_exact_algorithm_on_the_scaled_gradient(steps, offsets, rng):
    batches, ball = list(noisy_low_rank(rng, 50, 30)), uneven_ball(rng, 20.0)
    objective = ObservedEntries(SHAPE, dtype=float, lmo_steps=60, lmo_tol=0.0)
    rule = {} if steps == "harmonic" else {"step": LineSearch()}
    learner = ofw.OnlineFrankWolfe(objective, ball, **rule)
    offset = dense_offsets(rng, objective) if offsets else None
    for X, y in batches:
        learner.observe(X, y)
    expected = exact_weighted_run(batches, ball, steps, offset)
    np.testing.assert_allclose(learner.theta.dense(), expected, atol=1e-6)
    assert ball.norm(learner.theta) <= 20.0 * (1 + 1e-9)


def test_a_gradient_belongs_to_the_weights_it_was_made_for(rng):
    objective = ObservedEntries(SHAPE, dtype=float)
    ofw.OnlineFrankWolfe(objective, uneven_ball(rng, 2.0)).observe([[0, 0]], [1.0])
    with pytest.raises(ValueError, match="other weights"):
        TraceNormBall(2.0).lmo(objective.gradient())


def test_rows_without_weights_are_refused_and_nothing_changes(rng):
    objective = ObservedEntries(SHAPE, growing=True)
    learner = ofw.OnlineFrankWolfe(objective, uneven_ball(rng, 2.0))
    learner.observe([[0, 0]], [1.0])
    before = repr(objective.state_dict())
    with pytest.raises(ValueError, match=r"\(12, 17\).*\(13, 17\).*weight for each"):
        learner.observe([[12, 3]], [1.0])
    with pytest.raises(ValueError, match=r"\(3, 3\).*\(12, 17\)"):
        objective.constrain(uneven_ball(rng, 2.0, (3, 3)))
    assert repr(objective.state_dict()) == before
    objective.grow(13, 17)
    learner.constraint = uneven_ball(rng, 2.0, (13, 17))
    objective.constrain(learner.constraint)
    assert learner.observe([[12, 3]], [1.0]).t == 2


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    acts=st.lists(
        st.sampled_from(["observe", "move", "shrink", "grow", "offsets", "put", "merge"]),
        min_size=1,
        max_size=14,
    ),
    tail=st.sampled_from([0, 300, 10**6]),
)
def test_whatever_happens_predictions_are_those_of_theta_plus_offsets(seed, acts, tail):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_rule, "SHORTEST_TAIL", tail)
        objective = ObservedEntries((3, 5), dtype=float, growing=True, max_atoms=100)
        theta, rows, columns, batches = np.zeros((3, 5)), np.zeros(3), np.zeros(5), []
        for act in ["observe", *acts]:
            m1, m2 = theta.shape
            if act == "observe":
                X, y = observations(rng, int(rng.integers(1, 1300)), [1.0, -2.0], (m1, m2))
                batches.append((X, y, rng.uniform(0.5, 2.0, len(y))))
                objective.observe(*batches[-1])
            elif act == "move":
                u, v, step = rng.standard_normal(m1), rng.standard_normal(m2), rng.random()
                objective.move(ofw.atoms.RankOne(u, 1.5, v), step)
                theta = (1 - step) * theta + step * 1.5 * np.outer(u, v)
            elif act == "shrink":
                objective.shrink(0.5)
                theta = 0.5 * theta
            elif act == "grow":
                more = int(rng.integers(0, 3)), int(rng.integers(0, 3))
                objective.grow(m1 + more[0], m2 + more[1])
                theta = np.pad(theta, ((0, more[0]), (0, more[1])))
                rows, columns = np.pad(rows, (0, more[0])), np.pad(columns, (0, more[1]))
            elif act == "offsets":
                rows, columns = rng.standard_normal(m1), rng.standard_normal(m2)
                objective.set_offsets(rows, columns)
            elif act == "put":
                theta = rng.standard_normal((m1, m2))
                objective.put(theta)
            else:
                sort_all_in(objective)
    offset = rows[:, None] + columns
    value = mean_loss(losses.Square(), batches, theta + offset)
    assert objective.value() == pytest.approx(value, rel=1e-9)
    assert_predictions(objective, theta, 1e-9)
    expected = dense_gradient(losses.Square(), batches, theta + offset)
    np.testing.assert_allclose(objective.gradient().toarray(), expected, atol=1e-9)


@given(st.integers(0, 10**6), st.booleans())
def test_what_each_row_has_seen_is_told_whether_it_is_sorted_in_or_new(seed, repeats_apart):
    rng = np.random.default_rng(seed)
    objective = ObservedEntries((6, 9), losses.Sigmoid() if repeats_apart else losses.Square())
    seen = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_rule, "SHORTEST_TAIL", 8)
        for _ in range(int(rng.integers(1, 6))):
            X = np.column_stack((rng.integers(6, size=7), rng.integers(9, size=7)))
            objective.observe(X, np.ones(7))
            seen.update(map(tuple, X.tolist()))
    indptr, columns = objective.seen()
    rows = np.repeat(np.arange(6), np.diff(indptr))
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(seen)
