"""A person is forgotten: nothing of theirs is left, and everything else goes on."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.files import load_checkpoint, save_checkpoint

from ..factors.states import arrays


def ratings(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 25))
    X = np.column_stack((rng.integers(40, size=n), rng.integers(25, size=n)))
    return X, 3.0 + truth[X[:, 0], X[:, 1]]


def named(X):
    return np.array([[f"user {i}", f"item {j}"] for i, j in X], dtype=object)


MODELS = {
    "default": {},
    "fading": {"half_life": 500.0},
    "Frank-Wolfe steps": {"corrective": None, "radius": 50.0, "batch_size": 100},
    "a race of radii": {"corrective": None, "shape": (40, 25), "offsets": "biases"},
    "sweeps": {"corrective": "ridge", "radius": 300.0, "batch_size": 100},
    "labels": {"loss": "logistic"},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_forgotten_row_is_as_a_new_one(name):
    X, y = ratings()
    if name == "labels":
        y = np.where(y > 3.0, 1.0, -1.0)
    else:
        y[X[:, 0] == 11] = 77.125
    model = ofw.FrankWolfeMatrixCompletion(**MODELS[name])
    for part in np.array_split(np.arange(3000), 30):
        model.partial_fit(X[part], y[part])
    assert model.forget(11) is model
    items, _ = model.recommend(11, n=25)
    assert sorted(items) == list(range(25))
    known = model.predict([[11, j] for j in range(25)])
    fallback = model.predict([[999, j] for j in range(25)], unknown="fallback")
    np.testing.assert_allclose(known, fallback, atol=1e-4)
    assert not any((x == 77.125).any() for x in arrays(model.state_dict()))
    assert model.gap_ >= 0.0
    model.partial_fit(X[:100], y[:100])
    assert np.isfinite(model.predict(X)).all()


def test_an_id_is_gone_and_its_number_stays_empty():
    X, y = ratings()
    for ids in (named(X), X.astype(object) + 1000):
        model = ofw.FrankWolfeMatrixCompletion()
        model.learn(ids, y)
        name, number = ids[0, 0], list(model.row_ids_).index(ids[0, 0])
        model.forget(name)
        assert name not in model.row_ids_
        assert model.row_ids_[number] is None
        with pytest.raises(ValueError, match=r"row must be one of .* row ids"):
            model.recommend(name)
        with pytest.raises(ValueError, match=r"row must be one of the 39 row ids"):
            model.forget(name)
        with pytest.raises(ValueError, match="has not learned that row"):
            model.predict(ids[:1])
        before = len(model.row_ids_)
        again = ofw.FrankWolfeMatrixCompletion().load_state(model.state_dict())
        for one in (model, again):
            one.partial_fit(ids[:5], y[:5])
            assert list(one.row_ids_).index(name) == before
        np.testing.assert_array_equal(again.predict(ids), model.predict(ids))


def test_no_text_of_an_id_is_left_in_the_state():
    X, y = ratings()
    ids = named(X)
    ids[X[:, 0] == 3, 0] = "Rumpelstilzchen"
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(ids, y)
    assert any(b"Rumpel" in x.tobytes() for x in arrays(model.state_dict()))
    model.forget("Rumpelstilzchen")
    assert not any(b"Rumpel" in x.tobytes() for x in arrays(model.state_dict()))


def test_what_is_written_afterwards_is_without_them(tmp_path):
    X, y = ratings()
    model = ofw.FrankWolfeMatrixCompletion(half_life=800.0)
    model.learn(named(X), y)
    model.forget("user 5")
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    assert "user 5" not in loaded.row_ids_
    np.testing.assert_array_equal(loaded.recommend("user 6")[0], model.recommend("user 6")[0])
    with pytest.raises(ValueError, match="only predicts"):
        loaded.forget("user 6")
    save_checkpoint(model, tmp_path / "run.ofw")
    resumed = load_checkpoint(tmp_path / "run.ofw")
    resumed = resumed[0] if isinstance(resumed, tuple) else resumed
    np.testing.assert_array_equal(resumed.learn(named(X), y), model.learn(named(X), y))


@pytest.mark.parametrize("row", [40, -1, "ann", 1.5, None])
def test_an_unknown_row_is_refused_in_one_line(row):
    X, y = ratings()
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X, y)
    before = model.mean_loss_
    with pytest.raises(ValueError, match=r"row must be one of the 40 rows seen, 0 to 39, got"):
        model.forget(row)
    assert model.mean_loss_ == before


def test_the_certificate_speaks_of_what_is_left():
    X, y = ratings(6000)
    y = y + 0.5 * np.random.default_rng(1).standard_normal(6000)
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X, y)
    before = model.gap_
    model.forget(4)
    assert model.gap_ < 1.5 * before


def test_somebody_without_ratings_can_be_forgotten():
    model = ofw.FrankWolfeMatrixCompletion(shape=(5, 4))
    model.partial_fit([[0, 1], [2, 3]], [1.0, 5.0])
    value = model.mean_loss_
    assert model.forget(4).mean_loss_ == value
    model.forget(0).forget(2)
    assert model.predict([[0, 1]]) == 0.0
    model.partial_fit([[1, 1]], [4.0])


def test_a_change_of_taste_is_learned_with_a_half_life():
    X, y = ratings(16_000)
    _, other = ratings(16_000, seed=5)
    y = np.where(np.arange(16_000) < 8000, y, other)
    X[8000:] = ratings(16_000, seed=5)[0][8000:]
    late = {}
    for half_life in (None, 1500):
        found = ofw.FrankWolfeMatrixCompletion(half_life=half_life).learn(X, y)
        late[half_life] = np.mean((found - y)[-3200:] ** 2)
    assert late[1500] < 0.3 * late[None]


def test_the_radius_is_in_units_of_a_new_rating():
    X, y = ratings(8000)
    model, radii = ofw.FrankWolfeMatrixCompletion(half_life=600), []
    for k in range(0, 8000, 400):
        model.learn(X[k : k + 400], y[k : k + 400])
        radii.append(model.radius_)
    assert max(radii[5:]) < 2.0 * min(radii[5:])  # weights grow by 2^9


def test_a_half_life_is_checked_and_saved():
    X, y = ratings()
    with pytest.raises(ValueError, match="half_life must be a number"):
        ofw.FrankWolfeMatrixCompletion(half_life=-3).partial_fit(X, y)
    model = ofw.FrankWolfeMatrixCompletion(half_life=100)
    whole = model.learn(X, y)
    half = ofw.FrankWolfeMatrixCompletion(half_life=100)
    first = half.learn(X[:1000], y[:1000])
    resumed = ofw.FrankWolfeMatrixCompletion(half_life=100).load_state(half.state_dict())
    np.testing.assert_array_equal(np.append(first, resumed.learn(X[1000:], y[1000:])), whole)
