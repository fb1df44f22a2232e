"""Corrective sweeps for matrix completion: the factors themselves, re-optimised now and then."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt
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

#: Before there are so many observations for each number in the factors, sweeps fit noise.
LEAST = 2.0
#: The first ridge is this times the square root of (rank * mean loss). That square root would be
#: right if half of the variance were in as many directions of equal weight; less is, as a rule.
FIRST = 8.0
#: Then it is halved, doubled, or kept at most this many times in one correction, with a sweep each,
#: while the newest entries are predicted better by this factor.
HALVINGS, BETTER = 3, 0.999


@dataclass
class RidgeSweeps(Corrective):
    """Alternating ridge regressions on the factors of theta, when the data have grown enough.

    The trace norm of X is the smallest ``(|W|^2 + |H|^2) / 2`` over X = W H', so alternating
    ridge regressions for W and H (as in active ALT) minimise the same loss with the same norm, over
    matrices of bounded rank, from where theta is. They move the whole subspace at once, which
    rank-one steps cannot. The result is scaled back into the ball, so theta stays feasible, and
    gaps and certificates stay valid.

    Where theta has a lower rank, random directions are added to it first: sweeps find what is in
    the data from there in a few alternations.

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
        Correct when the data have grown by this factor since the last time (where they fade, in
        growing weights: by a factor of 2 in a half-life).
    start : int
        Do not begin before this many observations, nor before there are two for each number in the
        factors.

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
        assert isinstance(objective, ObservedEntries)
        n = objective.n_observations
        if n >= max(self._due, self.start):
            counting = n if objective.half_life is None else objective.total_weight / objective.unit
            if counting >= LEAST * self.rank * sum(objective.shape or ()):
                self.correct(objective, constraint)
            else:  # the next time is that of a schedule that begins here
                self._due = objective.observations_until(self.growth)

    def finish(self, objective: Objective, constraint: ConvexSet) -> None:
        """Correct theta at the end of a stream, unless it is what the last correction has left."""
        assert isinstance(objective, ObservedEntries)
        has_grown = objective.observations_until(self.growth) > self._due
        if has_grown or objective._low_rank.n_atoms > self.rank:
            self.correct(objective, constraint)

    def correct(self, objective: Objective, constraint: ConvexSet) -> None:
        """Re-optimise the factors of theta now.

        With a given ridge the objective does not rise; with ``ridge="auto"`` the loss of the newest
        entries does not.
        """
        assert isinstance(objective, ObservedEntries)
        assert isinstance(constraint, (TraceNormBall, WeightedTraceNormBall))
        self._due = objective.observations_until(self.growth)
        theta = objective._low_rank
        if theta.n_atoms == 0:
            return
        with one_blas_thread():
            start = _start(theta, self.rank, seed=objective.n_observations)
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
        problem = _Regressions(objective, ball, everything=False)
        before = score(objective._low_rank)
        if not 0.0 < before < inf:
            return  # theta explains everything, or its loss overflows
        first = ridge = self._found or FIRST * sqrt(self.rank * before) / problem.mean_penalty
        best = problem.sweep(start, ridge, self.sweeps)
        best_score = score(best)
        for factor in (0.5, 2.0, 1.0):
            if factor == 2.0 and ridge < first:
                continue  # it has just come from there
            for _ in range(HALVINGS):
                other = problem.sweep((best.left, best.right), factor * ridge, 1)
                if not (found := score(other)) < BETTER * best_score:
                    break
                best, best_score, ridge = other, found, factor * ridge
        if best_score < before:
            objective.put(best)
            self._found = ridge

    def load_state(self, state: State) -> None:
        """Take over parameters and progress that ``state_dict`` returned."""
        super().load_state(state)
        self.__post_init__()
        self._due = number(self._due, "when sweeps are due")
        self._found = None if self._found is None else number(self._found, "the ridge found")


def _start(theta: LowRank, rank: int, seed: int) -> Factors:
    """Return the leading part of theta as balanced factors of this rank.

    What theta lacks of it are random columns on the left, and zeros on the right, so that the
    product is the same.
    """
    u, s, v = theta.svd()
    xp, root = namespace(u), np.sqrt(s[:rank])
    left, right = (x[:, :rank] * xp.asarray(root.astype(x.dtype)) for x in (u, v))
    missing = min(rank, *theta.shape) - root.size
    if missing <= 0:
        return left, right
    more = np.random.default_rng(seed).standard_normal((len(left), missing))
    more *= root[0] / sqrt(len(left))  # as long as the first column
    nothing = xp.zeros((len(right), missing), right.dtype)
    left = xp.column_stack((left, xp.asarray(more.astype(left.dtype))))
    return left, xp.column_stack((right, nothing))


class _Regressions:
    """Every row's and every column's regression on the other side's factors."""

    def __init__(self, objective: ObservedEntries, ball: Any, everything: bool) -> None:
        self.ball, self.data = ball, objective.regressions(everything)
        self.factors = type(objective._low_rank).from_factors
        m1, m2 = objective.shape or (0, 0)
        a, b = (np.ones(m1), np.ones(m2)) if ball.scales is None else ball.scales
        self.row_penalty, self.column_penalty = 1.0 / a**2, 1.0 / b**2
        self.unit = objective.unit  # a ridge is as heavy as so many new observations

    @property
    def mean_penalty(self) -> float:
        """What a ridge of 1 is for rows and columns, on average."""
        return sqrt(self.row_penalty.mean() * self.column_penalty.mean())

    def sweep(self, factors: Factors, ridge: float, times: int) -> LowRank:
        """Alternate ``times`` between columns and rows, and scale the product into the ball."""
        left, right = factors
        for _ in range(times):
            right = self.data.solve_columns(left, self.unit * ridge * self.column_penalty)
            left = self.data.solve_rows(right, self.unit * ridge * self.row_penalty)
            left, right = self._balanced(left, right)
        k = left.shape[1]
        norm = self.ball.norm(self.factors(left, np.ones(k), right))
        scale = min(1.0, self.ball.radius / norm) if norm > 0.0 else 1.0
        return self.factors(left, np.full(k, scale), right)

    def _balanced(self, left: Array, right: Array) -> Factors:
        """Return factors of the same product that have the same penalty.

        So have the best factors, but sweeps alone need many alternations to get there.
        """
        xp = namespace(left)
        penalties = [
            float(xp.square(x).sum(axis=1, dtype=float) @ xp.asarray(penalty))
            for x, penalty in ((left, self.row_penalty), (right, self.column_penalty))
        ]
        if not all(0.0 < penalty < inf for penalty in penalties):
            return left, right
        scale = left.dtype.type((penalties[1] / penalties[0]) ** 0.25)
        return left * scale, right / scale
