"""The hybrid of Garber and Hazan: its local oracle, its distances, its learner."""

import numpy as np
import pytest
from scipy.optimize import linprog

from onlinefw.baselines import OnlineLocalFrankWolfe
from onlinefw.baselines.local_oracle import local_minimiser
from onlinefw.losses import Square
from onlinefw.objectives import (
    GradientOracle,
    LinearObjective,
    ObservedEntries,
    RunningLeastSquares,
)
from onlinefw.sets import L1Ball, Simplex

from ..algorithms.test_online_fw import stream
from ..algorithms.test_state import assert_same_run


def least_product(x, c, distance, radius):
    """min <p, c> with ||p||_1 <= radius and ||p - x||_1 <= distance, as a linear program."""
    n = x.size
    eye = np.eye(n)
    rows = [
        np.hstack([eye, -eye, -eye]),
        np.hstack([-eye, eye, -eye]),
        np.hstack([np.ones((1, n)), np.ones((1, n)), np.zeros((1, n))]),
        np.hstack([np.zeros((1, 2 * n)), np.ones((1, n))]),
    ]
    limits = np.concatenate([x, -x, [radius], [distance]])
    found = linprog(np.concatenate([c, -c, np.zeros(n)]), A_ub=np.vstack(rows), b_ub=limits)
    return found.fun


@pytest.mark.parametrize("seed", range(40))
def test_the_local_minimiser_solves_its_linear_program(seed):
    rng = np.random.default_rng(seed)
    n, radius, distance = int(rng.integers(1, 6)), rng.uniform(0.5, 2), rng.uniform(0, 5)
    x = rng.standard_normal(n) * (rng.random(n) < 0.7)
    if x.any():
        x *= radius * rng.choice([1.0, rng.random()]) / np.abs(x).sum()
    c = rng.standard_normal(n)
    p = local_minimiser(x, c, distance, radius)
    assert np.abs(p).sum() <= radius * (1 + 1e-12)
    assert np.abs(p - x).sum() <= distance + 1e-12
    assert p @ c == pytest.approx(least_product(x, c, distance, radius), abs=1e-9)


def test_far_away_the_local_minimiser_is_the_atom_of_the_ball():
    x, c = np.array([0.2, -0.3, 0.0]), np.array([1.0, -3.0, 0.5])
    np.testing.assert_allclose(local_minimiser(x, c, 2.0, 1.0), L1Ball(1.0).lmo(c).dense())
    np.testing.assert_array_equal(local_minimiser(x, c, 0.0, 1.0), x)


@pytest.mark.parametrize("settings", [{"mu": 0.5}, {"step": 0.2}, {"step": lambda t: 0.3 / t**0.5}])
def test_the_excess_is_never_below_the_distance_from_the_leader(settings, rng):
    """min Phi_t is known: over a ball, the projection of the unconstrained minimiser."""
    ball, mu, eta = L1Ball(1.0), settings.get("mu", 0.0), settings.get("step")
    learner = OnlineLocalFrankWolfe(RunningLeastSquares(4), ball, **settings)
    linear, some = np.zeros(4), 0
    for t, (X, y) in enumerate(stream(rng, 200, (4,)), start=1):
        theta = np.array(learner.theta)
        linear += X.T @ (X @ theta - y) / len(y) - mu * theta
        curvature = mu * t if mu else 2.0 / (eta(t) if callable(eta) else eta)

        def phi(x, b=linear, a=curvature):
            return b @ x + a * x @ x / 2.0

        learner.observe(X, y)
        leader = ball.project(-linear / curvature)
        above = phi(learner.theta) - phi(leader)
        assert above <= learner.excess * (1 + 1e-9)
        assert ball.contains(learner.theta)
        some += above > 0.01 * learner.excess
    assert some > 0  # the bound is of the right order


@pytest.mark.parametrize("settings", [{"mu": 1.0}, {"step": lambda t: 0.2 / t**0.5}])
def test_it_approaches_the_minimiser_on_the_boundary(settings, rng):
    truth = np.array([0.9, -0.6, 0.0])
    learner = OnlineLocalFrankWolfe(LinearObjective(Square()), L1Ball(1.0), **settings)
    for _ in range(1500):
        X = rng.choice([-1.0, 1.0], (4, 3))
        round_ = learner.observe(X, X @ truth)
    np.testing.assert_allclose(learner.theta, [0.65, -0.35, 0.0], atol=0.05)
    assert (round_.kind, round_.step_size) == ("local", 1 / 6)
    assert np.isnan(round_.gap)
    assert learner.certificate() >= 0.0


@pytest.mark.parametrize("settings", [{"mu": 0.5}, {"step": 0.1}])
def test_it_goes_on_bit_for_bit(settings, rng, tmp_path):
    batches = list(stream(rng, 30, (5,)))
    assert_same_run(
        lambda: OnlineLocalFrankWolfe(RunningLeastSquares(5), L1Ball(1.0), **settings),
        batches,
        13,
        tmp_path,
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OnlineLocalFrankWolfe(RunningLeastSquares(3), Simplex()), "Simplex"),
        (lambda: OnlineLocalFrankWolfe(ObservedEntries((3, 4)), L1Ball(1.0)), "every batch"),
        (
            lambda: OnlineLocalFrankWolfe(GradientOracle(lambda th, t: th, 3), L1Ball(1.0)),
            "every batch",
        ),
        (lambda: OnlineLocalFrankWolfe(RunningLeastSquares(3), L1Ball(1.0), mu=-1.0), "got -1.0"),
        (lambda: OnlineLocalFrankWolfe(RunningLeastSquares(3), L1Ball(1.0), 0.0), "got 0.0"),
        (lambda: OnlineLocalFrankWolfe(RunningLeastSquares(3), L1Ball(1.0), 0.1, 5), "one step"),
    ],
)
def test_it_refuses_what_it_cannot_use(make, words):
    with pytest.raises(ValueError, match=words):
        make()
