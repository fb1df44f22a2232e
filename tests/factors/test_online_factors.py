"""Ratings: what the chains solve, against plain numpy; order, fading, forgetting, theta and F_t."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import losses
from onlinefw._threads import use_threads
from onlinefw.factors import chains as chains_module
from onlinefw.factors.chains import LONG, Chains
from onlinefw.factors.held_loss import balanced
from onlinefw.factors.lists import EntryLists
from onlinefw.losses import loss_code

from ..pairs import every_pair
from ..past.ray.problems import Pseudohuber
from .states import arrays, same_state

SHAPE = (9, 13)
LOSSES = {
    "square": (losses.Square(), lambda z: z),
    "correntropy": (losses.Correntropy(2.0), lambda z: z),
    "logistic": (losses.Logistic(), np.sign),
    "sigmoid": (losses.Sigmoid(2.0), np.sign),
    "bernoulli": (losses.Bernoulli(), lambda z: (z > 0.0).astype(float)),
    "poisson": (losses.Poisson(), lambda z: np.round(np.exp(np.clip(z, -2.0, 2.0)))),
    "exponential": (losses.Exponential(), lambda z: np.exp(np.clip(z, -2.0, 2.0))),
}


def ratings(rng, n, shape=SHAPE, values=lambda z: z):
    """A low-rank matrix with noise, some entries more than once; all of it is known."""
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    X = np.column_stack([rng.integers(m, size=n) for m in shape])
    X[0] = np.array(shape) - 1
    y = truth[tuple(X.T)] + 0.3 * rng.standard_normal(n)
    return X, values(y), rng.choice([1.0, 1.0, 0.5, 3.0], n)


def learner(shape=SHAPE, **options):
    return ofw.OnlineFactors(shape, **{"rank": 3, "chains": 2, "dtype": float, **options})


# What is solved -----------------------------------------------------------------------------------


def chains_that_learned(rng, name="square", biased=True, n=300):
    loss, values = LOSSES[name]
    chains = Chains(EntryLists(SHAPE, float), rank=3, count=2, loss=loss_code(loss), biased=biased)
    X, y, w = ratings(rng, n, values=values)
    chains.learn(*map(np.ascontiguousarray, X.T), y, w)
    return chains, loss, (X, y, w)


def posterior(chains, chain, j, X, y, w):
    """The mean and the precision of column j, given samples of rows, and what is expected of it."""
    its, d = X[:, 1] == j, chains.rank + 1
    rows, y, w = X[its, 0], y[its], w[its]
    x = chains.rows.samples[rows, chain, :d].copy()
    bias, x[:, -1] = x[:, -1].copy(), float(chains.biased)
    n, width = w.sum(), chains.width
    prior = chains.columns.priors[chain].copy()
    B = prior[: width**2].reshape(width, width)[: d + 2, :d]
    Lambda = prior[width**2 : 2 * width**2].reshape(width, width)[:d, :d]
    rated = np.append(w @ x[:, :-1], w @ bias)
    f = np.concatenate(([1.0], 0.375 * rated / np.sqrt(n + 8.0), [0.2 * np.log1p(n)]))
    expected = np.clip(f @ B, -2.0, 2.0)
    t = (y - chains.centre) / chains.unit - bias
    p = chains.noise[chain, 2]
    A = Lambda + p * x.T @ (w[:, None] * x)
    target = Lambda @ expected + p * x.T @ (w * t)
    if not chains.biased:
        A[-1], A[:, -1], A[-1, -1], target[-1] = 0.0, 0.0, 1.0, 0.0
    return np.linalg.solve(A, target), A, expected, Lambda


@pytest.mark.parametrize("biased", [True, False])
def test_columns_are_solved_against_the_samples_of_rows(rng, biased):
    chains, _, (X, _, w) = chains_that_learned(rng, biased=biased)
    lists = chains.lists.by_column  # their values have no moods in them
    y = np.empty(len(X))
    for j in range(13):
        _, rows, values, _ = lists.some(np.array([j]))
        its = np.flatnonzero(X[:, 1] == j)
        assert np.array_equal(X[its, 0], rows)
        y[its] = values
    expected = [[posterior(chains, c, j, X, y, w)[:2] for j in range(13)] for c in range(2)]
    chains.solve(np.arange(0), np.arange(13))
    noise = []
    for c, j in np.ndindex(2, 13):
        mean, A = expected[c][j]
        means, samples = chains.columns.means[j, c, :4], chains.columns.samples[j, c, :4]
        np.testing.assert_allclose(means, mean, atol=1e-9)
        noise.append(np.linalg.cholesky(A).T @ (samples - means))
    noise = np.array(noise)[:, : 4 if biased else 3]
    assert abs(noise.mean()) < 0.3
    assert 0.7 < noise.std() < 1.3
    assert np.unique(noise.round(12)).size == noise.size


@pytest.mark.parametrize("name", LOSSES)
def test_no_solution_raises_losses_and_penalties(rng, name):
    chains, loss, (X, y, w) = chains_that_learned(rng, name)
    y = np.empty(len(X))
    for i in range(9):
        y[X[:, 0] == i] = chains.lists.by_row.some(np.array([i]))[2]

    def cost(c, j, at):
        its = X[:, 1] == j
        x = chains.rows.samples[X[its, 0], c, :4].copy()
        bias, x[:, -1] = x[:, -1].copy(), 1.0
        away = at - expected[c, j][0]
        z = (x @ at + bias) * chains.unit + chains.centre
        p = precision[c] / chains.unit**2 if name == "square" else 1.0
        return p * (w[its] @ loss.value(z, y[its])) + 0.5 * away @ expected[c, j][1] @ away

    precision = chains.noise[:, 2].copy()
    expected = {(c, j): posterior(chains, c, j, X, y, w)[2:] for c, j in np.ndindex(2, 13)}
    before = {at: cost(*at, chains.columns.means[at[1], at[0], :4].copy()) for at in expected}
    chains.solve(np.arange(0), np.arange(13))
    for (c, j), was in before.items():
        assert cost(c, j, chains.columns.means[j, c, :4]) <= was + 1e-9 * (1.0 + abs(was))


def test_a_long_row_is_as_good_as_a_short_one(rng):
    """Of more than LONG ratings a piece is read at each; after as many again it is up to date."""
    n, columns = 3 * LONG, 40
    X = np.column_stack((np.zeros(n, int), rng.integers(columns, size=n)))
    X[::9, 0] = rng.integers(1, 30, size=len(X[::9]))
    X[0] = 29, columns - 1
    right = rng.standard_normal((30, columns))
    y = right[tuple(X.T)] + 0.1 * rng.standard_normal(n)
    one = learner((30, columns), chains=3)
    one.learn(X, y)
    assert one.model.rows.used[0] == 1
    found = one.predict(np.zeros(columns, int), np.arange(columns))
    one.model.solve(np.array([0]), np.arange(0))
    whole = one.predict(np.zeros(columns, int), np.arange(columns))
    assert np.sqrt(np.mean((found - whole) ** 2)) < 0.1 * right[0].std()


def test_predictions_are_the_mean_of_the_chains_with_biases_and_moods(rng):
    X, y, w = ratings(rng, 400)
    one = learner()
    one.learn(X, y, w)
    (rows, columns), model = one.model.offsets(), one.model
    z = one.theta.entries(*X.T) + rows[X[:, 0]] + columns[X[:, 1]] + model.moods()[X[:, 0]]
    np.testing.assert_allclose(one.predict(*X.T), z, atol=1e-9)


def test_what_is_known_of_all_rows_comes_from_the_sums_of_samples(rng):
    chains, _, _ = chains_that_learned(rng)
    side, d, width = chains.rows, chains.rank + 1, chains.width
    parts = [
        side.priors[1, k * width**2 : (k + 1) * width**2].reshape(width, width) for k in range(5)
    ]
    number = side.priors[1, 5 * width**2]
    FF, FS, SS = parts[2][: d + 2, : d + 2], parts[3][: d + 2, :d], parts[4][:d, :d]
    FF = np.triu(FF) + np.triu(FF, 1).T
    B = np.linalg.solve(FF + np.eye(d + 2), FS)
    # The scatter about B'f, with 50 rows of prior knowledge.
    R = SS - FS.T @ B - B.T @ FS + B.T @ FF @ B
    R += np.diag([50 * 0.1] * (d - 1) + [50 * 0.2]) + 1e-3 * np.eye(d)
    squares, n, _ = chains.noise[1]
    chains._renew(side, True)
    parts = side.priors[1, : 2 * width**2].reshape(2, width, width)
    np.testing.assert_allclose(parts[0, : d + 2, :d], B, atol=1e-9)
    np.testing.assert_allclose(parts[1, :d, :d], np.linalg.inv(R / (number + 50)), rtol=1e-6)
    assert chains.noise[1, 2] == pytest.approx((n + 20) / (squares + 20))


@pytest.mark.parametrize("name", LOSSES)
def test_a_ridge_sweep_is_that_of_dense_matrices(rng, name):
    loss, values = LOSSES[name]
    X, y, w = ratings(rng, 300, values=values)
    one = learner(loss=loss)
    one.learn(X, y, w)
    held = one.held_loss()
    theta = held.corrected(one.theta, 1)
    left, right = theta.left * theta.weights, theta.right
    rows, columns = (x * one.model.unit for x in held.penalties())
    # The columns were solved last, from where the balanced factors of the theta before were.
    start = balanced(one.theta, np.sqrt(rows), np.sqrt(columns))[1]
    for j in range(SHAPE[1]):
        its = held.cols == j
        F, weight, offset = left[held.rows[its]], held.weights[its], held.offsets[1][j]
        offset = offset + held.offsets[0][held.rows[its]]
        z, value = F @ start[j], held.values[its]
        bend = np.ones(its.sum())
        if name != "square":
            bend = np.clip(curvature(loss, offset + z, value), 1e-6, 1e6)
        t = z - loss.derivative(offset + z, value) / bend
        A = F.T @ ((weight * bend)[:, None] * F) + columns[j] * np.eye(F.shape[1])
        np.testing.assert_allclose(
            right[j], np.linalg.solve(A, F.T @ (weight * bend * t)), rtol=1e-6, atol=1e-8
        )


def curvature(loss, z, y):
    """That of the parabola that touches a loss: its bend, where it is convex."""
    if isinstance(loss, losses.Sigmoid):
        p = 1.0 / (1.0 + np.exp(loss.sharpness * y * z))
        return loss.sharpness**2 * p * (1 - p) * np.maximum(np.abs(1 - 2 * p), 0.25)
    return loss.model_curvature(z, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_large_batches_are_added_as_small_ones_are(rng, weighted, monkeypatch):
    X, y, w = ratings(rng, 400)
    rows, cols = map(np.ascontiguousarray, X.T)
    w = w if weighted else None
    found = []
    for many, at_once in ((10**6, 10**6), (50, 32)):
        monkeypatch.setattr(chains_module, "MANY", many)
        monkeypatch.setattr(chains_module, "AT_ONCE", at_once)
        chains = Chains(EntryLists(SHAPE, float), rank=3, count=2)
        chains.learn(rows[:100], cols[:100], y[:100], None if w is None else w[:100])
        last = rows[100:], cols[100:], y[100:], None if w is None else w[100:]
        found.append((chains.learn(*last, solving=False), chains.lists.state_dict()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for side in ("rows", "columns"):
        for part in ("length", "other", "value", "weight"):
            np.testing.assert_array_equal(found[0][1][side][part], found[1][1][side][part])


@pytest.mark.parametrize("clip", [True, False])
def test_each_is_predicted_before_it_is_learned(rng, clip):
    X, y, w = ratings(rng, 200)
    one, other = learner(clip=clip), learner(clip=clip)
    predicted = one.learn(X, y, w)
    for k in range(200):
        z = other.predict(*X[k : k + 1].T)
        if clip and k:
            z = np.clip(z, y[:k].min(), y[:k].max())
        np.testing.assert_allclose(z, predicted[k], rtol=1e-9, atol=1e-12)
        other.learn(X[k : k + 1], y[k : k + 1], w[k : k + 1])


def test_units_make_next_to_no_difference(rng):
    """Until there are two different values nobody knows the units."""
    X, y, w = ratings(rng, 1000)
    predicted = [learner().learn(X, a + b * y, w) for a, b in ((0.0, 1.0), (50.0, 40.0))]
    apart = (predicted[1] - 50.0) / 40.0 - predicted[0]
    assert np.mean(apart[500:] ** 2) < 1e-4 * y.var()


def test_moods_help_where_errors_of_a_row_resemble_each_other(rng):
    """In sessions of 20 ratings a row has another mood; in random order nothing is found."""
    rows = np.repeat(rng.integers(40, size=200), 20)
    X = np.column_stack((rows, rng.integers(30, size=4000)))
    moods = np.repeat(rng.standard_normal(200), 20)
    y = rng.standard_normal(30)[X[:, 1]] + moods + 0.3 * rng.standard_normal(4000)
    errors, gains = [], []
    for order in (np.arange(4000), rng.permutation(4000)):
        one = learner((40, 30), rank=4)
        errors.append(np.mean((one.learn(X[order], y[order]) - y[order])[2000:] ** 2))
        gains.append(one.model.mood_fitted()[2])
    assert errors[0] < 0.7 * errors[1]
    assert gains[0] > 0.1
    assert gains[1] < 0.02


# Order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "half_life", "dtype"),
    every_pair(list(LOSSES), [None, 60.0], [np.float32, np.float64]),
)
def test_pieces_and_a_break_make_no_difference(rng, name, half_life, dtype):
    loss, values = LOSSES[name]
    X, y, w = ratings(rng, 900, (30, 40), values)
    whole, cut = (
        learner((1, 1), loss=loss, half_life=half_life, dtype=dtype, random_state=7) for _ in "12"
    )
    at_once, parts = whole.learn(X, y, w), []
    for a, b, again in ((0, 1, None), (1, 90, "state"), (90, 700, "pickle"), (700, 900, None)):
        parts.append(cut.learn(X[a:b], y[a:b], w[a:b]))
        if again == "state":
            cut = ofw.OnlineFactors.from_state(cut.state_dict(), loss=loss)
        elif again == "pickle":
            cut = pickle.loads(pickle.dumps(cut))
    np.testing.assert_array_equal(at_once, np.concatenate(parts))
    for one in (whole, cut):
        one.observe(X[:300], y[:300], w[:300])
        one.refine()
        one.forget(3)
    assert same_state(whole.state_dict(), cut.state_dict())
    assert whole.certificate() == cut.certificate()


def test_long_lists_do_not_depend_on_the_boundaries_of_calls(rng):
    X, y, _ = ratings(rng, 2 * LONG + 500, (4, 50))
    X[: LONG + 300, 0] = 0
    whole, cut = learner((4, 50)), learner((4, 50))
    whole.learn(X, y)
    for part in np.split(np.arange(len(X)), [500, LONG, LONG + 7, LONG + 1500]):
        cut.learn(X[part], y[part])
        cut = ofw.OnlineFactors.from_state(cut.state_dict())
    assert same_state(whole.state_dict(), cut.state_dict())


def test_another_seed_gives_other_samples(rng):
    X, y, _ = ratings(rng, 300)
    found = [learner(random_state=s) for s in (None, None, 0, 1)]
    found = [one.learn(X, y) for one in found]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[3])


def test_threads_make_no_difference(rng):
    X, y, w = ratings(rng, 20_000, (300, 200))
    states = []
    for threads in (1, 3):
        before = use_threads(threads)
        try:
            one = learner((300, 200), dtype=np.float32)
            for part in np.array_split(np.arange(20_000), 3):
                one.observe(X[part], y[part], w[part])
            one.refine()
            one.correct()
            states.append((one.state_dict(), one.theta.dense()))
        finally:
            use_threads(before)
    assert same_state(states[0][0], states[1][0])
    np.testing.assert_array_equal(states[0][1], states[1][1])


def test_a_batch_is_predicted_with_what_was_known_before_it(rng):
    X, y, w = ratings(rng, 300)
    one, two = learner(biases=False, clip=False), learner(biases=False, clip=False)
    for each in (one, two):
        each.learn(X[:200], y[:200], w[:200])
    before = one.predict(*X[200:].T)
    loss = one.observe(X[200:], y[200:], w[200:]).loss
    expected = w[200:] @ (0.5 * (before - y[200:]) ** 2) / w[200:].sum()
    assert loss == pytest.approx(expected, rel=0.2)  # moods change within a batch
    assert one.t == 1


# Fading and leaving -------------------------------------------------------------------------------


def test_after_a_change_old_ratings_are_forgotten(rng):
    X, y, _ = ratings(rng, 6000, (30, 20))
    changed = np.where(np.arange(6000) < 3000, y, -y)
    errors = []
    for half_life in (None, 300.0):
        predicted = learner((30, 20), half_life=half_life).learn(X, changed)
        errors.append(np.mean((predicted - changed)[4500:] ** 2))
    assert errors[1] < 0.6 * errors[0]


def test_lists_are_as_long_as_the_half_life_lets_them(rng):
    X, y, _ = ratings(rng, 20_000, (30, 20))
    one = learner((30, 20), half_life=100.0)
    one.learn(X, y)
    assert len(one.model.lists) < 2500
    one.go_on(None)
    had = len(one.model.lists)
    one.learn(X[:3000], y[:3000])
    assert len(one.model.lists) == had + 3000


@pytest.mark.parametrize("half_life", [None, 500.0])
def test_nothing_of_a_row_is_left(rng, half_life):
    X, y, w = ratings(rng, 900, (12, 13))
    y[X[:, 0] == 3] = 77.125
    one = learner((12, 13), half_life=half_life)
    one.learn(X, y, w)
    columns = one.model.columns.means.copy()
    one.forget(3)
    model = one.model
    assert model.lists.by_row.length[3] == 0
    assert not any((x == 77.125).any() for x in arrays(one.state_dict()))
    kept = X[:, 0] != 3
    if half_life is None:
        assert model.moments[0] == pytest.approx(w[kept].sum())
    assert not np.array_equal(model.columns.means, columns)
    # It is as one that was never seen.
    others = np.full(13, -1), np.arange(13)
    np.testing.assert_array_equal(one.predict(np.full(13, 3), others[1]), one.predict(*others))
    one.learn([[3, 2]], [1.0])
    assert model.lists.by_row.length[3] == 1


# Theta and F_t ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["square", "logistic", "poisson"])
@pytest.mark.parametrize("half_life", [None, 50.0])
def test_value_ball_and_certificate_are_those_of_dense_matrices(rng, name, half_life):
    loss, values = LOSSES[name]
    X, y, w = ratings(rng, 300, values=values)
    one = learner(loss=loss, half_life=half_life)
    one.learn(X, y, w)
    ages = np.arange(300)[::-1]
    y = held_values(one, X)
    w = w * (1.0 if half_life is None else 2.0 ** (-ages / half_life))
    rows, columns = one.model.offsets()
    theta = one.theta.dense()
    z = theta + rows[:, None] + columns
    at = tuple(X.T)
    assert one.value() == pytest.approx(w @ loss.value(z[at], y) / w.sum(), rel=1e-6)
    gradient = np.zeros(SHAPE)
    np.add.at(gradient, at, w * loss.derivative(z[at], y) / w.sum())
    a, b = (8.0 + 0.05 * np.bincount(X[:, k], w, SHAPE[k]) for k in (0, 1))
    norm = np.linalg.norm(np.sqrt(a)[:, None] * theta * np.sqrt(b), "nuc")
    scaled = gradient / np.sqrt(a)[:, None] / np.sqrt(b)
    gap = np.sum(gradient * theta) + norm * np.linalg.norm(scaled, 2)
    assert gap * (1.0 - 1e-6) <= one.certificate() <= gap * (1.0 + 1e-4)


def held_values(one, X):
    """The values in lists, from which moods are taken, in the order of X."""
    y, model = np.empty(len(X)), one.model
    for i in range(model.shape[0]):
        y[X[:, 0] == i] = model.lists.by_row.some(np.array([i]))[2]
    return y


def test_the_certificate_bounds_the_distance_to_the_best_matrix(rng):
    cvxpy = pytest.importorskip("cvxpy")
    X, y, _ = ratings(rng, 200)
    one = learner()
    one.learn(X, y)
    one.correct()
    y, (rows, columns) = held_values(one, X), one.model.offsets()
    ball = one.held_loss().ball(one.theta)
    a, b = ball.scales
    theta = cvxpy.Variable(SHAPE)
    entries = cvxpy.hstack([theta[i, j] for i, j in X.tolist()])
    wanted = y - rows[X[:, 0]] - columns[X[:, 1]]
    norm = cvxpy.normNuc(np.diag(1.0 / a) @ theta @ np.diag(1.0 / b))
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(entries - wanted) / (2 * len(X))), [norm <= ball.radius]
    )
    excess = one.value() - problem.solve()
    assert -1e-5 <= excess <= one.certificate() + 1e-5


def test_correcting_finds_a_theta_of_which_the_certificate_says_something(rng):
    X, y, _ = ratings(rng, 4000, (60, 40))
    one = learner((60, 40), rank=8)
    one.learn(X, y)
    before = one.predict(*X.T), one.state_dict()
    one.correct()
    assert one.certificate() <= 0.3 * one.value()
    np.testing.assert_array_equal(one.predict(*X.T), before[0])
    assert same_state(one.state_dict(), before[1])
    one.learn(X[:1], y[:1])  # theta is that of the chains again
    left, weights, right = one.model.factors()
    np.testing.assert_array_equal(one.theta.dense(), (left * weights) @ right.T)


def test_without_its_past_it_predicts_the_same(rng):
    X, y, w = ratings(rng, 300)
    one = learner()
    one.learn(X, y, w)
    other = ofw.OnlineFactors.from_state(one.what_predicts())
    np.testing.assert_array_equal(other.predict(*X.T), one.predict(*X.T))
    np.testing.assert_array_equal(other.theta.dense(), one.theta.dense())
    outside = np.array([-1, 3, -1]), np.array([2, -1, -1])
    np.testing.assert_array_equal(other.predict(*outside), one.predict(*outside))


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": Pseudohuber()}, "needs a loss of onlinefw.losses"),
        ({"chains": 0}, "chains must be"),
        ({"rank": "much"}, "rank of OnlineFactors must be"),
        ({"half_life": -1.0}, "half_life"),
        ({"random_state": -1}, "random_state"),
        ({"dtype": int}, "float32"),
        ({"max_rows": 0}, "max_rows"),
    ],
)
def test_wrong_parameters_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        learner(**options)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[0, -1]], [1.0], "negative"),
        ([[0, 2**33]], [1.0], "2\\*\\*32|at most"),
        ([[0, 1]], [np.nan], "nan"),
        ([[0, 1]], [1e20], "rescale"),
        ([[0, 1, 2]], [1.0], "a row and a column"),
        ([[0, 1]], [1.0, 2.0], "1|2"),
    ],
)
def test_bad_entries_are_refused_before_anything_changes(rng, X, y, words):
    one = learner()
    one.learn(*ratings(rng, 30))
    before = one.state_dict()
    for act in (one.learn, one.observe):
        with pytest.raises(ValueError, match=words):
            act(X, y)
    assert same_state(one.state_dict(), before)


@pytest.mark.parametrize("clicks", [False, True])
@pytest.mark.parametrize(
    ("rows", "cols"), [([9], [0]), ([0], [13]), ([-2], [0]), ([0, 2**40], [0, 1])]
)
def test_entries_beyond_the_matrix_are_not_predicted(rng, clicks, rows, cols):
    one = learner(unobserved=0.1) if clicks else learner()
    X, y, _ = ratings(rng, 50)
    one.learn(X, np.ones(50) if clicks else y)
    with pytest.raises(IndexError, match="was asked for"):
        one.predict(rows, cols)
    with pytest.raises(ValueError, match="1 rows and 2 columns"):
        one.predict([0], [0, 1])
    if clicks:
        with pytest.raises(IndexError, match="was asked for"):
            one.predict([-1], [0])
    else:
        assert np.isfinite(one.predict([-1, 0], [0, -1])).all()


def test_forgetting_a_row_leaves_the_unit_and_the_range_of_others(rng):
    n, rows = 4000, rng.integers(9, size=4000)
    slow = np.zeros(9)
    y = np.empty(n)
    for k, row in enumerate(rows):  # moods explain most of these values
        slow[row] = y[k] = 0.95 * slow[row] + 0.3 * rng.standard_normal()
    y[rows == 0] = 0.0
    one = learner()
    one.learn(np.column_stack((rows, rng.integers(13, size=n))), y)
    unit, ends = one.model.unit, one.model.range
    one.forget(0)
    assert one.model.unit == pytest.approx(unit, rel=0.1)
    assert one.model.range == ends
    one.forget(0)  # who has nothing can be forgotten again
    for row in range(1, 9):
        one.forget(row)
    assert one.predict([0], [0])[0] == 0.0


def test_light_entries_that_leave_do_not_change_the_unit(rng):
    X, y, _ = ratings(rng, 3000)
    one = learner(half_life=60.0)
    one.learn(X, 2.0 + y)
    assert one.model.unit == pytest.approx(y.std(), rel=0.3)


def test_arrays_that_are_not_whole_are_learned_like_others(rng):
    X, y, w = ratings(rng, 300)
    table = np.column_stack((X, y, w))
    one, two = learner(), learner()
    one.learn(X, y, w)
    two.learn(table[:, :2].astype(int), table[:, 2], table[:, 3])
    same_state(one.state_dict(), two.state_dict())
    model = ofw.FrankWolfeMatrixCompletion()
    model.partial_fit(X[:100], table[:100, 2])
    model.partial_fit(X[100:], table[100:, 2])
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("half_life", [None, 50.0])
def test_observations_without_weight_teach_nothing(rng, half_life):
    X, y, w = ratings(rng, 200)
    w[[0, 7, 50]] = 0.0
    one, two = learner(half_life=half_life), learner(half_life=half_life)
    predicted = one.learn(X, y, w)
    expected = two.learn(X[w > 0], y[w > 0], w[w > 0])
    np.testing.assert_array_equal(predicted[w > 0], expected)
    np.testing.assert_array_equal(one.model.rows.means[:9], two.model.rows.means[:9])


def test_rows_and_columns_of_a_state_have_the_same_entries():
    for unobserved in (0.0, 0.1):
        one = learner(unobserved=unobserved) if unobserved else learner()
        one.learn([[0, 0], [1, 1]], [1.0, 1.0])
        state = one.state_dict()
        its = state["model"]["lists"]["columns"]
        its["other"] = its["other"][::-1].copy()
        with pytest.raises(ValueError, match="do not have the same entries"):
            ofw.OnlineFactors.from_state(state)
    state = one.state_dict()
    state["model"]["turns"] = np.array([0, -1, -1, -1, -1])
    with pytest.raises(ValueError, match="turns"):
        ofw.OnlineFactors.from_state(state)


@pytest.mark.parametrize("unobserved", [0.0, 0.1])
def test_what_only_predicts_refuses_to_learn(rng, unobserved):
    X, y, _ = ratings(rng, 100)
    one = learner(unobserved=unobserved) if unobserved else learner()
    one.learn(X, np.ones(100) if unobserved else y)
    alone = ofw.OnlineFactors.from_state(one.what_predicts())
    np.testing.assert_array_equal(alone.predict(*X.T), one.predict(*X.T))
    for act in (lambda: alone.learn(X, y), lambda: alone.forget(0), alone.refine):
        with pytest.raises(ValueError, match="no past to learn with"):
            act()


def test_limits_are_those_of_a_state():
    for options, words in (
        ({"chains": 257}, "chains must be at most 256"),
        ({"random_state": 2**63}, "random_state must be at most"),
    ):
        with pytest.raises(ValueError, match=words):
            ofw.OnlineFactors(**options)
    with pytest.raises(ValueError, match="no half-life to go on from"):
        ofw.OnlineFactors().go_on(5.0)
