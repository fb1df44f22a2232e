"""What a matrix completion has learned, and the learners with which it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Self

import numpy as np

from .._batches import BatchHandle
from .._devices import to_host
from .._state import check_state, number
from .._typing import Array, State
from ..algorithms import OnlineFrankWolfe, Round
from ..objectives.entries import EntriesBatch
from .completion_parts import CompletionParts
from .history import History
from .ids import Ids
from .learned_matrix import LearnedMatrix
from .race import Race
from .recommending import Scoring
from .run import Run, read_counters, saved_half_life
from .smoothed_weights import SmoothedWeights
from .stream import Batch

__all__ = ["CompletionRun", "as_entries", "new_run", "run_from_state"]

#: Radii race each other over this part of a fit, and over this many rounds of ``partial_fit`` ...
RACE_SHARE, RACE_ROUNDS = 0.2, 100
#: ... but over at least so many, and no more observations than this: each keeps its own past.
LEAST_ROUNDS, RACE_SIZE = 10, 1_000_000
#: So many single events have one line in the history.
NOTED = 100
NAN = float("nan")
#: Rows are asked for what they have seen one by one, if there are so many observations for each.
FEW = 1000
#: How often a pass without new data brings the biases up to date.
REFRESHES_PER_PASS = 10


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
            batch = as_entries(X, targets[0], w)
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

    def go_on(self, half_life: float | None) -> None:
        """Let the entries fade with another half-life from now on; None: nothing is forgotten."""
        for one in self.learners:
            one.objective.go_on(half_life)

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


class CompletionRun(Run):
    """A run that completes a matrix: see :class:`~onlinefw.estimators.run.Run`.

    ``matrix`` is what predicts, where there are no learners.
    """

    #: The best radius grows with the data: on the first data, radii that are much too small for all
    #: of them do best. So among radii this close the middlemost is the better guess.
    close = 0.08

    def __init__(self, *run: Any, matrix: Any = None) -> None:
        super().__init__(*run)
        self._matrix = matrix
        self.low, self.high = np.inf, -np.inf
        self._unnoted = 0.0  # losses of events since the last one in the history
        self.weights = None if self.parts.weighting is None else SmoothedWeights()
        #: What rows and columns are called; None if they have their numbers alone.
        self.ids: Ids | None = None

    def learn(self, batch: Batch, targets: list[Any]) -> None:
        """Play a round with a batch and its values."""
        team, batch = self.team, self._current(batch)
        X, y, w = batch[:3]
        if self.weights is not None:
            self.weights.grow(team.learners, X)
        if y is None:
            low, high = X.value_range()
        else:
            low, high = float(y.min()), float(y.max())
        weight = batch.weight if self.race is not None else 0.0
        self.play(X, targets, w, batch.n, weight)
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self.weights is not None:
            self.weights.refresh(team.learners)
        self._know(batch)

    def forget(self, row: int) -> None:
        """Forget a row of all learners, and its id."""
        for one in self.team.learners:
            one.forget(row)
        if self.ids is not None:
            self.ids.rows.forget(row)
        low, high = self.objective.value_range()  # which theirs may have been the ends of
        self.low, self.high = max(self.low, low), min(self.high, high)

    def _current(self, batch: Batch) -> Batch:
        return batch if self.ids is None or batch.fresh is None else self.ids.current(batch)

    def _know(self, batch: Batch) -> None:
        """Know the ids of a batch that has been learned."""
        if self.ids is not None and batch.fresh is not None:
            self.ids.learned(batch)

    def refine(self) -> None:
        """Play a round without new data; every tenth of a pass brings the biases up to date."""
        rounds = self.n_rounds - self.n_refined
        if self.n_refined % ceil(rounds / REFRESHES_PER_PASS) == 0:
            self.learners[0].objective.refresh_offsets()
        super().refine()

    @property
    def objective(self) -> Any:
        """What is kept of the past."""
        return self.learners[0].objective

    @property
    def matrix(self) -> Any:
        """What predicts: ``predict(rows, cols)``, ``columns_of(row)``, ``shape``, ``dtype``."""
        return self._matrix if self.team is None else self.learners[0].objective

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return the model at entries of the matrix."""
        return self.matrix.predict(rows, cols)

    def scoring(self) -> Scoring:
        """Return what columns are worth to the vectors of rows."""
        matrix = self.matrix
        offsets = matrix.column_offsets
        if offsets is None:
            offsets = np.zeros(matrix.shape[1], matrix.dtype)
        return Scoring(to_host(matrix.theta.right), offsets)

    def vectors(self, rows: Array) -> Array:
        """Return the factors of some rows, with the weights of theta."""
        left = to_host(self.matrix.theta.left)
        return left[rows] * self.matrix.theta.weights.astype(left.dtype)

    def taken(self, rows: Array) -> tuple[Array, Array]:
        """Return the columns in which rows have been observed, compressed: indptr and columns."""
        if rows.size * FEW < self.n_observations:
            lists = [self.matrix.columns_of(int(row)) for row in rows]
            ends = np.cumsum([0, *(one.size for one in lists)])
            return ends, np.concatenate([np.empty(0, np.int64), *lists])
        indptr, columns = self.matrix.seen if self.team is None else self.matrix.seen()
        start, length = indptr[rows].astype(np.int64), np.diff(indptr)[rows].astype(np.int64)
        ends = np.append(0, np.cumsum(length))
        at = np.repeat(start - ends[:-1], length) + np.arange(ends[-1])
        return ends, columns[at].astype(np.int64)

    def exact(self, rows: Array, vectors: Array, cols: Array) -> Array:
        """Return what is predicted at entries, whose rows have these vectors."""
        return self.predict(rows, cols) if cols.size else np.empty(0, self.matrix.dtype)

    def entries(self, rows: Array, cols: Array) -> Array:
        """Return the model at entries, with the fallback outside the matrix."""
        m1, m2 = self.matrix.shape
        known = (rows < m1) & (cols < m2)
        if known.all():
            return self.predict(rows, cols)
        z = self.fallback(rows, cols)
        z[known] = self.predict(rows[known], cols[known])
        return z

    def _note_events(self, losses: Array) -> None:
        """Count a round for each loss; every hundredth has the mean of a hundred in the history."""
        edges = np.arange(NOTED - self.n_rounds % NOTED, losses.size + 1, NOTED)
        for part in np.split(losses, edges):
            self.n_rounds += part.size
            # One after another: where a call ends must not change what is added to what.
            self._unnoted = float(np.cumsum(np.append(self._unnoted, part))[-1])
            if self.n_rounds % NOTED == 0 and part.size:
                round_ = Round(self.n_rounds, self._unnoted / NOTED, NAN, NAN, 0.0, "hold", 0)
                self.history.append(round_)
                self._unnoted = 0.0

    @property
    def has_offsets(self) -> bool:
        """Whether offsets of rows and columns are added to theta."""
        matrix = self._matrix
        if matrix is None:
            return self.biases is not None
        return matrix.row_offsets is not None

    @property
    def biases(self) -> Any:
        """The mean, and the biases of rows and columns: what is known of entries never seen."""
        return self.objective.offsets if self._matrix is None else self._matrix.biases

    def fallback(self, rows: Array, cols: Array) -> Array:
        """Return mean and biases where they are known; 0 without offsets."""
        biases = self.biases
        z = np.zeros(rows.size)
        if biases is not None:
            z += biases.mean
            for index, side in ((rows, biases.rows), (cols, biases.columns)):
                seen = index < side.size
                z[seen] += side[index[seen]]
        return z.astype(self.matrix.dtype)

    @property
    def mood(self) -> Any:
        """There are no moods: those belong to factors."""
        return None

    # State ----------------------------------------------------------------------------------------

    def state_dict(self, past: bool, team: bool = True) -> State:
        """Return everything; without ``past``, what predicts."""
        state = {
            **super().state_dict(past, team),
            "many": self.parts.many,
            "low": float(self.low),
            "high": float(self.high),
            "unnoted": self._unnoted,
            "weights_due": None if self.weights is None else self.weights.due,
            "ids": None if self.ids is None else self.ids.state_dict(),
        }
        if past:
            return state
        matrix = self._matrix
        if matrix is None:
            matrix = LearnedMatrix.of(self.objective, self.biases)
        return {**state, "matrix": matrix.state_dict()}

    @classmethod
    def from_state(cls, parts: Any, state: State) -> Self:
        """Make the run that ``state_dict`` described, with or without its past."""
        check_state(state, "many", "low", "high", "weights_due")
        radii, history, race = read_counters(state)
        matrix = team = None
        if "team" in state:
            check_state(state["team"], "learners")
            if len(state["team"]["learners"]) != radii.size:
                raise ValueError("there are not as many learners as radii")
            # New learners with the same parameters; the state replaces what they know.
            team = Apart([parts.learner((1, 1), radius) for radius in radii.tolist()])
        else:
            check_state(state, "matrix", "gap")
            matrix = LearnedMatrix.from_state(state["matrix"])
        run = cls(parts, team, radii.tolist(), race, history, matrix=matrix)
        run.low, run.high = float(state["low"]), float(state["high"])
        run._unnoted = number(state.get("unnoted", 0.0), "the sum of losses")
        if run.weights is not None and state["weights_due"] is not None:
            run.weights.due = float(state["weights_due"])
        run._load(state)
        if state.get("ids") is not None:  # older files have none
            run.ids = Ids.from_state(state["ids"], run.matrix.shape)
        return run


