"""``learn``: observations in their order, each predicted before it is learned."""

import pickle
import signal
import threading

import numpy as np
import pytest

import onlinefw as ofw


def ratings(n, seed=0, shape=(40, 30), noise=0.3):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    X = np.column_stack([rng.integers(0, m, n) for m in shape])
    return X, 3.0 + truth[X[:, 0], X[:, 1]] + noise * rng.standard_normal(n)


def local(**more):
    return ofw.FrankWolfeMatrixCompletion(corrective="factors", **more)


def test_each_is_what_predict_would_have_said():
    X, y = ratings(300)
    one, two = local(dtype="float64"), local(dtype="float64")
    one.learn(X[:200], y[:200]), two.learn(X[:200], y[:200])
    expected = []
    for pair, value in zip(X[200:], y[200:], strict=True):
        expected.append(two.predict(pair[None], unknown="fallback")[0])
        two.partial_fit(pair[None], [value])
    np.testing.assert_allclose(one.learn(X[200:], y[200:]), expected, rtol=1e-9)


@pytest.mark.parametrize("model", [local(), ofw.FrankWolfeMatrixCompletion(radius=50.0)])
def test_in_pieces_or_at_once(model):
    X, y = ratings(120)
    one, two = (type(model)(**model.get_params()) for _ in range(2))
    expected = one.learn(X, y)
    parts = np.split(np.arange(120), [1, 50, 51])
    found = np.concatenate([two.learn(X[part], y[part]) for part in parts])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert expected[0] == 0.0
    assert one.n_observations_ == two.n_observations_ == 120


def test_a_batch_size_is_that_of_partial_fit():
    X, y = ratings(100)
    one, two = local(), local()
    found = one.learn(X, y, batch_size=40)
    for part in np.split(np.arange(100), [40, 80]):
        two.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert (found[:40] == 0.0).all()


def test_it_learns_more_than_means():
    X, y = ratings(6000)
    error = np.mean((local().learn(X, y) - y)[4000:] ** 2)
    assert error < 0.25 * np.var(y)


def test_what_was_learned_is_saved_and_goes_on(tmp_path):
    X, y = ratings(300)
    one = local()
    one.learn(X[:200], y[:200])
    ofw.files.save_checkpoint(one, tmp_path / "model.ckpt")
    two = ofw.files.load_checkpoint(tmp_path / "model.ckpt")
    np.testing.assert_array_equal(two.learn(X[200:], y[200:]), one.learn(X[200:], y[200:]))
    ofw.save(one, tmp_path / "model.ofw")
    alone = ofw.load(tmp_path / "model.ofw")
    np.testing.assert_allclose(alone.predict(X), one.predict(X), rtol=1e-5)
    unseen = [[0, 999], [999, 0], [999, 999]]
    fallbacks = [model.predict(unseen, unknown="fallback") for model in (alone, one)]
    np.testing.assert_allclose(*fallbacks, rtol=1e-6)
    assert alone.gap_ == pytest.approx(one.gap_, rel=1e-3)
    with pytest.raises(ValueError, match="only predicts"):
        alone.learn(X, y)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_leaves_a_whole_number_learned():
    X, y = ratings(200_000)
    one, two = local(), local()
    one.learn(X[:10], y[:10])  # compiled before the clock runs
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        one.learn(X[10:], y[10:])
    timer.join()
    n = one.n_observations_
    assert 10 < n < 200_000
    two.learn(X[:n], y[:n])
    np.testing.assert_array_equal(one.predict(X[:100]), two.predict(X[:100]))
    np.testing.assert_array_equal(
        one.learn(X[n:][:99], y[n:][:99]), two.learn(X[n:][:99], y[n:][:99])
    )


def test_the_certificate_says_something_where_rows_have_been_seen_twice():
    X, y = ratings(4000, shape=(2000, 1000), noise=1.0)
    model = local()
    model.learn(X, y)
    model.correct()
    assert 0.0 < model.gap_ <= 0.3 * model.objective_.value()
    assert model.rank_ <= 64


def test_linear_models_learn_row_by_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    model = ofw.FrankWolfeRegressor(radius=3.0)
    predicted = model.learn(X, X[:, 0] - X[:, 1])
    assert predicted[0] == 0.0
    assert np.mean((predicted - X[:, 0] + X[:, 1])[100:] ** 2) < 0.01


