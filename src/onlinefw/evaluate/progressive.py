"""How well a model predicts what comes next: each observation is predicted, then learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array
from .._validation import check_whole
from ..estimators import FrankWolfeClassifier, FrankWolfeMatrixCompletion
from ..estimators.pairs import are_ids, pairs_of

__all__ = ["Progress", "counts_before", "means_of_parts", "progressive"]


@dataclass(frozen=True)
class Progress:
    """Predictions made before learning, and what they were worth.

    Attributes
    ----------
    predicted, y : ndarray
        What was predicted for each observation, in the order in which they came, and what came.
    errors : ndarray
        The squared error of each; for a classifier, 1 where the label was wrong.
    times : ndarray
        When they came; 0, 1, 2, ... if that was not given.
    rows_before, columns_before : ndarray or None
        How often the row and the column of each had been seen before, for entries of a matrix.
    half_lives : ndarray or None
        The half-life in use when each was learned, infinite where nothing is forgotten, as far as
        ``history_`` tells; None for a model without ``half_life``.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.evaluate import progressive
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 3))
    >>> progress = progressive(ofw.FrankWolfeRegressor(radius=2.0), X, X[:, 0] - X[:, 1])
    >>> bool(progress.score(0.5) < 0.01), progress.windows(4)["n"]
    (True, array([100, 100, 100, 100]))
    """

    predicted: Array
    y: Array
    errors: Array
    times: Array
    rows_before: Array | None = None
    columns_before: Array | None = None
    half_lives: Array | None = None

    def score(self, since: float = 0.0, where: Any = None) -> float:
        """Return the mean error after a share of the observations, of all or of some (a mask).

        Observations of weight 0 have no prediction, and no error.
        """
        chosen = (np.arange(self.y.size) >= since * self.y.size) & ~np.isnan(self.errors)
        if where is not None:
            chosen &= np.asarray(where, bool)
        return float(self.errors[chosen].mean()) if chosen.any() else float("nan")

    def seen(self, side: str, least: int = 1, most: float = np.inf) -> Array:
        """Return which entries have a row (or a column) that had been seen least to most times."""
        before = {"rows": self.rows_before, "columns": self.columns_before}.get(side)
        if before is None:
            raise ValueError(f'side must be "rows" or "columns" of a matrix, got {side!r}')
        return (before >= least) & (before <= most)

    def windows(self, n: int = 20) -> dict[str, Array]:
        """Return the mean errors in n windows of equally many observations, as columns.

        They are ``until`` (the time of the last one), ``n``, ``error``; for a matrix also ``known``
        (row and column had been seen before) and ``new`` (one of them had not); for a model with a
        ``half_life``, ``half_life`` in use at the end of each.
        """
        parts = np.array_split(np.arange(self.y.size), min(check_whole("n", n), self.y.size))
        table = {
            "until": np.array([self.times[part[-1]] for part in parts]),
            "n": np.array([part.size for part in parts]),
            "error": means_of_parts(self.errors, parts),
        }
        if self.rows_before is not None:
            known = self.seen("rows") & self.seen("columns")
            table["known"] = means_of_parts(np.where(known, self.errors, np.nan), parts)
            table["new"] = means_of_parts(np.where(known, np.nan, self.errors), parts)
        if self.half_lives is not None:
            table["half_life"] = np.array([self.half_lives[part[-1]] for part in parts])
        return table


def progressive(
    model: Any, X: Any, y: Any, times: Any = None, *, batch_size: int = 1, sample_weight: Any = None
) -> Progress:
    """Let a model learn observations in the order of time, each predicted before it is learned.

    Parameters
    ----------
    model : estimator
        One of onlinefw's, new or fitted; it learns.
    X, y : array-like
        As for ``learn``.
    times : array-like, optional
        When each came: they are sorted by it, and those of one time keep their order.
    batch_size : int
        How many are learned at a time.
    sample_weight : array-like, optional
        How much each counts in learning; in scores all count alike.

    Returns
    -------
    Progress
        Predictions and scores.
    """
    y = np.asarray(y)
    if times is None:
        order, times = np.arange(len(y)), np.arange(len(y))
    else:
        times = np.asarray(times)
        if times.shape != (len(y),):
            raise ValueError(f"times must be one for each of {len(y)} values, got {times.shape}")
        order = np.argsort(times, kind="stable")
    matrix = isinstance(model, FrankWolfeMatrixCompletion)
    befores: tuple[Any, Any] = (None, None)
    if matrix and (are_ids(X) or getattr(model, "row_ids_", None) is not None):
        pairs = pairs_of(X)
        X = np.column_stack([side.ids.astype(object)[side.codes] for side in pairs])
        befores = counts_before(pairs.rows.codes[order]), counts_before(pairs.columns.codes[order])
    elif matrix:
        befores = counts_before(np.asarray(X)[order, 0]), counts_before(np.asarray(X)[order, 1])
    X, y, times = _taken(X, order), y[order], times[order]
    weights = None if sample_weight is None else np.asarray(sample_weight)[order]
    before = getattr(model, "n_rounds_", 0)  # not fitted: there is no such attribute
    predicted = model.learn(X, y, sample_weight=weights, batch_size=batch_size)
    labels = isinstance(model, FrankWolfeClassifier)
    wrong = predicted != y if labels else (predicted - y) ** 2
    lives = _half_lives(model, before, batch_size, np.isnan(np.asarray(wrong, float)))
    return Progress(predicted, y, np.asarray(wrong, float), times, *befores, lives)


def _half_lives(model: Any, before: int, size: int, left_out: Array) -> Array | None:
    """Return the half-life in use when each observation was learned, by the rounds noted."""
    if getattr(model, "half_life", None) is None:
        return None
    history = model.history_
    rounds = before + (np.cumsum(~left_out) - 1) // size + 1
    at = np.searchsorted(history["t"], rounds).clip(0, max(history["t"].size - 1, 0))
    return history["half_life"][at] if history["t"].size else np.full(rounds.size, np.inf)


def _taken(X: Any, order: Array) -> Any:
    return X[order] if hasattr(X, "tocsr") else np.asarray(X)[order]


def counts_before(index: Array) -> Array:
    """Return how often each number has occurred before."""
    order = np.argsort(index, kind="stable")
    starts = np.flatnonzero(np.diff(index[order], prepend=index[order[:1]] - 1))
    lengths = np.diff(np.append(starts, index.size))
    before = np.empty(index.size, np.int64)
    before[order] = np.arange(index.size) - np.repeat(starts, lengths)
    return before


def means_of_parts(values: Array, parts: list[Array]) -> Array:
    """Return the means of parts, nan left out; nan for those that have nothing else."""
    counts = np.array([np.count_nonzero(~np.isnan(values[part])) for part in parts])
    sums = np.array([np.nansum(values[part]) for part in parts])
    return np.divide(sums, counts, where=counts > 0, out=np.full(len(parts), np.nan))
