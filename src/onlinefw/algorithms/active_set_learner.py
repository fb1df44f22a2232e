"""What learners share that keep theta as a combination of vertices."""

from __future__ import annotations

from collections.abc import Callable

from .._state import check_state
from .._typing import State
from ..iterates import ActiveSet
from ..objectives import Objective
from ..sets import ConvexSet
from ..steps import Harmonic, LineSearch
from .learner import Learner, check_open_loop

__all__ = ["ActiveSetLearner"]

#: Weights are renormalised, and theta rebuilt from the atoms, after this many updates.
REBUILD_EVERY = 10_000


class ActiveSetLearner(Learner):
    """A learner on a polytope: theta is a convex combination of *active* vertices, too.

    After every step the weights sum to 1 and theta is the weighted sum of the atoms, to rounding; a
    dropped atom is gone.
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
        name = type(self).__name__
        if not self.constraint.is_polytope:
            raise ValueError(
                f"{name} needs a polytope, and {self.constraint} is not one; use "
                "OnlineFrankWolfe, or a polytope such as L1Ball, Simplex or Box"
            )
        if isinstance(self.step, LineSearch):
            return
        check_open_loop(self.step, name)
        if self.step(1) != 1.0:
            raise ValueError(
                f"{name} needs a first step of length 1 (the starting point 0 must "
                f"leave the combination), but {self.step}(1) = {self.step(1):g}; "
                "use Harmonic or Power"
            )

    def _gamma_up_to(self, gamma_max: float, n: int) -> float:
        """Return gamma_n, which is at most gamma_max if gamma_{n-1} is, unless the steps grow."""
        gamma = self._gamma(n)
        if gamma > gamma_max:
            raise ValueError(
                f"{type(self).__name__} needs steps that do not grow, but {self.step} goes from "
                f"{self._gamma(n - 1):g} to {gamma:g} at step {n}"
            )
        return gamma

    def _updated(self, n: int) -> None:
        """Count a step; after many, remove their rounding error from the weights and theta."""
        self.n_steps = n
        self._updates += 1
        if self._updates % REBUILD_EVERY == 0:
            self.active_set.renormalise()
            self.objective.put(self.active_set.combination(self.objective.iterate.shape))

    def _progress(self) -> State:
        active_set = self.active_set.state_dict()
        return {**super()._progress(), "active_set": active_set, "updates": self._updates}

    def _load_progress(self, state: State) -> None:
        check_state(state, "active_set", "updates")
        super()._load_progress(state)
        self.active_set = ActiveSet.from_state(state["active_set"])
        self.active_set.check(self.theta)
        self._updates = int(state["updates"])
