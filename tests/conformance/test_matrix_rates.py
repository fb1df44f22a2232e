"""The paper's synthetic matrix completion, made small: rank 10, two noisy entries for each cell."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.datasets import make_matrix_completion
from onlinefw.objectives import ObservedEntries
from onlinefw.theory import fit_rate

SHAPE, BATCH, ROUNDS = (100, 1000), 200, 1000


@pytest.mark.slow
def test_the_distance_from_the_truth_falls_about_like_one_over_t():
    data = make_matrix_completion(SHAPE, rank=10, n_observations=BATCH * ROUNDS, seed=0)
    truth = data.left @ data.right.T
    X = np.column_stack((data.rows, data.cols))
    objective = ObservedEntries(data.shape)
    ball = ofw.sets.TraceNormBall(1.1 * np.linalg.norm(truth, "nuc"))
    learner = ofw.OnlineFrankWolfe(objective, ball)
    rounds, distances = [], []
    for t in range(1, ROUNDS + 1):
        part = slice((t - 1) * BATCH, t * BATCH)
        learner.observe(X[part], data.values[part])
        if t >= ROUNDS // 2 and t % 50 == 0:
            rounds.append(t)
            error = learner.theta.dense() - truth
            distances.append(np.sum(error**2) / (2 * truth.size))
    slope = fit_rate(np.array(rounds), np.array(distances)).slope
    assert -1.3 <= slope <= -0.8
