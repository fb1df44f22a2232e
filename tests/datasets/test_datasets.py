"""Synthetic problems have the shapes and statistics that they claim."""

import numpy as np
import pytest

from onlinefw.datasets import (
    make_classifier,
    make_lasso,
    make_matrix_completion,
    make_movielens_like,
    make_single_pixel,
)


def test_the_lasso_is_the_papers():
    problem = make_lasso(seed=4)
    assert problem.A.shape == (80, 300)
    assert np.count_nonzero(problem.theta) == 30
    residuals = np.array([y - A @ problem.theta for A, y in problem.rounds(200)])
    assert residuals.std() == pytest.approx(10.0, rel=0.02)
    assert problem.expected_excess(problem.theta) == 0.0
    shifted = problem.theta + np.eye(300)[0]
    expected = np.sum(problem.A[:, 0] ** 2) / 2
    assert problem.expected_excess(shifted) == pytest.approx(expected)


def test_the_matrix_is_low_rank_with_the_stated_noise():
    data = make_matrix_completion((50, 80), rank=3, n_observations=40_000, seed=1)
    truth = data.left @ data.right.T
    assert np.linalg.matrix_rank(truth) == 3
    np.testing.assert_allclose(data.mean(data.rows, data.cols), truth[data.rows, data.cols])
    assert (data.values - truth[data.rows, data.cols]).var() == pytest.approx(3.0, rel=0.05)
    counts = np.bincount(data.rows, minlength=50)
    assert counts.min() > 600  # drawn uniformly


@pytest.mark.parametrize("flip", [0.0, 0.25])
def test_the_stated_share_of_training_labels_is_flipped(flip):
    data = make_classifier((6, 5), rank=2, n_train=2000, n_test=500, flip=flip, seed=2)
    assert np.linalg.matrix_rank(data.theta) == 2

    def wrong(X, y):
        return np.mean(np.sum(X * data.theta, axis=(1, 2)) * y < 0)

    assert wrong(data.X_train, data.y_train) == pytest.approx(flip)
    assert wrong(data.X_test, data.y_test) == 0.0
    assert set(np.unique(data.y_train)) == {-1.0, 1.0}


def test_a_share_above_one_is_refused():
    with pytest.raises(ValueError, match=r"1\.5"):
        make_classifier(flip=1.5)


def test_the_camera_reads_masked_light():
    camera = make_single_pixel(size=32, n_measurements=400, noise=0.5)
    assert set(np.unique(camera.masks)) == {0.0, 1.0}
    residual = camera.y - camera.masks @ camera.image.ravel()
    assert residual.std() == pytest.approx(0.5, rel=0.15)
    assert 0.05 < camera.image.mean() < 0.3  # a sparse image
    np.testing.assert_array_equal(camera.picture(camera.image.ravel()), camera.image)


def test_movielens_like_ratings():
    data = make_movielens_like(2000, 500, 60_000, seed=3)
    keys = data.rows.astype(np.int64) * 500 + data.cols
    assert np.unique(keys).size == 60_000
    assert np.abs(np.corrcoef(np.arange(60_000), keys)[0, 1]) < 0.02  # random order
    assert set(np.unique(data.values)) <= set(np.arange(0.5, 5.5, 0.5))
    assert data.values.mean() == pytest.approx(3.5, abs=0.1)
    popularity = np.sort(np.bincount(data.cols, minlength=500))[::-1]
    assert popularity[:50].sum() > 0.3 * 60_000  # some columns are popular
    error = data.values - data.mean(data.rows, data.cols)
    assert error.var() == pytest.approx(0.55, abs=0.06)  # 0.75^2 noise, rounding, clipping


def test_movielens_like_biases_are_optional():
    plain = make_movielens_like(2000, 500, 60_000, seed=3)
    biased = make_movielens_like(2000, 500, 60_000, biases=True, seed=3)
    assert plain.row_bias is None
    assert biased.row_bias.std() == pytest.approx(0.4, rel=0.1)
    assert biased.values.var() > plain.values.var() + 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: next(iter(make_lasso(20, 30, seed=seed).rounds(1)))[1],
        lambda seed: make_matrix_completion((9, 9), 2, 50, seed=seed).values,
        lambda seed: make_classifier((3, 3), 1, 20, 5, seed=seed).X_train,
        lambda seed: make_single_pixel(8, 20, seed=seed).y,
        lambda seed: make_movielens_like(50, 40, 200, seed=seed).values,
    ],
)
def test_the_same_seed_gives_the_same_data(make):
    np.testing.assert_array_equal(make(5), make(5))
    assert not np.array_equal(make(5), make(6))


def test_too_many_distinct_entries_are_refused():
    with pytest.raises(ValueError, match="more than half"):
        make_movielens_like(10, 10, 80)
