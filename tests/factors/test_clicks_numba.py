"""Clicks in C++ are what they were in numba; this file goes when numba's loops go."""

import numpy as np
import pytest

from onlinefw.factors import clicks as compiled
from onlinefw.factors.clicks import Clicks
from onlinefw.factors.lists import EntryLists
from onlinefw.kernels.local_models import LONG
from onlinefw.objectives.half_life import Clock
from onlinefw.past.host import entry_lists
from onlinefw.past.host.click_models import ClickModels
from onlinefw.past.leaving import Forgotten

TOL = {np.float32: 1e-5, np.float64: 1e-9}


class Both:
    """The same model twice."""

    def __init__(self, shape, rank, dtype, ridge=compiled.RIDGE, alpha=0.1, half_life=None):
        self.old_lists = entry_lists.EntryLists(shape, np.dtype(dtype))
        self.old = ClickModels(self.old_lists, rank, [ridge], False, False)
        self.old.unobserved = alpha
        if half_life is not None:
            self.old.fade(half_life)
        self.lists = EntryLists(shape, dtype)
        self.new = Clicks(self.lists, rank, ridge, unobserved=alpha, half_life=half_life)
        self.tol = TOL[dtype]

    def learn(self, X, y, w, units=None, **options):
        rows, cols = np.ascontiguousarray(X[:, 0]), np.ascontiguousarray(X[:, 1])
        ranks = np.zeros(len(y)), np.zeros(len(y))
        if options.get("solving", True):
            old = self.old.learn(rows, cols, y, w, units, ranks=ranks[0])
            new = self.new.learn(rows, cols, y, w, units, ranks=ranks[1])
            np.testing.assert_array_equal(*ranks)
        else:
            old = self.old.learn(rows, cols, y, w, units, solving=False)
            turns = self.old.in_turn(len(y))
            self.old.solve(np.union1d(rows, turns[0]), np.union1d(cols, turns[1]))
            new = self.new.learn_together(rows, cols, y, w, units)
        self.close(old, new)

    def close(self, old, new, tol=None):
        np.testing.assert_allclose(new, old, rtol=0, atol=self.tol if tol is None else tol)

    def compare(self):
        old, new, (m1, m2) = self.old, self.new, self.new.shape
        assert new.rank == old.models.rank
        np.testing.assert_array_equal(new.turns, old.turns)
        np.testing.assert_allclose(new.wins, old.wins, rtol=1e-12)
        self.close(old.moments[0], new.known[0], 1e-9 * old.moments[0])
        self.close(old.models.rows.factors[:m1], new.rows.factors[:m1])
        self.close(old.models.columns.factors[:m2], new.columns.factors[:m2])
        for gram, side in zip(old.grams, (new.rows, new.columns), strict=True):
            self.close(gram, np.triu(side.gram), 10 * self.tol)
        rows = np.arange(m1)
        self.close(old.trend(), new.trend())
        self.close(old.tastes(rows), new.tastes(rows))
        self.close(old.scores(rows), new.scores(rows))
        columns, weights = np.array([3, 1, 2]), np.array([1.0, 2.5, 0.5])
        self.close(old.taste_of(columns, weights), new.taste_of(columns, weights))
        self.close(old.taste_parts(columns, weights), new.taste_parts(columns, weights))
        n = np.arange(5.0)
        for one, two in zip(old.penalties(n, n), new.penalties(n, n), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12)
        state = self.old_lists.state_dict()
        for side, its in self.lists.state_dict().items():
            for name, array in its.items():
                np.testing.assert_allclose(array, state[side][name], rtol=1e-6)


def events(rng, n, shape):
    X = np.column_stack([(m * rng.random(n) ** 2).astype(int) for m in shape])
    return X, rng.choice([1.0, 1.0, 2.0, -0.5], n), rng.choice([1.0, 1.0, 0.5, 3.0], n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 3, 8, 14])
@pytest.mark.parametrize("half_life", [None, 60.0])
def test_events(rng, dtype, rank, half_life):
    both = Both((40, 60), rank, dtype, half_life=half_life)
    X, y, w = events(rng, 400, (40, 60))
    units = None
    if half_life is not None:
        _, _, w = Clock(half_life).after(w)
        units = Clock(half_life).after(np.ones(400))[2]
    both.learn(X[:300], y[:300], w[:300], None if units is None else units[:300])
    for k in range(300, 400):  # one at a time
        at = slice(k, k + 1)
        both.learn(X[at], y[at], w[at], None if units is None else units[at])
    both.compare()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_sweeps_scales_and_leaving(rng, dtype):
    both = Both((40, 60), 5, dtype, (0.3, 0.02, 0.1), 0.2)
    X, y, w = events(rng, 600, (40, 60))
    both.learn(X[:300], y[:300], w[:300])
    both.learn(X[300:], y[300:], w[300:], solving=False)
    both.compare()
    both.old.sweep()
    both.new.sweep()
    both.compare()
    for models, lists in ((both.old, both.old_lists), (both.new, both.lists)):
        lists.rescale(0.25)
        models.rescale(0.25)
    both.learn(X, y, w)
    both.compare()
    for models, lists in ((both.old, both.old_lists), (both.new, both.lists)):
        lists.drop(0.3)
        models.entries_left()
    both.compare()
    both.new.forget(2, *both.lists.forget(2)[:2])
    both.old.forget(2, Forgotten(*both.old_lists.forget(2)), 0.0, 0.0)
    both.compare()
    both.learn(X, y, w)
    both.compare()


def test_the_rank_grows(rng):
    both = Both((30, 50), None, np.float64)
    X, y, w = events(rng, 2300, (30, 50))
    both.learn(X, y, w)
    assert both.new.rank > 14
    both.compare()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_lists(rng, dtype):
    both = Both((4, 3 * LONG), 3, dtype)
    n = 4 * LONG
    X = np.column_stack((np.zeros(n, int), rng.integers(3 * LONG, size=n)))
    X[::7, 0] = rng.integers(1, 4, size=len(X[::7]))
    both.learn(X, np.ones(n), np.ones(n))
    both.learn(X[:100], np.ones(100), np.ones(100))
    assert both.new.rows.used[0] == both.old.models.row_sums.used[0] == 1
    both.compare()
    both.learn(X[:1000], np.ones(1000), np.ones(1000), solving=False)
    both.compare()
