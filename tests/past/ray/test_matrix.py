"""A matrix whose rows are spread over workers: the same trajectory as in one process."""

import os
import pickle
import signal

import numpy as np
import pytest

import onlinefw as ofw

from .problems import (
    COLUMNS,
    MATRIX_PROBLEMS,
    assert_same,
    batches_of,
    follow,
    make_learner,
    pairs,
    past_of,
    tolerance,
)

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def alone():
    """Runs in one process, made when they are first asked for."""
    made = {}

    def run(name):
        if name not in made:
            learner = make_learner(name)
            made[name] = follow(learner, batches_of(name)), learner.state_dict()
        history, state = made[name]
        loss = MATRIX_PROBLEMS[name].get("loss")
        learner = ofw.OnlineFrankWolfe.from_state(state, loss=loss)
        return history, learner

    return run


@pytest.mark.parametrize(("name", "workers"), pairs(MATRIX_PROBLEMS, "biases, growing"))
def test_workers_make_the_same_trajectory(name, workers, alone):
    history, expected = alone(name)
    learner = make_learner(name, workers)
    tol = tolerance(learner)
    np.testing.assert_allclose(follow(learner, batches_of(name)), history, rtol=10 * tol, atol=tol)
    assert_same(expected, learner)


def test_large_products_stay_with_the_workers(alone, monkeypatch):
    monkeypatch.setattr("onlinefw.past.ray.entries.LARGE_BLOCK", 0)
    for name in ("inner steps", "weighted trace norm"):
        history, expected = alone(name)
        learner = make_learner(name, 2)
        np.testing.assert_allclose(follow(learner, batches_of(name)), history, rtol=1e-6)
        assert_same(expected, learner)


def test_many_workers_add_up_among_themselves(alone, monkeypatch):
    monkeypatch.setattr("onlinefw.past.ray.shards.TREE_FROM", 2)
    monkeypatch.setattr("onlinefw.past.ray.shards.FAN_IN", 2)
    history, expected = alone("inner steps")
    learner = make_learner("inner steps", 3)
    shards = past_of(learner).shards
    batches = batches_of("inner steps")
    seen = follow(learner, batches[:9])
    os.kill(shards.pids[1], signal.SIGKILL)
    seen = np.concatenate((seen, follow(learner, batches[9:])))
    assert shards.restarts == 1
    np.testing.assert_allclose(seen, history, rtol=1e-6)
    assert_same(expected, learner)


def test_more_workers_than_rows_is_allowed():
    learners = [
        ofw.OnlineFrankWolfe(
            ofw.objectives.ObservedEntries((2, 3), dtype=float, workers=workers),
            ofw.sets.TraceNormBall(3.0),
        )
        for workers in (None, 3)
    ]
    X, y = np.array([[0, 1], [1, 2], [0, 0]]), np.array([1.0, -1.0, 2.0])
    one, other = (follow(learner, [(X, y)] * 5) for learner in learners)
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("biases, growing", 2, None),
        ("biases, growing", 2, 3),
        ("ridge sweeps", None, 2),
        ("poisson, line search", 2, 3),
    ],
)
def test_a_state_goes_on_with_any_number_of_workers(name, before, after, alone):
    history, expected = alone(name)
    batches = batches_of(name)
    learner = make_learner(name, before)
    follow(learner, batches[:11])
    learner = ofw.OnlineFrankWolfe.from_state(learner.state_dict(), workers=after)
    assert learner.objective.workers == after
    np.testing.assert_allclose(follow(learner, batches[11:]), history[11:], rtol=1e-6, atol=1e-7)
    assert_same(expected, learner, resumed=True)


def test_a_pickle_comes_back_in_one_process():
    learner = make_learner("square", 2)
    batches = batches_of("square")
    follow(learner, batches[:5])
    copy = pickle.loads(pickle.dumps(learner))
    assert copy.objective.workers is None
    one, other = follow(learner, batches[5:]), follow(copy, batches[5:])
    np.testing.assert_allclose(one, other, rtol=1e-7)


def test_a_batch_solver_asks_the_workers():
    found = []
    for workers in (None, 2):
        learner = make_learner("square", workers)
        follow(learner, batches_of("square")[:5])
        found.append(ofw.baselines.active_alt(learner.objective, learner.constraint, max_iter=3))
    one, other = found
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-7)
    np.testing.assert_allclose(other.gap, one.gap, rtol=1e-4)


def test_a_bad_batch_changes_nothing():
    learner = make_learner("square", 2)
    follow(learner, batches_of("square")[:2])
    before = learner.objective.value()
    with pytest.raises(ValueError, match="row"):
        learner.observe(np.array([[99, 0]]), np.array([1.0]))
    assert learner.objective.value() == before


def test_an_error_in_a_worker_is_raised_here_and_leaves_it_usable():
    learner = make_learner("square", 2)
    follow(learner, batches_of("square")[:2])
    before = learner.objective.value()
    with pytest.raises(ValueError, match=r"broadcast|mismatch"):
        past_of(learner).forward(np.ones((COLUMNS + 1, 2)))  # longer than a row
    assert learner.objective.value() == pytest.approx(before)
