"""Pairwise Frank-Wolfe on a summary of the stream: a step after every row, no rows kept."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from .._state import check_state, rebuild
from .._typing import Array, State
from .._validation import check_part
from ..objectives import SummaryObjective
from ..sets import ConvexSet, L1Ball
from .learner import Learner
from .rebuild import rebuild_objective
from .rounds import Outcome, Round
from .side_by_side import SideBySide

__all__ = ["SummariesSideBySide", "SummaryFrankWolfe"]

#: A saved theta may exceed its ball by this share of the radius.
ROUNDING = 1e-6


class SummaryFrankWolfe(Learner):
    """Frank-Wolfe on the l1 ball whose rows are forgotten: one step a row, in one compiled loop.

    After each row the estimated gradient names a vertex (the largest entry, found in a tree of
    bounds without reading all features), and weight moves to it from the worst active vertex, or
    from the slack of the ball: a pairwise step, as long as the estimated curvature says. With
    ``estimator="recursive"`` and "momentum" it is the published plain step 1 / (t + 1). A row costs
    its own nonzeros, and results do not depend on how rows are cut into batches.

    Parameters
    ----------
    objective : SummaryObjective
        What is kept of the stream.
    constraint : L1Ball
        Where theta lives.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> objective = ofw.objectives.SummaryObjective(ofw.losses.Square(), n_features=20)
    >>> learner = ofw.SummaryFrankWolfe(objective, ofw.sets.L1Ball(3.0))
    >>> for _ in range(100):
    ...     X = rng.standard_normal((20, 20))
    ...     round_ = learner.observe(X, X[:, 0] - 2 * X[:, 1])
    >>> learner.theta[:2].round(1), bool(np.abs(learner.theta[2:]).max() < 0.05)
    (array([ 1., -2.]), True)
    >>> learner.certificate(), learner.gap_estimate() < 0.1
    (nan, True)
    """

    objective: SummaryObjective

    def __init__(self, objective: SummaryObjective, constraint: ConvexSet) -> None:
        check_part("objective", objective, SummaryObjective, "SummaryObjective(Square(), 10)")
        super().__init__(objective, constraint, None)

    def _check_parts(self) -> None:
        if not isinstance(self.constraint, L1Ball):
            raise ValueError(
                f"SummaryFrankWolfe moves along the signed coordinates of an L1Ball, got "
                f"{self.constraint}: use L1Ball(radius), or OnlineFrankWolfe on {self.objective}"
            )

    # Rounds ---------------------------------------------------------------------------------------

    def play(self, batch: Any) -> Round:
        """Learn checked rows one after another; they make one round.

        Its ``loss`` is the mean over the rows, each at the theta before it came.
        """
        loss, _ = self._learn(batch)
        self.t += 1
        nan = float("nan")
        return Round(self.t, loss, nan, nan, nan, "pairwise", self.n_steps)

    def play_events(self, batch: Any) -> Array:
        """Learn checked rows, each a round; return what was predicted for each before."""
        _, predicted = self._learn(batch)
        self.t += predicted.size
        return predicted

    def _learn(self, batch: Any) -> tuple[float, Array]:
        ball: Any = self.constraint
        learned = self.objective.play(batch, float(ball.radius))
        self.n_steps += len(batch.w)
        return learned

    def _update(self) -> Outcome:
        self._refuse()

    def refine(self) -> Round:
        """Refuse: no rows are kept that a round without new ones could use."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "a summary learns from new rows only: none are kept to go over again, so there are no "
            "rounds without them (no refine, no epochs)"
        )

    def gap_estimate(self) -> float:
        """Return the Frank-Wolfe gap of the estimated gradient at the current theta.

        It is no certificate: the estimate has errors, which are not known.
        """
        return self.objective.gap_estimate(self.constraint)

    # State ----------------------------------------------------------------------------------------

    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described, of a learner with the same parts."""
        super().load_own(state)
        self._check_theta()

    def _check_theta(self) -> None:
        if not self.constraint.contains(self.objective.theta, tol=ROUNDING):
            raise ValueError(f"the theta of the state is not in {self.constraint}")

    @classmethod
    def from_state(cls, state: State, **parts: Any) -> Self:
        """Make the learner that ``state_dict`` described; see :class:`~.algorithms.Learner`."""
        check_state(state, "learner", "t", "n_steps", "largest", "constraint", "objective")
        if state["learner"] != cls.__name__:
            raise ValueError(
                f"this is the state of a {state['learner']}, not of a {cls.__name__}: "
                f"call {state['learner']}.from_state"
            )
        constraint = rebuild(state["constraint"], "constraint", parts.pop("constraint", None))
        objective: Any = rebuild_objective(
            state["objective"], parts.pop("objective", None), **parts
        )
        learner = cls(objective, constraint)
        learner._check_theta()
        learner._load_progress(state)
        return learner


class SummariesSideBySide(SideBySide):
    """Learners that each have a summary of their own: each plays the batch by itself.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.algorithms.summary_fw import SummariesSideBySide
    >>> objective = ofw.objectives.SummaryObjective(ofw.losses.Square(), 2)
    >>> pairs = zip([objective, objective.beside()], [1.0, 5.0])
    >>> learners = [ofw.SummaryFrankWolfe(one, ofw.sets.L1Ball(r)) for one, r in pairs]
    >>> y = np.array([1.0, -3.0])
    >>> [one.loss for one in SummariesSideBySide(learners).observe(np.eye(2), [y, y])]
    [2.5, 2.5]
    """

    def play(self, batch: Any) -> list[Round]:
        """Play a round with a checked batch; the caller sees to it that it is whole."""
        pairs = zip(self.learners, batch.targets, strict=True)
        return [one.play(batch._replace(targets=[y])) for one, y in pairs]

    def go_on(self, half_life: float | None) -> None:
        """Let the estimates fade with another half-life from now on."""
        for one in self._objectives:
            one.go_on(half_life)

    def refine(self) -> list[Round]:
        """Refuse: no rows are kept."""
        return [one.refine() for one in self.learners]
