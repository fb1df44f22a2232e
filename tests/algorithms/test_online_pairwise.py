"""Pairwise and blended pairwise steps, held to a plain dense implementation of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw._whole import BrokenModel
from onlinefw.algorithms import active_set_learner
from onlinefw.losses import Logistic, Sigmoid, Square
from onlinefw.objectives import GradientOracle, LinearObjective, Objective, RunningLeastSquares
from onlinefw.objectives.lines import Parabola
from onlinefw.sets import Birkhoff, ConvexSet, L1Ball, Simplex
from onlinefw.steps import Harmonic, LineSearch, Power

from .. import reference
from ..catalogue import POLYTOPES, feasible_points
from ..pairs import every_pair
from .test_online_fw import stream

CASES = {
    "l1": (L1Ball(2.0), (9,), reference.l1_lmo, 2.0),
    "simplex": (Simplex(1.5), (9,), reference.simplex_lmo, 1.5),
    "l1 on matrices": (L1Ball(2.0), (3, 4), reference.l1_lmo, 2.0),
    "Birkhoff": (Birkhoff(), (4, 4), reference.birkhoff_lmo, None),
}
BOTH = pytest.mark.parametrize("blended", [False, True], ids=["pairwise", "blended"])
RULES = pytest.mark.parametrize("step", [Harmonic(2), LineSearch()], ids=str)


def pairwise(objective, constraint, *args, **options):
    return ofw.OnlinePairwiseFrankWolfe(objective, constraint, *args, **options)


# Against plain dense steps -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "loss", "step", "inner_steps", "blended"),
    every_pair(
        [*CASES],
        [Square(), Logistic(), Sigmoid()],
        [Harmonic(2), Power(0.75), Harmonic(1), LineSearch()],
        [1, 3],
        [False, True],
    ),
    ids=str,
)
def test_trajectories_agree_with_dense_steps_to_rounding(
    case, loss, step, inner_steps, blended, rng
):
    constraint, shape, lmo, radius = CASES[case]
    is_searched = isinstance(step, LineSearch)
    if is_searched:
        # After a search both atoms are equally good, so that rounding would choose the next pair
        # before new data come. A loss that is not convex may have several minima on the line.
        inner_steps, loss = 1, loss if loss.convex else Logistic()
    batches = list(stream(rng, 40, shape, signed=not isinstance(loss, Square)))
    rule = None if is_searched else step
    thetas, gaps, kinds, counters, weights = reference.online_pairwise(
        batches, loss.derivative, shape, lmo, radius, rule, inner_steps, blended
    )
    objective = LinearObjective(loss, **({"shape": shape} if len(shape) == 2 else {}))
    learner = pairwise(objective, constraint, step, inner_steps, blended=blended)
    tol = 1e-6 if is_searched else 1e-9  # a root is found to the square root of rounding
    for t, (X, y) in enumerate(batches):
        round_ = learner.observe(X, y)
        np.testing.assert_allclose(learner.theta, thetas[t], atol=tol)
        assert round_.gap == pytest.approx(gaps[t], abs=tol)
        assert (round_.kind, round_.n_steps) == (kinds[t], counters[t])
    np.testing.assert_allclose(sorted(learner.active_set.weights), sorted(weights), atol=tol)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@RULES
@BOTH
def test_rows_and_sums_go_the_same_way(blended, step, kind, rng):
    """Predictions and H theta move with theta through every kind of step."""
    rows = pairwise(LinearObjective(Square()), L1Ball(2.0), step, blended=blended)
    sums = pairwise(RunningLeastSquares(20), L1Ball(2.0), step, blended=blended)
    for X, y in stream(rng, 60, (20,)):
        one, other = rows.observe(kind(X), y), sums.observe(kind(X), y)
        assert (one.kind, one.n_steps) == (other.kind, other.n_steps)
        np.testing.assert_allclose(rows.theta, sums.theta, atol=1e-9)


# The active set ----------------------------------------------------------------------------------


@BOTH
def test_all_three_kinds_of_steps_occur(blended, rng):
    learner = pairwise(RunningLeastSquares(30), L1Ball(2.0), blended=blended)
    kinds = [learner.observe(X, y).kind for X, y in stream(rng, 300, (30,))]
    assert set(kinds) == {"fw", "pairwise", "drop"}


@RULES
@BOTH
def test_drops_do_not_advance_the_counter_and_are_at_most_half(blended, step, rng):
    learner = pairwise(RunningLeastSquares(30), L1Ball(2.0), step, blended=blended)
    n = 0
    for X, y in stream(rng, 300, (30,)):
        before = len(learner.active_set)
        round_ = learner.observe(X, y)
        assert round_.n_steps == n + (round_.kind != "drop")
        n = round_.n_steps
        change = len(learner.active_set) - before
        assert change == -1 if round_.kind == "drop" else change <= 1
        assert n >= round_.t / 2  # a drop takes an atom that another step brought


def test_blended_pairwise_steps_bring_no_atom(rng):
    learner = pairwise(RunningLeastSquares(30), L1Ball(2.0), blended=True)
    for X, y in stream(rng, 300, (30,)):
        before = {atom.key for atom in learner.active_set.atoms}
        if learner.observe(X, y).kind == "pairwise":
            assert {atom.key for atom in learner.active_set.atoms} <= before


@RULES
@BOTH
def test_the_pairwise_gap_is_above_the_fw_gap_and_equal_at_the_start(blended, step, rng):
    learner = pairwise(RunningLeastSquares(9), L1Ball(2.0), step, blended=blended)
    for t, (X, y) in enumerate(stream(rng, 100, (9,))):
        round_ = learner.observe(X, y)
        assert round_.gap >= round_.fw_gap - 1e-12
        assert t > 0 or round_.gap == round_.fw_gap


@given(
    seed=st.integers(0, 10**6),
    rounds=st.integers(1, 40),
    which=st.sampled_from(range(len(POLYTOPES))),
    inner_steps=st.integers(1, 3),
    convex=st.booleans(),
    blended=st.booleans(),
    step=st.sampled_from([Harmonic(2), Power(0.6), LineSearch()]),
)
def test_any_stream_keeps_the_active_set_consistent_with_a_feasible_theta(
    seed, rounds, which, inner_steps, convex, blended, step
):
    rng = np.random.default_rng(seed)
    constraint, shape = POLYTOPES[which]
    loss = Logistic() if convex else Square()
    objective = LinearObjective(loss, **({"shape": shape} if len(shape) == 2 else {}))
    learner = pairwise(objective, constraint, step, inner_steps, blended=blended)
    others = feasible_points(constraint, shape, rng, count=10).reshape(10, -1)
    Xs, ys = [], []
    for X, y in stream(rng, rounds, shape, signed=True, size=3):
        y = np.where(y == 0, 1.0, y)
        learner.observe(X, y)
        Xs.append(X.reshape(len(X), -1))
        ys.append(y)
        active = learner.active_set
        assert (active.weights > 0).all()
        assert active.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert len({atom.key for atom in active.atoms}) == len(active)
        np.testing.assert_allclose(active.combination(shape), learner.theta, atol=1e-11)
        assert constraint.contains(learner.theta, tol=1e-9)
    X, y = np.vstack(Xs), np.concatenate(ys)
    np.testing.assert_allclose(objective.predictions(), X @ np.ravel(learner.theta), atol=1e-10)
    value = np.mean(loss.value(X @ np.ravel(learner.theta), y))
    best = min(np.mean(loss.value(X @ other, y)) for other in others)
    assert value - best <= learner.certificate() + 1e-9


@pytest.mark.parametrize(
    ("case", "blended", "step"), every_pair(POLYTOPES, [False, True], [Harmonic(2), LineSearch()])
)
def test_every_polytope_works(case, blended, step, rng):
    constraint, shape = case
    target = 0.3 * rng.standard_normal(shape)
    oracle = GradientOracle(lambda theta, t: theta - target, shape)
    learner = pairwise(oracle, constraint, step, blended=blended)
    gaps = [learner.observe().fw_gap for _ in range(400)]
    assert learner.certificate() <= 0.2 * max(gaps[1], 1e-12)


@pytest.mark.slow
@BOTH
def test_long_runs_do_not_drift(blended, rng):
    target = rng.standard_normal(50)
    oracle = GradientOracle(lambda theta, t: theta - target + np.sin(t + np.arange(50)), 50)
    learner = pairwise(oracle, L1Ball(10.0), blended=blended)
    for _ in range(15_000):
        learner.observe()
    active = learner.active_set
    assert active.weights.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(active.combination((50,)), learner.theta, atol=1e-12)


@BOTH
def test_rebuilding_theta_now_and_then_does_not_move_it(blended, rng, monkeypatch):
    batches = list(stream(rng, 100, (9,)))
    paths = []
    for every in (7, 10**9):
        monkeypatch.setattr(active_set_learner, "REBUILD_EVERY", every)
        learner = pairwise(LinearObjective(Square()), L1Ball(2.0), blended=blended)
        paths.append([learner.observe(X, y) and learner.theta for X, y in batches])
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-13)


@RULES
@BOTH
def test_a_coordinate_that_no_active_atom_holds_is_exactly_zero(blended, step, rng):
    learner = pairwise(RunningLeastSquares(30), L1Ball(1.0), step, blended=blended)
    left, held = 0, set()
    for X, y in stream(rng, 400, (30,)):
        learner.observe(X, y)
        before, held = held, {atom.index for atom in learner.active_set.atoms}
        left += bool(before - held)
        assert set(np.flatnonzero(learner.theta)) <= held
    assert left > 5


@pytest.mark.parametrize("kind", ["rows", "sparse rows", "sums"])
@RULES
@BOTH
def test_a_pairwise_step_touches_two_coordinates(blended, step, kind, rng):
    objective = RunningLeastSquares(30) if kind == "sums" else LinearObjective(Square())
    learner = pairwise(objective, L1Ball(2.0), step, blended=blended)
    before, seen = np.zeros(30), 0
    for X, y in stream(rng, 200, (30,)):
        round_ = learner.observe(sp.csr_array(X) if kind == "sparse rows" else X, y)
        if round_.kind == "pairwise":
            seen += 1
            assert np.count_nonzero(learner.theta != before) <= 2
        before = learner.theta
    assert seen > 50


# Step lengths ------------------------------------------------------------------------------------


def test_a_weight_does_not_hop_between_two_vertices_for_ever():
    """At n = 2 all of the third that is not at e_1 would swap between e_2 and e_3."""
    target = np.array([4.0, 1.0, 1.0]) / 6.0
    learner = pairwise(GradientOracle(lambda theta, t: theta - target, 3), Simplex())
    for _ in range(2000):
        round_ = learner.observe()
    assert round_.n_steps >= 1000
    np.testing.assert_allclose(learner.theta, target, atol=2e-3)


@given(seed=st.integers(0, 10**6), blended=st.booleans())
def test_the_distance_to_the_minimum_obeys_the_classical_bound(seed, blended):
    """h <= 2 L D^2 / (n + 2) with the step counter n, which is at least half the rounds.

    Steps that count are whole and promise at least g^FW; a drop w <= 2 / (n + 1) keeps the bound.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 6))
    H, ball = A.T @ A, L1Ball(1.0)
    inside = ball.project(rng.standard_normal(6))  # the minimiser, often on the boundary
    oracle = GradientOracle(lambda theta, t: H @ (theta - inside), 6)
    learner = pairwise(oracle, ball, blended=blended)
    L, D = np.linalg.norm(H, 2), ball.diameter(2)
    for t in range(1, 151):
        n = learner.observe().n_steps
        d = learner.theta - inside
        assert 0.5 * d @ H @ d <= 2 * L * D**2 / (n + 2) + 1e-12
        assert n >= t / 2


