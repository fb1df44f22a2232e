"""Progressive scores: each observation is predicted, then learned."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.evaluate import Progress, progressive


def ratings(n=300):
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(0, 20, n), rng.integers(0, 15, n)))
    return X, X[:, 0] % 3 + 0.1 * rng.standard_normal(n)


def test_predictions_and_errors_are_those_of_learn():
    X, y = ratings()
    one, two = (ofw.FrankWolfeMatrixCompletion(corrective="factors") for _ in range(2))
    progress = progressive(one, X, y)
    np.testing.assert_array_equal(progress.predicted, two.learn(X, y))
    np.testing.assert_array_equal(progress.errors, (progress.predicted - y) ** 2)
    assert progress.score(0.5) == pytest.approx(progress.errors[150:].mean())


def test_observations_are_taken_in_the_order_of_time():
    X, y = ratings()
    times = np.random.default_rng(1).permutation(300)
    one, two = (ofw.FrankWolfeMatrixCompletion(corrective="factors") for _ in range(2))
    order = np.argsort(times)
    found = progressive(one, X, y, times)
    np.testing.assert_array_equal(found.predicted, two.learn(X[order], y[order]))
    np.testing.assert_array_equal(found.times, np.arange(300))
    with pytest.raises(ValueError, match="300"):
        progressive(one, X, y, times[:5])


def test_rows_and_columns_are_counted_before_each_observation():
    X, y = ratings()
    progress = progressive(ofw.FrankWolfeMatrixCompletion(corrective="factors"), X, y)
    for k in range(300):
        assert progress.rows_before[k] == np.count_nonzero(X[:k, 0] == X[k, 0])
        assert progress.columns_before[k] == np.count_nonzero(X[:k, 1] == X[k, 1])
    first = progress.seen("rows", 0, 9)
    assert np.count_nonzero(first) == np.minimum(np.bincount(X[:, 0]), 10).sum()
    assert progress.score(where=first) == pytest.approx(progress.errors[first].mean())


def test_windows_have_equally_many_observations():
    errors, before = np.arange(10.0), np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    progress = Progress(errors, errors, errors, np.arange(10), before, np.arange(10))
    table = progress.windows(3)
    assert table["n"].tolist() == [4, 3, 3]
    assert table["until"].tolist() == [3, 6, 9]
    np.testing.assert_allclose(table["error"], [1.5, 5.0, 8.0])
    np.testing.assert_allclose(table["new"], [0.5, np.nan, np.nan])
    np.testing.assert_allclose(table["known"], [2.5, 5.0, 8.0])


def test_a_classifier_is_scored_by_wrong_labels():
    X = np.random.default_rng(0).standard_normal((300, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    progress = progressive(ofw.FrankWolfeClassifier(radius=5.0), X, y, batch_size=10)
    assert set(progress.errors.tolist()) <= {0.0, 1.0}
    assert progress.predicted[0] == "no"
    assert progress.score(0.5) < 0.1
    with pytest.raises(ValueError, match="rows"):
        progress.seen("rows")


def test_a_plot_has_a_line_for_all_known_and_new():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = ratings()
    progress = progressive(ofw.FrankWolfeMatrixCompletion(corrective="factors"), X, y)
    axes = ofw.plots.plot_progress(progress, windows=5)
    assert len(axes.lines) == 3
    assert axes.lines[0].get_ydata().size == 5
    plt.close(axes.figure)


def test_observations_without_weight_have_no_score():
    X, y = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]), np.array([1.0, 2.0, 30.0, 2.0])
    progress = progressive(
        ofw.FrankWolfeMatrixCompletion(), X, y, sample_weight=np.array([1.0, 1.0, 0.0, 1.0])
    )
    assert progress.score() == np.mean(progress.errors[[0, 1, 3]])
    assert np.isnan(progress.score(where=[False, False, True, False]))
