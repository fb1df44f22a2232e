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


LASSO, LOGISTIC = (Square(), L1Ball(1.0), (8,)), (Logistic(), L1Ball(3.0), (8,))
TRACE = Logistic(), TraceNormBall(2.0), (4, 3)
SLOW = {"marks": pytest.mark.slow}


@pytest.mark.parametrize(
    ("problem", "learner_class", "seed"),
    [
        pytest.param(LASSO, ofw.OnlineFrankWolfe, 0, id="lasso-fw"),
        pytest.param(LASSO, ofw.OnlineAwayFrankWolfe, 1, id="lasso-aw", **SLOW),
        pytest.param(LOGISTIC, ofw.OnlineFrankWolfe, 1, id="logistic-l1-fw", **SLOW),
        pytest.param(LOGISTIC, ofw.OnlineAwayFrankWolfe, 0, id="logistic-l1-aw"),
        pytest.param(LASSO, ofw.OnlinePairwiseFrankWolfe, 0, id="lasso-pairwise"),
        pytest.param(LOGISTIC, ofw.OnlinePairwiseFrankWolfe, 1, id="logistic-pairwise", **SLOW),
        pytest.param(TRACE, ofw.OnlineFrankWolfe, 0, id="logistic-trace-fw"),
    ],
)
def test_the_gap_certifies_every_round_and_the_certificate_the_end(problem, learner_class, seed):
    loss, constraint, shape = problem
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
