"""Factors on a GPU: a batch there is a batch here, to rounding."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.factors import on_gpu
from onlinefw.files import load_checkpoint, save_checkpoint

from ..past.ray.in_process import kill_before, ray_in_process
from .places import assert_same, batches, estimator, follow, learner, together

pytestmark = pytest.mark.usefixtures("gpu")
#: Draws are made of logarithms and cosines in single precision, which processors round differently.
TOL = 1e-5


@pytest.fixture
def ray(monkeypatch, gpu):
    with ray_in_process(monkeypatch) as module:
        yield module


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rank": 16, "chains": 2},
        {"biases": False, "rank": 8},
        {"weighted": True, "clip": False},
        {"half_life": 8.0, "weighted": True, "dtype": np.float32},
        {"dtype": np.float32, "random_state": 3},
    ],
    ids=str,
)
def test_a_batch_there_is_a_batch_here(options):
    data = list(batches(weighted=options.pop("weighted", False)))
    here, there = learner(**options), learner(device="cuda", **options)
    tol = 1e-4 if options.get("dtype") is np.float32 else TOL
    np.testing.assert_allclose(follow(there, data), follow(here, data), rtol=tol)
    assert (there.device, there.workers) == ("cuda", None)
    for one in (here, there):
        one.refine()
    assert_same(there, here, 10 * tol)
    for one in (here, there):
        one.correct()
    assert there.certificate() == pytest.approx(here.certificate(), rel=1e-3)
    more = next(batches(1, shape=(40, 20)))
    assert there.observe(*more).loss == pytest.approx(here.observe(*more).loss, rel=10 * tol)


def test_long_lists_the_largest_rank_and_many_lists(monkeypatch):
    """More entries than are staged at once, with two warps a block, and lists in several parts."""
    monkeypatch.setattr(on_gpu, "AT_ONCE", 2)
    monkeypatch.setattr(on_gpu, "PARTS", 2)
    data = list(batches(2, 300, shape=(5, 4)))
    options = {"rank": on_gpu.LARGEST_RANK, "chains": 1}
    here, there = learner(**options), learner(device="cuda", **options)
    np.testing.assert_allclose(follow(there, data), follow(here, data), rtol=TOL)
    assert_same(there, here, TOL)


@pytest.mark.parametrize("half_life", [None, 8.0])
def test_a_row_is_forgotten_there_as_here(half_life):
    data, more = list(batches()), next(batches(1))
    here, there = (learner(half_life=half_life, device=device) for device in ("cpu", "cuda"))
    for one in (here, there):
        follow(one, data)
        one.forget(3)
    assert_same(there, here, TOL)
    assert there.observe(*more).loss == pytest.approx(here.observe(*more).loss, rel=TOL)
    assert_same(there, here, TOL)


def test_weights_may_come_late():
    data = list(batches(4)) + list(batches(2, weighted=True))
    here, there = learner(), learner(device="cuda")
    np.testing.assert_allclose(follow(there, data), follow(here, data), rtol=TOL)
    assert_same(there, here, TOL)


@pytest.mark.parametrize("how", ["moved", "state"])
@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "auto")])
def test_a_run_goes_on_on_another_device(first, then, how):
    data = list(batches())
    whole, half = learner(), learner(device=first)
    follow(whole, data)
    follow(half, data[:5])
    if how == "moved":
        half.use_place(then, None)
    else:
        half = ofw.OnlineFactors.from_state(half.state_dict(), device=then)
    assert half.device == ("cuda" if then == "auto" else then)
    follow(half, data[5:])
    assert_same(half, whole, TOL)


def test_a_resumed_run_is_an_uninterrupted_one():
    data = list(batches())
    whole, half = learner(device="cuda"), learner(device="cuda")
    follow(whole, data)
    follow(half, data[:5])
    rest = ofw.OnlineFactors.from_state(half.state_dict(), device="cuda")
    follow(rest, data[5:])
    X = np.indices(whole.shape).reshape(2, -1)
    np.testing.assert_array_equal(rest.predict(*X), whole.predict(*X))


@pytest.mark.usefixtures("ray")
def test_workers_with_a_gpu_each():
    data = list(batches())
    whole, spread = learner(), learner(workers=2, device="cuda")
    follow(whole, data)
    follow(spread, data[:3])
    kill_before(spread.model.solver._shards, {1, 4})
    follow(spread, data[3:5])
    spread.forget(3)
    again = ofw.OnlineFactors.from_state(spread.state_dict(), device="cuda", workers=3)
    here = ofw.OnlineFactors.from_state(spread.state_dict())
    for one in (again, spread, here):
        follow(one, data[5:])
    for one, restarts in ((again, 0), (spread, 2)):
        assert one.device == "cuda" and one.model.solver._shards.restarts == restarts
        assert_same(one, here, TOL)


def test_what_a_gpu_does_not_solve_is_refused():
    for options in ({"loss": ofw.losses.Poisson()}, {"rank": on_gpu.LARGEST_RANK + 1}):
        with pytest.raises(ValueError, match="a GPU solves factors of the square loss, of rank 60"):
            ofw.OnlineFactors(device="cuda", **options)
        assert ofw.OnlineFactors(device="auto", **options).device == "cpu"
    with pytest.raises(ValueError, match="in this process"):
        ofw.OnlineFactors(unobserved=0.1, device="cuda")
    assert ofw.OnlineFactors(unobserved=0.1, device="auto").device == "cpu"
    model = ofw.FrankWolfeMatrixCompletion(corrective="factors", loss="poisson", device="cuda")
    with pytest.raises(ValueError, match="a GPU solves"):
        model.partial_fit([[0, 0]], [1.0])


def test_an_estimator_learns_in_batches_and_predicts_the_same(tmp_path):
    X, y, _ = together(batches())
    here, there = estimator(), estimator(device="cuda")
    assert here.takes_events and not there.takes_events
    for k in range(0, len(y), 60):  # fit of the one in memory takes single observations
        here.partial_fit(X[k : k + 60], y[k : k + 60])
    there.fit(X, y)
    for change in (lambda model: model, lambda m: m.refine()):
        found, expected = change(there), change(here)
        np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-4)
    np.testing.assert_array_equal(there.recommend(3)[0], here.recommend(3)[0])
    again = pickle.loads(pickle.dumps(there))
    save_checkpoint({"model": there}, tmp_path / "half.ckpt")
    rest = load_checkpoint(tmp_path / "half.ckpt")["model"]
    moved = load_checkpoint(tmp_path / "half.ckpt")["model"].set_params(device="cpu")
    for model in (there, again, rest, moved):
        model.partial_fit(X[:200], y[:200])
    devices = [m.objective_.device for m in (there, again, rest, moved)]
    assert devices == ["cuda", "cuda", "cuda", "cpu"]
    for model in (again, rest, moved):
        np.testing.assert_allclose(model.predict(X), there.predict(X), atol=1e-4)
