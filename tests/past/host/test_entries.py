"""Entries in this process's memory: moves that wait, interrupts, and merging in place."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw import losses
from onlinefw.atoms import RankOne
from onlinefw.iterates import LowRank
from onlinefw.objectives import ObservedEntries, merge_rule
from onlinefw.past.host import sorted_store
from onlinefw.past.host.entries import HostEntries
from onlinefw.past.host.entry_store import Unfinished
from onlinefw.sets import TraceNormBall

SHAPE = (12, 17)


def new_past(rng, dtype=float, loss=None, n=800, sorted_in=500):
    past = HostEntries(LowRank(SHAPE, dtype=dtype), dtype, loss or losses.Square())
    append(past, rng, n)
    past.merge(sorted_in)
    return past


def append(past, rng, n):
    rows, cols = (rng.integers(size, size=n) for size in SHAPE)
    past.append(rows, cols, rng.uniform(0.5, 2.0, n), rng.standard_normal(n))


def move(past, rng, step=0.3):
    u, v = (rng.standard_normal(n) for n in SHAPE)
    past.theta.move(RankOne(u, 1.0, v), step)
    past.move(1.0 - step, step * u, v)


def predictions(past):
    state = past.state_dict()
    return np.concatenate((state["sorted"]["z"], state["tail"]["z"]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("how", ["a merge", "a read", "a state", "another move", "the loss"])
def test_it_makes_no_difference_to_the_last_bit_what_carries_a_move_out(dtype, how):
    """So neither a certificate nor a checkpoint changes anything that follows."""
    pasts = [new_past(np.random.default_rng(0), dtype) for _ in range(2)]
    for k, past in enumerate(pasts):
        rng = np.random.default_rng(1)
        move(past, rng)
        append(past, rng, 30)  # these need not follow
        if k == 0:
            if how == "a merge":
                past.merge(0)
            elif how == "a read":
                past.read(rng.standard_normal((SHAPE[1], 8)), None)
            elif how == "a state":
                past.state_dict()
            elif how == "the loss":
                past.total_loss()
        move(past, np.random.default_rng(2), 0.4)
        append(past, np.random.default_rng(3), 10)
        past.read(np.eye(SHAPE[1])[:, :8], None)
    np.testing.assert_array_equal(*(predictions(past) for past in pasts))


def test_a_certificate_changes_nothing_to_the_last_bit(rng, monkeypatch):
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", 100)
    asked, unasked = (
        ofw.OnlineFrankWolfe(ObservedEntries(SHAPE), TraceNormBall(9.0)) for _ in range(2)
    )
    for _ in range(60):
        X = np.column_stack([rng.integers(n, size=20) for n in SHAPE])
        y = rng.standard_normal(20)
        assert repr(asked.observe(X, y)) == repr(unasked.observe(X, y))
        asked.certificate()
        asked.state_dict()
    one, other = (learner.state_dict()["objective"] for learner in (asked, unasked))
    assert one.pop("certificate_reads") > other.pop("certificate_reads") == 0
    np.testing.assert_equal(one, other)


def test_a_past_that_was_not_told_of_a_move_finds_out(rng):
    past = new_past(rng)
    past.theta.move(RankOne(rng.standard_normal(12), 2.0, rng.standard_normal(17)), 0.5)
    for _ in range(2):  # told of the second one only
        np.testing.assert_allclose(predictions(past), expected_predictions(past), atol=1e-12)
        past.theta.shrink(0.5)
        move(past, rng)


def expected_predictions(past):
    state = past.state_dict()
    column = np.argsort(state["rank"])
    held, tail = state["sorted"], state["tail"]
    rows = np.repeat(np.arange(SHAPE[0]), np.diff(held["indptr"]))
    dense = past.theta.dense()
    sorted_in, newest = dense[rows, column[held["col"]]], dense[tail["row"], column[tail["col"]]]
    return np.concatenate((sorted_in, newest))


class Interrupt(Exception):
    """Raised in the middle of anything."""


def interrupted(act, at):
    """Run a function and raise at the given line of onlinefw; return whether it came so far."""
    lines = 0

    def local(frame, event, arg):
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == at:
                raise Interrupt
        return local

    def trace(frame, event, arg):
        return local if "onlinefw" in frame.f_code.co_filename else None

    sys.settrace(trace)
    try:
        act()
    except Interrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), at=st.integers(1, 400), in_place=st.booleans())
def test_an_interrupt_leaves_the_state_of_before_or_after(seed, at, in_place):
    """At whichever line: what came is there or not, and predictions are those of theta."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_rule, "SHORTEST_TAIL", 40)
        patch.setattr(sorted_store, "MERGED_AT_ONCE", 20 if in_place else 2**24)
        objective = ObservedEntries((3, 4), dtype=float, growing=True)
        ball, came = TraceNormBall(5.0), []
        for k in range(6):
            m1, m2 = 3 + k, 4 + k
            X = np.column_stack((rng.integers(m1, size=25), rng.integers(m2, size=25)))
            y = rng.standard_normal(25)
            before = objective.n_observations

            def play(X=X, y=y, k=k):
                objective.add(objective.check(X, y))
                objective.move(ball.lmo(objective.gradient()), 2 / (k + 2))

            cut = interrupted(play, at if k % 2 else 10**9)
            assert objective.n_observations in ((before, before + 25) if cut else (before + 25,))
            if objective.n_observations > before:
                came.append((X, y))
        X, y = (np.concatenate(parts) for parts in zip(*came, strict=True))
        assert objective.total_weight == len(y)
        theta = np.asarray(objective.theta)
        at_entries = theta[X[:, 0], X[:, 1]]
        assert objective.value() == pytest.approx(np.mean((at_entries - y) ** 2) / 2)
        gradient = np.zeros(objective.shape)
        np.add.at(gradient, (X[:, 0], X[:, 1]), (at_entries - y) / len(y))
        np.testing.assert_allclose(objective.gradient().toarray(), gradient, atol=1e-9)
        state = objective.state_dict()
        again = ObservedEntries.from_state(state)  # and is whole
        assert again.value() == pytest.approx(objective.value())


def test_a_store_merged_in_place_is_the_old_one_until_it_is_the_new_one(rng, monkeypatch):
    monkeypatch.setattr(sorted_store, "MERGED_AT_ONCE", 100)
    past, reference = (new_past(np.random.default_rng(0), n=800, sorted_in=0) for _ in range(2))
    change = past._store.merged(500, past.sums_repeats)
    assert isinstance(change, Unfinished)
    past._store = change  # interrupted before
    assert (past.n_sorted, past.n_newest) == (0, 800)
    change.finish()  # interrupted after
    assert past.n_newest == 300
    monkeypatch.setattr(sorted_store, "MERGED_AT_ONCE", 2**24)
    reference.merge(500)
    for one in (past, reference):
        one.read(np.eye(SHAPE[1])[:, :8], None)
    np.testing.assert_allclose(past.dense_slopes(), reference.dense_slopes(), atol=1e-12)
    append(past, np.random.default_rng(4), 50)
    append(reference, np.random.default_rng(4), 50)
    assert past.total_loss() == pytest.approx(reference.total_loss())
    assert past.n_newest == 350