@BOTH
def test_a_line_search_never_makes_the_objective_worse(blended, rng):
    for loss in (Square(), Logistic(), Sigmoid()):
        objective = LinearObjective(loss, fit_intercept=True)
        learner = pairwise(objective, L1Ball(2.0), LineSearch(), blended=blended)
        for _ in range(20):
            learner.observe(rng.standard_normal((10, 6)), rng.choice([-1.0, 1.0], 10))
            before = objective.value()
            round_ = learner.refine()
            assert objective.value() <= before + 1e-12
            assert 0.0 <= round_.step_size <= 1.0


@BOTH
def test_line_searches_converge_linearly_on_a_polytope(blended, rng):
    """Lacoste-Julien and Jaggi (2015), Tsuji et al. (2021): a strongly convex objective."""
    X = rng.standard_normal((200, 12))
    y = X[:, 0] - 2 * X[:, 1] + X[:, 2] + rng.standard_normal(200)
    learner = pairwise(RunningLeastSquares(12), L1Ball(3.0), LineSearch(), blended=blended)
    learner.observe(X, y)
    for _ in range(300):
        learner.refine()
    assert learner.certificate() < 1e-12
    fw = ofw.OnlineFrankWolfe(RunningLeastSquares(12), L1Ball(3.0), LineSearch())
    fw.observe(X, y)
    for _ in range(300):
        fw.refine()
    assert fw.certificate() > 1e-3


