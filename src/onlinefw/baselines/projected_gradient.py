"""Projected-gradient learners, with the same methods as the Frank-Wolfe ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Real

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from .._state import check_state
from .._threads import one_blas_thread
from .._typing import Array, State
from .._validation import check_whole
from ..algorithms.learner import Learner
from ..algorithms.rounds import Outcome
from ..atoms import as_atom
from ..iterates import LowRank
from ..objectives import GradientOracle, Objective, ObservedEntries
from ..sets import ConvexSet, TraceNormBall
from .low_rank_step import full_step, truncated_step

__all__ = ["OnlineProjectedGradient", "StochasticProjectedGradient"]


class _ProjectedGradient(Learner):
    """theta <- P(theta - eta g), with eta a number, a rule of the step counter, or 1 / L."""

    def __init__(
        self,
        objective: Objective,
        constraint: ConvexSet,
        step: float | Callable[[int], float] | None = None,
        inner_steps: int = 1,
    ) -> None:
        super().__init__(objective, constraint, step, inner_steps)
        self._L = 0.0
        self._L_due = 1  # the next round at which L is computed again

    def _check_parts(self) -> None:
        name = type(self).__name__
        if not self.constraint.has_projection:
            raise ValueError(
                f"{name} needs a projection, and {self.constraint} has no practical one; "
                "use OnlineFrankWolfe"
            )
        if getattr(self.objective, "low_rank", False):
            raise ValueError(f"{name} needs a dense theta: use GradientOracle with low_rank=False")
        is_length = isinstance(self.step, Real) and 0 < float(self.step) < np.inf
        is_rule = callable(self.step) and not isinstance(self.step, type)
        if not (self.step is None or is_length or is_rule):
            raise ValueError(
                f"{name} needs a positive step, a rule of the step counter, or None for 1/L, "
                f"got {self.step!r}"
            )
        if self.step is None:
            loss = getattr(self.objective, "loss", None)
            if isinstance(self.objective, GradientOracle):
                raise ValueError(
                    f"{name} does not know the smoothness of a GradientOracle: "
                    "pass step=1/L or a rule"
                )
            if loss is not None and not np.isfinite(loss.smoothness):
                raise ValueError(f"{loss} is not smooth, so there is no step 1/L: pass step=")

    @abstractmethod
    def _direction(self) -> Array:
        """Return the gradient to take a step along."""

    @abstractmethod
    def _smoothness(self) -> float:
        """Return the smoothness constant of the function that has this gradient."""

    def _step_size(self) -> float:
        if self.step is None:
            # L is computed when the number of rounds has doubled, which costs little in all;
            # the largest value seen is kept.
            if self.t + 1 >= self._L_due:
                self._L = max(self._L, self._smoothness())
                self._L_due = 2 * (self.t + 1)
            return 1.0 / self._L if self._L > 0 else 0.0
        return float(self.step(self.n_steps)) if callable(self.step) else float(self.step)

    def _update(self) -> Outcome:
        gradient = self._direction()
        gap = self._gap(gradient)
        self.n_steps += 1
        eta = self._step_size()
        theta = np.asarray(self.objective.theta)
        self.objective.put(self.constraint.project(theta - eta * gradient))
        return Outcome(gap, gap, eta, "pg")

    def _gap(self, gradient: Array) -> float:
        return self.objective.gap(gradient, as_atom(self.constraint.lmo(gradient), gradient.shape))

    def _progress(self) -> State:
        return {**super()._progress(), "L": self._L, "L_due": self._L_due}

    def _load_progress(self, state: State) -> None:
        check_state(state, "L", "L_due")
        super()._load_progress(state)
        self._L, self._L_due = float(state["L"]), int(state["L_due"])


class OnlineProjectedGradient(_ProjectedGradient):
    """theta <- P(theta - eta grad F_t(theta)): the aggregated gradient, projected.

    On :class:`~onlinefw.objectives.ObservedEntries` every step takes the singular values of the
    m1 x m2 matrix theta - eta grad F_t(theta): all of them, of the dense matrix, or the leading
    ``max_rank`` of an operator that is never dense. theta is then put there as factors, of which
    the objective holds up to its own ``max_atoms``.

    Parameters
    ----------
    objective, constraint
        As for :class:`onlinefw.OnlineFrankWolfe`; the set must have a projection.
    step : float or callable, optional
        eta, or a function of the step counter; default 1 / L, with L computed again each time
        the number of rounds has doubled (in every step on ``ObservedEntries``, where it falls as
        long as new entries are seen).
    inner_steps : int
        Steps per batch.
    max_rank : int, optional
        For ``ObservedEntries``: how many singular values a step looks at. The others are taken
        for 0 before the rest is projected, so unless the exact projection has no larger rank the
        step is inexact: theta stays in the set, but need not come near the optimum.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.RunningLeastSquares(2)
    >>> learner = ofw.baselines.OnlineProjectedGradient(objective, ofw.sets.L1Ball(1.0))
    >>> for _ in range(50):
    ...     _ = learner.observe(np.eye(2), np.array([0.25, -0.5]))
    >>> learner.theta.round(6)
    array([ 0.25, -0.5 ])

    >>> objective = ofw.objectives.ObservedEntries((3, 4), dtype=float)
    >>> ball = ofw.sets.TraceNormBall(2.0)
    >>> learner = ofw.baselines.OnlineProjectedGradient(objective, ball, max_rank=1)
    >>> _ = learner.observe([[0, 1], [2, 3]], [3.0, -1.0])
    >>> learner.theta.dense().round(6) + 0.0
    array([[0., 2., 0., 0.],
           [0., 0., 0., 0.],
           [0., 0., 0., 0.]])
    """

    def __init__(
        self,
        objective: Objective,
        constraint: ConvexSet,
        step: float | Callable[[int], float] | None = None,
        inner_steps: int = 1,
        *,
        max_rank: int | None = None,
    ) -> None:
        self.max_rank = max_rank
        super().__init__(objective, constraint, step, inner_steps)

    def _check_parts(self) -> None:
        super()._check_parts()
        if self.max_rank is None:
            return
        if not isinstance(self.constraint, TraceNormBall):
            raise ValueError(
                f"max_rank is for a TraceNormBall, and {self.constraint} is not one: leave it out"
            )
        if not isinstance(self.objective, ObservedEntries):
            raise ValueError(
                "max_rank needs a theta that is kept as low-rank factors, as by ObservedEntries, "
                f"and {self.objective} keeps a dense one: leave it out"
            )
        check_whole("max_rank", self.max_rank, otherwise=" or None")

    def _direction(self) -> Array:
        gradient = self.objective.gradient()
        if isinstance(gradient, LinearOperator):
            return gradient @ np.eye(gradient.shape[1])
        return gradient.toarray() if sparse.issparse(gradient) else gradient

    def _smoothness(self) -> float:
        return self.objective.smoothness()

    def _step_size(self) -> float:
        if self.step is None and isinstance(self.objective, ObservedEntries):
            return 1.0 / self.objective.smoothness()
        return super()._step_size()

    def _update(self) -> Outcome:
        if not isinstance(self.objective, ObservedEntries):
            return super()._update()
        with one_blas_thread():
            return self._update_entries(self.objective)

    def _update_entries(self, objective: ObservedEntries) -> Outcome:
        theta, ball = objective.iterate, self.constraint
        assert isinstance(theta, LowRank) and isinstance(ball, TraceNormBall)
        gradient = objective.gradient()
        direction = gradient.toarray() if self.max_rank is None else gradient
        atom = ball.lmo(direction)
        gap = objective.gap(direction, atom)
        self.n_steps += 1
        eta = self._step_size()
        if self.max_rank is None:
            point = full_step(theta, direction, eta, ball.radius)
        else:
            point = truncated_step(
                theta, gradient, eta, ball.radius, self.max_rank, near=atom.v, seed=self.n_steps
            )
        objective.put(point)
        return Outcome(gap, gap, eta, "pg")

    def _progress(self) -> State:
        return {**super()._progress(), "max_rank": self.max_rank}

    def _load_progress(self, state: State) -> None:
        check_state(state, "max_rank")
        super()._load_progress(state)
        self.max_rank = state["max_rank"]


class StochasticProjectedGradient(_ProjectedGradient):
    """theta <- P(theta - eta grad f_t(theta)): the current batch only, projected.

    ``Round.gap`` is nan: a batch's gradient says nothing about F_t. The objective still observes
    every batch, so that ``certificate()`` can answer on F_t.

    Parameters
    ----------
    objective, constraint
        As for :class:`onlinefw.OnlineFrankWolfe`; the set must have a projection.
    step : float or callable, optional
        eta, or a function of the step counter; default 1 / L, with L the largest smoothness of a
        batch, computed each time the number of rounds has doubled.
    inner_steps : int
        Steps per batch.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.RunningLeastSquares(2)
    >>> learner = ofw.baselines.StochasticProjectedGradient(objective, ofw.sets.L1Ball(1.0))
    >>> for _ in range(50):
    ...     _ = learner.observe(np.eye(2), np.array([0.25, -0.5]))
    >>> learner.theta.round(6)
    array([ 0.25, -0.5 ])
    """

    def _check_parts(self) -> None:
        if isinstance(self.objective, GradientOracle):
            raise ValueError(
                "StochasticProjectedGradient needs batches, and a GradientOracle has none; use "
                "OnlineProjectedGradient with step=, whose gradient is what the oracle returns"
            )
        if isinstance(self.objective, ObservedEntries):
            raise ValueError(
                "StochasticProjectedGradient uses the last batch only, and ObservedEntries sorts "
                "every batch into the past: use OnlineProjectedGradient, or LinearObjective with "
                "shape= and sparse rows"
            )
        super()._check_parts()

    def _direction(self) -> Array:
        return self.objective.batch_gradient()

    def _smoothness(self) -> float:
        return self.objective.batch_smoothness()

    def _gap(self, gradient: Array) -> float:
        return float("nan")
