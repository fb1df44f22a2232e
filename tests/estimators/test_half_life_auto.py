"""``half_life="auto"``: several memories side by side, of which the best predicts."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.files import digest, load_checkpoint, save_checkpoint

N, CHANGE = 1500, 800


def rows(change=CHANGE, n=N, seed=0):
    """Rows whose truth is another one after ``change`` of them (None: never)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    z = 3.0 * X[:, 0] - 2.0 * X[:, 1]
    if change is not None:
        z[change:] = 3.0 * X[change:, 2] - 2.0 * X[change:, 3]
    return X, z + 0.3 * rng.standard_normal(n)


def labels(n_classes, **options):
    X, z = rows(**options)
    edges = {2: [0.0], 3: [-1.5, 1.5]}[n_classes]
    return X, np.digitize(z, edges)


def ratings(change=6000, n=9000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack((rng.integers(40, size=n), rng.integers(30, size=n)))
    U, V = rng.standard_normal((2, 40, 2)), rng.standard_normal((30, 2))
    old, new = (np.sum(u[X[:, 0]] * V[X[:, 1]], axis=1) for u in U)
    z = old if change is None else np.where(np.arange(n) < change, old, new)
    return X, 3.0 + z + 0.2 * rng.standard_normal(n)


def regressor(**options):
    return ofw.FrankWolfeRegressor(**{"half_life": "auto", **options})


def streams():
    """Pairs of a model and its stream."""
    logistic = {"loss": "logistic", "half_life": "auto"}
    yield "regression", regressor(), rows(), {}
    yield "a given radius", regressor(radius=5.0), rows(), {}
    yield "kept rows", regressor(loss="correntropy"), rows(), {}
    yield "a sample", regressor(past="reservoir", max_past=300), rows(), {}
    yield "a summary", regressor(past="summary", radius=5.0), rows(), {}
    yield "away steps", regressor(away_steps=True, inner_steps=2, radius=5.0), rows(), {}
    for k in (2, 3):
        yield f"{k} classes", ofw.FrankWolfeClassifier(**logistic), labels(k), {"classes": range(k)}


STREAMS = {name: parts for name, *parts in streams()}


@pytest.fixture(params=STREAMS)
def stream(request):
    model, data, options = STREAMS[request.param]
    return type(model)(**model.get_params()), data, options


def same(one, other):
    """Whether two models have learned the same, to the last bit."""
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert one.half_life_ == other.half_life_
    assert np.array_equal(one.changes_, other.changes_)
    for name in ("t", "loss", "half_life"):
        a, b = one.history_[name][-1], other.history_[name][-1]
        assert a == b or (np.isnan(a) and np.isnan(b))


def test_pieces_of_any_length_are_the_same_as_all_at_once(stream):
    whole, (X, y), options = stream
    pieces = type(whole)(**whole.get_params())
    at_once = whole.learn(X, y, **options)
    cuts = [0, 1, 7, 120, 333, 801, 940, N]
    parts = [pieces.learn(X[a:b], y[a:b], **options) for a, b in pairwise(cuts)]
    assert np.array_equal(np.concatenate(parts), at_once)
    same(whole, pieces)


def test_a_model_that_was_saved_goes_on_as_if_nothing_had_happened(stream):
    whole, (X, y), options = stream
    whole.learn(X, y, **options)
    for cut in (60, 1010):
        stopped = type(whole)(**whole.get_params())
        stopped.learn(X[:cut], y[:cut], **options)
        resumed = pickle.loads(pickle.dumps(stopped))
        resumed.learn(X[cut:], y[cut:], **options)
        same(whole, resumed)


def test_it_is_as_good_as_no_forgetting_where_nothing_changes():
    X, y = rows(change=None)
    model = regressor()
    errors = np.square(model.learn(X, y) - y)
    without = np.square(regressor(half_life=None).learn(X, y) - y)
    assert errors.mean() <= 1.01 * without.mean()
    assert model.half_life_ is None
    assert model.changes_.size == 0


def test_it_follows_an_abrupt_change_within_300_rows_and_notes_it_once():
    X, y = rows()
    model = regressor()
    errors = np.square(model.learn(X, y) - y)
    # Half of the variance of y is that of the old truth, which no longer helps.
    assert errors[CHANGE : CHANGE + 50].mean() > 10.0
    assert errors[CHANGE + 300 :].mean() < 0.3
    assert model.changes_.size == 1
    assert CHANGE < model.changes_[0] <= CHANGE + 300
    without = np.square(regressor(half_life=None).learn(X, y) - y)
    assert errors[CHANGE:].mean() < 0.3 * without[CHANGE:].mean()


def test_the_longest_memory_forgets_nothing_since_the_last_change():
    X, y = rows(n=3000)
    model = regressor()
    model.learn(X, y)
    assert model.half_life_ is None
    objective = model.objective_
    assert N < objective.total_weight / objective.unit < 3000 - CHANGE + 300


def test_a_truth_that_grows_is_followed_beyond_the_radius_that_won_before():
    X, y = rows(n=2400)
    model, scale = regressor(), np.where(np.arange(2400) < CHANGE, 1.0, 5.0)
    errors = np.square(model.learn(X, scale * y) - scale * y)
    assert np.abs(model.coef_[2:4] - [15.0, -10.0]).max() < 1.0  # a radius of 25, and before of 5
    assert errors[-500:].mean() < 2.0 * 1.5**2  # noise has grown to 1.5
    assert model.changes_.size == 1
    assert len({one.radius for one in model._run.runs}) == 1  # one radius has won


def test_a_radius_that_was_given_stays_after_a_change():
    X, y = rows()
    model = regressor(radius=4.0)
    model.learn(X, np.where(np.arange(N) < CHANGE, 1.0, 5.0) * y)
    assert model.changes_.size == 1
    assert np.abs(model.coef_).sum() <= 4.0 + 1e-9


def test_the_certificate_speaks_of_the_model_that_predicts():
    X, y = rows()
    model = regressor(radius=5.0)
    model.learn(X, y)
    model.correct()
    assert 0.0 <= model.gap_ <= 0.011 * model.mean_loss_


def test_batches_are_judged_when_they_have_been_learned():
    X, y = rows(n=3000)
    model = regressor().fit(X, y)
    assert model.changes_.size == 1
    assert np.abs(model.coef_[2:4] - [3.0, -2.0]).max() < 0.2


def test_weights_count_as_repeated_rows_do_for_the_scores():
    X, y = rows()
    model = regressor(radius=5.0)
    model.learn(X, y, np.full(N, 2.0))
    assert model.changes_.size == 1


def test_a_model_file_tells_the_half_life_and_the_changes(tmp_path):
    X, y = rows()
    model = regressor()
    model.learn(X, y)
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    assert loaded.half_life_ == model.half_life_
    assert np.array_equal(loaded.changes_, model.changes_)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert not loaded.can_learn_


@pytest.mark.parametrize("value", ["often", 0.5, True, np.inf, -1, [100]])
def test_another_half_life_is_refused(value):
    X, y = rows(n=20)
    with pytest.raises(ValueError, match=r'half_life must be .* or "auto", got'):
        regressor(half_life=value).fit(X, y)


# Ratings ------------------------------------------------------------------------------------------


def completion(**options):
    return ofw.FrankWolfeMatrixCompletion(**{"half_life": "auto", **options})


KINDS = {"local": {}, "steps": {"radius": 60.0, "corrective": None}}


def same_matrix(one, other, X):
    assert np.array_equal(one.predict(X), other.predict(X))
    assert one.half_life_ == other.half_life_
    assert np.array_equal(one.changes_, other.changes_)


def test_ratings_in_pieces_are_the_same_as_all_at_once():
    X, y = ratings()
    whole, pieces = completion(), completion()
    at_once = whole.learn(X, y)
    cuts = [0, 1, 50, 1234, 6100, 7777, len(y)]
    parts = [pieces.learn(X[a:b], y[a:b]) for a, b in pairwise(cuts)]
    assert np.array_equal(np.concatenate(parts), at_once)
    same_matrix(whole, pieces, X)
    assert pieces.n_observations_ == pieces.n_rounds_ == len(y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_that_was_saved_goes_on(kind, tmp_path):
    X, y = ratings(n=3000, change=1500)
    whole, stopped = completion(**KINDS[kind]), completion(**KINDS[kind])
    for model in (whole, stopped):
        model.learn(X[:2000], y[:2000], batch_size=100)
    save_checkpoint(stopped, tmp_path / "half")
    resumed = load_checkpoint(tmp_path / "half")
    for model in (whole, resumed):
        model.learn(X[2000:], y[2000:], batch_size=100)
    same_matrix(whole, resumed, X)


def test_ratings_that_change_are_followed_and_noted_once():
    X, y = ratings()
    model = completion()
    errors = np.square(model.learn(X, y) - y)
    without = np.square(completion(half_life=None).learn(X, y) - y)
    assert errors[7500:].mean() < 0.5 * without[7500:].mean()
    assert model.changes_.size == 1
    assert 6000 < model.changes_[0] <= 7000


def test_ratings_that_do_not_change_are_predicted_as_well_as_without():
    X, y = ratings(change=None)
    model = completion()
    errors = np.square(model.learn(X, y) - y)
    without = np.square(completion(half_life=None).learn(X, y) - y)
    assert errors.mean() <= 1.02 * without.mean()
    assert model.changes_.size == 0


def test_ids_and_forgetting_a_person():
    X, y = ratings(n=2000, change=None)
    names = np.array([[f"u{i}", f"m{j}"] for i, j in X], dtype=object)
    model = completion()
    model.learn(names[:1000], y[:1000])
    model = pickle.loads(pickle.dumps(model))
    model.learn(names[1000:], y[1000:])
    assert set(model.row_ids_) == set(names[:, 0])
    model.forget("u3")
    assert "u3" not in set(model.row_ids_)
    assert all(one.matrix.shape == model.shape_ for one in model._run.runs)
    with pytest.raises(ValueError, match="u3"):
        model.predict([["u3", "m1"]])


def test_windows_of_progress_tell_the_half_life():
    X, y = rows()
    windows = ofw.evaluate.progressive(regressor(), X, y).windows(30)
    assert np.isinf(windows["half_life"][:4]).all()
    assert windows["half_life"][17:20].tolist() == [100.0] * 3  # rows 850 to 1,000


def test_a_radius_search_asks_for_one_half_life():
    X, y = rows(n=100)
    with pytest.raises(ValueError, match="RadiusSearch"):
        ofw.RadiusSearch(regressor()).fit(X, y)


@pytest.mark.parametrize("n", [8, 60, 120])
def test_rows_are_learned_the_same_however_they_are_grouped(n):
    """Also while radii race: shorter memories follow the longest one at fixed counts only."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n)
    found = set()
    for size in (1, 7, n):
        model = ofw.FrankWolfeRegressor(half_life="auto")
        for k in [0, *range(1, n, size)]:
            stop = k + size if k else 1  # the first row is learned alone
            model.learn(X[k:stop], y[k:stop])
        found.add(digest(model))
    assert len(found) == 1
