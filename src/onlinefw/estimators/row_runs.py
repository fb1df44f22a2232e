"""Runs with different half-lives that learn the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import Array, State
from ..objectives.leaving_rows import has_others, ids_of
from .linear_parts import LinearParts, is_auto
from .linear_run import LinearRun, a_piece, new_run, run_from_state
from .opening import Opening
from .several_runs import LONGER, SeveralRuns, Watch, runs_from_state
from .stream import Batch
from .summary_events import event_room, learn_events, takes_events

__all__ = ["RowRuns", "new_row_runs", "row_runs_from_state"]

#: The short half-life, in rows.
SHORT = 100.0
#: After a change the second and the third run try so many times the radius of the first. (Smaller
#: ones win too often while memories are short: they let go of what was true before.)
TRIED = {1: 2.0**0.5, 2: 2.0}
#: A trial ends before its time if the losses of the first exceed those of the leader by so many
#: standard deviations.
CLEARLY = 4.0


class RowRuns(SeveralRuns):
    """What a regressor or classifier has learned with ``half_life="auto"``: see SeveralRuns."""

    watch = Watch(fade=100.0, every=50)

    def __init__(self, *runs: Any) -> None:
        super().__init__(*runs)
        #: The first rows, while they are too few to suggest radii and scales.
        self.opening: Opening | None = None

    def _shortest(self) -> float:
        return SHORT

    def go_on_from(self, old: RowRuns) -> None:
        """Take the place of others, which have learned the same rows."""
        self.turns = old.turns
        self._lead(0)
        old._lead(0)
        for one, its in zip(self.runs, old.runs, strict=True):
            one.go_on_from(its)

    def learn(self, batch: Batch, targets: list[Any]) -> None:
        """Play a round with a batch; ``targets`` has one array for each class."""
        self.learn_rows(batch, targets, batch.n)

    def room(self, batch: Batch, start: int, size: int) -> int:
        """Return how many rows, from ``start`` on, can be learned before the model changes."""
        rows = min(self._until_judged(), a_piece(batch.X, len(self.runs)))
        if self.opening is not None:
            rows = min(rows, self.opening.room)
        if not self.n_observations:  # the first round is a guess
            rows = 1
        return min(-(-rows // size) * size, batch.n - start)

    def learn_rows(self, batch: Batch, targets: list[Any], size: int) -> Array:
        """Play rounds of ``size`` rows; return what the leader predicted for them before."""
        leading = self.leading
        predicted = [_learned(one, batch, targets, size) for one in self.runs]
        pairs = zip(self.runs, predicted, strict=True)
        losses = [run.losses(scores, targets, 1)[:, 0] for run, scores in pairs]
        self._judge(losses, batch.w)
        every = self.watch.every
        if self.n_observations // every > (self.n_observations - batch.n) // every:
            self._follow()  # at fixed counts, so that it does not matter how rows are grouped
        return predicted[leading]

    def forget(self, ids: list[Any]) -> None:
        """Forget the rows of these ids in all runs.

        A short memory that has no other rows begins anew as a copy of the longest one.
        """
        if self.opening is not None:
            self.opening.forget(ids)
        for k, one in enumerate(self.runs):
            objective = one.learners[0].objective
            known = ids_of(objective)
            its = [name for name in ids if known is not None and name in known]
            if its and has_others(objective, its):
                one.forget(its)
            elif its:
                half_life = one.half_life
                self._lead(0)
                self._copy(k)
                self.runs[k].go_on(half_life)

    def _begin_anew(self) -> None:
        """Let memories begin anew; while all are short, they try larger radii.

        The race of radii was won before the change, and what is true now may need another one.
        """
        super()._begin_anew()
        if _follows(self.leader):
            radius = self.leader.radius
            for k, factor in TRIED.items():
                self._copy(k)
                self.runs[k].use_radius(factor * radius)

    @property
    def _trying(self) -> bool:
        """Whether memories, all short after a change, try different radii."""
        return self.longest.half_life == SHORT and len({one.radius for one in self.runs}) > 1

    def _judge_trial(self, ends: bool) -> bool:
        """Go on with the radius that leads; if it is a new one, try larger ones again."""
        if not self._trying:
            return False
        if self.leading > 0 and (ends or self.scores.behind(0, self.leading) > CLEARLY):
            self._begin_anew()
        elif ends:
            for k in TRIED:
                self._copy(k)
        return True

    def _follow(self) -> None:
        """Let shorter memories have the radius that leads in the race of the longest one.

        While that one predicts best: when the data change, it does best with a radius that hardly
        lets it predict.
        """
        if self.leading > 0 or self._trying:
            return
        radius = self.runs[0].radius
        for one in self.runs[1:]:
            if one.race is None and one.radius != radius:
                one.use_radius(radius)

    def state_dict(self, past: bool, team: bool = True) -> State:
        """Return everything; without ``past``, what predicts."""
        state = super().state_dict(past, team)
        if past and self.opening is not None:
            state["opening"] = self.opening.state_dict()
        return state


def _follows(run: LinearRun) -> bool:
    """Whether runs with shorter memories follow the radius of this one, if it is searched for.

    Then they cost one radius each. An active set has atoms of its radius, and a summary its own
    way to stay in the set: there all race.
    """
    model = run.parts.model
    searched = is_auto(model.radius) and isinstance(model.constraint, str)
    return searched and not model.away_steps and run.parts.past != "summary"


def _learned(run: LinearRun, batch: Batch, targets: list[Any], size: int) -> Array:
    """Let a run learn rows, ``size`` a round; return what it predicted for each."""
    scores, start = [], 0
    while start < batch.n:
        if by_one := size == 1 and takes_events(run):  # a summary
            n = event_room(run, batch.X, batch.n - start)
        else:
            n = run.room(batch, start, size)
        rows = slice(start, start + n)
        part = batch if n == batch.n else batch.part(rows)
        its = [y[rows] for y in targets]
        scores.append(learn_events(run, part, its) if by_one else run.learn_rows(part, its, size))
        start += n
    return scores[0] if len(scores) == 1 else np.concatenate(scores)


def new_row_runs(parts: LinearParts, first: Batch, n_models: int) -> RowRuns:
    """Make the runs of a stream that begins with these rows."""

    def rebuild(state: State) -> LinearRun:
        return run_from_state(parts.model, state, n_models)

    runs = [new_run(replace(parts, half_life=None), first, n_models)]
    radius = runs[0].radius if _follows(runs[0]) else None
    for half_life in (LONGER * SHORT, SHORT):
        its = replace(parts, half_life=half_life)
        runs.append(new_run(its, first, n_models, radius=radius))
        runs[-1].be_silent()
    return RowRuns(runs, rebuild)


def row_runs_from_state(model: Any, state: State, n_models: int) -> RowRuns:
    """Make the runs that ``state_dict`` described."""

    def rebuild(its: State) -> LinearRun:
        return run_from_state(model, its, n_models)

    runs = RowRuns(runs_from_state(state, rebuild), rebuild)
    runs._load(state)
    if "opening" in state:
        runs.opening = Opening.from_state(state["opening"], model.n_features_in_)
    return runs
