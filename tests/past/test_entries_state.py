"""A state is looked through before a compiled loop sees it, at every place."""

import copy

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.objectives import ObservedEntries, RunningBiases
from onlinefw.past.entries_state import all_entries
from onlinefw.sets import TraceNormBall

SHAPE = (12, 17)


@pytest.fixture(scope="module")
def state():
    rng = np.random.default_rng(0)
    objective = ObservedEntries(SHAPE, offsets=RunningBiases())
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(5.0))
    for _ in range(4):
        X = np.column_stack([rng.integers(n, size=600) for n in SHAPE])
        learner.observe(X, rng.standard_normal(600))
    assert 0 < objective.n_newest < objective.n_entries
    return learner.state_dict()


def part(state, path):
    for name in path:
        state = state[name]
    return state


DAMAGE = {
    "a column too large": ("past.sorted.col", lambda x: np.where(x == 3, 17, x), "17 columns"),
    "a row too large": ("past.tail.row", lambda x: x + 12, "12 rows"),
    "a tail column too large": ("past.tail.col", lambda x: x + 1, "17 columns"),
    "rows that overlap": ("past.sorted.indptr", lambda x: x[::-1].copy(), "indptr"),
    "too many entries": ("past.sorted.indptr", lambda x: x + 1, "indptr"),
    "a row too few": ("past.sorted.indptr", lambda x: x[1:], "11 rows"),
    "columns out of order": ("past.sorted.col", lambda x: x[::-1].copy(), "increase"),
    "a value too few": ("past.sorted.z", lambda x: x[1:], "sorted.z has"),
    "another precision": ("past.tail.c", lambda x: x.astype(float), "float64 instead of float32"),
    "indices with a fraction": ("past.tail.col", lambda x: x.astype(float), "no array"),
    "a rank twice": ("past.rank", lambda x: np.where(x == 5, 4, x), "rank"),
    "offsets of another matrix": ("past.offsets", lambda x: [x[1], x[0]], "offset of rows"),
    "negative counts": ("past.counts", lambda x: [-1, *x[1:]], "at least 0, got -1"),
    "no weight": ("past.counts", lambda x: [x[0], np.nan, x[2]], "weight of nan"),
    "no observations": ("past.counts", lambda x: [0, *x[1:]], "from 0 observations"),
    "something missing": ("past.tail", lambda x: {"row": x["row"]}, "'col' is missing"),
    "factors of another matrix": ("iterate.left", lambda x: x[1:], "shape"),
    "factors of other ranks": ("iterate.left", lambda x: x[:, 1:], "state of theta"),
    "no room for the factors": ("iterate.capacity", lambda x: 0, "state of theta"),
    "a block of another matrix": ("block", lambda x: np.vstack((x, x)), "block"),
    "biases of other lengths": ("offsets.rows", lambda x: x[1:], "state of the biases"),
    "biases that are no numbers": ("offsets.columns", lambda x: x * np.nan, "NaN"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_is_refused_in_one_line(state, damage):
    where, change, words = DAMAGE[damage]
    *path, last = where.split(".")
    broken = copy.deepcopy(state)
    holder = part(broken["objective"], path)
    holder[last] = change(holder[last])
    with pytest.raises(ValueError, match=words) as refusal:
        ofw.OnlineFrankWolfe.from_state(broken)
    assert "\n" not in str(refusal.value)


def test_a_state_that_is_whole_is_not_refused_and_does_not_share_memory(state):
    learner = ofw.OnlineFrankWolfe.from_state(state)
    before = copy.deepcopy(state)
    learner.observe([[3, 4]], [1.0])
    np.testing.assert_equal(state, before)


def test_all_entries_of_a_state_are_those_observed(rng):
    objective = ObservedEntries(SHAPE, dtype=float)
    X = np.column_stack([rng.integers(n, size=3000) for n in SHAPE])
    y = rng.standard_normal(3000)
    for k in range(0, 3000, 300):
        objective.observe(X[k : k + 300], y[k : k + 300])
    rows, cols, c, s = all_entries(objective.state_dict()["past"])
    for values, expected in ((c, np.ones(3000)), (s, y)):
        found, wanted = np.zeros(SHAPE), np.zeros(SHAPE)
        np.add.at(found, (rows, cols), values)
        np.add.at(wanted, (X[:, 0], X[:, 1]), expected)
        np.testing.assert_allclose(found, wanted, atol=1e-12)
