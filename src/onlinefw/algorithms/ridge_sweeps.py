"""Corrective sweeps for matrix completion: the factors themselves, re-optimised now and then."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from .._devices import namespace
from .._state import number
from .._threads import one_blas_thread
from .._typing import Array, State
from .._validation import check_whole
from ..iterates import LowRank
from ..objectives import Objective, ObservedEntries
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall
from .correctives import Corrective

__all__ = ["RidgeSweeps"]

Factors = tuple[Array, Array]

#: The first ridge is the best of SEARCH_LENGTH, each SEARCH_STEP times smaller than the last ...
SEARCH_LENGTH, SEARCH_STEP = 5, 4.0
#: ... and from then on halved or doubled at most this many times in one correction.
HALVINGS = 3


@dataclass
class RidgeSweeps(Corrective):
    """Alternating ridge regressions on the factors of theta, when the data have grown enough.

    The trace norm of X is the smallest ``(|W|^2 + |H|^2) / 2`` over X = W H', so alternating
    ridge regressions for W and H (as in active ALT) minimise the same loss with the same norm, over
    matrices of bounded rank, from where theta is. They move the whole subspace at once, which
    rank-one steps cannot. The result is scaled back into the ball, so theta stays feasible, and
    gaps and certificates stay valid.

    With ``ridge="auto"`` the newest entries (the store's unsorted tail) are left out of the
    regressions and decide: the ridge is halved or doubled while they are predicted better, and
    the outcome is taken if they are predicted better than by theta. With a given ridge it is taken
    if the objective is lower.

    Parameters
    ----------
    rank : int
        The rank of the factors.
    ridge : float or "auto"
        The penalty, in units of the *sum* of half squared errors.
    sweeps : int
        Alternations each time.
    growth : float
        Correct when the data have grown by this factor since the last time.
    start : int
        Do not begin before this many observations.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    >>> X = np.column_stack((rng.integers(60, size=4000), rng.integers(40, size=4000)))
    >>> objective = ofw.objectives.ObservedEntries((60, 40), dtype=float)
    >>> ball = ofw.sets.TraceNormBall(1.01 * np.linalg.norm(truth, "nuc"))
    >>> learner = ofw.OnlineFrankWolfe(objective, ball, corrective=ofw.RidgeSweeps(2, ridge=0.1))
    >>> for part in np.split(np.arange(4000), 20):
    ...     round_ = learner.observe(X[part], truth[X[part, 0], X[part, 1]])
    >>> learner.correct()
    >>> objective.value() < 1e-3
    True
    """

    rank: int = 10
    ridge: float | str = "auto"
    sweeps: int = 2
    growth: float = 2.0
    start: int = 0
    _due: float = field(default=0.0, repr=False)
    _found: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, least in (("rank", 1), ("sweeps", 1), ("start", 0)):
            value = check_whole(f"{name} of RidgeSweeps", getattr(self, name), least)
            setattr(self, name, value)
        if isinstance(self.ridge, Real) and 0 < self.ridge < inf:
            self.ridge = float(self.ridge)
        elif not (isinstance(self.ridge, str) and self.ridge == "auto"):
            raise ValueError(f'RidgeSweeps needs a positive ridge or "auto", got {self.ridge!r}')
        if not (isinstance(self.growth, Real) and self.growth > 1.0):
            raise ValueError(f"RidgeSweeps needs growth > 1, got {self.growth!r}")

    def check(self, objective: Objective, constraint: ConvexSet) -> None:
        """Refuse what has no ridge regressions."""
        if not isinstance(objective, ObservedEntries) or not objective.quadratic:
            raise ValueError(
                "RidgeSweeps corrects ObservedEntries with the square loss, "
                f"got {objective}; leave corrective= out"
            )

    def after_round(self, objective: Objective, constraint: ConvexSet) -> None:
        """Correct theta if the data have grown enough since the last time."""
        if objective.n_observations >= max(self._due, self.start):
            self.correct(objective, constraint)

    def correct(self, objective: Objective, constraint: ConvexSet) -> None:
        """Re-optimise the factors of theta now.

        With a given ridge the objective does not rise; with ``ridge="auto"`` the loss of the newest
        entries does not.
        """
        assert isinstance(objective, ObservedEntries)
        assert isinstance(constraint, (TraceNormBall, WeightedTraceNormBall))
        self._due = self.growth * objective.n_observations
        theta = objective._low_rank
        if theta.n_atoms == 0:
            return
        with one_blas_thread():
            start = _top(theta, self.rank)
            if self.ridge == "auto":
                self._validated(objective, constraint, start)
            else:
                before, old = objective.value(), theta.copy()
                problem = _Regressions(objective, constraint, everything=True)
                objective.put(problem.sweep(start, float(self.ridge), self.sweeps))
                if objective.value() > before:
                    objective.put(old)

    def _validated(self, objective: ObservedEntries, ball: Any, start: Factors) -> None:
        """Let the newest entries choose the ridge, and whether to leave theta at all."""
        score = objective.newest_loss
        newest = objective.n_newest
        if newest < 2 or objective.n_entries == newest:
            return  # nothing to decide with, or to learn from, yet
        largest = self._found or _multiplier(objective, ball)
        if not largest > 0.0:
            return  # the gradient is zero: theta is optimal
        # Where nothing has helped yet, look everywhere below the ridge at which theta would be 0,
        # each time from theta: a ridge that is too large makes the factors 0.
        length = SEARCH_LENGTH if self._found is None else 1
        problem = _Regressions(objective, ball, everything=False)
        best, best_score, ridge = None, np.inf, largest
        for trial in largest * SEARCH_STEP ** -np.arange(length):
            other = problem.sweep(start, trial, self.sweeps)
            if (found := score(other)) < best_score:
                best, best_score, ridge = other, found, float(trial)
        if best is None:
            return  # no trial has a finite loss
        for factor in (0.5, 2.0):
            for _ in range(HALVINGS):
                other = problem.sweep((best.left, best.right), factor * ridge, 1)
                if (found := score(other)) >= best_score:
                    break
                best, best_score, ridge = other, found, factor * ridge
        if best_score < score(objective._low_rank):
            objective.put(best)
            self._found = ridge

    def load_state(self, state: State) -> None:
        """Take over parameters and progress that ``state_dict`` returned."""
        super().load_state(state)
        self.__post_init__()
        self._due = number(self._due, "when sweeps are due")
        self._found = None if self._found is None else number(self._found, "the ridge found")


def _multiplier(objective: ObservedEntries, ball: Any) -> float:
    """Return the penalty for which theta would be optimal, if it were the best of its norm."""
    gradient = objective.gradient()
    atom = ball.lmo(gradient)
    return -gradient.score(atom) / ball.radius * objective.total_weight


def _top(theta: LowRank, rank: int) -> Factors:
    """Return the leading part of theta as balanced factors."""
    u, s, v = theta.svd()
    root = namespace(u).asarray(np.sqrt(s[:rank]).astype(u.dtype))
    return u[:, :rank] * root, v[:, :rank] * root


class _Regressions:
    """Every row's and every column's regression on the other side's factors."""

    def __init__(self, objective: ObservedEntries, ball: Any, everything: bool) -> None:
        self.ball, self.data = ball, objective.regressions(everything)
        self.factors = type(objective._low_rank).from_factors
        m1, m2 = objective.shape or (0, 0)
        a, b = (np.ones(m1), np.ones(m2)) if ball.scales is None else ball.scales
        self.row_penalty, self.column_penalty = 1.0 / a**2, 1.0 / b**2

    def sweep(self, factors: Factors, ridge: float, times: int) -> LowRank:
        """Alternate ``times`` between columns and rows, and scale the product into the ball."""
        left, right = factors
        for _ in range(times):
            right = self.data.solve_columns(left, ridge * self.column_penalty)
            left = self.data.solve_rows(right, ridge * self.row_penalty)
        k = left.shape[1]
        norm = self.ball.norm(self.factors(left, np.ones(k), right))
        scale = min(1.0, self.ball.radius / norm) if norm > 0.0 else 1.0
        return self.factors(left, np.full(k, scale), right)
