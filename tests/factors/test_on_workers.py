"""Factors with workers: a batch there is a batch here, to rounding."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.files import load_checkpoint, save_checkpoint

from ..past.ray.in_process import kill, kill_before, ray_in_process
from .places import assert_same, batches, estimator, follow, learner, together


@pytest.fixture
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


def shards_of(one):
    return one.model.solver._shards


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (1, {}),
        (2, {"biases": False, "rank": 8}),
        (3, {"weighted": True, "clip": False}),
        (3, {"half_life": 8.0, "weighted": True}),
        (2, {"dtype": np.float32}),
        (9, {"random_state": 3}),
    ],
    ids=str,
)
def test_a_batch_there_is_a_batch_here(workers, options):
    data = list(batches(weighted=options.pop("weighted", False)))
    here, spread = learner(**options), learner(workers=workers, **options)
    tol = 1e-4 if options.get("dtype") is np.float32 else 1e-9
    np.testing.assert_allclose(follow(spread, data), follow(here, data), rtol=tol)
    assert (spread.device, spread.workers) == ("cpu", workers)
    assert_same(spread, here, tol)
    for one in (here, spread):
        one.refine()
    assert_same(spread, here, 10 * tol)
    for one in (here, spread):
        one.correct()
    assert spread.certificate() == pytest.approx(here.certificate(), rel=1e-3)
    more = next(batches(1, shape=(40, 20)))
    assert spread.observe(*more).loss == pytest.approx(here.observe(*more).loss, rel=10 * tol)
    assert shards_of(spread).restarts == 0


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("loss", [ofw.losses.Poisson(), ofw.losses.Correntropy(2.0)], ids=str)
def test_other_losses(loss):
    data = [(X, np.floor(np.abs(y)), w) for X, y, w in batches(4)]
    here, spread = learner(loss=loss), learner(loss=loss, workers=2)
    np.testing.assert_allclose(follow(spread, data), follow(here, data), rtol=1e-9)
    kill(shards_of(spread), 1)  # its means, where parabolas begin, come back as well
    for one in (here, spread):
        one.refine()
    assert_same(spread, here)


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("half_life", [None, 8.0])
def test_a_row_is_forgotten_there_as_here(half_life):
    data, more = list(batches()), next(batches(1))
    here, spread = learner(half_life=half_life), learner(workers=2, half_life=half_life)
    for one in (here, spread):
        follow(one, data)
        one.forget(3)
    assert_same(spread, here)
    part = shards_of(spread)._workers[1]._worker._shards
    (held,) = part.values()
    assert held.shard.past._chains.rows.lists.length[3] == 0  # the worker has forgotten it, too
    assert not held.shard.past._chains.rows.samples[3].any()
    assert spread.observe(*more).loss == pytest.approx(here.observe(*more).loss)
    assert_same(spread, here)


@pytest.mark.usefixtures("ray")
def test_single_events_are_batches_of_one():
    X, y, _ = next(batches(1, 40))
    here, spread = learner(), learner(workers=2)
    expected = []
    for t in range(len(y)):
        batch = here.check(X[t : t + 1], y[t : t + 1])
        expected.append(here.learn_checked(batch, solving=False)[0])
        here.model.solve_learned(batch.rows, batch.cols)
    np.testing.assert_allclose(spread.learn(X, y), expected, rtol=1e-9)
    assert_same(spread, here)


@pytest.mark.usefixtures("ray")
def test_lists_that_are_read_piece_by_piece_begin_anew():
    """A long list of this process that a worker has solved as a whole."""
    rng = np.random.default_rng(0)
    X = np.column_stack((np.zeros(2600, int), rng.integers(9, size=2600)))
    y = rng.standard_normal(2600)
    here, spread = learner(), learner()
    for one in (here, spread):
        one.learn(X[:2300], y[:2300])
    assert here.model.rows.place[0] == 1
    spread.use_place("cpu", 2)
    for one in (here, spread):
        one.observe(X[2300:2400], y[2300:2400])
    spread.use_place("cpu", None)
    found, expected = (one.learn(X[2400:], y[2400:]) for one in (spread, here))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert_same(spread, here)


@pytest.mark.usefixtures("ray")
def test_lost_workers_come_back():
    data = list(batches())
    here, spread = learner(), learner(workers=3)
    follow(here, data)
    follow(spread, data[:2])
    kill_before(shards_of(spread), {2, 9, 10})
    follow(spread, data[2:])
    assert_same(spread, here)
    assert shards_of(spread).restarts == 3


@pytest.mark.parametrize("while_it_solves", [False, True])
def test_a_lost_cluster_leaves_everything(ray, while_it_solves):
    data = list(batches())
    here, spread = learner(), learner(workers=2)
    follow(here, data)
    follow(spread, data[:4])
    if while_it_solves:
        shards, ask = shards_of(spread), shards_of(spread).ask

        def lost(*args):
            ray.shutdown()
            shards.ask = ask
            return ask(*args)

        shards.ask = lost
    spread.observe(*data[4])  # is solved here, if the cluster is lost meanwhile
    ray.shutdown()
    for play in (lambda: spread.observe(*data[5]), spread.refine, lambda: spread.forget(3)):
        with pytest.raises(ofw.distributed.ClusterLost, match="state_dict"):
            play()
    rest = ofw.OnlineFactors.from_state(spread.state_dict())
    spread.use_place("cpu", None)
    for one in (rest, spread):
        follow(one, data[5:])
        assert_same(one, here)


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("how", ["moved", "state"])
@pytest.mark.parametrize(("first", "then"), [(None, 2), (2, None), (2, 3)], ids=str)
def test_a_run_goes_on_anywhere(first, then, how):
    data = list(batches())
    whole, half = learner(), learner(workers=first)
    follow(whole, data)
    follow(half, data[:5])
    if how == "moved":
        half.use_place("cpu", then)
    else:
        half = ofw.OnlineFactors.from_state(half.state_dict(), workers=then)
    assert half.workers == then
    follow(half, data[5:])
    assert_same(half, whole)
    half.close()
    assert half.workers is None
    assert half.observe(*data[0]).loss == pytest.approx(whole.observe(*data[0]).loss)


@pytest.mark.usefixtures("ray")
def test_a_resumed_run_is_an_uninterrupted_one():
    data = list(batches())
    whole, half = learner(workers=2), learner(workers=2)
    follow(whole, data)
    follow(half, data[:5])
    rest = ofw.OnlineFactors.from_state(half.state_dict(), workers=2)
    follow(rest, data[5:])
    X = np.indices(whole.shape).reshape(2, -1)
    np.testing.assert_array_equal(rest.predict(*X), whole.predict(*X))


def test_workers_are_given_back(ray):
    spread = learner(workers=2)
    assert ray.running
    del spread
    assert not ray.running


@pytest.mark.usefixtures("ray")
def test_what_is_not_solved_elsewhere_is_refused():
    with pytest.raises(ValueError, match="in this process"):
        ofw.OnlineFactors(unobserved=0.1, workers=2)
    with pytest.raises(ValueError, match="workers must be"):
        ofw.OnlineFactors(workers=0)


@pytest.mark.usefixtures("ray")
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
    np.testing.assert_array_equal(spread.because(3, 4)[0], here.because(3, 4)[0])
    ofw.save(spread, tmp_path / "model.ofw")
    saved = ofw.load(tmp_path / "model.ofw").predict(X)
    np.testing.assert_allclose(saved, spread.predict(X), atol=1e-9)
    found, expected = (m.learn(X[:5], y[:5], batch_size=2) for m in (spread, here))
    np.testing.assert_allclose(found[:4], expected[:4], atol=1e-8)  # the last is an event here


@pytest.mark.usefixtures("ray")
def test_a_checkpoint_of_an_estimator_goes_on_bit_for_bit(tmp_path):
    X, y, _ = together(batches())
    whole = estimator(workers=2).partial_fit(X[:200], y[:200])
    save_checkpoint({"model": whole}, tmp_path / "half.ckpt")
    rest = load_checkpoint(tmp_path / "half.ckpt")["model"]
    for model in (whole, rest):
        model.partial_fit(X[200:], y[200:])
    assert rest.objective_.workers == 2
    np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


@pytest.mark.usefixtures("ray")
def test_an_estimator_moves_between_rounds():
    X, y, _ = together(batches())
    expected, model = estimator(), estimator()
    for k, workers in enumerate((None, 2, 3, None)):
        part = slice(100 * k, 100 * k + 100)
        expected.partial_fit(X[part], y[part])
        model.set_params(workers=workers).partial_fit(X[part], y[part])
        assert model.objective_.workers == workers
        np.testing.assert_allclose(model.predict(X[part]), expected.predict(X[part]), atol=1e-8)


@pytest.mark.usefixtures("ray")
def test_half_lives_side_by_side():
    X, y, _ = together(batches(12, 100))
    here, spread = (estimator(half_life="auto", workers=n) for n in (None, 2))
    found, expected = (m.learn(X, y, batch_size=100) for m in (spread, here))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.usefixtures("ray")
def test_values_in_files_are_read_in_this_process(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y, _ = together(batches())
    table = pa.table({"user": X[:, 0], "item": X[:, 1], "rating": y})
    pq.write_table(table, tmp_path / "a.parquet")
    ratings = ofw.distributed.ParquetRatings(tmp_path, batch_size=60)
    spread, here = estimator(workers=2).fit(ratings), estimator()
    for k in range(0, len(y), 60):
        here.partial_fit(X[k : k + 60], y[k : k + 60])
    np.testing.assert_allclose(spread.predict(X), here.predict(X), atol=1e-8)
