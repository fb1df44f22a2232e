"""Observed entries along a line, at a given point, and their curvature."""

import numpy as np
import pytest

from onlinefw import _threads, losses
from onlinefw.atoms import RankOne
from onlinefw.baselines import batch_frank_wolfe
from onlinefw.iterates import LowRank
from onlinefw.linalg import top_singular_pair
from onlinefw.objectives import LinearObjective, ObservedEntries, merge_rule
from onlinefw.past.host import line as host_line
from onlinefw.sets import TraceNormBall

from ..pairs import every_pair
from ..test_losses import TARGETS
from .test_entries import (
    EVERY_LOSS,
    SHAPE,
    Pseudo,
    assert_predictions,
    dense_gradient,
    mean_loss,
    noisy_low_rank,
    observations,
    play,
    sort_all_in,
)

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def loss_and_targets(loss):
    return (Pseudo(), [-1.0, 2.0]) if loss == "own" else (loss, TARGETS[loss])


def random_batches(rng, targets, rounds=60, size=40):
    return [(*observations(rng, size, targets), rng.uniform(0.5, 2.0, size)) for _ in range(rounds)]


def random_atom(rng, scale=-3.0):
    u, v = rng.standard_normal(SHAPE[0]), rng.standard_normal(SHAPE[1])
    return RankOne(u / np.linalg.norm(u), scale, v / np.linalg.norm(v))


def keep_both_parts(monkeypatch):
    """Merge early, so that there are entries in the bulk and in the tail."""
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", 500)


def both_parts(objective):
    return 0 < objective.n_newest < objective.n_entries


# Lines -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
@DTYPES
def test_a_line_equals_a_dense_recomputation(loss, dtype, rng, monkeypatch):
    keep_both_parts(monkeypatch)
    monkeypatch.setattr(host_line, "CHUNK", 100)
    loss, targets = loss_and_targets(loss)
    batches = random_batches(rng, targets, rounds=74)
    objective = ObservedEntries(SHAPE, loss, dtype=dtype)
    learner = play(objective, batches)
    objective.move(random_atom(rng), 0.1)  # its predictions have not followed yet
    assert both_parts(objective)
    theta, atom = learner.theta.dense().astype(float), random_atom(rng)
    line = objective.line(atom)
    tol = 1e-4 if dtype == np.float32 else 1e-10
    for c in (0.0, 0.3, 1.0, -0.2):
        point = theta + c * (atom.dense() - theta)
        slope = np.sum(dense_gradient(loss, batches, point) * (atom.dense() - theta))
        assert line.value(c) == pytest.approx(mean_loss(loss, batches, point), rel=tol)
        assert line.slope(c) == pytest.approx(slope, rel=tol, abs=tol)
    if loss.quadratic:
        ends = [
            np.sum(dense_gradient(loss, batches, point) * (atom.dense() - theta))
            for point in (theta, atom.dense())
        ]
        assert line.curvature == pytest.approx(ends[1] - ends[0], rel=tol)
    else:
        assert line.curvature is None


@pytest.mark.parametrize(
    "loss", [losses.Square(), losses.Gaussian(), losses.Correntropy(0.5), "own"], ids=str
)
@DTYPES
def test_with_offsets_the_line_and_its_value_equal_a_dense_recomputation(
    loss, dtype, rng, monkeypatch
):
    keep_both_parts(monkeypatch)
    loss, targets = loss_and_targets(loss)
    batches = random_batches(rng, targets, rounds=74)
    objective = ObservedEntries(SHAPE, loss, dtype=dtype)
    learner = play(objective, batches)
    rows, columns = rng.standard_normal(SHAPE[0]), rng.standard_normal(SHAPE[1])
    objective.set_offsets(rows, columns)
    assert both_parts(objective)
    theta, atom, offset = learner.theta.dense().astype(float), random_atom(rng), rows[:, None]
    offset = offset + columns
    line = objective.line(atom)
    tol = 1e-4 if dtype == np.float32 else 1e-10
    assert objective.value() == pytest.approx(mean_loss(loss, batches, theta + offset), rel=tol)
    for c in (0.0, 0.3, 1.0, -0.2):
        point = theta + c * (atom.dense() - theta)  # theta moves, the offsets do not
        slope = np.sum(dense_gradient(loss, batches, point + offset) * (atom.dense() - theta))
        assert line.value(c) == pytest.approx(mean_loss(loss, batches, point + offset), rel=tol)
        assert line.slope(c) == pytest.approx(slope, rel=tol, abs=tol)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
