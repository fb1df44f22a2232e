"""Pairwise Frank-Wolfe on a summary of the stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import onlinefw as ofw
from onlinefw.algorithms.summary_fw import SummariesSideBySide
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import LinearObjective, SummaryObjective
from onlinefw.sets import L1Ball, L2Ball


def documents(seed, n, width=400, words=12):
    """Sparse rows with popular and rare columns, and labels that 20 of them decide."""
    rng = np.random.default_rng(seed)
    columns = np.minimum((width * rng.random((n, words)) ** 2.5).astype(int), width - 1)
    X = sparse.csr_array(
        (rng.random(n * words) + 0.5, columns.ravel(), np.arange(0, n * words + 1, words)),
        shape=(n, width),
    )
    X.sum_duplicates()
    theta = np.zeros(width)
    theta[np.random.default_rng(7).choice(80, 20, replace=False)] = np.tile([2.0, -2.0], 10)
    return X, np.where(X @ theta + 0.3 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


def learner(radius=60.0, loss=None, width=400, **more):
    objective = SummaryObjective(loss or Logistic(), width, fit_intercept=True, **more)
    return ofw.SummaryFrankWolfe(objective, L1Ball(radius))


def error(one, X, y):
    return np.mean(np.where(X @ one.theta + one.objective.intercept > 0, 1, -1) != y)


def test_it_is_nearly_as_accurate_as_keeping_everything():
    X, y = documents(0, 6000)
    X_new, y_new = documents(1, 4000)
    one = learner()
    kept = LinearObjective(Logistic(), fit_intercept=True)
    all_of_it = ofw.OnlineFrankWolfe(
        kept, L1Ball(60.0), ofw.steps.LineSearch(), "auto", corrective=ofw.NewtonSteps()
    )
    for k in range(0, 6000, 250):
        for each in (one, all_of_it):
            each.observe(X[k : k + 250], y[k : k + 250])
    best = error(all_of_it, X_new, y_new)
    assert best < 0.1
    assert error(one, X_new, y_new) < best + 0.03


def test_the_published_steps_on_the_same_rows_are_worse():
    X, y = documents(0, 6000)
    X_new, y_new = documents(1, 4000)
    ours, theirs = learner(), learner(estimator="recursive")
    for one in (ours, theirs):
        one.observe(X, y)
    assert error(ours, X_new, y_new) < error(theirs, X_new, y_new)


@given(st.integers(0, 10**6), st.floats(0.01, 100.0))
def test_theta_is_feasible_after_every_batch(seed, radius):
    rng = np.random.default_rng(seed)
    one = learner(radius, Square(), width=6)
    for _ in range(5):
        X = rng.standard_normal((7, 6)) * 10.0 ** rng.integers(-3, 3)
        one.observe(X, rng.standard_normal(7))
        assert one.constraint.contains(one.theta)


def test_the_ball_is_used_up_where_it_is_small_and_not_where_it_is_large():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 8))
    y = X[:, 0] - 2.0 * X[:, 1]
    small, large = learner(1.5, Square(), 8), learner(50.0, Square(), 8)
    for one in (small, large):
        one.observe(X, y)
    assert np.abs(small.theta).sum() == pytest.approx(1.5)
    np.testing.assert_allclose(large.theta, [1.0, -2.0, *[0.0] * 6], atol=0.05)
    assert small.gap_estimate() >= 0.0


def test_batches_make_rounds_but_change_no_result():
    X, y = documents(2, 600)
    whole, parts = learner(), learner()
    rounds = [whole.observe(X, y)]
    rounds += [parts.observe(X[k : k + 100], y[k : k + 100]) for k in range(0, 600, 100)]
    np.testing.assert_array_equal(whole.theta, parts.theta)
    assert np.mean([one.loss for one in rounds[1:]]) == pytest.approx(rounds[0].loss)
    assert [one.t for one in rounds] == [1, 1, 2, 3, 4, 5, 6]
    assert rounds[-1].n_steps == rounds[0].n_steps == 600
    assert rounds[0].kind == "pairwise" and np.isnan(rounds[0].gap)


def test_it_goes_on_from_its_state_bit_for_bit():
    X, y = documents(3, 400)
    one = learner()
    one.observe(X[:250], y[:250])
    two = ofw.SummaryFrankWolfe.from_state(one.state_dict())
    rounds = [each.observe(X[250:], y[250:]) for each in (one, two)]
    assert rounds[0].loss == rounds[1].loss
    np.testing.assert_equal(two.state_dict(), one.state_dict())


def test_learners_side_by_side_are_those_alone():
    X, y = documents(4, 300)
    first = SummaryObjective(Logistic(), 400, fit_intercept=True)
    pairs = zip([first, first.beside(), first.beside()], [5.0, 20.0, 60.0], strict=True)
    team = SummariesSideBySide([ofw.SummaryFrankWolfe(one, L1Ball(r)) for one, r in pairs])
    team.observe(X, [y, -y, y])
    alone = learner(20.0)
    alone.observe(X, -y)
    np.testing.assert_array_equal(team.learners[1].theta, alone.theta)
    team.keep([1])
    team.observe(X, [-y])
    alone.observe(X, -y)
    np.testing.assert_array_equal(team.learners[0].theta, alone.theta)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="SummaryFrankWolfe moves along the signed coordinates"):
        ofw.SummaryFrankWolfe(SummaryObjective(Square(), 3), L2Ball(1.0))
    with pytest.raises(ValueError, match="objective"):
        ofw.SummaryFrankWolfe(LinearObjective(Square()), L1Ball(1.0))
    one = learner()
    X, y = documents(5, 20)
    one.observe(X, y)
    with pytest.raises(ValueError, match="no refine, no epochs"):
        one.refine()
    with pytest.raises(ValueError, match="nothing to correct with"):
        one.correct()
    with pytest.raises(ValueError, match="state of a SummaryFrankWolfe"):
        ofw.OnlineFrankWolfe.from_state({**one.state_dict(), "corrective": None})


def test_a_theta_outside_of_the_ball_is_refused():
    one = learner(60.0)
    X, y = documents(6, 200)
    one.observe(X, y)
    state = one.state_dict()
    state["constraint"]["radius"] = 1.0
    with pytest.raises(ValueError, match="not in L1Ball"):
        ofw.SummaryFrankWolfe.from_state(state)
    with pytest.raises(ValueError, match="not in L1Ball"):
        learner(1.0).load_own(one.own_state())


def test_rows_that_are_refused_change_nothing():
    one = learner(width=4, loss=Square())
    one.observe(np.eye(4), np.ones(4))
    before = one.state_dict()
    for X, y in [
        (np.eye(3), np.ones(3)),
        (np.eye(4) * np.nan, np.ones(4)),
        (np.eye(4), [np.inf] * 4),
    ]:
        with pytest.raises(ValueError):
            one.observe(X, y)
    np.testing.assert_equal(one.state_dict(), before)
