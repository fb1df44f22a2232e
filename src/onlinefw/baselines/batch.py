"""Batch Frank-Wolfe and away-step Frank-Wolfe on an objective that has observed its data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._typing import Direction
from .._validation import check_part
from ..atoms import Atom, as_atom
from ..iterates import ActiveSet, LowRank
from ..linalg import PairOperator
from ..line_search import search
from ..objectives import Objective
from ..sets import ConvexSet
from ..steps import LineSearch, ShortStep

__all__ = ["batch_away_frank_wolfe", "batch_frank_wolfe"]

StepRule = LineSearch | ShortStep | Callable[[int], float]
_LINE_SEARCH = LineSearch()


def batch_frank_wolfe(
    objective: Objective,
    constraint: ConvexSet,
    *,
    step: StepRule = _LINE_SEARCH,
    max_iter: int = 1000,
    tol: float = 1e-6,
    callback: Callable[[OptimizeResult], Any] | None = None,
) -> OptimizeResult:
    """Minimise the objective over the set by Frank-Wolfe steps.

    Parameters
    ----------
    objective : Objective
        It has observed all its data, and belongs to no learner; it is given back at theta = 0.
    constraint : ConvexSet
        The set. The first iterate is 0 where the set contains it and the step is searched, else
        the vertex in the direction of steepest descent from 0.
    step : LineSearch, ShortStep or callable
        The step rule.
    max_iter : int
        How many steps at most.
    tol : float
        Stop when the duality gap is at most this.
    callback : callable, optional
        Called with an ``OptimizeResult`` after every step; raise ``StopIteration`` to stop.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``theta``, ``objective`` (its value), ``gap``, ``history`` (a dict of arrays objective,
        gap, step_size), ``nit``, ``success``, ``message``.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.LinearObjective(ofw.losses.Square())
    >>> _ = objective.observe(np.eye(2), np.array([0.25, -0.5]))
    >>> result = ofw.baselines.batch_frank_wolfe(objective, ofw.sets.L1Ball(1.0))
    >>> result.success, result.theta.round(2)
    (True, array([ 0.25, -0.5 ]))
    """
    solver = _Batch(objective, constraint, step, "batch_frank_wolfe")
    return solver.run(solver.fw_step, max_iter, tol, callback)


def batch_away_frank_wolfe(
    objective: Objective,
    constraint: ConvexSet,
    *,
    step: StepRule = _LINE_SEARCH,
    max_iter: int = 1000,
    tol: float = 1e-6,
    callback: Callable[[OptimizeResult], Any] | None = None,
) -> OptimizeResult:
    """Minimise the objective over a polytope by Frank-Wolfe, away and drop steps.

    With a line search it converges linearly on a polytope for a strongly convex objective, and
    leaves vertices that the solution does not need. Arguments and result are those of
    :func:`batch_frank_wolfe`; the result also has ``active_set``.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.LinearObjective(ofw.losses.Square())
    >>> _ = objective.observe(np.eye(3), np.array([0.9, -0.5, 0.01]))
    >>> result = ofw.baselines.batch_away_frank_wolfe(objective, ofw.sets.L1Ball(1.0))
    >>> result.theta.round(6) + 0.0, len(result.active_set)
    (array([ 0.7, -0.3,  0. ]), 2)
    """
    check_part("constraint", constraint, ConvexSet, "L1Ball(1.0)")
    if not constraint.is_polytope:
        raise ValueError(
            f"batch_away_frank_wolfe needs a polytope, and {constraint} is not one; "
            "use batch_frank_wolfe"
        )
    solver = _Batch(objective, constraint, step, "batch_away_frank_wolfe")
    solver.active_set = ActiveSet()
    return solver.run(solver.away_step, max_iter, tol, callback)


def stops(
    callback: Callable[[OptimizeResult], Any] | None, result: Callable[..., OptimizeResult]
) -> bool:
    """Call the callback, if there is one, with the result so far; tell whether it wants to stop."""
    if callback is None:
        return False
    try:
        callback(result(False, "running"))
    except StopIteration:
        return True
    return False


class _Batch:
    """The loop that both solvers share; they differ in one step."""

    active_set: ActiveSet | None = None

    def __init__(
        self, objective: Objective, constraint: ConvexSet, step: StepRule, name: str
    ) -> None:
        if not isinstance(step, (LineSearch, ShortStep)) and not callable(step):
            raise ValueError(f"{name} takes LineSearch(), ShortStep(L) or a rule, got {step!r}")
        check_part("objective", objective, Objective, "LinearObjective(Square())")
        check_part("constraint", constraint, ConvexSet, "L1Ball(1.0)")
        objective.gradient()  # refuses an objective without data before it is claimed
        self.objective, self.constraint, self.step = objective, constraint, step
        objective.attach(name, constraint)
        self.nit = 0

    def run(
        self,
        take_step: Callable[[Direction, Atom, float], float],
        max_iter: int,
        tol: float,
        callback: Callable[[OptimizeResult], Any] | None,
    ) -> OptimizeResult:
        objective = self.objective
        history: dict[str, list[float]] = {"objective": [], "gap": [], "step_size": []}
        message = f"the duality gap did not reach tol={tol:g} in max_iter={max_iter} steps"
        try:
            self._start()
            while True:
                gradient = objective.gradient()
                atom, gap = self._atom_and_gap(gradient, tol)
                history["objective"].append(objective.value())
                history["gap"].append(gap)
                if self.nit > 0 and stops(callback, partial(self._result, history)):
                    message = "stopped by the callback"
                    break
                if gap <= tol:
                    message = f"the duality gap is at most tol={tol:g}"
                    break
                if self.nit >= max_iter:
                    break
                history["step_size"].append(take_step(gradient, atom, gap))
                self.nit += 1
            return self._result(history, gap <= tol, message)
        finally:
            objective.release()

    def _start(self) -> None:
        """Leave 0 for a vertex where the method needs one; stay where a step can be searched."""
        searched = isinstance(self.step, (LineSearch, ShortStep))
        if self.active_set is None and self.constraint.contains_zero and searched:
            return
        gradient = self.objective.gradient()
        self._move(as_atom(self.constraint.lmo(gradient), gradient.shape), 1.0)

    def _atom_and_gap(self, gradient: Direction, tol: float) -> tuple[Atom, float]:
        """Minimise over the set; where that is inexact, look again before a gap ends the run."""
        atom = as_atom(self.constraint.lmo(gradient), gradient.shape)
        gap = self.objective.gap(gradient, atom)
        if gap <= tol and isinstance(gradient, PairOperator):
            gradient.look_closely()
            atom = as_atom(self.constraint.lmo(gradient), gradient.shape)
            gap = self.objective.gap(gradient, atom)
        return atom, gap

    def fw_step(self, gradient: Direction, atom: Atom, gap: float) -> float:
        gamma = self._length(atom, 1.0, gap, 1.0)
        self._move(atom, gamma)
        return gamma

    def away_step(self, gradient: Direction, atom: Atom, gap: float) -> float:
        assert self.active_set is not None
        scores = self.active_set.scores(gradient)
        away = int(scores.argmax())
        away_gain = float(scores[away]) - self.active_set.dot(scores)
        if gap >= away_gain:
            return self.fw_step(gradient, atom, gap)
        away_atom, gamma_max = self.active_set.atoms[away], self.active_set.max_away_step(away)
        gamma = self._length(away_atom, -1.0, away_gain, gamma_max)
        self.objective.move(away_atom, -gamma)
        if gamma >= gamma_max:
            self.active_set.drop(away)
            self.objective.put_combination(self.active_set)
        else:
            self.active_set.away(away, gamma)
        return gamma

    def _length(self, atom: Atom, sign: float, gain: float, longest: float) -> float:
        """The step in [0, longest] along sign * (atom - theta), whose slope at 0 is -gain."""
        if isinstance(self.step, LineSearch):
            return search(self.objective.line(atom), sign, longest)
        if isinstance(self.step, ShortStep):
            iterate = self.objective.iterate
            theta = iterate.as_operator() if isinstance(iterate, LowRank) else iterate.theta
            squared = atom.squared_norm() - 2.0 * atom.dot(theta) + iterate.squared_norm()
            return min(gain / (self.step.L * squared), longest) if squared > 0 else 0.0
        return min(float(self.step(self.nit + 1)), longest)

    def _move(self, atom: Atom, gamma: float) -> None:
        self.objective.move(atom, gamma)
        if self.active_set is not None:
            self.active_set.toward(atom, gamma)

    def _result(self, history: dict[str, list[float]], success: bool, text: str) -> OptimizeResult:
        iterate = self.objective.iterate
        theta = iterate.copy() if isinstance(iterate, LowRank) else iterate.theta.copy()
        result = OptimizeResult(
            theta=theta,
            objective=history["objective"][-1],
            gap=history["gap"][-1],
            history={name: np.array(values) for name, values in history.items()},
            nit=self.nit,
            success=success,
            message=text,
        )
        if self.active_set is not None:
            result.active_set = self.active_set.copy()
        return result
