"""Entries and their values that users pass in: checked once, and quickly where they are plain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._batches import BatchHandle
from .._typing import Array
from .._validation import (
    TOO_LARGE_FOR_FLOAT32,
    check_growth,
    check_magnitude,
    check_pairs,
    check_precision,
    check_targets,
    check_weights,
    check_whole,
)
from ..readers.rounds import FileRounds
from .completion_parts import given_shape
from .completion_run import CompletionRun
from .ids import Ids
from .pairs import SIDES, Pairs, are_ids, pairs_of, refuse_ids
from .stream import Batch

if TYPE_CHECKING:
    from .matrix_completion import FrankWolfeMatrixCompletion

__all__ = ["checked_entries", "checked_events", "for_each"]


def checked_entries(
    model: FrankWolfeMatrixCompletion,
    run: CompletionRun | None,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Batch:
    """Return checked observations as a batch, or refuse them; nothing changes.

    ``run`` is None before the first ones. If X holds ids, the batch has their numbers. Observations
    of weight 0 are left out.
    """
    ids = None if run is None else run.ids
    if run is not None and sample_weight is None:
        plain = X if ids is None else _few(run, ids, X)
        if _are_plain(run, plain, y):
            return Batch(plain, y)
    if isinstance(X, (BatchHandle, FileRounds)):
        raise ValueError(f"{X}: ratings are needed, ParquetRatings")
    if y is None:
        raise ValueError("y is missing: pass the observed value of each entry")
    if ids is not None or (run is None and are_ids(X)):
        return _numbered(model, run, pairs_of(X), y, sample_weight)
    refuse_ids(X)
    pairs, needed = check_pairs(X)
    batch = _with_values(model, run, pairs, y, sample_weight)
    check_growth(needed, _largest_shape(model, run))
    # A batch may have no weight at all.
    return batch if batch.w is None or batch.w.all() else batch.part(batch.w > 0.0)


def _few(run: CompletionRun, ids: Ids, X: Any) -> Array | None:
    with run.turns:
        return ids.few(X)


def _are_plain(run: CompletionRun, X: Any, y: Any) -> bool:
    """Whether indices and values need no conversion, and are in the matrix as it is."""
    if type(X) is not np.ndarray or X.dtype != np.int64 or X.ndim != 2 or X.shape[1] != 2:
        return False
    if type(y) is not np.ndarray or y.dtype != float or y.shape != (X.shape[0],) or not y.size:
        return False
    rows, columns = run.matrix.shape
    high = X.max(axis=0)
    if X.min() < 0 or high[0] >= rows or high[1] >= columns:
        return False
    if not np.abs(y).max() <= TOO_LARGE_FOR_FLOAT32:  # NaN compares as False
        return False
    run.loss.check_targets(y)
    return True


def _with_values(
    model: FrankWolfeMatrixCompletion,
    run: CompletionRun | None,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Batch:
    """Return a batch with values and weights that are checked."""

    def factors() -> bool:
        parts = model._parts() if run is None else run.parts
        return parts.factors

    y = check_targets(y, len(X), model._loss())
    w = None if sample_weight is None else check_weights(sample_weight, len(X))
    check_magnitude(y, w, check_precision(model.dtype), factors)
    return Batch(X, y, w)


def _largest_shape(model: FrankWolfeMatrixCompletion, run: CompletionRun | None) -> tuple[int, int]:
    """Return how many rows and columns there may be."""
    known = given_shape(model) if run is None else run.matrix.shape
    most = check_whole("max_rows", model.max_rows), check_whole("max_columns", model.max_columns)
    return max(most[0], known[0]), max(most[1], known[1])


def checked_events(model: Any, run: CompletionRun | None, X: Any, sample_weight: Any) -> Batch:
    """Return checked pairs of ids as a batch, whose values are all 1, or refuse them."""
    if isinstance(X, (BatchHandle, FileRounds)):
        raise ValueError(f"{X}: pairs of ids are needed, as an array, a list or a frame")
    if run is not None and run.ids is not None and sample_weight is None:
        few = _few(run, run.ids, X)
        if few is not None:
            return Batch(few, np.ones(len(few)))
    pairs = pairs_of(X, model._sides)
    return _numbered(model, run, pairs, np.ones(pairs.n), sample_weight, model._sides)


def _numbered(
    model: Any,
    run: CompletionRun | None,
    pairs: Pairs,
    y: Any,
    sample_weight: Any,
    sides: tuple[str, str] = SIDES,
) -> Batch:
    """Return a batch of ids; those that the model does not know yet are in its ``fresh``."""
    # Positions in X stand for the pairs until these have numbers.
    batch = _with_values(model, run, np.arange(pairs.n), y, sample_weight)
    if batch.w is not None and not batch.w.all():
        batch = batch.part(batch.w > 0.0)
        pairs = pairs.part(batch.X)
    if run is None or run.ids is None:
        numbers, fresh = Ids.like(pairs).number(pairs, sides)
        has_fresh = True
    else:
        with run.turns:
            numbers, fresh = run.ids.number(pairs, sides)
        has_fresh = any(side.ids.size for side in fresh)
    needed = int(numbers[:, 0].max()) + 1, int(numbers[:, 1].max()) + 1
    check_growth(needed, _largest_shape(model, run), "ids")
    return batch._replace(X=numbers, fresh=fresh if has_fresh else None)


def for_each(found: Array, sample_weight: Any) -> Array:
    """Return an answer for each observation, where those without weight have been left out."""
    if sample_weight is None:
        return found
    weighed = np.asarray(sample_weight, float).reshape(-1) > 0.0
    if weighed.all():
        return found
    out = np.full(weighed.size, np.nan)
    out[weighed] = found
    return out
