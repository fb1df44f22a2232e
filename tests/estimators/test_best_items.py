"""The best items are those that sorting all scores would give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw._threads import use_threads
from onlinefw.estimators import best_items as ranking


def sorted_scores(scores, n):
    """All scores, the best first and equal ones in their order, as a plain sort has them."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > -np.inf][:n]
    return order, scores[order]


@given(
    seed=st.integers(0, 10**6),
    users=st.integers(1, 7),
    items=st.integers(1, 40),
    n=st.integers(1, 50),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_best_for_many_users_and_for_one_are_those_of_a_sort(seed, users, items, n, dtype):
    rng = np.random.default_rng(seed)
    # Small integers, so that products are exact and many scores are equal.
    U, V = (rng.integers(-2, 3, (k, 3)).astype(dtype) for k in (users, items))
    offsets = np.where(rng.random(items) < 0.1, -np.inf, rng.integers(-2, 3, items)).astype(dtype)
    taken = [np.flatnonzero(rng.random(items) < 0.2) for _ in range(users)]
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in taken])))
    found, scores = ranking.best_items(U, V, offsets, n, (indptr, np.concatenate(taken)))
    assert found.shape == scores.shape == (users, n)
    for k in range(users):
        all_scores = V @ U[k] + offsets
        expected, values = sorted_scores(all_scores, n)
        one = ranking.best_items_of_one(U[k], V, offsets, n)
        np.testing.assert_array_equal(one[0], expected)
        np.testing.assert_array_equal(one[1], values)
        all_scores[taken[k]] = -np.inf
        expected, values = sorted_scores(all_scores, n)
        np.testing.assert_array_equal(found[k, : expected.size], expected)
        np.testing.assert_array_equal(scores[k, : expected.size], values)
        assert (found[k, expected.size :] == -1).all()
        assert (scores[k, expected.size :] == -np.inf).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_list_is_shared_by_threads(threads, rng):
    V, u = rng.standard_normal((50_000, 8)), rng.standard_normal(8)
    before = use_threads(threads)
    try:
        items, scores = ranking.best_items_of_one(u, V, np.zeros(len(V)), 20)
        many, _ = ranking.best_items(np.tile(u, (3, 1)), V, np.zeros(len(V)), 20)
    finally:
        use_threads(before)
    np.testing.assert_array_equal(items, np.argsort(-(V @ u))[:20])
    np.testing.assert_allclose(scores, np.sort(V @ u)[::-1][:20])
    np.testing.assert_array_equal(many, np.tile(items, (3, 1)))
