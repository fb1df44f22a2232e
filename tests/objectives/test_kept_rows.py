"""What is kept of the past (all, the newest, a sample), and the intercept, recomputed densely."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

import onlinefw as ofw
from onlinefw import losses
from onlinefw.atoms import as_atom
from onlinefw.losses import Logistic, Sigmoid, Square
from onlinefw.objectives import LinearObjective
from onlinefw.past.host.dense_rows import DenseRows
from onlinefw.past.host.sparse_rows import SparseRows
from onlinefw.sets import L1Ball, L2Ball, TraceNormBall

from ..pairs import every_pair

DENSE_OR_SPARSE = pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"]
)


def stream(rng, sizes, n=6):
    for size in sizes:
        X = rng.standard_normal((size, n)) * (rng.random((size, n)) < 0.7)
        yield X, np.sign(X[:, 0] + 0.3 * rng.standard_normal(size) + 0.2)


def kept_rows(objective):
    """The rows that count, as a dense array."""
    state = objective.state_dict()["past"]["past"]
    kinds = {"dense": DenseRows, "sparse": SparseRows}
    rows = kinds[state["rows"]["kind"]].from_state(state["rows"], objective.shape).matrix()
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows)[state["w"] > 0]


def l1_gap(X, y, w, theta, b, radius, loss):
    """F and the Frank-Wolfe gap of theta, from scratch."""
    z = X @ theta + b
    gradient = (w * loss.derivative(z, y)) @ X / w.sum()
    gap = theta @ gradient + radius * np.abs(gradient).max()
    return np.average(loss.value(z, y), weights=w), gap


# The newest rows ---------------------------------------------------------------------------------


@DENSE_OR_SPARSE
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_recent_means_the_newest_rows_and_nothing_else(kind, fit_intercept, weighted, rng):
    objective = LinearObjective(Logistic(), past="recent", max_past=25, fit_intercept=fit_intercept)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0), inner_steps=3)
    seen_X, seen_y, seen_w = np.empty((0, 6)), np.empty(0), np.empty(0)
    for X, y in stream(rng, [1, 7, 40, 3, 3, 3, 11, 26, 25, 24, 5, 5, 5, 5, 5, 5, 5]):
        w = rng.uniform(0.1, 2.0, len(y)) if weighted else np.ones(len(y))
        learner.observe(kind(X), y, w if weighted else None)
        seen_X = np.vstack((seen_X, X))[-25:]
        seen_y, seen_w = np.append(seen_y, y)[-25:], np.append(seen_w, w)[-25:]
        value, b = objective.value(), objective.intercept
        expected, gap = l1_gap(seen_X, seen_y, seen_w, learner.theta, b, 2.0, Logistic())
        assert value == pytest.approx(expected, abs=1e-12)
        assert learner.certificate() == pytest.approx(gap, abs=1e-11)
        np.testing.assert_allclose(objective.predictions(), seen_X @ learner.theta, atol=1e-12)
        assert objective.n_kept == len(seen_y)


@pytest.mark.parametrize("make", [lambda: L2Ball(2.0), lambda: TraceNormBall(2.0)])
def test_moves_that_wait_for_the_next_gradient_survive_forgetting(make, rng):
    constraint = make()
    sizes = {"shape": (2, 3)} if constraint.needs_matrix else {"n_features": 6}
    objective = LinearObjective(Logistic(), past="recent", max_past=50, **sizes)
    learner, seen = ofw.OnlineFrankWolfe(objective, constraint), np.empty((0, 6))
    for X, y in stream(rng, [17] * 40):
        learner.observe(X, y)  # predictions are not asked for: that would settle them
        seen = np.vstack((seen, X))[-50:]
    np.testing.assert_allclose(objective.predictions(), seen @ learner.theta.ravel(), atol=1e-12)


@DENSE_OR_SPARSE
@pytest.mark.parametrize("past", ["recent", "reservoir"])
def test_memory_is_flat_however_long_the_stream(past, kind, rng):
    objective = LinearObjective(Logistic(), past=past, max_past=100, random_state=0)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0))
    sizes, lengths = [], []
    for t, (X, y) in enumerate(stream(rng, [50] * 220)):  # 110 times the bound
        learner.observe(kind(X), y)
        lengths.append(len(objective._shared.past))
        if t >= 10:
            sizes.append(len(pickle.dumps(learner)))
    assert objective.n_kept == 100
    assert max(lengths) <= 2 * 100 + 50
    assert max(sizes[100:]) <= 1.1 * max(sizes[:100])


def test_rows_without_weight_do_not_count_and_take_no_memory(rng):
    objective = LinearObjective(Square(), past="recent", max_past=5)
    for _ in range(100):
        objective.observe(rng.standard_normal((10, 2)), np.zeros(10), [0] * 8 + [1, 1])
    assert objective.n_kept == 5
    assert len(objective._shared.past) <= 20


# A random sample ---------------------------------------------------------------------------------


def members(sizes, max_past, seed, weights=None):
    """The numbers of the rows in the reservoir after batches of these sizes."""
    objective, start = (
        LinearObjective(Square(), past="reservoir", max_past=max_past, random_state=seed),
        0,
    )
    for size in sizes:
        X = np.arange(start, start + size, dtype=float)[:, None]
        w = None if weights is None else weights[start : start + size]
        objective.observe(X, np.zeros(size), w)
        start += size
    return kept_rows(objective)[:, 0].astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [[1] * 40, [40], [3, 17, 1, 9, 10], [8, 8, 8, 8, 8], [30, 1, 9]], ids=str
)
def test_every_row_is_in_the_reservoir_with_the_same_chance(sizes):
    counts, trials = np.zeros(40), 1000
    for seed in range(trials):
        kept = members(sizes, 8, seed)
        assert kept.size == np.unique(kept).size == 8
        counts[kept] += 1
    # Memberships of one trial depend on each other slightly, which makes the statistic smaller.
    share = 8 / 40
    statistic = np.sum((counts - trials * share) ** 2) / (trials * share * (1 - share))
    assert statistic < stats.chi2.ppf(1 - 1e-6, 39)
    assert counts.min() > 0


@pytest.mark.slow
def test_rows_without_weight_do_not_disturb_the_reservoir():
    weights = np.tile([0.0, 1.0], 30)
    counts, trials = np.zeros(60), 1000
    for seed in range(trials):
        counts[members([10] * 6, 5, seed, weights)] += 1
    np.testing.assert_array_equal(counts[::2], 0)
    share = 5 / 30
    statistic = np.sum((counts[1::2] - trials * share) ** 2) / (trials * share * (1 - share))
    assert statistic < stats.chi2.ppf(1 - 1e-6, 29)


@DENSE_OR_SPARSE
def test_the_gap_is_that_of_the_rows_in_the_reservoir(kind, rng):
    objective = LinearObjective(
        Logistic(), past="reservoir", max_past=30, random_state=1, fit_intercept=True
    )
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0), inner_steps=2)
    rows, labels = [], []
    for k, (X, y) in enumerate(stream(rng, [9] * 30)):
        X[:, 5] = 1e-3 * (9 * k + np.arange(9))  # a mark to know the rows by
        learner.observe(kind(X), y)
        rows.append(X)
        labels.append(y)
    X, y = np.vstack(rows), np.concatenate(labels)
    marks = kept_rows(objective)[:, 5]
    kept = np.rint(1e3 * marks).astype(int)
    assert kept.size == 30
    ones = np.ones(30)
    value, b = objective.value(), objective.intercept
    expected, gap = l1_gap(X[kept], y[kept], ones, learner.theta, b, 2.0, Logistic())
    assert value == pytest.approx(expected, abs=1e-12)
    assert learner.certificate() == pytest.approx(gap, abs=1e-11)


# Going on ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("past", "fit_intercept", "constraint", "kind"),
    every_pair(
        ["all", "recent", "reservoir"],
        [False, True],
        [L1Ball(2.0), L2Ball(2.0)],
        [np.asarray, sp.csr_array],
    ),
)
def test_a_resumed_stream_equals_an_uninterrupted_one(past, fit_intercept, constraint, kind, rng):
    objective = LinearObjective(
        Logistic(),
        past=past,
        max_past=None if past == "all" else 20,
        random_state=3,
        fit_intercept=fit_intercept,
    )
    learner = ofw.OnlineFrankWolfe(objective, constraint, inner_steps="auto")
    batches = list(stream(rng, [7] * 16))
    for X, y in batches[:8]:
        learner.observe(kind(X), y)
    resumed = ofw.OnlineFrankWolfe.from_state(learner.state_dict())
    pickled = pickle.loads(pickle.dumps(learner))
    for X, y in batches[8:]:
        rounds = [one.observe(kind(X), y) for one in (learner, resumed, pickled)]
        assert rounds[0] == rounds[1] == rounds[2]
    for other in (resumed, pickled):
        np.testing.assert_array_equal(learner.theta, other.theta)
        assert learner.certificate() == other.certificate()
        assert objective.intercept == other.objective.intercept


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_any_generator_of_numpy_may_draw_the_reservoir(bits, rng):
    objective = LinearObjective(
        Square(), past="reservoir", max_past=5, random_state=np.random.Generator(bits(0))
    )
    objective.observe(np.arange(20.0)[:, None], np.zeros(20))
    other = LinearObjective.from_state(objective.state_dict())
    for one in (objective, other):
        one.observe(np.arange(20.0, 60.0)[:, None], np.zeros(40))
    np.testing.assert_array_equal(kept_rows(objective), kept_rows(other))


@pytest.mark.parametrize("constraint", [L1Ball(2.0), L2Ball(2.0)], ids=["l1", "l2"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", [Logistic(), Sigmoid(2.0), Square()], ids=str)
def test_looking_at_the_model_changes_nothing(loss, fit_intercept, constraint, rng):
    learners = [
        ofw.OnlineFrankWolfe(LinearObjective(loss, fit_intercept=fit_intercept), constraint)
        for _ in range(2)
    ]
    for X, y in stream(rng, [9] * 12):
        watched = learners[1].observe(X, y)
        assert learners[0].observe(X, y) == watched
        learners[1].certificate()
        learners[1].objective.value()
        learners[1].objective.predictions()
        assert np.isfinite(learners[1].objective.intercept)
    np.testing.assert_array_equal(learners[0].theta, learners[1].theta)


# Precision ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float64])
def test_rows_are_kept_in_the_numbers_they_came_in(dtype, rng):
    X = rng.integers(0, 256, (30, 5)).astype(dtype)
    objective = LinearObjective(Logistic())
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(0.01))
    for k in range(0, 30, 10):
        learner.observe(X[k : k + 10], np.tile([1.0, -1.0], 5))
    held = objective.state_dict()["past"]["past"]["rows"]["data"]
    assert held.dtype == dtype
    assert held.nbytes == X.nbytes
    z = X.astype(float) @ learner.theta
    np.testing.assert_allclose(objective.predictions(), z, rtol=1e-6, atol=1e-6)


def test_sparse_singles_stay_singles(rng):
    X = sp.random_array((30, 50), density=0.1, rng=rng, format="csr", dtype=np.float32)
    rows = SparseRows((50,))
    for k in range(0, 30, 10):
        rows = rows.extended(X[k : k + 10])
    assert rows.merged().state_dict()["bulk_data"].dtype == np.float32


@pytest.mark.parametrize("constraint", [L1Ball(1.0), L2Ball(1.0)], ids=["l1", "l2"])
def test_wider_numbers_may_follow_narrower_ones(constraint, rng):
    X, y = rng.integers(0, 9, (60, 7)), np.tile([1.0, -1.0], 30)
    objective = LinearObjective(Logistic())
    learner = ofw.OnlineFrankWolfe(objective, constraint)
    for k, dtype in enumerate((np.uint8, np.uint8, np.float32, np.uint8, np.float64, np.float32)):
        part = slice(10 * k, 10 * k + 10)
        learner.observe(X[part].astype(dtype), y[part])
    np.testing.assert_allclose(objective.predictions(), X @ learner.theta, atol=1e-5)


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    share=st.floats(0.0, 1.0),
)
def test_sparse_rows_forget_as_dense_ones_do(seed, sizes, share):
    rng = np.random.default_rng(seed)
    dense, sparse = DenseRows((9,)), SparseRows((9,))
    for size in sizes:
        X = rng.standard_normal((size, 9)) * (rng.random((size, 9)) < 0.3)
        dense, sparse = dense.extended(X), sparse.extended(X)
        mask = rng.random(len(dense)) < share
        mask[-1] = True
        dense, sparse = dense.kept(mask), sparse.kept(mask)
    assert len(dense) == len(sparse)
    v, r = rng.standard_normal(9), rng.standard_normal((len(dense), 3))
    np.testing.assert_allclose(sparse.matvec(v), dense.data @ v, atol=1e-12)
    np.testing.assert_allclose(sparse.rmatvec(r), dense.data.T @ r, atol=1e-12)
    np.testing.assert_allclose(dense.rmatvec(r), dense.data.T @ r, atol=1e-12)
    chosen, w = np.array([1, 4, 5, 8]), rng.random(len(dense))
    S = dense.data[:, chosen]
    for rows in (dense, sparse):
        gram, cross = rows.gram(chosen, w)
        np.testing.assert_allclose(gram, S.T @ (w[:, None] * S), atol=1e-12)
        np.testing.assert_allclose(cross, S.T @ w, atol=1e-12)


# Shared rows -------------------------------------------------------------------------------------


def beside(first, *losses):
    """Objectives on the same rows."""
    return [first, *(first.beside(loss) for loss in losses)]


@DENSE_OR_SPARSE
def test_objectives_that_share_rows_equal_those_that_do_not(kind, rng):
    def make():
        return LinearObjective(Logistic(), past="recent", max_past=40, fit_intercept=True)

    shared, alone = beside(make(), None, None), [make() for _ in range(3)]
    for X, _ in stream(rng, [15] * 10):
        targets = [np.sign(X[:, k] + 0.1) for k in range(3)]
        batch = LinearObjective.check_together(shared, kind(X), targets)
        paid = LinearObjective.add_together(shared, batch)
        for k, objective in enumerate(alone):
            assert objective.observe(kind(X), targets[k]) == pytest.approx(paid[k], abs=1e-12)
        LinearObjective.make_gradients(shared)
        for one, other in zip(shared, alone, strict=True):
            np.testing.assert_allclose(one.gradient(), other.gradient(), atol=1e-12)
            atom = L1Ball(2.0).lmo(other.gradient())
            one.move(atom, 0.3)
            other.move(atom, 0.3)
    assert len(shared[0]._shared.past) == len(alone[0]._shared.past)


def test_shared_rows_are_learned_by_all_of_their_objectives_at_once():
    one, _ = beside(LinearObjective(Square()), None)
    with pytest.raises(ValueError, match="shared with other objectives: play their learners"):
        one.observe(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match="save them together"):
        one.state_dict()


def test_nobody_joins_rows_that_have_come_already():
    objective = LinearObjective(Square())
    objective.observe(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match="before the first batch"):
        objective.beside()


def test_a_bad_target_of_one_objective_changes_none_of_them():
    objectives = beside(LinearObjective(Square()), Logistic())
    with pytest.raises(ValueError, match=r"Logistic\(\) needs labels"):
        LinearObjective.check_together(objectives, np.eye(2), [np.ones(2), np.zeros(2)])
    assert [one.n_observations for one in objectives] == [0, 0]
    assert len(objectives[0]._shared.past) == 0


def test_the_representation_says_what_is_kept(rng):
    objective = LinearObjective(Square(), past="recent", max_past=5)
    objective.observe(rng.standard_normal((8, 3)), np.ones(8))
    assert "past='recent', n_observations=8, n_kept=5" in repr(objective)
    assert "past" not in repr(LinearObjective(Square(), n_features=3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(past="newest"), "past must be one of all, recent, reservoir, got 'newest'"),
        (dict(past="recent"), 'past="recent" needs max_past'),
        (dict(max_past=10), 'max_past=10 needs past="recent" or past="reservoir"'),
        (dict(past="reservoir", max_past=0), "max_past must be a whole number of at least 1"),
        (dict(past="recent", max_past=2.5), "max_past must be a whole number"),
    ],
)
def test_impossible_pasts_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        LinearObjective(Square(), **options)


@DENSE_OR_SPARSE
@pytest.mark.parametrize("constraint", [L1Ball(2.0), L2Ball(2.0)], ids=["l1", "l2"])
def test_predictions_agree_with_theta_after_a_move_that_was_interrupted(
    constraint, kind, rng, monkeypatch
):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Logistic()), constraint)
    objective = learner.objective
    (X, y), (more, labels) = stream(rng, [30, 9])
    learner.observe(kind(X), y)
    objective.observe(kind(more), labels)
    atom = constraint.lmo(objective.gradient())
    with monkeypatch.context() as patch:

        def interrupted(*args):
            raise KeyboardInterrupt

        patch.setattr(type(objective._shared.past), "move", interrupted)
        with pytest.raises(KeyboardInterrupt):
            objective.move(as_atom(atom, (6,)), 0.5)
    X, y = np.vstack((X, more)), np.concatenate((y, labels))
    z = X @ objective.theta
    np.testing.assert_allclose(objective.predictions(), z, atol=1e-12)
    expected = X.T @ Logistic().derivative(z, y) / len(y)
    np.testing.assert_allclose(objective.gradient(), expected, atol=1e-12)


# The intercept -----------------------------------------------------------------------------------

TARGETS = {
    losses.Square(): lambda rng: 1e3 + rng.standard_normal(80),
    losses.Gaussian(): lambda rng: 5 + rng.standard_normal(80),
    losses.Logistic(): lambda rng: np.where(rng.random(80) < 0.9, 1.0, -1.0),
    losses.Bernoulli(): lambda rng: (rng.random(80) < 0.1).astype(float),
    losses.Poisson(): lambda rng: rng.poisson(30.0, 80).astype(float),
    losses.Exponential(0.05): lambda rng: rng.exponential(3.0, 80) + 0.01,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", TARGETS, ids=str)
def test_the_intercept_is_minimised_exactly(loss, weighted, rng):
    X, y = 0.3 * rng.standard_normal((80, 4)), TARGETS[loss](rng)
    w = rng.uniform(0.1, 3.0, 80) if weighted else np.ones(80)
    objective = LinearObjective(loss, fit_intercept=True)
    objective.observe(X, y, w)
    for step in (1.0, 0.5, 0.3):
        objective.move(L1Ball(0.8).lmo(rng.standard_normal(4)), step)
        b, value = objective.intercept, objective.value()  # right without asking for more first
        z = X @ objective.theta
        found = optimize.minimize_scalar(
            lambda at, z=z: np.average(loss.value(z + at, y), weights=w),
            bracket=(b - 0.1, b + 0.1),
            tol=1e-12,
        )
        assert value <= found.fun + 1e-12 * abs(found.fun)
        slope = np.average(loss.derivative(z + b, y), weights=w)
        assert abs(slope) <= 1e-11 * max(1.0, np.abs(y).max())


@pytest.mark.parametrize("loss", [Sigmoid(2.0), losses.Correntropy(1.0)], ids=str)
def test_the_intercept_of_a_loss_that_is_not_convex_is_a_local_minimum(loss, rng):
    X = rng.standard_normal((80, 4))
    noise = rng.standard_normal(80)
    y = np.sign(X[:, 0] + noise + 0.5) if isinstance(loss, Sigmoid) else 7.0 + X[:, 0] + noise
    objective = LinearObjective(loss, fit_intercept=True)
    objective.observe(X, y)
    objective.move(L1Ball(1.0).lmo(-np.eye(4)[0]), 1.0)
    value, b = objective.value(), objective.intercept
    z = X @ objective.theta
    for nearby in (b - 1e-2, b - 1e-4, b + 1e-4, b + 1e-2):
        assert value <= loss.value(z + nearby, y).mean() + 1e-14
    assert abs(loss.derivative(z + b, y).mean()) <= 1e-9


def test_the_intercept_of_a_quadratic_of_ones_own_is_its_minimum():
    class Doubled(Square):
        def value(self, z, y):
            return 0.5 * np.square(np.subtract(z, 2 * np.asarray(y)))

        def derivative(self, z, y):
            return np.subtract(z, 2 * np.asarray(y))

    objective = LinearObjective(Doubled(), fit_intercept=True)
    objective.observe(np.zeros((4, 2)), [1.0, 2.0, 3.0, 4.0])
    assert objective.intercept == pytest.approx(5.0)


@pytest.mark.parametrize("loss", [Logistic(), Sigmoid()], ids=str)
def test_one_class_alone_gives_a_finite_intercept_and_the_other_may_still_come(loss, rng):
    learner = ofw.OnlineFrankWolfe(LinearObjective(loss, fit_intercept=True), L1Ball(2.0))
    X = rng.standard_normal((20, 3))
    learner.observe(X, np.ones(20))
    assert abs(learner.objective.intercept) < 100
    for _ in range(30):
        X = rng.standard_normal((20, 3))
        learner.observe(X, np.sign(X[:, 0] + 1e-9))
    assert (
        np.mean(np.sign(X @ learner.theta + learner.objective.intercept) == np.sign(X[:, 0])) > 0.8
    )


def test_the_loss_paid_is_that_of_the_predictions_of_the_moment(rng):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Logistic(), fit_intercept=True), L1Ball(2.0))
    past_X, past_y = np.empty((0, 6)), np.empty(0)
    for X, y in stream(rng, [9] * 12):
        theta, b = np.zeros(6), 0.0
        if len(past_y):
            theta, z = learner.theta.copy(), past_X @ learner.theta
            b = optimize.minimize_scalar(
                lambda at, z=z, y=past_y: Logistic().value(z + at, y).mean(), tol=1e-12
            ).x
        expected = Logistic().value(X @ theta + b, y).mean()
        assert learner.observe(X, y).loss == pytest.approx(expected, abs=1e-6)
        past_X, past_y = np.vstack((past_X, X)), np.append(past_y, y)
