"""Entries that are spread over workers with a GPU each: the same trajectory as in memory."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw

from ..ray.in_process import kill_before
from ..ray.problems import (
    MATRIX_PROBLEMS,
    assert_same,
    batches_of,
    follow,
    make_learner,
    pairs,
    tolerance,
)

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("in_process")]


def on_gpus(name, workers):
    learner = make_learner(name, workers, device="cuda")
    assert (learner.objective.device, learner.objective.workers) == ("cuda", workers)
    return learner


def alone(name):
    """A run in one process, in memory."""
    learner = make_learner(name)
    follow(learner, batches_of(name))
    return learner


@pytest.mark.parametrize(("name", "workers"), pairs(MATRIX_PROBLEMS, "square", "ridge sweeps"))
def test_the_trajectory_is_that_of_one_process(name, workers):
    here, spread, batches = make_learner(name), on_gpus(name, workers), batches_of(name)
    tol = tolerance(here)
    seen, expected = follow(spread, batches), follow(here, batches)
    np.testing.assert_allclose(seen, expected, rtol=10 * tol, atol=tol)
    assert_same(here, spread)


@pytest.mark.parametrize("name", ["inner steps", "ridge sweeps"])
def test_large_products_stay_on_the_devices(name, monkeypatch):
    monkeypatch.setattr("onlinefw.past.ray.entries.LARGE_BLOCK", 0)
    spread = on_gpus(name, 2)
    follow(spread, batches_of(name))
    assert_same(alone(name), spread)


@pytest.mark.parametrize("name", ["square", "own loss, line search", "ridge sweeps"])
def test_lost_shards_come_back(name):
    spread = on_gpus(name, 3)
    kill_before(spread.objective._past.shards, {5, 15, 16})
    follow(spread, batches_of(name))
    assert spread.objective._past.shards.restarts == 3
    assert_same(alone(name), spread)


@pytest.mark.parametrize("end", [("cpu", None), ("cuda", None), ("cpu", 2), ("cuda", 3)], ids=str)
def test_a_run_goes_on_anywhere(end):
    (device, workers), name = end, "joint biases"
    spread, batches = on_gpus(name, 2), batches_of(name)
    follow(spread, batches[:11])
    state = spread.state_dict()
    moved = ofw.OnlineFrankWolfe.from_state(state, device=device, workers=workers)
    spread.objective.use_place(device, workers)
    for learner in (moved, spread):
        assert (learner.objective.device, learner.objective.workers) == end
        follow(learner, batches[11:])
        assert_same(alone(name), learner, resumed=True)


def test_a_pickle_and_a_lost_cluster_leave_everything_in_one_process(in_process):
    spread, batches = on_gpus("square", 2), batches_of("square")
    follow(spread, batches[:8])
    copy = pickle.loads(pickle.dumps(spread))
    in_process.shutdown()
    rebuilt = ofw.OnlineFrankWolfe.from_state(spread.state_dict())
    for learner in (copy, rebuilt):
        assert learner.objective.workers is None
        follow(learner, batches[8:])
        assert_same(alone("square"), learner, resumed=True)


def test_workers_read_files_onto_their_devices(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.integers(20, size=900) for _ in "ab"]), rng.standard_normal(900)
    for part in range(3):
        some = slice(part, None, 3)
        table = pa.table({"user": X[some, 0], "item": X[some, 1], "rating": y[some]})
        pq.write_table(table, tmp_path / f"part-{part}.parquet")
    ratings = ofw.distributed.ParquetRatings(tmp_path, batch_size=60)
    learners = []
    for place in ({}, {"device": "cuda", "workers": 2}):
        objective = ofw.objectives.ObservedEntries(ratings.shape, dtype=float, **place)
        learners.append(ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(20.0)))
    here, spread = learners
    seen = [follow(learner, [(batch,) for batch in ratings]) for learner in learners]
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-6)
    shards = spread.objective._past.shards
    kill_before(shards, {0})
    assert_same(here, spread)
    assert shards.restarts == 1


def test_an_estimator_takes_both():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(30, size=2000), rng.integers(20, size=2000)))
    y = rng.standard_normal(2000)
    models = [
        ofw.FrankWolfeMatrixCompletion(30.0, batch_size=100, dtype="float64", **place).fit(X, y)
        for place in ({}, {"device": "cuda", "workers": 2}, {"device": "auto", "workers": 3})
    ]
    assert [m.objective_.device for m in models] == ["cpu", "cuda", "cuda"]
    for model in models[1:]:
        np.testing.assert_allclose(model.predict(X), models[0].predict(X), atol=1e-6)