@BOTH
def test_at_the_minimum_no_atom_without_weight_appears(blended):
    objective = RunningLeastSquares(3)
    learner = pairwise(objective, L1Ball(1.0), LineSearch(), blended=blended)
    learner.observe(np.eye(3), np.array([5.0, 0.0, 0.0]))
    for _ in range(20):
        learner.refine()
    assert learner.active_set.weights.tolist() == [1.0]
    np.testing.assert_array_equal(learner.theta, [1.0, 0.0, 0.0])


@pytest.mark.parametrize("loss", [Square(), Logistic()], ids=str)
@BOTH
def test_auto_stops_when_the_gap_is_small(blended, loss, rng):
    learner = pairwise(LinearObjective(loss), L1Ball(2.0), LineSearch(), "auto", blended=blended)
    for X, y in stream(rng, 30, (9,), signed=True):
        learner.observe(X, y)
    assert learner.certificate() <= 0.05 * learner.objective.value()
    assert learner.refine().kind in ("hold", "pairwise", "fw", "drop")


def test_steps_that_grow_are_refused_before_they_do_harm(rng):
    learner = pairwise(
        RunningLeastSquares(9), L1Ball(2.0), step=lambda t: 1.0 if t % 7 in (0, 1) else 0.05
    )
    with pytest.raises(ValueError, match="OnlinePairwiseFrankWolfe needs steps that do not grow"):
        for X, y in stream(rng, 500, (9,)):
            learner.observe(X, y)
    with pytest.raises(BrokenModel, match="do not grow"):
        learner.certificate()