def test_the_line_leads_where_the_move_goes(loss, rng):
    loss, targets = loss_and_targets(loss)
    objective = ObservedEntries(SHAPE, loss, dtype=float)
    play(objective, random_batches(rng, targets, rounds=20))
    atom = random_atom(rng)
    line = objective.line(atom)
    before, there = line.value(0.0), line.value(0.4)
    assert objective.value() == pytest.approx(before, rel=1e-12)
    objective.move(atom, 0.4)
    assert objective.value() == pytest.approx(there, rel=1e-10)


def test_one_read_is_enough_for_a_quadratic_line(rng):
    objective = ObservedEntries(SHAPE)
    play(objective, random_batches(rng, [1.0, -2.0], rounds=5))
    objective.gradient()  # carries out what is pending
    before = objective.reads
    line = objective.line(random_atom(rng))
    _ = [line.value(c) + line.slope(c) for c in (0.0, 0.5)]
    assert objective.reads == before + 1


def test_a_square_loss_of_ones_own_is_not_taken_for_the_built_in_one(rng):
    class Shifted(losses.Square):
        pass

    X, y = observations(rng, 50, [1.0, -2.0])
    objective = ObservedEntries(SHAPE, Shifted(), dtype=float)
    objective.observe(X, y)
    assert objective.value() == pytest.approx(np.mean(y**2) / 2)


def test_a_steep_loss_overflows_to_infinity_and_not_to_nan(rng):
    X, y = observations(rng, 300, [0.0, 1.0, 7.0])
    objective = ObservedEntries(SHAPE, losses.Poisson(), dtype=float)
    objective.observe(X, y)
    result = batch_frank_wolfe(objective, TraceNormBall(1e5), max_iter=10)
    assert np.isfinite(result.objective)
    assert np.all(np.diff(result.history["objective"]) <= 1e-9)


def test_nothing_observed_has_no_line(rng):
    with pytest.raises(ValueError, match="nothing has been observed"):
        ObservedEntries(SHAPE).line(random_atom(rng))


# Batch Frank-Wolfe on the store ------------------------------------------------------------------


def one_hot(X):
    rows = np.zeros((len(X), SHAPE[0] * SHAPE[1]))
    rows[np.arange(len(X)), X[:, 0] * SHAPE[1] + X[:, 1]] = 1.0
    return rows


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
def test_batch_frank_wolfe_is_that_of_one_hot_rows(loss, rng):
    loss, targets = loss_and_targets(loss)
    X, y = observations(rng, 600, targets)
    w = rng.uniform(0.5, 2.0, 600)
    store = ObservedEntries(SHAPE, loss, dtype=float, lmo_steps=100, lmo_tol=0.0)
    linear = LinearObjective(loss, shape=SHAPE)
    store.observe(X, y, w)
    linear.observe(one_hot(X), y, w)
    a, b = (batch_frank_wolfe(o, TraceNormBall(8.0), max_iter=15) for o in (store, linear))
    np.testing.assert_allclose(a.theta.dense(), b.theta, atol=1e-6)
    for name in ("objective", "gap", "step_size"):
        np.testing.assert_allclose(a.history[name], b.history[name], rtol=1e-6, atol=1e-6)


