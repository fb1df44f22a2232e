"""Rows that a summary learns one at a time, in compiled loops."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np

from .._typing import Array
from ..algorithms import Round, SummaryFrankWolfe
from ..algorithms.rounds import pieces
from ..objectives.row_objective import RowsBatch
from .linear_run import LinearRun
from .stream import Batch

__all__ = ["event_pieces", "learn_events", "takes_events"]


def takes_events(run: Any) -> bool:
    """Whether single rows are learned in compiled loops: alone, and not before the first row."""
    started = run is not None and run.can_learn and run.race is None and run.n_observations > 0
    return started and all(isinstance(one, SummaryFrankWolfe) for one in run.learners)


def event_pieces(run: LinearRun, n: int) -> Iterator[slice]:
    """Cut n rows into pieces that take little time, and end where coefficients are noted."""
    for piece in pieces(n):
        start = piece.start
        while start < piece.stop:
            stop = piece.stop
            if run.path.size:
                due = ceil(run.path.due) - run.n_rounds
                stop = min(stop, start + max(due, 1))
            yield slice(start, stop)
            start = stop


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
