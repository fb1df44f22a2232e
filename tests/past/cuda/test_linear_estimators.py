"""The estimators on a device: one argument, the same model."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import onlinefw as ofw

from ..changing import changing_rows

MODELS = {
    "square": lambda: ofw.FrankWolfeRegressor(radius=2.0),
    "robust": lambda: ofw.FrankWolfeRegressor(radius=2.0, loss="correntropy"),
    "away": lambda: ofw.FrankWolfeRegressor(
        radius=2.0, away_steps=True, past="recent", max_past=90
    ),
    "classes": lambda: ofw.FrankWolfeClassifier(radius=2.0, loss="logistic"),
    "matrices": lambda: ofw.FrankWolfeClassifier("trace", 2.0, coef_shape=(4, 3), inner_steps=1),
}


def data(seed, *, sparse=False, labels=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 12))
    if sparse:
        X[rng.random(X.shape) < 0.6] = 0.0
    z = 1.0 + X @ np.array([1.0, -1.0] + 10 * [0.0]) + 0.1 * rng.standard_normal(200)
    y = z if labels is None else np.array(labels)[np.digitize(z, [0.2, 1.4][: len(labels) - 1])]
    return (sp.csr_array(X) if sparse else X), y


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.usefixtures("cuda")
def test_the_same_model(name, sparse):
    labels = {"classes": ["a", "b", "c"], "matrices": ["no", "yes"]}.get(name)
    X, y = data(0, sparse=sparse, labels=labels)
    here, there = (
        MODELS[name]().set_params(device=device, batch_size=40) for device in ("cpu", "cuda")
    )
    here.fit(X, y), there.fit(X, y)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-4, atol=1e-6)
    assert there.gap_ == pytest.approx(here.gap_, rel=1e-3, abs=1e-7)
    assert clone(there).device == "cuda"


def test_data_on_the_device(cuda):
    X, y = data(1)
    here = ofw.FrankWolfeRegressor(radius=2.0).fit(X, y)
    there = ofw.FrankWolfeRegressor(radius=2.0, device="cuda").fit(cuda.asarray(X), cuda.asarray(y))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-6)
    np.testing.assert_allclose(there.predict(cuda.asarray(X)), here.predict(X), rtol=1e-6)


@pytest.mark.usefixtures("cuda")
def test_radii_side_by_side():
    X, y = data(2, labels=[-1, 1])
    models = []
    for device in ("cpu", "cuda"):
        model = ofw.FrankWolfeClassifier(loss="logistic", batch_size=50, device=device)
        models.append(ofw.RadiusSearch(model, [0.5, 1.0, 2.0]).fit(X, y))
    np.testing.assert_allclose(models[1].scores_, models[0].scores_, rtol=1e-4)


@pytest.mark.parametrize("past", [{}, {"past": "recent", "max_past": 150, "half_life": 80.0}])
@pytest.mark.usefixtures("cuda")
def test_somebody_is_forgotten_there_too(past):
    X, y = data(3, labels=["a", "b", "c"])
    who = np.arange(200) % 9
    models = [
        ofw.FrankWolfeClassifier(radius=2.0, loss="logistic", device=device, **past)
        for device in ("cpu", "cuda")
    ]
    for model in models:
        model.fit(X, y, ids=who).forget([2, 5])
    here, there = models
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-4, atol=1e-6)
    assert there.gap_ == pytest.approx(here.gap_, rel=1e-3, abs=1e-7)
    assert there.objective_[0].n_kept == here.objective_[0].n_kept


@pytest.mark.parametrize("loss", ["square", "correntropy"])  # sums, and rows
@pytest.mark.usefixtures("cuda")
def test_half_lives_side_by_side(loss):
    X, y = changing_rows()
    models = [
        ofw.FrankWolfeRegressor(loss=loss, half_life="auto", device=device)
        for device in ("cpu", "cuda")
    ]
    at_home, predicted = (model.learn(X, y, batch_size=50) for model in models)
    here, there = models
    np.testing.assert_allclose(predicted, at_home, rtol=1e-3, atol=1e-3)
    assert here.changes_.size == 1
    assert there.changes_.tolist() == here.changes_.tolist()
    assert there.half_life_ == here.half_life_
