"""Ridge regressions by row, against dense solves, and the transpose that column solves need."""

import numpy as np
import pytest
from scipy import sparse

from onlinefw._threads import balanced_blocks
from onlinefw.kernels.ridge import PANEL, ridge_rows
from onlinefw.kernels.transpose import transpose

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-11}


def problem(rng, dtype, lengths, n_cols, weighted):
    """Random entries with rows of the given lengths; columns repeat within a row."""
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    n = indptr[-1]
    col = rng.integers(0, n_cols, n).astype(np.uint32)
    weight = (rng.random(n) + 0.5 if weighted else np.empty(0)).astype(dtype)
    return indptr, col, weight, rng.standard_normal(n).astype(dtype)


def dense_solutions(indptr, col, weight, target, other, ridge):
    """The same, one numpy solve a row in double precision."""
    weight = weight if weight.size else np.ones(target.size)
    out = np.zeros((indptr.size - 1, other.shape[1]))
    for i in range(indptr.size - 1):
        k = slice(indptr[i], indptr[i + 1])
        h = other[col[k]].astype(float)
        gram = (h.T * weight[k].astype(float)) @ h
        out[i] = np.linalg.solve(
            gram + ridge[i] * np.eye(h.shape[1]), h.T @ target[k].astype(float)
        )
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 7, 8, 10, 16, 33])
def test_every_row_is_the_ridge_regression_on_its_entries(dtype, weighted, rank, rng):
    lengths = [5, 0, 1, PANEL, PANEL + 1, 3 * PANEL + 7, 0, 2, 0]
    data = problem(rng, dtype, lengths, 40, weighted)
    other = rng.standard_normal((40, rank)).astype(dtype)
    ridge = rng.random(len(lengths)) + 0.5
    out = np.full((len(lengths), rank), np.nan, dtype)
    ridge_rows(balanced_blocks(data[0]), *data, other, ridge, out)
    expected = dense_solutions(*data, other, ridge)
    np.testing.assert_allclose(
        out, expected, rtol=0, atol=TOLERANCE[dtype] * np.abs(expected).max()
    )
    assert not out[[1, 6, 8]].any()  # rows without entries


def test_the_result_does_not_depend_on_how_rows_are_shared_out(rng):
    data = problem(rng, np.float32, rng.integers(0, 30, 50), 20, True)
    other, ridge = rng.standard_normal((20, 5)).astype(np.float32), np.ones(50)
    outs = [np.empty((50, 5), np.float32) for _ in range(3)]
    for blocks, out in zip(([0, 50], [0, 0, 31, 50], [0, 10, 20, 50]), outs, strict=True):
        ridge_rows(np.array(blocks), *data, other, ridge, out)
        np.testing.assert_array_equal(out, outs[0])


def test_a_long_row_in_single_precision_is_summed_in_double(rng):
    data = problem(rng, np.float32, [200_000], 50, False)
    other = (rng.standard_normal((50, 4)) + 10.0).astype(np.float32)
    out = np.empty((1, 4), np.float32)
    ridge_rows(balanced_blocks(data[0]), *data, other, np.ones(1), out)
    expected = dense_solutions(*data, other, np.ones(1))
    np.testing.assert_allclose(out, expected, rtol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("blocks", [[0, 6], [0, 2, 2, 6]])
def test_the_transpose_lists_every_column_in_the_order_of_rows(weighted, blocks, rng):
    indptr, col, weight, target = problem(rng, np.float64, [4, 0, 7, 1, 0, 9], 5, weighted)
    rows = np.repeat(np.arange(6), np.diff(indptr))
    order = np.argsort(col, kind="stable")
    t_indptr, row, t_weight, t_target = transpose(np.array(blocks), indptr, col, 5, weight, target)
    np.testing.assert_array_equal(np.diff(t_indptr), np.bincount(col, minlength=5))
    np.testing.assert_array_equal(row, rows[order])
    np.testing.assert_array_equal(t_target, target[order])
    np.testing.assert_array_equal(t_weight, weight[order] if weighted else weight)


def test_rows_and_columns_in_turn_lower_the_penalised_squares(rng):
    """What the two are for: alternating least squares."""
    dense = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
    kept = sparse.csr_array(np.where(rng.random(dense.shape) < 0.5, dense, 0.0))
    indptr, col = kept.indptr.astype(np.int64), kept.indices.astype(np.uint32)
    blocks, ones = balanced_blocks(indptr), np.empty(0)
    t_indptr, row, _, t_target = transpose(blocks, indptr, col, 20, ones, kept.data)
    left, right = np.zeros((30, 3)), rng.standard_normal((20, 3))
    values = []
    for _ in range(40):
        ridge_rows(blocks, indptr, col, ones, kept.data, right, np.full(30, 0.01), left)
        ridge_rows(
            balanced_blocks(t_indptr), t_indptr, row, ones, t_target, left, np.full(20, 0.01), right
        )
        fit = ((left @ right.T)[kept.nonzero()] - kept.data) ** 2
        values.append(fit.sum() + 0.01 * ((left**2).sum() + (right**2).sum()))
    assert np.all(np.diff(values) <= 1e-12)
    assert fit.mean() < 1e-3 * np.mean(kept.data**2)
