"""The regressor and the classifier: what they promise, against scikit-learn, scipy and numpy."""

import pickle
import tracemalloc

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onlinefw as ofw
from onlinefw import losses
from onlinefw.objectives import LinearObjective, RunningLeastSquares
from onlinefw.sets import Box, GroupL1Ball, L1Ball, L2Ball, TraceNormBall
from onlinefw.steps import Harmonic, LineSearch

Regressor, Classifier = ofw.FrankWolfeRegressor, ofw.FrankWolfeClassifier
DENSE_OR_SPARSE = pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"]
)


def rows(rng, n=120, features=12):
    return rng.standard_normal((n, features)) * (rng.random((n, features)) < 0.6)


def data(model, rng, n=120, features=12):
    """Rows and targets that suit a model."""
    X = rows(rng, n, features)
    score = 1.5 * X[:, 0] - X[:, 1] + 0.7 * X[:, 2] + 0.3 * rng.standard_normal(n)
    if isinstance(model, Classifier):
        return X, np.where(score > 0.2, "yes", "no")
    if model.loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * score))
    if model.loss == "bernoulli":
        return X, (score > 0.5).astype(int)
    if model.loss == "exponential":
        return X, rng.exponential(1 + np.abs(score)) + 0.01
    return X, 3.0 + score


MODELS = {
    "square": Regressor(radius=2.0),
    "square, paper": Regressor(radius=2.0, inner_steps=1),
    "square, away": Regressor(radius=2.0, away_steps=True),
    "square, no intercept": Regressor(radius=2.0, fit_intercept=False),
    "square, recent": Regressor(radius=2.0, past="recent", max_past=50),
    "square, trace": Regressor("trace", 2.0, coef_shape=(3, 4)),
    "correntropy": Regressor(radius=2.0, loss="correntropy"),
    "poisson": Regressor(radius=1.0, loss="poisson"),
    "exponential, l2": Regressor("l2", 1.0, loss="exponential", inner_steps=2),
    "bernoulli": Regressor(radius=2.0, loss="bernoulli"),
    "sigmoid": Classifier(radius=2.0),
    "logistic": Classifier(radius=2.0, loss="logistic"),
    "logistic, l2": Classifier("l2", 2.0, loss="logistic", fit_intercept=False, inner_steps=3),
    "logistic, away": Classifier(radius=2.0, loss="logistic", away_steps=True, inner_steps=2),
    "logistic, reservoir": Classifier(
        radius=2.0, loss="logistic", past="reservoir", max_past=40, random_state=1
    ),
    "squares of labels": Classifier(radius=2.0, loss="square"),
}


def several_classes(rng, n=150, features=8):
    X = rng.standard_normal((n, features))
    return X, np.array(["c", "a", "b"])[np.argmax(X[:, :3] + 0.5 * rng.standard_normal((n, 3)), 1)]


def same(one, other):
    """Whether two models are the same, bit for bit."""
    return (
        np.array_equal(one.coef_, other.coef_)
        and np.array_equal(one.intercept_, other.intercept_)
        and one.n_rounds_ == other.n_rounds_
        and all(
            np.array_equal(one.history_[name], other.history_[name], equal_nan=True)
            for name in ("t", "loss", "gap", "step_size")
        )
        and list(one.history_["kind"]) == list(other.history_["kind"])
        and one.gap_ == other.gap_
    )


# Streaming ---------------------------------------------------------------------------------------


@DENSE_OR_SPARSE
@pytest.mark.parametrize("name", MODELS)
def test_fit_equals_partial_fit_on_the_same_batches_and_a_correction(name, kind, rng):
    model = clone(MODELS[name]).set_params(batch_size=35)
    X, y = data(model, rng)
    fitted, streamed = clone(model).fit(kind(X), y), clone(model)
    for k in range(0, 120, 35):
        streamed.partial_fit(kind(X[k : k + 35]), y[k : k + 35])
    assert same(fitted, streamed.correct())
    assert fitted.n_rounds_ == 4


def test_fit_with_shuffling_streams_the_rows_in_a_random_order(rng):
    X, y = data(Regressor(), rng)
    model = Regressor(radius=2.0, batch_size=50, shuffle=True, random_state=7)
    order = np.random.default_rng(7).permutation(120)
    plain = clone(model).set_params(shuffle=False).fit(X[order], y[order])
    assert same(clone(model).fit(X, y), plain)
    assert not same(clone(model).set_params(random_state=8).fit(X, y), plain)


def test_fit_forgets_what_came_before(rng):
    model, (X, y) = Regressor(radius=2.0), data(Regressor(), rng)
    once = clone(model).fit(X, y)
    twice = clone(model).fit(rng.standard_normal((9, 4)), np.ones(9)).fit(X, y)
    assert same(once, twice)


@pytest.mark.parametrize("name", ["square, away", "logistic", "square, recent"])
def test_from_the_second_epoch_on_nothing_is_stored_again(name, rng):
    model = clone(MODELS[name]).set_params(batch_size=40, epochs=3)
    X, y = data(model, rng)
    model.fit(X, y)
    assert model.objective_.n_observations == 120
    assert model.n_rounds_ == 9
    paid = model.history_["loss"]
    assert np.isfinite(paid[:3]).all()
    assert np.isnan(paid[3:]).all()


