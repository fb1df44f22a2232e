"""What a recommender has learned, and the learner with which it goes on."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, State
from ..factors.clicks import Clicks
from .click_parts import ClickParts
from .factors_run import FactorsRun
from .recommending import Scoring
from .stream import Batch

__all__ = ["ClickRun", "click_run_from_state"]


class ClickRun(FactorsRun):
    """A run that learns clicks: see :class:`~onlinefw.estimators.factors_run.FactorsRun`.

    A row that the model does not know has the number -1. It has had nothing, and likes nothing in
    particular.
    """

    sweeps = 5

    @property
    def clicks(self) -> Clicks:
        """What recommends."""
        clicks: Clicks = self.learner.model
        return clicks

    # Learning -------------------------------------------------------------------------------------

    def learn_batch(self, batch: Batch) -> None:
        """Let a batch of events be learned at once: each user and item is solved once."""
        round_ = self._play(batch)
        self._note_events(np.full(batch.n, round_.loss))

    def sweep(self) -> None:
        """Solve all users and items once."""
        self.learner.sweep()

    # Recommending ---------------------------------------------------------------------------------

    def scoring(self) -> Scoring:
        """Return what columns are worth to tastes, with what is frequent now."""
        clicks = self.clicks
        m = clicks.shape[1]
        lengths = clicks.lists.by_column.length[:m]
        return Scoring(clicks.columns.factors[:m], clicks.trend(), lengths)

    def vectors(self, rows: Array) -> Array:
        """Return the tastes of rows."""
        clicks, known = self.clicks, rows >= 0
        tastes = np.zeros((rows.size, clicks.columns.factors.shape[1]))
        tastes[known, : clicks.rank] = clicks.tastes(rows[known])
        return tastes

    def vector_of(self, columns: Array) -> Array:
        """Return the taste of somebody who has had these columns, the latest last."""
        clicks = self.clicks
        different, first, counts = np.unique(columns, return_index=True, return_counts=True)
        order = np.argsort(first)
        taste = np.zeros(clicks.columns.factors.shape[1])
        if columns.size:
            found = clicks.taste_of(different[order], counts[order].astype(float))
            taste[: clicks.rank] = found
        return taste

    def taken(self, rows: Array) -> tuple[Array, Array]:
        """Return the columns that rows have had, compressed: indptr and columns."""
        known = rows >= 0
        indptr, columns = super().taken(rows[known])
        lengths = np.zeros(rows.size, np.int64)
        lengths[known] = np.diff(indptr)
        return np.append(0, np.cumsum(lengths)), columns

    def exact(self, rows: Array, vectors: Array, cols: Array) -> Array:
        """Return the scores of columns for tastes."""
        right = self.clicks.columns.factors[cols].astype(float)
        return np.einsum("kp,kp->k", vectors, right) + self.clicks.trend()[cols]

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return the scores of pairs."""
        different, which = np.unique(rows, return_inverse=True)
        return self.exact(rows, self.vectors(different)[which], cols)

    def contributions(self, row: int, column: int) -> tuple[Array, Array]:
        """Return the columns that a row has had, and what each adds to the score of another."""
        clicks = self.clicks
        _, own, _, weights = clicks.lists.by_row.some(np.array([row]))
        own = own.astype(np.int64)
        if not own.size:
            return own, np.empty(0)
        parts = clicks.taste_parts(own, weights.astype(float) / clicks.newest)
        return own, parts @ clicks.columns.factors[column, : clicks.rank].astype(float)

    def popularity(self) -> Array:
        """Return how many events every column has had, each weighing what it does now."""
        clicks = self.clicks
        m = clicks.shape[1]
        indptr, _, _, weights = clicks.lists.by_column.some(slice(m))
        of = np.repeat(np.arange(m), np.diff(indptr))
        return np.bincount(of, weights.astype(float), minlength=m) / clicks.newest


def click_run_from_state(model: Any, state: State) -> ClickRun:
    """Make the run of a recommender that ``state_dict`` described."""
    if "factors" not in state:
        raise ValueError("another version of onlinefw has written this recommender: fit it again")
    run = ClickRun.from_state(ClickParts.of(model), state)
    if not isinstance(run.learner.model, Clicks):
        raise ValueError("this is the state of a model of values, not of clicks")
    return run
