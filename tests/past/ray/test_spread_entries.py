"""Entries spread over workers answer every verb as entries in one process do, also after deaths."""

from dataclasses import dataclass

import numpy as np
import pytest

from onlinefw._batches import BatchHandle
from onlinefw.atoms import RankOne
from onlinefw.iterates import LowRank
from onlinefw.losses import Correntropy, Poisson, Square
from onlinefw.past.place import Place, new_entries
from onlinefw.past.ray import entries as spread_module
from onlinefw.past.ray import entries_placement
from onlinefw.past.ray.errors import ClusterLost

from ...pairs import every_pair
from .both import Both
from .in_process import kill, ray_in_process
from .problems import Pseudohuber

M1, M2 = 11, 7
LOSSES = {
    "square": Square(),
    "poisson": Poisson(),
    "correntropy": Correntropy(4.0),
    "own": Pseudohuber(),
}


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


class Entries(Both):
    """Entries of one matrix, which all see."""

    def __init__(self, workers, loss="square", dtype=float, shape=(M1, M2)):
        self.dtype, self.loss = dtype, LOSSES[loss]
        self.tolerance = 1e-4 if dtype == np.float32 else 1e-9
        self.theta = LowRank(shape, dtype=dtype)
        super().__init__(
            *(
                new_entries(Place(workers=n), self.theta, np.dtype(dtype), self.loss)
                for n in (None, workers)
            )
        )

    def append(self, rng, n=9):
        m1, m2 = self.theta.shape
        rows, cols = rng.integers(m1, size=n), rng.integers(m2, size=n)
        w = rng.integers(0, 3, n).astype(float)
        y = rng.poisson(2.0, n).astype(float)
        for past in self.pasts:
            z = past.append(rows, cols, w, y)
            np.testing.assert_allclose(z, self.theta.at(rows, cols))

    def in_order(self, verb, answer):
        if verb != "forget":
            return answer
        order = np.lexsort(answer[::-1])
        return tuple(column[order] for column in answer)

    def move(self, rng, step=0.3):
        u, v = (rng.standard_normal(size) for size in self.theta.shape)
        self.theta.move(RankOne(u, 2.0, v), step)
        for past in self.pasts:
            past.move(1.0 - step, step * 2.0 * u, v)

    def shrink(self, factor):
        self.theta.shrink(factor)
        for past in self.pasts:
            past.move(factor, None, None)

    def grow(self, m1, m2):
        self.theta.grow((m1, m2), 100, None)
        for past in self.pasts:
            past.grow(m1, m2)


def ask_products(both, rng, scaled=True):
    m1, m2 = both.theta.shape
    scale = rng.random(m1).astype(both.dtype) if scaled else None
    V = np.linalg.qr(rng.standard_normal((m2, min(4, m2))))[0]
    W, z_dot_g = both.read(V, scale)
    both.overlaps(V, W, z_dot_g)
    both.combine(rng.standard_normal((V.shape[1], 2)), W, rng.standard_normal((V.shape[1], 2)))
    both.combine(rng.standard_normal(V.shape[1]), W, rng.standard_normal(V.shape[1]))
    for _ in range(2):
        both.normal(rng.standard_normal(m2), scale)
    both.forward(rng.standard_normal((m2, 2)))
    both.backward(rng.standard_normal((m1, 2)))
    both.squared_norms()
    both.dense_slopes()


def ask_others(both, rng):
    m1, m2 = both.theta.shape
    u, v = rng.standard_normal(m1), rng.standard_normal(m2)
    both.total_loss()
    both.line(u, v)
    for t in (0.2, 0.7):
        both.line_value(t)
        both.line_slope(t)
    both.heaviest()
    for with_theta in (False, True):
        both.weighted_sums(u, v, with_theta)
    both.newest_sums(LowRank.from_factors(u[:, None], np.ones(1), v[:, None]))
    both.columns_of(3)
    both.seen()
    assert both.spread.counts == both.here.counts
    for name in ("shape", "n_sorted", "n_newest"):
        assert getattr(both.spread, name) == getattr(both.here, name)
    if both.here.quadratic:
        assert both.spread.reads == both.here.reads


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("workers", "large"), [(1, True), (3, False), (9, True)])
def test_every_verb(loss, workers, large, monkeypatch):
    if large:
        monkeypatch.setattr(spread_module, "LARGE_BLOCK", 0)
    rng, both = np.random.default_rng(0), Entries(workers, loss)
    for k in range(4):
        both.append(rng)
        if k == 1:
            both.merge(5)
        both.move(rng, 1.0 if k == 0 else 0.1)
        both.append(rng)
        ask_products(both, rng, scaled=k % 2 == 0)
        both.set_offsets(0.1 * rng.standard_normal(M1), 0.1 * rng.standard_normal(M2))
        both.shrink(0.5)
        ask_others(both, rng)
    both.refresh()
    ask_products(both, rng)
    ask_others(both, rng)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dies", [False, True])