def test_later_epochs_are_rounds_of_the_algorithm_on_the_rows_held(rng):
    X, y = data(Regressor(), rng)
    model = Regressor(radius=2.0, inner_steps=1, batch_size=40, epochs=5, fit_intercept=False)
    model.fit(X, y)
    learner = ofw.OnlineFrankWolfe(RunningLeastSquares(12), L1Ball(2.0), Harmonic(2))
    for k in range(0, 120, 40):
        learner.observe(X[k : k + 40], y[k : k + 40])
    for _ in range(12):
        learner.refine()
    np.testing.assert_array_equal(model.coef_, learner.theta)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_pickled_in_mid_stream_goes_on_bit_for_bit(name, rng):
    model = clone(MODELS[name])
    X, y = data(model, rng)
    for k in range(0, 60, 20):
        model.partial_fit(X[k : k + 20], y[k : k + 20])
    copy = pickle.loads(pickle.dumps(model))
    for k in range(60, 120, 20):
        model.partial_fit(X[k : k + 20], y[k : k + 20])
        copy.partial_fit(X[k : k + 20], y[k : k + 20])
    assert same(model, copy)


@pytest.mark.parametrize("name", MODELS)
def test_looking_at_a_model_does_not_change_it(name, rng):
    model = clone(MODELS[name]).set_params(inner_steps=2)
    X, y = data(model, rng)
    left_alone, watched = clone(model), clone(model)
    for k in range(0, 120, 20):
        left_alone.partial_fit(X[k : k + 20], y[k : k + 20])
        watched.partial_fit(X[k : k + 20], y[k : k + 20])
        watched.predict(X)
        assert np.isfinite(watched.gap_)
        assert len(watched.path_["t"]) == watched.n_rounds_
    assert same(left_alone, watched)


@pytest.mark.parametrize("name", ["square", "logistic", "poisson", "square, recent"])
def test_the_loss_in_the_history_is_that_of_predicting_first(name, rng):
    model = clone(MODELS[name]).set_params(inner_steps=1)
    X, y = data(model, rng)
    loss = model._loss()
    model.partial_fit(X[:20], y[:20])
    for k in range(20, 120, 20):
        part = slice(k, k + 20)
        z = X[part] @ np.ravel(model.coef_) + np.ravel(model.intercept_)
        target = np.where(y[part] == "yes", 1.0, -1.0) if y.dtype.kind == "U" else y[part]
        model.partial_fit(X[part], y[part])
        expected = loss.value(z, target).mean()
        assert model.history_["loss"][-1] == pytest.approx(expected, abs=1e-10)


# What comes in and what goes out -----------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_sparse_rows_give_the_model_of_dense_ones(name, rng):
    model = clone(MODELS[name]).set_params(batch_size=30)
    if name == "square, trace":  # singular pairs amplify roundings in every step
        model.set_params(inner_steps=5)
    X, y = data(model, rng)
    dense = clone(model).fit(X, y)
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        sparse = clone(model).fit(kind(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-8)
        np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-7)
        if isinstance(model, Regressor):
            np.testing.assert_allclose(sparse.predict(kind(X)), dense.predict(X), atol=1e-6)
        else:
            np.testing.assert_array_equal(sparse.predict(kind(X)), dense.predict(X))


