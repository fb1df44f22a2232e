"""Weights of a trace norm by how often rows and columns are seen."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from .._threads import one_blas_thread
from .._typing import Array
from ..algorithms import OnlineFrankWolfe
from ..objectives import ObservedEntries
from ..sets import WeightedTraceNormBall

__all__ = ["SmoothedWeights"]

#: Weights are refreshed when the data have grown by this factor.
GROWTH = 1.1


class SmoothedWeights:
    """The square roots of half empirical, half uniform frequencies, relative to uniform ones."""

    def __init__(self) -> None:
        self.due = 0.0

    def grow(self, learners: Sequence[Any], X: Array) -> None:
        """Add the new rows and columns of X, with the weight of those never seen."""
        m1, m2 = X.max(axis=0).tolist()
        m1, m2 = m1 + 1, m2 + 1
        for learner in learners:  # each by itself: growing may have failed after some of them
            objective, ball = learner.objective, learner.constraint
            weighted = type(ball) is WeightedTraceNormBall
            if weighted and m1 <= ball.rows.size and m2 <= ball.columns.size:
                continue
            assert isinstance(objective, ObservedEntries)
            objective.grow(m1, m2)
            if not isinstance(ball, WeightedTraceNormBall):
                continue
            if (ball.rows.size, ball.columns.size) != objective.shape:
                sizes = zip((ball.rows, ball.columns), objective.shape or (), strict=True)
                grown = [np.append(w, np.full(n - w.size, sqrt(0.5))) for w, n in sizes]
                _constrain(learner, WeightedTraceNormBall(ball.radius, *grown))

    def refresh(self, learners: Sequence[Any]) -> None:
        """Compute the weights from the data, if these have grown enough."""
        objective = learners[0].objective
        if objective.n_observations < self.due:
            return
        self.due = objective.observations_until(GROWTH)
        for learner in learners:
            _reweigh(learner)


def _reweigh(learner: OnlineFrankWolfe) -> None:
    """Set the ball's weights; theta is scaled back if that leaves it outside."""
    objective, radius = learner.objective, learner.constraint.radius  # type: ignore[attr-defined]
    assert isinstance(objective, ObservedEntries)
    m1, m2 = objective.shape or (0, 0)
    rows, columns = objective.weighted_sums(np.ones(m1), np.ones(m2))
    ball = WeightedTraceNormBall(
        radius,
        np.sqrt(0.5 * m1 * rows / rows.sum() + 0.5),
        np.sqrt(0.5 * m2 * columns / columns.sum() + 0.5),
    )
    with one_blas_thread():
        norm = ball.norm(objective._low_rank)
    if norm > radius:
        objective.shrink(radius / norm)
    _constrain(learner, ball)


def _constrain(learner: OnlineFrankWolfe, ball: WeightedTraceNormBall) -> None:
    assert isinstance(learner.objective, ObservedEntries)
    learner.objective.constrain(ball)
    learner.constraint = ball
