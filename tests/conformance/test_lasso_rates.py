"""Rates on the paper's synthetic LASSO: 80 x 300, 10% sparse, noise of standard deviation 10."""

import cvxpy as cp
import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import theory
from onlinefw.datasets import make_lasso
from onlinefw.experiments.online_lasso import minimum_excess, run_online_lasso

SEEDS, T = range(3), 2000


@pytest.mark.slow
@pytest.mark.parametrize("learner_class", [ofw.OnlineFrankWolfe, ofw.OnlineAwayFrankWolfe])
@pytest.mark.parametrize(("factor", "slowest"), [(1.1, -0.9), (0.15, -0.7)])
def test_the_mean_of_h_falls_at_the_rate_of_the_paper(learner_class, factor, slowest):
    curves = []
    for seed in SEEDS:
        problem = make_lasso(seed=seed)
        radius = factor * np.abs(problem.theta).sum()
        minimum = minimum_excess(problem, radius)
        curves.append(run_online_lasso(problem, radius, T, learner_class, minimum=minimum))
    t = curves[0].t
    late = t >= T // 10
    mean = np.mean([curve.h for curve in curves], axis=0)
    assert theory.fit_rate(t[late], mean[late]).slope <= slowest


def test_the_minimum_on_the_boundary_is_the_one_cvxpy_finds():
    problem = make_lasso(m=40, n=60, seed=1)
    radius = 0.15 * np.abs(problem.theta).sum()
    theta = cp.Variable(60)
    reference = cp.Problem(
        cp.Minimize(cp.sum_squares(problem.A @ (theta - problem.theta)) / 2),
        [cp.norm1(theta) <= radius],
    )
    reference.solve(solver=cp.CLARABEL)
    assert minimum_excess(problem, radius) == pytest.approx(reference.value, rel=1e-6)
    assert minimum_excess(problem, 2 * np.abs(problem.theta).sum()) == 0.0
