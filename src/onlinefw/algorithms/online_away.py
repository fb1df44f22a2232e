"""Algorithm 2 of the paper: online away-step Frank-Wolfe (O-AW)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from .._typing import State
from ..atoms import Atom, as_atom
from ..iterates import ActiveSet
from ..line_search import search
from ..objectives import Objective
from ..sets import ConvexSet
from ..steps import Harmonic, LineSearch
from .learner import Learner, check_open_loop

__all__ = ["OnlineAwayFrankWolfe"]

#: Weights are renormalised, and theta rebuilt from the atoms, after this many updates.
REBUILD_EVERY = 10_000


class OnlineAwayFrankWolfe(Learner):
    """Online away-step Frank-Wolfe: moves towards a vertex or away from an active one.

    theta is kept both as an array and as a convex combination of *active* vertices
    (``active_set``). Moving away from a bad vertex removes its weight, or drops it altogether,
    so the model uses few of them.

    Parameters
    ----------
    objective : Objective
        What is kept of the past, from :mod:`onlinefw.objectives`.
    constraint : ConvexSet
        A polytope from :mod:`onlinefw.sets`.
    step : callable or LineSearch
        The step rule, a function of the step counter 1, 2, ..., with step(1) = 1 (so that the
        starting point 0 leaves the combination). ``LineSearch()`` takes the step that lowers F_t
        most instead, after a first one of length 1 (the paper's rates are for step rules).
    inner_steps : int or "auto"
        How often lines 4-15 are repeated per batch without new data; each advances the counter,
        except for drop steps. "auto" goes on until the gap is below 1% of the mean loss, or 20
        times (more often while there are few rows).

    Attributes
    ----------
    theta : ndarray or LowRank
        The current model, read-only; predictions are ``X @ theta`` (plus ``objective.intercept``,
        if the objective has one).
    t, n_steps : int
        Rounds played, and the step counter.
    active_set : ActiveSet
        The active vertices (``atoms``) and their ``weights``, which sum to 1.

    Notes
    -----
    Line 9 compares gamma_max with the step at n_{t-1}, as printed. The proof of the drop lemma
    uses the next index, n_{t-1} + 1; the two differ for one value of gamma_max in between.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> objective = ofw.objectives.RunningLeastSquares(n_features=20)
    >>> learner = ofw.OnlineAwayFrankWolfe(objective, ofw.sets.L1Ball(1.0))
    >>> for _ in range(200):
    ...     X = rng.standard_normal((10, 20))
    ...     round_ = learner.observe(X, X[:, 0] - 2 * X[:, 1])
    >>> len(learner.active_set), learner.theta[:3].round(1) + 0.0
    (2, array([ 0., -1.,  0.]))
    """

    def __init__(
        self,
        objective: Objective,
        constraint: ConvexSet,
        step: Callable[[int], float] | LineSearch = Harmonic(2),  # noqa: B008 (immutable)
        inner_steps: int | str = 1,
    ) -> None:
        super().__init__(objective, constraint, step, inner_steps)
        self.active_set = ActiveSet()
        self._updates = 0

    def _check_parts(self) -> None:
        if not self.constraint.is_polytope:
            raise ValueError(
                f"OnlineAwayFrankWolfe needs a polytope, and {self.constraint} is not one; use "
                "OnlineFrankWolfe, or a polytope such as L1Ball, Simplex or Box"
            )
        if isinstance(self.step, LineSearch):
            return
        check_open_loop(self.step, "OnlineAwayFrankWolfe")
        if self.step(1) != 1.0:
            raise ValueError(
                "OnlineAwayFrankWolfe needs a first step of length 1 (the starting point 0 must "
                f"leave the combination), but {self.step}(1) = {self.step(1):g}; "
                "use Harmonic or Power"
            )

    def _update(self) -> tuple[float, float, float, str]:
        active, gradient = self.active_set, self.objective.gradient()
        # Line 4: both linear optimisations, over C and over the active atoms
        fw_atom = as_atom(self.constraint.lmo(gradient), gradient.shape)
        fw_score = fw_atom.dot(gradient)
        scores = active.scores(gradient)
        here = active.dot(scores)  # <theta_t, grad F_t>
        fw_gap = here - fw_score
        away = int(scores.argmax()) if len(active) else -1
        gap = float(scores[away]) - fw_score if len(active) else fw_gap

        if self._is_enough(fw_gap):
            return gap, fw_gap, 0.0, "hold"
        # Line 5
        if len(active) == 0 or fw_score - here <= here - scores[away]:
            # Line 6, FW step
            gamma, kind = self._toward_length(fw_atom), "fw"
            self.n_steps += 1
            self.objective.move(fw_atom, gamma)
            active.toward(fw_atom, gamma)
        else:
            # Line 8: d_t = theta_t - a_AW, gamma_max = alpha / (1 - alpha)
            away_atom, gamma_max = active.atoms[away], active.max_away_step(away)
            length = self._away_length(away_atom, gamma_max)
            if length is not None:
                # Line 10, away step
                gamma, kind = length, "away"
                self.n_steps += 1
                self.objective.move(away_atom, -gamma)
                active.away(away, gamma)
            else:
                # Line 12, drop step: n_t = n_{t-1}
                gamma, kind = gamma_max, "drop"
                self.objective.move(away_atom, -gamma)
                active.drop(away)
                self.objective.settle(active)
        self._guard_drift()
        return gap, fw_gap, gamma, kind

    def _toward_length(self, atom: Atom) -> float:
        if not isinstance(self.step, LineSearch):
            return self._step_length(self.n_steps + 1)
        return search(self.objective.line(atom), 1.0, 1.0) if len(self.active_set) else 1.0

    def _away_length(self, atom: Atom, gamma_max: float) -> float | None:
        """Return the length of an away step, or None if it would be longer than gamma_max."""
        if isinstance(self.step, LineSearch):
            gamma = search(self.objective.line(atom), -1.0, gamma_max)
            return gamma if gamma < gamma_max else None
        if gamma_max < self._step_length(self.n_steps):  # line 9
            return None
        gamma = self._step_length(self.n_steps + 1)
        if gamma > gamma_max:  # impossible as long as the steps do not grow, see line 9
            raise ValueError(
                f"OnlineAwayFrankWolfe needs steps that do not grow, but {self.step} goes from "
                f"{self._step_length(self.n_steps):g} to {gamma:g} at step {self.n_steps + 1}"
            )
        return gamma

    def _guard_drift(self) -> None:
        self._updates += 1
        iterate = self.objective.iterate
        if self._updates % REBUILD_EVERY == 0:
            self.active_set.renormalise()
            self.objective.place(self.active_set.combination(iterate.shape))

    def state_dict(self) -> State:
        """Return everything needed to go on: plain arrays and JSON-able values."""
        return {
            **super().state_dict(),
            "active_set": self.active_set.state_dict(),
            "updates": self._updates,
        }

    @classmethod
    def from_state(cls, state: State, **parts: Any) -> Self:
        """Make the learner that ``state_dict`` described; see :class:`Learner`."""
        learner = super().from_state(state, **parts)
        learner.active_set = ActiveSet.from_state(state["active_set"])
        learner._updates = int(state["updates"])
        return learner