def test_fit_learns_one_after_another():
    X, y = ratings(500)
    one, two = local(), local()
    one.fit(X, y)
    two.learn(X, y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    three = local(epochs=3).fit(X, y)
    assert three.n_rounds_ == one.n_rounds_ + 2  # a sweep for each later pass


def test_the_history_has_the_mean_of_every_hundred():
    X, y = ratings(1050)
    one, two = local(), local()
    losses = 0.5 * (one.learn(X, y) - y) ** 2
    expected = losses[:1000].reshape(10, 100).mean(axis=1)
    np.testing.assert_allclose(one.history_["loss"], expected)
    assert one.history_["t"].tolist() == list(range(100, 1001, 100))
    for part in np.split(np.arange(1050), [1, 99, 101, 650]):
        two.learn(X[part], y[part])
        two = pickle.loads(pickle.dumps(two))
    np.testing.assert_array_equal(two.history_["loss"], one.history_["loss"])


def test_the_radius_is_that_of_the_ball_that_theta_is_on():
    X, y = ratings(500)
    model = local().fit(X, y)
    learner = model.objective_
    ball = learner.held_loss().ball(learner.theta)
    assert model.radius_ == pytest.approx(ball.norm(learner.theta))
    assert model.radius_ == pytest.approx(ball.radius)


def test_a_given_radius_is_for_frank_wolfe_steps():
    X, y = ratings(500)
    with pytest.raises(ValueError, match="leave radius= out, or pass corrective=None"):
        local(radius=5.0).fit(X, y)
    model = ofw.FrankWolfeMatrixCompletion(5.0, corrective=None, offsets=None, weighting=None)
    model.fit(X, y)
    assert np.linalg.norm(model.objective_.theta.dense(), "nuc") <= 5.0 * (1.0 + 1e-6)
    assert model.radius_ == 5.0


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_what_learn_returns_is_what_predict_would_have_said(loss, rng):
    X = np.column_stack((rng.integers(0, 12, 150), rng.integers(0, 9, 150)))
    y = rng.standard_normal(150) + 3.0 if loss == "square" else rng.choice([-1.0, 1.0], 150)
    options = {"corrective": "factors", "loss": loss, "shape": (12, 9)}
    one, two = (ofw.FrankWolfeMatrixCompletion(**options) for _ in range(2))
    found = one.learn(X, y)
    two.partial_fit(X[:1], y[:1])
    for k in range(1, 150):
        said = two.predict(X[k : k + 1], unknown="fallback")
        np.testing.assert_allclose(found[k], said[0], rtol=1e-5, atol=1e-5)
        two.partial_fit(X[k : k + 1], y[k : k + 1])


def noise(rng, n=300, shape=(12, 9)):
    return np.column_stack([rng.integers(0, m, n) for m in shape]), rng.standard_normal(n)


def test_new_rows_and_columns_get_the_fallback(rng):
    X, y = noise(rng)
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X, y)
    for new in ([[40, 3]], [[2, 30]], [[50, 50]]):
        said = model.predict(new, unknown="fallback")
        np.testing.assert_allclose(model.learn(new, [1.0]), said, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 6])
def test_counts_with_rare_large_values_stay_finite(seed):
    rng = np.random.default_rng(seed)
    X, _ = noise(rng, 3000, (100, 60))
    y = np.where(rng.random(3000) < 0.03, rng.geometric(1 / 50, 3000), 0).astype(float)
    model = ofw.FrankWolfeMatrixCompletion(loss="poisson")
    predicted = model.learn(X, y)
    assert np.isfinite(predicted).all()
    assert predicted.max() < 10 * y.max()
    assert np.isfinite(model.predict(X)).all()


def test_observations_without_weight_are_left_out_and_have_no_prediction(rng):
    X, y = noise(rng)
    w = rng.choice([0.0, 1.0, 2.0], 300)
    one, two = ofw.FrankWolfeMatrixCompletion(), ofw.FrankWolfeMatrixCompletion()
    found, expected = one.learn(X, y, w), two.learn(X[w > 0], y[w > 0], w[w > 0])
    np.testing.assert_array_equal(found[w > 0], expected)
    assert np.isnan(found[w == 0]).all()


def test_a_weighting_of_the_norm_is_refused(rng):
    X, y = noise(rng)
    model = ofw.FrankWolfeMatrixCompletion(corrective="factors", weighting="smoothed")
    with pytest.raises(ValueError, match="leave weighting= out"):
        model.partial_fit(X, y)


def test_moods_are_no_offsets(rng, tmp_path):
    X, y = noise(rng)
    model = ofw.FrankWolfeMatrixCompletion(offsets=None)
    model.learn(X, y)
    ofw.save(model, tmp_path / "model.ofw")
    assert model.has_offsets_ is ofw.load(tmp_path / "model.ofw").has_offsets_ is False


def test_the_losses_in_the_history_are_those_of_the_predictions(rng):
    X, y = noise(rng)
    model = ofw.FrankWolfeMatrixCompletion(shape=(12, 9))
    predicted = model.learn(X, 5.0 * y)
    losses = (0.5 * (predicted - 5.0 * y) ** 2).reshape(-1, 100).mean(axis=1)
    np.testing.assert_allclose(model.history_["loss"], losses, rtol=1e-9)
