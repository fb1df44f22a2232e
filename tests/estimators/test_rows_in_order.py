"""Rows as they happen: each predicted before it is learned, corrections on a schedule of rows."""

import pickle
import signal
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import onlinefw as ofw
from onlinefw.estimators.linear_run import LinearRun

N = 260
MODELS = {
    "regressor": ofw.FrankWolfeRegressor(),
    "regressor, radius given": ofw.FrankWolfeRegressor(radius=2.0),
    "regressor, rows": ofw.FrankWolfeRegressor(radius=2.0, past="recent", max_past=90),
    "sigmoid": ofw.FrankWolfeClassifier(),
    "logistic": ofw.FrankWolfeClassifier(loss="logistic"),
    "logistic, no intercept": ofw.FrankWolfeClassifier(
        radius=5.0, loss="logistic", fit_intercept=False
    ),
    "reservoir": ofw.FrankWolfeClassifier(loss="logistic", past="reservoir", max_past=60),
    "three classes": ofw.FrankWolfeClassifier(radius=3.0, loss="logistic"),
    "search": ofw.RadiusSearch(ofw.FrankWolfeRegressor(), [0.5, 2.0, 8.0]),
    "search of classifiers": ofw.RadiusSearch(ofw.FrankWolfeClassifier(), [0.5, 2.0]),
    "single steps": ofw.FrankWolfeRegressor.paper(2.0),
    "fading sums": ofw.FrankWolfeRegressor(half_life=4.0),
    "fading rows": ofw.FrankWolfeClassifier(radius=2.0, loss="logistic", half_life=30.0),
    "fading sample": ofw.FrankWolfeClassifier(
        loss="logistic", past="reservoir", max_past=60, half_life=20.0
    ),
    "fading search": ofw.RadiusSearch(ofw.FrankWolfeRegressor(half_life=7.5), [0.5, 2.0, 8.0]),
    "fading summary": ofw.FrankWolfeRegressor(radius=2.0, past="summary", half_life=40.0),
    "fading single steps": ofw.FrankWolfeRegressor.paper(
        2.0, half_life=25.0, past="recent", max_past=60
    ),
}


