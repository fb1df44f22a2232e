"""Local corrections with workers: a batch there is a batch here, to rounding."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.past.placed_models import PlacedModels
from onlinefw.sets import TraceNormBall

from .in_process import kill_before, ray_in_process


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


def batches(rounds=8, size=60, weighted=False, shape=(31, 22)):
    """Batches in which the matrix grows, some entries more than once."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    for k in range(rounds):
        part = 1 + k // 2 * (np.array(shape) - 1) // max(1, (rounds - 1) // 2)
        X = np.column_stack([rng.integers(n, size=size) for n in np.minimum(shape, part)])
        y = 3.0 + truth[X[:, 0], X[:, 1]] + 0.3 * rng.standard_normal(size)
        yield X, y, rng.uniform(0.5, 2.0, size) if weighted else None


def learner(workers=None, ridge="auto", dtype=float, radius=1e100, device="cpu", **more):
    objective = ofw.objectives.ObservedEntries(
        (1, 1), dtype=dtype, growing=True, workers=workers, device=device
    )
    corrective = ofw.LocalRidge(3, ridge, **more)
    return ofw.OnlineFrankWolfe(objective, TraceNormBall(radius), corrective=corrective)


def follow(one, data):
    return np.array([one.observe(*batch).loss for batch in data])


def assert_same(found, expected, tol=1e-9):
    scale = np.abs(expected.theta.dense()).max()
    difference = found.theta.dense() - expected.theta.dense()
    np.testing.assert_allclose(difference, 0.0, atol=tol * scale)
    X = np.indices(expected.objective.shape).reshape(2, -1)
    for one in ("corrective", "objective"):
        z, at = (getattr(model, one).predict(*X) for model in (found, expected))
        np.testing.assert_allclose(z, at, rtol=tol, atol=tol)
    assert found.objective.value() == pytest.approx(expected.objective.value(), rel=10 * tol)
    balls = [model.corrective.ball(model.objective) for model in (found, expected)]
    gaps = [m.objective.certificate(b) for m, b in zip((found, expected), balls, strict=True)]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-3)
    assert found.objective.n_observations == expected.objective.n_observations


@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (1, {}),
        (2, {"ridge": (2.0, 0.1), "biases": False, "radius": 5.0}),
        (3, {"weighted": True, "clip": False}),
        (9, {"dtype": np.float32}),  # nine add up in a tree
    ],
    ids=str,
)
def test_a_batch_there_is_a_batch_here(workers, options):
    data = list(batches(weighted=options.pop("weighted", False)))
    here, spread = learner(**options), learner(workers, **options)
    tol = 1e-4 if options.get("dtype") is np.float32 else 1e-9
    np.testing.assert_allclose(follow(spread, data), follow(here, data), rtol=tol)
    assert isinstance(spread.corrective._models, PlacedModels)
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
