"""Corrective sweeps: the factors of theta re-optimised inside the ball."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw import RidgeSweeps
from onlinefw.losses import Correntropy, Gaussian, Logistic, Square
from onlinefw.objectives import LinearObjective, ObservedEntries, RunningBiases
from onlinefw.past.host.regressions import ColumnSlices
from onlinefw.sets import L1Ball, TraceNormBall, WeightedTraceNormBall

SHAPE = (30, 20)


def low_rank(rng, n, noise=0.0, shape=SHAPE, rank=2):
    """Noisy entries of a matrix of low rank, with weights; and the matrix."""
    truth = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    X = np.column_stack([rng.integers(size, size=n) for size in shape])
    y = truth[X[:, 0], X[:, 1]] + noise * rng.standard_normal(n)
    return X, y, rng.uniform(0.5, 2.0, n), truth


def learned(sweeps, X, y, w=None, ball=None, size=100, **options):
    objective = ObservedEntries(SHAPE, **{"dtype": float, **options})
    learner = ofw.OnlineFrankWolfe(objective, ball or TraceNormBall(60.0), corrective=sweeps)
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        learner.observe(X[part], y[part], None if w is None else w[part])
    return learner


def mean_loss(learner, X, y, w=None):
    """Of theta plus offsets, observation by observation."""
    biases = learner.objective.offsets
    dense = np.asarray(learner.theta, dtype=float)
    if biases is not None:
        dense = dense + biases.mean + biases.rows[:, None] + biases.columns
    return np.average((dense[X[:, 0], X[:, 1]] - y) ** 2, weights=w) / 2


def weighted_ball(rng, radius):
    return WeightedTraceNormBall(radius, rng.uniform(0.5, 2.0, 30), rng.uniform(0.5, 2.0, 20))


def dense_sweep(left, right, X, y, w, ridge, rows=None, columns=None):
    """One alternation, right then left, by a dense solve per column and row; then balanced."""
    rows = np.ones(len(left)) if rows is None else rows
    columns = np.ones(len(right)) if columns is None else columns

    def solve(features, index, targets, weights, penalty):
        h = features[index]
        gram = (h.T * weights) @ h + ridge * penalty**2 * np.eye(h.shape[1])
        return np.linalg.solve(gram, h.T @ (weights * targets))

    def half(features, this, other, n, penalties):
        return np.array(
            [
                solve(features, other[this == k], y[this == k], w[this == k], penalties[k])
                for k in range(n)
            ]
        )

    right = half(left, X[:, 1], X[:, 0], len(right), columns)
    left = half(right, X[:, 0], X[:, 1], len(left), rows)
    norms = [np.linalg.norm(x * p[:, None]) for x, p in ((left, rows), (right, columns))]
    scale = np.sqrt(norms[1] / norms[0])
    return scale * left, right / scale


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offsets", [False, True])
def test_a_correction_is_the_alternation_written_out(weighted, offsets, rng):
    X, y, w, _ = low_rank(rng, 2500, noise=0.5)
    y = y + 2.0
    ball = weighted_ball(rng, 150.0) if weighted else TraceNormBall(150.0)
    sweeps = RidgeSweeps(3, ridge=4.0, sweeps=2, start=10**9)
    biases = RunningBiases() if offsets else None
    learner = learned(sweeps, X, y, w, ball, offsets=biases)
    u, s, v = learner.theta.svd()
    left, right = u[:, :3] * np.sqrt(s[:3]), v[:, :3] * np.sqrt(s[:3])
    rest = y
    if offsets:
        rest = y - (biases.mean + biases.rows[X[:, 0]] + biases.columns[X[:, 1]])
    for _ in range(2):
        penalties = (ball.rows, ball.columns) if weighted else (None, None)
        left, right = dense_sweep(left, right, X, rest, w, 4.0, *penalties)
    expected = left @ right.T
    expected *= min(1.0, 150.0 / ball.norm(expected))
    learner.correct()
    np.testing.assert_allclose(learner.theta.dense(), expected, atol=1e-8)
    assert learner.objective.value() == pytest.approx(mean_loss(learner, X, y, w))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_matrix_of_rank_two_is_recovered(dtype, weighted, rng):
    X, y, _, truth = low_rank(rng, 3000)
    ball = weighted_ball(rng, 1.0) if weighted else TraceNormBall(1.0)
    ball = type(ball)(1.01 * ball.norm(truth), *((ball.rows, ball.columns) if weighted else ()))
    learner = learned(RidgeSweeps(2, ridge=1e-3, sweeps=20), X, y, None, ball, dtype=dtype)
    plain = learned(None, X, y, None, ball, dtype=dtype)
    learner.correct()
    assert np.abs(learner.theta.dense() - truth).max() < 1e-2
    assert np.abs(plain.theta.dense() - truth).max() > 0.1  # rank-one steps are not there yet


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    ridge=st.sampled_from([1e-6, 0.1, 30.0, 1e6, "auto"]),
    rank=st.sampled_from([1, 3, 50]),
    radius=st.sampled_from([0.5, 20.0, 500.0]),
    weighted=st.booleans(),
    noise=st.sampled_from([0.0, 1.0]),
    offsets=st.booleans(),
    max_atoms=st.sampled_from([None, 6]),
)
def test_theta_stays_in_the_ball_and_what_decides_does_not_get_worse(
    seed, ridge, rank, radius, weighted, noise, offsets, max_atoms
):
    rng = np.random.default_rng(seed)
    X, y, w, _ = low_rank(rng, 2000, noise)
    ball = weighted_ball(rng, radius) if weighted else TraceNormBall(radius)
    sweeps = RidgeSweeps(rank, ridge=ridge, start=10**9)
    biases = RunningBiases() if offsets else None
    learner = learned(sweeps, X, y, w, ball, 400, offsets=biases, max_atoms=max_atoms)
    objective = learner.objective
    for _ in range(2):
        old, before = objective.theta.copy(), objective.value()
        learner.correct()
        assert ball.norm(np.asarray(learner.theta)) <= radius * (1 + 1e-9)
        if ridge == "auto":
            assert objective.newest_loss(objective.theta) <= objective.newest_loss(old)
        else:
            assert objective.value() <= before * (1 + 1e-9)
    assert objective.value() == pytest.approx(mean_loss(learner, X, y, w), rel=1e-6, abs=1e-9)


def test_the_loss_of_the_newest_entries_is_that_of_the_last_ones_observed(rng):
    X, y, w, _ = low_rank(rng, 2000, noise=0.3)
    for loss in (Square(), Gaussian(), Correntropy(0.8)):
        objective = ObservedEntries(SHAPE, loss, dtype=float, offsets=RunningBiases())
        learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(50.0))
        for part in np.split(np.arange(2000), 10):
            learner.observe(X[part], y[part], w[part])
        n = objective.n_newest
        assert 0 < n < 2000
        at = objective.predict(X[-n:, 0], X[-n:, 1])
        expected = np.average(loss.value(at, y[-n:]), weights=w[-n:])
        assert objective.newest_loss(objective.theta) == pytest.approx(expected)


def test_auto_prefers_sweeps_where_they_predict_better(rng):
    X, y, _, truth = low_rank(rng, 4000, noise=0.1)
    ball = TraceNormBall(1.1 * np.linalg.norm(truth, "nuc"))
    corrected, plain = (learned(s, X, y, None, ball) for s in (RidgeSweeps(4), None))
    corrected.correct()
    errors = [np.mean((m.theta.dense() - truth) ** 2) for m in (corrected, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_it_runs_when_the_data_have_grown_by_its_factor(rng, monkeypatch):
    X, y, _, _ = low_rank(rng, 3000)
    at, run = [], RidgeSweeps.correct

    def counted(self, objective, ball):
        at.append(objective.n_observations)
        run(self, objective, ball)

    monkeypatch.setattr(RidgeSweeps, "correct", counted)
    learned(RidgeSweeps(2, ridge=1.0, growth=2.0, start=250), X, y)
    assert at == [300, 600, 1200, 2400]


def test_one_atom_is_enough_to_begin_with(rng):
    X, y, _, truth = low_rank(rng, 3000, rank=4)
    ball = TraceNormBall(1.1 * np.linalg.norm(truth, "nuc"))
    learner = learned(RidgeSweeps(4, ridge=1e-3, sweeps=30), X, y, None, ball, size=3000)
    assert learner.t == 1  # one round, so Frank-Wolfe has brought one of four directions
    assert np.abs(learner.theta.dense() - truth).max() < 1e-2


def test_the_end_corrects_what_the_schedule_has_left_and_only_that(rng, monkeypatch):
    X, y, _, _ = low_rank(rng, 3000, noise=0.3)
    at, run = [], RidgeSweeps.correct

    def counted(self, objective, ball):
        at.append(objective.n_observations)
        run(self, objective, ball)

    monkeypatch.setattr(RidgeSweeps, "correct", counted)
    learner = learned(RidgeSweeps(2, ridge=1.0, start=250), X[:2400], y[:2400])
    learner.finish()
    assert at == [300, 600, 1200, 2400]  # the last one was at the end
    learner.refine()  # theta has moved since
    learner.finish()
    learner.observe(X[2400:], y[2400:])
    learner.finish()
    assert at[4:] == [2400, 3000]
    again = ofw.OnlineFrankWolfe.from_state(learner.state_dict())
    again.finish()
    learner.correct()  # whoever asks for it, gets it
    assert at[6:] == [3000]
    learned(None, X[:100], y[:100]).finish()  # nothing is to be corrected


def test_factors_come_out_with_equal_penalties(rng):
    X, y, w, _ = low_rank(rng, 2000, noise=0.3)
    ball = weighted_ball(rng, 500.0)
    learner = learned(RidgeSweeps(3, ridge=0.5, start=10**9), X, y, w, ball)
    learner.correct()
    theta = learner.theta
    rows, columns = (
        np.linalg.norm(x * scale[:, None])
        for x, scale in ((theta.left, ball.rows), (theta.right, ball.columns))
    )
    assert rows == pytest.approx(columns)


def test_weights_are_repeated_entries(rng):
    X, y, _, _ = low_rank(rng, 1500, noise=0.5)
    counts = rng.integers(1, 4, size=1500)
    again = np.repeat(np.arange(1500), counts)
    thetas = []
    for parts in ((X, y, counts.astype(float)), (X[again], y[again], None)):
        sweeps = RidgeSweeps(3, ridge=2.0, start=10**9)
        learner = ofw.OnlineFrankWolfe(
            ObservedEntries(SHAPE, dtype=float), TraceNormBall(80.0), corrective=sweeps
        )
        learner.observe(*parts)
        rng = np.random.default_rng(5)  # from the same point
        learner.objective.put(rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20)))
        learner.correct()
        thetas.append(learner.theta.dense())
    np.testing.assert_allclose(*thetas, atol=1e-9)


@pytest.mark.parametrize("ridge", ["auto", 1.0])
@pytest.mark.parametrize("offsets", [False, True])
def test_where_nothing_is_left_to_explain_it_does_no_harm(ridge, offsets, rng):
    X = low_rank(rng, 3000)[0]
    y = np.full(3000, 3.0 if offsets else 0.0)
    biases = RunningBiases() if offsets else None
    learner = learned(RidgeSweeps(2, ridge=ridge), X, y, offsets=biases)
    learner.correct()
    assert np.isfinite(np.asarray(learner.theta)).all()
    if ridge != "auto":
        assert learner.objective.value() <= 1e-12


def test_before_the_first_move_and_with_too_little_data_it_waits(rng):
    X, y, _, _ = low_rank(rng, 300)
    learner = learned(RidgeSweeps(2), X, y)  # nothing is sorted yet: no entries to decide with
    before = learner.theta.dense()
    learner.correct()
    np.testing.assert_array_equal(learner.theta.dense(), before)
    fresh = ofw.OnlineFrankWolfe(
        ObservedEntries(SHAPE), TraceNormBall(1.0), corrective=RidgeSweeps(2, ridge=1.0)
    )
    fresh.correct()
    assert fresh.theta.n_atoms == 0


def test_what_has_no_ridge_regressions_is_refused():
    ball = TraceNormBall(1.0)
    for objective in (
        ObservedEntries(SHAPE, Logistic()),
        ObservedEntries(SHAPE, Correntropy(1.0)),
        LinearObjective(Square(), shape=SHAPE),
    ):
        with pytest.raises(ValueError, match=r"RidgeSweeps corrects ObservedEntries with the sq"):
            ofw.OnlineFrankWolfe(objective, ball, corrective=RidgeSweeps())
        ofw.OnlineFrankWolfe(objective, ball)  # not claimed by the one that was refused
    with pytest.raises(ValueError, match="TraceNormBall"):
        ofw.OnlineFrankWolfe(ObservedEntries(SHAPE), L1Ball(1.0), corrective=RidgeSweeps())
    for wrong in ("ridge", RidgeSweeps, 3):
        with pytest.raises(ValueError, match="corrective"):
            ofw.OnlineFrankWolfe(ObservedEntries(SHAPE), ball, corrective=wrong)
    with pytest.raises(ValueError, match="corrective=RidgeSweeps"):
        ofw.OnlineFrankWolfe(ObservedEntries(SHAPE), ball).correct()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rank", [0, -1, 1.5, "two", None]),
        ("sweeps", [0, 1.5, None]),
        ("start", [-1, 1.5, None]),
        ("ridge", [0.0, -1.0, np.nan, np.inf, "automatic", None]),
        ("growth", [1.0, 0.5, np.nan, "twice", None]),
    ],
)
def test_bad_arguments_are_named(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{name}.*{value}"):
            RidgeSweeps(**{name: value})


def test_learners_that_are_given_the_same_sweeps_do_not_share_them(rng):
    X, y, _, _ = low_rank(rng, 2000)
    sweeps = RidgeSweeps(2, ridge=1.0)
    first, second = (learned(sweeps, X[:n], y[:n], None, TraceNormBall(20.0)) for n in (2000, 500))
    assert first.corrective.state_dict() != second.corrective.state_dict()
    assert sweeps == RidgeSweeps(2, ridge=1.0)


def test_corrections_without_new_data_come_to_an_end(rng):
    X, y, _, _ = low_rank(rng, 3000, 1.0)
    learner = learned(RidgeSweeps(2), X, y, None, TraceNormBall(20.0))
    for _ in range(20):  # each leaves fewer of the newest entries to decide with
        learner.correct()
    before = learner.theta.dense()
    learner.correct()
    np.testing.assert_array_equal(learner.theta.dense(), before)


def test_columns_in_slices_give_the_same_model_to_the_last_bit(monkeypatch):
    X, y, w, _ = low_rank(np.random.default_rng(7), 900, noise=0.1)
    whole = learned(RidgeSweeps(3), X, y, w)
    in_slices = partial(ColumnSlices, slice_size=50)
    monkeypatch.setattr("onlinefw.past.host.regressions.ColumnSlices", in_slices)
    sliced = learned(RidgeSweeps(3), X, y, w)
    assert np.array_equal(whole.theta.dense(), sliced.theta.dense())
