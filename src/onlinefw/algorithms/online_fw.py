"""Algorithm 1 of the paper: online Frank-Wolfe (O-FW)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

from .._state import check_state
from .._typing import State
from .._validation import check_part, check_whole
from .._whole import WholeRound
from ..atoms import Atom, as_atom
from ..line_search import search
from ..objectives import Objective, ObservedEntries
from ..sets import ConvexSet
from ..steps import Harmonic, LineSearch
from .correctives import Corrective
from .learner import Learner, check_open_loop, finish
from .rebuild import describe_corrective, rebuild_corrective
from .rounds import Outcome

__all__ = ["OnlineFrankWolfe"]


class OnlineFrankWolfe(Learner):
    """Online Frank-Wolfe: each round moves a little towards one extreme point of the set.

    Parameters
    ----------
    objective : Objective
        What is kept of the past, from :mod:`onlinefw.objectives`.
    constraint : ConvexSet
        Where theta lives, from :mod:`onlinefw.sets`. If it does not contain 0, the first step
        must have length 1, and theta is feasible from the end of round 1 on.
    step : callable or LineSearch
        The step rule, a function of the step counter 1, 2, ...; ``LineSearch()`` takes the step
        that lowers F_t most instead (the paper's rates are for step rules). If the objective has
        a half-life, the rule gets the number of steps taken for what still counts: steps that went
        on shrinking would lose a target that moves (:func:`~onlinefw.theory.tracking_bound`).
    inner_steps : int or "auto"
        How often lines 4-5 are repeated per batch without new data; each advances the counter.
        "auto" goes on until the gap is below 1% of the mean loss, or 20 times (plain steps more
        often while there are few rows).
    certify_every : int, optional
        Where the LMO is inexact: fill ``Round.gap_upper`` every this many rounds.
    corrective : Corrective, optional
        A strategy that may replace line 5 (:class:`~onlinefw.NewtonSteps` on an l1 ball), or
        re-optimise theta after a round (:class:`~onlinefw.RidgeSweeps` for matrix completion).

    Attributes
    ----------
    theta : ndarray or LowRank
        The current model, read-only; predictions are ``X @ theta`` (plus ``objective.intercept``,
        if the objective has one).
    t, n_steps : int
        Rounds played, and the step counter.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> objective = ofw.objectives.RunningLeastSquares(n_features=20)
    >>> learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(3.0))
    >>> for _ in range(200):
    ...     X = rng.standard_normal((10, 20))
    ...     round_ = learner.observe(X, X[:, 0] - 2 * X[:, 1])
    >>> round_.t, learner.certificate() < 0.1
    (200, True)
    """

    def __init__(
        self,
        objective: Objective,
        constraint: ConvexSet,
        step: Callable[[int], float] | LineSearch = Harmonic(2),  # noqa: B008 (immutable)
        inner_steps: int | str = 1,
        *,
        certify_every: int | None = None,
        corrective: Corrective | None = None,
    ) -> None:
        if certify_every is not None:
            certify_every = check_whole("certify_every", certify_every, otherwise=" or None")
        if corrective is not None:
            check_part("corrective", corrective, Corrective, "RidgeSweeps() or NewtonSteps()")
            corrective.check(objective, constraint)
        # Line 1: theta_1 <- 0, which is where an objective starts
        super().__init__(objective, constraint, step, inner_steps)
        self.certify_every = certify_every
        self.corrective = deepcopy(corrective)  # two learners must not share what it remembers
        self._begin()

    def _check_parts(self) -> None:
        searched = isinstance(self.step, LineSearch)
        if not searched:
            check_open_loop(self.step, "OnlineFrankWolfe")
        if not self.constraint.contains_zero and (searched or self.step(1) != 1.0):
            first = "is searched" if searched else f"has length {self.step(1):g}"
            raise ValueError(
                f"{self.constraint} does not contain the starting point 0, so the first step must "
                f"have length 1, but with {self.step} it {first}; use Harmonic or Power"
            )

    def _update(self) -> Outcome:
        """Lines 4 and 5 of the box. Lines 2 and 3 are ``Learner.play``."""
        objective, constraint, corrective = self.objective, self.constraint, self.corrective
        # Line 4: a_t <- argmin over a in C of <a, grad F_t(theta_t)>
        gradient = objective.gradient()
        atom = constraint.lmo(gradient)
        if not isinstance(atom, Atom):  # a set of the user's own may return arrays
            atom = as_atom(atom, gradient.shape)
        gap = objective.gap(gradient, atom)
        if self.inner_steps == "auto" and self._is_enough(gap):
            return Outcome(gap, gap, 0.0, "hold")

        n = self.n_steps + 1
        if corrective is not None and corrective.takes_steps:  # in place of line 5
            part = corrective.step(objective, constraint, gradient, gap)
            if part > 0.0:
                self.n_steps = n
                return Outcome(gap, gap, part, "corrective")
        # Line 5: theta_{t+1} <- theta_t + gamma_t (a_t - theta_t)
        searched = isinstance(self.step, LineSearch)
        gamma = search(objective.line(atom), 1.0, 1.0) if searched else self._gamma(n)
        objective.move(atom, gamma)
        self.n_steps = n
        return Outcome(gap, gap, gamma, "fw")

    def forget(self, row: int) -> None:
        """Forget all that a row of a matrix has brought (``ObservedEntries``).

        Its entries and biases leave the past and its row of theta becomes 0. Then theta is
        corrected on the F_t that is left: one more round is played without new data. What the row
        has taught the columns may leave traces in theta below the certificate.
        """
        objective = self.objective
        if not isinstance(objective, ObservedEntries):
            raise ValueError(f"rows of a matrix are forgotten by ObservedEntries, not {objective}")
        row = objective.check_row(row)
        with WholeRound(self, (self.t, objective.mark())), objective.working():
            objective.forget(row)
            if objective.total_weight > 0.0:
                finish(self._steps(float("nan"), objective.reads))

    def _state(self, objective: State) -> State:
        return {**super()._state(objective), "corrective": describe_corrective(self.corrective)}

    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described, of a learner with the same parts."""
        check_state(state, "corrective")
        corrective = rebuild_corrective(state["corrective"], self.corrective)
        super().load_own(state)
        self.corrective = corrective
        self._begin()

    @classmethod
    def from_state(cls, state: State, **parts: Any) -> Self:
        """Make the learner that ``state_dict`` described; see :class:`~.algorithms.Learner`."""
        check_state(state, "corrective")
        corrective = rebuild_corrective(state["corrective"], parts.pop("corrective", None))
        learner = super().from_state(state, **parts)
        if corrective is not None:
            corrective.check(learner.objective, learner.constraint)
        learner.corrective = corrective
        learner._begin()
        return learner

    def _begin(self) -> None:
        if self.corrective is not None:
            self.corrective.begin(self.objective, self.constraint)

    def __setstate__(self, state: State) -> None:
        super().__setstate__(state)
        self._begin()
