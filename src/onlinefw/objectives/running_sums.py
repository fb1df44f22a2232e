"""X'X of everything seen, kept once for all the models that learn from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._devices import namespace, to_host
from .._typing import Array, State
from ..past.place import Place, moved, new_gram
from .base import other_place

__all__ = ["ModelSums", "RunningSums", "products"]

#: Rows are centred (which makes them dense) about this many numbers at a time.
MOST_CENTRED = 2**22


class ModelSums(NamedTuple):
    """What one model sums up besides X'X; always replaced as a whole, in one assignment."""

    b: Array  # X'y
    H_theta: Array  # X'X theta
    yy: float  # the sum of w y^2
    mean_y: float  # 0 unless centred


class RunningSums:
    """X'X, the total weight and, if centred, the mean of all rows.

    With an intercept rows and targets are centred. When the means move, that is one more row: the
    old and the new mean differ by delta, and the sums gain weight * delta delta'.
    """

    def __init__(self, n: int, centred: bool, place: Place | None = None) -> None:
        self.centred, self.n_models = centred, 0
        self.place = Place() if place is None else place
        self.past = new_gram(self.place, n)
        self.mean = np.zeros(n)  # of the rows; 0 unless centred
        self.total_weight = 0.0
        self.n_added = 0

    def add(
        self, X: Any, targets: Sequence[Array], w: Array, thetas: Array, models: list[ModelSums]
    ) -> list[ModelSums]:
        """Add rows that ``past.bring`` has brought; return the new sums of every model.

        Each has targets, a column of ``thetas``, and its sums so far.
        """
        size = max(1, MOST_CENTRED // self.mean.size) if self.centred else X.shape[0]
        if size >= X.shape[0]:
            return self._add(X, targets, w, thetas, models)
        for start in range(0, X.shape[0], size):
            part = slice(start, start + size)
            if w[part].any():
                some = [y[part] for y in targets]
                models = self._add(X[part], some, w[part], thetas, models)
        return models

    def _add(
        self, X: Any, targets: Sequence[Array], w: Array, thetas: Array, models: list[ModelSums]
    ) -> list[ModelSums]:
        total = float(w.sum())
        seen, new, mean = self.total_weight, self.total_weight + total, self.mean
        rows, weights = X, w
        if self.centred:
            batch_mean = _sums(X, w) / total
            delta = batch_mean - mean
            rows = _centred(X, batch_mean, delta)
            weights = np.concatenate((w, (seen * total / new,)))
            mean = mean + total / new * delta
        added = []
        # Model by model: each one's sums are then the same as if it were alone.
        for k, (model, y) in enumerate(zip(models, targets, strict=True)):
            mean_y = model.mean_y
            if self.centred:
                batch_y = float(w @ y) / total
                y, mean_y = (
                    np.concatenate((y - batch_y, (batch_y - mean_y,))),
                    mean_y + total / new * (batch_y - mean_y),
                )
            b, predicted = _sums(rows, weights * y), products(rows, thetas[:, k])
            H_theta = model.H_theta + _sums(rows, weights * predicted)
            added.append(ModelSums(model.b + b, H_theta, model.yy + float(weights @ y**2), mean_y))
        self.past.add(rows, weights)
        self.mean, self.total_weight, self.n_added = mean, new, self.past.n_added
        return added

    def agrees(self) -> bool:
        """Whether the past has the rows that were counted, and no more."""
        return self.past.n_added == self.n_added

    def use_place(self, device: Any, workers: Any, log_dir: Any = None) -> None:
        """Move X'X to another place, or leave everything as it was."""
        place = other_place(self.place, device, workers, log_dir)
        if place is not None:
            self.past, self.place = moved(self.past, new_gram(place, self.mean.size)), place
            self.n_added = self.past.n_added

    def state_dict(self) -> State:
        """Return X'X, mean and weight."""
        return {
            "centred": self.centred,
            "mean": self.mean.copy(),
            "total_weight": self.total_weight,
            "past": self.past.state_dict(),
        }

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        mean = np.array(state["mean"], float)
        if mean.shape != self.mean.shape or bool(state["centred"]) != self.centred:
            raise ValueError("the sums of the state are of other rows: their means do not fit")
        self.past.load_state(state["past"])
        self.mean, self.total_weight = mean, float(state["total_weight"])


def products(X: Any, vectors: Array) -> Array:
    """Return X V as a numpy array."""
    xp = namespace(X)
    return np.asarray(X @ vectors) if xp is np else to_host(X @ xp.asarray(vectors))


def _sums(X: Any, vectors: Array) -> Array:
    """Return X' R as a numpy array."""
    xp = namespace(X)
    return np.asarray(X.T @ vectors) if xp is np else to_host(X.T @ xp.asarray(vectors))


def _centred(X: Any, mean: Array, last: Array) -> Any:
    """Return the rows of X less a mean, with one more row at the end."""
    xp = namespace(X)
    X = X.toarray() if sparse.issparse(X) else X
    return xp.concatenate((X - xp.asarray(mean), xp.asarray(last)[None]))
