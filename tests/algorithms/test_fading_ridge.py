"""Local corrections of ratings that fade, and of a matrix that a row has left."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.algorithms.local_ridge import BIAS_RIDGE
from onlinefw.kernels import local_models
from onlinefw.sets import TraceNormBall

SHAPE = (25, 18)


def stream(n, seed=0, change=None, weighted=False):
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((SHAPE[0], 2))
    truths = [left @ rng.standard_normal((2, SHAPE[1])) for _ in range(2)]
    X = np.column_stack([rng.integers(m, size=n) for m in SHAPE])
    before, after = (truth[X[:, 0], X[:, 1]] for truth in truths)
    late = np.arange(n) >= (n if change is None else change)
    y = 3.0 + np.where(late, after, before) + 0.1 * rng.standard_normal(n)
    return X, y, rng.uniform(0.5, 2.0, n) if weighted else None


def learner(half_life, ridge="auto", *, dtype=float, loss=None, shape=SHAPE, **more):
    loss = ofw.losses.Square() if loss is None else loss
    objective = ofw.objectives.ObservedEntries(
        shape, loss, dtype=dtype, growing=True, half_life=half_life
    )
    corrective = ofw.LocalRidge(3, ridge, **more)
    return ofw.OnlineFrankWolfe(objective, TraceNormBall(1e100), corrective=corrective)


def weighted_ridge(one, X, y, c, j, penalty):
    """Factors and bias of a column, solved with explicit weights, 1 for the newest."""
    models = one.corrective.models
    of = X[:, 1] == j
    rows, k = X[of, 0], models.models.rank
    features = np.column_stack((models.models.rows.factors[rows, :k], np.ones(of.sum())))
    target = (y[of] - models.models.rows.offsets[rows, 0]) / models.sigma
    a, b = penalty
    diagonal = np.append(np.full(k, a + b * c[of].sum()), BIAS_RIDGE)
    normal = (features * c[of, None]).T @ features + np.diag(diagonal)
    return np.linalg.solve(normal, features.T @ (c[of] * target))


@pytest.mark.parametrize("half_life", [40.0, 7.0, 1000.0])
@pytest.mark.parametrize("long", [False, True])
def test_a_solution_is_that_of_a_weighted_ridge_regression(half_life, long, monkeypatch):
    X, y, w = stream(700, weighted=True)
    one = learner(half_life, (2.0, 0.1))
    one.learn(X, y, w)
    c = 2.0 ** (-np.arange(700)[::-1] / half_life) * w
    models = one.corrective.models
    k = models.models.rank
    for j in np.unique(X[-80:, 1]):
        models.solve(np.empty(0, int), np.array([j]), anew=long)
        found = np.append(
            models.models.columns.factors[j, :k],
            models.models.columns.offsets[j, 0] / models.sigma,
        )
        expected = weighted_ridge(one, X, y, c, j, (2.0, 0.1))
        np.testing.assert_allclose(
            found, expected, rtol=2e-2 if half_life < 40 else 1e-9, atol=1e-3
        )
    assert models.mean == pytest.approx(c @ y / c.sum(), rel=1e-3)


@pytest.mark.parametrize("loss", [None, ofw.losses.Poisson()], ids=str)
@pytest.mark.parametrize(
    ("half_life", "dtype", "biases"),
    [(1.0, float, True), (6.5, np.float32, True), (30.0, np.float32, False), (700.0, float, True)],
)
def test_learning_in_pieces_is_the_same_to_the_last_bit(loss, half_life, dtype, biases):
    X, y, w = stream(3000, weighted=True)
    y = y if loss is None else np.round(np.abs(y))
    whole, pieces = (learner(half_life, dtype=dtype, loss=loss, biases=biases) for _ in range(2))
    predicted = whole.learn(X, y, w)
    cuts = np.sort(np.random.default_rng(1).integers(3000, size=60))
    parts = [np.split(x, cuts) for x in (X, y, w)]
    found = [pieces.learn(*part) for part in zip(*parts, strict=True) if len(part[1])]
    np.testing.assert_array_equal(np.concatenate(found), predicted)
    np.testing.assert_array_equal(pieces.theta.dense(), whole.theta.dense())
    assert pieces.objective.value() == whole.objective.value()


def test_it_goes_on_from_a_state_and_from_a_pickle():
    X, y, _ = stream(3000)
    whole, half = learner(30.0), learner(30.0)
    predicted = whole.learn(X, y)[1500:]
    half.learn(X[:1500], y[:1500])
    state = half.state_dict()
    resumed, pickled = ofw.OnlineFrankWolfe.from_state(state), pickle.loads(pickle.dumps(half))
    for one in (half, resumed, pickled):
        np.testing.assert_array_equal(one.learn(X[1500:], y[1500:]), predicted)


def test_states_without_fading_still_load():
    X, y, _ = stream(500)
    one = learner(None)
    one.learn(X[:400], y[:400])
    state = one.state_dict()
    models = state["corrective"]["state"]["models"]
    models["moments"] = models["moments"][:5]
    del state["objective"]["clock"]
    old = ofw.OnlineFrankWolfe.from_state(state)
    np.testing.assert_array_equal(old.learn(X[400:], y[400:]), one.learn(X[400:], y[400:]))


def test_lists_are_as_long_as_the_half_life_lets_them():
    X, y, _ = stream(20_000)
    one = learner(50.0, dtype=np.float32)
    sizes = []
    for k in range(0, 20_000, 1000):
        one.learn(X[k : k + 1000], y[k : k + 1000])
        sizes.append(one.objective._past.lists.nbytes)
    assert one.objective.n_entries < 2 * 1024
    assert max(sizes[5:]) < 1.5 * sizes[3]


def test_after_a_change_old_ratings_are_forgotten():
    X, y, _ = stream(12_000, change=6000)
    errors = {}
    for half_life in (None, 1000.0):
        found = learner(half_life, dtype=np.float32).learn(X, y)
        errors[half_life] = np.mean((found - y)[-2400:] ** 2)
    assert errors[1000.0] < 0.25 * errors[None]


def test_a_batch_is_solved_with_the_weights_at_its_end():
    X, y, _ = stream(600)
    one = learner(80.0, (2.0, 0.1))
    for k in range(0, 600, 50):
        one.observe(X[k : k + 50], y[k : k + 50])
    models = one.corrective.models
    c = 2.0 ** (-np.arange(600)[::-1] / 80.0)
    j = X[-1, 1]
    found = models.models.columns.factors[j, : models.models.rank]
    np.testing.assert_allclose(found, weighted_ridge(one, X, y, c, j, (2.0, 0.1))[:-1], rtol=1e-9)
    ball = one.corrective.ball(one.objective)
    assert one.objective.certificate(ball) < 0.5 * one.objective.value()


# Forgetting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("half_life", [None, 300.0])
def test_nothing_of_a_row_is_left(half_life, monkeypatch):
    monkeypatch.setattr(local_models, "LONG", 1024)
    X, y, _ = stream(4000)
    y[X[:, 0] == 7] = 777.25
    one = learner(half_life, dtype=np.float32)
    one.learn(X, y)
    one.forget(7)
    models, lists = one.corrective.models, one.objective._past.lists
    for array in (
        models.models.rows.factors,
        models.models.rows.offsets,
        models.models.rows.memory,
    ):
        assert not array[7].any()
    assert lists.columns_of(7).size == 0
    assert not any((x == 777.25).any() for x in arrays(one.state_dict()))
    assert not any(
        (x == 7).any() for x in [one.state_dict()["objective"]["past"]["lists"]["columns"]["other"]]
    )
    others = X[:, 0] != 7
    assert models.moments[local_models.LARGEST] == y[others].astype(np.float32).max()
    c = 1.0 if half_life is None else 2.0 ** (-np.arange(4000)[::-1] / half_life)
    c = (c * np.ones(4000))[others]
    assert models.mean == pytest.approx(c @ y[others] / c.sum(), rel=1e-3)
    assert models.sigma == pytest.approx(np.sqrt(np.cov(y[others], aweights=c, ddof=0)), rel=0.02)
    assert np.isfinite(one.learn(X[-500:], y[-500:])).all()


def arrays(state):
    """All arrays of a state."""
    if isinstance(state, dict):
        return [x for value in state.values() for x in arrays(value)]
    if isinstance(state, list):
        return [x for value in state for x in arrays(value)]
    return [state] if isinstance(state, np.ndarray) else []


def test_its_columns_are_solved_without_it():
    X, y, _ = stream(1500)
    one = learner(None, (2.0, 0.1))
    one.learn(X, y)
    one.forget(3)
    others = X[:, 0] != 3
    models = one.corrective.models
    j = X[X[:, 0] == 3][0, 1]
    found = models.models.columns.factors[j, : models.models.rank]
    c = np.ones(others.sum())
    expected = weighted_ridge(one, X[others], y[others], c, j, (2.0, 0.1))
    np.testing.assert_allclose(found, expected[:-1], rtol=1e-8)


def test_a_forgotten_row_learns_again_as_a_new_one():
    X, y, _ = stream(2000)
    one = learner(None)
    one.learn(X, y)
    one.forget(5)
    cells = np.full(SHAPE[1], 5), np.arange(SHAPE[1])
    _, columns = one.corrective.whole_offsets()
    np.testing.assert_allclose(one.corrective.predict(*cells), one.corrective.models.mean + columns)
    mine = X[:, 0] == 5
    found = one.learn(X[mine], y[mine])
    assert np.mean((found - y[mine])[-20:] ** 2) < 0.5
