"""What every corrective provides: a way to re-optimise what theta is made of."""

from __future__ import annotations

from .._state import check_state
from .._typing import Array, Direction, State
from ..objectives import Objective
from ..sets import ConvexSet

__all__ = ["Corrective"]


class Corrective:
    """A strategy that improves theta beside the steps of the algorithm.

    A learner calls ``step`` in every step, where ``takes_steps`` is true, and ``after_round`` at
    the end of every round; ``learner.correct()`` calls ``correct``, and ``learner.finish()`` calls
    ``finish``. All of them leave theta inside the set, so gaps and certificates stay valid. A
    corrective of your own is a subclass that overrides what it needs: by default nothing is done.

    A learner works with a copy of the corrective that it is given, so two learners do not share
    what a corrective remembers.

    Examples
    --------
    A corrective that shrinks theta by a percent after every tenth round:

    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.algorithms import Corrective
    >>> class Shrink(Corrective):
    ...     def __init__(self):
    ...         self.rounds = 0
    ...
    ...     def after_round(self, objective, constraint):
    ...         self.rounds += 1
    ...         if self.rounds % 10 == 0:
    ...             self.correct(objective, constraint)
    ...
    ...     def correct(self, objective, constraint):
    ...         objective.put(0.99 * objective.theta)
    >>> objective = ofw.objectives.RunningLeastSquares(2)
    >>> learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(1.0), corrective=Shrink())
    >>> for _ in range(10):
    ...     _ = learner.observe(np.eye(2), [5.0, 0.0])
    >>> learner.theta
    array([0.99, 0.  ])
    """

    #: Whether ``step`` may take the place of the algorithm's own step.
    takes_steps: bool = False

    def check(self, objective: Objective, constraint: ConvexSet) -> None:
        """Refuse parts that this corrective cannot correct, when a learner is made of them."""

    def waits(self, objective: Objective) -> bool:
        """Whether a round that has brought new data ends with that: theta is corrected later."""
        return False

    def room(self, objective: Objective, w: Array) -> int:
        """Return how many of the next rows, of weights w, come until it no longer waits."""
        return 1

    def most_steps(self, objective: Objective, most: int) -> int:
        """Return how many steps a round with ``inner_steps="auto"`` may take, of ``most``."""
        return most

    def begin(self, objective: Objective, constraint: ConvexSet) -> None:
        """Begin to work for a learner, which has just been made of these parts, or loaded."""

    def step(
        self, objective: Objective, constraint: ConvexSet, gradient: Direction, gap: float
    ) -> float:
        """Move theta in place of the algorithm's own step.

        Parameters
        ----------
        objective, constraint
            The parts of the learner.
        gradient : array or operator
            The gradient of F_t at theta.
        gap : float
            The Frank-Wolfe gap of theta.

        Returns
        -------
        float
            Which part of the step was taken, up to 1. After 0 the algorithm takes its own step.
        """
        return 0.0

    def after_round(self, objective: Objective, constraint: ConvexSet) -> None:
        """Correct theta at the end of a round, if that is due."""

    def correct(self, objective: Objective, constraint: ConvexSet) -> None:
        """Correct theta now."""

    def finish(self, objective: Objective, constraint: ConvexSet) -> None:
        """Correct theta at the end of a stream; nothing, if that has been done already."""
        self.correct(objective, constraint)

    def state_dict(self) -> State:
        """Return parameters and progress as plain values: all attributes, by default."""
        return dict(vars(self))

    def load_state(self, state: State) -> None:
        """Take over parameters and progress that ``state_dict`` returned."""
        check_state(state, *vars(self))
        vars(self).update({name: state[name] for name in vars(self)})
