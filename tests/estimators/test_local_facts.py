"""What a matrix completion tells of its mixture and its short memory, in memory and in a file."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import onlinefw as ofw
from onlinefw.estimators.local_facts import LocalFacts
from onlinefw.kernels import local_events as kernels
from onlinefw.kernels import local_models


@pytest.fixture
def stream(rng):
    """Ratings of 40 people in sessions of 20: in each of them a person has another mood."""
    people = np.repeat(rng.integers(40, size=200), 20)
    X = np.column_stack((people, rng.integers(30, size=4000)))
    moods = np.repeat(rng.standard_normal(200), 20)
    return X, rng.standard_normal(30)[X[:, 1]] + moods + 0.3 * rng.standard_normal(4000)


def r2_of_last_half(model, X, y):
    return 1.0 - np.mean((model.learn(X, y) - y)[2000:] ** 2) / y.var()


def test_the_gain_is_what_the_short_memory_adds_to_the_predictions(stream, monkeypatch):
    model, without = ofw.FrankWolfeMatrixCompletion(), ofw.FrankWolfeMatrixCompletion()
    added = r2_of_last_half(model, *stream)
    monkeypatch.setattr(local_models, "MEMORY_PRIOR", 1e30)  # its weights stay 0
    added -= r2_of_last_half(without, *stream)
    assert added > 0.1
    memory = model.short_memory_
    assert memory.rows > 0.5 > abs(memory.columns)
    assert memory.gain == pytest.approx(added, rel=0.3)
    assert without.short_memory_.gain < 1e-9


def test_in_random_order_it_brings_next_to_nothing(stream, rng):
    X, y = stream
    order = rng.permutation(4000)
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X[order], y[order])
    assert 0.0 <= model.short_memory_.gain < 0.005


def test_errors_that_are_forgotten_do_not_count():
    """Each step of the mixture multiplies what counts by about 1 - 1 / (HORIZON + n / 4)."""
    count, steps = kernels.HORIZON, 30_000
    for n in range(int(kernels.HORIZON), int(kernels.HORIZON) + steps):
        count = (count + 1.0) / (1.0 + 1.0 / (kernels.HORIZON + 0.25 * n))
    assert kernels.remembered(int(kernels.HORIZON) + steps) == pytest.approx(count, rel=1e-3)
    assert kernels.remembered(7) == 7.0


def test_a_file_tells_the_same(stream, tmp_path):
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(*stream)
    ofw.save(model, tmp_path / "m.ofw")
    loaded = ofw.load(tmp_path / "m.ofw")
    assert loaded.short_memory_ == model.short_memory_
    assert loaded.mixture_ == model.mixture_
    assert len(model.mixture_.weights) == len(model.mixture_.ridges) == 3
    ofw.save(loaded, tmp_path / "again.ofw")
    assert ofw.load(tmp_path / "again.ofw").mixture_ == model.mixture_


def test_a_radius_leaves_no_short_memory_in_memory_or_in_a_file(stream, tmp_path):
    """Theta is then scaled into the ball, and errors of the models are not its own."""
    X, y = (part[:600] for part in stream)
    model = ofw.FrankWolfeMatrixCompletion(20.0, corrective="local")
    model.learn(X, y)
    ofw.save(model, tmp_path / "m.ofw")
    loaded = ofw.load(tmp_path / "m.ofw")
    assert model.short_memory_ is loaded.short_memory_ is None
    assert loaded.mixture_ == model.mixture_ and len(model.mixture_.weights) == 3
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_without_local_corrections_there_is_neither(stream):
    model = ofw.FrankWolfeMatrixCompletion(20.0, corrective=None).fit(*stream)
    assert model.short_memory_ is model.mixture_ is None
    one = ofw.FrankWolfeMatrixCompletion(corrective=ofw.LocalRidge(2, (5.0, 0.1)))
    one.learn(*stream)
    assert one.mixture_ is None and one.short_memory_.rows > 0.0  # of one model, no mixture
    with pytest.raises(NotFittedError):
        _ = ofw.FrankWolfeMatrixCompletion().short_memory_


WRONG = {
    "weights": [np.array([0.5, np.nan]), np.array(["a", "b"]), np.empty(0), [0.5, 0.5], None],
    "ridges": [np.ones((2, 3)), np.full((2, 2), np.inf), np.ones(2), 5.0],
    "memory": [np.array([0.5, 0.1]), np.array([0.5, np.nan, 0.0]), 0.5, np.ones(3, int)],
}


@pytest.mark.parametrize("name", WRONG)
def test_damaged_facts_are_refused_and_missing_ones_are_not(stream, name):
    state = ofw.FrankWolfeMatrixCompletion().fit(*stream).state_dict(past=False)
    good = {"weights": np.ones(2), "ridges": np.ones((2, 2)), "memory": np.ones(3)}
    assert LocalFacts.from_state(good).mixture.weights == (1.0, 1.0)
    for wrong in WRONG[name]:
        state["run"]["local"] = {**good, name: wrong}
        with pytest.raises(ValueError, match="facts about the mixture are damaged"):
            ofw.FrankWolfeMatrixCompletion().load_state(state)
    state["run"]["local"] = "0.5"
    with pytest.raises(ValueError, match="a state is"):
        ofw.FrankWolfeMatrixCompletion().load_state(state)
    del state["run"]["local"]  # as in files of earlier versions
    older = ofw.FrankWolfeMatrixCompletion().load_state(state)
    assert older.short_memory_ is older.mixture_ is None
