"""Estimators for streams that change: rows fade with a half-life."""

import numpy as np
import pytest
from sklearn.base import clone

import onlinefw as ofw
from onlinefw.estimators.race import Race
from onlinefw.files import load_checkpoint, save_checkpoint
from onlinefw.objectives import LinearObjective, RunningLeastSquares

N = 12


def changing(rng, n=2000, at=0.5):
    """Rows whose coefficients change their signs on the way."""
    X = rng.standard_normal((n, N))
    sign = np.where(np.arange(n) < at * n, 1.0, -1.0)
    return X, sign * (X[:, 0] - 2.0 * X[:, 1]) + 0.3 * rng.standard_normal(n) + 1.0


@pytest.mark.parametrize(
    "more", [{}, {"past": "recent", "max_past": 1500}, {"past": "reservoir", "max_past": 300},
             {"past": "summary"}], ids=str,
)  # fmt: skip
def test_after_a_change_a_model_that_forgets_is_better(more, rng):
    X, y = changing(rng)
    errors = {}
    for half_life in (None, 100.0):
        model = ofw.FrankWolfeRegressor(radius=3.0, half_life=half_life, **more)
        predicted = model.learn(X, y)
        errors[half_life] = np.mean((predicted - y)[-400:] ** 2)
    assert errors[100.0] < 0.3 * errors[None]


def test_labels_that_change_are_followed(rng):
    X, y = changing(rng)
    labels, errors = np.where(y > 1.0, "up", "down"), {}
    for half_life in (None, 100.0):
        model = ofw.FrankWolfeClassifier(radius=3.0, loss="logistic", half_life=half_life)
        errors[half_life] = np.mean(
            model.learn(X, labels, classes=["down", "up"])[-400:] != labels[-400:]
        )
    assert errors[100.0] < 0.12 < 0.3 < errors[None]


def test_fit_is_partial_fit_over_batches_and_a_correction(rng):
    X, y = changing(rng, 600)
    more = {"radius": 2.0, "half_life": 60.0, "past": "recent", "max_past": 500}
    whole, pieces = ofw.FrankWolfeRegressor(**more), ofw.FrankWolfeRegressor(**more)
    whole.fit(X, y)
    for start in range(0, 600, 256):
        pieces.partial_fit(X[start : start + 256], y[start : start + 256])
    pieces.correct()
    np.testing.assert_array_equal(whole.coef_, pieces.coef_)
    assert whole.gap_ == pieces.gap_ <= 0.01 * whole.mean_loss_


@pytest.mark.parametrize("loss", ["square", "logistic"])
@pytest.mark.parametrize("radius", [2.0, "auto"])
def test_files_and_checkpoints_hold_the_half_life(loss, radius, rng, tmp_path):
    X, y = changing(rng, 500)
    kind = ofw.FrankWolfeRegressor if loss == "square" else ofw.FrankWolfeClassifier
    y = y if loss == "square" else y > 1.0
    model = kind(radius=radius, loss=loss, half_life=6.5).fit(X[:300], y[:300])
    ofw.save(model, tmp_path / "m.ofw")
    loaded = ofw.load(tmp_path / "m.ofw")
    assert loaded.half_life == 6.5 and loaded.gap_ == model.gap_
    save_checkpoint(model, tmp_path / "m.ckpt")
    other = load_checkpoint(tmp_path / "m.ckpt")
    for one in (model, other):
        one.partial_fit(X[300:], y[300:])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.gap_ == other.gap_
    assert np.ravel(other.objective_)[0].half_life == 6.5


def test_the_parameter_is_one_of_scikit_learn(rng):
    model = clone(ofw.FrankWolfeClassifier(half_life=50))
    assert model.get_params()["half_life"] == 50
    assert ofw.RadiusSearch(model).get_params()["estimator__half_life"] == 50
    X, y = changing(rng, 50)
    for bad in (0.5, "soon", True):
        with pytest.raises(ValueError, match=f"half_life must be a number .*got {bad!r}"):
            model.set_params(half_life=bad).fit(X, y > 0)
        assert not hasattr(model, "classes_")


def test_what_fades_soon_needs_no_sample(rng):
    X, y = changing(rng, 50)
    for half_life, past in ((5.0, "all"), (50.0, "reservoir"), (None, "reservoir")):
        model = ofw.FrankWolfeClassifier(past="auto", max_past=60, half_life=half_life)
        model.partial_fit(X, y > 0)
        assert model._run.parts.past == past
    regressor = ofw.FrankWolfeRegressor(radius=1.0, half_life=9.0).fit(X, y)
    assert isinstance(regressor.objective_, RunningLeastSquares)
    rows = ofw.FrankWolfeRegressor(radius=1.0, half_life=9.0, loss="correntropy").fit(X, y)
    assert isinstance(rows.objective_, LinearObjective)


def test_scores_of_radii_fade():
    plain, fading = Race(2), Race(2, half_life=20.0)
    for race in (plain, fading):
        for k in range(300):
            early = k < 200
            race.add_rows(-np.array([[1.0, 1.2] if early else [1.2, 1.1]]), np.ones(1), 1)
    assert plain.best == 0 and fading.best == 1
    ages = np.arange(300)[::-1]
    share = np.arange(1, 301) * 2.0 ** (-ages / 20.0)
    losses = np.where(ages >= 100, 1.0, 1.2)
    assert fading.means[0] == pytest.approx(-(share @ losses) / share.sum())
    again = Race.from_state(fading.state_dict())
    np.testing.assert_array_equal(again.means, fading.means)


def test_steps_do_not_become_shorter_and_shorter(rng):
    X, y = changing(rng, 3000)
    model = ofw.FrankWolfeRegressor.paper(3.0, half_life=100.0)
    for start in range(0, 3000, 10):
        model.partial_fit(X[start : start + 10], y[start : start + 10])
    steps = model.history_["step_size"]
    assert steps[0] == 1.0 and (np.diff(steps) <= 0.0).all()
    assert steps[-1] == pytest.approx(2.0 / (1 + 144 / 10), rel=0.05)  # 1.44 half-lives
