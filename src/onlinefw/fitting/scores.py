"""Scores of predictions as they come: every row is predicted before it is learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["ErrorRate", "SquaredError"]


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
        return {"rows": self.n, "mse": self.value if self.n else None, "r2": r2}


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