@DTYPES
def test_line_search_never_goes_up_and_reaches_the_optimum(dtype, rng):
    batches = [(X, y, np.ones(len(y))) for X, y in noisy_low_rank(rng, 20, 60)]
    objective = ObservedEntries(SHAPE, dtype=dtype)
    for batch in batches:
        objective.observe(*batch)
    result = batch_frank_wolfe(objective, TraceNormBall(20.0), max_iter=500, tol=5e-3)
    assert result.success
    assert np.all(np.diff(result.history["objective"]) <= 1e-6)
    theta = result.theta.dense().astype(float)
    gradient = dense_gradient(losses.Square(), batches, theta)
    assert np.sum(gradient * theta) + 20.0 * np.linalg.norm(gradient, 2) <= 5.05e-3
    assert result.objective == pytest.approx(mean_loss(losses.Square(), batches, theta), rel=1e-4)


# Placing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "dtype", "kind"),
    every_pair(EVERY_LOSS, [np.float32, np.float64], ["dense", "low rank"]),
)
def test_theta_can_be_put_anywhere(loss, dtype, kind, rng, monkeypatch):
    keep_both_parts(monkeypatch)
    loss, targets = loss_and_targets(loss)
    batches = random_batches(rng, targets, rounds=74)
    objective = ObservedEntries(SHAPE, loss, dtype=dtype)
    play(objective, batches)
    assert both_parts(objective)
    left, right = rng.standard_normal((12, 3)) / 3, rng.standard_normal((17, 3))
    weights = np.array([1.0, -0.5, 2.0])
    point, expected = (left * weights) @ right.T, (left * weights) @ right.T
    if kind == "low rank":
        point = LowRank(SHAPE)
        point.put(left, weights, right)
    theta = objective.theta
    objective.put(point)
    tol = 1e-4 if dtype == np.float32 else 1e-10
    assert objective.theta is theta  # the learner's theta is that object itself
    assert theta.dtype == dtype
    np.testing.assert_allclose(theta.dense(), expected, atol=tol)
    assert objective.value() == pytest.approx(mean_loss(loss, batches, expected), rel=tol)
    gradient = dense_gradient(loss, batches, expected)
    scale = tol * np.abs(gradient).max()
    np.testing.assert_allclose(objective.gradient().toarray(), gradient, atol=scale)
    block = rng.standard_normal((17, 4))
    np.testing.assert_allclose(objective.gradient() @ block, gradient @ block, atol=20 * scale)
    block = rng.standard_normal((12, 4))
    np.testing.assert_allclose(objective.gradient().T @ block, gradient.T @ block, atol=20 * scale)


def test_after_placing_it_moves_on_from_there(rng):
    objective = ObservedEntries(SHAPE, dtype=float)
    play(objective, random_batches(rng, [1.0, -2.0], rounds=10))
    point, atom = rng.standard_normal(SHAPE), random_atom(rng)
    objective.put(point)
    objective.move(atom, 0.25)
    X, y = observations(rng, 30, [1.0])
    objective.observe(X, y)
    expected = 0.75 * point + 0.25 * atom.dense()
    np.testing.assert_allclose(objective.theta.dense(), expected, atol=1e-12)
    assert_predictions(objective, expected, 1e-12)
    objective.put(np.zeros(SHAPE))
    assert objective.theta.n_atoms == 0
    assert_predictions(objective, np.zeros(SHAPE), 0.0)


def test_a_point_of_too_many_terms_keeps_its_leading_ones_and_predictions_agree(rng):
    objective = ObservedEntries(SHAPE, dtype=float, max_atoms=8)
    X, y = observations(rng, 500, [1.0, -2.0])
    objective.observe(X, y)
    point = rng.standard_normal(SHAPE)
    u, s, vt = np.linalg.svd(point)
    objective.put(point)
    expected = (u[:, :4] * s[:4]) @ vt[:4]
    np.testing.assert_allclose(objective.theta.dense(), expected, atol=1e-12)
    value = np.mean((expected[X[:, 0], X[:, 1]] - y) ** 2) / 2
    assert objective.value() == pytest.approx(value)