def test_a_million_features_need_no_more_than_their_nonzeros(rng):
    n = 1_000_000
    X = sp.random_array((1000, n), density=2e-5, rng=rng, format="csr")
    y = np.asarray(X[:, : n // 100].sum(axis=1)).ravel() + 0.1 * rng.standard_normal(1000)
    tracemalloc.start()
    model = Regressor(radius=5.0, path_size=5).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 8 * n  # a few vectors; one dense batch would be 256 of them
    residuals = y - X @ model.coef_ - model.intercept_
    gradient = -(X.T @ residuals) / 1000
    gap = model.coef_ @ gradient + 5.0 * np.abs(gradient).max()
    assert model.gap_ == pytest.approx(gap, rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_a_long_sparse_batch_is_never_dense(rng):
    X = sp.random_array((60_000, 1000), density=0.002, rng=rng, format="csr")
    y = rng.standard_normal(60_000)
    tracemalloc.start()
    model = Regressor(inner_steps=1).partial_fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * 8 * 60_000 * 1000
    assert model.intercept_ == pytest.approx(np.mean(y - X @ model.coef_), abs=1e-12)


@DENSE_OR_SPARSE
@pytest.mark.parametrize("name", ["square", "logistic", "square, recent", "poisson"])
def test_single_precision_stays_single(name, kind, rng):
    model = clone(MODELS[name])
    X, y = data(model, rng)
    double = clone(model).fit(X, y)
    single = clone(model).fit(kind(X.astype(np.float32)), y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-4)
    answer = single.predict(kind(X.astype(np.float32)))
    if isinstance(model, Regressor):
        assert answer.dtype == np.float32
        np.testing.assert_allclose(answer, double.predict(X), rtol=1e-3, atol=1e-3)
    else:
        assert single.decision_function(kind(X.astype(np.float32))).dtype == np.float32


@pytest.mark.parametrize("model", [Regressor(radius=0.01), Classifier(radius=0.01)])
def test_bytes_give_the_model_of_the_same_numbers(model, rng):
    X = rng.integers(0, 256, (200, 6), dtype=np.uint8)
    y = X[:, 0].astype(float) > 100 if isinstance(model, Classifier) else 0.01 * X[:, 0]
    of_bytes, of_doubles = clone(model).fit(X, y), clone(model).fit(X.astype(float), y)
    np.testing.assert_allclose(of_bytes.coef_, of_doubles.coef_, atol=1e-6)
    assert of_bytes.coef_.dtype == np.float32
    np.testing.assert_allclose(of_bytes.predict(X), of_doubles.predict(X), rtol=1e-3, atol=1e-3)
    if isinstance(model, Classifier):
        assert of_bytes.objective_.past_state()["past"]["rows"]["data"].dtype == np.uint8


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_weight_zero_are_left_out(name, rng):
    model = clone(MODELS[name]).set_params(batch_size=30)
    X, y = data(model, rng)
    w = rng.uniform(0.5, 2.0, 120) * (rng.random(120) < 0.7)
    assert same(clone(model).fit(X, y, w), clone(model).fit(X[w > 0], y[w > 0], w[w > 0]))
    assert same(
        clone(model).partial_fit(X, y, sample_weight=w),
        clone(model).partial_fit(X[w > 0], y[w > 0], sample_weight=w[w > 0]),
    )


@pytest.mark.parametrize("name", [n for n in MODELS if "recent" not in n and "reservoir" not in n])
def test_weights_in_one_batch_repeat_rows(name, rng):
    model = clone(MODELS[name])
    if name == "square, trace":  # "auto" would end at a number of steps that depends on the rows
        model.set_params(inner_steps=5)
    X, y = data(model, rng)
    w = rng.integers(1, 4, 120)
    weighted = clone(model).partial_fit(X, y, sample_weight=w)
    repeated = clone(model).partial_fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-7)
    assert weighted.gap_ == pytest.approx(repeated.gap_, rel=1e-3, abs=1e-8)


# Certificates ------------------------------------------------------------------------------------


def joint_minimum(loss, X, y, w, radius):
    """min over ||theta||_1 <= radius and any b of the weighted mean loss, by SLSQP."""
    n = X.shape[1]

    def value(v):
        z = X @ (v[:n] - v[n : 2 * n]) + v[-1]
        slopes = w * loss.derivative(z, y) / w.sum()
        gradient = X.T @ slopes
        return (
            np.average(loss.value(z, y), weights=w),
            np.concatenate((gradient, -gradient, [slopes.sum()])),
        )

    start = np.zeros(2 * n + 1)
    if isinstance(loss, losses.Exponential):
        start[-1] = -1.0
    best = minimize(
        value,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, None)] * (2 * n) + [(None, None)],
        constraints={
            "type": "ineq",
            "fun": lambda v: radius - v[:-1].sum(),
            "jac": lambda v: np.append(-np.ones(2 * n), 0.0),
        },
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    return best.fun


@pytest.mark.parametrize("inner_steps", [1, "auto"])
@pytest.mark.parametrize("away_steps", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["square", "gaussian", "poisson", "bernoulli", "exponential"])
def test_the_gap_bounds_how_far_coefficients_and_intercept_are_from_the_best(
    name, weighted, away_steps, inner_steps, rng
):
    model = Regressor(
        radius=0.8, loss=name, inner_steps=inner_steps, away_steps=away_steps, batch_size=40
    )
    X, y = data(model, rng, 120, 5)
    w = rng.uniform(0.2, 3.0, 120) if weighted else None
    model.fit(X, y, w)
    weights = np.ones(120) if w is None else w
    loss = model._loss()
    value = np.average(loss.value(X @ model.coef_ + model.intercept_, y), weights=weights)
    assert model.objective_.value() == pytest.approx(value, rel=1e-9, abs=1e-10)
    assert np.abs(model.coef_).sum() <= 0.8 * (1 + 1e-12)
    above = value - joint_minimum(loss, X, np.asarray(y, float), weights, 0.8)
    assert -1e-6 <= above <= model.gap_ + 1e-6
    if inner_steps == "auto" and not away_steps:
        assert model.gap_ <= 0.01 * abs(value) + 1e-12


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "bernoulli", "square"])
def test_the_gap_of_a_classifier_bounds_it_too(loss, weighted, rng):
    model = Classifier(radius=1.5, loss=loss, inner_steps=4, batch_size=40)
    X, labels = data(model, rng, 120, 5)
    w = rng.uniform(0.2, 3.0, 120) if weighted else None
    model.fit(X, labels, w)
    y = np.where(labels == "yes", 1.0, 0.0 if loss == "bernoulli" else -1.0)
    weights = np.ones(120) if w is None else w
    z = X @ model.coef_[0] + model.intercept_
    value = np.average(model._loss().value(z, y), weights=weights)
    above = value - joint_minimum(model._loss(), X, y, weights, 1.5)
    assert -1e-6 <= above <= model.gap_ + 1e-6


