"""Learners that are given the same batches, each on a past of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._batches import BatchHandle
from .._state import check_state
from .._typing import State
from ..algorithms import OnlineFrankWolfe, Round
from ..objectives.entries import EntriesBatch

__all__ = ["Apart"]


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
        learners = []
        for one, its in zip(self.learners, state["learners"], strict=True):
            # A state cannot hold a step rule or a loss of the user's own.
            parts: dict[str, Any] = {"step": one.step, "loss": one.objective.loss}
            learners.append(type(one).from_state(its, **parts))
        self.learners = learners