# Parts of the user's own -------------------------------------------------------------------------


@RULES
@BOTH
def test_a_users_lmo_may_reuse_its_buffer_and_return_negative_zeros(blended, step, rng):
    buffer = np.zeros(5)

    class Diamond(ConvexSet):
        is_polytope = True

        def lmo(self, direction):
            i = np.abs(direction).argmax()
            buffer[:] = -np.sign(direction) * (np.arange(5) == i)
            return buffer

    target = 0.3 * rng.standard_normal(5)
    oracle = GradientOracle(lambda theta, t: theta - target, 5)
    learner = pairwise(oracle, Diamond(), step, blended=blended)
    for _ in range(200):
        learner.observe()
    assert len(learner.active_set) <= 10
    np.testing.assert_allclose(learner.active_set.combination((5,)), learner.theta, atol=1e-12)


class Nearest(Objective):
    """Mean of |theta - x|^2 / 2: an objective that moves towards atoms, and knows nothing else."""

    def __init__(self, n):
        super().__init__((n,))
        self.mean = np.zeros(n)

    def check(self, X=None, y=None, sample_weight=None):
        return np.asarray(X, dtype=float)

    def add(self, batch):
        self.n_observations += len(batch)
        self.mean = self.mean + (batch - self.mean).sum(axis=0) / self.n_observations
        return 0.0

    def gradient(self):
        return self.theta - self.mean

    def value(self):
        return 0.5 * float(self.gradient() @ self.gradient())

    def move(self, atom, step):
        self.iterate.move(atom, step)

    def line(self, atom):
        d = np.asarray(atom) - self.theta
        return Parabola(self.value(), float(d @ self.gradient()), float(d @ d))

    def _refresh(self):
        """Nothing that is kept depends on theta."""

    def state_dict(self):
        return {**self._base_state(), "mean": self.mean}


@BOTH
def test_an_objective_of_ones_own_needs_no_more_than_moves(blended, rng):
    learner = pairwise(Nearest(3), Simplex(), LineSearch(), blended=blended)
    centre = np.array([0.9, 0.5, -0.4])
    for _ in range(100):
        learner.observe(centre + 0.1 * rng.standard_normal((50, 3)))
    np.testing.assert_allclose(learner.theta, [0.7, 0.3, 0.0], atol=0.01)
    assert learner.certificate() < 1e-3
