"""Linear models whose rows are spread over workers: the same trajectory as in one process."""

import pickle

import numpy as np
import pytest

from .killing import kill_before
from .problems import follow, pairs, past_of
from .rows import ROW_PROBLEMS, assert_same_rows, make_row_learner, row_batches

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize(("name", "workers"), pairs(ROW_PROBLEMS, "square, intercept"))
def test_workers_make_the_same_trajectory(name, workers):
    expected, learner = make_row_learner(name), make_row_learner(name, workers)
    history = follow(expected, row_batches(name))
    np.testing.assert_allclose(follow(learner, row_batches(name)), history, rtol=1e-6, atol=1e-9)
    assert_same_rows(expected, learner)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("sparse", 2, 3),
        ("reservoir", 2, 3),
        ("square, intercept", 2, None),
        ("trace norm", None, 2),
        ("sums, away", 2, 3),
        ("fading sample", 2, 3),
        ("sums, fading", 2, None),
    ],
)
def test_a_state_goes_on_with_any_number_of_workers(name, before, after):
    batches = list(row_batches(name))
    expected, learner = make_row_learner(name), make_row_learner(name, before)
    history = follow(expected, batches)
    follow(learner, batches[:10])
    learner = type(learner).from_state(learner.state_dict(), workers=after)
    assert learner.objective.workers == after
    np.testing.assert_allclose(follow(learner, batches[10:]), history[10:], rtol=1e-6, atol=1e-9)
    assert_same_rows(expected, learner)


@pytest.mark.parametrize("name", ["sparse", "recent", "sums"])
def test_a_pickle_comes_back_in_one_process(name):
    learner = make_row_learner(name, 2)
    batches = list(row_batches(name))
    follow(learner, batches[:7])
    copy = pickle.loads(pickle.dumps(learner))
    assert copy.objective.workers is None
    follow(learner, batches[7:])
    follow(copy, batches[7:])
    assert_same_rows(copy, learner)


@pytest.mark.parametrize("name", ["reservoir", "sums, intercept, sparse", "fading", "sums, fading"])
def test_killed_workers_do_not_change_a_linear_model(name):
    batches = list(row_batches(name))
    expected, learner = make_row_learner(name), make_row_learner(name, 2)
    follow(expected, batches)
    follow(learner, batches[:3])
    past = past_of(learner)
    kill_before(past.shards, {int(np.random.default_rng(5).integers(5, 25))})
    follow(learner, batches[3:])
    assert past.shards.restarts >= 1
    assert_same_rows(expected, learner)