@pytest.mark.parametrize("past", ["recent", "reservoir"])
def test_the_gap_certifies_the_mean_over_the_rows_kept(past, rng):
    model = Classifier(
        radius=2.0, loss="logistic", past=past, max_past=40, random_state=0, inner_steps=1
    )
    X, labels = data(model, rng, 300, 5)
    X[:, 4] = 1e-3 * np.arange(300)
    for k in range(0, 300, 30):
        model.partial_fit(X[k : k + 30], labels[k : k + 30])
    objective = model.objective_
    held = objective.past_state()["past"]
    kept = np.rint(1e3 * held["rows"]["data"][held["w"] > 0.0, 4]).astype(int)
    assert kept.size == 40
    if past == "recent":
        np.testing.assert_array_equal(kept, np.arange(260, 300))
    y = np.where(labels[kept] == "yes", 1.0, -1.0)
    z = X[kept] @ model.coef_[0] + model.intercept_
    slopes = losses.Logistic().derivative(z, y) / 40
    assert abs(slopes.sum()) < 1e-10
    gradient = X[kept].T @ slopes
    gap = model.coef_[0] @ gradient + 2.0 * np.abs(gradient).max()
    assert model.gap_ == pytest.approx(gap, abs=1e-10)
    assert f"past='{past}', n_observations=300, n_kept=40" in repr(objective)


@pytest.mark.slow
@pytest.mark.parametrize("past", ["recent", "reservoir"])
def test_a_bounded_past_bounds_the_memory_of_a_model(past, rng):
    model = Classifier(past=past, max_past=50, random_state=0, history_size=20, path_size=5)
    sizes = []
    for _ in range(200):  # 100 times the bound
        X = rng.standard_normal((25, 6))
        model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes[100:]) <= 1.1 * max(sizes[:100])


def test_a_trace_norm_ball_gives_matrices(rng):
    B = np.outer([1.0, -1.0, 0.5], [0.5, 1.0, 0.0, -1.0])
    X = rng.standard_normal((300, 3, 4))
    y = np.einsum("nij,ij->n", X, B) + 2.0 + 0.1 * rng.standard_normal(300)
    flat = X.reshape(300, 12)
    model = Regressor("trace", 2.0, coef_shape=(3, 4), epochs=10).fit(flat, y)
    singular = np.linalg.svd(model.coef_.reshape(3, 4), compute_uv=False)
    assert singular.sum() <= 2.0 * (1 + 1e-9)
    theta, b = cp.Variable((3, 4)), cp.Variable()
    residual = flat @ cp.vec(theta, order="C") + b - y
    best = cp.Problem(
        cp.Minimize(cp.sum_squares(residual) / 600), [cp.normNuc(theta) <= 2.0]
    ).solve(solver="CLARABEL")
    value = np.mean((flat @ model.coef_ + model.intercept_ - y) ** 2) / 2
    assert -1e-6 <= value - best <= model.gap_ + 1e-6
    assert model.gap_ <= 0.02 * value


@pytest.mark.parametrize(
    "constraint",
    ["l1", "l2", "linf", "simplex", L2Ball(1.5), Box(-0.5, 1.0), GroupL1Ball([0, 0, 1, 1, 2], 1.5)],
    ids=str,
)
@pytest.mark.parametrize("loss", ["square", "poisson"])
def test_coefficients_stay_in_the_set(constraint, loss, rng):
    size = {"radius": 1.5} if isinstance(constraint, str) else {}
    model = Regressor(constraint, **size, loss=loss, batch_size=20)
    X, y = data(model, rng, 120, 5)
    for k in range(0, 120, 20):
        model.partial_fit(X[k : k + 20], y[k : k + 20])
        assert model._run.learners[0].constraint.contains(model.coef_)


# LASSO -------------------------------------------------------------------------------------------


def lasso_problem(rng, n=400):
    X = rng.standard_normal((n, 30))
    X[:, 3] += 0.5 * X[:, 0]
    beta = np.zeros(30)
    beta[:5] = [3.0, -2.0, 1.5, 1.0, 0.8]
    return X, 5.0 + X @ beta + 2.0 * rng.standard_normal(n)


def lasso_solution(X, y, alpha):
    lasso = Lasso(alpha, tol=1e-13, max_iter=10**6).fit(X, y)
    value = np.mean((lasso.predict(X) - y) ** 2) / 2
    return np.flatnonzero(lasso.coef_), np.abs(lasso.coef_).sum(), value


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_online_away_steps_find_the_support_of_the_lasso(alpha, rng):
    X, y = lasso_problem(rng)
    support, radius, best = lasso_solution(X, y, alpha)
    assert 0 < support.size < 15
    model = Regressor(radius=radius, away_steps=True, inner_steps=1, batch_size=20, epochs=250)
    model.fit(X, y)
    size = np.abs(model.coef_)
    np.testing.assert_array_equal(np.flatnonzero(size > 1e-3 * size.max()), support)
    value = np.mean((model.predict(X) - y) ** 2) / 2
    assert -1e-9 <= value - best <= model.gap_
    assert model.gap_ < 0.01 * best


