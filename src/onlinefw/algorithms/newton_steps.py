"""Fully corrective steps on the l1 ball: re-optimise all active coordinates at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Array, State
from .._validation import check_whole
from ..kernels.pairwise import pairwise_steps
from ..objectives import LinearObjective, Objective, RunningLeastSquares
from ..sets import ConvexSet, L1Ball

__all__ = ["NewtonSteps"]

#: The model is minimised to this share of the gap: more exactness would be lost in the next one.
EXACTNESS = 0.1
#: At most so many pairwise steps per coordinate.
STEPS_PER_COORDINATE = 20
#: Added to the diagonal of the model, relative to its mean: repeated columns are no obstacle.
RIDGE = 1e-10


@dataclass
class NewtonSteps:
    """Minimise a quadratic model of F_t over the active coordinates and the best new ones.

    Frank-Wolfe steps add one coordinate at a time and shrink all others. This step takes the
    coordinates of theta and those ``candidates`` with the largest gradient, makes the second-order
    model of F_t in them, and minimises it over the same l1 ball by pairwise Frank-Wolfe steps,
    which cost only the number of coordinates each. Theta then moves to that point, or a part of
    the way if F_t says so; it stays feasible, sparse, and its gap means what it always means.

    Parameters
    ----------
    candidates : int
        How many coordinates may enter at a time.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 40))
    >>> objective = ofw.objectives.LinearObjective(ofw.losses.Logistic())
    >>> learner = ofw.OnlineFrankWolfe(
    ...     objective, ofw.sets.L1Ball(5.0), inner_steps="auto", corrective=ofw.NewtonSteps()
    ... )
    >>> round_ = learner.observe(X, np.sign(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(500)))
    >>> learner.certificate() < 0.01 * objective.value()
    True
    """

    candidates: int = 50

    def __post_init__(self) -> None:
        self.candidates = check_whole("candidates of NewtonSteps", self.candidates)

    def check(self, objective: Objective, constraint: ConvexSet) -> None:
        """Refuse what has no coordinates to correct."""
        kinds = (LinearObjective, RunningLeastSquares)
        if not isinstance(objective, kinds) or not isinstance(constraint, L1Ball):
            raise ValueError(
                "NewtonSteps corrects a LinearObjective or RunningLeastSquares on an L1Ball, got "
                f"{objective} on {constraint}; leave corrective= out"
            )

    def __call__(self, objective: Objective, ball: ConvexSet, gradient: Array, gap: float) -> float:
        """Correct theta; return which part of the step was taken (0: none)."""
        assert isinstance(objective, (LinearObjective, RunningLeastSquares))
        assert isinstance(ball, L1Ball)
        theta = np.asarray(objective.theta).reshape(-1)
        chosen = self._coordinates(theta, gradient.reshape(-1))
        slopes, hessian = objective.quadratic_model(chosen)
        diagonal = np.einsum("ii->i", hessian)
        diagonal += RIDGE * diagonal.mean() + np.finfo(float).tiny
        x = theta[chosen]
        steps = STEPS_PER_COORDINATE * chosen.size
        pairwise_steps(hessian, slopes.copy(), x, ball.radius, steps, EXACTNESS * gap)
        change = x - theta[chosen]
        return objective.shift(chosen, change) if change.any() else 0.0

    def _coordinates(self, theta: Array, gradient: Array) -> Array:
        """Return the coordinates in use and the steepest others, in increasing order."""
        k = min(self.candidates, theta.size)
        steepest = np.argpartition(-np.abs(gradient), k - 1)[:k]
        return np.union1d(np.flatnonzero(theta), steepest)

    def state_dict(self) -> State:
        """Return the parameters."""
        return {"candidates": self.candidates}

    @classmethod
    def from_state(cls, state: State) -> NewtonSteps:
        """Make the corrector that ``state_dict`` described."""
        return cls(**state)