def rows(name, seed=0, n=N):
    """Rows with the targets of a model, and ``classes`` if it needs them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12))
    score = X[:, 0] - 2.0 * X[:, 1] + 0.5 * rng.standard_normal(n)
    model = getattr(MODELS[name], "estimator", MODELS[name])
    if isinstance(model, ofw.FrankWolfeRegressor):
        return X, 3.0 + score, {}
    names = np.array(["low", "middle", "top"] if name == "three classes" else ["no", "yes"])
    y = np.digitize(score, [-1.0, 1.0] if names.size == 3 else [0.0])
    return X, names[y], {"classes": names}


def best(model):
    return getattr(model, "best_estimator_", model)


def assert_same(one, other):
    np.testing.assert_array_equal(best(one).coef_, best(other).coef_)
    np.testing.assert_array_equal(best(one).intercept_, best(other).intercept_)
    assert best(one).gap_estimate_ == best(other).gap_estimate_  # the gap, where rows are kept


# Pieces ------------------------------------------------------------------------------------------


#: One of every kind; what takes long does so with the others in the whole suite only.
FEW = ["regressor", "reservoir", "three classes", "search", "fading sums", "fading sample"]


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in FEW else pytest.mark.slow) for one in MODELS]
)
@settings(max_examples=3)
@given(
    cuts=st.sets(st.integers(1, N - 1), max_size=6), sparse=st.booleans(), seed=st.integers(0, 9)
)
def test_in_pieces_or_at_once_it_is_the_same_to_the_last_bit(name, cuts, sparse, seed):
    X, y, more = rows(name, seed)
    X = sp.csr_array(X) if sparse else X
    whole, pieces = clone(MODELS[name]), clone(MODELS[name])
    expected, found = whole.learn(X, y, **more), []
    for part in np.split(np.arange(N), sorted(cuts)):
        found.append(pieces.learn(X[part], y[part], **more))
        _ = best(pieces).gap_  # asking changes nothing
        pieces = pickle.loads(pickle.dumps(pieces))  # nor does saving
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert_same(whole, pieces)


@pytest.mark.parametrize("name", FEW)
def test_pieces_of_whole_batches_with_weights(name, rng):
    X, y, more = rows(name)
    w = rng.uniform(0.2, 3.0, N)
    whole, pieces = clone(MODELS[name]), clone(MODELS[name])
    expected, found = whole.learn(X, y, w, batch_size=7, **more), []
    for start in range(0, N, 35):
        part = slice(start, start + 35)
        found.append(pieces.learn(X[part], y[part], w[part], batch_size=7, **more))
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert_same(whole, pieces)
    assert best(whole).n_rounds_ == best(pieces).n_rounds_ == 38


@pytest.mark.parametrize("name", MODELS)
def test_each_row_gets_what_predict_would_have_said(name):
    X, y, more = rows(name, n=130)
    learned, asked = clone(MODELS[name]), clone(MODELS[name])
    predicted, said = learned.learn(X, y, **more), []
    asked.partial_fit(X[:1], y[:1], **more)
    for k in range(1, 130):
        # A search predicts with the best radius of now, what it learns with that of the last move.
        model = asked if not hasattr(asked, "_leader") else asked.estimators_[asked._leader]
        said.append(model.predict(X[k : k + 1])[0])
        asked.partial_fit(X[k : k + 1], y[k : k + 1])
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(predicted[1:], said, atol=1e-9)
        assert predicted[0] == 0.0
    else:
        np.testing.assert_array_equal(predicted[1:], said)
        assert predicted[0] == more["classes"][0]


def test_batches_are_those_of_partial_fit():
    X, y, _ = rows("regressor")
    learned, streamed = ofw.FrankWolfeRegressor(), ofw.FrankWolfeRegressor()
    learned.learn(X, y, batch_size=40)
    for start in range(0, N, 40):
        streamed.partial_fit(X[start : start + 40], y[start : start + 40])
    assert_same(learned, streamed)
    assert learned.n_rounds_ == streamed.n_rounds_ == 7


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_leaves_a_whole_number_of_rows(monkeypatch):
    monkeypatch.setattr("onlinefw.estimators.linear_run.A_PIECE", 2**10)
    X, y, _ = rows("regressor", n=2000)
    model, learn_rows, calls = ofw.FrankWolfeRegressor(radius=2.0), LinearRun.learn_rows, []

    def interrupted(run, batch, *others):
        calls.append(batch.n)
        if len(calls) == 25:
            signal.raise_signal(signal.SIGINT)
        return learn_rows(run, batch, *others)

    monkeypatch.setattr(LinearRun, "learn_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn(X, y)
    n, again = model.n_observations_, ofw.FrankWolfeRegressor(radius=2.0)
    assert n == sum(calls) < 2000
    again.learn(X[:n], y[:n])
    assert_same(model, again)


# The schedule ------------------------------------------------------------------------------------


def learner(objective, radius=2.0, growth=1.3):
    corrective = ofw.NewtonSteps(growth=growth)
    ball, search = ofw.sets.L1Ball(radius), ofw.steps.LineSearch()
    return ofw.OnlineFrankWolfe(objective, ball, search, "auto", corrective=corrective)


def test_theta_is_corrected_when_the_rows_have_grown_by_the_factor():
    X, y, _ = rows("regressor", n=1000)
    one, moved = learner(ofw.objectives.RunningLeastSquares(12, fit_intercept=True)), []
    for k in range(1000):
        round_ = one.observe(X[k : k + 1], y[k : k + 1])
        if not np.isnan(round_.gap):
            moved.append(k + 1)
    grown = np.array(moved[1:]) / moved[:-1]
    assert moved[:5] == [1, 2, 3, 4, 6]
    assert (grown >= 1.3).all() and (grown[-10:] < 1.32).all()


@pytest.mark.parametrize("rule", ["recent", "reservoir"])
def test_a_bounded_past_is_corrected_as_it_changes(rule):
    """Of a window of 100 rows another 30 are a change; of a sample of all rows, 30% more rows."""
    X, y, _ = rows("regressor", n=2000)
    objective = ofw.objectives.LinearObjective(ofw.losses.Square(), past=rule, max_past=100)
    one, moved = learner(objective), []
    for k in range(2000):
        if not np.isnan(one.observe(X[k : k + 1], y[k : k + 1]).gap):
            moved.append(k + 1)
    late = np.array(moved)[np.array(moved) > 500]
    assert (np.diff(late) == 30).all() if rule == "recent" else (late[1:] >= 1.3 * late[:-1]).all()


LOSSES = {
    "square": (ofw.losses.Square(), lambda z, y: cp.sum_squares(z - y) / 2),
    "logistic": (ofw.losses.Logistic(), lambda z, y: cp.sum(cp.logistic(-cp.multiply(y, z)))),
}


def above_the_optimum(name, X, y, theta, b, radius):
    """How far the mean loss is above its minimum, by another solver."""
    loss, total = LOSSES[name]
    t, c = cp.Variable(X.shape[1]), cp.Variable()
    ball = [cp.norm1(t) <= radius]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        least = cp.Problem(cp.Minimize(total(X @ t + c, y) / len(y)), ball).solve("CLARABEL")
    return float(loss.value(X @ theta + b, y).mean()) - least


@pytest.mark.parametrize(
    ("name", "sums"), [("square", True), ("square", False), ("logistic", False)]
)
def test_the_certificate_holds_in_every_round_with_an_intercept_that_is_held(name, sums):
    X, y, _ = rows("regressor", n=120)
    y = y if name == "square" else np.sign(y - 3.0)
    options = {"fit_intercept": True}
    objective = (
        ofw.objectives.RunningLeastSquares(12, **options)
        if sums
        else ofw.objectives.LinearObjective(LOSSES[name][0], **options)
    )
    one = learner(objective)
    for k in range(120):
        one.observe(X[k : k + 1], y[k : k + 1])
        if k % 7 == 6:
            seen = X[: k + 1], y[: k + 1]
            above = above_the_optimum(name, *seen, one.theta, objective.intercept, 2.0)
            assert -1e-6 <= above <= one.certificate() + 1e-6
            mean = LOSSES[name][0].value(seen[0] @ one.theta + objective.intercept, seen[1]).mean()
            assert objective.value() == pytest.approx(mean, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["regressor", "logistic", "three classes", "reservoir"])
def test_correct_brings_the_certificate_below_one_percent_of_the_loss(name):
    X, y, more = rows(name, n=1500)
    model = clone(MODELS[name])
    model.learn(X, y, **more)
    theta, b, gap = model.coef_, model.intercept_, model.gap_
    assert (model.gap_, model.coef_.tolist()) == (gap, theta.tolist())
    np.testing.assert_array_equal(model.intercept_, b)
    assert model.correct().gap_ <= 0.01 * model.mean_loss_


def test_a_growth_that_is_none_is_refused():
    for growth in (1.0, 0.5, "much", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="growth of NewtonSteps must be a number above 1"):
            ofw.NewtonSteps(growth=growth)


# What is "auto" ----------------------------------------------------------------------------------


def test_a_hundred_rows_decide_however_they_come():
    X, y, _ = rows("regressor", n=400)
    X *= 10.0 ** np.arange(-6, 6)  # columns of other scales
    one = ofw.FrankWolfeRegressor()
    one.learn(X, y)
    other = ofw.FrankWolfeRegressor().partial_fit(X[:100], y[:100])
    np.testing.assert_array_equal(one.scale_, other.scale_)
    other.learn(X[100:], y[100:])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)
    assert one.n_rounds_ == 400


def test_a_stream_that_is_saved_before_a_hundred_rows_goes_on_the_same():
    for name in ("regressor", "sigmoid"):
        X, y, more = rows(name)
        one = clone(MODELS[name])
        one.learn(X[:60], y[:60], **more)
        other = pickle.loads(pickle.dumps(one))
        np.testing.assert_array_equal(
            one.learn(X[60:], y[60:], **more), other.learn(X[60:], y[60:], **more)
        )
        assert_same(one, other)


@pytest.mark.slow
def test_a_table_of_zeros_and_ones_is_learned_by_default():
    """A radius of 1 would stay at the majority class."""
    rng = np.random.default_rng(0)
    X = (rng.random((4000, 60)) < 0.2).astype(float)
    coefficients = np.where(np.arange(60) < 20, rng.choice([-3.0, 3.0], 60), 0.0)
    score = X @ coefficients
    y = score + 0.5 * rng.standard_normal(4000) > np.quantile(score, 0.75)
    for model in (ofw.FrankWolfeClassifier(), ofw.FrankWolfeClassifier(loss="logistic")):
        wrong = model.learn(X, y, classes=[False, True]) != y
        assert wrong[2000:].mean() < 0.15 < y.mean()


def test_hashed_text_is_learned_by_default():
    """Rows of unit length with few of many words; a radius of 1 got half of them right."""
    rng = np.random.default_rng(1)
    n, words = 3000, 4000
    y = rng.random(n) < 0.5
    own = np.where(y[:, None], 0, 150) + rng.integers(
        0, 150, (n, 4)
    )  # words of one of two subjects
    others = rng.integers(300, words, (n, 20))
    columns = np.hstack((own, others))
    X = sp.csr_array((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 24)))
    X = sp.csr_array(X.multiply(1.0 / np.sqrt(X.power(2).sum(axis=1))[:, None]))
    wrong = ofw.FrankWolfeClassifier().learn(X, y, classes=[False, True]) != y
    assert wrong[2000:].mean() < 0.05


def test_k_sparse_vectors_by_name_have_no_large_coefficients(rng):
    """Of 128 features two could have all of the radius; here none has more than half of it."""
    X = rng.standard_normal((600, 128))
    y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(600)
    model = ofw.FrankWolfeRegressor("ksparse", 1.5).fit(X, y)
    assert np.abs(model.coef_).max() == pytest.approx(0.75, abs=1e-9)
    assert np.abs(model.coef_).sum() <= 1.5 * (1 + 1e-12)
    found = ofw.FrankWolfeRegressor("ksparse").fit(X, y)
    assert found.score(X, y) > 0.95 > model.score(X, y)


@pytest.mark.parametrize("name", ["regressor", "logistic", "sigmoid"])
def test_a_radius_that_cannot_be_right_is_named_with_the_remedy(name):
    X, y, _ = rows(name)
    with pytest.warns(UserWarning, match="radius=1e-06 is far too small .* leave it out"):
        clone(MODELS[name]).set_params(radius=1e-6).fit(X, y)
    with pytest.warns(UserWarning, match="is far too large .* leave it out"):
        clone(MODELS[name]).set_params(radius=1e9).partial_fit(X[:50], y[:50])
