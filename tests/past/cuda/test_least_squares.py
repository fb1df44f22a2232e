"""Running sums on a device are those of this process's memory."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import onlinefw as ofw
from onlinefw.algorithms.side_by_side import SideBySide
from onlinefw.objectives import RunningLeastSquares
from onlinefw.sets import KSparse, L1Ball, L2Ball
from onlinefw.steps import LineSearch

N = 9


def batches(seed, rounds=20, size=6, *, sparse=False):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(N)
    for _ in range(rounds):
        X = rng.standard_normal((size, N))
        if sparse:
            X[rng.random(X.shape) < 0.6] = 0.0
        y = 2.0 + X @ truth + 0.1 * rng.standard_normal(size)
        yield (sp.csr_array(X) if sparse else X), y, rng.random(size) + 0.5


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "learner",
    [
        lambda objective: ofw.OnlineFrankWolfe(objective, L1Ball(2.0)),
        lambda objective: ofw.OnlineFrankWolfe(objective, L2Ball(2.0), step=LineSearch()),
        lambda objective: ofw.OnlineFrankWolfe(objective, KSparse(2, 1.0)),
        lambda objective: ofw.OnlineAwayFrankWolfe(objective, L1Ball(2.0)),
        lambda objective: ofw.OnlinePairwiseFrankWolfe(objective, L1Ball(2.0)),
        lambda objective: ofw.OnlinePairwiseFrankWolfe(objective, KSparse(2, 1.0), LineSearch()),
        lambda objective: ofw.OnlineFrankWolfe(
            objective, L1Ball(2.0), LineSearch(), "auto", corrective=ofw.NewtonSteps()
        ),
    ],
)
@pytest.mark.usefixtures("cuda")
def test_the_same_way(learner, sparse, fit_intercept):
    half_life = 3.0 if sparse else None  # 120 rows are 40 half-lives
    one, other = (
        learner(
            RunningLeastSquares(N, fit_intercept=fit_intercept, half_life=half_life, device=device)
        )
        for device in ("cpu", "cuda")
    )
    for X, y, w in batches(0, sparse=sparse):
        a, b = one.observe(X, y, w), other.observe(X, y, w)
        assert b.loss == pytest.approx(a.loss, rel=1e-9)
        assert b.gap == pytest.approx(a.gap, rel=1e-6, abs=1e-10)
    np.testing.assert_allclose(other.theta, one.theta, rtol=1e-7, atol=1e-12)
    assert other.objective.intercept == pytest.approx(one.objective.intercept)
    assert other.objective.value() == pytest.approx(one.objective.value())
    assert other.objective.smoothness() == pytest.approx(one.objective.smoothness())
    assert other.objective.batch_smoothness() == pytest.approx(one.objective.batch_smoothness())
    np.testing.assert_allclose(
        other.objective.batch_gradient(), one.objective.batch_gradient(), rtol=1e-7, atol=1e-10
    )


def test_rows_may_come_from_the_device(cuda):
    here, there = RunningLeastSquares(N), RunningLeastSquares(N, device="cuda")
    for X, y, w in batches(1, rounds=4):
        a = here.observe(X, y, w)
        assert there.observe(*(cuda.asarray(one) for one in (X, y, w))) == pytest.approx(a)
    np.testing.assert_allclose(there.gradient(), here.gradient(), rtol=1e-9)


@pytest.mark.parametrize(("saved", "loaded"), [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")])
@pytest.mark.usefixtures("cuda")
def test_a_state_goes_on_anywhere(saved, loaded):
    objective = RunningLeastSquares(N, fit_intercept=True, device=saved)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(2.0))
    stream = list(batches(2))
    for X, y, w in stream[:10]:
        learner.observe(X, y, w)
    state = learner.state_dict()
    assert type(state["objective"]["past"]["past"]["H"]) is np.ndarray
    other = ofw.OnlineFrankWolfe.from_state(state, device=loaded)
    assert other.objective.device == loaded
    for X, y, w in stream[10:]:
        learner.observe(X, y, w), other.observe(X, y, w)
    np.testing.assert_allclose(other.theta, learner.theta, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("cuda")
def test_a_pickle_goes_back_to_the_device():
    learner = ofw.OnlineFrankWolfe(RunningLeastSquares(N, device="cuda"), L1Ball(2.0))
    stream = list(batches(3))
    for X, y, w in stream[:10]:
        learner.observe(X, y, w)
    again = pickle.loads(pickle.dumps(learner))
    assert again.objective.device == "cuda"
    for X, y, w in stream[10:]:
        learner.observe(X, y, w), again.observe(X, y, w)
    np.testing.assert_allclose(again.theta, learner.theta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.usefixtures("cuda")
def test_models_that_share_their_sums(fit_intercept):
    results = []
    for device in ("cpu", "cuda"):
        first = RunningLeastSquares(N, fit_intercept=fit_intercept, device=device)
        sets = [L1Ball(2.0), L1Ball(0.5), L2Ball(1.0)]
        objectives = [first, first.beside(), first.beside()]
        pairs = zip(objectives, sets, strict=True)
        team = SideBySide([ofw.OnlineFrankWolfe(one, ball) for one, ball in pairs])
        for X, y, w in batches(4):
            team.observe(X, [y, -y, y + 1.0], w)
        results.append([[*one.theta, one.objective.intercept] for one in team.learners])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-8, atol=1e-12)


@pytest.mark.usefixtures("cuda")
def test_sums_move_to_the_device_and_back():
    objectives = [RunningLeastSquares(N, fit_intercept=True) for _ in range(2)]
    stay, go = (ofw.OnlineFrankWolfe(one, L1Ball(2.0)) for one in objectives)
    for k, (X, y, w) in enumerate(batches(5)):
        go.objective.use_place("cuda" if k % 2 else "cpu", None)
        assert go.observe(X, y, w).gap == pytest.approx(stay.observe(X, y, w).gap, rel=1e-6)
        np.testing.assert_allclose(
            go.objective.batch_gradient(), stay.objective.batch_gradient(), rtol=1e-7, atol=1e-10
        )
