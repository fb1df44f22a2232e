"""Objectives: what is carried equals what a plain dense recomputation gives."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.losses import Gaussian, Logistic, Sigmoid, Square
from onlinefw.objectives import GradientOracle, LinearObjective, RunningLeastSquares
from onlinefw.sets import Box, L1Ball, L2Ball, TraceNormBall

from ..reference import MeanLoss


def play(objective, constraint, batches, steps=(1.0, 0.5, -0.1, 0.3)):
    """Interleave observations with moves towards and away from atoms."""
    for k, batch in enumerate(batches):
        objective.observe(*batch)
        atom = constraint.lmo(np.asarray(objective.gradient()) + 0.1 * k)
        objective.move(atom, steps[k % len(steps)])


def make_batches(rng, count, n=6, signed=False, weighted=False):
    out = []
    for _ in range(count):
        size = int(rng.integers(1, 5))
        X = rng.standard_normal((size, n)) * (rng.random((size, n)) < 0.7)
        y = rng.choice([-1.0, 1.0], size) if signed else rng.standard_normal(size)
        out.append((X, y, rng.uniform(0.1, 2.0, size)) if weighted else (X, y))
    return out


def recomputed(objective, loss, batches, shape):
    past = MeanLoss(loss.derivative, shape)
    for batch in batches:
        past.add(*batch)
    theta = np.asarray(objective.theta)
    X, y, w = np.vstack(past.X), np.concatenate(past.y), np.concatenate(past.w)
    return past.gradient(theta), np.average(loss.value(X @ theta.ravel(), y), weights=w)


@pytest.mark.parametrize("loss", [Square(), Logistic(), Sigmoid(), Gaussian()], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_carried_predictions_equal_recomputed_ones(loss, weighted, kind, rng):
    batches = make_batches(rng, 40, signed=isinstance(loss, (Logistic, Sigmoid)), weighted=weighted)
    objective = LinearObjective(loss)
    play(objective, L1Ball(2.0), [(kind(X), *rest) for X, *rest in batches])
    gradient, value = recomputed(objective, loss, batches, (6,))
    np.testing.assert_allclose(objective.gradient(), gradient, atol=1e-12)
    assert objective.value() == pytest.approx(value, abs=1e-12)
    X = np.vstack([batch[0] for batch in batches])
    np.testing.assert_allclose(objective.predictions(), X @ objective.theta, atol=1e-12)
    assert objective.n_observations == len(X)


# Whole numbers are multiplied by a kernel that takes seconds to compile.
@pytest.mark.parametrize("n", [20, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bytes_are_multiplied_as_exactly_as_single_precision(n, fit_intercept, rng):
    objective, past = LinearObjective(Logistic(), fit_intercept=fit_intercept), []
    for k in range(20):
        X, y = rng.integers(0, 256, (13, n), dtype=np.uint8), rng.choice([-1.0, 1.0], 13)
        past.append((X.astype(float), y))
        play(objective, L2Ball(0.01), [(X, y)], steps=(0.3 if k else 1.0,))
    X, y = np.vstack([X for X, _ in past]), np.concatenate([y for _, y in past])
    gradient = objective.gradient()  # which renews the intercept
    slopes = Logistic().derivative(X @ objective.theta + objective.intercept, y)
    np.testing.assert_allclose(gradient, slopes @ X / len(X), rtol=0, atol=2e-6 * 255)
    np.testing.assert_allclose(objective.predictions(), X @ objective.theta, rtol=0, atol=1e-6)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 12), sparse=st.booleans())
def test_any_stream_and_any_moves_keep_predictions_exact(seed, count, sparse):
    rng = np.random.default_rng(seed)
    batches = make_batches(rng, count)
    objective = LinearObjective(Square())
    kind = sp.csr_array if sparse else np.asarray
    play(objective, Box(-1.0, 1.0), [(kind(X), y) for X, y in batches])
    X = np.vstack([X for X, _ in batches])
    np.testing.assert_allclose(objective.predictions(), X @ objective.theta, atol=1e-11)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("flat", [False, True])
def test_matrix_features_along_rank_one_atoms(kind, flat, rng):
    objective = LinearObjective(Logistic(), shape=(3, 4))
    batches = [(rng.standard_normal((5, 3, 4)), rng.choice([-1.0, 1.0], 5)) for _ in range(10)]
    for X, y in batches:
        shaped = kind(X.reshape(5, -1)) if flat or kind is sp.csr_array else X
        objective.observe(shaped, y)
        objective.move(TraceNormBall(2.0).lmo(objective.gradient()), 0.3)
    gradient, value = recomputed(objective, Logistic(), batches, (3, 4))
    assert objective.theta.shape == (3, 4)
    np.testing.assert_allclose(objective.gradient(), gradient, atol=1e-12)
    assert objective.value() == pytest.approx(value)


def test_dense_and_sparse_batches_may_follow_each_other(rng):
    batches = make_batches(rng, 12)
    for first, second in ((np.asarray, sp.csr_array), (sp.csr_array, np.asarray)):
        objective = LinearObjective(Square())
        for k, (X, y) in enumerate(batches):
            objective.observe((second if k % 2 else first)(X), y)
        gradient, _ = recomputed(objective, Square(), batches, (6,))
        np.testing.assert_allclose(objective.gradient(), gradient, atol=1e-12)


def test_a_loss_that_returns_its_own_input_does_no_harm(rng):
    class HalfSquare(Square):
        def derivative(self, z, y):
            return z  # as a user may write it for y = 0

    objective = LinearObjective(HalfSquare())
    X = rng.standard_normal((5, 6))
    objective.observe(X, np.zeros(5))
    objective.move(L1Ball(1.0).lmo(rng.standard_normal(6)), 1.0)
    objective.gradient()
    np.testing.assert_allclose(objective.predictions(), X @ objective.theta)


def test_duplicate_entries_of_a_sparse_row_are_summed():
    X = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))
    objective = LinearObjective(Square())
    objective.observe(X, [1.0])
    np.testing.assert_array_equal(objective.gradient(), [0.0, -3.0, 0.0])


def test_the_loss_of_a_batch_is_its_weighted_mean_before_it_is_learned(rng):
    for objective in (LinearObjective(Square()), RunningLeastSquares(2)):
        assert objective.observe(np.eye(2), [1.0, 3.0]) == pytest.approx((0.5 + 4.5) / 2)
        assert objective.observe(np.eye(2), [1.0, 3.0], [3.0, 1.0]) == pytest.approx(
            (3 * 0.5 + 4.5) / 4
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("constraint", [L1Ball(2.0), Box(-1.0, 1.0)], ids=["l1", "box"])
def test_running_least_squares_equals_the_linear_objective(weighted, kind, constraint, rng):
    batches = make_batches(rng, 40, weighted=weighted)
    running, linear = RunningLeastSquares(6), LinearObjective(Square())
    for objective in (running, linear):
        play(objective, constraint, [(kind(X), *rest) for X, *rest in batches])
    np.testing.assert_allclose(running.theta, linear.theta, atol=1e-13)
    np.testing.assert_allclose(running.gradient(), linear.gradient(), atol=1e-12)
    assert running.value() == pytest.approx(linear.value(), abs=1e-12)
    assert running.smoothness() == pytest.approx(linear.smoothness(), rel=1e-6)
    np.testing.assert_allclose(running.batch_gradient(), linear.batch_gradient(), atol=1e-12)


def test_running_least_squares_keeps_nothing_of_the_past_but_its_sums(rng):
    objective = RunningLeastSquares(4)
    sizes = []
    for _ in range(20):
        objective.observe(rng.standard_normal((30, 4)), rng.standard_normal(30))
        sizes.append(len(pickle.dumps(objective.state_dict())))
    assert sizes[-1] <= sizes[0] + 8  # counters take a byte more


@pytest.mark.parametrize(
    "make", [lambda: LinearObjective(Square()), lambda: RunningLeastSquares(6)]
)
def test_many_moves_do_not_drift(make, rng):
    objective = make()
    X, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    objective.observe(X, y)
    for k in range(5000):
        atom = L1Ball(1.0).lmo(rng.standard_normal(6))
        objective.move(atom, -0.01 if k % 2 else 0.011)
    expected = X.T @ (X @ objective.theta - y) / 20
    np.testing.assert_allclose(objective.gradient(), expected, atol=1e-11)


def test_refreshing_repairs_what_has_drifted(rng, monkeypatch):
    monkeypatch.setattr("onlinefw.objectives.linear.REFRESH_EVERY", 10)
    monkeypatch.setattr("onlinefw.objectives.least_squares.REFRESH_EVERY", 10)
    X, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    for objective in (LinearObjective(Square()), RunningLeastSquares(6)):
        objective.observe(X, y)
        held = (
            objective._shared.past._weighed(0)[0]
            if isinstance(objective, LinearObjective)
            else objective._sums.H_theta
        )
        held += 1.0
        for _ in range(10):
            objective.move(L1Ball(1.0).lmo(rng.standard_normal(6)), 0.01)
        expected = X.T @ (X @ objective.theta - y) / 20
        np.testing.assert_allclose(objective.gradient(), expected, atol=1e-13)


def test_single_precision_rows_are_summed_in_double_precision(rng):
    X = rng.standard_normal((50, 4)).astype(np.float32)
    dense, sparse = RunningLeastSquares(4), RunningLeastSquares(4)
    dense.observe(X, np.ones(50))
    sparse.observe(sp.csr_array(X), np.ones(50))
    sums = [one.past_state()["past"]["H"] for one in (dense, sparse)]
    np.testing.assert_allclose(sums[1], sums[0], rtol=1e-14)


def test_the_value_is_never_negative(rng):
    X = np.column_stack((np.ones(100), rng.standard_normal(100)))
    objective = RunningLeastSquares(2)
    objective.observe(X, 1e8 * X[:, 0])
    objective.move(L1Ball(1e8).lmo(np.array([-1.0, 0.0])), 1.0)
    assert 0.0 <= objective.value() < 1.0


def test_theta_may_be_put_at_an_array_of_any_order(rng):
    objective = LinearObjective(Square(), shape=(3, 4))
    objective.observe(np.eye(12), np.zeros(12))
    point = np.asfortranarray(rng.standard_normal((3, 4)))
    objective.put(point)
    objective.move(L1Ball(2.0).lmo(-np.eye(3, 4)), 0.5)
    np.testing.assert_allclose(objective.predictions(), objective.theta.ravel())
    point[0, 0] = 7.0  # the caller's array is still the caller's


@pytest.mark.parametrize("loss", [Square(), Logistic()], ids=str)
def test_lines_describe_the_objective_between_theta_and_an_atom(loss, rng):
    objectives = [LinearObjective(loss)]
    if isinstance(loss, Square):
        objectives.append(RunningLeastSquares(6))
    for objective in objectives:
        play(objective, L1Ball(2.0), make_batches(rng, 10, signed=True))
        atom = L1Ball(2.0).lmo(rng.standard_normal(6))
        line, h = objective.line(atom), 1e-6
        for c in (-0.2, 0.0, 0.7):
            numeric = (line.value(c + h) - line.value(c - h)) / (2 * h)
            assert line.slope(c) == pytest.approx(numeric, rel=1e-6, abs=1e-8)
        if line.curvature is not None:
            bend = (line.slope(0.5 + h) - line.slope(0.5 - h)) / (2 * h)
            assert line.curvature == pytest.approx(bend, rel=1e-6)
        expected = line.value(0.7)
        objective.move(atom, 0.7)
        assert objective.value() == pytest.approx(expected)


def test_the_batch_gradient_is_that_of_the_last_batch_alone(rng):
    batches = make_batches(rng, 5, weighted=True)
    objective = LinearObjective(Square())
    play(objective, L1Ball(2.0), batches)
    gradient, _ = recomputed(objective, Square(), batches[-1:], (6,))
    np.testing.assert_allclose(objective.batch_gradient(), gradient, atol=1e-12)
    X, _, w = batches[-1]
    top = np.linalg.eigvalsh(X.T @ (w[:, None] * X) / w.sum())[-1]
    assert objective.batch_smoothness() == pytest.approx(top)


def test_smoothness_is_the_largest_eigenvalue_times_that_of_the_loss(rng):
    X = rng.standard_normal((50, 6))
    objective = LinearObjective(Logistic())
    objective.observe(X, np.ones(50))
    assert objective.smoothness() == pytest.approx(
        0.25 * np.linalg.eigvalsh(X.T @ X / 50)[-1], rel=1e-6
    )


def test_sparse_storage_merges_now_and_then_and_loses_nothing(rng):
    from onlinefw.past.host.sparse_rows import SparseRows

    rows, kept, merges, bulk = SparseRows((30,)), [], 0, 0
    for _ in range(200):
        X = sp.random_array((3, 30), density=0.2, rng=rng, format="csr")
        rows = rows.extended(X)
        kept.append(X.toarray())
        merges += rows._bulk_rows != bulk
        bulk = rows._bulk_rows
    X = np.vstack(kept)
    assert 5 < merges < 50  # a geometric schedule, not one merge per batch
    v, r = rng.standard_normal(30), rng.standard_normal(len(X))
    np.testing.assert_allclose(rows.matvec(v), X @ v)
    np.testing.assert_allclose(rows.rmatvec(r), X.T @ r)
    for j in range(30):
        np.testing.assert_array_equal(rows.column(j), X[:, j])
    np.testing.assert_allclose(rows.columns(np.array([3]), np.array([2.0])), 2 * X[:, 3])
    np.testing.assert_allclose(rows.columns(np.arange(30), v), X @ v)


# The oracle --------------------------------------------------------------------------------------


def test_the_oracle_is_called_once_per_gradient_with_the_round_number():
    calls = []

    def fn(theta, t):
        calls.append(t)
        return theta - 1.0

    objective = GradientOracle(fn, 3, value=lambda theta: float(theta.sum()))
    assert objective.observe() == 0.0
    objective.gradient()
    objective.gradient()
    assert calls == [1]
    objective.move(L1Ball(3.0).lmo(objective.gradient()), 1.0)
    assert objective.observe() == 3.0
    assert calls == [1, 2]


def test_without_a_value_the_oracles_loss_is_nan():
    objective = GradientOracle(lambda theta, t: theta, 3)
    assert np.isnan(objective.observe())
    assert np.isnan(objective.value())


@pytest.mark.parametrize(
    ("answer", "words"),
    [(np.zeros(4), "shape"), (np.full(3, np.nan), "NaN"), (np.full(3, np.inf), "infinity")],
)
def test_a_bad_answer_of_the_oracle_is_refused_before_the_round_counts(answer, words):
    objective = GradientOracle(lambda theta, t: answer, 3)
    with pytest.raises(ValueError, match=words):
        objective.observe()
    assert objective.n_observations == 0


def test_sparse_answers_of_the_oracle_are_checked_too():
    bad = sp.coo_array(([np.nan], ([0], [1])), shape=(2, 3))
    objective = GradientOracle(lambda theta, t: bad, (2, 3))
    with pytest.raises(ValueError, match="NaN"):
        objective.observe()
    assert objective.n_observations == 0


def test_large_but_finite_gradients_pass():
    objective = GradientOracle(lambda theta, t: np.full(3, 1e200), 3)
    objective.observe()
    assert objective.gradient()[0] == 1e200


# Refusals ----------------------------------------------------------------------------------------

X0, Y0 = np.ones((2, 3)), np.array([1.0, -1.0])
BAD_BATCHES = {
    "nan in X": (np.array([[1, 2, np.nan], [1, 2, 3]]), Y0, None, "nan in row 0, column 2; remove"),
    "inf in X": (np.array([[1, 2, 3], [1, np.inf, 3]]), Y0, None, "inf in row 1"),
    "nan in a sparse X": (sp.csr_array([[0, 0, 0], [0, np.nan, 0]]), Y0, None, "nan in row 1"),
    "too large to square": (np.full((2, 3), 1e200), Y0, None, "overflows: rescale"),
    "complex": (np.full((2, 3), 1j), Y0, None, "real"),
    "y too large": (X0, [1.0, -1e300], None, "y has -1e.300 in row 1"),
    "y a number": (X0, 1.0, None, r"one value per row, got shape \(\)$"),
    "two targets per row": (X0, np.ones((2, 2)), None, r"got shape \(2, 2\)$"),
    "nan in y": (X0, [1.0, np.nan], None, "y has nan in row 1"),
    "too wide": (np.ones((2, 4)), Y0, None, r"rows of shape \(4,\), but theta has shape \(3,\)"),
    "sparse too wide": (
        sp.csr_array(np.ones((2, 4))),
        Y0,
        None,
        r"rows of shape \(4,\), but theta has shape \(3,\)",
    ),
    "lengths differ": (X0, [1.0], None, "2 rows but y has 1"),
    "empty": (np.ones((0, 3)), [], None, "empty"),
    "no columns": (np.ones((2, 0)), Y0, None, "rows of shape|no features"),
    "masked": (np.ma.masked_equal(X0, 1.0), Y0, None, "masked"),
    "one row without its axis": (np.ones(3), [1.0], None, r"reshape\(1, -1\)"),
    "y not flat": (X0, [[1.0], [-1.0]], None, "ravel"),
    "text": ([["a", "b", "c"]] * 2, Y0, None, "numeric"),
    "no data": (None, None, None, "X is missing"),
    "no targets": (X0, None, None, "y is missing"),
    "negative weight": (X0, Y0, [1.0, -1.0], "negative"),
    "nan weight": (X0, Y0, [1.0, np.nan], "sample_weight has nan"),
    "weights all zero": (X0, Y0, [0.0, 0.0], "zero for every row"),
    "weights too short": (X0, Y0, [1.0], "2 rows but sample_weight has 1"),
}


@pytest.mark.parametrize("name", list(BAD_BATCHES))
@pytest.mark.parametrize(
    "make", [lambda: LinearObjective(Logistic(), n_features=3), lambda: RunningLeastSquares(3)]
)
def test_a_bad_batch_is_refused_and_nothing_changes(make, name):
    X, y, weights, words = BAD_BATCHES[name]
    objective = make()
    objective.observe(X0, Y0)
    before = objective.state_dict()
    with pytest.raises(ValueError, match=words):
        objective.observe(X, y, weights)
    after = objective.state_dict()
    assert repr(before) == repr(after)


def test_labels_outside_those_of_the_loss_are_refused_and_nothing_changes():
    objective = LinearObjective(Logistic())
    with pytest.raises(ValueError, match=r"Logistic\(\) needs labels in \{-1, \+1\}, got 0"):
        objective.observe(X0, [1.0, 0.0])
    assert objective.shape is None
    assert objective.n_observations == 0


def test_asking_before_any_data_is_refused():
    for objective in (LinearObjective(Square(), n_features=2), RunningLeastSquares(2)):
        for question in (objective.gradient, objective.value, objective.smoothness):
            with pytest.raises(ValueError, match="nothing has been observed yet"):
                question()


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearObjective(Square(), n_features=2, shape=(1, 2)),
        lambda: LinearObjective(Square(), n_features=0),
        lambda: LinearObjective(Square(), n_features=2.5),
        lambda: LinearObjective(Square(), shape=(3,)),
        lambda: LinearObjective(Square(), shape=6),
        lambda: LinearObjective(Square),
        lambda: LinearObjective("square"),
        lambda: RunningLeastSquares(0),
        lambda: RunningLeastSquares(2.5),
        lambda: GradientOracle(lambda theta, t: theta, ()),
        lambda: GradientOracle(lambda theta, t: theta, (0, 3)),
        lambda: GradientOracle(lambda theta, t: theta, 3, low_rank=True),
        lambda: GradientOracle("gradient", 3),
    ],
)
def test_impossible_objectives_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_matrix_shaped_rows_need_a_shape():
    with pytest.raises(ValueError, match=r"shape=\(3, 4\)"):
        LinearObjective(Square()).observe(np.ones((2, 3, 4)), Y0)


def test_the_oracle_takes_no_data():
    with pytest.raises(ValueError, match="takes no data"):
        GradientOracle(lambda theta, t: theta, 3).observe(X0, Y0)
