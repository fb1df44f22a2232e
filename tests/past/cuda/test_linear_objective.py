"""On a device a learner goes the same way as in this process's memory."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import onlinefw as ofw
from onlinefw.algorithms.side_by_side import SideBySide
from onlinefw.losses import Correntropy, Logistic, Sigmoid, Square
from onlinefw.objectives import LinearObjective
from onlinefw.sets import KSparse, L1Ball, L2Ball, TraceNormBall
from onlinefw.steps import LineSearch, Power

from ...pairs import every_pair
from .problems import KINDS, LOSSES, Quartic, batches, follow, make_rows, scale_of


@pytest.mark.parametrize(
    ("kind", "name", "fit_intercept"), every_pair(KINDS, [*LOSSES], [False, True])
)
@pytest.mark.usefixtures("cuda")
def test_the_same_way_for_every_loss(rng, kind, name, fit_intercept):
    loss, targets = LOSSES[name]

    def make(device):
        objective = LinearObjective(loss, fit_intercept=fit_intercept, device=device)
        assert objective.device == device
        return ofw.OnlineFrankWolfe(objective, L1Ball(0.6 / scale_of(kind)))

    follow(("cpu", "cuda"), make, batches(rng, kind, targets, rounds=12))


WAYS = {
    "matrices": (
        lambda objective: ofw.OnlineFrankWolfe(objective, TraceNormBall(0.8), step=Power(0.75)),
        {"shape": (3, 4)},
    ),
    "dense atoms": (lambda objective: ofw.OnlineFrankWolfe(objective, L2Ball(0.8)), {}),
    "sparse atoms": (lambda objective: ofw.OnlineFrankWolfe(objective, KSparse(2, 0.5)), {}),
    "away steps": (lambda objective: ofw.OnlineAwayFrankWolfe(objective, L1Ball(0.8)), {}),
    "pairwise steps": (
        lambda objective: ofw.OnlinePairwiseFrankWolfe(objective, L1Ball(0.8), LineSearch()),
        {"fit_intercept": True},
    ),
    "blended steps": (
        lambda objective: ofw.OnlinePairwiseFrankWolfe(objective, L1Ball(0.8), blended=True),
        {},
    ),
    "line search": (
        lambda objective: ofw.OnlineFrankWolfe(objective, L1Ball(0.8), step=LineSearch()),
        {"fit_intercept": True},
    ),
    "corrective": (
        lambda objective: ofw.OnlineFrankWolfe(
            objective, L1Ball(0.8), LineSearch(), "auto", corrective=ofw.NewtonSteps()
        ),
        {"fit_intercept": True},
    ),
    "recent": (
        lambda objective: ofw.OnlineFrankWolfe(objective, L2Ball(0.8)),
        {"past": "recent", "max_past": 31},
    ),
    "fading": (
        lambda objective: ofw.OnlineFrankWolfe(objective, L1Ball(0.8), LineSearch()),
        {"half_life": 3.0, "fit_intercept": True},
    ),
    "fading sample": (
        lambda objective: ofw.OnlineFrankWolfe(objective, L2Ball(0.8)),
        {"past": "reservoir", "max_past": 20, "random_state": 3, "half_life": 7.0},
    ),
    "reservoir": (
        lambda objective: ofw.OnlineFrankWolfe(objective, L1Ball(0.8)),
        {"past": "reservoir", "max_past": 20, "random_state": 3, "fit_intercept": True},
    ),
}


@pytest.mark.parametrize(
    ("kind", "way", "loss"),
    every_pair(
        ["float64", "float32", "sparse float64"],
        [*WAYS],
        [Square(), Logistic(), Correntropy(1.0)],
    ),
    ids=str,
)
@pytest.mark.usefixtures("cuda")
def test_the_same_way_for_every_algorithm(rng, kind, way, loss):
    learner, settings = WAYS[way]
    signed = isinstance(loss, Logistic)

    def make(device):
        return learner(LinearObjective(loss, device=device, **settings))

    def targets(z):
        return np.where(z > 0.0, 1.0, -1.0) if signed else z

    follow(("cpu", "cuda"), make, batches(rng, kind, targets))


@pytest.mark.parametrize("kind", ["uint8", "sparse float32"])
@pytest.mark.usefixtures("cuda")
def test_a_loss_of_the_users_own(rng, kind):
    def make(device):
        objective = LinearObjective(Quartic(), fit_intercept=True, device=device)
        return ofw.OnlineFrankWolfe(objective, L1Ball(0.5 / scale_of(kind)), step=LineSearch())

    follow(("cpu", "cuda"), make, batches(rng, kind, lambda z: z))


@pytest.mark.parametrize("kind", ["float32", "sparse float64"])
@pytest.mark.usefixtures("cuda")
def test_models_that_share_their_rows(rng, kind):
    teams = [team_of_three(device) for device in ("cpu", "cuda")]
    for X, y, w in batches(rng, kind, lambda z: np.where(z > 0.0, 1.0, -1.0)):
        rounds = [team.observe(X, [y, -y, y], w) for team in teams]
        gaps = [[one.gap for one in each] for each in rounds]
        np.testing.assert_allclose(gaps[1], gaps[0], rtol=1e-4, atol=1e-7)
    assert_same_team(*teams)


def team_of_three(device):
    first = LinearObjective(
        Logistic(), fit_intercept=True, past="recent", max_past=40, device=device
    )
    balls = (L1Ball(0.3), L1Ball(1.0), L2Ball(0.5))
    pairs = zip((first, first.beside(), first.beside()), balls, strict=True)
    return SideBySide([ofw.OnlineFrankWolfe(one, ball) for one, ball in pairs])


def assert_same_team(one, other):
    thetas = [[learner.theta for learner in team.learners] for team in (one, other)]
    np.testing.assert_allclose(thetas[1], thetas[0], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("kind", ["uint8", "sparse float64"])
@pytest.mark.parametrize(("saved", "loaded"), [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")])
@pytest.mark.usefixtures("cuda")
def test_models_that_share_their_rows_go_on_anywhere(rng, kind, saved, loaded):
    team, other = team_of_three(saved), team_of_three(loaded)
    stream = list(batches(rng, kind, lambda z: np.where(z > 0.0, 1.0, -1.0)))
    for X, y, w in stream[:15]:
        team.observe(X, [y, -y, y], w)
    state = team.state_dict()
    assert _all_on_host(state)
    other.load_state(state)
    for X, y, w in stream[15:20]:
        team.observe(X, [y, -y, y], w), other.observe(X, [y, -y, y], w)
    other.use_place(saved, None)
    for one in (team, other):
        one.keep([0, 2])
    for X, y, w in stream[20:]:
        team.observe(X, [y, y], w), other.observe(X, [y, y], w)
    assert_same_team(team, other)


def test_rows_may_come_from_the_device(cuda, rng):
    def make(device):
        return ofw.OnlineFrankWolfe(LinearObjective(Square(), device=device), L1Ball(1.0))

    for kind in ("float64", "float32", "uint8"):
        here, there = make("cpu"), make("cuda")
        for X, y, w in batches(rng, kind, lambda z: z, n_features=11, rounds=5):
            a = here.observe(X, y, w)
            b = there.observe(cuda.asarray(X), cuda.asarray(y), cuda.asarray(w))
            assert b.loss == pytest.approx(a.loss, rel=1e-5)
        np.testing.assert_allclose(there.theta, here.theta, rtol=1e-5)


class Tensor:
    """An array of another library on the device, which can be passed on through DLPack."""

    def __init__(self, inner):
        self._inner = inner

    def __dlpack__(self, *args, **kwargs):
        return self._inner.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self):
        return self._inner.__dlpack_device__()


def test_rows_may_come_from_other_libraries(cuda, rng):
    X, y, w = next(batches(rng, "float32", lambda z: z))
    here, there = LinearObjective(Square()), LinearObjective(Square(), device="cuda")
    expected = here.observe(X, y, w)
    found = there.observe(*(Tensor(cuda.asarray(one)) for one in (X, y, w)))
    assert found == pytest.approx(expected)
    np.testing.assert_allclose(there.gradient(), here.gradient(), rtol=1e-5)
    with pytest.raises(ValueError, match="X is on a GPU"):
        here.observe(Tensor(cuda.asarray(X)), y)


@pytest.mark.gpu
def test_sparse_rows_may_come_from_the_device(rng):
    import cupyx.scipy.sparse as csp

    X, y, w = next(batches(rng, "sparse float64", lambda z: z))
    here, there = LinearObjective(Square()), LinearObjective(Square(), device="cuda")
    here.observe(X, y, w)
    there.observe(csp.csr_matrix(sp.csr_matrix(X)), y, w)
    np.testing.assert_allclose(there.gradient(), here.gradient(), rtol=1e-5)
    with pytest.raises(ValueError, match="X is on a GPU"):
        here.observe(csp.csr_matrix(sp.csr_matrix(X)), y)


def test_bad_rows_from_the_device_change_nothing(cuda):
    objective = LinearObjective(Square(), device="cuda")
    X = np.ones((3, 4))
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match="X has nan in row 1, column 2"):
        objective.observe(cuda.asarray(X), np.ones(3))
    with pytest.raises(ValueError, match="one row per observation"):
        objective.observe(cuda.asarray(np.ones(3)), np.ones(3))
    assert objective.n_observations == 0


def test_bytes_first_and_other_numbers_then(cuda, rng):
    def make(device):
        return ofw.OnlineFrankWolfe(LinearObjective(Square(), device=device), L1Ball(0.01))

    here, there = make("cpu"), make("cuda")
    for k, kind in enumerate(("uint8", "float32", "uint8", "float64", "sparse float64", "uint8")):
        X = make_rows(rng, 5, 9, kind)
        y = rng.standard_normal(5)
        here.observe(X, y)
        there.observe(cuda.asarray(X) if k == 2 else X, y)
    np.testing.assert_allclose(there.theta, here.theta, rtol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "sparse float64"])
@pytest.mark.parametrize("ball", [L1Ball(0.8), L2Ball(0.8)], ids=str)
@pytest.mark.parametrize(("saved", "loaded"), [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")])
@pytest.mark.usefixtures("cuda")
def test_a_state_goes_on_anywhere(rng, kind, ball, saved, loaded):
    objective = LinearObjective(Sigmoid(), past="recent", max_past=30, device=saved)
    learner = ofw.OnlineFrankWolfe(objective, ball)
    stream = list(batches(rng, kind, lambda z: np.where(z > 0.0, 1.0, -1.0)))
    for X, y, w in stream[:15]:
        learner.observe(X, y, w)
    state = learner.state_dict()
    assert _all_on_host(state)
    other = ofw.OnlineFrankWolfe.from_state(state, device=loaded)
    assert other.objective.device == loaded
    for X, y, w in stream[15:]:
        a, b = learner.observe(X, y, w), other.observe(X, y, w)
        assert b.gap == pytest.approx(a.gap, rel=1e-4, abs=1e-8)
    np.testing.assert_allclose(other.theta, learner.theta, rtol=1e-5, atol=1e-9)


def _all_on_host(value):
    if isinstance(value, dict):
        return all(_all_on_host(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return all(_all_on_host(item) for item in value)
    return value is None or isinstance(value, (np.ndarray, np.generic, str, int, float))


@pytest.mark.parametrize("kind", ["uint8", "sparse float64"])
@pytest.mark.usefixtures("cuda")
def test_a_pickle_goes_back_to_the_device_if_there_is_one(rng, kind, monkeypatch):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Square(), device="cuda"), L2Ball(0.01))
    stream = list(batches(rng, kind, lambda z: z))
    for X, y, w in stream[:9]:
        learner.observe(X, y, w)
    stored = pickle.dumps(learner)
    again = pickle.loads(stored)
    with monkeypatch.context() as patch:
        patch.setattr(ofw._devices, "_why_not", lambda: "is not here")
        elsewhere = pickle.loads(stored)
        elsewhere = pickle.loads(pickle.dumps(elsewhere))
    elsewhere = pickle.loads(pickle.dumps(elsewhere))  # once there, it stays there
    assert (again.objective.device, elsewhere.objective.device) == ("cuda", "cpu")
    for X, y, w in stream[9:]:
        gaps = [one.observe(X, y, w).gap for one in (learner, again, elsewhere)]
        assert gaps[1:] == pytest.approx([gaps[0]] * 2, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    ("loss", "ball", "fit_intercept"),
    every_pair([Square(), Sigmoid(), Quartic()], [L1Ball(0.8), L2Ball(0.8)], [False, True]),
)
@pytest.mark.usefixtures("cuda")
def test_a_pickle_goes_on_bit_for_bit(rng, loss, ball, fit_intercept):
    settings = {"past": "reservoir", "max_past": 40, "random_state": 3}
    objective = LinearObjective(loss, fit_intercept=fit_intercept, device="cuda", **settings)
    learner = ofw.OnlineFrankWolfe(objective, ball, step=LineSearch())
    for k, (X, y, w) in enumerate(batches(rng, "float32", np.sign)):
        learner.observe(X, y, w)
        if k == 10:
            again = pickle.loads(pickle.dumps(learner))  # a move may wait
        elif k > 10:
            again.observe(X, y, w)
    assert again.objective.device == "cuda"
    np.testing.assert_array_equal(again.theta, learner.theta)
    assert again.objective.intercept == learner.objective.intercept


@pytest.mark.parametrize("kind", ["float32", "sparse float64"])
@pytest.mark.usefixtures("cuda")
def test_rows_move_to_the_device_and_back(rng, kind):
    objectives = [LinearObjective(Sigmoid(), past="recent", max_past=30) for _ in range(2)]
    stay, go = (ofw.OnlineFrankWolfe(one, L2Ball(0.8)) for one in objectives)
    for k, (X, y, w) in enumerate(batches(rng, kind, np.sign)):
        go.objective.use_place("cuda" if k % 3 else "cpu", None)
        assert go.observe(X, y, w).gap == pytest.approx(stay.observe(X, y, w).gap, rel=1e-4)
    np.testing.assert_allclose(go.theta, stay.theta, rtol=1e-5, atol=1e-9)


@pytest.mark.usefixtures("cuda")
def test_facts_are_those_of_the_host(rng):
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    pairs = []
    for device in ("cpu", "cuda"):
        objective = LinearObjective(Square(), device=device, shape=(2, 3))
        objective.observe(X, y)
        objective.put(0.1 * np.arange(6.0).reshape(2, 3))
        pairs.append(
            [
                objective.smoothness(),
                objective.batch_smoothness(),
                objective.value(),
                *objective.batch_gradient().reshape(-1),
                *objective.gradient().reshape(-1),
            ]
        )
    np.testing.assert_allclose(pairs[1], pairs[0], rtol=1e-6)


@pytest.mark.usefixtures("cuda")
def test_a_saturated_loss_is_said(rng):
    objective = LinearObjective(Sigmoid(), device="cuda")
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(1e5))
    with pytest.warns(RuntimeWarning, match="saturated"):
        for _ in range(3):
            learner.observe(np.ones((4, 2)), np.array([1.0, -1.0, 1.0, -1.0]))


@pytest.mark.usefixtures("cuda")
def test_columns_are_made_of_a_long_tail(rng):
    objective = LinearObjective(Square(), device="cuda")
    tails = []
    for _ in range(30):
        objective.observe(sp.csr_array(rng.standard_normal((4, 3))), np.ones(4))
        rows = objective._shared.past._held.rows
        tails.append((len(rows) - rows._bulk_rows) / len(rows))
    assert 0.0 < max(tails) < 0.125
