"""``past="summary"`` of regressors and classifiers: bounded memory, a step for each row."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import onlinefw as ofw
from onlinefw.estimators import linear_run
from onlinefw.files import load_checkpoint, save_checkpoint
from onlinefw.losses import Poisson
from onlinefw.sets import L1Ball

WIDTH = 30


def regression(seed, n, width=WIDTH):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, width))
    return X, 3.0 + X[:, 0] - 2.0 * X[:, 1] + 0.3 * rng.standard_normal(n)


def labelled(seed, n, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, WIDTH))
    scores = X[:, :classes] + 0.2 * rng.standard_normal((n, classes))
    return X, np.array(["a", "b", "c", "d"])[scores.argmax(axis=1)]


def test_a_regressor_finds_the_coefficients():
    X, y = regression(0, 5000)
    model = ofw.FrankWolfeRegressor(radius=4.0, past="summary").fit(X, y)
    np.testing.assert_allclose(model.coef_[:2], [1.0, -2.0], atol=0.05)
    assert np.abs(model.coef_[2:]).max() < 0.05
    assert model.intercept_ == pytest.approx(3.0, abs=0.05)
    assert np.isnan(model.gap_) and 0.0 <= model.gap_estimate_ < 0.5
    assert model.mean_loss_ == pytest.approx(0.045, rel=0.5)


def test_with_rows_kept_nothing_is_estimated():
    model = ofw.FrankWolfeRegressor(radius=4.0).fit(*regression(0, 100))
    assert model.gap_estimate_ == model.gap_


@pytest.mark.parametrize(
    ("loss", "classes"), [("sigmoid", 2), ("logistic", 3), ("bernoulli", 2), ("square", 3)]
)
def test_classifiers_of_all_losses(loss, classes):
    X, y = labelled(1, 4000, classes)
    X_new, y_new = labelled(2, 2000, classes)
    model = ofw.FrankWolfeClassifier(loss=loss, past="summary").fit(X, y)
    everything = ofw.FrankWolfeClassifier(loss=loss).fit(X[:2000], y[:2000])
    assert model.score(X_new, y_new) > everything.score(X_new, y_new) - 0.03
    assert model.coef_.shape == everything.coef_.shape


@pytest.mark.parametrize("loss", ["correntropy", "gaussian", "poisson", "exponential"])
def test_regressors_of_all_losses(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6000, 5))
    z = 0.5 * X[:, 0] - 0.3 * X[:, 1] + (-1.5 if loss == "exponential" else 0.5)
    if loss == "poisson":
        y, mean = rng.poisson(np.exp(z)), np.exp(z)
    elif loss == "exponential":
        z = np.minimum(z, -0.2)
        y, mean = rng.exponential(-1.0 / z), -1.0 / z
    else:
        y, mean = z + 0.2 * rng.standard_normal(z.size), z
    model = ofw.FrankWolfeRegressor(radius=0.8, loss=loss, past="summary").fit(X, y)
    paid = [model.loss_.value(at, y).mean() for at in (X @ model.coef_ + model.intercept_, z)]
    assert paid[0] < paid[1] + 0.1
    if loss != "exponential":  # whose mean -1 / z is anything near z = 0
        spread = np.mean((mean - mean.mean()) ** 2)
        assert np.mean((model.predict(X) - mean) ** 2) < 0.1 * spread


def test_large_counts_do_not_run_away():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 3))
    y = rng.poisson(np.exp(6.0 + X[:, 0]))
    model = ofw.FrankWolfeRegressor(radius=3.0, loss=Poisson(), past="summary").fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.intercept_ == pytest.approx(6.0, abs=0.3)


def test_radii_race_and_the_best_goes_on_alone(monkeypatch):
    monkeypatch.setattr(linear_run, "RACE_ROWS", 5000)
    X, y = regression(5, 6000)
    model = ofw.FrankWolfeRegressor(past="summary")
    for k in range(0, 6000, 200):
        model.partial_fit(X[k : k + 200], y[k : k + 200])
        assert (len(model._run.radii) > 1) is (model.n_observations_ < 5000)
    assert np.mean((model.predict(X) - 3.0 - X[:, 0] + 2.0 * X[:, 1]) ** 2) < 0.02
    search = ofw.RadiusSearch(ofw.FrankWolfeRegressor(past="summary"), radii=[0.1, 3.0, 10.0])
    search.fit(X, y)
    assert search.best_radius_ > 1.0


def test_fit_is_partial_fit_over_any_batches_and_learn():
    X, y = labelled(6, 300)
    make = lambda: ofw.FrankWolfeClassifier(  # noqa: E731
        radius=5.0, loss="logistic", past="summary"
    )
    whole = make().fit(X, y)
    parts, events = make(), make()
    for k in range(0, 300, 37):
        parts.partial_fit(X[k : k + 37], y[k : k + 37], classes=["a", "b"])
    predicted = events.learn(X, y)
    for other in (parts, events):
        np.testing.assert_array_equal(other.coef_, whole.coef_)
        np.testing.assert_array_equal(other.intercept_, whole.intercept_)
    assert np.mean(predicted[100:] == y[100:]) > 0.8


def test_dense_and_sparse_rows_of_all_types_give_the_same():
    rng = np.random.default_rng(7)
    X = rng.integers(0, 3, (200, 9)).astype(np.uint8)
    y = X[:, 0] * 1.0 - X[:, 1]
    fits = [
        ofw.FrankWolfeRegressor(radius=2.0, past="summary").fit(rows, y)
        for rows in (X, X.astype(float), X.astype(np.float32), sparse.csr_matrix(X.astype(float)))
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.coef_, fits[0].coef_, rtol=1e-5, atol=1e-6)


def test_weights_count():
    X, y = regression(8, 2000)
    wrong = np.arange(2000) % 2 == 0
    y = np.where(wrong, 50.0, y)
    w = np.where(wrong, 1e-6, 1.0)
    model = ofw.FrankWolfeRegressor(radius=4.0, past="summary").fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.coef_[:2], [1.0, -2.0], atol=0.15)
    without = ofw.FrankWolfeRegressor(radius=4.0, past="summary").fit(X[~wrong], y[~wrong])
    none = ofw.FrankWolfeRegressor(radius=4.0, past="summary").fit(X, y, np.where(wrong, 0.0, 1.0))
    np.testing.assert_array_equal(none.coef_, without.coef_)


def test_memory_is_flat():
    X, y = regression(9, 500, 200)
    model = ofw.FrankWolfeRegressor(radius=4.0, past="summary", history_size=10, path_size=0)

    def play(times):
        for _ in range(times):
            model.partial_fit(X, y)

    play(20)
    tracemalloc.start()
    play(5)
    early = tracemalloc.get_traced_memory()[0]
    play(200)
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert late - early < 100_000
    size = len(pickle.dumps(model.state_dict()))
    play(100)
    assert len(pickle.dumps(model.state_dict())) < size + 1000


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("radius", [3.0, "auto"])
def test_it_resumes_bit_for_bit(tmp_path, classes, radius):
    X, y = labelled(10, 900, classes)
    labels = ["a", "b", "c"][:classes]
    whole = ofw.FrankWolfeClassifier(radius=radius, past="summary", scale=True)
    for k in range(0, 900, 100):
        whole.partial_fit(X[k : k + 100], y[k : k + 100], classes=labels)
    half = ofw.FrankWolfeClassifier(radius=radius, past="summary", scale=True)
    for k in range(0, 400, 100):
        half.partial_fit(X[k : k + 100], y[k : k + 100], classes=labels)
    save_checkpoint(half, tmp_path / "half")
    models = [load_checkpoint(tmp_path / "half"), pickle.loads(pickle.dumps(half))]
    models.append(clone(half).load_state(half.state_dict()))
    for model in models:
        for k in range(400, 900, 100):
            model.partial_fit(X[k : k + 100], y[k : k + 100])
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(model.history_["loss"], whole.history_["loss"])
        assert model.gap_estimate_ == whole.gap_estimate_


def test_a_model_file_predicts_and_tells_the_estimated_gap(tmp_path):
    X, y = labelled(11, 500)
    model = ofw.FrankWolfeClassifier(radius=3.0, past="summary").fit(X, y)
    ofw.save(model, tmp_path / "model")
    loaded = ofw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert np.isnan(loaded.gap_) and loaded.gap_estimate_ == model.gap_estimate_
    assert loaded.mean_loss_ == model.mean_loss_


REFUSED = {
    "constraint": ({"constraint": "l2"}, "learns on the l1 ball, but constraint is 'l2'"),
    "away": ({"away_steps": True}, "takes no away_steps=True"),
    "step": ({"step": "line-search"}, "takes no step='line-search'"),
    "inner steps": ({"inner_steps": 1}, "takes no inner_steps=1"),
    "corrective": ({"corrective": None}, "takes no corrective=None"),
    "max_past": ({"max_past": 10}, "takes no max_past=10"),
    "epochs": ({"epochs": 2}, "takes no epochs=2"),
    "shape": ({"coef_shape": (5, 6)}, "takes no coef_shape"),
    "device": ({"device": "cuda"}, "device='cuda'"),
    "workers": ({"workers": 2}, "workers=2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_it_is_refused_in_one_line(name):
    more, message = REFUSED[name]
    model = ofw.FrankWolfeRegressor(**{"radius": 1.0, "past": "summary", **more})
    with pytest.raises(ValueError, match=message) as error:
        model.fit(*regression(12, 20))
    assert "\n" not in str(error.value) and "summary" in str(error.value)


def test_rounds_without_rows_are_refused_and_change_nothing():
    X, y = regression(13, 50)
    model = ofw.FrankWolfeRegressor(L1Ball(2.0), past="summary").fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match="no refine, no epochs"):
        model.refine()
    model.set_params(device="cuda")
    with pytest.raises(ValueError, match="another place"):
        model.partial_fit(X, y)
    model.set_params(device="cpu")
    np.testing.assert_array_equal(model.coef_, before)
    model.partial_fit(X, y)
    assert model.n_rounds_ == 2


def test_a_forged_summary_is_refused():
    X, y = regression(14, 50)
    model = ofw.FrankWolfeRegressor(radius=2.0, past="summary").fit(X, y)
    for change in ("theta", "slope", "bend"):
        state = model.state_dict()
        state["run"]["team"]["learners"][0]["objective"]["iterate"][change] *= np.nan
        with pytest.raises(ValueError, match="not finite"):
            clone(model).load_state(state)
    state = model.state_dict()
    state["run"]["team"]["learners"][0]["objective"]["iterate"]["theta"] *= 100.0
    with pytest.raises(ValueError, match="norm"):
        clone(model).load_state(state)
    state = model.state_dict()
    state["run"]["kept"] = ["all", None]
    with pytest.raises(ValueError):
        clone(model).load_state(state)


#: Rows are learned one after another, so that a row of weight 2 is not the same row twice.
IN_TURN = {
    "check_sample_weight_equivalence_on_dense_data": "rows are learned in turn",
    "check_sample_weight_equivalence_on_sparse_data": "rows are learned in turn",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [ofw.FrankWolfeRegressor, ofw.FrankWolfeClassifier])
def test_scikit_learn_has_nothing_else_to_object(kind):
    check_estimator(kind(past="summary"), expected_failed_checks=IN_TURN)


def in_turn(model, X, y, **first):
    """Predict and learn row by row through the public face."""
    said = []
    for i in range(len(y)):
        one = X[i : i + 1]
        said.append(model.predict(one)[0] if i else None)
        model.partial_fit(one, y[i : i + 1], **first)
    return said[1:]


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_learn_is_predict_and_partial_fit_of_each_row(scale, compressed):
    X, y = regression(20, 250, 6)
    X = sparse.csr_array(X) if compressed else X
    settings = dict(radius=3.0, past="summary", scale=scale, path_size=20, history_size=60)
    one, two = (ofw.FrankWolfeRegressor(**settings) for _ in range(2))
    learned, said = one.learn(X, y), in_turn(two, X, y)
    np.testing.assert_allclose(learned[1:], said, rtol=1e-9, atol=1e-12)
    assert learned[0] == 0.0
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.n_rounds_ == two.n_rounds_ == one.n_observations_ == 250
    np.testing.assert_array_equal(one.path_["t"], two.path_["t"])
    np.testing.assert_array_equal(one.path_["coef"].toarray(), two.path_["coef"].toarray())
    np.testing.assert_allclose(one.history_["loss"], two.history_["loss"])


@pytest.mark.parametrize("radius", [3.0, pytest.param("auto", marks=pytest.mark.slow)])
def test_learn_in_pieces_is_learn_at_once(radius):
    X, y = labelled(21, 700, 3)
    w = np.random.default_rng(0).random(700)
    one, two = (ofw.FrankWolfeClassifier(radius=radius, past="summary") for _ in range(2))
    at_once = one.learn(X, y, w, classes=["a", "b", "c"])
    parts = np.split(np.arange(700), [1, 2, 300, 480, 600])
    said = [two.learn(X[part], y[part], w[part], classes=["a", "b", "c"]) for part in parts]
    np.testing.assert_array_equal(np.concatenate(said), at_once)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_equal(one.state_dict()["run"]["team"], two.state_dict()["run"]["team"])
    np.testing.assert_array_equal(one.history_["loss"], two.history_["loss"])


def test_a_loaded_model_does_not_learn(tmp_path):
    X, y = labelled(22, 100)
    ofw.save(ofw.FrankWolfeClassifier(radius=1.0, past="summary").fit(X, y), tmp_path / "m")
    with pytest.raises(ValueError, match="only predicts"):
        ofw.load(tmp_path / "m").learn(X, y)
