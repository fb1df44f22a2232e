"""Local corrections with workers: a batch there is a batch here, to rounding."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.files import load_checkpoint, save_checkpoint
from onlinefw.past.placed_models import PlacedModels
from onlinefw.sets import TraceNormBall

from ..local_problems import assert_same, batches, follow, learner, together
from .in_process import kill, kill_before, ray_in_process


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (1, {}),
        (2, {"ridge": (2.0, 0.1), "biases": False, "radius": 5.0}),
        (3, {"weighted": True, "clip": False}),
        (9, {"dtype": np.float32}),  # nine add up in a tree
        (3, {"half_life": 8.0, "weighted": True}),
    ],
    ids=str,
)
def test_a_batch_there_is_a_batch_here(workers, options):
    data = list(batches(weighted=options.pop("weighted", False)))
    here, spread = learner(**options), learner(workers, **options)
    tol = 1e-4 if options.get("dtype") is np.float32 else 1e-9
    np.testing.assert_allclose(follow(spread, data), follow(here, data), rtol=tol)
    assert isinstance(spread.corrective.models, PlacedModels)
    assert_same(spread, here, tol)
    for one in (here, spread):
        one.correct()
    assert_same(spread, here, 10 * tol)
    if "radius" in options:
        for one in (here, spread):
            one.refine()
        assert_same(spread, here, 10 * tol)
    more = next(batches(1, shape=(40, 20)))
    assert spread.observe(*more).loss == pytest.approx(here.observe(*more).loss, rel=10 * tol)


@pytest.mark.parametrize("half_life", [None, 8.0])
def test_a_row_is_forgotten_there_as_here(half_life):
    data, more = list(batches()), next(batches(1))
    here, spread = learner(half_life=half_life), learner(2, half_life=half_life)
    for one in (here, spread):
        follow(one, data)
        one.forget(3)
    assert_same(spread, here, 1e-8)
    assert not spread.theta.dense()[3].any()
    for k in range(2):
        kill(spread.objective._past.shards, k)
    assert spread.objective.columns_of(3).size == 0  # nor does it come back with a new worker
    assert_same(spread, here, 1e-8)
    assert spread.observe(*more).loss == pytest.approx(here.observe(*more).loss)


def test_single_events_are_batches_of_one():
    X, y, _ = next(batches(1, 40))
    here, spread = learner(), learner(2)
    np.testing.assert_allclose(spread.learn(X, y), here.learn(X, y), rtol=1e-9)
    assert_same(spread, here)


def test_lost_shards_come_back():
    data = list(batches())
    here, spread = learner(), learner(3)
    follow(here, data)
    follow(spread, data[:2])
    kill_before(spread.objective._past.shards, {2, 9, 10})
    follow(spread, data[2:])
    assert_same(spread, here)
    assert spread.objective._past.shards.restarts == 3


def test_a_lost_cluster_leaves_everything(ray):
    data = list(batches())
    here, spread = learner(), learner(2)
    follow(here, data)
    follow(spread, data[:5])
    ray.shutdown()
    with pytest.raises(ofw.distributed.ClusterLost):
        spread.observe(*data[4])
    rest = ofw.OnlineFrankWolfe.from_state(spread.state_dict())
    follow(rest, data[5:])
    assert_same(rest, here)


@pytest.mark.parametrize("how", ["moved", "state", "pickle"])
@pytest.mark.parametrize(("first", "then"), [(None, 2), (2, None), (2, 3)], ids=str)
def test_a_run_goes_on_anywhere(first, then, how):
    data = list(batches())
    whole, half = learner(), learner(first)
    follow(whole, data)
    follow(half, data[:5])
    if how == "moved":
        half.objective.use_place("cpu", then)
    elif how == "state":
        half = ofw.OnlineFrankWolfe.from_state(half.state_dict(), workers=then)
    else:
        half = pickle.loads(pickle.dumps(half))
        then = None
    assert half.objective.workers == then
    follow(half, data[5:])
    assert_same(half, whole)


def test_a_resumed_run_is_an_uninterrupted_one():
    data = list(batches())
    whole, half = learner(2), learner(2)
    follow(whole, data)
    follow(half, data[:5])
    rest = ofw.OnlineFrankWolfe.from_state(half.state_dict(), workers=2)
    follow(rest, data[5:])
    np.testing.assert_array_equal(rest.theta.dense(), whole.theta.dense())


def test_what_came_before_workers_with_lists_is_listed():
    """Entries of a run without local corrections, which go on with them."""
    X, y, _ = next(batches(1, 60))
    thetas = []
    for workers in (None, 2):
        objective = ofw.objectives.ObservedEntries((31, 22), dtype=float, workers=workers)
        objective.observe(X, y)
        corrective = ofw.LocalRidge(3, (2.0, 0.1))
        one = ofw.OnlineFrankWolfe(objective, TraceNormBall(1e100), corrective=corrective)
        one.observe(X[:20], y[:20])
        thetas.append(one.theta.dense())
    np.testing.assert_allclose(thetas[1], thetas[0], atol=1e-9)


def estimator(**more):
    model = ofw.FrankWolfeMatrixCompletion(corrective=ofw.LocalRidge(14), dtype="float64", **more)
    return model.set_params(batch_size=60)


def test_an_estimator_learns_in_batches_and_predicts_the_same(tmp_path):
    X, y, _ = together(batches())
    here, spread = estimator(), estimator(workers=2)
    assert here.takes_events and not spread.takes_events
    for k in range(0, len(y), 60):  # fit of the one here takes single observations
        here.partial_fit(X[k : k + 60], y[k : k + 60])
    spread.fit(X, y)
    for change in (lambda model: model, lambda m: m.refine(), lambda m: m.correct()):
        found, expected = change(spread), change(here)
        np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-8)
        assert found.gap_ == pytest.approx(expected.gap_, rel=1e-4)
        assert found.radius_ == pytest.approx(expected.radius_)
    np.testing.assert_array_equal(spread.recommend(3)[0], here.recommend(3)[0])
    ofw.save(spread, tmp_path / "model.ofw")
    saved = ofw.load(tmp_path / "model.ofw").predict(X)
    np.testing.assert_allclose(saved, spread.predict(X), atol=1e-9)
    found, expected = (m.learn(X[:5], y[:5], batch_size=2) for m in (spread, here))
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_a_checkpoint_of_an_estimator_goes_on_bit_for_bit(tmp_path):
    X, y, _ = together(batches())
    whole = estimator(workers=2).partial_fit(X[:200], y[:200])
    save_checkpoint({"model": whole}, tmp_path / "half.ckpt")
    rest = load_checkpoint(tmp_path / "half.ckpt")["model"]
    for model in (whole, rest):
        model.partial_fit(X[200:], y[200:])
    assert rest.objective_.workers == 2
    np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


def test_an_estimator_moves_between_rounds():
    X, y, _ = together(batches())
    expected, model = estimator(), estimator()
    for k, workers in enumerate((None, 2, 3, None)):
        part = slice(100 * k, 100 * k + 100)
        expected.partial_fit(X[part], y[part])
        model.set_params(workers=workers).partial_fit(X[part], y[part])
        assert model.objective_.workers == workers
        np.testing.assert_allclose(model.predict(X[part]), expected.predict(X[part]), atol=1e-8)


def test_values_in_files_are_read_in_this_process(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y, _ = together(batches())
    pq.write_table(
        pa.table({"user": X[:, 0], "item": X[:, 1], "rating": y}), tmp_path / "a.parquet"
    )
    ratings = ofw.distributed.ParquetRatings(tmp_path, batch_size=60)
    spread, here = estimator(workers=2).fit(ratings), estimator()
    for k in range(0, len(y), 60):
        here.partial_fit(X[k : k + 60], y[k : k + 60])
    np.testing.assert_allclose(spread.predict(X), here.predict(X), atol=1e-8)


@pytest.mark.parametrize("how", ["moved", "checkpoint"])
def test_models_whose_rank_is_found_go_on_with_workers_beyond_the_next_check(how, tmp_path):
    """In memory the rank is checked after 1,000 observations; with workers it is not."""
    X, y, _ = together(batches(30))
    model = ofw.FrankWolfeMatrixCompletion(corrective="local")
    model.learn(X[:500], y[:500])
    model.set_params(workers=2).partial_fit(X[500:1200], y[500:1200])
    if how == "moved":
        model.set_params(workers=None)
    else:
        save_checkpoint({"model": model}, tmp_path / "part.ckpt")
        model = load_checkpoint(tmp_path / "part.ckpt")["model"]
    model.partial_fit(X[1200:], y[1200:])
    assert model.n_observations_ == 1800
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * y.var()