def test_entries_fade_and_leave(loss, workers, dies, ray):
    rng, both = np.random.default_rng(0), Entries(workers, loss)
    for k in range(3):
        both.append(rng, 20)
        both.move(rng, 1.0 if k == 0 else 0.1)
        both.rescale(2.0**-3)
        both.append(rng, 20)
        if k == 1:
            both.drop(2.0**-4)
            both.value_range()
        ask_products(both, rng)
        ask_others(both, rng)
        both.forget(k)
        both.append(rng, 5)
        if dies:
            for shard in range(workers):
                kill(both.spread.shards, shard)
    both.refresh()
    ask_products(both, rng)
    ask_others(both, rng)


@pytest.mark.slow  # the kernels take seconds to compile
@pytest.mark.parametrize("workers", [1, 3, 9])
def test_regressions(workers):
    rng, both = np.random.default_rng(0), Entries(workers)
    for _ in range(3):
        both.append(rng)
        both.move(rng, 0.1)
    both.set_offsets(0.1 * rng.standard_normal(M1), 0.1 * rng.standard_normal(M2))
    both.merge(both.here.n_newest // 2)
    both.begin_regressions()
    right = both.solve_rows(rng.standard_normal((M2, 2)), np.full(M1, 0.5))
    both.solve_columns(right, np.full(M2, 0.5))
    ask_others(both, rng)


@pytest.mark.slow  # the kernels for singles that cannot be written to take seconds to compile
def test_a_growing_matrix_in_single_precision():
    rng, both = np.random.default_rng(0), Entries(3, dtype=np.float32, shape=(2, 1))
    for size in (2, 5, 9):
        both.append(rng)
        both.grow(2 * size, size)
        both.append(rng)
        both.move(rng)
        ask_products(both, rng)
        ask_others(both, rng)


def test_a_move_that_the_past_was_not_told_of():
    rng, both = np.random.default_rng(0), Entries(2)
    both.append(rng, 30)
    ask_products(both, rng)
    u, v = rng.standard_normal(M1), rng.standard_normal(M2)
    both.theta.move(RankOne(u, 1.0, v), 0.5)  # interrupted here
    both.move(rng)
    ask_products(both, rng)
    both.theta.move(RankOne(u, 1.0, v), 0.5)
    both.total_loss()
    both.theta.move(RankOne(u, 1.0, v), 0.5)
    z = both.spread.state_dict()["tail"]["z"]
    np.testing.assert_allclose(z, both.here.state_dict()["tail"]["z"])


@pytest.mark.parametrize("seed", range(8))
def test_deaths_at_any_moment_change_nothing(seed, monkeypatch):
    monkeypatch.setattr("onlinefw.past.ray.shards.MOST_WAITING", 5)
    monkeypatch.setattr(entries_placement, "LONGEST_TAIL", 10)
    if seed % 2:
        monkeypatch.setattr(spread_module, "LARGE_BLOCK", 0)
    rng, both = np.random.default_rng(seed), Entries(3, ["square", "poisson"][seed % 2])
    both.append(rng)
    for _ in range(25):
        if rng.random() < 0.5:
            kill(both.spread.shards, rng.integers(3))
        what = rng.integers(8)
        if what == 0:
            both.append(rng)
        elif what == 1:
            both.move(rng, 0.1)
        elif what == 2:
            both.shrink(0.9)
        elif what == 3:
            both.merge(int(rng.integers(both.here.n_newest + 1)))
        elif what == 4:
            both.set_offsets(0.1 * rng.standard_normal(both.theta.shape[0]), np.zeros(M2))
        elif what == 5 and both.theta.shape[0] < 20:
            both.grow(both.theta.shape[0] + 1, M2)
        elif what == 6:
            both.read(np.eye(M2)[:, :3], None)
            kill(both.spread.shards, rng.integers(3))
            both.normal(rng.standard_normal(M2), None)
            both.combine(np.ones(3), np.ones((M2, 3)), np.ones(3))
        else:
            both.line(0.1 * rng.standard_normal(both.theta.shape[0]), rng.standard_normal(M2))
            kill(both.spread.shards, rng.integers(3))
            both.line_slope(0.4)
    ask_products(both, rng)
    ask_others(both, rng)
    assert both.spread.shards.restarts > 0


@dataclass(frozen=True)
class Ratings(BatchHandle):
    """Ratings that every process makes for itself, in place of a file."""

    holds = "ratings"

    def open(self):
        rng = np.random.default_rng(self.start)
        X = np.column_stack([rng.integers(size, size=len(self)) for size in (M1, M2)])
        return X, rng.poisson(2.0, len(self)).astype(float), None


def handles(count):
    following = None
    for k in reversed(range(count)):
        following = Ratings("made up", 10 * k, 10 * k + 10, None, k % 4, following)
    while following is not None:
        yield following
        following = following.following


@pytest.mark.parametrize("seed", range(4))
def test_workers_open_batches_and_may_die(seed):
    rng, both = np.random.default_rng(seed), Entries(3)
    both.theta.max_atoms = 8  # so that theta is written anew now and then
    for handle in handles(20):
        if rng.random() < 0.4:
            kill(both.spread.shards, rng.integers(3))
        X, y, _ = handle.open()
        shape = both.spread.open_handle(handle, False)
        assert shape == tuple(X.max(axis=0) + 1)
        z, w = both.here.append(*X.T, np.ones(10), y), np.ones(10)
        if rng.random() < 0.4:
            kill(both.spread.shards, rng.integers(3))
        loss, weight = both.spread.append_handle(handle.alone())
        assert (loss, weight) == (pytest.approx(w @ both.loss.value(z, y)), 10.0)
        both.move(rng, 0.2)
        if rng.random() < 0.3:
            both.merge(both.here.n_newest // 2)
        if rng.random() < 0.2:
            both.append(rng)
    ask_products(both, rng)
    ask_others(both, rng)
    assert both.spread.shards.restarts > 0


def test_a_batch_that_cannot_be_learned_is_refused_before_anything_changes():
    both = Entries(2, shape=(M1, 2))
    with pytest.raises(ValueError, match="column"):
        both.spread.open_handle(next(handles(1)), False)
    assert both.spread.counts.observations == 0


@pytest.mark.slow
def test_deaths_between_regressions():
    rng, both = np.random.default_rng(0), Entries(3)
    both.append(rng, 60)
    both.merge(40)
    both.begin_regressions()
    kill(both.spread.shards, 1)
    right = both.solve_rows(rng.standard_normal((M2, 2)), np.full(M1, 0.5))
    kill(both.spread.shards, 2)
    both.solve_columns(right, np.full(M2, 0.5))
    assert both.spread.shards.restarts == 2


@pytest.mark.parametrize(
    ("loss", "after", "lost"),
    every_pair(["square", "correntropy"], [None, 1, 2, 4], [False, True]),
)
def test_a_state_goes_on_anywhere(loss, after, lost, ray):
    rng, both = np.random.default_rng(0), Entries(3, loss)
    for k in range(4):
        both.append(rng, 20)
        both.move(rng, 0.1)
        both.merge(15)
        if k == 2:
            both.grow(M1 + 2, M2 + 1)
    both.set_offsets(0.1 * rng.standard_normal(M1 + 2), 0.1 * rng.standard_normal(M2 + 1))
    state = both.spread.state_dict()
    if lost:
        ray.shutdown()
        with pytest.raises(ClusterLost):
            both.spread.total_loss()
        state = both.spread.state_dict()
        ray.init()
    new = new_entries(Place(workers=after), both.theta, np.dtype(float), both.loss)
    new.load_state(state)
    both.pasts = [both.here, new]
    ask_others(both, rng)
    both.append(rng)
    both.merge(9)
    if after:
        kill(both.spread.shards, 0)
    both.move(rng, 0.1)
    ask_products(both, rng)
    ask_others(both, rng)


def test_a_state_holds_what_one_process_would():
    rng, both = np.random.default_rng(0), Entries(3)
    both.append(rng, 40)
    both.merge(25)
    both.move(rng)
    here, spread = (past.state_dict() for past in both.pasts)
    for name in ("row", "z", "c", "s"):
        np.testing.assert_allclose(spread["tail"][name], here["tail"][name])
    np.testing.assert_array_equal(spread["sorted"]["indptr"], here["sorted"]["indptr"])
    for name in ("z", "c", "s"):
        values = spread["sorted"][name].sum(), here["sorted"][name].sum()
        assert values[0] == pytest.approx(values[1])


def test_a_damaged_state_is_refused_before_a_worker_sees_it():
    rng, both = np.random.default_rng(0), Entries(2)
    both.append(rng, 40)
    state = both.here.state_dict()
    state["tail"]["col"][0] = M2
    with pytest.raises(ValueError, match="damaged"):
        both.spread.load_state(state)
    ask_others(both, rng)
