"""Workers that die come back with their data, and the answer is the same."""

import numpy as np
import pytest

from onlinefw.past.ray.batch_log import BatchLog

from .killing import kill_before
from .problems import assert_same, batches_of, follow, make_learner, past_of


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", ["ridge sweeps", "poisson, line search"])
def test_killed_workers_do_not_change_a_matrix(name, monkeypatch):
    monkeypatch.setattr("onlinefw.past.ray.entries.LARGE_BLOCK", 0)
    batches = batches_of(name)
    undisturbed, learner = make_learner(name), make_learner(name, 2)
    shards = past_of(learner).shards
    kill_before(shards, {39})  # of 78 questions and more
    expected = follow(undisturbed, batches)
    np.testing.assert_allclose(follow(learner, batches), expected, rtol=1e-5, atol=1e-6)
    assert shards.restarts >= 1
    assert_same(undisturbed, learner)


def test_a_log_holds_whole_batches_only(tmp_path):
    log = BatchLog(2, tmp_path)
    first, second = ("append", (np.arange(5), np.ones((2, 3)))), ("merge", (2,))
    log.append(0, first)
    log.append(0, second)
    path = next(log.folder.glob("shard-*0.log"))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    ((verb, arrays),) = log.records(0)
    assert verb == "append"
    for array, expected in zip(arrays, first[1], strict=True):
        np.testing.assert_array_equal(array, expected)
    assert list(log.records(1)) == []
    log.close()
    assert list(tmp_path.iterdir()) == []
