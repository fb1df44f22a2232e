"""Scores of predictions as they come: every row is predicted before it is learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["ErrorRate", "RankScore", "SquaredError"]


class SquaredError:
    """The mean squared error so far, and the share of the variance that it leaves unexplained."""

    name = "mse"

    def __init__(self) -> None:
        self.n = 0
        self._error = self._mean = self._spread = 0.0

    def add(self, y: Any, predicted: Any) -> None:
        """Count rows: their targets, and what was predicted before."""
        y, predicted = np.asarray(y, dtype=float), np.asarray(predicted, dtype=float)
        if not y.size:
            return
        self._error += float(np.sum(np.square(y - predicted)))
        # Chan's update of mean and spread: no sum of squares that could cancel.
        mean, n = float(y.mean()), self.n + y.size
        self._spread += float(np.sum(np.square(y - mean)))
        self._spread += (mean - self._mean) ** 2 * self.n * y.size / n
        self._mean += (mean - self._mean) * y.size / n
        self.n = n

    @property
    def value(self) -> float:
        """The mean squared error; nan while there are no rows."""
        return self._error / self.n if self.n else float("nan")

    def state_dict(self) -> dict[str, Any]:
        """Return the sums."""
        return {"n": self.n, "error": self._error, "mean": self._mean, "spread": self._spread}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with these sums."""
        self.n, self._error = int(state["n"]), float(state["error"])
        self._mean, self._spread = float(state["mean"]), float(state["spread"])

    def summary(self) -> dict[str, Any]:
        """Return the number of rows and the scores, as JSON-able values."""
        r2 = 1.0 - self._error / self._spread if self._spread > 0.0 else None
        mse = self.value if self.n else None
        rmse = None if mse is None else mse**0.5
        return {"rows": self.n, "mse": mse, "rmse": rmse, "r2": r2}


class ErrorRate:
    """The share of wrong labels so far, beside that of always guessing the commonest.

    Examples
    --------
    >>> from onlinefw.fitting.scores import ErrorRate
    >>> score = ErrorRate()
    >>> score.add(["ham", "ham", "spam", "ham"], ["ham", "spam", "spam", "ham"])
    >>> score.summary()
    {'rows': 4, 'error': 0.25, 'error of the commonest label': 0.25}
    """

    name = "error"

    def __init__(self) -> None:
        self.n = self._wrong = 0
        self._counts: dict[Any, int] = {}

    def add(self, y: Any, predicted: Array) -> None:
        """Count rows: their targets, and what was predicted before."""
        y = np.asarray(y)
        self.n += y.size
        self._wrong += int(np.count_nonzero(y != np.asarray(predicted)))
        labels, counts = np.unique(y, return_counts=True)
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            self._counts[label] = self._counts.get(label, 0) + count

    @property
    def value(self) -> float:
        """The share of wrong labels; nan while there are no rows."""
        return self._wrong / self.n if self.n else float("nan")

    def state_dict(self) -> dict[str, Any]:
        """Return the counts."""
        labels = [[label, n] for label, n in self._counts.items()]
        return {"n": self.n, "wrong": self._wrong, "labels": labels}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with these counts."""
        self.n, self._wrong = int(state["n"]), int(state["wrong"])
        self._counts = {label: int(n) for label, n in state["labels"]}

    def summary(self) -> dict[str, Any]:
        """Return the number of rows and the scores, as JSON-able values."""
        if not self.n:
            return {"rows": 0, "error": None, "error of the commonest label": None}
        rest = 1.0 - max(self._counts.values()) / self.n
        return {"rows": self.n, "error": self.value, "error of the commonest label": rest}


class RankScore:
    """How high the items of events were ranked before they were learned.

    An item that the user had had, or that nobody had, is not ranked and not counted.

    Examples
    --------
    >>> from onlinefw.fitting.scores import RankScore
    >>> score = RankScore()
    >>> score.add(None, [1.0, 3.0, 40.0, float("nan")])
    >>> score.summary()["rows"], round(score.value, 3)
    (3, 0.667)
    """

    name, top = "recall", 10

    def __init__(self) -> None:
        self.n = self._hits = 0
        self._gain = self._reciprocal = 0.0

    def add(self, y: Any, ranks: Any) -> None:
        """Count events by their ranks, 1 the best; nan for one that was not ranked."""
        ranks = np.asarray(ranks, dtype=float)
        self.n += int(np.count_nonzero(~np.isnan(ranks)))
        hits = ranks[ranks <= self.top]
        self._hits += hits.size
        self._gain += float(np.sum(1.0 / np.log2(1.0 + hits)))
        self._reciprocal += float(np.sum(1.0 / hits))

    @property
    def value(self) -> float:
        """The share of events whose item was among the best ten; nan while there are none."""
        return self._hits / self.n if self.n else float("nan")

    def state_dict(self) -> dict[str, Any]:
        """Return the sums."""
        sums = {"gain": self._gain, "reciprocal": self._reciprocal}
        return {"n": self.n, "hits": self._hits, **sums}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with these sums."""
        self.n, self._hits = int(state["n"]), int(state["hits"])
        self._gain, self._reciprocal = float(state["gain"]), float(state["reciprocal"])

    def summary(self) -> dict[str, Any]:
        """Return the number of events and the scores, as JSON-able values."""
        sums = {"recall": self._hits, "ndcg": self._gain, "mrr": self._reciprocal}
        scores = {name: sum_ / self.n if self.n else None for name, sum_ in sums.items()}
        return {"rows": self.n, **scores, "at": self.top}
