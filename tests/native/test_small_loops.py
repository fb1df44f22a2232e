"""Short loops against plain numpy: products, entries of a low-rank matrix, the extent of a batch.

The best of many scores are in ``tests/estimators/test_best_items.py``.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw._threads import use_threads
from onlinefw.iterates import LowRank
from onlinefw.iterates.factored import factor_entries
from onlinefw.linalg import row_products
from onlinefw.objectives.entries_batch import _extent

REAL = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 2**32 - 1)


@given(
    seed=seeds,
    rows=st.integers(0, 4),
    columns=st.integers(0, 75),
    models=st.integers(1, 3),
    dtype=st.sampled_from([np.float32, np.float64, np.uint8, np.int64, bool]),
)
def test_products_of_rows_are_those_of_numpy(seed, rows, columns, models, dtype):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (rows, columns)).astype(dtype)
    thetas = rng.integers(-9, 10, (columns, models)).astype(float)
    # small integers: no rounding, whatever the order of the terms
    np.testing.assert_array_equal(row_products(X, thetas), X.astype(float) @ thetas)
    real = rng.standard_normal((rows, columns)), rng.standard_normal((columns, models))
    np.testing.assert_allclose(row_products(*real), real[0] @ real[1], atol=1e-12)


def test_a_row_has_the_same_products_whatever_is_beside_it_or_how_it_is_stored(rng):
    X, theta = rng.standard_normal((40, 33)), rng.standard_normal((33, 2))
    all_rows = row_products(X, theta)
    frozen = X[7:8].copy()
    frozen.flags.writeable = False
    for other in (X[7:8], frozen, np.asfortranarray(X)[7:8], np.repeat(X, 2, axis=1)[7:8, ::2]):
        np.testing.assert_array_equal(row_products(other, theta)[0], all_rows[7])


@given(
    seed=seeds, terms=st.integers(0, 40), spare=st.integers(0, 9), n=st.integers(0, 9), dtype=REAL
)
def test_entries_of_a_low_rank_matrix_are_sums_of_products(seed, terms, spare, n, dtype):
    rng = np.random.default_rng(seed)
    left, right = (rng.integers(-4, 5, (m, terms + spare)).astype(dtype) for m in (5, 7))
    weights = rng.integers(-4, 5, terms).astype(dtype)
    rows, cols = rng.integers(0, 5, n), rng.integers(0, 7, n)
    dense = (left[:, :terms] * weights) @ right[:, :terms].T
    found = factor_entries(left, weights, right, rows, cols)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, dense[rows, cols])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_share_the_entries_of_a_learned_matrix(dtype, threads, rng):
    factors = rng.standard_normal((300, 11)), rng.random(11), rng.standard_normal((200, 11))
    theta = LowRank.from_factors(*(x.astype(dtype) for x in factors))
    rows, cols = rng.integers(0, 300, 20_000), rng.integers(0, 200, 20_000)
    before = use_threads(threads)
    try:
        found = theta.entries(rows, cols)
    finally:
        use_threads(before)
    expected = theta.dense().astype(float)[rows, cols]
    np.testing.assert_allclose(found, expected, rtol=0, atol=100 * np.finfo(dtype).eps)


@given(
    seed=seeds,
    n=st.integers(1, 40),
    odd=st.sampled_from([0.0, -0.0, np.nan, np.inf, -np.inf, -1e300]),
    low=st.sampled_from([-3, 0, 2**40]),
)
def test_the_extent_of_a_batch_is_that_of_numpy(seed, n, odd, low):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(low, low + 50, (n, 2)), rng.standard_normal(n)
    y[rng.integers(n)] = odd
    largest = np.inf if np.isnan(odd) else np.abs(y).max()
    expected = (X.min(), *X.max(axis=0), largest)
    assert _extent(X, y) == expected
    assert _extent(np.asfortranarray(X), np.repeat(y, 2)[::2]) == expected
