"""A theta that may hold few terms is cut now and then: everything speaks of what is left."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import losses
from onlinefw.objectives import ObservedEntries, RunningBiases
from onlinefw.past.entries_state import all_entries
from onlinefw.sets import TraceNormBall
from onlinefw.steps import LineSearch

from ..algorithms.test_state import assert_same_run
from .test_entries import dense_gradient, mean_loss

SHAPE, RADIUS = (20, 30), 60.0
#: Carried predictions and those of theta are the same numbers, added up in another order.
ROUNDING = {np.float32: 2e-5, np.float64: 1e-11}
KINDS = {
    "square": {},
    "logistic": {"loss": losses.Logistic()},
    "single precision": {"dtype": np.float32},
    "fewest terms": {"max_atoms": 2},
    "biases": {"offsets": RunningBiases()},
    "clicks": {"unobserved": 0.1},
    "fading": {"half_life": 300.0},
    "growing": {"growing": True},
}


def make(kind="square", step=None):
    options = {"dtype": np.float64, "max_atoms": 9, **KINDS[kind]}
    shape = (1, 1) if options.get("growing") else SHAPE
    objective = ObservedEntries(shape, **options)
    return ofw.OnlineFrankWolfe(
        objective, TraceNormBall(RADIUS), **({"step": step} if step else {})
    )


def stream(rounds=40, size=50):
    """Entries of a matrix of rank 12, more than theta may have, as signs or as they are."""
    rng = np.random.default_rng(5)
    truth = rng.standard_normal((SHAPE[0], 12)) @ rng.standard_normal((12, SHAPE[1])) / 3
    for _ in range(rounds):
        X = np.column_stack([rng.integers(n, size=size) for n in SHAPE])
        y = truth[X[:, 0], X[:, 1]] + 0.1 * rng.standard_normal(size)
        yield X, y, np.ones(size)


def held(objective):
    """The predictions that are carried along, and theta at the same entries."""
    state = objective.state_dict()["past"]
    rows, cols, _, _ = all_entries(state)
    z = np.concatenate((state["sorted"]["z"], state["tail"]["z"]))
    return z, objective.theta.entries(rows, cols)


@pytest.mark.parametrize("step", [None, LineSearch()], ids=["steps", "line search"])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_carried_are_those_of_theta_in_every_round(kind, step):
    learner, cuts = make(kind, step), 0
    objective = learner.objective
    for X, y, w in stream():
        terms = objective.theta.n_atoms
        learner.observe(X, np.sign(y) if kind == "logistic" else y, w)
        cuts += objective.theta.n_atoms <= terms  # else it has one more
        z, theta = held(objective)
        scale = np.abs(theta).max()
        np.testing.assert_allclose(z, theta, atol=ROUNDING[objective.dtype.type] * scale)
    assert cuts > 3


def test_gap_certificate_and_objective_are_those_of_what_is_left():
    learner, batches = make(), []
    for X, y, w in stream():
        batches.append((X, y, w))
        before = learner.theta.dense()
        round_ = learner.observe(X, y)
        for theta, gap in ((before, round_.gap), (learner.theta.dense(), learner.certificate())):
            gradient = dense_gradient(losses.Square(), batches, theta)
            exact = np.sum(gradient * theta) + RADIUS * np.linalg.norm(gradient, 2)
            assert gap == pytest.approx(exact, rel=1e-9 if theta is not before else 0.1)
        expected = mean_loss(losses.Square(), batches, learner.theta.dense())
        assert learner.objective.value() == pytest.approx(expected, rel=1e-10)


def test_to_cut_costs_one_read_and_to_rewrite_without_loss_none():
    X, y, _ = next(stream(1, 500))
    for max_atoms, more in ((None, 0), (9, 1)):  # by default there is room for every rank
        objective = ObservedEntries(SHAPE, dtype=float, max_atoms=max_atoms)
        learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(RADIUS))
        learner.observe(X, y)
        while objective.theta.n_atoms < objective.theta.max_atoms:
            learner.refine()
        atom, before = learner.constraint.lmo(objective.gradient()), objective.reads
        objective.move(atom, 0.01)
        assert objective.theta.n_atoms < objective.theta.max_atoms
        assert objective.reads == before + more


def test_a_run_goes_on_bit_for_bit_after_a_cut(tmp_path):
    for stop in (9, 10, 11):
        assert_same_run(make, list(stream(25)), stop, tmp_path)


def test_a_state_of_an_earlier_version_carried_predictions_of_what_was_cut():
    learner = make()
    for X, y, _ in stream(8):
        learner.observe(X, y)
    state = learner.objective.state_dict()
    state["iterate"]["truncated"] = 0.5
    state["past"]["sorted"]["z"] += 1.0
    state["past"]["tail"]["z"] += 1.0
    z, theta = held(ObservedEntries.from_state(state))
    np.testing.assert_allclose(z, theta, atol=1e-11)
