"""Linear models with workers that have a GPU each: the same way as in one process's memory.

The workers are in this process, so neither Ray nor more than one GPU is needed.
"""

import pickle
import sys

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import _devices
from onlinefw.distributed import ClusterLost
from onlinefw.objectives import LinearObjective, RunningLeastSquares

from ..ray.in_process import kill_before
from ..ray.problems import follow as history_of
from ..ray.problems import pairs
from ..ray.rows import ROW_PROBLEMS, assert_same_rows, make_row_learner, row_batches
from .problems import KINDS, LOSSES, batches, follow, make_rows, scale_of

pytestmark = pytest.mark.usefixtures("in_process")

#: Bytes are multiplied in single precision in memory, in double precision on a GPU.
TOLERANCES = {"bytes, then doubles": 1e-5}


def shards_of(learner):
    return learner.objective._shared.past.shards


def assert_same_way(name, found, expected):
    tol = TOLERANCES.get(name, 1e-7)
    np.testing.assert_allclose(found, expected, rtol=100 * tol, atol=tol)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers"), pairs(ROW_PROBLEMS, "square", "sparse logistic, line search", "newton")
)
@pytest.mark.usefixtures("cuda")
def test_workers_with_gpus_make_the_same_trajectory(name, workers):
    expected = make_row_learner(name)
    learner = make_row_learner(name, workers, device="cuda")
    history = history_of(expected, row_batches(name))
    assert_same_way(name, history_of(learner, row_batches(name)), history)
    assert_same_rows(expected, learner, TOLERANCES.get(name, 1e-7))
    assert (learner.objective.device, learner.objective.workers) == ("cuda", workers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.usefixtures("cuda")
def test_the_same_way_for_every_loss(rng, kind, name):
    loss, targets = LOSSES[name]

    def make(place):
        objective = LinearObjective(loss, fit_intercept=kind.endswith("32"), **place)
        return ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(0.6 / scale_of(kind)))

    places = ({}, {"device": "cuda", "workers": 2 + len(name) % 2})
    follow(places, make, batches(rng, kind, targets, rounds=8))


@pytest.mark.parametrize("name", ["logistic, intercept, weights", "sums"])
def test_rows_may_come_from_the_device(cuda, name):
    expected, learner = make_row_learner(name), make_row_learner(name, 2, device="cuda")
    for batch in row_batches(name):
        there = [None if one is None else cuda.asarray(np.asarray(one, float)) for one in batch]
        a, b = expected.observe(*batch), learner.observe(*there)
        assert b.loss == pytest.approx(a.loss)
    assert_same_rows(expected, learner, 1e-7)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.usefixtures("any_cuda")
def test_workers_without_rows_add_nothing(rng, sparse):
    kind = "sparse float64" if sparse else "float64"
    X, y = make_rows(rng, 5, 7, kind), np.array([1.0, -1.0, 1.0, 1.0, -1.0])

    def facts(device, workers):
        objective = LinearObjective(
            ofw.losses.Sigmoid(), fit_intercept=True, device=device, workers=workers
        )
        learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(1.0), ofw.steps.LineSearch())
        return [
            learner.observe(X, y).gap,
            objective._shared.past.steepest(0, objective.intercept),
            objective.value(),
            objective.smoothness(),
            objective.intercept,
            learner.certificate(),
            *learner.theta,
        ]

    expected = facts("cpu", None)
    for device in ("cpu", "cuda"):
        np.testing.assert_allclose(facts(device, 3), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["logistic, intercept, weights", "recent", "newton"])
@pytest.mark.usefixtures("cuda")
def test_workers_read_files_onto_their_gpus(name, tmp_path):
    pytest.importorskip("pyarrow")
    from ..ray.parquet_problems import in_files

    rows, expected = in_files(tmp_path, name), make_row_learner(name)
    learner = make_row_learner(name, 2, device="cuda")
    history = history_of(expected, row_batches(name))
    batches = [(batch,) for batch in rows]
    found = [history_of(learner, batches[:3])]
    shards = shards_of(learner)
    kill_before(shards, {5, 14})
    found.append(history_of(learner, batches[3:]))
    assert shards.restarts == 2
    assert_same_way(name, np.concatenate(found), history)
    assert_same_rows(expected, learner, 1e-7)


# Places -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sparse", "reservoir", "bytes, then doubles", "sums, away"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("cuda", 2), ("cuda", 3)),
        (("cuda", 2), ("cpu", None)),
        (("cuda", None), ("cuda", 2)),
        (("cuda", 2), ("cpu", 2)),
    ],
)
@pytest.mark.usefixtures("cuda")
def test_a_state_goes_on_in_any_place(name, before, after):
    stream = list(row_batches(name))
    expected = make_row_learner(name)
    learner = make_row_learner(name, before[1], device=before[0])
    history = history_of(expected, stream)
    history_of(learner, stream[:10])
    state = pickle.loads(pickle.dumps(learner.state_dict()))
    learner = type(learner).from_state(state, device=after[0], workers=after[1])
    assert (learner.objective.device, learner.objective.workers) == after
    assert_same_way(name, history_of(learner, stream[10:]), history[10:])
    assert_same_rows(expected, learner, TOLERANCES.get(name, 1e-7))


