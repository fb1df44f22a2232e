"""Clicks are solved on all entries of the matrix: compared with dense matrices and numpy."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw._threads import use_threads
from onlinefw.factors import clicks as module
from onlinefw.factors.clicks import RIDGE, Clicks, clicks_from_state
from onlinefw.factors.lists import EntryLists

LONG = 1024
PLAIN = (0.3, 0.02, 0.0)
ALPHAS = (0.01, 0.1, 1.0)


def model(shape=(9, 13), rank=3, ridge=PLAIN, alpha=0.1, dtype=float):
    return Clicks(EntryLists(shape, dtype), rank, ridge, unobserved=alpha)


def learn(clicks, X, y=None, w=None, together=False, **options):
    y = np.ones(len(X)) if y is None else y
    rows, columns = (np.ascontiguousarray(x) for x in X.T)
    predicted = clicks.learn(rows, columns, y, w, solving=not together, **options)
    if together:
        clicks.solve_learned(rows, columns)
    return predicted


def events(rng, n, shape):
    """Events with many repeats, of other values and weights; all of the matrix is known."""
    X = np.column_stack([rng.integers(m, size=n) for m in shape])
    X[0] = np.array(shape) - 1
    return X, rng.choice([1.0, 1.0, 2.0, -0.5], n), rng.choice([1.0, 1.0, 0.5, 3.0], n)


def factors(clicks):
    return (side.factors[:n, : clicks.rank].astype(float) for side, n in zip(
        (clicks.rows, clicks.columns), clicks.shape, strict=True))  # fmt: skip


class Dense:
    """The weight and the weighted value of every entry."""

    def __init__(self, shape, X, y, w, alpha=0.1):
        self.c, self.s, self.alpha = np.zeros(shape), np.zeros(shape), alpha
        np.add.at(self.c, tuple(X.T), w)
        np.add.at(self.s, tuple(X.T), w * y)

    @property
    def T(self):
        mirrored = copy.copy(self)
        mirrored.c, mirrored.s = self.c.T, self.s.T
        return mirrored

    def penalty(self, i, ridge):
        n, everything = self.c[i].sum(), self.c.sum() / self.c.shape[1]
        a, b, c = ridge
        of_all = n + self.alpha * self.c.shape[1]
        return a + b * of_all + c * (np.sqrt(n) + np.sqrt(everything))

    def solution(self, i, features, ridge=PLAIN):
        """The ridge regression of row i on all columns."""
        weights = np.where(self.c[i] > 0.0, self.c[i], self.alpha)
        normal = (weights * features.T) @ features
        normal += self.penalty(i, ridge) * np.eye(features.shape[1])
        return np.linalg.solve(normal, features.T @ self.s[i])


@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from(ALPHAS),
    rank=st.sampled_from([1, 3, 6, 7, 8, 14, 17]),
    ridge=st.sampled_from([PLAIN, RIDGE]),
    together=st.booleans(),
)
def test_the_columns_of_the_last_events_are_solved_on_all_entries(
    seed, alpha, rank, ridge, together
):
    rng = np.random.default_rng(seed)
    clicks, (X, y, w) = model(rank=rank, ridge=ridge, alpha=alpha), events(rng, 87, (9, 13))
    learn(clicks, X, y, w, together)  # no turns after the last one, which come with every eighth
    left, right = factors(clicks)
    dense = Dense((9, 13), X, y, w, alpha).T
    for j in np.unique(X[:, 1]) if together else X[-1:, 1]:
        np.testing.assert_allclose(right[j], dense.solution(j, left, ridge), atol=1e-9)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-4), (np.float64, 1e-9)])
def test_a_sweep_solves_rows_then_columns(rng, dtype, tol):
    clicks, (X, y, w) = model(dtype=dtype), events(rng, 150, (9, 13))
    learn(clicks, X, y, w)
    _, before = factors(clicks)
    clicks.sweep()
    left, right = factors(clicks)
    dense = Dense((9, 13), X, y, w)
    for i in range(9):
        np.testing.assert_allclose(left[i], dense.solution(i, before), atol=tol)
    for j in range(13):
        np.testing.assert_allclose(right[j], dense.T.solution(j, left), atol=tol)
    for side, factor in ((clicks.rows, left), (clicks.columns, right)):
        gram = np.triu(side.gram)[:3, :3]
        np.testing.assert_allclose(gram, np.triu(factor.T @ factor), atol=1e-9)
    assert clicks.known[0] == pytest.approx(w.sum())
    np.testing.assert_allclose(clicks.predict(*X.T), (left @ right.T)[tuple(X.T)], atol=tol)


def test_threads_solve_the_same(rng, monkeypatch):
    monkeypatch.setattr(module, "MULTIPLICATIONS", 1000)
    found = []
    for threads in (1, 3):
        clicks, (X, y, w) = model((40, 50)), events(np.random.default_rng(1), 600, (40, 50))
        before = use_threads(threads)
        try:
            learn(clicks, X, y, w)
            clicks.sweep()
            found.append([*factors(clicks), clicks.tastes(np.arange(40))])
        finally:
            use_threads(before)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_long_lists_have_sums_that_are_as_good(rng):
    """A row of thousands of entries, some of them observed again, some long ago."""
    shape, n = (4, 3 * LONG), 4 * LONG
    X = np.column_stack((np.zeros(n, int), rng.integers(shape[1], size=n)))
    X[::7, 0] = rng.integers(1, 4, size=len(X[::7]))
    X[0] = shape[0] - 1, shape[1] - 1
    clicks, row, none = model(shape), np.array([0]), np.array([], int)
    learn(clicks, X)
    assert clicks.rows.used[0] == 1
    clicks.solve(row, none, anew=True)
    left, right = factors(clicks)
    expected = Dense(shape, X, np.ones(n), np.ones(n)).solution(0, right)
    np.testing.assert_allclose(left[0], expected, rtol=1e-6, atol=1e-9)
    # Now one that is there already: the sums change as much as the list.
    again = X[X[:, 0] == 0][:1]
    learn(clicks, again, np.ones(1), np.array([2.0]))
    clicks.solve(row, none)
    kept = clicks.rows.factors[0].copy()
    clicks.solve(row, none, anew=True)
    np.testing.assert_allclose(kept, clicks.rows.factors[0], rtol=0.05)


# Order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_events_in_pieces_are_events_in_one_go(rng, dtype):
    X, y, w = events(rng, 2500, (30, 40))
    whole, cut = (model((30, 40), None, RIDGE, dtype=dtype) for _ in range(2))
    ranks = np.zeros(2500), np.zeros(2500)
    at_once = learn(whole, X, y, w, ranks=ranks[0])
    parts = []
    for a, b in ((0, 1), (1, 64), (64, 999), (999, 1003), (1003, 2500)):
        parts.append(learn(cut, X[a:b], y[a:b], w[a:b], ranks=ranks[1][a:b]))
    np.testing.assert_array_equal(at_once, np.concatenate(parts))
    np.testing.assert_array_equal(*ranks)
    assert_same(whole, cut)
    assert whole.rank > 14


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("together", [False, True])
def test_a_resumed_run_is_the_same_run(rng, dtype, together):
    shape = (6, 3 * LONG)
    X, y, w = events(rng, 4 * LONG, shape)
    X[: 2 * LONG, 0] = 0  # long enough for sums
    whole, first = (model(shape, None, RIDGE, dtype=dtype) for _ in range(2))
    half = 3 * LONG
    for part in (slice(0, half), slice(half, None)):
        learn(whole, X[part], y[part], w[part], together)
    learn(first, X[:half], y[:half], w[:half], together)
    second = clicks_from_state(first.state_dict())
    learn(second, X[half:], y[half:], w[half:], together)
    assert_same(whole, second)


def assert_same(one, two):
    one, two = one.state_dict(), two.state_dict()
    for state in (one, two):
        del state["lists"]
        for side in ("rows", "columns"):
            state |= {f"{side} {k}": x for k, x in state.pop(side).items()}
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


def test_growing_by_and_by_is_the_same(rng):
    X, y, w = events(rng, 300, (30, 40))
    X = X[1:]
    whole, growing = model((30, 40)), model((0, 0))
    learn(whole, X, y[1:], w[1:])
    for k in range(len(X)):
        growing.grown(*(X[k] + 1))()
        learn(growing, X[k : k + 1], y[k + 1 : k + 2], w[k + 1 : k + 2])
    growing.grown(30, 40)()
    assert_same(whole, growing)


def test_the_rank_grows_with_the_events(rng):
    X = np.column_stack((rng.integers(300, size=9000), rng.integers(200, size=9000)))
    clicks, ranks = model((300, 200), None, RIDGE, 0.2, np.float32), []
    for part in (slice(0, 900), slice(900, 7900), slice(7900, 9000)):
        learn(clicks, X[part])
        ranks.append(clicks.rank)
    assert ranks == [14, 30, 54]  # twice the 16 and 27 events of a mean row, in whole tiles
    left, _ = factors(clicks)
    gram = np.triu(clicks.rows.gram)[:54, :54]
    np.testing.assert_allclose(gram, np.triu(left.T @ left), rtol=1e-6, atol=1e-6)


# Fading and leaving -------------------------------------------------------------------------------


def test_what_fades_weighs_less(rng):
    """Weights that grow are a past that fades: in units of the newest, all is as it was."""
    X, y, w = events(rng, 87, (9, 13))
    units = 2.0 ** (np.arange(87) / 20.0)
    clicks = model()
    clicks.fade(20.0)
    learn(clicks, X, y, w, units=units)
    left, right = factors(clicks)
    dense = Dense((9, 13), X, y, w * units / units[-1]).T
    j = X[-1, 1]
    np.testing.assert_allclose(right[j], dense.solution(j, left), atol=1e-9)


def test_weights_in_other_units_make_no_difference(rng):
    X, y, w = events(rng, 2 * LONG, (3, 2 * LONG))
    X[:, 0] = 0
    one, two = model((3, 2 * LONG)), model((3, 2 * LONG))
    half = LONG + 300
    for clicks in (one, two):
        learn(clicks, X[:half], y[:half], w[:half])
    two.rescale(0.25)
    learn(one, X[half:], y[half:], w[half:])
    units = np.full(len(X) - half, 0.25)
    learn(two, X[half:], y[half:], w[half:], units=units)
    for a, b in zip(factors(one), factors(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_forgotten_row_leaves_nothing(rng):
    X, y, w = events(rng, 200, (9, 13))
    clicks = model()
    learn(clicks, X, y, w)
    clicks.forget(3)
    left, right = factors(clicks)
    assert not left[3].any()
    kept = X[:, 0] != 3
    dense = Dense((9, 13), X[kept], y[kept], w[kept]).T
    for j in np.unique(X[~kept, 1]):
        if dense.c[j].any():
            np.testing.assert_allclose(right[j], dense.solution(j, left), atol=1e-9)
        else:
            assert not right[j].any() and clicks.trend()[j] == 0.0
    np.testing.assert_allclose(np.triu(clicks.rows.gram)[:3, :3], np.triu(left.T @ left), atol=1e-9)
    assert clicks.known[0] == pytest.approx(w[kept].sum())


def test_dropped_entries_are_gone(rng):
    X, y, _ = events(rng, 60, (9, 13))
    w = np.where(np.arange(60) < 30, 0.1, 1.0)
    clicks = model()
    learn(clicks, X, y, w)
    clicks.drop(0.5)
    held = np.zeros((9, 13))
    np.add.at(held, tuple(X.T), w)
    kept = held >= 0.5
    left, right = factors(clicks)
    assert not left[~kept.any(axis=1)].any() and not right[~kept.any(axis=0)].any()
    assert clicks.known[0] == pytest.approx(held[kept].sum())
    clicks.solve(np.arange(9), np.array([], int))
    dense = Dense((9, 13), X, y, w)
    dense.c, dense.s = np.where(kept, dense.c, 0.0), np.where(kept, dense.s, 0.0)
    left, right = factors(clicks)
    for i in np.flatnonzero(kept.any(axis=1)):
        np.testing.assert_allclose(left[i], dense.solution(i, right), atol=1e-9)


# Recommending -------------------------------------------------------------------------------------


def test_ranks_are_those_of_the_scores_before_each_event(rng):
    X = np.column_stack((rng.integers(12, size=300), rng.integers(15, size=300) ** 2 // 15))
    ranked, told, ranks = model((12, 15)), model((12, 15)), np.zeros(300)
    learn(ranked, X, ranks=ranks)
    had, cols = np.zeros((12, 15), bool), np.arange(15)
    for (i, j), rank in zip(X, ranks, strict=True):
        seen = had.any(axis=0)
        if had[i, j] or not seen[j]:
            assert np.isnan(rank)
        else:
            scores = told.scores(np.array([i]))[0]
            others, rows = seen & ~had[i], had.sum(axis=0)
            ties = (scores == scores[j]) & ((rows > rows[j]) | ((rows == rows[j]) & (cols < j)))
            assert rank == 1 + np.sum(others & ((scores > scores[j]) | ties))
        learn(told, np.array([[i, j]]))
        had[i, j] = True
    assert np.isfinite(ranks).any()


def test_a_taste_is_found(rng):
    """Rows like the columns of their own half: within it they rank first."""
    rows = rng.integers(60, size=3000)
    X = np.column_stack((rows, 2 * rng.integers(20, size=3000) + rows % 2))
    clicks, ranks = model((60, 40), 4, dtype=np.float32), np.zeros(3000)
    learn(clicks, X, ranks=ranks)
    assert np.nanmean(ranks[1000:]) < 11  # of 20 in its own half, many of which it has had
    assert (np.abs(clicks.predict(np.array([0, 1]), np.array([1, 0]))) < 0.2).all()


def taste(columns, weights, right, fresh, latest):
    """The regression of one row, in which an entry counts ``fresh`` times as much as the next."""
    columns, weights = columns[-latest:], weights[-latest:]
    weights = weights * fresh ** np.arange(len(columns))[::-1]
    normal = 0.1 * right.T @ right
    penalty = PLAIN[0] + PLAIN[1] * (weights.sum() + 0.1 * len(right))
    normal += penalty * np.eye(right.shape[1])
    for j, weight in zip(columns, weights, strict=True):
        normal += max(weight - 0.1, 0.0) * np.outer(right[j], right[j])
    return np.linalg.solve(normal, right[columns].T @ weights)


def with_arm(clicks, arm):
    """The arm that is in use from now on."""
    clicks.wins[:] = 0.0
    clicks.wins[arm] = 1.0
    return (0.0, 0.5, 1.0)[arm // 4], (0.01, 2.5, 5.0, 10.0)[arm % 4]


@pytest.mark.parametrize("arm", [0, 5, 11])
def test_scores_are_tastes_and_what_is_frequent_of_late(rng, arm):
    X = np.unique(np.column_stack((rng.integers(9, size=90), rng.integers(13, size=90))), axis=0)
    X = rng.permutation(X)
    last = (X == (8, 12)).all(axis=1)
    X = np.vstack(([[8, 12]], X[~last]))
    clicks = model()
    learn(clicks, X)
    present, worth = with_arm(clicks, arm)
    assert clicks.arm == (present, worth)
    left, right = factors(clicks)
    columns = X[X[:, 0] == 4, 1]
    now = taste(columns, np.ones(len(columns)), right, 0.7, 16)
    expected = present * now + (1.0 - present) * left[4]
    np.testing.assert_allclose(clicks.tastes(np.array([4]))[0], expected, atol=1e-9)
    frequent = np.zeros(13)
    for t, j in enumerate(X[:, 1]):
        frequent[j] += np.exp((t + 1 - len(X)) / 1000.0) / 1000.0
    np.testing.assert_allclose(clicks.trend(), worth * frequent, atol=1e-9)
    scores = clicks.scores(np.array([4]))[0]
    np.testing.assert_allclose(scores, right @ expected + worth * frequent, atol=1e-9)


@pytest.mark.parametrize("arm", [0, 4, 8])
@pytest.mark.parametrize("n", [0, 4, 90])
def test_the_taste_of_somebody_else_and_its_parts(rng, arm, n):
    clicks = model((9, 100))
    learn(clicks, events(rng, 300, (9, 100))[0])
    present, _ = with_arm(clicks, arm)
    _, right = factors(clicks)
    columns, weights = rng.permutation(100)[:n], rng.choice([1.0, 3.0, 0.05], n)
    expected = present * taste(columns, weights, right, 0.7, 16)
    expected += (1.0 - present) * taste(columns, weights, right, 1.0, 100)
    np.testing.assert_allclose(clicks.taste_of(columns, weights), expected, atol=1e-9)
    parts = clicks.taste_parts(columns, weights)
    np.testing.assert_allclose(parts.sum(axis=0), expected, atol=1e-9)


def test_what_counts_is_learned_on_the_way(rng):
    """Rows that turn to something else all the time: only what they did just now says anything."""
    moods, X = rng.integers(10, size=40), []
    for _ in range(6000):
        i = rng.integers(40)
        if rng.random() < 0.1:
            moods[i] = rng.integers(10)
        X.append((i, 30 * moods[i] + rng.integers(30)))
    shares = []
    for order in (np.arange(6000), rng.permutation(6000)):
        clicks = model((40, 300), 10, dtype=np.float32)
        learn(clicks, np.array(X)[order])
        shares.append(clicks.arm[0])
    assert shares[0] > shares[1]


def test_batches_say_what_counts_too(rng):
    """All turn to the next few columns, batch after batch: what was frequent of late says it."""
    phase = np.repeat(np.arange(40), 500)
    X = np.column_stack((rng.integers(2000, size=20000), 4 * phase + rng.integers(9, size=20000)))
    clicks = model((2000, 170), 4, dtype=np.float32)
    for part in np.split(X, 80):
        learn(clicks, part, together=True)
    assert clicks.arm[1] > 1.0


def test_the_trend_goes_on_for_ever():
    """Counts are made smaller now and then: after many events they are what they were."""
    clicks = model((300, 4))
    learn(clicks, np.column_stack((np.arange(9000) % 300, np.arange(9000) % 3)))
    with_arm(clicks, 1)  # all entries, and a trend worth 2.5
    np.testing.assert_allclose(clicks.trend(), [2.5 / 3, 2.5 / 3, 2.5 / 3, 0.0], rtol=0.01)


# States -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def some():
    clicks = model((6, 2 * LONG), None, RIDGE)
    X, y, w = events(np.random.default_rng(3), 3000, (6, 2 * LONG))
    X[:2000, 0] = 0
    learn(clicks, X, y, w)
    assert clicks.rows.used[0] == 1
    return clicks


def test_without_sums_it_recommends_the_same(some):
    loaded, rows = clicks_from_state(some.what_predicts()), np.arange(6)
    np.testing.assert_array_equal(loaded.scores(rows), some.scores(rows))
    loaded.sweep()
    some = clicks_from_state(some.state_dict())
    some.sweep()
    np.testing.assert_allclose(loaded.rows.factors, some.rows.factors, atol=1e-12)


def changed(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


def other(value):
    return lambda _: value


DAMAGES = [
    ("shape", other([6, 7])),
    ("shape", other(6)),
    ("dtype", other("float32")),
    ("dtype", other("int8")),
    ("rank", other(0)),
    ("rank", other(15)),
    ("rank", other(10**6)),
    ("rank", other("auto")),
    ("check_at", other(-1)),
    ("check_at", other(2999)),
    ("unobserved", other(0.0)),
    ("unobserved", other(np.nan)),
    ("unobserved", other("1")),
    ("lasting", other(0.0)),
    ("ridge", changed(0, 0.0)),
    ("ridge", changed(2, -1.0)),
    ("ridge", changed(1, np.inf)),
    ("known", changed(0, -1.0)),
    ("known", changed(1, 0.0)),
    ("known", changed(1, np.inf)),
    ("known", other([1.0, 1.0])),
    ("turns", changed(0, -1)),
    ("turns", changed(0, 2**62)),
    ("turns", changed(1, 6)),
    ("turns", changed(2, 2 * LONG)),
    ("turns", changed(3, 6)),
    ("turns", changed(4, -2)),
    ("turns", lambda x: x[:4]),
    ("turns", lambda x: x.astype(np.int32)),
    ("wins", lambda x: x[1:]),
    ("wins", changed(3, np.nan)),
    ("trend", lambda x: x[1:]),
    ("trend", lambda x: x.astype(np.float32)),
    ("rows", other(None)),
    ("rows.factors", lambda x: x[1:]),
    ("rows.factors", changed((0, 0), np.inf)),
    ("columns.factors", lambda x: x[:, 1:]),
    ("rows.gram", lambda x: x[1:, 1:]),
    ("rows.gram", changed((0, 0), np.nan)),
    ("rows.number", changed(0, 2)),
    ("rows.number", changed(1, 1)),
    ("rows.number", changed(1, -1)),
    ("rows.number", lambda x: x[1:]),
    ("rows.sums", lambda x: x[:0]),
    ("rows.sums", changed((0, 0, 0, 0, 0), np.nan)),
    ("rows.sums", lambda x: x.astype(np.float32)),
    ("rows.added", changed((0, 0), 10**6)),
    ("rows.added", changed((0, 1), -1)),
    ("rows.added", lambda x: x[:0]),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_damaged_states_are_refused(some, name, damage):
    state = some.state_dict()
    *side, field = name.split(".")
    its = state[side[0]] if side else state
    its[field] = damage(its[field])
    with pytest.raises(ValueError, match=r"damaged|must be|of the state|a state is"):
        clicks_from_state(state)


@pytest.mark.parametrize("name", ["rank", "turns", "rows"])
def test_states_with_something_missing_are_refused(some, name):
    state = some.state_dict()
    del state[name]
    with pytest.raises(ValueError, match=name):
        clicks_from_state(state)


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("plain", [False, True])
def test_what_is_in_a_file_recommends_the_same(rng, dtype, plain):
    clicks = model((9, 7), dtype=dtype)
    X, y, w = events(rng, 80, (9, 7))
    learn(clicks, X, *(() if plain else (y, w)))
    with_arm(clicks, 5)
    state = clicks.what_predicts()
    assert (state["had"]["values"].size == 0) == plain
    loaded, rows = clicks_from_state(state), np.arange(9)
    columns = np.array([3, 1])
    np.testing.assert_array_equal(loaded.taste_of(columns), clicks.taste_of(columns))
    np.testing.assert_array_equal(loaded.scores(rows), clicks.scores(rows))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("length", lambda x: x[:-1]),
        ("length", lambda x: x - 1),
        ("length", lambda x: x[::-1] - 2 + 4 * (np.arange(x.size) == 0)),
        ("columns", lambda x: x + np.uint32(7)),
        ("columns", lambda x: x.astype(float)),
        ("weights", lambda x: x[:-1]),
        ("weights", lambda x: np.nan * x),
        ("weights", lambda x: -x),
    ],
)
def test_damaged_files_are_refused(name, damage):
    clicks = model((9, 7))
    learn(clicks, np.column_stack((np.arange(9) // 8, np.arange(9) % 7)))
    state = clicks.what_predicts()
    state["had"][name] = damage(state["had"][name])
    with pytest.raises(ValueError, match="damaged"):
        clicks_from_state(state)