def test_a_stream_of_new_rows_ends_with_the_support_of_the_lasso_on_all_of_them(rng):
    X, y = lasso_problem(rng, 20_000)
    support, radius, best = lasso_solution(X, y, 0.2)
    model = Regressor(radius=radius, away_steps=True, inner_steps=1, batch_size=10).fit(X, y)
    assert model.n_rounds_ == 2000
    size = np.abs(model.coef_)
    np.testing.assert_array_equal(np.flatnonzero(size > 1e-3 * size.max()), support)
    value = np.mean((model.predict(X) - y) ** 2) / 2
    assert -1e-9 <= value - best <= model.gap_


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_batch_away_steps_give_the_support_of_the_lasso_itself(alpha, rng):
    X, y = lasso_problem(rng)
    support, radius, best = lasso_solution(X, y, alpha)
    objective = RunningLeastSquares(30, fit_intercept=True)
    objective.observe(X, y)
    found = ofw.baselines.batch_away_frank_wolfe(
        objective, L1Ball(radius), step=LineSearch(), tol=1e-8, max_iter=10_000
    )
    assert found.success
    np.testing.assert_array_equal(np.flatnonzero(found.theta), support)
    assert -1e-9 <= found.objective - best <= found.gap + 1e-12


# Classes -----------------------------------------------------------------------------------------


@DENSE_OR_SPARSE
@pytest.mark.parametrize("options", [{}, {"inner_steps": 2}, {"past": "recent", "max_past": 60}])
@pytest.mark.parametrize("loss", ["logistic", "sigmoid", "square", "bernoulli"])
def test_several_classes_in_one_pass_equal_one_model_for_each(loss, options, kind, rng):
    X, y = several_classes(rng)
    model = Classifier(radius=2.0, loss=loss, batch_size=40, **options)
    together = clone(model).fit(kind(X), y)
    assert together.coef_.shape == (3, 8)
    assert list(together.classes_) == ["a", "b", "c"]
    gaps = []
    for k, label in enumerate("abc"):
        alone = clone(model).fit(kind(X), y == label)
        np.testing.assert_allclose(together.coef_[k], alone.coef_[0], atol=1e-7)
        np.testing.assert_allclose(together.intercept_[k], alone.intercept_[0], atol=1e-7)
        np.testing.assert_allclose(
            together.decision_function(X)[:, k], alone.decision_function(X), atol=1e-6
        )
        gaps.append(alone.gap_)
    assert together.gap_ == pytest.approx(max(gaps), abs=1e-7)
    assert len(together.objective_) == 3


def test_classes_of_the_square_loss_share_their_sums_bit_for_bit(rng):
    X, y = several_classes(rng)
    together = Classifier(radius=2.0, loss="square", batch_size=40).fit(X, y)
    assert len({id(one._shared) for one in together.objective_}) == 1
    for k, label in enumerate("abc"):
        alone = Classifier(radius=2.0, loss="square", batch_size=40).fit(X, y == label)
        np.testing.assert_array_equal(together.coef_[k], alone.coef_[0])


def test_classes_named_in_the_first_call_may_come_later(rng):
    X, y = several_classes(rng)
    order = np.argsort(y, kind="stable")  # one class after the other
    model = Classifier(radius=2.0, loss="logistic")
    for part in np.array_split(order, 10):
        model.partial_fit(X[part], y[part], classes=["c", "b", "a"])
    assert list(model.classes_) == ["a", "b", "c"]
    assert model.score(X, y) > 0.6


def test_labels_that_were_not_named_are_refused(rng):
    X, y = several_classes(rng)
    model = Classifier().partial_fit(X, y, classes=["a", "b", "c"])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"label .*'d'.*not one of the classes"):
        model.partial_fit(X[:1], ["d"])
    with pytest.raises(ValueError, match="differ from the first call's"):
        model.partial_fit(X, y, classes=["a", "b"])
    assert same(model, pickle.loads(before))
    with pytest.raises(ValueError, match="at least 2 classes, got one class"):
        Classifier().partial_fit(X, ["a"] * 150, classes=["a"])


@pytest.mark.parametrize("loss", ["logistic", "bernoulli"])
def test_probabilities_are_those_of_the_logistic_model(loss, rng):
    X, y = several_classes(rng)
    two = Classifier(radius=2.0, loss=loss).fit(X, y == "a")
    p = expit(X @ two.coef_[0] + two.intercept_)
    np.testing.assert_allclose(two.predict_proba(X), np.column_stack((1 - p, p)), atol=1e-12)
    np.testing.assert_array_equal(two.predict(X), p > 0.5)
    three = Classifier(radius=2.0, loss=loss).fit(X, y)
    p = expit(X @ three.coef_.T + three.intercept_)
    np.testing.assert_allclose(three.predict_proba(X), p / p.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(np.exp(three.predict_log_proba(X)), three.predict_proba(X))
    np.testing.assert_array_equal(three.predict(X), three.classes_[p.argmax(axis=1)])


def test_losses_without_probabilities_say_so(rng):
    model = Classifier().fit(*several_classes(rng))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        model.predict_proba(np.zeros((1, 8)))


@pytest.mark.parametrize(
    ("loss", "mean"),
    [
        ("poisson", np.exp),
        ("bernoulli", expit),
        ("exponential", lambda z: -1.0 / z),
        ("gaussian", lambda z: z),
        ("square", lambda z: z),
    ],
)
def test_predictions_are_the_mean_of_the_family(loss, mean, rng):
    model = Regressor(radius=0.05, loss=loss)
    X, y = data(model, rng)
    model.fit(X, y)
    z = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), mean(z), rtol=1e-10)


