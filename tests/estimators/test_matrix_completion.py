"""The matrix-completion estimator: what it learns, what it says about it, what it refuses."""

import copy
import pickle

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import onlinefw as ofw
from onlinefw import FrankWolfeMatrixCompletion, RidgeSweeps
from onlinefw.estimators import completion_parts
from onlinefw.estimators.completion_run import CompletionRun
from onlinefw.estimators.history import History
from onlinefw.estimators.race import Race
from onlinefw.losses import Correntropy, Square
from onlinefw.objectives import RunningBiases
from onlinefw.sets import WeightedTraceNormBall
from onlinefw.steps import Power

SHAPE = (20, 15)
#: Most of what is tested here is the plain algorithm, with one thing added at a time.
plain = FrankWolfeMatrixCompletion.paper


def planted(rng, n, shape=SHAPE, mean=0.0, noise=0.1):
    """Noisy entries of a matrix of rank 2, popular columns more often; and the matrix."""
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1])) + mean
    cols = (shape[1] * rng.random(n) ** 1.5).astype(int)
    X = np.column_stack((rng.integers(shape[0], size=n), cols))
    return X, truth[X[:, 0], X[:, 1]] + noise * rng.standard_normal(n), truth


def assert_same(a, b, path="state"):
    """Equal to the last bit: dicts, lists, arrays, numbers."""
    assert type(a) is type(b), path
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            assert_same(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{path}[{k}]")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, path
        np.testing.assert_array_equal(a, b, err_msg=path)
    else:
        assert a == b or (a != a and b != b), path


def assert_same_model(a, b):
    assert_same(a._run.learners[0].state_dict(), b._run.learners[0].state_dict())
    x, y = a.history_, b.history_
    assert_same({**x, "seconds": None}, {**y, "seconds": None})


def snapshot(model):
    """Everything but the clock, by value."""
    return copy.deepcopy({k: v for k, v in model.__getstate__().items() if k[0] != "_"}), (
        copy.deepcopy([learner.state_dict() for learner in model._run.team.learners]),
        copy.deepcopy(model._run.history._rounds),
        (model._run.low, model._run.high, model._run.weights and model._run.weights.due),
    )


def batches(X, y, size):
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


def streamed(model, X, y, size=100):
    for part in batches(X, y, size):
        model.partial_fit(*part)
    return model


def norm_of(model):
    """The norm that the ball bounds, from a full SVD in double precision."""
    theta, ball = np.asarray(model.objective_.theta, dtype=float), model._run.learners[0].constraint
    if isinstance(ball, WeightedTraceNormBall):
        theta = ball.rows[:, None] * theta * ball.columns
    return np.linalg.norm(theta, "nuc")


def dense_prediction(model):
    """Low-rank part plus offsets, as one matrix."""
    biases = model.objective_.offsets
    z = np.asarray(model.objective_.theta, dtype=float)
    return z if biases is None else z + biases.mean + biases.rows[:, None] + biases.columns


KINDS = {
    "plain": dict(),
    "biases": dict(offsets="biases"),
    "smoothed": dict(weighting="smoothed"),
    "biases, smoothed": dict(offsets=RunningBiases(2.0), weighting="smoothed"),
    "inner steps": dict(inner_steps=2, step=Power(0.7)),
    "line search": dict(step="line-search"),
    "certified": dict(certify_every=3, dtype="float64"),
    "recompressed": dict(max_atoms=8),
    "ridge": dict(corrective=RidgeSweeps(3, ridge=0.5)),
    "ridge auto, biases, smoothed": dict(
        corrective="ridge", offsets="biases", weighting="smoothed"
    ),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


# Learning ----------------------------------------------------------------------------------------


@every_kind
def test_fit_is_a_stream_of_partial_fits(kind, rng):
    X, y, _ = planted(rng, 2500)
    make = plain(30.0, shape=SHAPE, batch_size=100, **KINDS[kind])
    fitted, stream = clone(make).fit(X, y), streamed(clone(make), X, y)
    if make.corrective is not None:  # fit knows that the data end here
        stream._run.learners[0].correct()
    assert_same_model(fitted, stream)
    assert fitted.n_rounds_ == 25


@every_kind
def test_the_same_fit_twice_gives_the_same_model(kind, rng):
    X, y, _ = planted(rng, 1500)
    make = plain(30.0, shuffle=True, random_state=3, **KINDS[kind])
    model = clone(make).fit(X, y)
    assert_same_model(model, clone(make).fit(X, y))
    assert_same_model(model, copy.deepcopy(model).fit(X, y))  # nothing is left of the first


@every_kind
def test_what_it_predicts_is_its_theta_plus_offsets_and_its_objective_the_mean_loss(kind, rng):
    X, y, _ = planted(rng, 2500, mean=3.0)
    w = rng.uniform(0.5, 2.0, 2500)
    model = plain(30.0, batch_size=100, **KINDS[kind]).fit(X, y, w)
    dense = dense_prediction(model)
    np.testing.assert_allclose(model.predict(X), dense[X[:, 0], X[:, 1]], atol=2e-5)
    value = np.average((dense[X[:, 0], X[:, 1]] - y) ** 2, weights=w) / 2
    assert model.objective_.value() == pytest.approx(value, rel=1e-3)
    assert norm_of(model) <= 30.0 * (1 + 1e-5)


@pytest.mark.parametrize("weighting", [None, "smoothed"])
@pytest.mark.parametrize("offsets", [None, "biases"])
def test_rows_and_columns_appear_while_streaming(weighting, offsets, rng):
    model = plain(20.0, weighting=weighting, offsets=offsets, dtype="float64")
    X, y, _ = planted(rng, 4000, mean=2.0)
    order = np.argsort(np.maximum(X[:, 0] / 20, X[:, 1] / 15) + 0.5 * rng.random(4000))
    seen = np.zeros(2, int)
    for part in np.array_split(order, 40):
        seen = np.maximum(seen, X[part].max(axis=0) + 1)
        model.partial_fit(X[part], y[part])
        assert model.objective_.shape == tuple(seen)
        assert norm_of(model) <= 20.0 * (1 + 1e-9)
    assert model.objective_.shape == SHAPE
    entries = model.predict(X)
    np.testing.assert_allclose(entries, dense_prediction(model)[X[:, 0], X[:, 1]], atol=1e-9)
    assert model.objective_.value() == pytest.approx(np.mean((entries - y) ** 2) / 2, rel=1e-6)
    if weighting is not None:
        ball, (m1, m2) = model._run.learners[0].constraint, SHAPE
        counts = np.bincount(X[order, 0], minlength=m1) / 4000, np.bincount(X[:, 1]) / 4000
        for weights, frequency, n in zip((ball.rows, ball.columns), counts, (m1, m2), strict=True):
            # They follow when the data have grown by a tenth, so they are not far behind.
            np.testing.assert_allclose(weights, np.sqrt(0.5 * n * frequency + 0.5), rtol=0.1)


def test_weights_of_the_smoothed_norm_are_half_empirical_half_uniform(rng):
    X, y, _ = planted(rng, 500)
    w = rng.uniform(0.0, 3.0, 500)
    model = plain(5.0, weighting="smoothed").partial_fit(X, y, w)
    ball = model._run.learners[0].constraint
    rows = np.array([w[X[:, 0] == i].sum() for i in range(20)]) / w.sum()
    columns = np.array([w[X[:, 1] == j].sum() for j in range(15)]) / w.sum()
    np.testing.assert_allclose(ball.rows**2 / 20, 0.5 * rows + 0.5 / 20, rtol=1e-6)
    np.testing.assert_allclose(ball.columns**2 / 15, 0.5 * columns + 0.5 / 15, rtol=1e-6)


def test_observations_without_weight_are_as_if_they_were_not_there(rng):
    X, y, _ = planted(rng, 600)
    w = np.where(np.arange(600) // 50 % 3 == 1, 0.0, rng.uniform(0.5, 2.0, 600))
    make = plain(20.0, shape=SHAPE, batch_size=25, offsets="biases")
    all_of_them = clone(make).fit(X, y, w)  # whole batches would have no weight
    assert_same_model(all_of_them, clone(make).fit(X[w > 0], y[w > 0], w[w > 0]))


def test_further_epochs_store_nothing_again_and_come_closer_to_the_optimum(rng):
    X, y, _ = planted(rng, 1000)
    one, five = (plain(30.0, epochs=n, batch_size=50).fit(X, y) for n in (1, 5))
    assert five.n_rounds_ == 5 * one.n_rounds_ == 100
    assert five.objective_.n_observations == one.objective_.n_observations == 1000
    assert five.objective_.n_entries == one.objective_.n_entries
    assert five.objective_.value() < 0.5 * one.objective_.value()
    assert np.isnan(five.history_["loss"][20:]).all()  # no new data, nothing paid
    assert np.isfinite(five.history_["loss"][:20]).all()


def test_shuffling_takes_the_order_of_its_random_state(rng):
    X, y, _ = planted(rng, 300)
    order = np.random.default_rng(7).permutation(300)
    make = plain(20.0, shape=SHAPE, batch_size=30)
    shuffled = clone(make).set_params(shuffle=True, random_state=7).fit(X, y)
    assert_same_model(shuffled, clone(make).fit(X[order], y[order]))


def test_integers_lists_and_other_index_types_mean_the_same(rng):
    X, y, _ = planted(rng, 200)
    make = plain(20.0, offsets="biases", weighting="smoothed", batch_size=50)
    expected = clone(make).fit(X, y)
    for other in (X.astype(np.uint64), X.astype(np.int16), X.astype(float), X.tolist()):
        model = clone(make).fit(other, y.tolist())
        assert_same_model(model, expected)
        np.testing.assert_array_equal(model.predict(other), expected.predict(X))


# A radius of its own -----------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "how"), [(0.0, "partial_fit"), (5.0, "fit")])
def test_the_radius_found_while_learning_explains_what_the_mean_does_not(mean, how, rng):
    X, y, _ = planted(rng, 6000, mean=mean)
    model = plain("auto", shape=SHAPE, batch_size=5)
    X, y, new = X[:5000], y[:5000], (X[5000:], y[5000:])
    model = model.fit(X, y) if how == "fit" else streamed(model, X, y, 10)
    assert model.score(*new) > 0.9
    scale = np.sqrt(300 * np.mean((y if how == "fit" else y[:10]) ** 2))
    assert np.abs(np.array(completion_parts.RADII) - model.radius_ / scale).min() < 1e-9
    assert model._run.race is None


@pytest.mark.parametrize(
    ("losses", "winner"),
    [
        ([1.0, 1.02, 1.07, 1.1, 1.2], 2),  # the first data like a radius that is too small
        ([1.0, 1.05, 1.2, 1.4, 2.0], 1),
        ([1.0, 1.2, 1.3, 1.4, 2.0], 0),
        ([1.5, 1.3, 1.1, 1.05, 1.0], 3),
        ([np.inf, 1.0, 1.0, 1.0, 1.0], 2),
    ],
)
def test_a_race_is_won_by_the_middlemost_radius_of_those_that_do_nearly_best(losses, winner):
    race = Race(5, rounds=10)
    for _ in range(10):
        assert not race.over
        race.add(-np.array(losses), 1.0, 1)
    assert race.over and race.nearly_best(CompletionRun.close) == winner
    assert race.best == int(np.argmin(losses)) or np.isinf(losses).any()


def test_a_race_ends_after_its_part_of_the_stream_and_the_winner_goes_on_alone(rng, monkeypatch):
    X, y, _ = planted(rng, 3000)
    fitted = plain("auto", batch_size=30)
    calls = []
    play = ofw.OnlineFrankWolfe.play

    def counted(self, batch):
        calls.append(self.constraint.radius)
        return play(self, batch)

    monkeypatch.setattr(ofw.OnlineFrankWolfe, "play", counted)
    fitted.fit(X, y)
    assert len(calls) == 20 * len(completion_parts.RADII) + 80
    assert set(calls[100:]) == {fitted.radius_}
    assert fitted.n_rounds_ == 100  # it has learned from every batch
    assert fitted.objective_.n_observations == 3000


def test_radii_at_which_a_steep_loss_overflows_retire(rng):
    X = planted(rng, 4000, (200, 100))[0]
    y = rng.poisson(3.0, 4000).astype(float)
    model = plain("auto", loss="poisson", dtype="float64", batch_size=40).fit(X, y)
    assert model.n_rounds_ == 100
    assert np.isfinite(model.history_["loss"]).all()
    with pytest.raises(OverflowError, match=r"Poisson\(\) overflows.*smaller radius.*LineSearch"):
        plain(1e4, loss="poisson").fit(X, y)
    searched = plain(1e4, loss="poisson", step="line-search", batch_size=400)
    assert np.isfinite(searched.fit(X, y).objective_.value())


# Asking ------------------------------------------------------------------------------------------


LOSSES = {
    "square": ([-2.0, 1.5], lambda z: z),
    "gaussian": ([-2.0, 1.5], lambda z: z),
    "logistic": ([-1.0, 1.0], lambda z: np.where(z >= 0, 1.0, -1.0)),
    "sigmoid": ([-1.0, 1.0], lambda z: np.where(z >= 0, 1.0, -1.0)),
    "bernoulli": ([0.0, 1.0], expit),
    "poisson": ([0.0, 1.0, 4.0], np.exp),
    "exponential": ([0.5, 2.0], lambda z: np.where(z <= -1e-3, -1 / np.minimum(z, -1e-3), np.nan)),
}


@pytest.mark.parametrize("loss", list(LOSSES))
def test_every_loss_is_known_by_name_and_predicts_the_mean_of_its_family(loss, rng):
    targets, mean = LOSSES[loss]
    X = planted(rng, 800)[0]
    y = rng.choice(targets, 800)
    model = plain(8.0, loss=loss, dtype="float64", batch_size=40).fit(X, y)
    z = np.asarray(model.objective_.theta)[X[:, 0], X[:, 1]]
    np.testing.assert_allclose(model.decision_function(X), z, atol=1e-12)
    predicted, expected = model.predict(X), mean(z)
    compared = np.isfinite(expected) & (np.abs(z) > 1e-9)  # a label at 0 is rounding's to choose
    assert compared.mean() > 0.3
    np.testing.assert_allclose(predicted[compared], expected[compared], rtol=1e-9)
    assert np.isfinite(predicted).all()
    assert model.gap_ >= 0.0


def test_a_loss_object_is_taken_as_it_is(rng):
    X, y, _ = planted(rng, 300)
    model = plain(10.0, loss=Correntropy(2.0), offsets="biases").fit(X, y)
    assert model.objective_.loss == Correntropy(2.0)
    dense = dense_prediction(model)[X[:, 0], X[:, 1]]
    value = np.mean(1 - np.exp(-((dense - y) ** 2) / 4.0))
    assert model.objective_.value() == pytest.approx(value, rel=1e-4)


@every_kind
def test_factors_reproduce_theta(kind, rng):
    X, y, _ = planted(rng, 2000)
    model = plain(30.0, **KINDS[kind]).fit(X, y)
    u, s, v = model.factors_
    theta = np.asarray(model.objective_.theta)
    np.testing.assert_allclose((u * s) @ v.T, theta, atol=1e-5)
    np.testing.assert_allclose(s, np.linalg.svd(theta)[1][: s.size], atol=1e-5)
    np.testing.assert_allclose(u.T @ u, np.eye(s.size), atol=1e-4)
    np.testing.assert_allclose(v.T @ v, np.eye(s.size), atol=1e-4)
    at_least, at_most = (np.linalg.matrix_rank(theta, tol=tol * s[0]) for tol in (1e-5, 1e-7))
    assert at_least <= model.rank_ == s.size <= at_most


def test_the_first_step_has_rank_one(rng):
    X, y, _ = planted(rng, 50)
    assert plain(3.0).partial_fit(X, y).rank_ == 1


@pytest.mark.parametrize("kind", ["plain", "biases", "smoothed", "biases, smoothed"])
@pytest.mark.parametrize("rounds", [3, 60])
def test_the_gap_bounds_how_far_the_objective_is_above_its_minimum(kind, rounds, rng):
    X, y, _ = planted(rng, 60, (6, 5), mean=1.0, noise=0.5)
    w = rng.uniform(0.5, 2.0, 60)
    radius = 3.0
    model = plain(radius, dtype="float64", batch_size=60, **KINDS[kind])
    model.set_params(epochs=rounds).fit(X, y, w)
    ball, x = model._run.learners[0].constraint, cp.Variable((6, 5))
    offset = dense_prediction(model) - np.asarray(model.objective_.theta)  # as they are now
    weights = (np.ones(6), np.ones(5)) if ball.scales is None else (ball.rows, ball.columns)
    weighted = cp.diag(weights[0]) @ x @ cp.diag(weights[1])
    at = cp.hstack([x[i, j] + offset[i, j] for i, j in X])
    mean = cp.sum(cp.multiply(w / w.sum(), cp.square(at - y))) / 2
    best = cp.Problem(cp.Minimize(mean), [cp.normNuc(weighted) <= radius]).solve(solver="CLARABEL")
    value, gap = model.objective_.value(), model.gap_
    assert best - 1e-6 <= value <= best + gap + 1e-6
    # The bound is the Frank-Wolfe gap, here of a dense gradient.
    theta, gradient = np.asarray(model.objective_.theta), np.zeros((6, 5))
    dense = theta + offset
    np.add.at(gradient, (X[:, 0], X[:, 1]), w / w.sum() * (dense[X[:, 0], X[:, 1]] - y))
    top = np.linalg.norm(gradient / weights[0][:, None] / weights[1], 2)
    assert gap == pytest.approx(np.sum(gradient * theta) + radius * top, rel=1e-6, abs=1e-9)


def test_asking_for_the_gap_changes_nothing(rng):
    X, y, _ = planted(rng, 500)
    a, b = (plain(20.0, batch_size=50).fit(X, y) for _ in range(2))
    assert a.gap_ == a.gap_ > 0.0
    a.partial_fit(X[:50], y[:50])
    b.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_clipped_predictions_stay_within_the_values_seen(rng):
    X, y, _ = planted(rng, 400)
    make = plain(1000.0, shape=SHAPE)  # the first step goes much too far
    raw, model = make.partial_fit(X, y).predict(X), clone(make).set_params(clip=True)
    assert raw.min() < y.min() and y.max() < raw.max()
    clipped = model.partial_fit(X, y).predict(X)
    np.testing.assert_allclose(clipped, np.clip(raw, y.min(), y.max()), rtol=1e-6)
    np.testing.assert_array_equal(model.decision_function(X), raw)
    model.partial_fit([[0, 0]], [9.0])  # the range follows the values
    assert y.max() < model.predict(X).max() <= 9.0


def test_rows_and_columns_never_seen_are_refused_or_fall_back(rng):
    X, y, _ = planted(rng, 500, mean=3.0)
    far = np.array([[3, 40], [50, 4], [50, 40], [3, 4]])
    with_biases = plain(20.0, offsets="biases").fit(X, y)
    with pytest.raises(ValueError, match=r"\(3, 40\).*20 rows and 15 columns.*fallback"):
        with_biases.predict(far)
    biases = with_biases.objective_.offsets
    mean, rows, columns = biases.mean, biases.rows, biases.columns
    expected = [mean + rows[3], mean + columns[4], mean, float(with_biases.predict([[3, 4]])[0])]
    np.testing.assert_allclose(with_biases.predict(far, unknown="fallback"), expected, rtol=1e-6)
    alone = plain(20.0).fit(X, y)
    predicted = alone.predict(far, unknown="fallback")
    np.testing.assert_array_equal(predicted[:3], 0.0)
    assert predicted[3] == alone.predict([[3, 4]])[0]
    with pytest.raises(ValueError, match="unknown must be one of 'raise', 'fallback', got 'skip'"):
        alone.predict(far, unknown="skip")


def test_recommendations_are_the_largest_predictions_not_seen_before(rng):
    X, y, _ = planted(rng, 120)
    model = plain(20.0, offsets="biases", dtype="float64").fit(X, y)
    dense = dense_prediction(model)
    for row in (0, 7, 19):
        seen = np.unique(X[X[:, 0] == row, 1])
        items, scores = model.recommend(row, n=4)
        new = np.setdiff1d(np.arange(15), seen)
        np.testing.assert_array_equal(items, new[np.argsort(-dense[row, new])][:4])
        np.testing.assert_allclose(scores, dense[row, items], atol=1e-12)
        items, _ = model.recommend(row, n=99, exclude_seen=False)
        np.testing.assert_array_equal(items, np.argsort(-dense[row]))


def test_what_was_seen_is_known_wherever_it_is_stored(rng):
    X, y, _ = planted(rng, 5000, (60, 50))
    model = plain(20.0, batch_size=500)
    for part in batches(X, y, 500):
        model.partial_fit(*part)
    objective = model.objective_
    assert 0 < objective.n_newest < objective.n_entries
    for row in range(60):
        np.testing.assert_array_equal(objective.columns_of(row), np.unique(X[X[:, 0] == row, 1]))


def test_a_row_that_has_seen_everything_has_nothing_new(rng):
    X = np.column_stack((np.zeros(15, int), np.arange(15)))
    model = plain(5.0).fit(X, rng.standard_normal(15))
    items, scores = model.recommend(0)
    assert items.size == scores.size == 0
    for bad in (1, -1, 1.0, "a"):
        with pytest.raises(ValueError, match=r"row must be one of the 1 rows seen"):
            model.recommend(bad)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        model.recommend(0, n=0)


@pytest.mark.parametrize(
    "ask", ["gap_", "factors_", "rank_", "radius_", "n_rounds_", "history_", "objective_"]
)
def test_before_the_first_fit_there_is_nothing_to_ask(ask):
    model = plain(1.0)
    with pytest.raises(NotFittedError):
        getattr(model, ask)
    with pytest.raises(NotFittedError):
        model.predict([[0, 0]])
    with pytest.raises(NotFittedError):
        model.recommend(0)


# History and progress ----------------------------------------------------------------------------


def test_history_has_a_row_per_round(rng):
    X, y, _ = planted(rng, 400)
    model = plain(20.0, shape=SHAPE, batch_size=20, certify_every=5)
    history = model.fit(X, y).history_
    assert {name: len(column) for name, column in history.items()} == dict.fromkeys(
        ("t", "loss", "gap", "gap_upper", "step_size", "kind", "reads", "seconds", "half_life"), 20
    )
    np.testing.assert_array_equal(history["t"], np.arange(1, 21))
    np.testing.assert_allclose(history["step_size"], 2 / (history["t"] + 1))
    assert history["loss"][0] == pytest.approx(np.mean(y[:20] ** 2) / 2)  # paid by theta = 0
    certified = ~np.isnan(history["gap_upper"])
    np.testing.assert_array_equal(history["t"][certified], [5, 10, 15, 20])
    assert (history["gap"][certified] <= history["gap_upper"][certified]).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert set(history["kind"]) == {"fw"}


@pytest.mark.parametrize("size", [2, 3, 10, 101])
def test_a_long_history_is_thinned_evenly_in_log_t(size):
    history = History(size)
    for t in range(1, 3001):
        history.append(ofw.Round(t, 1.0 / t, 0.0, 0.0, 0.1, "fw", t))
        assert 1 <= len(history.as_dict()["t"]) <= size if t < 50 or t % 500 == 0 else True
    t = history.as_dict()["t"]
    assert t[0] == 1 and t[-1] == 3000 and (np.diff(t) > 0).all()
    assert len(t) >= size // 2 or size <= 3
    if size == 101:  # no hole is much wider than the others, on a log scale
        assert np.diff(np.log(t[t > 20])).max() < 4 * np.log(3000) / 50


def test_the_estimators_history_is_bounded(rng):
    X, y, _ = planted(rng, 300)
    history = plain(5.0, batch_size=2, history_size=16).fit(X, y).history_
    assert {len(column) for column in history.values()} <= set(range(4, 17))
    assert history["t"][0] == 1 and history["t"][-1] == 150


def test_verbose_prints_nothing_where_nobody_looks(rng, capfd):
    X, y, _ = planted(rng, 200)
    plain(5.0, verbose=1, epochs=2).fit(X, y)
    assert capfd.readouterr() == ("", "")


# Parameters, copies, files -----------------------------------------------------------------------


def test_parameters_are_scikit_learns(rng):
    model = plain(3.0, offsets="biases", corrective=RidgeSweeps(2))
    params = model.get_params()
    assert params["radius"] == 3.0 and params["corrective"].rank == 2
    assert clone(model).get_params().keys() == params.keys()
    assert model.set_params(radius=4.0, loss=Square()) is model
    assert model.radius == 4.0
    with pytest.raises(ValueError, match="radios"):
        model.set_params(radios=1.0)
    assert "offsets='biases'" in repr(model)


def test_a_fit_leaves_its_parameters_alone(rng):
    X, y, _ = planted(rng, 2000)
    sweeps, biases = RidgeSweeps(3), RunningBiases(2.0)
    before = sweeps.state_dict(), biases.state_dict()
    model = plain(9.0, corrective=sweeps, offsets=biases).fit(X, y)
    assert model.corrective is sweeps and model.offsets is biases
    assert_same((sweeps.state_dict(), biases.state_dict()), before)
    assert model._run.learners[0].corrective._due > 0


@pytest.mark.parametrize("kind", [*KINDS, "racing"])
def test_a_pickled_model_predicts_and_goes_on_equally(kind, rng):
    X, y, _ = planted(rng, 2400)
    options = (
        {"radius": 30.0, **KINDS[kind]}
        if kind != "racing"
        else {"radius": "auto", "weighting": "smoothed"}
    )
    model = streamed(plain(shape=SHAPE, **options), X[:1200], y[:1200], 60)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.gap_ == model.gap_
    for part in batches(X[1200:], y[1200:], 60):
        model.partial_fit(*part)
        other.partial_fit(*part)
    assert_same_model(model, other)
    assert (model._run.race is None) == (kind != "racing")


def test_it_can_be_searched_over(rng):
    X, y, _ = planted(rng, 1500)
    search = GridSearchCV(plain("auto", batch_size=30), {"radius": [1.0, 35.0]}, cv=3)
    assert search.fit(X, y).best_params_ == {"radius": 35.0}
    assert search.best_score_ > 0.5


# Refusals ----------------------------------------------------------------------------------------


BAD_DATA = {
    "three columns": (([[0, 1, 2]], [1.0]), r"row and a column.*\(1, 3\)"),
    "a flat list": (([0, 1], [1.0]), r"row and a column.*\(2,\)"),
    "no rows": ((np.empty((0, 2), int), []), "batch is empty"),
    "a fraction": (([[0, 0], [0.5, 1.0]], [1.0, 1.0]), r"whole-number.*\[0.5, 1.0\] in row 1"),
    "NaN as an index": (([[np.nan, 1.0]], [1.0]), r"whole-number.*\[nan, 1.0\] in row 0"),
    "infinity as an index": (([[np.inf, 1.0]], [1.0]), "index inf"),
    "text among indices": (([[0, 1], ["a", "b"]], [1.0, 1.0]), "whole-number"),
    "a negative index": (([[0, -3]], [1.0]), "negative index -3"),
    "a huge index": (([[2**40, 0]], [1.0]), f"index {2**40}.*below 2"),
    "NaN": (([[0, 0], [0, 1]], [1.0, np.nan]), "y has nan in row 1"),
    "infinity": (([[0, 0]], [-np.inf]), "y has -inf in row 0"),
    "too large": (([[0, 0]], [1e20]), "1e.15 overflow in single precision"),
    "too few values": (([[0, 0], [1, 1]], [1.0]), "2 rows but y has 1"),
    "a matrix of values": (([[0, 0]], [[1.0]]), "one value per row"),
    "a negative weight": (([[0, 0]], [1.0], [-1.0]), "negative, got -1 in row 0"),
    "no weight at all": (([[0, 0]], [1.0], [0.0]), "zero for every row"),
    "a weight too many": (([[0, 0]], [1.0], [1.0, 1.0]), "sample_weight has 2"),
    "NaN as a weight": (([[0, 0]], [1.0], [np.nan]), "sample_weight has nan"),
}


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@pytest.mark.parametrize("name", list(BAD_DATA))
def test_bad_observations_are_refused_and_a_fitted_model_stays_as_it_was(name, how, rng):
    data, words = BAD_DATA[name]
    X, y, _ = planted(rng, 200)
    model = plain(9.0, weighting="smoothed", offsets="biases", batch_size=50)
    with pytest.raises(ValueError, match=words):
        getattr(model, how)(*data)
    assert not hasattr(model, "_run")
    model.fit(X, y)
    before = snapshot(model)
    with pytest.raises(ValueError, match=words):
        getattr(model, how)(*data)
    assert_same(snapshot(model), before)


@pytest.mark.parametrize(
    ("loss", "target", "words"),
    [
        ("logistic", 0.0, r"Logistic\(\) needs labels in \{-1, \+1\}, got 0 in row 1"),
        ("sigmoid", 2.0, "labels in .*got 2 in row 1"),
        ("bernoulli", -1.0, r"targets in \{0, 1\}, got -1 in row 1"),
        ("poisson", 1.5, "counts .*got 1.5 in row 1"),
        ("exponential", 0.0, "positive targets, got 0 in row 1"),
    ],
)
def test_values_that_the_loss_does_not_know_are_refused(loss, target, words):
    model = plain(2.0, loss=loss).fit([[0, 0], [1, 1]], [1.0, 1.0])
    before = snapshot(model)
    with pytest.raises(ValueError, match=words):
        model.partial_fit([[0, 0], [7, 7]], [1.0, target])
    assert_same(snapshot(model), before)


BAD_PARAMETERS = {
    "radius": [0.0, -2.0, np.nan, np.inf, "big", None, [1.0], np.ones(2)],
    "shape": [(3,), 5, (1, 2, 3), ("a", "b"), (2.5, 3), (-5, 3), (0, 4)],
    "loss": ["cubic", Square, None, 2],
    "offsets": ["means", RunningBiases, 1, np.ones(2)],
    "weighting": ["uniform", 1, np.ones(2)],
    "step": ["short", 0.1, Power, lambda t: 2.0, np.ones(2)],
    "batch_size": [0, -1, 2.5, "large", None],
    "epochs": [0, 1.5, None, "two"],
    "inner_steps": [0, 1.5, None, "two"],
    "corrective": ["sweeps", RidgeSweeps, 1],
    "max_atoms": [0, 1, 2.5, "many"],
    "certify_every": [0, -1, 1.5, "often"],
    "dtype": ["float16", "int", int, "nonsense", None],
    "random_state": ["a", -1, 1.5],
    "history_size": [0, 1, 2.5, None, "long"],
}


@pytest.mark.parametrize("name", list(BAD_PARAMETERS))
def test_bad_parameters_are_named_and_a_fitted_model_stays_as_it_was(name, rng):
    X, y, _ = planted(rng, 200)
    model = plain(9.0, batch_size=50, shuffle=True, random_state=0).fit(X, y)
    for bad in BAD_PARAMETERS[name]:
        bent = copy.deepcopy(model).set_params(**{name: bad})
        before = snapshot(bent)
        with pytest.raises(ValueError, match=name):
            bent.fit(X, y)
        assert_same_but_parameters(snapshot(bent), before)
        fresh = plain(**{"radius": 9.0, "shuffle": True, name: bad})
        with pytest.raises(ValueError, match=name):
            fresh.fit(X, y)
        assert not hasattr(fresh, "_run")


def assert_same_but_parameters(a, b):
    assert_same(a[1], b[1])


@pytest.mark.parametrize("options", [dict(offsets="biases"), dict(corrective="ridge")])
def test_what_makes_sense_for_regression_only_is_refused_elsewhere(options):
    model = plain(9.0, loss="logistic", **options)
    with pytest.raises(ValueError, match=r"Logistic\(\)"):
        model.fit([[0, 0]], [1.0])


# Feasibility -------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    acts=st.lists(st.sampled_from(["batch", "large batch", "refine", "correct"]), max_size=8),
    weighting=st.sampled_from([None, "smoothed"]),
    offsets=st.sampled_from([None, "biases"]),
    ridge=st.sampled_from(["auto", 1e-3, 10.0]),
    step=st.sampled_from([None, "line-search"]),
    max_atoms=st.sampled_from([None, 4]),
)
def test_theta_stays_in_the_ball_whatever_happens(
    seed, acts, weighting, offsets, ridge, step, max_atoms
):
    rng = np.random.default_rng(seed)
    radius = float(rng.choice([0.1, 3.0, 100.0]))
    model = plain(
        radius,
        weighting=weighting,
        offsets=offsets,
        step=step,
        max_atoms=max_atoms,
        corrective=RidgeSweeps(3, ridge=ridge, growth=1.5),
    )
    for act in ["batch", *acts]:
        if act in ("batch", "large batch"):
            shape = (int(rng.integers(1, 30)), int(rng.integers(1, 30)))
            n = int(rng.integers(1, 40)) if act == "batch" else 1200
            model.partial_fit(*planted(rng, n, shape, mean=2.0)[:2])
        else:
            getattr(model._run.learners[0], act)()
        assert norm_of(model) <= radius * (1 + 1e-5)
