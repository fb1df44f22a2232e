"""What a matrix completion has learned with factors that are solved at every event."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np

from .._state import check_state
from .._typing import Array, State
from .._validation import check_whole
from .._whole import Turns
from ..algorithms.rounds import Round
from ..factors import OnlineFactors
from .completion_parts import CompletionParts
from .completion_run import CompletionRun, as_entries, new_ids, new_run
from .completion_run import run_from_state as completion_from_state
from .history import History
from .ids import Ids
from .recommending import Scoring
from .run import read_changes
from .stream import Batch

__all__ = ["FactorsRun", "Mood", "new_factors", "new_run_of", "run_from_state"]


#: Batches of so many observations leave something to be done.
LARGE = 10_000


class Mood(NamedTuple):
    """How the latest errors of a row enter its next predictions.

    ``fast`` and ``slow`` are what two means of them are multiplied by, of about 3 and 14 errors.
    ``gain`` is about how much of the variance of the errors that explains.
    """

    fast: float
    slow: float
    gain: float


class FactorsRun(CompletionRun):
    """A run whose learner is :class:`~onlinefw.OnlineFactors`; of a model file it only predicts."""

    race = None
    weights = None
    takes_events = True
    #: How often all rows and columns are solved after large batches.
    sweeps = 3

    def __init__(self, parts: Any, learner: OnlineFactors, history: History) -> None:
        self.parts, self.loss, self.learner, self.history = parts, parts.loss, learner, history
        self.turns = Turns()
        self.n_rounds = self.n_refined = self.n_observations = 0
        self.changes: list[int] = []
        self.place = learner.device, learner.workers
        self._can_learn = True
        self._told = (float("nan"), float("nan"))  # certificate and mean loss of a model file
        self._unnoted = 0.0
        self._at_once = 0  # observations learned in large batches, and not swept since
        self._note_half_life()
        self.ids: Ids | None = None

    def _note_half_life(self) -> None:
        self.history.half_life = inf if self.half_life is None else self.half_life

    # Learning -------------------------------------------------------------------------------------

    def mark(self) -> Any:
        """Return what is another once the learner has changed."""
        if self.turns.cut_in_two:
            self.turns.check()
        return self.learner._changes

    def is_at(self, mark: Any) -> bool:
        """Whether nothing has changed since the mark was made."""
        return bool(self.learner._changes == mark)

    def learn(self, batch: Batch, targets: list[Any]) -> None:
        """Play a round with a batch."""
        self._note([self._play(batch)])

    def _play(self, batch: Batch) -> Round:
        """Let the learner learn a batch at once."""
        batch = self._current(batch)
        round_ = self.learner.play(as_entries(*batch[:3]))
        self.n_observations += batch.n
        self._at_once += batch.n if batch.n >= LARGE else 0
        self._know(batch)
        return round_

    def learn_events(self, batch: Batch, ranks: Array | None = None) -> Array:
        """Learn observations one after another; return the predictions.

        ``ranks`` gets the place of each column, of clicks.
        """
        if batch.fresh is not None:
            batch = self._current(batch)
        predicted = self.learner.learn_checked(as_entries(*batch[:3]), ranks=ranks)
        self._note_events(self.loss.value(predicted, batch.y))
        self.n_observations += predicted.size
        if batch.fresh is not None:
            self._know(batch)
        return predicted

    def forget(self, row: int) -> None:
        """Forget a row, and its id."""
        self.learner.forget(row)
        if self.ids is not None:
            self.ids.rows.forget(row)

    def refine(self) -> None:
        """Solve all rows and columns once."""
        self.learner.sweep()
        self.n_rounds += 1
        self.n_refined += 1
        nan = float("nan")
        self.history.append(Round(self.n_rounds, nan, nan, nan, 1.0, "corrective", 0))

    def correct(self) -> None:
        """Find a theta with a certificate that says something."""
        self.learner.correct()

    def finish(self) -> None:
        """Solve all a few times, if most of it was learned in large batches."""
        if 2 * self._at_once > self.n_observations:
            for _ in range(self.sweeps):
                self.learner.sweep()
            self._at_once = 0

    def rounds_without_data(self, rounds: int, passes: int) -> int:
        """Return how many rounds make later passes: one for each."""
        return passes

    def use_place(self, place: tuple[str, int | None]) -> None:
        """Let rows and columns be solved there; entries and factors stay in this process."""
        if place != self.place:
            self.learner.use_place(*place)
            self.place = place

    def go_on(self, half_life: float | None) -> None:
        """Forget with another half-life from now on."""
        self.learner.go_on(half_life)

    # What is known --------------------------------------------------------------------------------

    @property
    def half_life(self) -> float | None:  # type: ignore[override]
        """The half-life in use; None while nothing is forgotten."""
        return self.learner.half_life

    @property
    def can_learn(self) -> bool:
        """Whether the past is there, so that learning can go on."""
        return self._can_learn

    @property
    def team(self) -> Any:
        """The learner; None in a model file."""
        return self.learner if self._can_learn else None

    @property
    def learners(self) -> list[Any]:
        """The learner, if it can learn."""
        if self.turns.cut_in_two:
            self.turns.check()
        return [self.learner] if self._can_learn else []

    @property
    def objectives(self) -> list[Any]:
        """What is kept of the past: the learner, which knows its value and certificate."""
        return self.learners

    @property
    def radii(self) -> list[float]:  # type: ignore[override]
        """There is one ball, that of theta's own norm."""
        return [self.radius]

    @property
    def radius(self) -> float:
        """Theta's own weighted norm."""
        with self.turns:
            return float(self.learner.held_loss().ball(self.learner.theta).radius)

    def certified(self) -> tuple[float, float]:
        """Return the certificate of theta, and the mean loss that it speaks of."""
        if not self._can_learn:
            return self._told
        with self.turns:
            held = self.learner.held_loss()
            return held.certificate(self.learner.theta), held.value(self.learner.theta)

    def loss_now(self) -> float:
        """Return the mean loss that the certificate speaks of."""
        if not self._can_learn:
            return self._told[1]
        with self.turns:
            return self.learner.value()

    @property
    def matrix(self) -> OnlineFactors:
        """What predicts."""
        return self.learner

    @property
    def low(self) -> float:  # type: ignore[override]
        """The smallest value seen."""
        return self.learner.model.range[0]

    @property
    def high(self) -> float:  # type: ignore[override]
        """The largest value seen."""
        return self.learner.model.range[1]

    @property
    def mood(self) -> Mood | None:
        """What moods are worth; None where there are none."""
        found = self.learner.model.mood_fitted()
        return None if found is None else Mood(*found)

    @property
    def has_offsets(self) -> bool:
        """Whether rows and columns have biases."""
        return self.learner.model.biased

    # Predicting and recommending ------------------------------------------------------------------

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return what is predicted for entries of the matrix, with moods."""
        return self.learner.predict(rows, cols).astype(self.learner.dtype)

    def entries(self, rows: Array, cols: Array) -> Array:
        """Return the model at entries, with what is expected of rows and columns not seen."""
        m1, m2 = self.learner.shape
        return self.predict(np.where(rows < m1, rows, -1), np.where(cols < m2, cols, -1))

    def scoring(self) -> Scoring:
        """Return what columns are worth to the vectors of rows, biases included."""
        right = self.learner.model.vectors_of_columns()
        return Scoring(right, np.zeros(len(right), right.dtype))

    def vectors(self, rows: Array) -> Array:
        """Return the factors of some rows, with a 1 for the biases of columns."""
        return self.learner.model.vectors_of_rows(rows)

    def taken(self, rows: Array) -> tuple[Array, Array]:
        """Return the columns in which rows have been observed, compressed: indptr and columns."""
        indptr, columns, _, _ = self.learner.model.lists.by_row.some(rows)
        return indptr, columns.astype(np.int64)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self, past: bool, team: bool = True) -> State:
        """Return everything; without ``past``, what predicts."""
        state: State = {
            "factors": self.learner.state_dict() if past else self.learner.what_predicts(),
            "n_rounds": self.n_rounds,
            "n_refined": self.n_refined,
            "n_observations": self.n_observations,
            "history": self.history.state_dict(),
            "changes": np.array(self.changes, int),
            "unnoted": self._unnoted,
            "at_once": self._at_once,
            "ids": None if self.ids is None else self.ids.state_dict(),
        }
        return state if past else {**state, "certified": [float(x) for x in self.certified()]}

    @classmethod
    def from_state(cls, parts: Any, state: State) -> Self:
        """Make the run that ``state_dict`` described, with or without its past."""
        check_state(state, "factors", "n_rounds", "n_refined", "n_observations", "history")
        check_state(state, "changes", "unnoted", "at_once", "ids")
        loss = None if "part" in state["factors"].get("loss", {}) else parts.loss
        learner = OnlineFactors.from_state(state["factors"], loss=loss)
        run = cls(parts, learner, History.from_state(state["history"]))
        counts = [int(state[name]) for name in ("n_rounds", "n_refined", "n_observations")]
        if not all(0 <= count < 2**62 for count in counts):
            raise ValueError(f"the counters of the state are impossible: {counts}")
        run.n_rounds, run.n_refined, run.n_observations = counts
        run.changes, run._unnoted = read_changes(state), float(state["unnoted"])
        run._at_once = check_whole("at_once", state["at_once"], 0)
        if "certified" in state:
            gap, mean = state["certified"]
            run._can_learn, run._told = False, (float(gap), float(mean))
        if state["ids"] is not None:
            run.ids = Ids.from_state(state["ids"], learner.shape)
        return run


def new_factors(
    parts: Any, first: Batch, rounds: int | None, kind: type[FactorsRun] = FactorsRun
) -> Any:
    """Make the learner for a stream that begins with these observations."""
    rows, columns = (int(n) + 1 for n in first.X.max(axis=0))
    run = kind(parts, parts.factors_learner((rows, columns)), History.of(parts.model))
    run.ids = new_ids(first)
    return run


def new_run_of(parts: CompletionParts) -> Callable[..., CompletionRun]:
    """Return what makes the run of a matrix completion."""
    return new_factors if parts.factors else new_run


def run_from_state(model: Any, state: State) -> CompletionRun:
    """Make the run of a matrix completion that ``state_dict`` described."""
    if "factors" in state:
        return FactorsRun.from_state(CompletionParts.decided(model, False, None), state)
    return completion_from_state(model, state)