@pytest.mark.parametrize("name", ["sparse", "recent", "sums"])
@pytest.mark.usefixtures("cuda")
def test_a_pickle_comes_home(name):
    learner = make_row_learner(name, 2, device="cuda")
    stream = list(row_batches(name))
    history_of(learner, stream[:7])
    copy = pickle.loads(pickle.dumps(learner))
    assert copy.objective.workers is None
    history_of(learner, stream[7:]), history_of(copy, stream[7:])
    assert_same_rows(copy, learner, 1e-7)


MODELS = {
    "regressor": lambda: ofw.FrankWolfeRegressor(radius=2.0, batch_size=30),
    "robust regressor": lambda: ofw.FrankWolfeRegressor(
        radius=2.0, loss="correntropy", batch_size=30
    ),
    "three classes": lambda: ofw.FrankWolfeClassifier(
        radius=2.0, loss="logistic", batch_size=30, past="recent", max_past=80
    ),
    "search": lambda: ofw.RadiusSearch(
        ofw.FrankWolfeClassifier(loss="logistic", batch_size=30), [0.5, 1.0, 2.0]
    ),
}


def parts_of(model):
    """Return the models of a search, or a model itself."""
    return getattr(model, "estimators_", [getattr(model, "estimator", model)])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("cuda")
def test_a_model_may_move_between_rounds(rng, name):
    X = rng.standard_normal((180, 6))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(180)
    more = {} if "regressor" in name else {"classes": [0, 1, 2]}
    if more:
        y = np.digitize(y, [-0.5, 0.5])
    alone, model = MODELS[name](), MODELS[name]()
    places = [("cuda", 2), ("cuda", None), ("cpu", 3), ("auto", 3), ("cuda", 3), ("cpu", None)]
    for k, (device, workers) in enumerate(places):
        part = slice(30 * k, 30 * (k + 1))
        for one in parts_of(model):
            one.set_params(device=device, workers=workers)
        for one in (alone, model):
            one.partial_fit(X[part], y[part], **more)
        for one in parts_of(model):
            objective = np.ravel(one.objective_)[0]
            found = objective.device, objective.workers
            assert found == (device.replace("auto", "cpu"), workers)
        for a, b in zip(parts_of(alone), parts_of(model), strict=True):
            np.testing.assert_allclose(b.coef_, a.coef_, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(b.gap_, a.gap_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kind", ["regression", "classification"])
@pytest.mark.usefixtures("cuda")
def test_the_command_line(kind, tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from ...cli.running import ofw_json, rows
    from ...readers.writing import write

    monkeypatch.setattr("onlinefw.fitting.rows.FIRST_ROWS", 50)
    data = write(tmp_path / "d.csv", rows(target="number" if kind == "regression" else "label"))
    command = ["fit", kind, data, "--batch-size", 40, "-o", tmp_path / "model.ofw"]
    alone = ofw_json(*command)
    spread = ofw_json(*command, "--device", "cuda", "--workers", 2)
    assert spread["rounds"] == alone["rounds"]
    assert spread["gap"] == pytest.approx(alone["gap"], rel=1e-2, abs=1e-4)


# Faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["newton", "reservoir", "bytes, then doubles", "sums"])
@pytest.mark.usefixtures("cuda")
def test_lost_shards_come_back_to_their_gpus(name):
    stream = list(row_batches(name))
    expected, learner = make_row_learner(name), make_row_learner(name, 2, device="cuda")
    history_of(expected, stream)
    history_of(learner, stream[:3])
    shards = shards_of(learner)
    kill_before(shards, {5, 14, 19})
    history_of(learner, stream[3:])
    assert shards.restarts == 3
    assert_same_rows(expected, learner, TOLERANCES.get(name, 1e-7))


@pytest.mark.parametrize("name", ["recent", "sums, intercept, sparse"])
@pytest.mark.usefixtures("cuda")
def test_a_lost_cluster_leaves_the_past_to_a_machine_without_a_gpu(name, in_process, monkeypatch):
    stream = list(row_batches(name))
    expected, learner = make_row_learner(name), make_row_learner(name, 2, device="cuda")
    history_of(expected, stream)
    history_of(learner, stream[:12])
    in_process.shutdown()
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(_devices, "_why_not", lambda: "is not here")
    with pytest.raises(ClusterLost, match="state_dict"):
        learner.observe(*stream[12])
    resumed = type(learner).from_state(learner.state_dict())
    history_of(resumed, stream[12:])
    assert_same_rows(expected, resumed, 1e-7)


@pytest.mark.usefixtures("no_cupy")
def test_a_worker_without_cupy_says_what_to_install():
    for begin in (
        lambda: LinearObjective(ofw.losses.Square(), device="cuda", workers=2),
        lambda: RunningLeastSquares(4, device="cuda", workers=2),
        lambda: ofw.objectives.ObservedEntries((3, 4), device="cuda", workers=2),
    ):
        with pytest.raises(
            RuntimeError, match=r"a worker could not begin.*onlinefw\[gpu\]"
        ) as said:
            begin()
        assert "\n" not in str(said.value)


@pytest.mark.usefixtures("cuda")
def test_each_worker_needs_a_gpu_of_its_own():
    with pytest.raises(ValueError, match="4 workers need 4 GPUs, but the Ray cluster has 3"):
        LinearObjective(ofw.losses.Square(), device="cuda", workers=4)
    found = [RunningLeastSquares(4, device="auto", workers=n).device for n in (3, 4)]
    assert found == ["cuda", "cpu"]
