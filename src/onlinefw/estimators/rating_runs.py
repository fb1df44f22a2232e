"""Runs with different half-lives that learn the same ratings."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import Any

import numpy as np

from .._typing import Array, State
from .completion_parts import CompletionParts
from .completion_run import CompletionRun
from .factors_run import new_run_of, run_from_state
from .ids import Ids
from .several_runs import LONGER, SeveralRuns, Watch, runs_from_state
from .stream import Batch

__all__ = ["RatingRuns", "new_rating_runs", "rating_runs_from_state"]

#: The short half-life: so many ratings for each row and column, to the next power of two ...
PER_SIDE = 5.0
#: ... but at least this.
SHORTEST = 512.0


class RatingRuns(SeveralRuns):
    """What a matrix completion has learned with ``half_life="auto"``: see SeveralRuns.

    Ids are known here; the runs have numbers.
    """

    watch = Watch(fade=300.0, every=300)

    def __init__(self, *runs: Any) -> None:
        super().__init__(*runs)
        self.ids: Ids | None = None
        self._seen = np.zeros(2, int)  # rows and columns that have been learned

    def _shortest(self) -> float:
        return max(SHORTEST, 2.0 ** round(log2(PER_SIDE * max(1, int(self._seen.sum())))))

    def learn(self, batch: Batch, targets: list[Any]) -> None:
        """Play a round with a batch and its values."""
        batch = self._current(batch)
        losses = [self._losses(one, batch) for one in self.runs]
        for one in self.runs:
            one.learn(batch._replace(fresh=None), targets)
        self._know(batch)
        self._judge(losses, batch.w)

    def _losses(self, run: CompletionRun, batch: Batch) -> Array:
        """Return the losses of observations before they are learned."""
        X, y = batch[:2]
        z = run.entries(X[:, 0], X[:, 1]) if run.n_observations else np.zeros(batch.n)
        if run.parts.clip and run.low <= run.high:
            z = np.clip(z, run.low, run.high)
        return run.loss.value(z.astype(float), y)

    def learn_events(self, batch: Batch) -> Array:
        """Learn observations one after another; return what the leader of the time predicted."""
        batch = self._current(batch)
        predicted, start = [], 0
        while start < batch.n:
            stop = min(start + self._until_judged(), batch.n)
            part = batch.part(slice(start, stop))._replace(fresh=None)
            found = [one.learn_events(part) for one in self.runs]
            predicted.append(found[self.leading])
            self._know(part._replace(fresh=batch.fresh))
            self._judge([self.loss.value(z, part.y) for z in found], part.w)
            start = stop
        return np.concatenate(predicted)

    def forget(self, row: int) -> None:
        """Forget a row in all runs, and its id."""
        for one in self.runs:
            one.forget(row)
        if self.ids is not None:
            self.ids.rows.forget(row)

    def _current(self, batch: Batch) -> Batch:
        return batch if self.ids is None or batch.fresh is None else self.ids.current(batch)

    def _know(self, batch: Batch) -> None:
        """Know the rows and columns of a batch that has been learned, and their ids."""
        self._seen = np.maximum(self._seen, batch.X.max(axis=0) + 1)
        if self.ids is not None and batch.fresh is not None:
            self.ids.learned(batch)

    def state_dict(self, past: bool, team: bool = True) -> State:
        """Return everything; without ``past``, what predicts."""
        state = super().state_dict(past, team)
        state["ids"] = None if self.ids is None else self.ids.state_dict()
        if past:
            state["seen"] = self._seen.copy()
        return state


def new_rating_runs(parts: CompletionParts, first: Batch, rounds: int | None) -> RatingRuns:
    """Make the runs of a stream that begins with these observations."""

    def rebuild(state: State) -> CompletionRun:
        return run_from_state(parts.model, state)

    numbers = first._replace(fresh=None)
    half_lives = (None, LONGER * SHORTEST, SHORTEST)
    runs = [new_run_of(parts)(replace(parts, half_life=h), numbers, rounds) for h in half_lives]
    for one in runs[1:]:
        one.be_silent()
    several = RatingRuns(runs, rebuild)
    if first.fresh is not None:
        several.ids = Ids.like(first.fresh)
    return several


def rating_runs_from_state(model: Any, state: State) -> RatingRuns:
    """Make the runs that ``state_dict`` described."""

    def rebuild(its: State) -> CompletionRun:
        return run_from_state(model, its)

    runs = RatingRuns(runs_from_state(state, rebuild), rebuild)
    runs._load(state)
    seen = np.array(state["seen"])
    if seen.shape != (2,) or seen.dtype.kind not in "iu" or (seen < 0).any():
        raise ValueError("the state does not tell how many rows and columns have been learned")
    runs._seen = seen
    if state.get("ids") is not None:
        runs.ids = Ids.from_state(state["ids"], runs.matrix.shape)
    return runs