def as_entries(X: Array, y: Any, w: Array | None) -> EntriesBatch:
    """Return checked observations as learners take them."""
    rows = np.ascontiguousarray(X[:, 0], np.int64)
    cols = np.ascontiguousarray(X[:, 1], np.int64)
    w = np.ones(len(X)) if w is None else np.ascontiguousarray(w)
    return EntriesBatch(rows, cols, np.ascontiguousarray(y), w)


def new_run(parts: CompletionParts, first: Batch, rounds: int | None) -> CompletionRun:
    """Make the learners; ``rounds`` is how many a fit will have."""
    model = parts.model
    y = first.y
    assert y is not None
    rows, columns = (int(n) + 1 for n in first.X.max(axis=0))
    shape = parts.shape((rows, columns))
    radii = parts.radii(shape, y)
    race = None
    if len(radii) > 1:
        most = RACE_ROUNDS if rounds is None else max(LEAST_ROUNDS, ceil(RACE_SHARE * rounds))
        race = Race(len(radii), rounds=most, rows=RACE_SIZE, least_rounds=LEAST_ROUNDS, late=True)
    team = Apart([parts.learner(shape, radius) for radius in radii])
    run = CompletionRun(parts, team, radii, race, History.of(model))
    run.ids = new_ids(first)
    return run


def new_ids(first: Batch) -> Ids | None:
    """Return ids that are not known yet, of the kinds of a first batch; None if it has none."""
    return None if first.fresh is None else Ids.like(first.fresh)


def run_from_state(model: Any, state: State) -> CompletionRun:
    """Make the run of a matrix completion that ``state_dict`` described."""
    check_state(state, "many")
    parts = CompletionParts.decided(model, bool(state["many"]), saved_half_life(model, state))
    return CompletionRun.from_state(parts, state)