# Refusals ----------------------------------------------------------------------------------------


def bad_batches(model, X, y):
    one_nan, one_inf, huge = X.copy(), X.copy(), X.copy()
    one_nan[3, 2], one_inf[3, 2], huge[3, 2] = np.nan, np.inf, 1e200
    n = len(y)
    bad = {
        "nan": (one_nan, y, None),
        "inf": (one_inf, y, None),
        "too large to square": (huge, y, None),
        "nan, sparse": (sp.csr_array(one_nan), y, None),
        "too wide": (np.ones((n, 13)), y, None),
        "too narrow": (np.ones((n, 11)), y, None),
        "empty": (X[:0], y[:0], None),
        "fewer targets": (X, y[:-1], None),
        "negative weight": (X, y, np.append(np.ones(n - 1), -1.0)),
        "nan weight": (X, y, np.append(np.ones(n - 1), np.nan)),
        "no weight": (X, y, np.zeros(n)),
        "fewer weights": (X, y, np.ones(n - 1)),
    }
    if isinstance(model, Classifier):
        bad["unknown label"] = (X, np.append(y[:-1], "maybe"), None)
    else:
        wrong = y.astype(float)
        wrong[2] = np.nan
        bad["nan target"] = (X, wrong, None)
        if model.loss in ("poisson", "bernoulli"):
            bad["half a count"] = (X, np.full(n, 0.5), None)
        if model.loss == "exponential":
            bad["target zero"] = (X, np.zeros(n), None)
    return bad


@pytest.mark.parametrize("name", MODELS)
def test_a_refused_batch_leaves_the_model_as_it_was(name, rng):
    model = clone(MODELS[name])
    X, y = data(model, rng)
    undisturbed = clone(model)
    for one in (model, undisturbed):
        one.partial_fit(X[:60], y[:60])
    for X_bad, y_bad, w_bad in bad_batches(model, X[:20], y[:20]).values():
        with pytest.raises(ValueError):
            model.partial_fit(X_bad, y_bad, sample_weight=w_bad)
        assert model.n_rounds_ == 1
    for one in (model, undisturbed):
        one.partial_fit(X[60:], y[60:])
    assert same(model, undisturbed)


@pytest.mark.parametrize("name", ["square", "logistic", "poisson"])
def test_a_refused_first_batch_leaves_the_model_unfitted(name, rng):
    model = clone(MODELS[name])
    X, y = data(model, rng)
    bad = bad_batches(model, X[:20], y[:20])
    for name in bad.keys() - {"too wide", "too narrow", "unknown label"}:  # good, if they are first
        fresh, (X_bad, y_bad, w_bad) = clone(model), bad[name]
        with pytest.raises(ValueError):
            fresh.partial_fit(X_bad, y_bad, sample_weight=w_bad)
        assert not fresh.__sklearn_is_fitted__()
        assert not hasattr(fresh, "coef_")
        assert same(fresh.partial_fit(X[:, :7], y), clone(model).partial_fit(X[:, :7], y))


BAD_PARAMETERS = [
    (dict(radius=-1.0), "positive finite radius, got -1"),
    (dict(radius=np.nan), "positive finite radius, got nan"),
    (dict(radius="large"), "radius must be a positive number or \"auto\", got 'large'"),
    (dict(loss="hinge"), "loss must be one of .*got 'hinge'"),
    (dict(loss=losses.Square), r"pass an object, Square\(...\)"),
    (dict(constraint="l3"), "constraint must be one of .*got 'l3'"),
    (dict(constraint=L1Ball), r"pass an object, L1Ball\(...\)"),
    (dict(constraint="trace"), r"pass coef_shape=\(m1, m2\) with m1 \* m2 = 12"),
    (dict(constraint="trace", coef_shape=(5, 2)), "12 features, but coef_shape=.* is for 10"),
    (dict(coef_shape=(12,)), "coef_shape must be"),
    (dict(constraint="l2", away_steps=True), "OnlineAwayFrankWolfe needs a polytope"),
    (dict(step="fast"), "step rule of the step counter such as .*got 'fast'"),
    (dict(constraint="simplex", step="line-search"), "the first step must have length 1"),
    (dict(batch_size=0), "batch_size must be a whole number of at least 1, got 0"),
    (dict(epochs=1.5), "epochs must be a whole number of at least 1, got 1.5"),
    (dict(inner_steps="many"), "inner_steps must be .*or \"auto\", got 'many'"),
    (dict(corrective="newton"), "corrective must be .*got 'newton'"),
    (dict(corrective=ofw.NewtonSteps(), constraint="l2"), "NewtonSteps corrects .*L2Ball"),
    (dict(corrective=ofw.NewtonSteps(), away_steps=True), "use away_steps=False"),
    (dict(past="newest"), "all, recent, reservoir, summary and auto, got 'newest'"),
    (dict(past="recent"), "needs max_past"),
    (dict(max_past=100), "max_past=100 needs past="),
    (dict(past="recent", max_past=0), "max_past must be .*got 0"),
    (dict(random_state="seed"), "random_state must be a whole number.*got 'seed'"),
    (dict(random_state="seed", shuffle=True), "random_state must be a whole number.*got 'seed'"),
    (dict(history_size=1), "history_size must be .*got 1"),
    (dict(path_size=-1), "path_size must be .*got -1"),
]


