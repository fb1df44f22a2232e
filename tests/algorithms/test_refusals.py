"""Combinations that cannot work fail at construction, naming both sides and a remedy."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.losses import Square
from onlinefw.objectives import (
    GradientOracle,
    LinearObjective,
    ObservedEntries,
    RunningLeastSquares,
)
from onlinefw.sets import (
    Birkhoff,
    Box,
    GroupL1Ball,
    L1Ball,
    L2Ball,
    Polytope,
    Simplex,
    Spectrahedron,
    TraceNormBall,
    WeightedTraceNormBall,
)
from onlinefw.steps import Harmonic, LineSearch, LogHarmonic, Power, ShortStep


def vector():
    return RunningLeastSquares(4)


def matrix():
    return LinearObjective(Square(), shape=(3, 4))


REFUSED = {
    "away steps on a ball": (
        lambda: ofw.OnlineAwayFrankWolfe(vector(), L2Ball(1.0)),
        ["OnlineAwayFrankWolfe", "L2Ball", "OnlineFrankWolfe"],
    ),
    "away steps on the trace-norm ball": (
        lambda: ofw.OnlineAwayFrankWolfe(matrix(), TraceNormBall(1.0)),
        ["polytope", "TraceNormBall", "L1Ball"],
    ),
    "pairwise steps on a ball": (
        lambda: ofw.OnlinePairwiseFrankWolfe(vector(), L2Ball(1.0)),
        ["OnlinePairwiseFrankWolfe", "L2Ball", "OnlineFrankWolfe"],
    ),
    "blended steps on the trace-norm ball": (
        lambda: ofw.OnlinePairwiseFrankWolfe(matrix(), TraceNormBall(1.0), blended=True),
        ["polytope", "TraceNormBall", "L1Ball"],
    ),
    "a trace-norm ball on vectors": (
        lambda: ofw.OnlineFrankWolfe(vector(), TraceNormBall(1.0)),
        ["TraceNormBall", "(4,)", "shape=(m1, m2)"],
    ),
    "a trace-norm ball on vectors of unknown length": (
        lambda: ofw.OnlineFrankWolfe(LinearObjective(Square()), TraceNormBall(1.0)),
        ["TraceNormBall", "vectors", "shape=(m1, m2)"],
    ),
    "a rectangular spectrahedron": (
        lambda: ofw.OnlineFrankWolfe(matrix(), Spectrahedron()),
        ["square", "(3, 4)"],
    ),
    "a box of another size": (
        lambda: ofw.OnlineFrankWolfe(vector(), Box(np.zeros(3), np.ones(3))),
        ["(3,)", "(4,)"],
    ),
    "groups of another size": (
        lambda: ofw.OnlineFrankWolfe(vector(), GroupL1Ball([0, 0, 1], 1.0)),
        ["3 entries", "(4,)"],
    ),
    "a first step below 1 for O-AW": (
        lambda: ofw.OnlineAwayFrankWolfe(vector(), L1Ball(1.0), step=LogHarmonic()),
        ["OnlineAwayFrankWolfe", "LogHarmonic", "Harmonic"],
    ),
    "a first step below 1 for pairwise steps": (
        lambda: ofw.OnlinePairwiseFrankWolfe(vector(), L1Ball(1.0), step=LogHarmonic()),
        ["OnlinePairwiseFrankWolfe", "LogHarmonic", "Harmonic"],
    ),
    "a short step with pairwise steps": (
        lambda: ofw.OnlinePairwiseFrankWolfe(vector(), L1Ball(1.0), step=ShortStep(1.0)),
        ["OnlinePairwiseFrankWolfe", "ShortStep", "batch_away_frank_wolfe"],
    ),
    "a first step below 1 on a set without 0": (
        lambda: ofw.OnlineFrankWolfe(vector(), Simplex(), step=LogHarmonic()),
        ["Simplex", "LogHarmonic", "0.729"],
    ),
    "a first step below 1 on a box without 0": (
        lambda: ofw.OnlineFrankWolfe(vector(), Box(1.0, 2.0), step=LogHarmonic()),
        ["Box", "LogHarmonic"],
    ),
    "a first step below 1 on a polytope without 0": (
        lambda: ofw.OnlineFrankWolfe(vector(), Polytope(np.eye(4)), step=LogHarmonic()),
        ["Polytope", "LogHarmonic"],
    ),
    "a line search from a point outside the set": (
        lambda: ofw.OnlineFrankWolfe(vector(), Simplex(1.0), step=LineSearch()),
        ["Simplex", "LineSearch", "Harmonic"],
    ),
    "a short step with away steps": (
        lambda: ofw.OnlineAwayFrankWolfe(vector(), L1Ball(1.0), step=ShortStep(1.0)),
        ["OnlineAwayFrankWolfe", "ShortStep", "batch_away_frank_wolfe"],
    ),
    "Newton steps on another set": (
        lambda: ofw.OnlineFrankWolfe(vector(), L2Ball(1.0), corrective=ofw.NewtonSteps()),
        ["NewtonSteps", "L1Ball", "L2Ball", "corrective="],
    ),
    "a short step online": (
        lambda: ofw.OnlineAwayFrankWolfe(vector(), L1Ball(1.0), step=ShortStep(1.0)),
        ["ShortStep", "batch_away_frank_wolfe"],
    ),
    "a number as a step rule": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), step=0.1),
        ["0.1", "Harmonic"],
    ),
    "a step rule that overshoots": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), step=lambda t: 2.0 / t),
        ["(0, 1]", "2"],
    ),
    "low-rank factors on a polytope": (
        lambda: ofw.OnlineAwayFrankWolfe(
            GradientOracle(lambda theta, t: theta, (4, 4), low_rank=True), Birkhoff()
        ),
        ["low_rank=True", "Birkhoff", "TraceNormBall"],
    ),
    "a set in the place of the objective": (
        lambda: ofw.OnlineFrankWolfe(L1Ball(1.0), vector()),
        ["objective", "L1Ball(radius=1.0)"],
    ),
    "a number as a set": (lambda: ofw.OnlineFrankWolfe(vector(), 4.0), ["constraint", "4.0"]),
    "the class of a set": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball),
        ["constraint is the class L1Ball", "L1Ball(...)"],
    ),
    "the class of a step rule": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), step=Harmonic),
        ["step is the class Harmonic", "Harmonic(...)"],
    ),
    "the class of a loss": (
        lambda: LinearObjective(Square),
        ["loss is the class Square", "Square(...)"],
    ),
    "no inner steps": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), inner_steps=0),
        ["inner_steps", "0"],
    ),
    "no steps of the singular pair": (
        lambda: ObservedEntries((3, 4), lmo_steps=0),
        ["lmo_steps", "0"],
    ),
    "a theta of one atom": (lambda: ObservedEntries((3, 4), max_atoms=1), ["max_atoms", "1"]),
    "half precision": (lambda: ObservedEntries((3, 4), dtype="float16"), ["dtype", "float16"]),
    "a weighted ball of another shape": (
        lambda: ofw.OnlineFrankWolfe(
            ObservedEntries((3, 4)), WeightedTraceNormBall(1.0, np.ones(4), np.ones(3))
        ),
        ["WeightedTraceNormBall", "(4, 3)", "(3, 4)"],
    ),
    "weights that are not positive": (
        lambda: WeightedTraceNormBall(1.0, [1.0, 0.0], [1.0]),
        ["WeightedTraceNormBall", "positive weights for rows"],
    ),
    "a certificate every half round": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), certify_every="often"),
        ["certify_every", "often"],
    ),
    "sweeps on rows": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), corrective=ofw.RidgeSweeps()),
        ["RidgeSweeps", "RunningLeastSquares", "corrective="],
    ),
    "an inner step in words": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), inner_steps="many"),
        ["inner_steps", "auto", "many"],
    ),
    "half an inner step": (
        lambda: ofw.OnlineFrankWolfe(vector(), L1Ball(1.0), inner_steps=1.5),
        ["inner_steps", "1.5"],
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_wrong_combinations_are_refused_at_construction(name):
    make, words = REFUSED[name]
    with pytest.raises(ValueError) as error:
        make()
    for word in words:
        assert word in str(error.value)


def test_a_second_learner_on_one_objective_is_refused():
    objective = vector()
    ofw.OnlineFrankWolfe(objective, L1Ball(1.0))
    with pytest.raises(ValueError, match="make a new objective") as error:
        ofw.OnlineAwayFrankWolfe(objective, L1Ball(1.0))
    assert "OnlineFrankWolfe" in str(error.value)
    assert "OnlineAwayFrankWolfe" in str(error.value)


def test_a_refused_learner_does_not_claim_the_objective():
    objective = vector()
    for make in (
        lambda: ofw.OnlineFrankWolfe(objective, TraceNormBall(1.0)),
        lambda: ofw.OnlineAwayFrankWolfe(objective, L2Ball(1.0)),
        lambda: ofw.OnlineAwayFrankWolfe(objective, L1Ball(1.0), step=ShortStep(1.0)),
    ):
        with pytest.raises(ValueError):
            make()
    ofw.OnlineFrankWolfe(objective, L1Ball(1.0))


def test_a_shape_known_only_from_the_first_batch_is_checked_there_and_nothing_changes():
    objective = LinearObjective(Square())
    learner = ofw.OnlineFrankWolfe(objective, Box(np.zeros(3), np.ones(3)))
    with pytest.raises(ValueError, match=r"\(3,\).*\(4,\)"):
        learner.observe(np.ones((2, 4)), np.ones(2))
    assert objective.n_observations == 0
    assert learner.theta is None
    learner.observe(np.ones((2, 3)), np.ones(2))
    assert learner.t == 1


def test_good_combinations_pass():
    ofw.OnlineAwayFrankWolfe(LinearObjective(Square(), shape=(4, 4)), Birkhoff(), step=Power(0.5))
    ofw.OnlineFrankWolfe(matrix(), TraceNormBall(1.0), step=LogHarmonic())
    ofw.OnlineFrankWolfe(GradientOracle(lambda th, t: th, 3), Simplex(), step=Harmonic(5))
