"""Every round's objective lies within its FW gap of the optimum that cvxpy finds."""

import cvxpy as cp
import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import LinearObjective
from onlinefw.sets import L1Ball, TraceNormBall

ROUNDS, BATCH = 20, 6
TOLERANCE = 1e-6  # of the reference solver


def optimum(loss, X, y, shape, constraint):
    theta = cp.Variable(shape)
    z = X @ (cp.vec(theta, order="C") if len(shape) == 2 else theta)
    terms = (
        cp.sum(cp.logistic(cp.multiply(-y, z)))
        if isinstance(loss, Logistic)
        else cp.sum_squares(z - y) / 2
    )
    norm = cp.normNuc(theta) if isinstance(constraint, TraceNormBall) else cp.norm1(theta)
    problem = cp.Problem(cp.Minimize(terms / len(y)), [norm <= constraint.radius])
    problem.solve(solver=cp.SCS, eps_abs=1e-9, eps_rel=1e-9, max_iters=200_000)
    assert problem.status == cp.OPTIMAL
    return problem.value


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("loss", "constraint", "shape", "learner_class"),
    [
        (Square(), L1Ball(1.0), (8,), ofw.OnlineFrankWolfe),
        (Square(), L1Ball(1.0), (8,), ofw.OnlineAwayFrankWolfe),
        (Logistic(), L1Ball(3.0), (8,), ofw.OnlineFrankWolfe),
        (Logistic(), L1Ball(3.0), (8,), ofw.OnlineAwayFrankWolfe),
        (Square(), L1Ball(1.0), (8,), ofw.OnlinePairwiseFrankWolfe),
        (Logistic(), L1Ball(3.0), (8,), ofw.OnlinePairwiseFrankWolfe),
        (Logistic(), TraceNormBall(2.0), (4, 3), ofw.OnlineFrankWolfe),
    ],
    ids=[
        "lasso-fw",
        "lasso-aw",
        "logistic-l1-fw",
        "logistic-l1-aw",
        "lasso-pairwise",
        "logistic-l1-pairwise",
        "logistic-trace-fw",
    ],
)
def test_the_gap_certifies_every_round_and_the_certificate_the_end(
    seed, loss, constraint, shape, learner_class
):
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    truth = rng.standard_normal(n)
    objective = LinearObjective(loss, **({"shape": shape} if len(shape) == 2 else {}))
    learner = learner_class(objective, constraint)
    X, y = np.empty((0, n)), np.empty(0)
    for _ in range(ROUNDS):
        new_X = rng.standard_normal((BATCH, n))
        new_y = new_X @ truth + rng.standard_normal(BATCH)
        new_y = np.sign(new_y) if isinstance(loss, Logistic) else new_y
        X, y = np.vstack((X, new_X)), np.append(y, new_y)
        theta = np.zeros(n) if learner.theta is None else learner.theta.ravel()
        round_ = learner.observe(new_X, new_y)
        best = optimum(loss, X, y, shape, constraint)
        value = np.mean(loss.value(X @ theta, y))  # F_t(theta_t), recomputed
        assert -TOLERANCE <= value - best <= round_.fw_gap + TOLERANCE
    final = np.mean(loss.value(X @ learner.theta.ravel(), y))
    assert objective.value() == pytest.approx(final)
    assert -TOLERANCE <= final - best <= learner.certificate() + TOLERANCE