@pytest.mark.parametrize(("options", "words"), BAD_PARAMETERS, ids=lambda x: str(x)[:40])
@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_bad_parameters_are_refused_with_the_value_and_the_remedy(kind, options, words, rng):
    X, y = data(kind(), rng)
    for method in ("fit", "partial_fit"):
        if method == "partial_fit" and options.keys() & {"batch_size", "epochs", "shuffle"}:
            continue  # of fit alone
        model = kind(**options)
        with pytest.raises(ValueError, match=words):
            getattr(model, method)(X, y)
        assert not model.__sklearn_is_fitted__()


def test_attributes_before_fitting_say_that_there_is_nothing_yet():
    for name in ("coef_", "intercept_", "gap_", "n_rounds_", "history_", "path_", "objective_"):
        with pytest.raises(AttributeError, match=f"no {name} before it is fitted"):
            getattr(Regressor(), name)


# Records -----------------------------------------------------------------------------------------


def test_the_path_ends_at_the_coefficients_and_is_short(rng):
    model, (X, y) = Regressor(radius=2.0, inner_steps=1, path_size=10), data(Regressor(), rng)
    thetas = []
    for t in range(300):
        k = 20 * (t % 6)
        model.partial_fit(X[k : k + 20], y[k : k + 20])
        thetas.append(model.coef_)
    path = model.path_
    assert path["t"][-1] == 300
    assert len(path["t"]) <= 11
    assert (np.diff(path["t"]) > 0).all()
    np.testing.assert_array_equal(path["coef"].toarray(), np.array(thetas)[path["t"] - 1])
    assert Regressor(path_size=0).fit(X, y).path_["t"].size == 0


def test_the_path_of_a_classifier_has_all_its_classes(rng):
    model = Classifier(radius=2.0, batch_size=50).fit(*several_classes(rng))
    np.testing.assert_array_equal(model.path_["coef"][[-1]].toarray()[0], model.coef_.ravel())


def test_the_history_is_ready_for_pandas_and_bounded(rng):
    model, (X, y) = Regressor(history_size=50, batch_size=1), data(Regressor(), rng)
    frame = pd.DataFrame(model.fit(X, y).history_)
    assert {"t", "loss", "gap", "step_size", "kind", "seconds"} <= set(frame.columns)
    assert len(frame) <= 50
    assert frame["t"].iloc[0] == 1
    assert frame["t"].iloc[-1] == 120
    assert frame["seconds"].is_monotonic_increasing


def test_verbose_prints_nothing_where_nobody_looks(rng, capfd):
    X, y = data(Regressor(), rng)
    Regressor(verbose=1, batch_size=10).fit(X, y)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


# scikit-learn ------------------------------------------------------------------------------------


def test_a_grid_search_finds_the_radius(rng):
    X, y = data(Regressor(), rng, 400)
    search = GridSearchCV(Regressor(), {"radius": [0.01, 3.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"radius": 3.0}
    assert search.score(X, y) > 0.9


def test_a_pipeline_scales_first(rng):
    X, y = data(Classifier(), rng)
    X = 10.0 + X * np.geomspace(0.01, 100, 12)
    model = Classifier(radius=3.0, loss="logistic")
    piped = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    direct = clone(model).fit(StandardScaler().fit_transform(X), y)
    assert same(piped[-1], direct)
    assert piped.score(X, y) > 0.8


def test_the_names_of_features_are_learned_and_checked(rng):
    X, y = data(Regressor(), rng)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    model = Regressor(radius=2.0).fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.copy()))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"x0": "other"}), y)
    assert model.n_rounds_ == 1


def test_a_clone_has_the_parameters_and_no_data(rng):
    model = Regressor(L2Ball(2.0), loss=losses.Correntropy(2.0), past="recent", max_past=10)
    model.fit(*data(Regressor(), rng))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not copy.__sklearn_is_fitted__()


NEEDS_CALLBACKS = pytest.mark.skipif(
    not hasattr(Regressor(), "set_callbacks"), reason="scikit-learn has callbacks from 1.9 on"
)


