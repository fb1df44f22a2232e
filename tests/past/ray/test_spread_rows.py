"""Rows spread over workers answer every verb as rows in one process do, also after deaths."""

import numpy as np
import pytest
from scipy import sparse

from onlinefw.atoms import DenseAtom, SignedCoordinate
from onlinefw.iterates import DenseIterate
from onlinefw.losses import Logistic, Square
from onlinefw.past.place import Place, new_rows
from onlinefw.past.ray.errors import ClusterLost

from ...pairs import every_pair
from .both import Both
from .in_process import kill, ray_in_process

N = 6


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


LOSSES = (Square(), Logistic())


class Rows(Both):
    """Rows with a model for each loss."""

    tolerance = 1e-6  # bytes are multiplied in single precision

    def __init__(self, workers, losses=LOSSES):
        super().__init__(new_rows(Place()), new_rows(Place(workers=workers)))
        self.iterates = [DenseIterate((N,)) for _ in losses]
        for past in self.pasts:
            for loss, iterate in zip(losses, self.iterates, strict=True):
                past.add_model(loss, iterate, len(losses) == 1)

    def in_order(self, verb, answer):
        return np.sort(np.column_stack(answer), axis=0) if verb == "residuals" else answer

    def append(self, rng, n=5, kind="dense", w=None):
        X = rows_of(rng, n, kind)
        Z = self.here.products(X, np.column_stack([i.theta for i in self.iterates]))
        np.testing.assert_allclose(
            self.spread.products(X, np.column_stack([i.theta for i in self.iterates])), Z
        )
        y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        w = rng.integers(0, 3, n).astype(float) if w is None else w
        for past in self.pasts:
            past.append(X, Z, np.column_stack([y] * len(self.iterates)), w)

    def move(self, m, atom, step):
        self.iterates[m].move(atom, step)
        for past in self.pasts:
            past.move(m, atom, step)


def rows_of(rng, n, kind):
    if kind == "bytes":
        return rng.integers(0, 5, (n, N), dtype=np.uint8)
    X = rng.standard_normal((n, N))
    return sparse.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0)) if kind == "sparse" else X


def ask_everything(both):
    chosen = np.array([1, 4])
    for m, b in ((0, 0.0), (1, 0.3)):
        for verb in ("total", "totals", "steepest"):
            getattr(both, verb)(m, b)
        for verb in ("limits", "residuals", "predictions"):
            getattr(both, verb)(m)
        both.second_order(m, chosen, b)
        both.line(m, DenseAtom(np.arange(N) / N), b)
        both.line_value(m, 0.4, b)
        both.line_slope(m, 0.4, b)
    both.gradients([0, 1], [0.0, 0.3])
    both.gradients([1], [0.3])
    both.gram_product(np.arange(N) / 3)
    assert len(both.spread) == len(both.here)


def change(both, m, t):
    chosen, change = np.array([0, 3]), np.array([0.2, -0.1])
    both.change(m, chosen, change)
    both.line_value(m, t, 0.1)
    both.iterates[m].shift(chosen, t * change)
    both.advance(m, t)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse", "bytes"])
def test_every_verb(workers, kind):
    rng, both = np.random.default_rng(0), Rows(workers)
    for k in range(5):
        both.append(rng, 3 + k, kind)
        both.move(0, SignedCoordinate(k, 2.0, (N,)), 0.5)
        both.move(1, DenseAtom(rng.standard_normal(N)), 0.3)
        change(both, 0, 0.5)
    ask_everything(both)
    both.refresh(0)
    both.refresh(1)
    ask_everything(both)
    both.weigh(np.array([0, 7, 11]), 0.0)
    both.weigh(np.array([13, 1, 6]), np.array([0.5, 2.0, 3.0]))
    both.rescale(2.0**-10)
    ask_everything(both)
    mask = rng.random(len(both.here)) < 0.6
    both.keep(mask)
    ask_everything(both)
    both.append(rng, 4, kind)
    ask_everything(both)


