"""The stand-in for Ray keeps what the other tests take for granted."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.distributed import ClusterLost

from ..changing import changing_ratings, changing_rows
from .in_process import kill_before, ray_in_process, travelled
from .problems import assert_same, batches_of, follow, make_learner, past_of
from .rows import assert_same_rows, make_row_learner, row_batches


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


def test_what_arrives_is_a_copy_that_cannot_be_changed():
    sent = np.arange(3.0)
    (arrived,) = travelled((sent,))
    assert arrived.tolist() == sent.tolist() and not np.shares_memory(arrived, sent)
    assert not arrived.flags.writeable


@pytest.mark.parametrize("workers", [1, 3, 9])  # nine add up in a tree
def test_trajectories_are_those_of_one_process(workers):
    name = "biases, growing"
    alone, spread = make_learner(name), make_learner(name, workers)
    batches = batches_of(name)
    np.testing.assert_allclose(follow(spread, batches), follow(alone, batches), rtol=1e-6)
    assert_same(alone, spread)


def test_lost_shards_come_back():
    name = "newton"
    alone, spread = make_row_learner(name), make_row_learner(name, 2)
    batches = list(row_batches(name))
    follow(alone, batches)
    follow(spread, batches[:1])
    shards = past_of(spread).shards
    kill_before(shards, {7, 40, 41})
    follow(spread, batches[1:])
    assert shards.restarts == 3
    assert_same_rows(alone, spread)


def test_a_lost_cluster_leaves_the_whole_past(ray):
    name = "biases, growing"
    alone, spread, batches = make_learner(name), make_learner(name, 2), batches_of(name)
    follow(alone, batches)
    follow(spread, batches[:13])
    ray.shutdown()
    with pytest.raises(ClusterLost, match=r"state_dict\(\).*workers=None"):
        spread.observe(*batches[13])
    with pytest.raises(ClusterLost, match="state_dict"):
        spread.objective.value()
    resumed = type(spread).from_state(spread.state_dict())
    follow(resumed, batches[13:])
    assert_same(alone, resumed)


@pytest.mark.parametrize("past", [{}, {"past": "reservoir", "max_past": 150, "half_life": 80.0}])
def test_somebody_is_forgotten_and_stays_so_when_a_shard_comes_back(past):
    rng = np.random.default_rng(0)
    X, who = rng.standard_normal((300, 8)), np.arange(300) % 9
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(300) > 0.0, "yes", "no")
    models = [
        ofw.FrankWolfeClassifier(radius=3.0, loss="logistic", workers=workers, **past)
        for workers in (None, 3)
    ]
    for model in models:
        for k in range(0, 300, 50):
            part = slice(k, k + 50)
            model.partial_fit(X[part], y[part], classes=["no", "yes"], ids=who[part])
        model.forget([2, 5])
    here, spread = models
    shards = spread.objective_._shared.past.shards
    kill_before(shards, {4})
    np.testing.assert_allclose(spread.coef_, here.coef_, rtol=1e-6)
    for model in models:
        model.partial_fit(X, y, ids=who)
        model.forget(3).correct()
    assert shards.restarts == 1
    np.testing.assert_allclose(spread.coef_, here.coef_, rtol=1e-6)
    assert spread.gap_ == pytest.approx(here.gap_, rel=1e-4, abs=1e-9)
    assert spread.objective_.seen_weight == pytest.approx(here.objective_.seen_weight)


@pytest.mark.parametrize("loss", ["square", "correntropy"])  # sums, and rows
def test_half_lives_side_by_side_are_those_of_one_process(loss):
    X, y = changing_rows()
    models = [ofw.FrankWolfeRegressor(loss=loss, half_life="auto", workers=n) for n in (None, 3)]
    at_home, predicted = (model.learn(X, y, batch_size=50) for model in models)
    here, spread = models
    np.testing.assert_allclose(predicted, at_home, rtol=1e-5, atol=1e-6)
    assert here.changes_.size == 1
    assert spread.changes_.tolist() == here.changes_.tolist()
    assert spread.history_["half_life"].tolist() == here.history_["half_life"].tolist()
    spread.partial_fit(X[:10], y[:10])  # copies that were made at the end go to workers with it
    assert all(one.learners[0].objective.workers == 3 for one in spread._run.runs)


@pytest.mark.slow
def test_half_lives_of_ratings_are_those_of_one_process():
    X, y = changing_ratings()
    sweeps = ofw.RidgeSweeps(4, ridge=2.0, growth=1.2, start=300)
    models = [
        ofw.FrankWolfeMatrixCompletion(
            half_life="auto", corrective=sweeps, radius=1e4, dtype="float64", workers=n
        )
        for n in (None, 2)
    ]
    at_home, predicted = (model.learn(X, y, batch_size=300) for model in models)
    here, spread = models
    # Where two half-lives are nearly equally good, rounding says who answers for a batch.
    others = np.abs(predicted - at_home) > 1e-6
    assert others.sum() <= 300
    assert here.changes_.size == 1
    assert spread.changes_.tolist() == here.changes_.tolist()
    assert spread.half_life_ == here.half_life_
