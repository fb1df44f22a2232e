"""Normal equations of some rows and columns, and their solutions, against dense computations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinefw.iterates import LowRank
from onlinefw.losses import Square
from onlinefw.past import some_regressions
from onlinefw.past.host.listed_entries import ListedEntries, listed_state, sorted_state
from onlinefw.past.some_regressions import Other, solved

SHAPE = 7, 5


def entries(rng, n, weighted):
    rows, cols = (rng.integers(m, size=n) for m in SHAPE)
    w = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    return rows, cols, w, rng.standard_normal(n)


def past_of(data):
    past = ListedEntries(LowRank(SHAPE), float, Square())
    past.append(*data)
    return past


def other_side(rng, size, models, rank):
    """Factors that are padded, as models have them."""
    factors = np.zeros((size, models, rank + 3))
    factors[:, :, :rank] = rng.standard_normal((size, models, rank))
    offsets = rng.standard_normal((size, models))
    return Other(rank, factors.reshape(size, -1), offsets)


def dense(data, of_rows, k, other, m, mean):
    """A and b of one row or column, entry by entry."""
    rank = other.rank
    A, b = np.zeros((rank + 1, rank + 1)), np.zeros(rank + 1)
    factors, offsets = other.of(m)
    for i, j, w, y in zip(*data, strict=True):
        mine, its = (i, j) if of_rows else (j, i)
        if mine == k:
            h = np.append(factors[its], 1.0)
            A += w * np.outer(h, h)
            b += w * (y - mean - offsets[its]) * h
    return A, b


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(0, 40),
    models=st.integers(1, 3),
    rank=st.integers(1, 9),
    weighted=st.booleans(),
    of_rows=st.booleans(),
    biased=st.booleans(),
)
def test_equations_and_solutions_are_those_of_a_dense_computation(
    seed, n, models, rank, weighted, of_rows, biased
):
    rng = np.random.default_rng(seed)
    data = entries(rng, n, weighted)
    own, its = SHAPE if of_rows else SHAPE[::-1]
    other, mean = other_side(rng, its, models, rank), rng.standard_normal()
    which = rng.permutation(own)[: rng.integers(1, own + 1)]
    ridges = rng.uniform(0.5, 2.0, (models, 3))
    if not biased:
        ridges[:, 2] = np.inf
    past = past_of(data)
    packed = past.equations(of_rows, which, other, mean)
    found = past.solve_some(of_rows, which, other, mean, ridges)
    for q, k in enumerate(which):
        for m in range(models):
            A, b = dense(data, of_rows, k, other, m, mean)
            upper = np.triu_indices(rank + 1, 0, rank + 2)
            np.testing.assert_allclose(packed[q, m], np.column_stack((A, b))[upper], atol=1e-9)
            free = rank + biased
            penalty = np.append(np.full(rank, ridges[m, 0] + ridges[m, 1] * A[rank, rank]), 0.0)
            penalty[rank] = ridges[m, 2]
            A, b = (A + np.diag(penalty))[:free, :free], b[:free]
            np.testing.assert_allclose(found[q, m, :free], np.linalg.solve(A, b), atol=1e-9)
            assert biased or found[q, m, rank] == 0.0


def test_many_regressions_are_solved_in_pieces(rng, monkeypatch):
    equations = past_of(entries(rng, 30, True)).equations(
        True, np.arange(7), other_side(rng, 5, 2, 3), 0.0
    )
    ridges = np.ones((2, 3))
    expected = solved(equations, 3, ridges)
    monkeypatch.setattr(some_regressions, "AT_ONCE", 1)
    np.testing.assert_array_equal(solved(equations, 3, ridges), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_lists_become_sorted_entries_and_back(rng, weighted):
    data = entries(rng, 60, weighted)
    past = past_of(data)
    past.theta.put(rng.standard_normal((7, 2)), np.ones(2), rng.standard_normal((5, 2)))
    past.set_offsets(rng.standard_normal(7), rng.standard_normal(5))
    state = sorted_state(past.state_dict(), past.theta, past.dtype, past.loss)
    again = ListedEntries(past.theta, float, Square())
    again.load_state(listed_state(state, float, Square()))
    assert again.counts == past.counts and len(again) <= len(past)
    assert again.total_loss() == pytest.approx(past.total_loss())
    other = other_side(rng, 5, 2, 3)
    found, expected = (p.equations(True, np.arange(7), other, 0.3) for p in (again, past))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    rows = np.repeat(np.arange(7), np.diff(state["sorted"]["indptr"]))
    cols = np.argsort(state["rank"])[state["sorted"]["col"]]
    np.testing.assert_allclose(state["sorted"]["z"], past.theta.at(rows, cols))
