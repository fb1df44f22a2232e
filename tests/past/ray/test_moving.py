"""The past moves between places whole or not at all."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import _devices
from onlinefw.past.host.entries import HostEntries
from onlinefw.past.host.gram import HostGram
from onlinefw.past.host.rows import HostRows
from onlinefw.past.ray.errors import WorkerFailed

from ...cli.running import ofw as command_line
from ...cli.running import ofw_json, ratings, refusal
from ...readers.writing import write
from .in_process import ray_in_process
from .test_command_line import stop_after


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch, GPU=0.0) as module:
        yield module


def batches(kind):
    rng = np.random.default_rng(0)
    for _ in range(8):
        if kind == "matrix":
            yield (
                np.column_stack((rng.integers(12, size=40), rng.integers(9, size=40))),
                rng.random(40),
            )
        else:
            X = rng.standard_normal((40, 6))
            yield X, (X[:, 0] > 0.0).astype(float)


MODELS = {
    "matrix": lambda: ofw.FrankWolfeMatrixCompletion(20.0, dtype="float64"),
    "classifier": lambda: ofw.FrankWolfeClassifier(radius=3.0),
    "regressor": lambda: ofw.FrankWolfeRegressor(radius=3.0, past="recent", max_past=200),
    "sums": lambda: ofw.FrankWolfeRegressor(radius=3.0),
}
#: What a worker holds its data in.
HELD = {"matrix": HostEntries, "classifier": HostRows, "regressor": HostRows, "sums": HostGram}


def taught(kind, batches, model=None):
    model = MODELS[kind]() if model is None else model
    for X, y in batches:
        options = {"classes": [0.0, 1.0]} if kind == "classifier" else {}
        model.partial_fit(X, y, **options)
    return model


def assert_same_predictions(kind, one, other):
    X = np.concatenate([X for X, _ in batches(kind)])
    ask = "decision_function" if kind == "classifier" else "predict"
    np.testing.assert_allclose(getattr(one, ask)(X), getattr(other, ask)(X), atol=1e-9)


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


@pytest.mark.parametrize("onwards", [2, None, 3], ids=str)
def test_a_device_that_workers_do_not_have_changes_nothing(kind, onwards):
    data = list(batches(kind))
    model = taught(kind, data[:4], MODELS[kind]().set_params(workers=2))
    model.set_params(device="cuda")
    with pytest.raises(ValueError, match="2 GPUs, but the Ray cluster has 0"):
        taught(kind, data[4:5], model)
    model.set_params(device="cpu", workers=onwards)
    taught(kind, data[4:], model)
    assert_same_predictions(kind, model, taught(kind, data))


@pytest.mark.parametrize("before", [None, 2], ids=str)
def test_workers_that_cannot_hold_the_past_change_nothing(kind, before, monkeypatch):
    def fails(*args):
        raise MemoryError("too much")

    data = list(batches(kind))
    model = taught(kind, data[:4], MODELS[kind]().set_params(workers=before))
    with monkeypatch.context() as patch:
        patch.setattr(HELD[kind], "load_state", fails)
        model.set_params(workers=3)
        with pytest.raises((WorkerFailed, MemoryError), match="too much"):
            taught(kind, data[4:5], model)
    model.set_params(workers=before)
    taught(kind, data[4:], model)
    assert_same_predictions(kind, model, taught(kind, data))


def test_a_gpu_that_is_not_here_is_said_but_what_comes_from_one_goes_on(kind, monkeypatch):
    monkeypatch.setattr(_devices, "_why_not", lambda: "needs CuPy")
    data = list(batches(kind))
    model = taught(kind, data[:4])
    model.device = "cuda"  # as where it comes from
    copy = pickle.loads(pickle.dumps(model))
    assert copy.device == "cpu"
    taught(kind, data[4:], copy)
    with pytest.raises(RuntimeError, match="needs CuPy"):
        taught(kind, data[4:], model)
    taught(kind, data[4:], model.set_params(device="cpu"))
    assert_same_predictions(kind, copy, model)


def test_rounds_without_new_data_take_place_where_they_should():
    model = taught("matrix", batches("matrix")).set_params(workers=2)
    model.refine()
    assert model.objective_.workers == 2


def test_closed_workers_say_what_would_have_kept_the_past():
    model = taught("matrix", batches("matrix"), MODELS["matrix"]().set_params(workers=2))
    model.objective_.close()
    for ask in (model.objective_.value, model.objective_.state_dict):
        with pytest.raises(RuntimeError, match=r"before close\(\)"):
            ask()


def test_the_command_line_says_in_one_line_what_workers_miss(tmp_path, monkeypatch, ray):
    monkeypatch.setattr(_devices, "_why_not", lambda: "needs CuPy")
    ray.cluster_resources = lambda: {"CPU": 8.0, "GPU": 2.0}
    data = write(tmp_path / "data.csv", ratings())
    command = ["fit", "matrix", data, "-o", tmp_path / "model.ofw", "--device", "cuda"]
    assert "needs CuPy" in refusal(*command, "--workers", 2)


def test_a_checkpoint_from_a_gpu_goes_on_in_memory(tmp_path, monkeypatch):
    data = write(tmp_path / "data.csv", ratings())
    command = [
        "fit",
        "matrix",
        data,
        "--batch-size",
        40,
        "--radius",
        20,
        "-o",
        tmp_path / "model.ofw",
    ]
    alone = ofw_json(*command)
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        command_line(*command, "--checkpoint", tmp_path / "run.ckpt")
    from onlinefw.cli import fit

    def resumed_from_a_gpu(*args):
        session, *others = resume(*args)
        session.model.device = "cuda"
        return session, *others

    resume = fit.resume
    monkeypatch.setattr(fit, "resume", resumed_from_a_gpu)
    monkeypatch.setattr(_devices, "_why_not", lambda: "needs CuPy")
    assert ofw_json(*command, "--resume", tmp_path / "run.ckpt")["rounds"] == alone["rounds"]
