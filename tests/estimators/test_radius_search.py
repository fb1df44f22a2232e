"""A search over radii is several models on one past, scored by predicting first."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler

import onlinefw as ofw
from onlinefw.estimators.race import Race
from onlinefw.losses import Logistic, Square
from onlinefw.sets import Birkhoff, Box, GroupL1Ball, L2Ball

Regressor, Classifier, Search = (
    ofw.FrankWolfeRegressor,
    ofw.FrankWolfeClassifier,
    ofw.RadiusSearch,
)
RADII = [0.2, 1.0, 5.0]
MODELS = {
    "square": Regressor(),
    "square, many features": Regressor(past="recent", max_past=100),
    "poisson": Regressor(loss="poisson", inner_steps=2),
    "logistic": Classifier(loss="logistic"),
    "logistic, three classes": Classifier(loss="logistic"),
    "squares of three classes": Classifier(loss="square"),
    "sigmoid, l2": Classifier("l2", inner_steps=3),
    "reservoir": Classifier(loss="logistic", past="reservoir", max_past=60, random_state=0),
}


def data(name, rng, n=200):
    X = rng.standard_normal((n, 8))
    score = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)
    if "three" in name:
        return X, np.digitize(score, [-0.7, 0.7])
    if isinstance(MODELS[name], Classifier):
        return X, (score > 0.3).astype(int)
    return X, rng.poisson(np.exp(0.5 * score)) if name == "poisson" else 3 + 2 * score


def stream(search, X, y, size=40, **options):
    for k in range(0, len(y), size):
        search.partial_fit(X[k : k + size], y[k : k + size], **options)
    return search


def state(search):
    """Everything that may differ between two searches."""
    models = [
        (one.coef_.tolist(), np.ravel(one.intercept_).tolist(), one.history_["loss"].tolist())
        for one in search.estimators_
    ]
    return models, search.scores_.tolist(), search.best_radius_, search.radii_.tolist()


# One past, several models ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_equals_the_one_fitted_alone(name, kind, rng):
    X, y = data(name, rng)
    X = kind(X)
    search = stream(Search(MODELS[name], RADII), X, y)
    assert search.radii_.tolist() == RADII
    for radius, one in zip(RADII, search.estimators_, strict=True):
        alone = stream(clone(MODELS[name]).set_params(radius=radius), X, y)
        assert one.radius == radius
        assert one.n_rounds_ == alone.n_rounds_ == 5
        if name in ("square", "squares of three classes"):  # sums: there is nothing to round
            np.testing.assert_array_equal(one.coef_, alone.coef_)
            np.testing.assert_array_equal(one.history_["loss"], alone.history_["loss"])
        else:
            # With a loss that is not convex rounding grows, on the largest ball 50-fold a round.
            atol = 1e-5 if name == "sigmoid, l2" else 1e-6
            np.testing.assert_allclose(one.coef_, alone.coef_, atol=atol)
            np.testing.assert_allclose(one.intercept_, alone.intercept_, atol=atol)
            np.testing.assert_allclose(one.history_["loss"], alone.history_["loss"], atol=1e-6)
        assert one.gap_ == pytest.approx(alone.gap_, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_data_are_kept_once(name, rng):
    search = stream(Search(MODELS[name], RADII), *data(name, rng))
    objectives = [k.objective for one in search.estimators_ for k in one._run.learners]
    pasts = {id(one._shared) for one in objectives}
    assert len(objectives) == 3 * search.estimators_[0]._n_models()
    assert len(pasts) == 1


@pytest.mark.parametrize("constraint", [L2Ball(7.0), GroupL1Ball([0, 0, 1, 1, 2, 2, 3, 3], 7.0)])
def test_a_set_given_as_an_object_gets_other_radii(constraint, rng):
    X, y = data("square", rng)
    search = stream(Search(Regressor(constraint), [0.5, 2.0]), X, y)
    assert [one.constraint.radius for one in search.estimators_] == [0.5, 2.0]
    assert constraint.radius == 7.0
    for one in search.estimators_:
        assert type(one.constraint) is type(constraint)
        assert one.constraint.contains(one.coef_)


# Scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["square", "logistic"])
def test_the_best_radius_is_that_of_progressive_validation(name, weighted, rng):
    X, y = data(name, rng)
    w = rng.uniform(0.2, 3.0, 200) if weighted else np.ones(200)
    search, loss = Search(MODELS[name], RADII), Logistic() if name == "logistic" else Square()
    alone = [clone(MODELS[name]).set_params(radius=radius) for radius in RADII]
    totals, total = np.zeros(3), 0.0
    for t, k in enumerate(range(0, 200, 25), start=1):
        part = slice(k, k + 25)
        share = t * w[part].sum()
        target = 2.0 * y[part] - 1.0 if name == "logistic" else y[part]
        for j, model in enumerate(alone):
            z = np.zeros(25)
            if t > 1:
                z = X[part] @ np.ravel(model.coef_) + np.ravel(model.intercept_)
            totals[j] += share * np.average(loss.value(z, target), weights=w[part])
            model.partial_fit(X[part], y[part], sample_weight=w[part])
        total += share
        search.partial_fit(X[part], y[part], sample_weight=w[part] if weighted else None)
        np.testing.assert_allclose(search.scores_, -totals / total, rtol=1e-7)
    assert search.best_radius_ == RADII[int(np.argmin(totals))]
    assert search.best_estimator_.radius == search.best_radius_


@pytest.mark.parametrize("weighted", [False, True])
def test_a_scorer_judges_batches_before_they_are_learned(weighted, rng):
    X, y = data("logistic, three classes", rng)
    w = rng.uniform(0.2, 3.0, 200)
    search = Search(Classifier(loss="logistic"), RADII, scoring="accuracy")
    alone = [Classifier(loss="logistic", radius=radius) for radius in RADII]
    totals, total = np.zeros(3), 0.0
    for t, k in enumerate(range(0, 200, 25), start=1):
        part = slice(k, k + 25)
        weights = w[part] if weighted else np.ones(25)
        if t > 1:  # before, all models are the same
            share = t * weights.sum()
            scores = [
                accuracy_score(y[part], one.predict(X[part]), sample_weight=weights)
                for one in alone
            ]
            totals += share * np.array(scores)
            total += share
        search.partial_fit(X[part], y[part], [0, 1, 2], w[part] if weighted else None)
        if t == 1:
            assert np.ptp(search.scores_) == 0.0
            totals += weights.sum() * search.scores_[0]
            total += weights.sum()
        for one in alone:
            one.partial_fit(X[part], y[part], [0, 1, 2], weights)
    np.testing.assert_allclose(search.scores_, totals / total, rtol=1e-12)
    assert search.best_radius_ == RADII[int(np.argmax(totals))]


def test_batches_without_a_defined_score_do_not_count(rng):
    X, y = data("logistic", rng)
    y[40:80] = 1  # the area under a curve needs both classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = stream(Search(MODELS["logistic"], RADII, scoring="roc_auc"), X, y)
    assert np.isfinite(search.scores_).all()
    assert search.best_radius_ in RADII
    assert search.best_estimator_.n_rounds_ == 5


def test_an_infinite_loss_rules_a_radius_out(rng):
    X = rng.standard_normal((40, 3))
    y = rng.poisson(np.exp(X[:, 0]))
    search = Search(Regressor(loss="poisson"), [1e-3, 1.0])
    search.partial_fit(X, y)
    search.partial_fit(1000.0 * np.abs(X), y)
    assert search.scores_[1] == -np.inf
    assert search.best_radius_ == 1e-3
    search.partial_fit(X, y)
    assert search.scores_[1] == -np.inf
    assert np.isfinite(search.scores_[0])


def test_before_anything_is_known_the_middle_is_best(rng):
    X, y = data("square", rng)
    assert Search(Regressor(), [1.0, 2.0, 3.0, 4.0, 5.0]).partial_fit(X, y).best_radius_ == 3.0


def test_a_race_has_weighted_means_with_their_standard_error(rng):
    scores, weights = rng.standard_normal((20, 2)), rng.uniform(0.5, 2.0, 20)
    race = Race(2)
    for score, weight in zip(scores, weights, strict=True):
        race.add(score, weight, 1)
        race.add(np.array([np.nan, 1.0]), weight, 1)
    share = np.arange(1, 40, 2) * weights  # round t counts t times
    means = np.average(scores, axis=0, weights=share)
    np.testing.assert_allclose(race.means, means)
    share = share / share.sum()
    for k in range(2):
        error = np.sqrt(np.sum(share**2 * (scores[:, k] - means[k]) ** 2))
        assert race.standard_error(k) == pytest.approx(error)
    difference = scores[:, 0] - scores[:, 1] - (means[0] - means[1])
    error = np.sqrt(np.sum(share**2 * difference**2))
    assert race.error_of_difference(0, 1) == pytest.approx(error)


def a_race_of_four(rng, rows):
    """Rows are hard or easy for all; the first is the best, and the last is a little worse."""
    race = Race(4)
    hard, own = 10.0 * rng.standard_normal((rows, 1)), 0.1 * rng.standard_normal((rows, 4))
    race.add_rows(hard + own - [0.0, 0.02, 0.0, 0.1], np.ones(rows), 1)
    return race


def test_models_are_compared_on_the_rows_that_both_predicted(rng):
    race = a_race_of_four(rng, 1000)
    gap = race.means[race.best] - race.means[3]
    assert gap < race.standard_error(3)  # by itself its score says nothing
    assert 3 not in race.unbeaten(settled=True)


def test_neighbours_of_the_best_stay_at_first_and_where_models_are_not_settled(rng):
    for rows, settled, stay in (
        (1000, True, [0, 1]),
        (3000, True, [0]),
        (3000, False, [0, 1, 2]),
    ):
        race = Race(4)
        scores = rng.standard_normal((rows, 1)) - [0.0, 5.0, 6.0, 7.0]
        race.add_rows(scores + 0.1 * rng.standard_normal((rows, 4)), np.ones(rows), 1)
        assert race.unbeaten(settled) == stay


def test_a_race_saved_without_products_of_scores_goes_on(rng):
    race = a_race_of_four(rng, 1000)
    new = race.state_dict()
    products = new.pop("products")
    old = Race.from_state({**new, "sums": np.vstack([new["sums"], np.diag(products)])})
    assert old.standard_error(1) == race.standard_error(1)
    assert old.error_of_difference(0, 3) > race.error_of_difference(0, 3)  # it knows less


def test_with_standard_errors_the_smallest_radius_within_them_is_taken(rng):
    X, y = data("square", rng, 400)
    radii = [0.1, 2.0, 4.5, 5.0, 6.0, 8.0]
    best = stream(Search(Regressor(), radii), X, y)
    careful = stream(Search(Regressor(), radii, standard_errors=1.0), X, y)
    np.testing.assert_array_equal(best.scores_, careful.scores_)
    error = careful._race.standard_error(best.best_index_)
    expected = min(np.flatnonzero(best.scores_ >= best.scores_.max() - error))
    assert careful.best_index_ == expected
    assert stream(Search(Regressor(), radii, standard_errors=1e9), X, y).best_radius_ == 0.1


# Radii -------------------------------------------------------------------------------------------


def test_the_radii_suggested_follow_the_scale_of_the_data(rng):
    X, y = data("square", rng)
    radii = Search(Regressor()).partial_fit(X, y).radii_
    np.testing.assert_allclose(radii[1:] / radii[:-1], 2.0)
    assert len(radii) == 12
    assert radii[0] < np.std(y) < radii[-1]
    np.testing.assert_allclose(Search(Regressor()).partial_fit(10 * X, y).radii_, radii / 10)
    np.testing.assert_allclose(Search(Regressor()).partial_fit(X, 10 * y).radii_, 10 * radii)
    sparse = Search(Regressor()).partial_fit(sp.csr_array(X), y).radii_
    np.testing.assert_allclose(sparse, radii)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_radii_suggested_do_not_depend_on_the_type_of_numbers(dtype, rng):
    X, y = rng.integers(0, 256, (50, 4)), rng.standard_normal(50)
    expected = Search(Regressor()).partial_fit(X.astype(float), y).radii_
    for kind in (np.asarray, sp.csr_array):
        radii = Search(Regressor()).partial_fit(kind(X.astype(dtype)), y).radii_
        np.testing.assert_allclose(radii, expected, rtol=1e-6)


def test_a_radius_that_fits_is_found(rng):
    X = rng.standard_normal((2000, 50))
    y = X[:, 0] - 2 * X[:, 1] + 3 * rng.standard_normal(2000)
    search = Search(Regressor(), [0.03, 0.3, 3.0, 30.0, 300.0]).fit(X, y)
    assert search.best_radius_ == 3.0


# Fitting -----------------------------------------------------------------------------------------


def test_fit_makes_at_least_ten_rounds_and_equals_partial_fit_on_them(rng):
    X, y = data("logistic", rng)
    fitted = Search(MODELS["logistic"], RADII).fit(X, y)
    assert fitted.best_estimator_.n_rounds_ == 10
    assert state(fitted) == state(stream(Search(MODELS["logistic"], RADII), X, y, 20).correct())
    small = clone(MODELS["logistic"]).set_params(batch_size=5)
    assert Search(small, RADII).fit(X, y).best_estimator_.n_rounds_ == 40


def test_later_epochs_learn_and_do_not_score(rng):
    X, y = data("logistic", rng)
    model = Classifier(loss="logistic", inner_steps=1)
    once = Search(model, RADII).fit(X, y)
    twice = Search(clone(model).set_params(epochs=4), RADII).fit(X, y)
    np.testing.assert_array_equal(once.scores_, twice.scores_)
    assert twice.best_estimator_.n_rounds_ == 40
    assert twice.best_estimator_.gap_ < once.best_estimator_.gap_
    assert twice.best_estimator_.objective_.n_observations == 200


@pytest.mark.parametrize("name", MODELS)
def test_a_search_pickled_in_mid_stream_goes_on_bit_for_bit(name, rng):
    X, y = data(name, rng)
    search = stream(Search(MODELS[name], RADII), X[:120], y[:120])
    copy = pickle.loads(pickle.dumps(search))
    for one in (search, copy):
        stream(one, X[120:], y[120:])
    assert state(search) == state(copy)
    objectives = [k.objective for one in copy.estimators_ for k in one._run.learners]
    assert len({id(one._shared) for one in objectives}) == 1


@pytest.mark.parametrize("name", ["square", "poisson", "logistic", "logistic, three classes"])
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error"])
def test_a_refused_batch_leaves_the_search_as_it_was(name, scoring, rng):
    X, y = data(name, rng)
    search, undisturbed = (
        stream(Search(MODELS[name], RADII, scoring=scoring), X[:80], y[:80]) for _ in range(2)
    )
    part = X[:20].copy()
    one_nan, huge = part.copy(), part.copy()
    one_nan[3, 2], huge[3, 2] = np.nan, 1e200 if scoring is None else np.inf
    target, n = y[:20], 20
    bad = [
        (one_nan, target, None),
        (huge, target, None),
        (part[:, :7], target, None),
        (part[:0], target[:0], None),
        (part, target[:-1], None),
        (part, target, -np.ones(n)),
        (part, target, np.zeros(n)),
        (part, np.full(n, 0.5), None) if name == "poisson" else (part, np.full(n, np.nan), None),
    ]
    if isinstance(MODELS[name], Classifier):
        bad.append((part, np.full(n, 9), None))
    for X_bad, y_bad, w_bad in bad:
        with pytest.raises(ValueError):
            search.partial_fit(X_bad, y_bad, sample_weight=w_bad)
    assert state(search) == state(undisturbed)
    for one in (search, undisturbed):
        stream(one, X[80:], y[80:])
    assert state(search) == state(undisturbed)


def test_a_refused_first_batch_leaves_the_search_unfitted(rng):
    X, y = data("square", rng)
    search = Search(Regressor(), RADII)
    for X_bad, y_bad in ((np.full((20, 3), 1e200), y[:20]), (X[:20], np.full(20, np.nan))):
        with pytest.raises(ValueError):
            search.partial_fit(X_bad, y_bad)
        assert not search.__sklearn_is_fitted__()
    assert state(stream(search, X, y)) == state(stream(Search(Regressor(), RADII), X, y))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Search(StandardScaler()), "takes a FrankWolfeRegressor or a FrankWolfeClassifier"),
        (lambda: Search(ofw.FrankWolfeMatrixCompletion()), 'has radius="auto"'),
        (lambda: Search(Regressor(Box(-1.0, 1.0))), "has no radius to search for"),
        (lambda: Search(Regressor(Birkhoff())), "has no radius to search for"),
        (lambda: Search(Regressor(), []), "radii must be positive numbers, got"),
        (lambda: Search(Regressor(), [1.0, -1.0]), "radii must be positive numbers, got"),
        (lambda: Search(Regressor(), [1.0, np.nan]), "radii must be positive numbers, got"),
        (lambda: Search(Regressor(), "large"), "radii must be positive numbers, got 'large'"),
        (lambda: Search(Regressor(), RADII, standard_errors=-1), "standard_errors must be"),
        (lambda: Search(Regressor(), RADII, standard_errors="1"), "standard_errors must be"),
        (lambda: Search(Regressor(max_past=5), RADII), "max_past=5 needs past="),
        (lambda: Search(Regressor(loss="hinge"), RADII), "loss must be one of"),
    ],
)
def test_impossible_searches_are_refused(make, words, rng):
    X, y = data("square", rng)
    for method in ("fit", "partial_fit"):
        search = make()
        with pytest.raises(ValueError, match=words):
            getattr(search, method)(X, y)
        assert not search.__sklearn_is_fitted__()


# The face ----------------------------------------------------------------------------------------


def test_a_search_answers_as_its_best_model_does(rng):
    X, y = data("logistic, three classes", rng)
    search = Search(Classifier(loss="logistic"), RADII).fit(X, y)
    best = search.best_estimator_
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(search, method)(X), getattr(best, method)(X))
    assert search.score(X, y) == best.score(X, y) == np.mean(search.predict(X) == y)
    np.testing.assert_array_equal(search.classes_, [0, 1, 2])
    assert is_classifier(search)


def test_what_the_model_cannot_do_the_search_cannot_either(rng):
    search = Search(Classifier(), RADII)
    assert hasattr(search, "decision_function")
    assert not hasattr(search, "predict_proba")
    assert not hasattr(search.fit(*data("logistic", rng)), "predict_proba")
    assert not hasattr(Search(Regressor()), "decision_function")
    assert is_regressor(Search(Regressor()))


def test_parameters_of_the_model_are_within_reach(rng):
    search = Search(Regressor(), RADII).set_params(estimator__loss="poisson")
    assert search.estimator.loss == "poisson"
    X, y = data("poisson", rng)
    assert clone(search).fit(X, y).best_estimator_.loss == "poisson"
    assert not search.estimator.__sklearn_is_fitted__()
