"""What an estimator has learned so far, and the learners with which it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any, Self

import numpy as np

from .._state import check_state, number
from .._typing import Array, State
from .._whole import Turns
from ..algorithms import Round
from ..objectives.half_life import check_half_life
from .history import History
from .linear_parts import fixed_half_life
from .race import Race

__all__ = ["CANNOT_LEARN", "Run"]

CANNOT_LEARN = (
    "a model file only predicts; go on from a checkpoint (onlinefw.files.load_checkpoint), "
    "or call fit to begin anew"
)


class Run:
    """Rounds played by learners for one radius, or for several that race each other.

    The team is made of ``parts``. It has ``n_models`` learners (the classes, or one) for each
    radius, in the order of radii. The history is that of the radius that was best at the time.
    """

    #: None in a model file, which only predicts.
    team: Any
    #: Whether single observations are learned in a compiled loop.
    takes_events = False

    #: The middlemost radius whose score is within this share of the best one wins the race.
    close = 0.0

    def __init__(
        self,
        parts: Any,
        team: Any,
        radii: Sequence[float],
        race: Race | None,
        history: History,
    ) -> None:
        self.parts, self.loss = parts, parts.loss
        self.team, self.radii, self.race, self.history = team, list(radii), race, history
        self.turns = Turns()  # of the threads that use this model
        self.n_models = 1 if team is None else len(team.learners) // len(self.radii)
        self.leader = 0 if race is None else race.best
        self.n_rounds = self.n_refined = self.n_observations = 0
        #: Device and workers that the past was last moved to.
        self.place: tuple[str, int | None] | None = None
        #: After how many observations one weighs half as much now; None: nothing is forgotten.
        self.half_life: float | None = parts.half_life
        history.half_life = inf if self.half_life is None else self.half_life
        #: After how many observations the data looked as if they had changed.
        self.changes: list[int] = []
        #: The gap when the model was saved without its past.
        self.gap = float("nan")
        #: The mean loss then; nan in files that do not tell.
        self.mean_loss = float("nan")

    # Learning -------------------------------------------------------------------------------------

    def mark(self) -> list[Any]:
        """Return what is another once a learner has changed, for a round that fails."""
        if self.turns.cut_in_two:
            self.turns.check()
        learners = self.team.learners
        if len(learners) == 1:
            return [(learners[0].t, learners[0].objective.mark())]
        return [(one.t, one.objective.mark()) for one in learners]

    def is_at(self, mark: list[Any]) -> bool:
        """Whether nothing has changed since the mark was made."""
        learners = self.team.learners
        if len(learners) != len(mark):
            return False
        pairs = zip(learners, mark, strict=True)
        return all(one.t == t and one.objective.is_at(m) for one, (t, m) in pairs)

    @property
    def can_learn(self) -> bool:
        """Whether the past is there, so that learning can go on."""
        return self.team is not None

    @property
    def radius(self) -> float:
        """The radius in use."""
        return self.radii[self.leader]

    @property
    def leader_run(self) -> Self:
        """The run that answers: this one, unless there are several."""
        return self

    @property
    def longest(self) -> Self:
        """The run with the longest memory: this one, unless there are several."""
        return self

    @property
    def learners(self) -> list[Any]:
        """The learners of the radius in use."""
        if self.turns.cut_in_two:
            self.turns.check()
        if self.team is None:
            return []
        if self.race is None:
            return self.team.learners
        return self._of(self.team.learners, self.leader)

    @property
    def objectives(self) -> list[Any]:
        """What the learners keep of the past."""
        return [one.objective for one in self.learners]

    def use_place(self, place: tuple[str, int | None]) -> None:
        """Let the past be at this place: a device, and workers."""
        if place != self.place:
            self.team.use_place(*place)
            self.place = place

    def go_on(self, half_life: float | None) -> None:
        """Forget with another half-life from now on, where there was one; None: nothing more."""
        self.team.go_on(half_life)
        self.half_life = half_life

    def take_records(self, other: Any) -> None:
        """Go on with the history of another run, which gets this one's."""
        self.history, other.history = other.history, self.history

    def be_silent(self) -> None:
        """Keep no records from now on."""
        self.history = History(0)

    def _of(self, values: list[Any], k: int) -> list[Any]:
        return values[k * self.n_models : (k + 1) * self.n_models]

    def play(self, X: Any, targets: list[Any], w: Any, n: int, weight: float) -> None:
        """Play a round with n new observations; ``targets`` has one array for each model."""
        if self.race is None:
            rounds: list[Any] = self.team.learn(X, targets, w)
        else:
            rounds = self._play_race(X, targets, w, n, weight)
        self.n_observations += n
        self._note(rounds)

    def _play_race(self, X: Any, targets: list[Any], w: Any, n: int, weight: float) -> list[Any]:
        assert self.race is not None
        rounds = self.team.learn(X, targets * len(self.radii), w)
        groups = [self._of(rounds, k) for k in range(len(self.radii))]
        playing = [k for k, group in enumerate(groups) if None not in group]
        scores = np.full(len(groups), -np.inf)
        for k in playing:
            scores[k] = -sum(one.loss for one in groups[k]) / self.n_models
        leader = self.leader
        if leader not in playing:
            means = self.race.means
            leader = max(playing, key=lambda k: means[k])
        self.race.add(scores, weight, n)
        self._choose(playing)
        return groups[leader]

    def _choose(self, playing: list[int]) -> None:
        """Go on with the radii that still play; alone with the best, if the race is over."""
        race = self.race
        assert race is not None
        self.leader = race.best
        if race.over:
            self._keep([race.nearly_best(self.close)])
            self.race, self.leader = None, 0
        elif len(playing) < len(self.radii):
            self._keep(playing)
            race.keep(playing)
            self.leader = race.best

    def _keep(self, chosen: list[int]) -> None:
        n = self.n_models
        self.team.keep([k * n + j for k in chosen for j in range(n)])
        self.radii = [self.radii[k] for k in chosen]

    def rounds_without_data(self, rounds: int, passes: int) -> int:
        """Return how many such rounds make later passes over what ``rounds`` batches brought."""
        return passes * rounds

    def refine(self) -> None:
        """Play a round of the radius in use without new data."""
        self._note(type(self.team)(self.learners).refine())
        self.n_refined += 1

    def correct(self) -> None:
        """Re-optimise what is there, if the corrective does that between rounds."""
        for one in self._corrected():
            one.correct()

    def finish(self) -> None:
        """Correct what was left until the end of a stream."""
        for one in self._corrected():
            one.finish()

    def _corrected(self) -> list[Any]:
        """Return the learners that can be corrected between rounds, of the radius in use."""
        return [one for one in self.learners if one.corrective is not None]

    def _note(self, rounds: list[Round]) -> None:
        """Note the rounds of all models as one: their mean loss, and the widest of the gaps."""
        self.n_rounds += 1
        if len(rounds) == 1:
            self.history.append(rounds[0], self.n_rounds)
        else:
            loss = float(np.mean([one.loss for one in rounds]))
            widest = max(rounds, key=lambda one: one.gap)
            self.history.append(widest, self.n_rounds, loss)

    def certified(self) -> tuple[float, float]:
        """Return the certificate of the radius in use, and the mean loss that it speaks of.

        Of several classes they are those of the class with the largest certificate.
        """
        if self.team is None:
            return self.gap, self.mean_loss
        with self.turns:
            gaps = [self._certificate_of(one) for one in self.learners]
            gap = max(gaps)
            return gap, float(self.learners[gaps.index(gap)].objective.value())

    def loss_now(self) -> float:
        """Return the mean loss that the certificate speaks of."""
        if len(self.learners) != 1:
            return self.certified()[1]
        with self.turns:
            return float(self.learners[0].objective.value())

    def _certificate_of(self, learner: Any) -> float:
        return learner.certificate()

    # State ----------------------------------------------------------------------------------------

    def state_dict(self, past: bool, team: bool = True) -> State:
        """Return everything; without ``past``, the gap instead of the learners.

        Without ``team`` the learners are left out: a search saves those of all radii at once.
        """
        state: State = {
            "radii": np.array(self.radii if past else [self.radius]),
            "n_rounds": self.n_rounds,
            "n_refined": self.n_refined,
            "n_observations": self.n_observations,
            "history": self.history.state_dict(),
            "half_life": self.half_life,
            "changes": np.array(self.changes, int),
        }
        if not past:
            gap, mean_loss = self.certified()
            told = {"mean_loss": mean_loss} if isfinite(mean_loss) else {}
            return {**state, "gap": float(gap), **told}
        if self.team is None:
            raise ValueError(CANNOT_LEARN)
        race = None if self.race is None else self.race.state_dict()
        learners = self.team.state_dict() if team else None
        return {**state, "leader": self.leader, "race": race, "team": learners}

    def _load(self, state: State) -> None:
        """Take the counters, and the learners if there are any, from a state."""
        counts = [int(state[name]) for name in ("n_rounds", "n_refined", "n_observations")]
        if not all(0 <= count < 2**62 for count in counts):
            raise ValueError(f"the counters of the state are impossible: {counts}")
        self.n_rounds, self.n_refined, self.n_observations = counts
        self.changes = read_changes(state)
        if self.team is None:
            self.gap = float(state["gap"])
            if "mean_loss" in state:
                self.mean_loss = number(state["mean_loss"], "the mean loss")
        else:
            self.leader = int(state["leader"])
            if not 0 <= self.leader < len(self.radii):
                raise ValueError(f"there is no radius number {self.leader}")
            if state["team"] is not None:  # None: a search has loaded the learners of all radii
                self.team.load_state(state["team"])


def saved_half_life(model: Any, state: State) -> float | None:
    """Return the half-life in use of a state; older ones have that of the model."""
    return check_half_life(state["half_life"]) if "half_life" in state else fixed_half_life(model)


def read_changes(state: State) -> list[int]:
    """Return when the data looked as if they had changed; older states do not tell."""
    changes = np.asarray(state.get("changes", np.empty(0, int)))
    if changes.ndim != 1 or changes.dtype.kind not in "iu" or (np.diff(changes) < 0).any():
        raise ValueError("the changes of the state must be counts of observations")
    return changes.tolist()


def read_counters(state: State) -> tuple[Array, History, Race | None]:
    """Return radii, history and race of a state, checked."""
    check_state(state, "radii", "n_rounds", "n_refined", "n_observations", "history")
    radii = np.asarray(state["radii"], float)
    if radii.ndim != 1 or radii.size == 0:
        raise ValueError("the radii must be a one-dimensional array")
    if "gap" not in state:
        check_state(state, "leader", "race", "team")
    race = None if state.get("race") is None else Race.from_state(state["race"])
    if race is not None and race.n != radii.size:
        raise ValueError(f"{race.n} models race each other for {radii.size} radii")
    return radii, History.from_state(state["history"]), race
