"""Running global, row and column means, and observed entries that predict them besides theta."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.losses import Correntropy, Gaussian, Logistic, Poisson, Square
from onlinefw.objectives import ObservedEntries, RunningBiases, merge_rule
from onlinefw.sets import TraceNormBall

SHAPE = (9, 7)


def observations(rng, n, shape=SHAPE):
    X = np.column_stack([rng.integers(size, size=n) for size in shape])
    return X, rng.standard_normal(n) + X[:, 0] - 0.5 * X[:, 1], rng.uniform(0.2, 2.0, n)


class Dense:
    """Weights and weighted values of everything seen, as matrices."""

    def __init__(self, shrinkage, shape=SHAPE):
        self.weight, self.total, self.shrinkage = np.zeros(shape), np.zeros(shape), shrinkage

    def add(self, X, y, w):
        np.add.at(self.weight, (X[:, 0], X[:, 1]), w)
        np.add.at(self.total, (X[:, 0], X[:, 1]), w * y)

    @property
    def mean(self):
        return self.total.sum() / self.weight.sum()

    def columns_given(self, rows):
        left = (self.total - self.weight * (self.mean + rows[:, None])).sum(axis=0)
        return self._shrunk(left, self.weight.sum(axis=0))

    def rows_given(self, columns):
        left = (self.total - self.weight * (self.mean + columns)).sum(axis=1)
        return self._shrunk(left, self.weight.sum(axis=1))

    def _shrunk(self, left, weight):
        pairs = zip(left, weight, strict=True)
        return np.array([x / (n + self.shrinkage) if n else 0.0 for x, n in pairs])

    def solution(self):
        """The ridge regression that both biases solve together."""
        m1, m2 = self.weight.shape
        normal = np.zeros((m1 + m2, m1 + m2))
        normal[:m1, m1:], normal[m1:, :m1] = self.weight, self.weight.T
        normal += np.diag(np.concatenate((self.weight.sum(axis=1), self.weight.sum(axis=0))))
        normal += self.shrinkage * np.eye(m1 + m2)
        left = self.total - self.weight * self.mean
        both = np.linalg.solve(normal, np.concatenate((left.sum(axis=1), left.sum(axis=0))))
        return both[:m1], both[m1:]


def refreshed(objective):
    objective.refresh_offsets()
    return objective.offsets


@pytest.mark.parametrize("shrinkage", [0.0, 5.0])
def test_the_first_batch_is_three_turns_of_shrunken_means(shrinkage, rng):
    X, y, w = observations(rng, 40)
    objective = ObservedEntries(SHAPE, dtype=float, offsets=RunningBiases(shrinkage))
    objective.observe(X, y, w)
    dense = Dense(shrinkage)
    dense.add(X, y, w)
    columns = dense.columns_given(np.zeros(9))
    rows = dense.rows_given(columns)
    columns = dense.columns_given(rows)  # the refresh begins here
    rows = dense.rows_given(columns)
    columns = dense.columns_given(rows)
    biases = objective.offsets
    assert biases.mean == pytest.approx(np.average(y, weights=w))
    np.testing.assert_allclose(biases.rows, rows, atol=1e-12)
    np.testing.assert_allclose(biases.columns, columns, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_after_a_refresh_columns_explain_what_mean_and_rows_leave_over(dtype, rng, monkeypatch):
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", 100)
    objective = ObservedEntries(SHAPE, dtype=dtype, offsets=RunningBiases(2.0))
    dense = Dense(2.0)
    for _ in range(9):
        batch = observations(rng, 30)
        objective.observe(*batch)
        dense.add(*batch)
    assert 0 < objective.n_newest < objective.n_entries
    biases = refreshed(objective)
    tol = 1e-5 if dtype == np.float32 else 1e-12
    assert biases.mean == pytest.approx(dense.mean)
    np.testing.assert_allclose(biases.columns, dense.columns_given(biases.rows), atol=tol)
    for _ in range(400):  # a constant moves slowly between rows and columns
        biases = refreshed(objective)
    rows, columns = dense.solution()
    np.testing.assert_allclose(biases.rows, rows, atol=max(10 * tol, 1e-9))
    np.testing.assert_allclose(biases.columns, columns, atol=max(10 * tol, 1e-9))


def test_new_observations_change_the_biases_of_their_own_row_and_column_at_once(rng):
    biases, dense = RunningBiases(5.0), Dense(5.0)
    for n in (50, 1, 3):
        X, y, w = observations(rng, n)
        before = biases.rows.copy()
        biases.update(X[:, 0], X[:, 1], y, w)
        dense.add(X, y, w)
        if n == 50:
            columns = dense.columns_given(np.zeros(9))
            np.testing.assert_allclose(biases.columns, columns, atol=1e-12)
            np.testing.assert_allclose(biases.rows, dense.rows_given(columns), atol=1e-12)
        else:
            assert (biases.rows[X[:, 0]] != before[X[:, 0]]).all()
        assert biases.mean == pytest.approx(dense.mean)


def test_groups_with_nothing_in_common_are_not_counted_twice(rng):
    """A row's and a column's mean see the same distance of their group from the common mean."""
    rows = rng.integers(20, size=1500)
    cols = 2 * rng.integers(10, size=1500) + rows % 2
    y = np.where(rows % 2, 5.0, 1.0)
    objective = ObservedEntries((20, 20), dtype=float, offsets=RunningBiases(0.0))
    for part in (slice(0, 1), slice(1, 1000), slice(1000, 1500)):
        objective.observe(np.column_stack((rows[part], cols[part])), y[part])
        assert refreshed(objective) is objective.offsets
    objective.set_offsets(*objective.offsets.offsets((20, 20)))
    np.testing.assert_allclose(objective.predict(rows, cols), y, atol=1e-4)


def test_weights_are_repeated_observations(rng):
    X, y, _ = observations(rng, 200)
    counts = rng.integers(0, 4, size=200) + (np.arange(200) % 50 == 0)
    weighted = ObservedEntries(SHAPE, dtype=float, offsets=RunningBiases())
    repeated = ObservedEntries(SHAPE, dtype=float, offsets=RunningBiases())
    for part in np.split(np.arange(200), 8):
        weighted.observe(X[part], y[part], counts[part])
        again = np.repeat(part, counts[part])
        repeated.observe(X[again], y[again])
        for name in ("mean", "rows", "columns"):
            a, b = (getattr(objective.offsets, name) for objective in (weighted, repeated))
            np.testing.assert_allclose(a, b, atol=1e-12)
        assert weighted.value() == pytest.approx(repeated.value())


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=8),
    shrinkage=st.sampled_from([0.5, 5.0, 50.0]),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_biases_stay_within_the_range_of_the_values(seed, sizes, shrinkage, scale):
    """Shrunken means of residuals cannot leave it by much, however the stream is cut."""
    rng = np.random.default_rng(seed)
    objective = ObservedEntries(SHAPE, dtype=float, offsets=RunningBiases(shrinkage))
    for n in sizes:
        X = observations(rng, n)[0]
        objective.observe(X, scale * rng.uniform(-1.0, 1.0, n))
    biases = objective.offsets
    assert abs(biases.mean) <= scale
    assert np.abs(np.concatenate((biases.rows, biases.columns))).max() <= 4.0 * scale
    assert objective.value() <= 0.51 * scale**2  # no worse than predicting the mean


def test_a_row_that_appears_while_streaming_is_predicted_by_mean_and_column(rng):
    objective = ObservedEntries((1, 1), dtype=float, growing=True, offsets=RunningBiases())
    X, y, w = observations(rng, 300)
    objective.observe(X, y + 10.0, w)
    biases = objective.offsets
    mean, columns, rows = biases.mean, biases.columns.copy(), biases.rows.copy()
    # Before it learns from them: a new row with a known column, the other way round, both new.
    loss = objective.observe([[20, 3], [4, 30], [21, 31]], [0.0, 0.0, 0.0])
    expected = [mean + columns[3], mean + rows[4], mean]
    assert loss == pytest.approx(np.mean(np.square(expected)) / 2)


@pytest.mark.parametrize("loss", [Square(), Gaussian(), Correntropy(0.7)], ids=str)
def test_a_round_is_paid_before_the_biases_learn_from_it(loss, rng):
    objective = ObservedEntries(SHAPE, loss, dtype=float, offsets=RunningBiases())
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(2.0))
    for _ in range(5):
        X, y, w = observations(rng, 20)
        at = objective.predict(X[:, 0], X[:, 1])
        paid = learner.observe(X, y, w).loss
        assert paid == pytest.approx(np.average(loss.value(at, y), weights=w))


def test_offsets_are_mean_row_and_column_bias(rng):
    objective = ObservedEntries(SHAPE, dtype=float, offsets=RunningBiases())
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(2.0))
    for _ in range(10):
        learner.observe(*observations(rng, 20))
    biases, (rows, cols) = objective.offsets, np.indices(SHAPE).reshape(2, -1)
    dense = learner.theta.dense() + biases.mean + biases.rows[:, None] + biases.columns
    np.testing.assert_allclose(objective.predict(rows, cols), dense.ravel(), atol=1e-12)


def test_means_of_labels_and_counts_are_refused():
    for loss in (Logistic(), Poisson()):
        with pytest.raises(ValueError, match=rf"regression loss, not of {type(loss).__name__}"):
            ObservedEntries(SHAPE, loss, offsets=RunningBiases())
    for wrong in ("biases", RunningBiases, 5.0):
        with pytest.raises(ValueError, match="offsets"):
            ObservedEntries(SHAPE, offsets=wrong)
    for shrinkage in (-1.0, np.nan, np.inf, "some", None):
        with pytest.raises(ValueError, match="shrinkage"):
            RunningBiases(shrinkage)


def test_before_the_first_value_nothing_is_known():
    biases = RunningBiases()
    rows, columns = biases.offsets((3, 2))
    assert biases.mean == 0.0
    np.testing.assert_array_equal(rows, np.zeros(3))
    np.testing.assert_array_equal(columns, np.zeros(2))
