"""Algorithm 1 of the paper: online Frank-Wolfe (O-FW)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from .._typing import Direction, State
from .._validation import check_part, check_whole
from ..atoms import Atom, as_atom
from ..kernels.lanes import LANES
from ..line_search import search
from ..objectives import Objective, ObservedEntries
from ..objectives.entries_gradient import EntriesGradient
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall
from ..steps import Harmonic, LineSearch
from .block_atom import block_atom
from .learner import STEPS, Learner, check_open_loop
from .newton_steps import NewtonSteps
from .ridge_sweeps import RidgeSweeps
from .rounds import Round

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
        that lowers F_t most instead (the paper's rates are for step rules).
    inner_steps : int or "auto"
        How often lines 4-5 are repeated per batch without new data; each advances the counter.
        "auto" goes on until the gap is below 1% of the mean loss, or 20 times (plain steps more
        often while there are few rows).
    certify_every : int, optional
        Where the LMO is inexact: fill ``Round.gap_upper`` every this many rounds.
    atoms_per_round : int
        Matrix completion: spread every step over so many singular pairs, up to 8. The gap is
        still that of the best single atom.
    corrective : NewtonSteps or RidgeSweeps, optional
        On an l1 ball, ``NewtonSteps()`` replaces line 5 by a second-order step over all active
        coordinates. In matrix completion, ``RidgeSweeps()`` re-optimises the factors of theta when
        the data have grown enough.

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
        atoms_per_round: int = 1,
        corrective: NewtonSteps | RidgeSweeps | None = None,
    ) -> None:
        if certify_every is not None:
            certify_every = check_whole("certify_every", certify_every, otherwise=" or None")
        if corrective is not None:
            if not isinstance(corrective, NewtonSteps):
                check_part("corrective", corrective, RidgeSweeps, "RidgeSweeps() or NewtonSteps()")
            corrective.check(objective, constraint)
            corrective = replace(corrective)  # it may remember: two learners must not share one
        self.atoms_per_round = _checked_block(atoms_per_round, objective, step)
        super().__init__(objective, constraint, step, inner_steps)
        self.certify_every, self.corrective = certify_every, corrective

    @property
    def _most_steps(self) -> int:
        return STEPS if isinstance(self.corrective, NewtonSteps) else super()._most_steps

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

    def _update(self) -> tuple[float, float, float, str]:
        gradient = self.objective.gradient()
        # Line 4: a_t <- argmin over C of <a, grad F_t(theta_t)>
        atom = as_atom(self.constraint.lmo(gradient), gradient.shape)
        gap = self.objective.gap(gradient, atom)
        if self._is_enough(gap):
            return gap, gap, 0.0, "hold"
        if isinstance(self.corrective, NewtonSteps):
            self.n_steps += 1
            part = self.corrective(self.objective, self.constraint, gradient, gap)
            if part > 0.0:
                return gap, gap, part, "corrective"
            self.n_steps -= 1
        # Line 5: theta_{t+1} <- theta_t + gamma_t (a_t - theta_t)
        self.n_steps += 1
        gamma = self._gamma(atom)
        if self.atoms_per_round > 1:
            atom = self._block(gradient, gamma)
        self.objective.move(atom, gamma)
        return gap, gap, gamma, "fw"

    def _gamma(self, atom: Atom) -> float:
        if isinstance(self.step, LineSearch):
            return search(self.objective.line(atom), 1.0, 1.0)
        return self._step_length(self.n_steps)

    def _block(self, gradient: Direction, gamma: float) -> Atom:
        assert isinstance(gradient, EntriesGradient)
        assert isinstance(self.objective, ObservedEntries)
        assert isinstance(self.constraint, (TraceNormBall, WeightedTraceNormBall))
        radius = self.constraint.radius
        return block_atom(self.objective, gradient, radius, gamma, self.atoms_per_round)

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Round:
        """Play theta_t, receive the batch's loss f_t, and update; correct theta if that is due."""
        round_ = super().observe(X, y, sample_weight)
        if not isinstance(self.corrective, RidgeSweeps) or not self.corrective.due(self.objective):
            return round_
        before = self.objective.reads
        self.correct()
        return replace(round_, reads=round_.reads + self.objective.reads - before)

    def correct(self) -> None:
        """Re-optimise the factors of theta now.

        With a given ridge the objective does not rise; with ``ridge="auto"`` the loss of the newest
        entries does not.
        """
        if not isinstance(self.corrective, RidgeSweeps):
            raise ValueError("there is nothing to correct with: pass corrective=RidgeSweeps(...)")
        assert isinstance(self.objective, ObservedEntries)
        self.corrective(self.objective, self.constraint)

    def state_dict(self) -> State:
        """Return everything needed to go on: plain arrays and JSON-able values."""
        corrective = None if self.corrective is None else self.corrective.state_dict()
        return {
            **super().state_dict(),
            "atoms_per_round": self.atoms_per_round,
            "corrective": corrective,
        }

    @classmethod
    def from_state(cls, state: State, **parts: Any) -> Self:
        """Make the learner that ``state_dict`` described; it goes on bit for bit."""
        learner = super().from_state(state, **parts)
        learner.atoms_per_round = int(state.get("atoms_per_round", 1))
        if state.get("corrective") is not None:
            kind = RidgeSweeps if "rank" in state["corrective"] else NewtonSteps
            learner.corrective = kind.from_state(state["corrective"])
        return learner


def _checked_block(k: Any, objective: Any, step: Any) -> int:
    if int(k) != k or not 1 <= k <= LANES:
        raise ValueError(f"atoms_per_round must be a whole number from 1 to {LANES}, got {k!r}")
    if k > 1 and not isinstance(objective, ObservedEntries):
        raise ValueError(f"several atoms per round are for ObservedEntries, got {objective}")
    if k > 1 and isinstance(step, LineSearch):
        raise ValueError("LineSearch() looks along one atom: use atoms_per_round=1 or Harmonic(2)")
    return int(k)
