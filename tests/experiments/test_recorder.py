import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.datasets import make_lasso
from onlinefw.experiments.recorder import BatchWatch, batches, late_minimum, log_rounds, play

PROBLEM = make_lasso(m=8, n=12)
RADIUS = 2.0


def learner():
    return ofw.OnlineFrankWolfe(ofw.objectives.RunningLeastSquares(12), ofw.sets.L1Ball(RADIUS))


def test_what_is_seen_is_theta_t_before_round_t_is_played():
    at = np.array([1, 4, 20])
    trace = play(learner, lambda: PROBLEM.rounds(20), 20, {"norm": np.linalg.norm}, at=at)
    again, norms = learner(), []
    for t, (A, y) in enumerate(PROBLEM.rounds(20), start=1):
        if t in at:
            norms.append(np.linalg.norm(again.theta))
        last = again.observe(A, y)
    assert trace.looks["norm"].tolist() == norms
    assert trace.t.tolist() == at.tolist()
    assert trace.fw_gap[-1] == last.fw_gap == trace.gap_at()[-1]
    assert trace.n_steps.tolist() == list(range(1, 21))


def test_seconds_grow_and_rounds_are_all_timed():
    trace = play(learner, lambda: PROBLEM.rounds(50), 50, {})
    assert trace.seconds[0] >= 0 and np.all(np.diff(trace.seconds) > 0)
    assert trace.round_seconds.shape == (50,) and len(trace.round_milliseconds(5)) == 5


def test_a_stream_that_ends_early_is_an_error():
    with pytest.raises(ValueError, match="after 5 of 9 rounds"):
        play(learner, lambda: PROBLEM.rounds(5), 9, {})


def test_progress_is_told():
    told = []
    play(learner, lambda: PROBLEM.rounds(5), 5, {}, told.append)
    assert told == [1, 2, 3, 4, 5]


def test_rounds_to_look_at_are_spread_evenly_in_log_t_and_end_at_the_last():
    at = log_rounds(1000)
    assert at[0] == 2 and at[-1] == 1000 and np.all(np.diff(at) > 0)
    assert log_rounds(1).tolist() == [1]


def test_batches_are_all_the_rows_in_order():
    X, y = np.arange(10).reshape(5, 2), np.arange(5)
    parts = list(batches(X, y, 2))
    assert [len(part[1]) for part in parts] == [2, 2, 1]
    assert np.concatenate([part[1] for part in parts]).tolist() == [*range(5)]


def test_a_batch_solver_is_watched_after_every_iteration():
    objective = ofw.objectives.RunningLeastSquares(12)
    watch = BatchWatch({"norm": np.linalg.norm})
    objective.observe(PROBLEM.A, PROBLEM.A @ PROBLEM.theta)
    ofw.baselines.batch_frank_wolfe(
        objective, ofw.sets.L1Ball(RADIUS), max_iter=4, tol=0.0, callback=watch
    )
    assert len(watch.seconds) == len(watch.looks["norm"]) == 4
    assert 0 < watch.seconds[0] < watch.seconds[1]


def test_the_late_minimum_looks_at_the_second_half_only():
    gap = np.array([0.1, 5.0, 4.0, 3.0, 6.0, 2.0])
    assert late_minimum(gap, np.array([4, 6])).tolist() == [3.0, 2.0]
