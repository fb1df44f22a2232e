"""What a recommender has learned, and the learner with which it goes on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._state import check_state
from .._threads import blocks_for, share
from .._typing import Array, State
from ..algorithms import Round
from ..iterates import LowRank
from ..kernels.lists import some_lists
from ..past.saved_clicks import clicks_from_state, clicks_state
from .click_parts import ClickParts
from .completion_run import CompletionRun, as_entries
from .learned_matrix import held_factors
from .recommending import Scoring
from .run import saved_half_life
from .stream import Batch

__all__ = ["ClickRun", "click_run_from_state"]

#: So many of a row's entries its taste is found from, about.
ENTRIES = 32


class LearnedClicks(NamedTuple):
    """What recommends in a model file."""

    models: Any

    @property
    def theta(self) -> LowRank:
        """The low-rank matrix."""
        return held_factors(*self.models.factors())

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.models.shape

    @property
    def dtype(self) -> Any:
        """Of the factors."""
        return self.models.dtype

    def state_dict(self) -> State:
        """Return everything as plain arrays."""
        return clicks_state(self.models)

    @classmethod
    def from_state(cls, state: State) -> LearnedClicks:
        """Make what ``state_dict`` described."""
        return cls(clicks_from_state(state))


class ClickRun(CompletionRun):
    """A run that learns clicks: see :class:`~onlinefw.estimators.completion_run.CompletionRun`.

    A row that the model does not know has the number -1. It has had nothing, and likes nothing in
    particular.
    """

    _matrix_kind = LearnedClicks

    @property
    def models(self) -> Any:
        """What recommends."""
        return self.local.models if self._matrix is None else self._matrix.models

    @property
    def local(self) -> Any:
        """What corrects single users and items; None in a model file."""
        return None if self.team is None else self.learners[0].corrective

    @property
    def radius(self) -> float:
        """That of the ball of theta's own norm."""
        if not self.n_observations:
            return super().radius
        with self.turns:
            return float(self.local.ball(self.objective).radius)

    def _certificate_of(self, learner: Any) -> float:
        """Return the certificate in theta's own ball."""
        if self.local.models is None:
            return super()._certificate_of(learner)
        return learner.objective.certificate(self.local.ball(learner.objective))

    # Learning -------------------------------------------------------------------------------------

    def rounds_without_data(self, rounds: int, passes: int) -> int:
        """Return how many rounds make later passes: one for each."""
        return passes

    def finish(self) -> None:
        """Nothing was left until the end of a stream."""

    def refine(self) -> None:
        """Solve all users and items once: a round."""
        self.learners[0].sweep()
        self.n_rounds += 1
        self.n_refined += 1
        nan = float("nan")
        self.history.append(Round(self.n_rounds, nan, nan, nan, 1.0, "corrective", 0))

    def learn_events(self, batch: Batch, ranks: Array | None = None) -> Array:
        """Let events be learned one after another; ``ranks`` gets the place of each column."""
        batch = self._current(batch)
        X, y, w = batch[:3]
        assert y is not None
        (learner,) = self.learners
        predicted = learner.play_events(as_entries(X, y, w), ranks)
        self._note_events(self.loss.value(predicted, y))
        self.n_observations += y.size
        self.low, self.high = min(self.low, float(y.min())), max(self.high, float(y.max()))
        self._know(batch)
        return predicted

    def learn_batch(self, batch: Batch) -> None:
        """Let a batch of events be learned at once: each user and item is solved once."""
        batch = self._current(batch)
        X, y, w = batch[:3]
        assert y is not None
        (learner,) = self.learners
        found = learner.play(as_entries(X, y, w))
        self._note_events(np.full(y.size, found.loss))
        self.n_observations += y.size
        self._know(batch)

    def sweep(self) -> None:
        """Solve all users and items once."""
        self.learners[0].sweep()

    # Recommending ---------------------------------------------------------------------------------

    def scoring(self) -> Scoring:
        """Return what columns are worth to tastes, with what is frequent now."""
        models = self.models
        m = models.shape[1]
        lengths = models.lists.by_column.length[:m]
        return Scoring(models.models.columns.factors[:m], models.trend(), lengths)

    def vectors(self, rows: Array) -> Array:
        """Return the tastes of rows."""
        models, known = self.models, np.flatnonzero(rows >= 0)
        rank, width = models.models.rank, models.models.columns.factors.shape[1]
        tastes = np.zeros((rows.size, width))

        def find(first: int, last: int, blocks: Array) -> None:
            some = known[blocks[first] : blocks[last]]
            tastes[some, :rank] = models.tastes(rows[some])

        # A taste is about as much work as the square of the rank for each of a few entries.
        share(find, blocks_for(known.size, known.size * ENTRIES * rank**2, None))
        return tastes

    def vector_of(self, columns: Array) -> Array:
        """Return the taste of somebody who has had these columns, the latest last."""
        models = self.models
        different, first, counts = np.unique(columns, return_index=True, return_counts=True)
        order = np.argsort(first)
        taste = np.zeros(models.models.columns.factors.shape[1])
        if columns.size:
            found = models.taste_of(different[order], counts[order].astype(float))
            taste[: models.models.rank] = found
        return taste

    def taken(self, rows: Array) -> tuple[Array, Array]:
        """Return the columns that rows have had, compressed: indptr and columns."""
        known, lists = rows >= 0, self.models.lists.by_row
        indptr, columns, _, _ = some_lists(lists, rows[known])
        lengths = np.zeros(rows.size, np.int64)
        lengths[known] = np.diff(indptr)
        return np.append(0, np.cumsum(lengths)), columns.astype(np.int64)

    def exact(self, rows: Array, vectors: Array, cols: Array) -> Array:
        """Return the scores of columns for tastes."""
        models = self.models
        right = models.models.columns.factors[cols].astype(float)
        return np.einsum("kp,kp->k", vectors, right) + models.trend()[cols]

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return the scores of pairs."""
        different, which = np.unique(rows, return_inverse=True)
        return self.exact(rows, self.vectors(different)[which], cols)

    def contributions(self, row: int, column: int) -> tuple[Array, Array]:
        """Return the columns that a row has had, and what each adds to the score of another."""
        models = self.models
        _, own, _, weights = some_lists(models.lists.by_row, np.array([row]))
        own = own.astype(np.int64)
        if not own.size:
            return own, np.empty(0)
        parts = models.taste_parts(own, weights.astype(float) / models.newest)
        factors = models.models.columns.factors[column, : models.models.rank]
        return own, parts @ factors.astype(float)

    def popularity(self) -> Array:
        """Return how many events every column has had, each weighing what it does now."""
        models = self.models
        m = models.shape[1]
        indptr, _, _, weights = some_lists(models.lists.by_column, slice(m))
        of = np.repeat(np.arange(m), np.diff(indptr))
        return np.bincount(of, weights.astype(float), minlength=m) / models.newest

    # State ----------------------------------------------------------------------------------------

    def _what_predicts(self) -> State:
        return {"matrix": clicks_state(self.models)}


def click_run_from_state(model: Any, state: State) -> ClickRun:
    """Make the run of a recommender that ``state_dict`` described."""
    check_state(state, "half_life")
    return ClickRun.from_state(ClickParts.of(model, saved_half_life(model, state)), state)
