"""A masked array is refused in one line: numpy would forget the mask, and masked values count."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.losses import Logistic
from onlinefw.objectives import LinearObjective, ObservedEntries, RunningLeastSquares
from onlinefw.readers import IdMap

rng = np.random.default_rng(0)
X, Y, W = rng.standard_normal((20, 3)), np.where(np.arange(20) % 2, 1.0, -1.0), np.ones(20)
PAIRS = np.column_stack((np.arange(20) % 4, np.arange(20) % 5))


def rows(model):
    return model, {"X": X, "y": Y, "sample_weight": W}


def entries(model):
    return model, {"X": PAIRS, "y": Y, "sample_weight": W}


def prepared(model):
    """The same call on a model that has learned."""

    def call(**data):
        model.fit(X if "Matrix" not in type(model).__name__ else PAIRS, Y)
        return model.partial_fit(**data)

    return call


DOORS = {
    "regressor": rows(lambda **data: ofw.FrankWolfeRegressor(radius=1.0).fit(**data)),
    "regressor, later": rows(prepared(ofw.FrankWolfeRegressor(radius=1.0))),
    "classifier": rows(lambda **data: ofw.FrankWolfeClassifier(radius=1.0).fit(**data)),
    "classifier, later": rows(prepared(ofw.FrankWolfeClassifier(radius=1.0))),
    "search": rows(lambda **data: ofw.RadiusSearch(ofw.FrankWolfeRegressor()).fit(**data)),
    "completion": entries(lambda **data: ofw.FrankWolfeMatrixCompletion(1.0).fit(**data)),
    "completion, later": entries(prepared(ofw.FrankWolfeMatrixCompletion(1.0))),
    "kept rows": rows(lambda **data: LinearObjective(Logistic()).observe(**data)),
    "sums": rows(lambda **data: RunningLeastSquares(3).observe(**data)),
    "entries": entries(lambda **data: ObservedEntries((4, 5)).observe(**data)),
}


def masked(values):
    mask = np.zeros(values.shape, dtype=bool)
    mask[0] = True
    return np.ma.array(values, mask=mask)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_learning(door, name):
    call, data = DOORS[door]
    with pytest.raises(
        ValueError, match=rf"^{name} is a masked array: .*{name}\.filled\("
    ) as caught:
        call(**{**data, name: masked(data[name])})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("door", DOORS)
def test_plain_arrays_pass(door):
    call, data = DOORS[door]
    call(**data)


def test_predicting():
    models = [
        (ofw.FrankWolfeRegressor(radius=1.0), X),
        (ofw.FrankWolfeClassifier(radius=1.0), X),
        (ofw.FrankWolfeMatrixCompletion(1.0), PAIRS),
    ]
    for model, given in models:
        model.fit(given, Y)
        with pytest.raises(ValueError, match=r"^X is a masked array"):
            model.predict(masked(given))


def test_numbering():
    with pytest.raises(ValueError, match=r"^ids is a masked array"):
        IdMap().add(masked(np.arange(5)))
