"""Estimators without arguments: radii that race, columns on one scale, and what "auto" decides."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import onlinefw as ofw
from onlinefw.estimators import completion_parts, linear_run
from onlinefw.estimators.completion_parts import CompletionParts
from onlinefw.steps import Harmonic, LineSearch

Regressor, Classifier, Completion = (
    ofw.FrankWolfeRegressor,
    ofw.FrankWolfeClassifier,
    ofw.FrankWolfeMatrixCompletion,
)


def rows(rng, n=600):
    X = rng.standard_normal((n, 8)) * np.geomspace(0.01, 100.0, 8) + 7.0
    scaled = (X - 7.0) / np.geomspace(0.01, 100.0, 8)
    return X, 5.0 + scaled[:, 0] - 2.0 * scaled[:, 7] + 0.3 * rng.standard_normal(n)


# The race ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_radii_race_and_the_winner_goes_on_alone(kind, rng, monkeypatch):
    monkeypatch.setattr(linear_run, "RACE_ROWS", 300)
    X, y = rows(rng)
    y = y if kind is Regressor else y > 5.0
    model = kind()
    for k in range(0, 300, 50):
        more = {} if kind is Regressor or k else {"classes": [False, True]}
        model.partial_fit(X[k : k + 50], y[k : k + 50], **more)
        assert len(model._run.radii) == (1 if k == 250 else 12)
        assert model.radius_ in model._run.radii
    assert model._run.race is None and len(model._run.team.learners) == 1
    model.partial_fit(X[300:], y[300:])
    assert model.n_rounds_ == 7 and model.n_observations_ == 600
    assert model.objective_.n_observations == 600  # it has learned from every row
    assert model.score(X, y) > 0.9
    assert list(model.history_["t"]) == list(range(1, 8))


def test_the_race_of_estimators_is_that_of_a_search(rng):
    X, y = rows(rng)
    model, search = Regressor(scale=False), ofw.RadiusSearch(Regressor(scale=False))
    for k, end in ((0, 100), (100, 200), (200, 400), (400, 600)):  # all of them are corrected
        for one in (model, search):
            one.partial_fit(X[k:end], y[k:end])
        if k:  # before anything is known another radius predicts
            assert model.radius_ == search.best_radius_
            np.testing.assert_array_equal(model.coef_, search.best_estimator_.coef_)


def test_fit_is_a_stream_of_partial_fits_after_a_look_at_the_first_rows(rng):
    X, y = rows(rng)
    fitted, streamed = Regressor(batch_size=50).fit(X, y), Regressor().prepare(X, y)
    for k in range(0, 600, 50):
        streamed.partial_fit(X[k : k + 50], y[k : k + 50])
    np.testing.assert_array_equal(fitted.coef_, streamed.correct().coef_)
    assert fitted.gap_ == streamed.gap_
    with pytest.raises(ValueError, match="prepare comes before"):
        streamed.prepare(X, y)


def test_there_is_nothing_to_refine_before_the_first_round(rng):
    X, y = rows(rng, 60)
    with pytest.raises(ValueError, match="call partial_fit before refine"):
        Regressor().prepare(X, y).refine()


def test_rows_with_weights_suggest_the_same_radii_as_repeated_ones(rng):
    X, y = rows(rng, 60)
    w = rng.integers(1, 4, 60)
    weighted = Regressor().partial_fit(X, y, sample_weight=w)
    order = rng.permutation(w.sum())
    repeated = Regressor().partial_fit(np.repeat(X, w, axis=0)[order], np.repeat(y, w)[order])
    assert weighted._run.radii == repeated._run.radii
    np.testing.assert_array_equal(weighted.scale_, repeated.scale_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_a_round_without_data_leaves_the_race_open(rng):
    X, y = rows(rng)
    model = Regressor().partial_fit(X[:100], y[:100]).refine()
    assert model.n_rounds_ == 2 and len(model._run.radii) == 12
    model.partial_fit(X[100:], y[100:])
    assert model.n_rounds_ == 3 and list(model.history_["t"]) == [1, 2, 3]


# The scale of columns ----------------------------------------------------------------------------


def test_columns_are_scaled_where_the_radius_is_ours_and_coefficients_are_in_their_units(rng):
    X, y = rows(rng)
    model = Regressor().fit(X, y)
    np.testing.assert_allclose(model.scale_, X.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert model.score(X, y) > 0.95
    assert model.path_["coef"][[-1]].toarray()[0] == pytest.approx(model.coef_)
    for other in (
        Regressor(radius=2.0),
        Regressor(ofw.sets.L1Ball(2.0)),
        Regressor(scale=False),
        Regressor("simplex"),
        Regressor("trace", coef_shape=(2, 4)),
    ):
        assert other.fit(X, y).scale_ is None
    given = Regressor(radius=2.0, scale=True).fit(X, y)
    np.testing.assert_allclose(given.scale_, X.std(axis=0), rtol=0.05)
    assert Regressor().fit(sp.csr_array(X), y).scale_ is None
    assert Regressor().partial_fit(X[:5], y[:5]).scale_ is None  # too few to tell
    with pytest.raises(ValueError, match=r"scale must be True, False or .auto., got 'yes'"):
        Regressor(scale="yes").fit(X, y)


# The paper ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_the_papers_rows_are_the_algorithm_alone(kind, rng):
    X, y = rng.standard_normal((120, 6)), rng.standard_normal(120)
    y = y if kind is Regressor else y > 0
    model = kind.paper(2.0, batch_size=30).fit(X, y)
    learner = model._run.learners[0]
    assert (learner.inner_steps, learner.step, learner.corrective) == (1, Harmonic(2), None)
    np.testing.assert_array_equal(model.intercept_, 0.0)
    assert model.scale_ is None and model.radius_ == 2.0
    np.testing.assert_allclose(model.history_["step_size"], 2 / (model.history_["t"] + 1))
    assert kind.paper(2.0, fit_intercept=True).fit_intercept


def test_the_papers_matrix_is_the_algorithm_alone(rng):
    X = np.column_stack((rng.integers(9, size=300), rng.integers(7, size=300)))
    model = Completion.paper(5.0, batch_size=50).fit(X, rng.standard_normal(300) + 3.0)
    learner = model._run.learners[0]
    assert (learner.step, learner.corrective) == (Harmonic(2), None)
    assert learner.objective.offsets is None
    assert learner.constraint == ofw.sets.TraceNormBall(5.0)


# What "auto" decides -----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "many"), [(None, False), (1000, False), (3_000_000, True)])
def test_matrix_completion_has_the_defaults_of_the_command_line(n, many):
    parts = CompletionParts.of(Completion(), n)
    assert parts.weighting is None
    assert parts.clip is True
    assert parts.factors and parts.offsets is None  # factors have biases of their own
    assert parts.factors_learner((30, 20)).model.count == (1 if many else 4)
    steps = CompletionParts.of(Completion(offsets="joint"), n)
    assert isinstance(steps._corrective(), ofw.RidgeSweeps) == many
    assert len(steps.radii((30, 20), np.array([1.0, 3.0]))) == (1 if many else 5)
    assert Completion().batch_length(1000) == 32
    assert Completion().batch_length(8_000_000) == 500_000


@pytest.mark.parametrize(
    "asked",
    [
        dict(corrective=None),
        dict(radius=5.0),
        dict(offsets="joint"),
        dict(weighting="smoothed"),
        dict(step=None),
        dict(inner_steps=2),
        dict(workers=2),
    ],
    ids=str,
)
def test_whoever_asks_for_frank_wolfe_steps_gets_them(asked):
    parts = CompletionParts.of(Completion(**asked), None)
    assert not parts.factors
    assert parts._corrective() is None


def test_frank_wolfe_steps_have_the_best_settings_for_them():
    parts = CompletionParts.of(Completion(corrective=None), None)
    assert parts.offsets.joint
    assert parts.weighting == "smoothed"
    assert isinstance(parts._step_rule(), LineSearch)
    assert len(parts.radii((30, 20), np.array([1.0, 3.0]))) == 5


def test_frank_wolfe_steps_on_losses_of_labels_have_no_offsets(rng):
    X = np.column_stack((rng.integers(9, size=300), rng.integers(7, size=300)))
    model = Completion(loss="logistic", corrective=None).fit(X, rng.choice([-1.0, 1.0], 300))
    assert model.objective_.offsets is None
    assert not model.has_offsets_


@pytest.mark.parametrize("loss", ["square", "logistic", "poisson"])
def test_factors_have_biases_whatever_the_loss(loss, rng):
    X = np.column_stack((rng.integers(9, size=300), rng.integers(7, size=300)))
    model = Completion(loss=loss).fit(X, np.ones(300))
    assert isinstance(model.objective_, ofw.OnlineFactors)
    assert model.has_offsets_


def test_a_stream_can_say_how_long_it_will_be(rng, monkeypatch):
    monkeypatch.setattr(completion_parts, "MANY", 500)
    X = np.column_stack((rng.integers(9, size=300), rng.integers(7, size=300)))
    y = rng.standard_normal(300)
    long = Completion(expected_size=600).partial_fit(X, y)
    short = Completion(expected_size=400).partial_fit(X, y)
    assert (long.objective_.model.count, short.objective_.model.count) == (1, 4)
    with pytest.raises(ValueError, match="expected_size must be"):
        Completion(expected_size=-1).partial_fit(X, y)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (dict(loss="correntropy"), 50),  # nobody knows how many rows will come
        (dict(loss="correntropy", expected_size=40), 100),
        (dict(loss="square"), None),  # sums
    ],
)
def test_the_past_of_a_stream_is_bounded_if_it_may_be_long(options, kept, rng):
    X, y = rng.standard_normal((100, 3)), rng.standard_normal(100)
    model = Regressor(radius=1.0, past="auto", max_past=50, random_state=0, **options)
    model.partial_fit(X, y)
    assert getattr(model.objective_, "n_kept", None) == kept


# State -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("past", [True, False])
@pytest.mark.parametrize("make", [Regressor, Classifier, Completion], ids=lambda c: c.__name__)
def test_an_estimator_becomes_what_its_state_says(make, past, rng):
    if make is Completion:
        X = np.column_stack((rng.integers(9, size=300), rng.integers(7, size=300)))
        y = rng.standard_normal(300)
    else:
        X, y = rows(rng, 300)
        y = y if make is Regressor else np.digitize(y, [4.0, 6.0])
    model = make().fit(X, y)
    other = clone(model).load_state(model.state_dict(past=past))
    assert other.can_learn_ is past
    np.testing.assert_allclose(other.predict(X), model.predict(X), 0 if past else 1e-6, 1e-6)
    assert (other.gap_, other.radius_, other.n_rounds_) == (
        model.gap_,
        model.radius_,
        model.n_rounds_,
    )
    if not past:
        with pytest.raises(ValueError, match="a model file only predicts"):
            other.partial_fit(X, y)
        return
    model.partial_fit(X, y)
    np.testing.assert_array_equal(other.partial_fit(X, y).predict(X), model.predict(X))


def test_a_state_of_something_else_is_refused(rng):
    X, y = rows(rng, 100)
    state = Regressor().fit(X, y).state_dict(past=False)
    with pytest.raises(ValueError, match="the state of a FrankWolfeRegressor, not of a"):
        Classifier().load_state(state)
    for name in state["run"].keys() - {"mean_loss", "half_life", "changes"}:  # new in files
        broken = {**state, "run": {k: v for k, v in state["run"].items() if k != name}}
        with pytest.raises(ValueError, match="missing"):
            Regressor().load_state(broken)
    narrow = {**state, "run": {**state["run"], "coef": state["run"]["coef"][:, 1:]}}
    with pytest.raises(ValueError, match="the coefficients have shape"):
        Regressor().load_state(narrow)
