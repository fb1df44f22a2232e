"""Queues, held-out rows, scores and scales: the pieces of a session."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import mean_squared_error, r2_score

from onlinefw.estimators.row_queue import RowQueue
from onlinefw.estimators.scaling import Scaling
from onlinefw.fitting.held_out import held_out
from onlinefw.fitting.scores import ErrorRate, SquaredError


@given(st.lists(st.integers(0, 7), max_size=12), st.integers(1, 9))
def test_batches_are_the_rows_in_order_whatever_the_parts(parts, size):
    queue, start = RowQueue(), 0
    for n in parts:
        rows = np.arange(start, start + n)
        queue.put(rows, sparse.csr_matrix(rows[:, None].astype(float)))
        start += n
    taken = []
    while len(queue):
        dense, sparse_rows = queue.take(size)
        assert len(dense) == min(size, start - len(taken))
        assert sparse_rows.toarray()[:, 0].tolist() == dense.tolist()
        taken += dense.tolist()
    assert taken == list(range(start))


def test_looking_removes_nothing():
    queue = RowQueue()
    queue.put(np.arange(3))
    queue.put(np.arange(3, 5))
    queue.take(1)
    assert queue.look()[0].tolist() == [1, 2, 3, 4]
    assert len(queue) == 4


@given(st.integers(0, 10**12), st.integers(1, 50), st.integers(0, 50), st.integers(0, 9))
def test_which_rows_are_held_out_depends_on_their_numbers_alone(first, n, cut, seed):
    whole = held_out(first, n, 0.3, seed)
    cut = min(cut, n)
    parts = [held_out(first, cut, 0.3, seed), held_out(first + cut, n - cut, 0.3, seed)]
    assert whole.tolist() == np.concatenate(parts).tolist()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.9])
def test_about_the_share_that_was_asked_for_is_held_out(share):
    n = 200_000
    held = int(held_out(0, n, share).sum())
    assert abs(held - share * n) <= 5 * np.sqrt(share * (1 - share) * n)


def test_another_seed_holds_out_other_rows():
    assert (held_out(0, 1000, 0.5, 0) != held_out(0, 1000, 0.5, 1)).mean() > 0.3


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        held_out(0, 1, share)


def test_the_running_squared_error_is_that_of_all_rows(rng):
    y, z = 1e6 + rng.standard_normal(1000), 1e6 + rng.standard_normal(1000)
    score = SquaredError()
    for part in np.array_split(np.arange(1000), 7):
        score.add(y[part], z[part])
    assert score.value == pytest.approx(mean_squared_error(y, z))
    assert score.summary()["r2"] == pytest.approx(r2_score(y, z))


def test_scores_without_rows_say_so():
    assert SquaredError().summary() == {"rows": 0, "mse": None, "rmse": None, "r2": None}
    assert ErrorRate().summary()["error"] is None
    assert np.isnan(SquaredError().value) and np.isnan(ErrorRate().value)


def test_scaled_rows_have_mean_0_and_spread_1_and_coefficients_go_back(rng):
    X = rng.standard_normal((50, 3)) * [1.0, 100.0, 0.0] + [0.0, 5.0, 7.0]
    scaling = Scaling.of(X)
    scaled = scaling.apply(X)
    assert np.allclose(scaled.mean(axis=0), 0.0, atol=0.01)  # to two digits
    assert np.allclose(scaled.std(axis=0), [1.0, 1.0, 0.0], atol=0.02)
    coef, intercept = scaling.undo(np.array([1.0, -2.0, 3.0]), 0.5)
    assert np.allclose(X @ coef + intercept, scaled @ [1.0, -2.0, 3.0] + 0.5)


def test_scales_are_the_same_to_the_last_bit_for_weights_and_for_repeated_rows(rng):
    X, w = rng.standard_normal((50, 3)) + 5.0, rng.integers(1, 4, 50)
    weighted = Scaling.of(X, w.astype(float))
    repeated = Scaling.of(rng.permutation(np.repeat(X, w, axis=0)))
    np.testing.assert_array_equal(weighted.center, repeated.center)
    np.testing.assert_array_equal(weighted.scale, repeated.scale)


def test_an_empty_chunk_changes_no_score():
    score = SquaredError()
    score.add([], [])
    assert score.n == 0 and np.isnan(score.value)
    score.add([1.0, 3.0], [0.0, 3.0])
    before = score.value
    score.add([], [])
    assert score.value == before
