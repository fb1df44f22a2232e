"""Local corrections on a GPU: a batch there is a batch in memory, to rounding."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.files import load_checkpoint, save_checkpoint
from onlinefw.objectives import merge_rule
from onlinefw.past.placed_models import PlacedModels
from onlinefw.past.some_regressions import Other

from ..changing import changing_ratings
from ..local_problems import assert_same, batches, follow, learner, together
from .test_entries import SHAPE, close, pair

pytestmark = pytest.mark.gpu


@pytest.fixture(params=[10**6, 64], ids=["all in the tail", "merged often"])
def tail(request, monkeypatch):
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", request.param)
    monkeypatch.setattr(merge_rule, "MERGE_COST", 0.0)
    monkeypatch.setattr(merge_rule, "NEWEST", 16)


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("of_rows", [True, False])
def test_some_regressions_are_those_in_memory(rng, dtype, of_rows):
    import cupy as cp

    from onlinefw.past.place import Place, listed

    there, here = pair(rng, ofw.losses.Square(), (1.0, 2.0), dtype)
    here = listed(here, Place(), here.theta)
    own, its = SHAPE if of_rows else SHAPE[::-1]
    which, rank, models = rng.permutation(own)[:7], 14, 3
    factors = np.zeros((its, models, 16), dtype)
    factors[:, :, :rank] = rng.standard_normal((its, models, rank))
    sides = factors.reshape(its, -1), rng.standard_normal((its, models)).astype(dtype)
    for third in (1.0, np.inf):
        ridges = np.array([(2.0, 0.1, third)] * models)
        on_device = Other(rank, *map(cp.asarray, sides))
        wide = Other(rank, *(x.astype(float) for x in sides))
        found = there.solve_some(of_rows, which, on_device, 0.7, ridges)
        assert isinstance(found, cp.ndarray)
        close(found, here.solve_some(of_rows, which, wide, 0.7, ridges), 1e-4)


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ridge": (2.0, 0.1), "biases": False, "radius": 5.0},
        {"weighted": True, "clip": False},
        {"dtype": np.float32},
        {"half_life": 8.0, "weighted": True},
    ],
    ids=str,
)
def test_a_batch_there_is_a_batch_here(options):
    data = list(batches(weighted=options.get("weighted", False)))
    options = {name: value for name, value in options.items() if name != "weighted"}
    here, there = learner(**options), learner(device="cuda", **options)
    tol = 1e-3 if options.get("dtype") is np.float32 else 1e-8
    np.testing.assert_allclose(follow(there, data), follow(here, data), rtol=tol)
    assert isinstance(there.corrective.models, PlacedModels)
    assert there.objective.device == "cuda"
    assert_same(there, here, tol)
    for one in (here, there):
        one.correct()
    assert_same(there, here, 10 * tol)
    if "radius" in options:
        for one in (here, there):
            one.refine()
        assert_same(there, here, 10 * tol)
    more = next(batches(1, shape=(40, 20)))
    assert there.observe(*more).loss == pytest.approx(here.observe(*more).loss, rel=10 * tol)


def distinct(data):
    """Return batches without repeated entries.

    Repeats are one sum there: how far apart they were stays in the scale of all when they leave.
    """
    seen, kept = set(), []
    for X, y, w in data:
        new = [k for k, entry in enumerate(map(tuple, X.tolist())) if entry not in seen]
        new = [k for n, k in enumerate(new) if tuple(X[k]) not in set(map(tuple, X[new[:n]]))]
        seen |= set(map(tuple, X.tolist()))
        if new:
            kept.append((X[new], y[new], None if w is None else w[new]))
    return kept


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("half_life", [None, 8.0])
def test_a_row_is_forgotten_there_as_here(half_life):
    data, more = distinct(batches()), next(batches(1))
    here, there = learner(half_life=half_life), learner(device="cuda", half_life=half_life)
    for one in (here, there):
        follow(one, data)
        one.forget(3)
    assert_same(there, here, 1e-7)
    assert there.objective.columns_of(3).size == 0
    assert there.observe(*more).loss == pytest.approx(here.observe(*more).loss)


def test_single_events_are_batches_of_one():
    X, y, _ = next(batches(1, 40))
    here, there = learner(), learner(device="cuda")
    np.testing.assert_allclose(there.learn(X, y), here.learn(X, y), rtol=1e-8)
    assert_same(there, here, 1e-8)


@pytest.mark.parametrize("how", ["moved", "state", "pickle"])
@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")])
def test_a_run_goes_on_on_another_device(first, then, how):
    data = list(batches())
    whole, half = learner(), learner(device=first)
    follow(whole, data)
    follow(half, data[:5])
    if how == "moved":
        half.objective.use_place(then, None)
    elif how == "state":
        half = ofw.OnlineFrankWolfe.from_state(half.state_dict(), device=then)
    else:
        half, then = pickle.loads(pickle.dumps(half)), first
    assert half.objective.device == then
    follow(half, data[5:])
    assert_same(half, whole, 1e-8)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("end", [("cpu", None), ("cuda", None), ("cpu", 2), ("cuda", 3)], ids=str)
def test_workers_with_a_gpu_each(end):
    data = list(batches())
    whole, half = learner(), learner(2, device="cuda")
    follow(whole, data)
    follow(half, data[:5])
    state = half.state_dict()
    again = ofw.OnlineFrankWolfe.from_state(state, device=end[0], workers=end[1])
    half.objective.use_place(*end)
    for one in (again, half):
        follow(one, data[5:])
        assert (one.objective.device, one.objective.workers) == end
        assert_same(one, whole, 1e-8)


def estimator(**more):
    model = ofw.FrankWolfeMatrixCompletion(corrective=ofw.LocalRidge(14), dtype="float64", **more)
    return model.set_params(batch_size=60)


def test_an_estimator_learns_in_batches_and_predicts_the_same(tmp_path):
    X, y, _ = together(batches())
    here, there = estimator(), estimator(device="cuda")
    assert here.takes_events and not there.takes_events
    for k in range(0, len(y), 60):  # fit of the one in memory takes single observations
        here.partial_fit(X[k : k + 60], y[k : k + 60])
    there.fit(X, y)
    for change in (lambda model: model, lambda m: m.refine(), lambda m: m.correct()):
        found, expected = change(there), change(here)
        np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-7)
        assert found.gap_ == pytest.approx(expected.gap_, rel=1e-3)
        assert found.radius_ == pytest.approx(expected.radius_, rel=1e-6)
    np.testing.assert_array_equal(there.recommend(3)[0], here.recommend(3)[0])
    np.testing.assert_allclose(there.factors_[1], here.factors_[1], rtol=1e-5, atol=1e-8)
    ofw.save(there, tmp_path / "model.ofw")
    saved = ofw.load(tmp_path / "model.ofw").predict(X)
    np.testing.assert_allclose(saved, there.predict(X), atol=1e-9)
    found, expected = (m.learn(X[:5], y[:5], batch_size=2) for m in (there, here))
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_checkpoint_goes_on_on_the_gpu_and_an_estimator_moves(tmp_path):
    X, y, _ = together(batches())
    whole = estimator(device="cuda").partial_fit(X[:200], y[:200])
    save_checkpoint({"model": whole}, tmp_path / "half.ckpt")
    rest = load_checkpoint(tmp_path / "half.ckpt")["model"]
    moved = load_checkpoint(tmp_path / "half.ckpt")["model"].set_params(device="cpu")
    for model in (whole, rest, moved):
        model.partial_fit(X[200:], y[200:])
    assert [m.objective_.device for m in (whole, rest, moved)] == ["cuda", "cuda", "cpu"]
    for model in (rest, moved):
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-7)


def test_half_lives_side_by_side():
    X, y = changing_ratings()
    models = [
        ofw.FrankWolfeMatrixCompletion(
            half_life="auto", corrective=ofw.LocalRidge(4), dtype="float64", device=device
        )
        for device in ("cpu", "cuda")
    ]
    at_home, predicted = (model.learn(X, y, batch_size=300) for model in models)
    here, there = models
    # Repeated entries are one sum there, so that what leaves is not quite the same.
    assert np.mean((predicted - y) ** 2) == pytest.approx(np.mean((at_home - y) ** 2), rel=0.01)
    assert here.changes_.size == 1
    assert there.changes_.tolist() == here.changes_.tolist()
    assert there.half_life_ == here.half_life_
