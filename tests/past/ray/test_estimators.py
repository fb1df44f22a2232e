"""Estimators with ``workers``: the same models, files and checkpoints."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.files import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.usefixtures("cluster")


def rows(n=300, classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    return X, np.argmax(X[:, :classes] + 0.3 * rng.standard_normal((n, classes)), axis=1)


def entries():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(20, size=600), rng.integers(15, size=600)))
    truth = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 15))
    return X, truth[X[:, 0], X[:, 1]] + 3.0


MODELS = {
    "completion": lambda **k: ofw.FrankWolfeMatrixCompletion(
        60.0, offsets="joint", weighting="smoothed", dtype="float64", batch_size=60, **k
    ),
    "completion, auto": lambda **k: ofw.FrankWolfeMatrixCompletion(
        offsets="biases", corrective="ridge", dtype="float64", batch_size=40, **k
    ),
    "regressor": lambda **k: ofw.FrankWolfeRegressor(radius=2.0, batch_size=50, **k),
    "robust regressor": lambda **k: ofw.FrankWolfeRegressor(
        radius=2.0, loss="correntropy", batch_size=50, **k
    ),
    "regressor, half-lives": lambda **k: ofw.FrankWolfeRegressor(
        loss="correntropy", radius=2.0, half_life="auto", batch_size=50, **k
    ),
    "classifier": lambda **k: ofw.FrankWolfeClassifier(
        radius=3.0, loss="logistic", batch_size=50, **k
    ),
    "three classes": lambda **k: ofw.FrankWolfeClassifier(
        radius=3.0, loss="logistic", batch_size=50, past="reservoir", max_past=120,
        random_state=0, **k
    ),
}  # fmt: skip


def data(name):
    if name.startswith("completion"):
        return entries()
    X, label = rows(classes=3 if name == "three classes" else 2)
    return X, label * 2.0 - 1.0 if "regressor" in name else label


def outcome(model, X):
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict(X)


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_the_same(name):
    X, y = data(name)
    alone, model = MODELS[name]().fit(X, y), MODELS[name](workers=2).fit(X, y)
    np.testing.assert_allclose(outcome(model, X), outcome(alone, X), atol=1e-6)
    np.testing.assert_allclose(model.gap_, alone.gap_, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_goes_on_with_other_workers(name, tmp_path):
    X, y = data(name)
    first, second = slice(0, len(y), 2), slice(1, len(y), 2)
    more = {"classes": np.unique(y)} if "class" in name else {}
    alone, model = MODELS[name](), MODELS[name](workers=2)
    for one in (alone, model):
        one.partial_fit(X[first], y[first], **more)
    save_checkpoint(model, tmp_path / "model.ckpt")
    for workers in (None, 2, 3):
        copy = load_checkpoint(tmp_path / "model.ckpt").set_params(workers=workers)
        copy.partial_fit(X[second], y[second])
        if workers is None:
            alone.partial_fit(X[second], y[second])
        np.testing.assert_allclose(outcome(copy, X), outcome(alone, X), atol=1e-6)
        objective = copy.objective_
        for one in objective if isinstance(objective, list) else [objective]:
            assert one.workers == workers


def test_a_model_file_predicts_the_same(tmp_path):
    X, y = data("completion")
    model = MODELS["completion"](workers=3).fit(X, y)
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.recommend(3)[0].tolist() == model.recommend(3)[0].tolist()


def test_a_search_shares_its_rows_among_radii():
    X, y = data("robust regressor")
    searches = [
        ofw.RadiusSearch(MODELS["robust regressor"](workers=workers), radii=[0.5, 1.0, 2.0])
        for workers in (None, 2)
    ]
    one, other = (search.fit(X, y) for search in searches)
    np.testing.assert_allclose(one.scores_, other.scores_, rtol=1e-7)
    copy = pickle.loads(pickle.dumps(other)).partial_fit(X, y)
    one.partial_fit(X, y)
    np.testing.assert_allclose(one.predict(X), copy.predict(X), atol=1e-7)
