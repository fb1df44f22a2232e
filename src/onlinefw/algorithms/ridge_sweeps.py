"""Corrective sweeps for matrix completion: the factors themselves, re-optimised now and then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._threads import one_blas_thread
from .._typing import Array, State
from ..iterates import LowRank
from ..kernels.ridge import ridge_rows, transpose
from ..objectives import Objective, ObservedEntries
from ..objectives.sorted_store import balanced_blocks
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall

__all__ = ["RidgeSweeps"]

#: How far the ridge may go in one sweep on its way to the radius.
LARGEST_CHANGE = 4.0


@dataclass
class RidgeSweeps:
    """Alternating ridge regressions on the factors of theta, when the data have grown enough.

    The trace norm of X is the smallest (|W|^2 + |H|^2) / 2 over X = W H', so alternating ridge
    regressions for W and H (as in active ALT) minimise the same loss with the same norm, over
    matrices of bounded rank, from where theta is. They move the whole subspace at once, which
    rank-one steps cannot. The result is brought back into the ball and taken if the objective is
    lower; so theta stays feasible, and gaps and certificates mean what they always mean.

    Parameters
    ----------
    rank : int
        Of the factors.
    ridge : float, optional
        The penalty, in units of the *sum* of half squared errors. By default it is looked for,
        sweep by sweep, so that the trace norm comes out at the radius.
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
    >>> learner = ofw.OnlineFrankWolfe(objective, ball, corrective=ofw.RidgeSweeps(rank=2))
    >>> for part in np.split(np.arange(4000), 20):
    ...     round_ = learner.observe(X[part], truth[X[part, 0], X[part, 1]])
    >>> learner.correct()
    >>> objective.value() < 1e-3
    True
    """

    rank: int = 10
    ridge: float | None = None
    sweeps: int = 2
    growth: float = 2.0
    start: int = 0
    _due: float = field(default=0.0, repr=False)
    _found: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, smallest in (("rank", 1), ("sweeps", 1)):
            if int(getattr(self, name)) != getattr(self, name) or getattr(self, name) < smallest:
                raise ValueError(
                    f"RidgeSweeps needs a whole number {name} >= 1, got {getattr(self, name)!r}"
                )
        if self.ridge is not None and not self.ridge > 0.0:
            raise ValueError(f"RidgeSweeps needs a positive ridge, got {self.ridge!r}")
        if not self.growth > 1.0:
            raise ValueError(f"RidgeSweeps needs growth > 1, got {self.growth!r}")

    def check(self, objective: Objective, constraint: ConvexSet) -> None:
        """Refuse what has no ridge regressions."""
        if not isinstance(objective, ObservedEntries) or not objective.quadratic:
            raise ValueError(
                "RidgeSweeps corrects ObservedEntries with the square loss, "
                f"got {objective}; leave corrective= out"
            )

    def due(self, objective: Objective) -> bool:
        """Tell whether the data have grown enough since the last correction."""
        return objective.n_observations >= max(self._due, self.start)

    def __call__(self, objective: ObservedEntries, ball: ConvexSet) -> None:
        """Correct theta."""
        assert isinstance(ball, (TraceNormBall, WeightedTraceNormBall))
        self._due = self.growth * objective.n_observations
        with one_blas_thread():
            before, old = objective.value(), objective._low_rank.copy()
            if old.n_atoms == 0:
                return
            objective.place(self._swept(objective, ball))
            if objective.value() > before:
                objective.place(old)

    def _swept(self, objective: ObservedEntries, ball: Any) -> LowRank:
        problem = _Regressions(objective, ball)
        u, s, v = objective._low_rank.svd()
        k = min(self.rank, s.size)
        left, right = (x[:, :k] * np.sqrt(s[:k]).astype(x.dtype) for x in (u, v))
        ridge = self.ridge or self._found or objective.total_weight * s[0] / ball.radius
        for _ in range(self.sweeps):
            right = problem.solve_columns(left, ridge)
            left = problem.solve_rows(right, ridge)
            norm = ball.norm(LowRank.from_factors(left, np.ones(k), right))
            if self.ridge is None:
                change = (norm / ball.radius) ** 2
                ridge *= float(np.clip(change, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE))
        self._found = ridge
        return LowRank.from_factors(left, np.full(k, min(1.0, ball.radius / norm)), right)

    def state_dict(self) -> State:
        """Return parameters and progress."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_state(cls, state: State) -> RidgeSweeps:
        """Make the corrector that ``state_dict`` described."""
        return cls(**state)


class _Regressions:
    """Every row's and every column's regression on the other side's factors."""

    def __init__(self, objective: ObservedEntries, ball: Any) -> None:
        self.indptr, self.col, self.weight, self.target, self.position = objective.regressions()
        self.dtype = objective.dtype
        m2 = self.position.size
        self.blocks = balanced_blocks(self.indptr)
        self.by_column = transpose(self.blocks, self.indptr, self.col, m2, self.weight, self.target)
        a, b = (np.ones(self.indptr.size - 1), np.ones(m2)) if ball.scales is None else ball.scales
        self.row_penalty, self.column_penalty = 1.0 / a**2, 1.0 / b[np.argsort(self.position)] ** 2

    def solve_rows(self, right: Array, ridge: float) -> Array:
        by_rank = np.empty_like(right)
        by_rank[self.position] = right
        out = np.empty((self.indptr.size - 1, right.shape[1]), self.dtype)
        ridge_rows(
            self.blocks, self.indptr, self.col, self.weight, self.target, by_rank,
            ridge * self.row_penalty, out,
        )  # fmt: skip
        return out

    def solve_columns(self, left: Array, ridge: float) -> Array:
        indptr, row, weight, target = self.by_column
        out = np.empty((indptr.size - 1, left.shape[1]), self.dtype)
        ridge_rows(
            balanced_blocks(indptr), indptr, row, weight, target, np.ascontiguousarray(left),
            ridge * self.column_penalty, out,
        )  # fmt: skip
        return out[self.position]
