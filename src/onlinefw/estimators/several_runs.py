"""``half_life="auto"``: runs that forget at different rates side by side; the best predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import inf, log2
from typing import Any, NamedTuple

import numpy as np

from .._state import check_state
from .._typing import Array, State
from .._whole import Turns
from ..contest import Contest
from .run import Run, read_changes

__all__ = ["LONGER", "SeveralRuns", "Watch", "runs_from_state"]

#: The middle half-life is so many times the short one, at least ...
LONGER = 4.0
#: ... and this share of the observations since the data last changed.
SHARE = 0.25
#: The data look as if they had changed if the losses of the longest memory exceed those of the
#: leader by so many standard deviations ...
CHANGED = 6.0
#: ... and if so many short half-lives have passed since the beginning: models that know little gain
#: by forgetting their first steps, whether anything changes or not.
EARLY = 4
#: After a change all memories are short for so many short half-lives, until little is left of the
#: time before; so long nothing else is noticed.
SETTLING = 2
#: Nobody but the longest memory leads before so many half-lives of the losses have passed.
FIRST = 2
#: What comes so soon after it belongs to the same change, which is noted once.
SAME = 10


class Watch(NamedTuple):
    """How closely a stream is watched."""

    fade: float  # the half-life of the losses that are compared
    every: int  # after so many observations it is decided anew who leads


class SeveralRuns(ABC):
    """Runs of None, a middle and a short half-life that learn the same; what is asked, the best is.

    It has the face of a :class:`~onlinefw.estimators.run.Run`. Every observation is predicted by
    all runs before they learn it. At fixed counts of observations the longest memory that predicts
    nearly as well as the best one becomes the leader: it answers from then on, and keeps the
    records.

    If that is a shorter one, and the longest is clearly worse, then the data look as if they had
    changed. All runs with longer memories then begin anew as copies of the leader, and go on with
    their own half-lives. So the longest one forgets nothing *since the last change*, and changes
    that are followed by long rests, which a fixed half-life cannot follow, cost little.
    """

    watch: Watch

    def __init__(self, runs: Sequence[Run], rebuild: Callable[[State], Any]) -> None:
        self.runs: list[Any] = list(runs)  # from the longest memory to the shortest
        self._rebuild = rebuild  # makes a run of its state
        self.scores = Contest(len(self.runs), self.watch.fade)
        self.leading = self.began = 0  # who answers, and when the longest memory began
        #: After how many observations the data looked as if they had changed.
        self.changes: list[int] = []
        self.turns = Turns()

    @property
    def turns(self) -> Turns:
        """The lock that all runs share."""
        return self._turns

    @turns.setter
    def turns(self, turns: Turns) -> None:
        self._turns = turns
        for one in self.runs:
            one.turns = turns

    @property
    def leader(self) -> Any:
        """The run that answers."""
        return self.runs[self.leading]

    @property
    def leader_run(self) -> Any:
        """The run that answers."""
        return self.leader

    @property
    def longest(self) -> Any:
        """The run with the longest memory, which has all that the others have."""
        return self.runs[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "runs" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.leader, name)

    @property
    def race(self) -> Any:
        """The race of radii of the first run that has one; None if all have chosen."""
        return next((one.race for one in self.runs if one.race is not None), None)

    # Rounds ---------------------------------------------------------------------------------------

    def mark(self) -> list[Any]:
        """Return what is another once a learner has changed, for a round that fails."""
        return [one.mark() for one in self.runs]

    def is_at(self, mark: list[Any]) -> bool:
        """Whether nothing has changed since the mark was made."""
        return all(one.is_at(its) for one, its in zip(self.runs, mark, strict=True))

    def use_place(self, place: tuple[str, int | None]) -> None:
        """Let all pasts be at this place."""
        for one in self.runs:
            one.use_place(place)

    def refine(self) -> None:
        """Play a round of all without new data."""
        for one in self.runs:
            one.refine()

    def correct(self) -> None:
        """Re-optimise all, where correctives do that between rounds."""
        for one in self.runs:
            one.correct()

    def finish(self) -> None:
        """Correct what was left until the end of a stream."""
        for one in self.runs:
            one.finish()

    # Who leads ------------------------------------------------------------------------------------

    @abstractmethod
    def _shortest(self) -> float:
        """Return the short half-life: so many observations tell something about the truth."""

    def _until_judged(self) -> int:
        """Return how many observations come before it is decided anew who leads."""
        return self.watch.every - self.n_observations % self.watch.every

    def _judge(self, losses: list[Array], w: Array | None) -> None:
        """Let the best run lead, now that observations have been learned that cost so much."""
        n = len(losses[0])
        self.scores.score(np.column_stack(losses), np.ones(n) if w is None else w)
        seen, every = self.n_observations, self.watch.every
        if seen // every == (seen - n) // every or seen < FIRST * self.watch.fade:
            return
        leader = self.scores.leader
        self._lead(leader)
        rested = self._age >= (SETTLING if self.began else EARLY) * self._shortest()
        tried = self._judge_trial(rested)
        if not tried and leader > 0 and rested and self.scores.behind(0, leader) > CHANGED:
            self._note_change()
            self._begin_anew()
        for one, half_life in zip(self.runs, self._half_lives(), strict=True):
            if half_life != one.half_life:
                one.go_on(half_life)
        self._note_half_life()

    @property
    def _age(self) -> int:
        """Observations since the longest memory began."""
        return self.n_observations - self.began

    def _note_change(self) -> None:
        """Note that the data look as if they had changed, unless the longest memory gains."""
        # A model that still learns loses less and less, even if a shorter memory learns faster.
        if self.scores.rises and (not self.changes or self._age >= SAME * self.watch.fade):
            self.changes.append(self.n_observations)

    def _begin_anew(self) -> None:
        """Let all runs with longer memories than the leader's be copies of it."""
        for k in range(self.leading):
            self._copy(k)
        self._lead(0)
        self.began = self.n_observations

    def _judge_trial(self, ends: bool) -> bool:
        """Judge what is tried while all memories are short; return whether anything is."""
        return False

    def _half_lives(self) -> list[float | None]:
        """Return the half-lives, which depend on counts of observations only."""
        short = self._shortest()
        if self.began and self._age < SETTLING * short:
            return [short, short, short]
        # It grows when the age has doubled.
        middle = max(LONGER * short, SHARE * 2.0 ** int(log2(max(self._age, 1))))
        return [None, middle, short]

    def _lead(self, k: int) -> None:
        """Let run k answer from now on, and go on with the records."""
        if k != self.leading:
            self.runs[k].take_records(self.leader)
            self.leading = k

    def _copy(self, k: int) -> None:
        """Let run k begin anew as a copy of the leader."""
        new = self._rebuild(self.leader.state_dict(True))
        new.be_silent()
        new.turns, self.runs[k] = self.turns, new
        self.scores.copy_to(k, self.leading)

    def _note_half_life(self) -> None:
        half_life = self.leader.half_life
        self.leader.history.half_life = inf if half_life is None else half_life

    # State ----------------------------------------------------------------------------------------

    def state_dict(self, past: bool, team: bool = True) -> State:
        """Return everything; without ``past``, what predicts."""
        told = {"changes": np.array(self.changes, int)}
        if not past:
            return {**self.leader.state_dict(False), **told}
        runs = [one.state_dict(True) for one in self.runs]
        counts = {"leading": self.leading, "began": self.began}
        return {"runs": runs, **counts, "scores": self.scores.state_dict(), **told}

    def _load(self, state: State) -> None:
        """Take over all but the runs."""
        self.leading, self.began = int(state["leading"]), int(state["began"])
        if not 0 <= self.leading < len(self.runs):
            raise ValueError(f"there is no half-life number {self.leading}")
        if not 0 <= self.began <= self.n_observations:
            raise ValueError(f"the longest memory cannot have begun after {self.began}")
        self.scores = Contest.from_state(state["scores"], len(self.runs))
        self.changes = read_changes(state)
        self._note_half_life()


def runs_from_state(state: State, rebuild: Callable[[State], Any]) -> list[Any]:
    """Make the runs that ``SeveralRuns.state_dict`` described."""
    check_state(state, "runs", "leading", "began", "scores", "changes")
    runs = [rebuild(one) for one in state["runs"]]
    if len(runs) < 2 or len({(one.n_observations, one.n_rounds) for one in runs}) > 1:
        raise ValueError("the runs of the state have not learned the same observations")
    return runs