def test_some_models_go_on():
    rng, both = np.random.default_rng(0), Rows(2, losses=(Square(), Logistic(), Square()))
    both.append(rng)
    both.move(1, SignedCoordinate(1, 2.0, (N,)), 0.5)
    both.keep_models([2, 1])
    both.iterates = [both.iterates[2], both.iterates[1]]
    ask_everything(both)
    kill(both.spread.shards, 0)
    both.append(rng)
    ask_everything(both)


def test_workers_without_rows_and_of_wider_numbers():
    rng, both = np.random.default_rng(0), Rows(3)
    both.append(rng, kind="bytes")
    ask_everything(both)
    both.append(rng, kind="dense")
    both.append(rng, kind="bytes")
    both.append(rng, kind="sparse")
    ask_everything(both)
    assert both.spread.state_dict()["rows"]["data"].dtype == float
    both.keep(np.arange(len(both.here)) < 3)  # one worker has rows
    ask_everything(both)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_deaths_at_any_moment_change_nothing(seed, kind, monkeypatch):
    monkeypatch.setattr("onlinefw.past.ray.shards.MOST_WAITING", 5)
    rng, both = np.random.default_rng(seed), Rows(3)
    both.append(rng, kind=kind)
    for _ in range(25):
        if rng.random() < 0.4:
            kill(both.spread.shards, rng.integers(3))
        what = rng.integers(7)
        m = rng.integers(2)
        if what == 0:
            both.append(rng, kind=kind)
        elif what == 1:
            both.move(m, SignedCoordinate(int(rng.integers(N)), 2.0, (N,)), 0.5)
        elif what == 2:
            change(both, m, 0.7)
        elif what == 3:
            alive = np.flatnonzero(both.here.state_dict()["w"] > 0)
            both.weigh(alive[:2], 0.0)
        elif what == 4:
            both.rescale(0.25)
        elif what == 5:
            both.keep(np.arange(len(both.here)) >= min(3, len(both.here) - 4))
        else:
            both.line(m, DenseAtom(np.arange(N) / N), 0.1)
            kill(both.spread.shards, rng.integers(3))
            both.line_slope(m, 0.4, 0.1)
    ask_everything(both)
    assert both.spread.shards.restarts > 0


@pytest.mark.parametrize(
    ("kind", "after", "lost"),
    every_pair(["dense", "sparse", "bytes"], [None, 1, 2, 4], [False, True]),
)
def test_a_state_goes_on_anywhere(kind, after, lost, ray):
    rng, both = np.random.default_rng(0), Rows(3, losses=(Square(),))
    for k in range(4):
        both.append(rng, 4, kind)
        both.move(0, DenseAtom(rng.standard_normal(N)), 0.3)  # waits, for dense rows
        if k == 1:
            kill(both.spread.shards, 1)
            both.total(0, 0.0)
    expected, state = both.here.state_dict(), both.spread.state_dict()
    if lost:
        ray.shutdown()
        with pytest.raises(ClusterLost):
            both.spread.total(0, 0.0)
        state = both.spread.state_dict()
        ray.init()
    np.testing.assert_array_equal(state["w"], expected["w"])
    new = new_rows(Place(workers=after))
    new.add_model(Square(), both.iterates[0], True)
    new.load_state(state)
    both.pasts[1] = new
    both.gradients([0], [0.0])
    both.append(rng, 4, kind)
    both.predictions(0)
    both.keep(rng.random(len(both.here)) < 0.5)
    both.predictions(0)
    both.total(0, 0.0)


def test_what_waits_is_part_of_the_state():
    rng, both = np.random.default_rng(0), Rows(2, losses=(Square(),))
    for _ in range(3):
        both.append(rng)
    both.move(0, DenseAtom(rng.standard_normal(N)), 0.3)
    both.append(rng)
    for past in both.pasts:
        assert past.state_dict()["models"][0]["pending"]["count"] == 15
    kill(both.spread.shards, 0)
    both.spread.shards.ask("gram_product", [(np.ones(N),)] * 2)  # does not carry moves out
    state, expected = both.spread.state_dict(), both.iterates[0].theta
    assert state["models"][0]["pending"] is None
    np.testing.assert_allclose(state["models"][0]["z"], state["rows"]["data"] @ expected)
