"""Local corrections of clicks: rows and columns solved on all entries, compared with dense ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.kernels import local_models
from onlinefw.objectives import ObservedEntries
from onlinefw.sets import TraceNormBall

from ..objectives.test_unobserved import ALPHAS, Dense, events

RIDGE = (0.3, 0.02)
ANYWHERE = TraceNormBall(1e100)


def learner(alpha=0.1, shape=(9, 13), rank=3, **options):
    options = {"dtype": float, **options}
    objective = ObservedEntries(shape, unobserved=alpha, **options)
    return ofw.OnlineFrankWolfe(objective, ANYWHERE, corrective=ofw.LocalRidge(rank, RIDGE))


def factors(learned):
    theta = learned.theta
    return theta.left * theta.weights, theta.right


def solution(dense, row, features):
    """The ridge regression of one row of the dense problem on all columns."""
    weights = dense.weights[row]
    a, b = RIDGE
    penalty = a + b * (dense.c[row].sum() + dense.alpha * len(weights))
    normal = (weights * features.T) @ features + penalty * np.eye(features.shape[1])
    return np.linalg.solve(normal, features.T @ dense.s[row])


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from(ALPHAS),
    half_life=st.sampled_from([None, 40.0]),
    one_by_one=st.booleans(),
)
def test_the_column_of_the_last_event_is_solved_on_all_entries(seed, alpha, half_life, one_by_one):
    rng = np.random.default_rng(seed)
    learned = learner(alpha, half_life=half_life)
    dense = Dense(alpha, (9, 13), half_life)
    X, y, w = events(rng, 90, (9, 13))
    X[0] = 8, 12  # all rows and columns are known from the beginning
    X, y, w = X[:87], y[:87], w[:87]  # no turns after the last one, which come with every eighth
    if one_by_one:
        learned.learn(X, y, w)
    else:
        learned.observe(X, y, w)
    dense.observe(X, y, w)
    left, right = factors(learned)
    mirrored = Dense(alpha, (13, 9))
    mirrored.c, mirrored.s, mirrored.seen = dense.c.T, dense.s.T, dense.seen.T
    which = X[-1:, 1] if one_by_one else np.unique(X[:, 1])
    for j in which:
        np.testing.assert_allclose(right[j, :3], solution(mirrored, j, left[:, :3]), atol=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_sweep_solves_rows_then_columns(alpha):
    rng = np.random.default_rng(1)
    learned, dense = learner(alpha), Dense(alpha, (9, 13))
    X, y, w = events(rng, 150, (9, 13))
    X[0] = 8, 12
    learned.learn(X, y, w)
    dense.observe(X, y, w)
    before = factors(learned)[1].copy()
    learned.sweep()
    left, right = factors(learned)
    for i in range(9):
        np.testing.assert_allclose(left[i, :3], solution(dense, i, before[:, :3]), atol=1e-9)
    models = learned.corrective.models
    for gram, factor in zip(models.grams, (left, right), strict=True):
        products = np.triu(factor[:, :3].T @ factor[:, :3])
        np.testing.assert_allclose(gram[:3, :3], products, atol=1e-9)


def test_long_lists_have_sums_that_are_as_good():
    """A row of thousands of entries, some of them observed again, some long ago."""
    rng = np.random.default_rng(2)
    shape = (4, 3 * local_models.LONG)
    n = 4 * local_models.LONG
    X = np.column_stack((np.zeros(n, int), rng.integers(shape[1], size=n)))
    X[::7, 0] = rng.integers(1, 4, size=len(X[::7]))
    X[0] = shape[0] - 1, shape[1] - 1
    learned, dense = learner(0.1, shape), Dense(0.1, shape)
    learned.learn(X, np.ones(n))
    dense.observe(X, np.ones(n), np.ones(n))
    models = learned.corrective.models
    assert models.models.row_sums.used[0] == 1
    models.solve(np.array([0]), np.array([], int), anew=True)
    _, right = factors(learned)
    found = models.models.rows.factors[0, :3]
    np.testing.assert_allclose(found, solution(dense, 0, right[:, :3]), rtol=1e-6, atol=1e-9)
    # Now one that is there already: the sums change as much as the list.
    again = X[X[:, 0] == 0][:1]
    learned.learn(again, np.ones(1), np.array([2.0]))
    dense.observe(again, np.ones(1), np.array([2.0]))
    models.solve(np.array([0]), np.array([], int))
    kept = models.models.rows.factors[0, :3].copy()
    models.solve(np.array([0]), np.array([], int), anew=True)
    np.testing.assert_allclose(kept, models.models.rows.factors[0, :3], rtol=0.05)


def test_events_in_pieces_are_events_in_one_go():
    rng = np.random.default_rng(3)
    X, y, w = events(rng, 400, (30, 40))
    whole, cut = (learner(shape=(1, 1), growing=True) for _ in range(2))
    predicted = whole.learn(X, y, w)
    parts = [cut.learn(X[a:b], y[a:b], w[a:b]) for a, b in ((0, 1), (1, 150), (150, 400))]
    np.testing.assert_array_equal(predicted, np.concatenate(parts))
    np.testing.assert_array_equal(whole.theta.dense(), cut.theta.dense())


@pytest.mark.parametrize("half_life", [None, 60.0])
def test_a_resumed_run_is_the_same_run(half_life):
    rng = np.random.default_rng(4)
    X, y, w = events(rng, 400, (30, 40))
    whole, first = (learner(shape=(30, 40), half_life=half_life) for _ in range(2))
    whole.learn(X, y, w)
    first.learn(X[:150], y[:150], w[:150])
    second = ofw.OnlineFrankWolfe.from_state(first.state_dict())
    second.learn(X[150:], y[150:], w[150:])
    np.testing.assert_array_equal(whole.theta.dense(), second.theta.dense())
    assert whole.certificate() == second.certificate()


def test_value_and_certificate_are_those_of_dense_matrices():
    rng = np.random.default_rng(5)
    learned, dense = learner(), Dense(0.1, (9, 13))
    X, y, w = events(rng, 120, (9, 13))
    learned.learn(X, y, w)
    dense.observe(X, y, w)
    learned.correct()
    objective, theta = learned.objective, learned.theta.dense()
    assert objective.value() == pytest.approx(dense.value(theta), rel=1e-9)
    ball = learned.corrective.ball(objective)
    a, b = ball.scales
    gradient = dense.gradient(theta)
    gap = np.sum(gradient * theta) + ball.radius * np.linalg.norm(a[:, None] * gradient * b, 2)
    assert objective.certificate(ball) == pytest.approx(gap, rel=1e-6)


def test_a_forgotten_row_leaves_nothing():
    rng = np.random.default_rng(6)
    X, y, w = events(rng, 200, (9, 13))
    learned = learner()
    learned.learn(X, y, w)
    learned.forget(3)
    left, right = factors(learned)
    assert not left[3].any()
    kept = X[:, 0] != 3
    dense = Dense(0.1, (13, 9))
    dense.observe(X[kept][:, ::-1], y[kept], w[kept])
    for j in np.unique(X[~kept, 1]):
        if dense.seen[j].any():
            np.testing.assert_allclose(right[j, :3], solution(dense, j, left[:, :3]), atol=1e-9)
    models = learned.corrective.models
    products = np.triu(left[:, :3].T @ left[:, :3])
    np.testing.assert_allclose(models.grams[0][:3, :3], products, atol=1e-9)


def test_ranks_are_those_of_the_scores_before_each_event():
    rng = np.random.default_rng(7)
    X = np.column_stack((rng.integers(12, size=300), rng.integers(15, size=300) ** 2 // 15))
    ranked, told = (learner(shape=(12, 15)) for _ in range(2))
    ranks = ranked.learn(X, np.ones(300), ranks=True)
    had, cols = np.zeros((12, 15), bool), np.arange(15)
    for (i, j), rank in zip(X, ranks, strict=True):
        seen = had.any(axis=0)
        if had[i, j] or not seen[j]:
            assert np.isnan(rank)
        else:
            scores = told.corrective.models.scores(np.array([i]))[0]
            others, rows = seen & ~had[i], had.sum(axis=0)
            ties = (scores == scores[j]) & ((rows > rows[j]) | ((rows == rows[j]) & (cols < j)))
            assert rank == 1 + np.sum(others & ((scores > scores[j]) | ties))
        told.learn(X[:1] * 0 + (i, j), np.ones(1))
        had[i, j] = True
    assert np.isfinite(ranks).any()


def test_ranks_are_refused_without_zeros():
    objective = ObservedEntries((3, 4))
    learned = ofw.OnlineFrankWolfe(objective, ANYWHERE, corrective=ofw.LocalRidge(2))
    with pytest.raises(ValueError, match="ranks are those of clicks"):
        learned.learn(np.array([[0, 1]]), np.ones(1), ranks=True)
    assert objective.n_observations == 0


def test_a_taste_is_found():
    """Rows like the columns of their own half: within it they rank first."""
    rng = np.random.default_rng(8)
    rows = rng.integers(60, size=3000)
    X = np.column_stack((rows, 2 * rng.integers(20, size=3000) + rows % 2))
    learned = learner(shape=(60, 40), rank=4, dtype=np.float32)
    ranks = learned.learn(X, np.ones(3000), ranks=True)[1000:]
    assert np.nanmean(ranks) < 11  # of 20 in its own half, many of which it has had
    other = learned.theta.entries(np.array([0, 1]), np.array([1, 0]))
    assert (np.abs(other) < 0.2).all()


def taste(columns, right, alpha, fresh, latest, n_columns):
    """The regression of one row, in which an entry counts ``fresh`` times as much as the next."""
    columns = columns[-latest:]
    weights = fresh ** np.arange(len(columns))[::-1]
    normal = alpha * right.T @ right
    normal += (RIDGE[0] + RIDGE[1] * (weights.sum() + alpha * n_columns)) * np.eye(right.shape[1])
    for j, weight in zip(columns, weights, strict=True):
        normal += max(weight - alpha, 0.0) * np.outer(right[j], right[j])
    return np.linalg.solve(normal, right[columns].T @ weights)


@pytest.mark.parametrize("arm", [0, 5, 11])
def test_scores_are_tastes_and_what_is_frequent_of_late(arm):
    rng = np.random.default_rng(9)
    X = np.unique(np.column_stack((rng.integers(9, size=60), rng.integers(13, size=60))), axis=0)
    X = rng.permutation(X)
    X[0] = 8, 12
    X = X[np.sort(np.unique(X, axis=0, return_index=True)[1])]
    learned = learner()
    learned.learn(X, np.ones(len(X)))
    models = learned.corrective.models
    models.wins[:] = 0.0
    models.wins[arm] = 1.0
    present, worth = models.arm
    left, right = (x[:, :3] for x in factors(learned))
    columns = X[X[:, 0] == 4, 1]
    now = taste(columns, right, 0.1, 0.7, 16, 13)
    expected = present * now + (1.0 - present) * left[4]
    np.testing.assert_allclose(models.tastes(np.array([4]))[0], expected, atol=1e-9)
    frequent = np.zeros(13)
    for t, j in enumerate(X[:, 1]):
        frequent[j] += np.exp((t + 1 - len(X)) / 1000.0) / 1000.0
    scores = models.scores(np.array([4]))[0]
    np.testing.assert_allclose(scores, right @ expected + worth * frequent, atol=1e-9)
    outside = present * now + (1.0 - present) * taste(columns, right, 0.1, 1.0, 99, 13)
    np.testing.assert_allclose(models.taste_of(columns), outside, atol=1e-9)


def test_what_counts_is_learned_on_the_way():
    """Rows that turn to something else all the time: only what they did just now says anything."""
    rng = np.random.default_rng(10)
    moods, X = rng.integers(10, size=40), []
    for _ in range(6000):
        i = rng.integers(40)
        if rng.random() < 0.1:
            moods[i] = rng.integers(10)
        X.append((i, 30 * moods[i] + rng.integers(30)))
    X = np.array(X)
    shares = []
    for order in (np.arange(6000), rng.permutation(6000)):
        learned = learner(shape=(40, 300), rank=10, dtype=np.float32)
        learned.learn(X[order], np.ones(6000))
        shares.append(learned.corrective.models.arm[0])
    assert shares[0] > shares[1]


def test_the_trend_goes_on_for_ever():
    """Counts are made smaller now and then: after many events they are what they were."""
    learned = learner(shape=(300, 4))
    rows = np.arange(9000) % 300
    X = np.column_stack((rows, np.arange(9000) % 3))
    learned.learn(X, np.ones(9000))
    models = learned.corrective.models
    models.wins[:] = 0.0
    models.wins[1] = 1.0  # all entries, and a trend worth 2.5
    np.testing.assert_allclose(models.trend(), [2.5 / 3, 2.5 / 3, 2.5 / 3, 0.0], rtol=0.01)


def test_the_ridge_is_a_share_of_the_noise_unless_it_is_given():
    """Ones in random places have a norm of the root of what a row has and of what a column has."""
    rng = np.random.default_rng(11)
    X = np.unique(np.column_stack((rng.integers(9, size=80), rng.integers(13, size=80))), axis=0)
    X = np.vstack(([[8, 12]], X[~(X == (8, 12)).all(axis=1)]))
    objective = ObservedEntries((9, 13), unobserved=0.2, dtype=float)
    learned = ofw.OnlineFrankWolfe(objective, ANYWHERE, corrective=ofw.LocalRidge(3))
    learned.learn(X, np.ones(len(X)))
    j = X[-1, 1]
    counts = np.bincount(X[:, 0], minlength=9), np.bincount(X[:, 1], minlength=13)
    rows, columns = learned.corrective.models.penalties(*map(np.asarray, counts))
    np.testing.assert_allclose(rows, 0.1 + 0.55 * (np.sqrt(counts[0]) + np.sqrt(len(X) / 13)))
    np.testing.assert_allclose(columns, 0.1 + 0.55 * (np.sqrt(counts[1]) + np.sqrt(len(X) / 9)))
    if len(X) % 8:  # no turns after the last event
        left, right = (x[:, :3] for x in factors(learned))
        seen = np.isin(np.arange(9), X[X[:, 1] == j, 0])
        normal = (np.where(seen, 1.0, 0.2) * left.T) @ left + columns[j] * np.eye(3)
        np.testing.assert_allclose(right[j], np.linalg.solve(normal, left[seen].sum(0)), atol=1e-9)


def test_noise_counts_what_is_there():
    """What leaves, fades or is observed again changes the weight of all observations."""
    rng = np.random.default_rng(12)
    X, y, w = events(rng, 300, (9, 13))
    learned = learner(half_life=50.0)
    learned.learn(X, y, w)
    learned.observe(X[:20], y[:20], w[:20])
    learned.forget(3)
    total = learned.objective.weighted_sums(np.ones(9), np.ones(13))[0].sum()
    weight = learned.corrective.models.moments[local_models.WEIGHT]
    assert weight == pytest.approx(total, rel=1e-9)


def test_the_rank_grows_with_the_events():
    rng = np.random.default_rng(13)
    X = np.column_stack((rng.integers(300, size=9000), rng.integers(200, size=9000)))
    objective = ObservedEntries((300, 200), unobserved=0.2)
    learned = ofw.OnlineFrankWolfe(objective, ANYWHERE, corrective=ofw.LocalRidge())
    ranks = []
    for part in (slice(0, 900), slice(900, 7900), slice(7900, 9000)):
        learned.learn(X[part], np.ones(len(X[part])))
        ranks.append(learned.corrective.models.models.rank)
    assert ranks == [14, 30, 54]  # twice the 16 and 27 events of a mean row, in whole tiles
    resumed = ofw.OnlineFrankWolfe.from_state(learned.state_dict())
    for one in (learned, resumed):
        one.learn(X[:500], np.ones(500))
    np.testing.assert_array_equal(learned.theta.dense(), resumed.theta.dense())
    models = learned.corrective.models
    left = models.models.rows.factors[:300].astype(float)
    products = np.triu((left.T @ left)[:22, :22])
    np.testing.assert_allclose(models.grams[0][:22, :22], products, rtol=1e-6, atol=1e-6)


def test_batches_say_what_counts_too():
    """All turn to the next few columns, batch after batch: what was frequent of late says it."""
    rng = np.random.default_rng(14)
    phase = np.repeat(np.arange(40), 500)
    X = np.column_stack((rng.integers(2000, size=20000), 4 * phase + rng.integers(9, size=20000)))
    learned = learner(shape=(2000, 170), rank=4, dtype=np.float32)
    for part in np.split(X, 80):
        learned.observe(part, np.ones(len(part)))
    assert learned.corrective.models.arm[1] > 1.0