def test_a_point_that_does_not_fit_is_refused_and_nothing_changes(rng):
    objective = ObservedEntries(SHAPE)
    objective.observe(*observations(rng, 50, [1.0]))
    before = repr(objective.state_dict())
    for rows, columns in ((np.zeros(3), np.zeros(17)), (np.zeros(12), 0.0)):
        with pytest.raises(ValueError, match="12 and 17, got shapes"):
            objective.set_offsets(rows, columns)
    for point, words in (
        (np.zeros((3, 3)), r"\(3, 3\).*\(12, 17\)"),
        (LowRank((3, 3)), r"\(3, 3\).*\(12, 17\)"),
        (np.full(SHAPE, np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            objective.put(point)
    assert repr(objective.state_dict()) == before


def test_a_released_objective_is_at_zero(rng):
    objective = ObservedEntries(SHAPE, dtype=float)
    X, y = observations(rng, 2000, [1.0, -2.0])
    objective.observe(X, y)
    batch_frank_wolfe(objective, TraceNormBall(5.0), max_iter=5)
    assert objective.value() == pytest.approx(np.mean(y**2) / 2, rel=1e-12)


# Curvature ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [losses.Square(), losses.Logistic(), losses.Sigmoid(2.0)], ids=str)
def test_smoothness_bounds_the_curvature_of_the_entry_that_weighs_most(loss, rng, monkeypatch):
    keep_both_parts(monkeypatch)
    for rounds in (1, 74):  # all in the tail; in both stores and the tail
        objective = ObservedEntries(SHAPE, loss, dtype=float)
        weight = np.zeros(SHAPE)
        for X, y, w in random_batches(rng, TARGETS[loss], rounds=rounds):
            objective.observe(X, y, w)
            np.add.at(weight, (X[:, 0], X[:, 1]), w)
        exact = loss.smoothness * weight.max() / weight.sum()
        assert exact * (1 - 1e-12) <= objective.smoothness() <= 2.0 * exact
    assert both_parts(objective)


def test_smoothness_is_exact_where_everything_is_sorted(rng):
    objective = ObservedEntries((20, 30), dtype=float)
    X, y = observations(rng, 5000, [1.0], (20, 30))
    objective.observe(X, y)
    sort_all_in(objective)
    assert objective.n_newest == 0
    counts = np.bincount(X[:, 0] * 30 + X[:, 1])
    assert objective.smoothness() == pytest.approx(counts.max() / 5000)


@pytest.mark.slow
def test_threads_change_rounding_only(rng, monkeypatch):
    keep_both_parts(monkeypatch)
    batches, atom = random_batches(rng, [1.0, -1.0], rounds=74), random_atom(rng)
    point, block = rng.standard_normal(SHAPE), rng.standard_normal((12, 4))
    monkeypatch.setattr(_threads, "_wanted", 3)  # three blocks of rows
    monkeypatch.setattr(_threads, "SMALL_LOOP", 0)
    for loss in (losses.Square(), losses.Logistic()):
        objective = ObservedEntries(SHAPE, loss, dtype=float)
        play(objective, batches)
        objective.put(point)
        assert len(objective._past._store.blocks()) == 4
        line, there = objective.line(atom), 0.7 * point + 0.3 * atom.dense()
        assert objective.value() == pytest.approx(mean_loss(loss, batches, point))
        assert line.value(0.3) == pytest.approx(mean_loss(loss, batches, there))
        slope = np.sum(dense_gradient(loss, batches, there) * (atom.dense() - point))
        assert line.slope(0.3) == pytest.approx(slope)
        gradient = dense_gradient(loss, batches, point)
        np.testing.assert_allclose(objective.gradient().T @ block, gradient.T @ block, atol=1e-12)


def test_the_gradients_block_products_find_its_top_pair(rng):
    objective = ObservedEntries(SHAPE, dtype=float)
    play(objective, random_batches(rng, [1.0, -2.0], rounds=10))
    gradient = objective.gradient()
    top = top_singular_pair(gradient.toarray())[1]
    assert top == pytest.approx(np.linalg.norm(gradient @ np.eye(17), 2))
