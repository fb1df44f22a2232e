"""Learners that are given the same batches: on one past, or each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._batches import BatchHandle
from .._state import check_state
from .._typing import State
from ..algorithms import Learner, NewtonSteps, OnlineFrankWolfe, Round
from ..algorithms.side_by_side import SideBySide
from ..objectives.entries import EntriesBatch
from ..objectives.row_objective import RowsBatch

__all__ = ["Apart", "OnOnePast", "correct"]


class OnOnePast(SideBySide):
    """Learners of linear models: the classes of a classifier, for each of several radii."""

    def learn(self, X: Any, targets: list[Any], w: Any = None) -> list[Round]:
        """Play a round with rows that the estimator has checked, or with those of a file."""
        if isinstance(X, BatchHandle):
            return self.observe(X, targets)
        return self.play(RowsBatch(X, targets, np.ones(X.shape[0]) if w is None else w))

    def state_dict(self) -> State:
        """Return the past once, all else of every learner, and the gradients that are known.

        Gradients of several models are computed in one read of the past, which rounds differently
        from one read for each. Saving them keeps certificates the same to the last bit.
        """
        known = [getattr(one.objective, "_gradient", None) for one in self.learners]
        return {**super().state_dict(), "gradients": known}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described, of as many learners of the same kinds."""
        check_state(state, "past", "learners", "gradients")
        super().load_state(state)
        for one, gradient in zip(self.learners, state["gradients"], strict=True):
            objective: Any = one.objective
            if gradient is not None:
                if np.shape(gradient) != objective.shape:
                    raise ValueError("a gradient does not have the shape of theta")
                objective._gradient = gradient


class Apart:
    """Learners of matrices with different radii: each has a past of its own."""

    def __init__(self, learners: list[OnlineFrankWolfe]) -> None:
        self.learners: list[Any] = list(learners)

    def use_place(self, device: str, workers: int | None) -> None:
        """Move the past of each to a device of this process, or to workers."""
        for one in self.learners:
            one.objective.use_place(device, workers)

    def learn(self, X: Any, targets: list[Any], w: Any = None) -> list[Round | None]:
        """Play a round with each; None for those whose loss overflows (a much too large radius)."""
        batch: Any = None
        if not isinstance(X, BatchHandle):
            rows, cols = np.ascontiguousarray(X[:, 0]), np.ascontiguousarray(X[:, 1])
            batch = EntriesBatch(rows, cols, targets[0], np.ones(len(X)) if w is None else w)
        rounds: list[Round | None] = []
        for one in self.learners:
            try:
                rounds.append(one.observe(X) if batch is None else one.play(batch))
            except OverflowError as error:
                overflow = error
                rounds.append(None)
        if not any(rounds):
            raise overflow
        return rounds

    def keep(self, chosen: Sequence[int]) -> None:
        """Go on with some of the learners."""
        self.learners = [self.learners[k] for k in chosen]

    def refine(self) -> list[Round]:
        """Play a round of each without new data."""
        return [one.refine() for one in self.learners]

    def state_dict(self) -> State:
        """Return the state of each."""
        return {"learners": [one.state_dict() for one in self.learners]}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described, of learners with the same parameters."""
        check_state(state, "learners")
        pairs = zip(self.learners, state["learners"], strict=True)
        self.learners = [_loaded(one, its) for one, its in pairs]


def _loaded(learner: Learner, state: State) -> Learner:
    """Return the learner of a state; ``learner``, a new one, has the user's own parts."""
    check_state(state, "learner", "step", "constraint", "objective")
    objective: Any = learner.objective
    parts: dict[str, Any] = {}
    if _is_own(state["step"]):
        parts["step"] = learner.step
    if _is_own(state["constraint"]):
        parts["constraint"] = learner.constraint
    if _is_own(state["objective"].get("loss")):
        parts["loss"] = objective.loss
    return type(learner).from_state(state, **parts)


def _is_own(description: Any) -> bool:
    return isinstance(description, dict) and "custom" in description


def correct(learner: Any) -> None:
    """Re-optimise what is there, if the learner's corrective does that between rounds."""
    corrective = getattr(learner, "corrective", None)
    if corrective is not None and not isinstance(corrective, NewtonSteps):
        learner.correct()
