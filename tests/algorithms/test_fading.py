"""Learners on rows that fade: steps that do not vanish, corrections that keep coming."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.losses import Logistic
from onlinefw.objectives import LinearObjective, RunningLeastSquares
from onlinefw.sets import L1Ball, Simplex
from onlinefw.steps import Harmonic, Power

N = 5


def stream(rng, rounds, size):
    for t in range(rounds):
        X = rng.standard_normal((size, N))
        angle = t / 50
        score = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
        yield X, np.sign(score + 0.2 * rng.standard_normal(size))


LEARNERS = {
    "fw": lambda objective: ofw.OnlineFrankWolfe(objective, L1Ball(1.0), inner_steps=3),
    "fw, power": lambda objective: ofw.OnlineFrankWolfe(objective, Simplex(), Power(0.6)),
    "away": lambda objective: ofw.OnlineAwayFrankWolfe(objective, L1Ball(1.0)),
    "pairwise": lambda objective: ofw.OnlinePairwiseFrankWolfe(objective, L1Ball(1.0)),
}


@pytest.mark.parametrize("name", list(LEARNERS))
def test_a_rule_counts_the_steps_for_rows_that_still_count(name, rng):
    half_life, size = 40.0, 8
    learner = LEARNERS[name](RunningLeastSquares(N, half_life=half_life))
    for t, batch in enumerate(stream(rng, 300, size), start=1):
        round_ = learner.observe(*batch)
        n = size * t
        still = np.sum(2.0 ** (-np.arange(n) / half_life)) / n
        if round_.kind != "drop":
            expected = learner.step(int(np.ceil(learner.n_steps * still - 1e-9)))
            assert round_.step_size == pytest.approx(expected)
    assert still * learner.n_steps < 40
    assert round_.step_size > 0.03


def test_without_a_half_life_every_step_counts(rng):
    learner = LEARNERS["fw"](RunningLeastSquares(N))
    for batch in stream(rng, 20, 8):
        round_ = learner.observe(*batch)
        assert round_.step_size == Harmonic(2)(learner.n_steps)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearObjective(Logistic(), half_life=100.0),
        lambda: LinearObjective(Logistic(), half_life=100.0, past="reservoir", max_past=90),
        lambda: RunningLeastSquares(N, half_life=100.0, fit_intercept=True),
    ],
    ids=["rows", "sample", "sums"],
)
def test_corrections_keep_coming_at_the_same_distance(make, rng):
    corrective = ofw.NewtonSteps(growth=1.3)
    learner = ofw.OnlineFrankWolfe(make(), L1Ball(2.0), inner_steps="auto", corrective=corrective)
    times = []
    for t, batch in enumerate(stream(rng, 4500, 1)):  # 45 half-lives: weights are rescaled
        if not np.isnan(learner.observe(*batch).gap):
            times.append(t)
    late = np.diff([t for t in times if t > 1000])
    # log2(1.3) half-lives are 37.9 rows; a short memory that is full waits for 48
    assert set(late.tolist()) == {48}
    assert learner.objective.shift > 0


def test_rows_that_fade_are_followed_with_a_certificate(rng):
    """On a target that rotates F_t of a half-life has a small minimum, that of all rows has not."""
    values = {}
    for half_life in (None, 60.0):
        objective = LinearObjective(Logistic(), half_life=half_life)
        learner = ofw.OnlineFrankWolfe(
            objective, L1Ball(5.0), inner_steps="auto", corrective=ofw.NewtonSteps()
        )
        for batch in stream(rng, 400, 5):
            learner.observe(*batch)
        assert learner.certificate() <= 0.011 * objective.value()
        values[half_life] = objective.value()
    assert values[60.0] < 0.7 * values[None]