class StopAfter:
    """A callback that counts rounds and stops after some of them."""

    def __init__(self, rounds):
        self.rounds, self.seen, self.setups = rounds, [], 0

    def setup(self, estimator, context):
        self.setups += 1

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        if context.task_name == "round":
            self.seen.append(estimator.n_rounds_)
            return len(self.seen) >= self.rounds
        return False

    def teardown(self, estimator, context):
        pass


@NEEDS_CALLBACKS
def test_a_callback_sees_every_round_and_may_stop(rng):
    X, y = data(Regressor(), rng)
    stop = StopAfter(3)
    model = Regressor(radius=2.0, batch_size=10).set_callbacks(stop).fit(X, y)
    assert stop.seen == [1, 2, 3]
    assert same(model, Regressor(radius=2.0, batch_size=10).fit(X[:30], y[:30]))
    counting = StopAfter(100)
    Regressor(batch_size=10, epochs=2).set_callbacks(counting).fit(X, y)
    assert len(counting.seen) == 24


@NEEDS_CALLBACKS
def test_the_progress_bar_of_scikit_learn_changes_nothing(rng):
    from sklearn.callback import ProgressBar

    X, y = data(Regressor(), rng)
    model = Regressor(radius=2.0, batch_size=10).set_callbacks(ProgressBar()).fit(X, y)
    assert same(model, Regressor(radius=2.0, batch_size=10).fit(X, y))


def test_the_estimator_is_the_algorithm_on_its_objective(rng):
    model = Classifier(radius=2.0, loss="logistic", inner_steps=1, batch_size=30)
    X, labels = data(model, rng)
    model.fit(X, labels)
    objective = LinearObjective(losses.Logistic(), fit_intercept=True)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0), Harmonic(2))
    for k in range(0, 120, 30):
        learner.observe(X[k : k + 30], np.where(labels[k : k + 30] == "yes", 1.0, -1.0))
    np.testing.assert_array_equal(model.coef_[0], learner.theta)
    assert model.gap_ == learner.certificate()


def test_matrix_features_may_come_as_a_set_object(rng):
    model = Classifier(TraceNormBall(1.0), loss="logistic", coef_shape=(3, 4), inner_steps=1)
    X, y = data(model, rng)
    model.fit(X, y)
    nuclear = np.linalg.norm(model.coef_.reshape(3, 4), "nuc")
    assert nuclear <= 1.0 + 1e-9


def test_a_batch_whose_loss_overflows_is_refused_and_nothing_is_lost(rng):
    X, y = rng.standard_normal((200, 5)), rng.poisson(1.0, 200).astype(float)
    model = ofw.FrankWolfeRegressor(radius=2.0, loss="poisson", fit_intercept=False)
    model.partial_fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match="infinite"):
        model.partial_fit(1e5 * np.abs(X) * np.sign(before), y)
    np.testing.assert_array_equal(model.coef_, before)
    model.partial_fit(X, y)
    assert model.n_rounds_ == 2


def test_weights_repeat_rows_also_where_the_steps_of_a_round_are_capped(rng):
    X, y = rng.standard_normal((120, 8)), rng.standard_normal(120)
    w = rng.integers(1, 4, 120)
    model = ofw.FrankWolfeRegressor("l1", 1.5, corrective=None, batch_size=1000)
    weighted = model.fit(X, y, sample_weight=w).coef_
    repeated = model.fit(np.repeat(X, w, axis=0), np.repeat(y, w)).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


@pytest.mark.parametrize("how", ["dense", "sparse", "frame"])
@pytest.mark.parametrize("call", ["fit", "partial_fit", "predict"])
def test_a_value_that_is_not_finite_is_named_with_its_place_and_remedy(how, call, rng):
    X = rng.standard_normal((6, 4))
    model = Regressor(radius=2.0).fit(X, X[:, 0])
    X[4, 2] = np.inf
    X[3, 1] = np.nan
    where = "column 1"
    if how == "sparse":
        X = sp.csr_array(X)
    if how == "frame":
        pandas = pytest.importorskip("pandas")
        X, where = pandas.DataFrame(X, columns=list("abcd")), "column 1 \\('b'\\)"
        model = Regressor(radius=2.0).fit(X.fillna(0.0).replace(np.inf, 1.0), np.ones(6))
    args = (X,) if call == "predict" else (X, np.ones(6))
    line = f"^X has NaN in row 3, {where}; remove that row or fill in the value$"
    with pytest.raises(ValueError, match=line):
        getattr(model, call)(*args)


def test_a_target_that_is_not_finite_is_named_with_its_row():
    with pytest.raises(ValueError, match=r"^y has -inf in row 2; remove that row or fill"):
        Regressor().fit(np.eye(3), [1.0, 2.0, -np.inf])


@pytest.mark.parametrize("Model", [Regressor, Classifier])
def test_a_radius_beside_a_set_of_its_own_size_is_refused(Model):
    with pytest.raises(ValueError, match=r"radius=3 is for a set given by name.* L1Ball\(radius=4"):
        Model(ofw.sets.L1Ball(4.0), radius=3).fit(np.eye(2), [0, 1])
    Model(ofw.sets.L1Ball(4.0)).fit(np.eye(2), [0, 1])
