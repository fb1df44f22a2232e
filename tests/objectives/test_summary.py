"""An objective that keeps a summary of the stream instead of its rows."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import LinearObjective, SummaryObjective
from onlinefw.sets import L1Ball, L2Ball


def rows(seed=0, n=60, width=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, width))
    return X, X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n)


def test_at_a_theta_that_stays_the_estimate_is_near_the_gradient():
    X, y = rows(n=4000)
    summary, kept = SummaryObjective(Square(), 5), LinearObjective(Square(), n_features=5)
    for one in (summary, kept):
        one.put(np.array([0.5, 0.0, 0.0, 0.2, 0.0]))
        one.observe(X, y)
    np.testing.assert_allclose(summary.gradient(), kept.gradient(), atol=0.05)
    assert summary.value() == pytest.approx(kept.value(), rel=0.1)
    assert summary.n_observations == 4000


def test_a_move_takes_the_gradient_along_the_estimated_curvature():
    X, y = rows(n=4000)
    objective = SummaryObjective(Square(), 5)
    objective.observe(X, y)
    before, curvature = objective.gradient(), objective._shared.curvature
    atom = L1Ball(2.0).lmo(before)
    line = objective.line(atom)
    objective.move(atom, 0.25)
    np.testing.assert_allclose(objective.theta, 0.25 * np.asarray(atom))
    np.testing.assert_allclose(objective.gradient(), before + curvature * objective.theta)
    assert line.slope(0.0) == pytest.approx(before @ np.asarray(atom))


def test_online_frank_wolfe_takes_it_on_any_set():
    X, y = rows(n=2000)
    learner = ofw.OnlineFrankWolfe(SummaryObjective(Square(), 5), L2Ball(1.4))
    for k in range(0, 2000, 20):
        learner.observe(X[k : k + 20], y[k : k + 20])
    np.testing.assert_allclose(learner.theta, [1.0, -1.0, 0.0, 0.0, 0.0], atol=0.1)
    assert np.isnan(learner.certificate())
    assert learner.objective.gap_estimate(learner.constraint) < 0.1


def test_memory_does_not_depend_on_the_number_of_rows():
    objective = SummaryObjective(Logistic(), 5)
    X, y = rows()
    before = objective._shared.nbytes
    for _ in range(50):
        objective.observe(X, np.sign(y))
    assert objective._shared.nbytes == before
    assert SummaryObjective(Logistic(), 10**6)._shared.nbytes < 27 * 10**6


def test_weights_are_repeats_where_theta_stays():
    X, y = rows(n=8)
    one, two = SummaryObjective(Square(), 5), SummaryObjective(Square(), 5)
    w = np.array([2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 0.0, 1.0])
    loss = one.observe(X, y, w)
    assert loss == pytest.approx(np.average(y**2 / 2, weights=w))
    times = w.astype(int)
    two.observe(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(one.gradient(), two.gradient(), rtol=1e-12)


def test_it_is_pickled_with_its_learner():
    X, y = rows()
    learner = ofw.SummaryFrankWolfe(SummaryObjective(Square(), 5), L1Ball(1.0))
    learner.observe(X, y)
    again = pickle.loads(pickle.dumps(learner))
    for one in (learner, again):
        one.observe(X, y)
    np.testing.assert_array_equal(again.theta, learner.theta)


class Own(ofw.losses.Loss):
    """A loss of the user's own."""

    convex, smoothness = True, 1.0

    def value(self, z, y):
        return (z - y) ** 2

    def derivative(self, z, y):
        return 2 * (z - y)

    def second_derivative(self, z, y):
        return np.full_like(z, 2.0)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="built-in losses but not Own"):
        SummaryObjective(Own(), 5)
    with pytest.raises(ValueError, match="estimator must be one of"):
        SummaryObjective(Square(), 5, estimator="newton")
    with pytest.raises(ValueError, match="n_features"):
        SummaryObjective(Square(), 0)
    objective = SummaryObjective(Square(), 5)
    with pytest.raises(ValueError, match="workers=2"):
        objective.use_place("cpu", 2)
    with pytest.raises(ValueError, match="device='cuda'"):
        SummaryObjective.from_state(objective.state_dict(), device="cuda")
    with pytest.raises(ValueError, match="nothing has been observed"):
        objective.gradient()
    with pytest.raises(ValueError, match='past="summary" keeps no rows'):
        LinearObjective(Square(), past="summary")


def test_the_state_of_another_objective_is_refused():
    X, y = rows()
    objective = SummaryObjective(Square(), 5)
    objective.observe(X, y)
    state = objective.state_dict()
    with pytest.raises(ValueError, match="another objective"):
        SummaryObjective(Square(), 6).load_state(state)
    with pytest.raises(ValueError, match="another objective"):
        SummaryObjective(Square(), 5, estimator="momentum").load_state(state)
    with pytest.raises(ValueError, match="rows"):
        SummaryObjective(Square(), 5).load_state({**state, "n_observations": -1})


def test_released_it_starts_at_zero_again():
    X, y = rows()
    learner = ofw.SummaryFrankWolfe(SummaryObjective(Square(), 5), L1Ball(1.0))
    learner.observe(X, y)
    learner.objective.release()
    assert not learner.objective.theta.any()
    ofw.SummaryFrankWolfe(learner.objective, L1Ball(2.0)).observe(X, y)
