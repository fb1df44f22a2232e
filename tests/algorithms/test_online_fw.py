"""Algorithm 1, held to a plain dense implementation of the paper's box."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

import onlinefw as ofw
from onlinefw._whole import BrokenModel
from onlinefw.baselines import batch_frank_wolfe
from onlinefw.losses import Logistic, Sigmoid, Square
from onlinefw.objectives import GradientOracle, LinearObjective, RunningLeastSquares
from onlinefw.sets import Birkhoff, ConvexSet, L1Ball, Simplex, TraceNormBall
from onlinefw.steps import Harmonic, LineSearch, LogHarmonic, Power

from .. import reference
from ..catalogue import SETS, feasible_points, name
from ..pairs import every_pair


def stream(rng, rounds, shape, signed=False, size=7):
    for _ in range(rounds):
        X = rng.standard_normal((size, *shape))
        noise = rng.standard_normal(size)
        y = X.reshape(size, -1)[:, 0] - 2 * X.reshape(size, -1)[:, 1] + noise
        yield X, np.sign(y) if signed else y


CASES = {
    "l1": (L1Ball(2.0), (9,), reference.l1_lmo, 2.0),
    "simplex": (Simplex(1.5), (9,), reference.simplex_lmo, 1.5),
    "l1 on matrices": (L1Ball(2.0), (3, 4), reference.l1_lmo, 2.0),
    "trace norm": (TraceNormBall(2.0), (3, 4), reference.trace_lmo, 2.0),
    "Birkhoff": (Birkhoff(), (4, 4), reference.birkhoff_lmo, None),
}


@pytest.mark.parametrize(
    ("case", "loss", "step", "inner_steps"),
    every_pair(
        [*CASES],
        [Square(), Logistic(), Sigmoid()],
        [Harmonic(2), Power(0.75), Harmonic(1)],
        [1, 3],
    ),
    ids=str,
)
def test_trajectories_agree_with_the_paper_to_rounding(case, loss, step, inner_steps, rng):
    constraint, shape, lmo, radius = CASES[case]
    # On the trace-norm ball close singular values magnify rounding from round to round, so the
    # whole path is compared early on, and single rounds in the next test.
    spectral = case == "trace norm"
    rounds, tol = (8, 1e-6) if spectral else (40, 1e-12)
    batches = list(stream(rng, rounds, shape, signed=not isinstance(loss, Square)))
    thetas, gaps = reference.online_fw(
        batches, loss.derivative, shape, lmo, radius, step, inner_steps
    )
    objective = LinearObjective(loss, **({"shape": shape} if len(shape) == 2 else {}))
    learner = ofw.OnlineFrankWolfe(objective, constraint, step=step, inner_steps=inner_steps)
    for t, (X, y) in enumerate(batches):
        round_ = learner.observe(X, y)
        np.testing.assert_allclose(learner.theta, thetas[t], atol=tol)
        assert round_.gap == round_.fw_gap == pytest.approx(gaps[t], abs=tol)
        assert round_.t == t + 1
        assert round_.n_steps == (t + 1) * inner_steps
        assert round_.step_size == step(round_.n_steps)
        assert round_.kind == "fw"


def test_each_round_on_the_trace_norm_ball_is_the_papers_to_rounding(rng):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Sigmoid(), shape=(3, 4)), TraceNormBall(2.0))
    past = reference.MeanLoss(Sigmoid().derivative, (3, 4))
    for t, (X, y) in enumerate(stream(rng, 100, (3, 4), signed=True), start=1):
        past.add(X, y)
        theta = learner.theta
        gradient = past.gradient(theta)
        atom = reference.trace_lmo(gradient, 2.0)
        round_ = learner.observe(X, y)
        np.testing.assert_allclose(learner.theta, theta + 2 / (t + 1) * (atom - theta), atol=1e-10)
        assert round_.gap == pytest.approx(np.sum(gradient * (theta - atom)), abs=1e-12)


def test_running_least_squares_takes_the_same_path(rng):
    batches = list(stream(rng, 200, (9,)))
    a = ofw.OnlineFrankWolfe(LinearObjective(Square()), L1Ball(2.0))
    b = ofw.OnlineFrankWolfe(RunningLeastSquares(9), L1Ball(2.0))
    for X, y in batches:
        first, second = a.observe(X, y), b.observe(sp.csr_array(X), y)
        assert first.gap == pytest.approx(second.gap, abs=1e-10)
        assert first.loss == pytest.approx(second.loss)
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-12)


def test_the_loss_is_paid_before_the_update(rng):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Square()), L1Ball(2.0))
    for X, y in stream(rng, 20, (9,)):
        theta = np.zeros(9) if learner.theta is None else learner.theta
        paid = np.mean((X @ theta - y) ** 2) / 2
        assert learner.observe(X, y).loss == pytest.approx(paid)


def test_scaling_the_loss_does_not_change_the_path(rng):
    paths, target = [], rng.standard_normal(5)
    for scale in (1.0, 1000.0):
        objective = GradientOracle(lambda theta, t, s=scale: s * (theta - target), 5)
        learner = ofw.OnlineFrankWolfe(objective, L1Ball(1.0))
        paths.append([learner.observe().step_size and learner.theta for _ in range(50)])
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-12)


def test_the_certificate_is_the_gap_of_the_current_theta_and_changes_nothing(rng):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Logistic()), L1Ball(2.0))
    for X, y in stream(rng, 30, (9,), signed=True):
        learner.observe(X, y)
    before = repr(learner.state_dict())
    gradient = learner.objective.gradient()
    by_hand = gradient @ learner.theta + 2.0 * np.abs(gradient).max()
    assert learner.certificate() == pytest.approx(by_hand)
    assert repr(learner.state_dict()) == before


def test_theta_is_zero_before_the_first_round_and_none_while_its_shape_is_unknown(rng):
    assert ofw.OnlineFrankWolfe(LinearObjective(Square()), L1Ball(1.0)).theta is None
    learner = ofw.OnlineFrankWolfe(RunningLeastSquares(3), L1Ball(1.0))
    np.testing.assert_array_equal(learner.theta, np.zeros(3))
    with pytest.raises(ValueError, match="nothing has been observed yet"):
        learner.certificate()


@pytest.mark.parametrize("case", SETS, ids=name)
def test_theta_is_feasible_from_the_end_of_round_one_on(case, rng):
    constraint, shape = case
    target = 3.0 * rng.standard_normal(shape)
    learner = ofw.OnlineFrankWolfe(GradientOracle(lambda th, t: th - target, shape), constraint)
    for _ in range(30):
        learner.observe()
        assert constraint.contains(learner.theta, tol=1e-9)


@given(
    seed=st.integers(0, 10**6),
    rounds=st.integers(1, 15),
    which=st.sampled_from(range(len(SETS))),
    convex=st.booleans(),
)
def test_any_stream_leaves_theta_feasible_and_the_gap_above_the_suboptimality(
    seed, rounds, which, convex
):
    rng = np.random.default_rng(seed)
    constraint, shape = SETS[which]
    loss = Logistic() if convex else Square()
    objective = LinearObjective(loss, **({"shape": shape} if len(shape) == 2 else {}))
    learner = ofw.OnlineFrankWolfe(objective, constraint)
    others = feasible_points(constraint, shape, rng, count=10).reshape(10, -1)
    Xs, ys, first = [], [], True
    for X, y in stream(rng, rounds, shape, signed=True, size=int(rng.integers(1, 6))):
        y = np.where(y == 0, 1.0, y)
        theta = np.zeros(shape) if learner.theta is None else learner.theta
        round_ = learner.observe(X, y)
        Xs.append(X.reshape(len(X), -1))
        ys.append(y)
        assert constraint.contains(learner.theta, tol=1e-8)

        def F(theta):
            return np.mean(loss.value(np.vstack(Xs) @ np.ravel(theta), np.concatenate(ys)))

        if not first or constraint.contains_zero:
            for other in others:
                assert F(theta) - F(other) <= round_.fw_gap + 1e-9
        first = False
    objective = LinearObjective(loss, **({"shape": shape} if len(shape) == 2 else {}))
    objective.observe(np.vstack(Xs), np.concatenate(ys))
    best = batch_frank_wolfe(objective, constraint, max_iter=100).objective  # near min F_t
    assert F(learner.theta) - best <= learner.certificate() + 1e-9
    assert F(theta) - best <= round_.fw_gap + 1e-9 or (rounds == 1 and not constraint.contains_zero)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, aslinearoperator])
def test_low_rank_iterates_take_the_same_path_as_dense_ones(kind, rng):
    target = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 9))
    dense = ofw.OnlineFrankWolfe(
        GradientOracle(lambda theta, t: theta - target, (12, 9)), TraceNormBall(20.0)
    )
    factored = ofw.OnlineFrankWolfe(
        GradientOracle(lambda theta, t: kind(theta.dense() - target), (12, 9), low_rank=True),
        TraceNormBall(20.0),
    )
    for _ in range(60):
        assert dense.observe().gap == pytest.approx(factored.observe().gap, abs=1e-7)
    np.testing.assert_allclose(factored.theta.dense(), dense.theta, atol=1e-7)
    assert factored.certificate() == pytest.approx(dense.certificate(), abs=1e-7)


def test_a_set_and_a_loss_of_ones_own(rng):
    """A user's set may return plain arrays from its lmo; a user's loss has three functions."""

    class Segment(ConvexSet):
        def lmo(self, direction):
            end = np.array([1.0, 1.0, 1.0])
            return -end if end @ direction > 0 else end

    class Pseudo(ofw.losses.Loss):
        convex, smoothness = True, 1.0

        def value(self, z, y):
            return np.sqrt(1 + (z - y) ** 2) - 1

        def derivative(self, z, y):
            return (z - y) / np.sqrt(1 + (z - y) ** 2)

        def second_derivative(self, z, y):
            return (1 + (z - y) ** 2) ** -1.5

    learner = ofw.OnlineFrankWolfe(LinearObjective(Pseudo()), Segment())
    for _ in range(300):
        X = rng.standard_normal((20, 3))
        learner.observe(X, 0.3 * X.sum(axis=1))
    np.testing.assert_allclose(learner.theta, [0.3, 0.3, 0.3], atol=0.02)


def test_log_harmonic_steps_fit_sets_that_contain_zero(rng):
    learner = ofw.OnlineFrankWolfe(RunningLeastSquares(9), L1Ball(4.0), step=LogHarmonic())
    for X, y in stream(rng, 300, (9,)):
        learner.observe(X, y)
    assert learner.certificate() < 0.2


def test_a_step_rule_that_leaves_the_unit_interval_is_refused_when_it_does(rng):
    learner = ofw.OnlineFrankWolfe(
        RunningLeastSquares(9), L1Ball(1.0), step=lambda t: 1.0 if t < 5 else 3.0
    )
    with pytest.raises(ValueError, match=r"\(5\) = 3"):
        for X, y in stream(rng, 10, (9,)):
            learner.observe(X, y)
    with pytest.raises(BrokenModel, match=r"\(5\) = 3"):
        learner.certificate()


def test_a_saturated_loss_is_said_to_be_so(rng):
    """A large constant column inside the ball: the first step jumps there and all slopes vanish."""
    learner = ofw.OnlineFrankWolfe(LinearObjective(Sigmoid()), L1Ball(1000.0))
    with pytest.warns(RuntimeWarning, match="saturated.*proves nothing"):
        for X, y in stream(rng, 5, (4,), signed=True):
            learner.observe(np.hstack((X, np.full((len(X), 1), 50.0))), np.where(y == 0, 1.0, y))


def test_harmonic_steps_start_at_exactly_one_for_any_k():
    for K in np.linspace(0.05, 5.0, 200):
        assert Harmonic(K)(1) == 1.0


def test_a_failed_round_leaves_the_learner_as_it_was(rng):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Square()), L1Ball(2.0))
    for X, y in stream(rng, 5, (9,)):
        learner.observe(X, y)
    before = repr(learner.state_dict())
    with pytest.raises(ValueError, match="nan"):
        learner.observe(np.full((1, 9), np.nan), [0.0])
    assert repr(learner.state_dict()) == before


def test_a_round_with_a_checked_batch_is_the_round_of_observe(rng):
    one, other = (
        ofw.OnlineFrankWolfe(LinearObjective(Logistic()), L1Ball(2.0), inner_steps=2)
        for _ in range(2)
    )
    for X, y in stream(rng, 10, (9,), signed=True):
        y = np.where(y == 0, 1.0, y)
        batch = one.objective.check(X, y)
        assert one.objective.n_observations == other.objective.n_observations
        assert one.play(batch) == other.observe(X, y)
    np.testing.assert_array_equal(one.theta, other.theta)


@pytest.mark.parametrize(
    "learner",
    [ofw.OnlineFrankWolfe, ofw.OnlineAwayFrankWolfe, ofw.OnlinePairwiseFrankWolfe],
)
def test_without_a_corrective_there_is_nothing_to_correct_with(learner):
    with pytest.raises(ValueError, match=r"nothing to correct with: pass corrective="):
        learner(RunningLeastSquares(3), L1Ball(1.0)).correct()


# Rounds without data -----------------------------------------------------------------------------


@pytest.mark.parametrize("step", [Harmonic(2), LineSearch()], ids=str)
def test_a_round_without_data_is_another_step_on_what_was_seen(step, rng):
    X, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    one, two = (
        ofw.OnlineFrankWolfe(LinearObjective(Square()), L1Ball(1.0), step=step, inner_steps=n)
        for n in (1, 2)
    )
    one.observe(X, y)
    again, both = one.refine(), two.observe(X, y)
    np.testing.assert_array_equal(one.theta, two.theta)
    assert (again.gap, again.step_size, again.n_steps) == (both.gap, both.step_size, both.n_steps)
    assert (again.t, both.t) == (2, 1)
    assert np.isnan(again.loss)
    assert one.objective.n_observations == 30


def test_without_any_data_there_is_no_round():
    learner = ofw.OnlineFrankWolfe(RunningLeastSquares(3), L1Ball(1.0))
    with pytest.raises(ValueError, match="nothing has been observed"):
        learner.refine()
    assert learner.t == 0


@pytest.mark.parametrize("loss", [Square(), Logistic()], ids=str)
def test_a_line_search_never_makes_the_objective_worse(loss, rng):
    objective = LinearObjective(loss)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0), step=LineSearch())
    for _ in range(20):
        learner.observe(rng.standard_normal((10, 6)), rng.choice([-1.0, 1.0], 10))
        before = objective.value()
        round_ = learner.refine()
        assert objective.value() <= before + 1e-12
        assert 0.0 <= round_.step_size <= 1.0
