"""Entries that fade: F_t is the mean with weights 2**(-age / half_life); and rows that leave."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.objectives import ObservedEntries, RunningBiases, merge_rule
from onlinefw.objectives.half_life import KEPT
from onlinefw.sets import TraceNormBall

SHAPE = (9, 7)


def stream(n, seed=0, shape=SHAPE, weighted=False):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(m, size=n) for m in shape])
    y = rng.standard_normal(n) + X[:, 0] - 0.5 * X[:, 1]
    return X, y, rng.uniform(0.5, 2.0, n) if weighted else None


def learner(half_life, loss=None, **more):
    loss = ofw.losses.Square() if loss is None else loss
    objective = ObservedEntries(SHAPE, loss, dtype=float, half_life=half_life, **more)
    return ofw.OnlineFrankWolfe(objective, TraceNormBall(20.0))


def play(one, X, y, w=None, size=25):
    for k in range(0, len(y), size):
        part = slice(k, k + size)
        one.observe(X[part], y[part], None if w is None else w[part])
    return one


def explicit(y, w, half_life):
    """All weights, by age."""
    ages = np.arange(len(y))[::-1]
    return 2.0 ** (-ages / half_life) * (1.0 if w is None else w)


@pytest.mark.parametrize("loss", [ofw.losses.Square(), ofw.losses.Correntropy(3.0)], ids=str)
@settings(max_examples=15, deadline=None)
@given(
    half_life=st.floats(8.0, 300.0),
    n=st.integers(1, 300),
    size=st.integers(1, 90),
    weighted=st.booleans(),
)
def test_value_and_gradient_are_those_of_a_weighted_mean(loss, half_life, n, size, weighted):
    X, y, w = stream(n, weighted=weighted)
    one = play(learner(half_life, loss), X, y, w, size)
    c = explicit(y, w, half_life)
    z = one.theta.dense()[X[:, 0], X[:, 1]]
    assert one.objective.value() == pytest.approx(c @ loss.value(z, y) / c.sum(), rel=1e-9)
    expected = np.zeros(SHAPE)
    np.add.at(expected, (X[:, 0], X[:, 1]), c * loss.derivative(z, y) / c.sum())
    np.testing.assert_allclose(one.objective.gradient().toarray(), expected, atol=1e-9)
    top = np.linalg.norm(expected, 2)
    gap = (one.theta.dense() * expected).sum() + 20.0 * top
    assert gap * (1 - 1e-6) <= one.certificate() <= gap + 0.2 * 20.0 * top
    assert one.objective.total_weight / one.objective.unit == pytest.approx(c.sum(), rel=1e-9)


@pytest.mark.parametrize("joint", [False, True])
def test_biases_are_shrunken_means_with_the_same_weights(joint):
    X, y, w = stream(400, weighted=True)
    offsets = RunningBiases(3.0, joint=joint)
    objective = ObservedEntries(SHAPE, dtype=float, half_life=2.0 + 40.0 * joint, offsets=offsets)
    for k in range(0, 400, 20):
        objective.observe(X[k : k + 20], y[k : k + 20], w[k : k + 20])
    objective.refresh_offsets()
    c = explicit(y, w, objective.half_life)
    assert offsets.mean == pytest.approx(c @ y / c.sum(), rel=1e-9)
    left = y - offsets.mean - offsets.rows[X[:, 0]]
    for j in range(SHAPE[1]):
        of = X[:, 1] == j
        expected = c[of] @ left[of] / (c[of].sum() + 3.0)
        # What has been dropped is in the sums of biases, and not in those of the store.
        assert offsets.columns[j] == pytest.approx(expected, rel=0.01, abs=0.01)


def test_how_a_stream_is_cut_makes_no_difference_to_f():
    X, y, _ = stream(500)
    at_once, in_pieces = (ObservedEntries(SHAPE, dtype=float, half_life=3.0) for _ in range(2))
    at_once.observe(X[:100], y[:100])
    at_once.observe(X[100:], y[100:])
    for k in range(500):
        in_pieces.observe(X[k : k + 1], y[k : k + 1])
    assert in_pieces.value() == pytest.approx(at_once.value(), rel=1e-12)


def test_memory_follows_the_half_life():
    X, y, _ = stream(30_000, shape=(50, 40))
    sizes = []
    objective = ObservedEntries((50, 40), dtype=float, half_life=20.0)
    for k in range(0, 30_000, 500):
        objective.observe(X[k : k + 500], y[k : k + 500])
        sizes.append(objective.n_entries)
    assert max(sizes[10:]) <= 2 * merge_rule.SHORTEST_TAIL
    c = explicit(y, None, 20.0)
    assert objective.value() == pytest.approx(0.5 * c @ y**2 / c.sum(), rel=2.0**-KEPT)
    assert objective.n_observations == 30_000


def test_a_plain_average_of_everything_is_left_as_it_was():
    X, y, w = stream(300, weighted=True)
    plain, slow = play(learner(None), X, y, w), play(learner(1e15), X, y, w)
    np.testing.assert_allclose(slow.theta.dense(), plain.theta.dense(), atol=1e-9)
    assert plain.objective.half_life is None
    assert plain.objective.total_weight == pytest.approx(w.sum(), rel=1e-12)


def test_a_resumed_run_is_the_same_to_the_last_bit():
    X, y, _ = stream(900)
    whole = play(learner(5.0, offsets=RunningBiases()), X, y)
    half = play(learner(5.0, offsets=RunningBiases()), X[:500], y[:500])
    state = half.state_dict()
    resumed = play(ofw.OnlineFrankWolfe.from_state(state), X[500:], y[500:])
    np.testing.assert_array_equal(resumed.theta.dense(), whole.theta.dense())
    assert resumed.objective.value() == whole.objective.value()
    del state["objective"]["clock"]  # as earlier versions wrote it
    assert ofw.OnlineFrankWolfe.from_state(state).objective.half_life is None


def test_sweeps_come_once_in_a_half_life():
    rng = np.random.default_rng(0)
    X, y, _ = stream(6000)
    objective = ObservedEntries(SHAPE, dtype=float, half_life=500.0)
    sweeps = ofw.RidgeSweeps(2, ridge=1.0)
    one = ofw.OnlineFrankWolfe(objective, TraceNormBall(1e3), corrective=sweeps)
    seen = []
    for k in range(0, 6000, 100):
        one.observe(X[k : k + 100], y[k : k + 100] + rng.standard_normal(100))
        seen.append(one.corrective._due)
    steps = np.diff(np.unique(seen))[-5:]
    assert (np.abs(steps - 500.0) <= 100.0).all()


def test_bad_half_lives_are_refused():
    with pytest.raises(ValueError, match="half_life must be a number"):
        ObservedEntries(SHAPE, half_life=0.5)


def test_values_that_would_overflow_with_their_growing_weights_are_refused():
    objective = ObservedEntries(SHAPE, half_life=3.0)
    with pytest.raises(ValueError, match="1e\\+1"):
        objective.observe([[0, 0]], [1e15])
    assert objective.n_observations == 0


# Forgetting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("half_life", [None, 60.0])
@pytest.mark.parametrize("loss", [ofw.losses.Square(), ofw.losses.Correntropy(3.0)], ids=str)
@pytest.mark.parametrize("offsets", [False, True])
def test_a_row_that_is_forgotten_was_never_there(half_life, loss, offsets):
    rng = np.random.default_rng(0)
    # Each entry once: where repeats are summed up, their spread stays in the constant of F_t.
    X = np.column_stack(np.divmod(rng.permutation(63)[:50], 7))
    y, w = rng.standard_normal(50), rng.uniform(0.5, 2.0, 50)
    y[X[:, 0] == 4] += 100.0
    one = learner(half_life, loss, offsets=RunningBiases() if offsets else None)
    play(one, X, y, w, 7)
    objective = one.objective
    objective.forget(4)
    others = X[:, 0] != 4
    c = (np.ones(50) if half_life is None else explicit(y, None, half_life)) * w
    z = objective.predict(X[:, 0], X[:, 1])
    expected = (c * loss.value(z, y))[others].sum() / c[others].sum()
    assert objective.value() == pytest.approx(expected, rel=1e-6)
    assert objective.columns_of(4).size == 0
    assert not objective.theta.dense()[4].any()
    assert objective.total_weight / objective.unit == pytest.approx(c[others].sum())
    if offsets:
        assert objective.offsets.mean == pytest.approx(c[others] @ y[others] / c[others].sum())
        assert objective.offsets.rows[4] == 0.0
        assert np.abs(objective.offsets.columns).max() < 20.0
    assert largest(objective.state_dict()) < 50.0
    again = ObservedEntries.from_state(objective.state_dict())
    assert again.value() == pytest.approx(objective.value())


def largest(state):
    """The largest number in the entries and biases of a state."""
    numbers = [state["past"]["sorted"]["s"] / state["past"]["sorted"]["c"]]
    if state["past"]["sorted"]["s"].size == 0:
        numbers = [np.zeros(1)]
    if state["offsets"] is not None:
        numbers += [state["offsets"]["rows"], state["offsets"]["columns"]]
    return max(float(np.abs(one).max()) for one in numbers)


def test_the_learner_goes_on_without_it():
    X, y, _ = stream(600)
    one = play(learner(None), X, y)
    before = one.certificate()
    one.forget(2)
    assert one.certificate() < 3.0 * before
    play(one, X, y)
    assert one.objective.columns_of(2).size > 0


def test_when_everybody_is_forgotten_nothing_is_left():
    one = learner(None, offsets=RunningBiases())
    one.observe([[3, 1], [3, 2]], [1.0, 5.0])
    one.forget(3)
    assert one.objective.total_weight == 0.0
    assert not one.theta.dense().any()
    with pytest.raises(ValueError, match="nothing has been observed"):
        one.objective.value()
    state = one.state_dict()
    one = ofw.OnlineFrankWolfe.from_state(state)
    assert one.observe([[0, 0]], [2.0]).loss == 2.0


@pytest.mark.parametrize("row", [9, -1, 1.5])
def test_a_row_that_is_not_there_is_refused(row):
    one = play(learner(None), *stream(50)[:2])
    before = one.objective.value()
    with pytest.raises(ValueError, match="row must be"):
        one.forget(row)
    assert one.objective.value() == before
