"""Learners side by side on one past equal learners that are alone."""

import numpy as np
import pytest
import scipy.sparse as sp

import onlinefw as ofw
from onlinefw.algorithms.side_by_side import SideBySide
from onlinefw.losses import Logistic
from onlinefw.objectives import LinearObjective, RunningLeastSquares
from onlinefw.sets import L1Ball

RADII = (0.5, 2.0, 8.0)
PASTS = {
    "rows": lambda: LinearObjective(Logistic(), n_features=6, fit_intercept=True),
    "recent rows": lambda: LinearObjective(Logistic(), n_features=6, past="recent", max_past=30),
    "sums": lambda: RunningLeastSquares(6, fit_intercept=True),
}


def batches(rng, rounds, kind=np.asarray):
    for _ in range(rounds):
        X = rng.standard_normal((9, 6)) * (rng.random((9, 6)) < 0.7)
        yield kind(X), np.sign(X[:, 0] + 0.5 * rng.standard_normal(9) + 0.1)


def team(make):
    first = make()
    objectives = [first, *(first.beside() for _ in RADII[1:])]
    pairs = zip(objectives, RADII, strict=True)
    return SideBySide([ofw.OnlineFrankWolfe(one, L1Ball(r), inner_steps=2) for one, r in pairs])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("make", PASTS.values(), ids=PASTS)
def test_side_by_side_equals_alone(make, kind, rng):
    together = team(make)
    alone = [ofw.OnlineFrankWolfe(make(), L1Ball(r), inner_steps=2) for r in RADII]
    for X, y in batches(rng, 12, kind):
        rounds = together.observe(X, [y] * 3)
        for one, round_ in zip(alone, rounds, strict=True):
            assert one.observe(X, y).gap == pytest.approx(round_.gap, abs=1e-10)
    for one, other in zip(alone, together.learners, strict=True):
        np.testing.assert_allclose(other.theta, one.theta, atol=1e-10)


@pytest.mark.parametrize("make", PASTS.values(), ids=PASTS)
def test_some_of_the_learners_go_on_without_the_others(make, rng):
    together, alone = team(make), ofw.OnlineFrankWolfe(make(), L1Ball(2.0), inner_steps=2)
    for k, (X, y) in enumerate(batches(rng, 12)):
        together.observe(X, [y] * len(together.learners))
        alone.observe(X, y)
        if k == 5:
            together.keep([1, 2])
        if k == 8:
            together.keep([0])
    (left,) = together.learners
    np.testing.assert_allclose(left.theta, alone.theta, atol=1e-10)
    assert left.certificate() == pytest.approx(alone.certificate(), abs=1e-10)
    left.observe(X, y)  # alone now, it may be taught alone


@pytest.mark.parametrize("make", PASTS.values(), ids=PASTS)
def test_a_team_goes_on_from_its_state_bit_for_bit(make, rng):
    one, other = team(make), team(make)
    stream = list(batches(rng, 12))
    for X, y in stream[:6]:
        one.observe(X, [y] * 3)
    other.load_state(one.state_dict())
    for X, y in stream[6:]:
        assert one.observe(X, [y] * 3) == other.observe(X, [y] * 3)
    with pytest.raises(ValueError, match="of 3 learners, not of 1"):
        SideBySide(other.learners[:1]).load_state(one.state_dict())


@pytest.mark.parametrize("make", PASTS.values(), ids=PASTS)
def test_pairwise_steps_side_by_side_equal_those_alone(make, rng):
    first = make()
    objectives = [first, *(first.beside() for _ in RADII[1:])]
    pairs = zip(objectives, RADII, strict=True)
    together = SideBySide([ofw.OnlinePairwiseFrankWolfe(one, L1Ball(r)) for one, r in pairs])
    alone = [ofw.OnlinePairwiseFrankWolfe(make(), L1Ball(r)) for r in RADII]
    for X, y in batches(rng, 20):
        for one, round_ in zip(alone, together.observe(X, [y] * 3), strict=True):
            assert one.observe(X, y).gap == pytest.approx(round_.gap, abs=1e-10)
    for one, other in zip(alone, together.learners, strict=True):
        np.testing.assert_allclose(other.theta, one.theta, atol=1e-10)
        assert len(other.active_set) == len(one.active_set)
