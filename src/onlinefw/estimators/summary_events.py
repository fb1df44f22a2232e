"""Rows that a summary learns one at a time, in compiled loops."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from .._typing import Array
from ..algorithms import Round, SummaryFrankWolfe
from ..objectives.row_objective import RowsBatch
from .linear_run import LinearRun, a_piece
from .stream import Batch

__all__ = ["event_room", "learn_events", "takes_events"]

#: To learn a number takes so many times as long as to predict with it.
SLOWER = 8


def takes_events(run: Any) -> bool:
    """Whether single rows are learned in compiled loops: alone, and not before the first row."""
    alone = isinstance(run, LinearRun) and run.can_learn and run.race is None
    started = alone and run.n_observations > 0
    return started and all(isinstance(one, SummaryFrankWolfe) for one in run.learners)


def event_room(run: LinearRun, X: Any, left: int) -> int:
    """Return how many rows take little time, and end where coefficients are noted."""
    rows = min(left, a_piece(X, SLOWER * len(run.learners)))
    if run.path.size:
        rows = min(rows, max(ceil(run.path.due) - run.n_rounds, 1))
    return rows


def learn_events(run: LinearRun, batch: Batch, targets: list[Array]) -> Array:
    """Let each row be a round; return the scores before it, with a column for each model."""
    X = batch.X if run.scaling is None else run.scaling.apply(batch.X)
    w = np.ones(batch.n) if batch.w is None else batch.w
    pairs = list(zip(run.learners, targets, strict=True))
    scores = np.column_stack([one.play_events(RowsBatch(X, [y], w)) for one, y in pairs])
    paid = [run.loss.value(scores[:, k], y) for k, y in enumerate(targets)]
    nan = float("nan")
    for loss in np.mean(paid, axis=0).tolist():
        t = run.n_rounds + 1
        run.n_observations += 1
        run._note([Round(t, loss, nan, nan, nan, "pairwise", t)])
    return scores.astype(run.precision)
