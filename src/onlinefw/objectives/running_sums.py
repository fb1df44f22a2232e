"""X'X of everything seen, kept once for all the models that learn from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._devices import namespace, to_host
from .._growing import GrowingArray
from .._typing import Array, State
from ..iterates import DenseIterate
from ..past.place import Place, moved, new_gram
from .base import other_place
from .half_life import clock_from_state, new_clock

__all__ = ["ModelSums", "RunningSums", "products"]

#: Rows are centred (which makes them dense) about this many numbers at a time.
MOST_CENTRED = 2**22
#: Rows that wait are added so many at a time: adding one alone reads all of X'X.
BLOCK = 64


class ModelSums(NamedTuple):
    """What one model sums up besides X'X; always replaced as a whole, in one assignment."""

    b: Array  # X'y
    H_theta: Array  # X'X theta
    yy: float  # the sum of w y^2
    mean_y: float  # 0 unless centred


class Sums(NamedTuple):
    """All sums but X'X, which go together."""

    weight: float  # of the rows
    mean: Array  # of the rows; 0 unless centred
    models: list[ModelSums]


class Waiting(NamedTuple):
    """Rows that have come and are not in the sums yet; a new one replaces the old."""

    X: GrowingArray
    Y: GrowingArray  # a target for each model
    w: GrowingArray


class RunningSums:
    """X'X, the total weight and, if centred, the mean of all rows; and the sums of every model.

    With an intercept rows and targets are centred. When the means move, that is one more row: the
    old and the new mean differ by delta, and the sums gain weight * delta delta'.

    Rows may wait. They are then added in blocks of a fixed number, and all of them before theta
    moves, so the sums do not depend on how many came at a time.

    With a half-life new rows get growing weights (:class:`~.half_life.Clock`); ``seen_weight`` is
    the sum of such weights, as all others.
    """

    def __init__(
        self, n: int, centred: bool, place: Place | None = None, half_life: Any = None
    ) -> None:
        self.centred, self.clock = centred, new_clock(half_life)
        self.place = Place() if place is None else place
        self.past = new_gram(self.place, n)
        #: Whose sums are kept, one for each model.
        self.iterates: list[DenseIterate] = []
        self.seen_weight = 0.0
        self.n_added = 0
        self.sums = Sums(0.0, np.zeros(n), [])
        #: Rows that are not in the sums yet; None if none ever waited.
        self.waiting: Waiting | None = None
        self._current: Sums | None = None  # the sums with the rows that wait, if they are known

    @property
    def n_models(self) -> int:
        """How many models learn from the rows."""
        return len(self.iterates)

    @property
    def total_weight(self) -> float:
        """The weight of all rows, those that wait too."""
        return self.seen_weight

    @property
    def reach(self) -> float:
        """The weight that new rows are compared with."""
        return self.seen_weight

    def add_model(self, iterate: DenseIterate) -> int:
        """Let one more model learn from the rows, before the first have come."""
        n = self.sums.mean.size
        self.iterates.append(iterate)
        self.sums.models.append(ModelSums(np.zeros(n), np.zeros(n), 0.0, 0.0))
        return len(self.iterates) - 1

    def keep_models(self, models: list[int]) -> None:
        """Keep some of the models, which get new numbers in this order."""
        self.iterates = [self.iterates[m] for m in models]
        self.sums = self.sums._replace(models=[self.sums.models[m] for m in models])
        self._current = None
        if self.waiting is not None:
            Y = GrowingArray.holding(self.waiting.Y.data[:, models])
            self.waiting = self.waiting._replace(Y=Y)

    # Rows -----------------------------------------------------------------------------------------

    def add(self, X: Any, targets: Sequence[Array], w: Array, *, wait: bool) -> None:
        """Add rows that ``past.bring`` has brought, with targets of all models; or let them wait.

        On a GPU or with workers they do not wait.
        """
        clock = self.clock
        if clock is not None:
            clock, factor, w = clock.after(w)
            if factor != 1.0:
                self._rescale(factor)
        # The weight seen tells of a round that fails half-way, so it changes with the first rows.
        seen = np.add.accumulate(np.append(self.seen_weight, w))[1:]
        if wait and self.place == Place():
            self._wait(X, targets, w, float(seen[-1]))
        else:
            if self.waiting is not None:
                self.fold()
            self._add(X, targets, w, seen)
        self.clock = clock

    def go_on(self, half_life: float | None) -> None:
        """Let rows fade with another half-life from now on; weights stay as they are."""
        assert self.clock is not None
        self.clock = self.clock.going_on(half_life)

    def _rescale(self, factor: float) -> None:
        """Multiply all that is weighted by a power of two."""
        weight, mean, models = self.sums
        scaled = []
        for one in models:
            b, H_theta, yy = one.b * factor, one.H_theta * factor, one.yy * factor
            scaled.append(one._replace(b=b, H_theta=H_theta, yy=yy))
        waiting = self.waiting
        if waiting is not None:
            waiting = waiting._replace(w=GrowingArray.holding(waiting.w.data * factor))
        self.past.rescale(factor)
        self.sums, self.waiting, self._current = Sums(weight * factor, mean, scaled), waiting, None
        self.seen_weight, self.n_added = self.seen_weight * factor, self.past.n_added

    def _wait(self, X: Any, targets: Sequence[Array], w: Array, seen: float) -> None:
        waiting = self.waiting
        if waiting is None:
            n, models = self.sums.mean.size, len(targets)
            waiting = Waiting(GrowingArray((n,)), GrowingArray((models,)), GrowingArray())
        rows = X.toarray() if sparse.issparse(X) else X
        columns = rows, np.column_stack(targets), w
        waiting = Waiting(*(one.extended(new) for one, new in zip(waiting, columns, strict=True)))
        self._current = None
        self.waiting, self.seen_weight = waiting, seen
        while len(self.waiting.w) >= BLOCK:
            self._fold(BLOCK)

    def fold(self) -> None:
        """Add the rows that wait."""
        if self.waiting is not None and len(self.waiting.w):
            self._fold(len(self.waiting.w))

    def _fold(self, n: int) -> None:
        """Add the first n rows that wait."""
        assert self.waiting is not None
        X, Y, w = (one.data for one in self.waiting)
        left = Waiting(*(GrowingArray.holding(one[n:].copy()) for one in (X, Y, w)))
        self._add(X[:n], list(np.ascontiguousarray(Y[:n].T)), w[:n])
        self.waiting = left

    @property
    def current(self) -> Sums:
        """The sums of all rows, with those that wait, which go on waiting."""
        if self.waiting is None or not len(self.waiting.w):
            return self.sums
        if self._current is None:
            X, Y, w = (one.data for one in self.waiting)
            self._current = self._with(X, list(np.ascontiguousarray(Y.T)), w)[2]
        return self._current

    def replace(self, m: int, **changes: Any) -> None:
        """Change the sums of one model, with its iterate; no rows wait."""
        models = list(self.sums.models)
        models[m] = models[m]._replace(**changes)
        self.sums = self.sums._replace(models=models)

    def _add(self, X: Any, targets: Sequence[Array], w: Array, seen: Array | None = None) -> None:
        """Add rows to the sums; ``seen`` is the weight seen after each, if they are new."""
        size = max(1, MOST_CENTRED // self.sums.mean.size) if self.centred else X.shape[0]
        for start in range(0, X.shape[0], size):
            part = slice(start, start + size)
            if w[part].any():
                rows, weights, sums = self._with(X[part], [y[part] for y in targets], w[part])
                self._current = None
                self.past.add(rows, weights)
                self.sums, self.n_added = sums, self.past.n_added
                if seen is not None:
                    self.seen_weight = float(seen[part][-1])

    def _with(self, X: Any, targets: Sequence[Array], w: Array) -> tuple[Any, Array, Sums]:
        """Return the sums with more rows, and what is to be added to X'X: rows and weights."""
        total = float(w.sum())
        seen, mean, models = self.sums
        new = seen + total
        rows, weights = X, w
        if self.centred:
            batch_mean = _sums(X, w) / total
            delta = batch_mean - mean
            rows = _centred(X, batch_mean, delta)
            weights = np.concatenate((w, (seen * total / new,)))
            mean = mean + total / new * delta
        added = []
        # Model by model: each one's sums are then the same as if it were alone.
        for iterate, model, y in zip(self.iterates, models, targets, strict=True):
            mean_y = model.mean_y
            if self.centred:
                batch_y = float(w @ y) / total
                y, mean_y = (
                    np.concatenate((y - batch_y, (batch_y - mean_y,))),
                    mean_y + total / new * (batch_y - mean_y),
                )
            b, predicted = _sums(rows, weights * y), products(rows, iterate.theta)
            H_theta = model.H_theta + _sums(rows, weights * predicted)
            added.append(ModelSums(model.b + b, H_theta, model.yy + float(weights @ y**2), mean_y))
        return rows, weights, Sums(new, mean, added)

    def agrees(self) -> bool:
        """Whether the past has the rows that were counted, and no more."""
        return self.past.n_added == self.n_added

    # Places and states ----------------------------------------------------------------------------

    def use_place(self, device: Any, workers: Any, log_dir: Any = None) -> None:
        """Move X'X to another place, or leave everything as it was."""
        place = other_place(self.place, device, workers, log_dir)
        if place is not None:
            self.fold()
            self.past, self.place = moved(self.past, new_gram(place, self.sums.mean.size)), place
            self.n_added = self.past.n_added

    def state_dict(self) -> State:
        """Return X'X, mean, weight and the rows that wait; models save their own sums."""
        waiting = None
        if self.waiting is not None:
            names = zip(("X", "Y", "w"), self.waiting, strict=True)
            waiting = {name: one.data.copy() for name, one in names}
        return {
            "centred": self.centred,
            "mean": self.sums.mean.copy(),
            "total_weight": self.sums.weight,
            "seen_weight": self.seen_weight,
            "waiting": waiting,
            "clock": None if self.clock is None else self.clock.state_dict(),
            "past": self.past.state_dict(),
        }

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described; the models have been loaded."""
        mean = np.array(state["mean"], float)
        if mean.shape != self.sums.mean.shape or bool(state["centred"]) != self.centred:
            raise ValueError("the sums of the state are of other rows: their means do not fit")
        weight, waiting = float(state["total_weight"]), state.get("waiting")
        if waiting is not None:
            waiting = self._checked(waiting)
        clock = clock_from_state(state.get("clock"))
        self.past.load_state(state["past"])
        self.sums = self.sums._replace(weight=weight, mean=mean)
        self.seen_weight = float(state.get("seen_weight", weight))
        self.waiting, self._current, self.clock = waiting, None, clock
        self.n_added = self.past.n_added

    def _checked(self, state: State) -> Waiting:
        X, Y, w = (np.array(state[name], float) for name in ("X", "Y", "w"))
        n, models = self.sums.mean.size, self.n_models
        fit = w.ndim == 1 and X.shape == (w.size, n) and Y.shape == (w.size, models)
        if not fit or not all(np.isfinite(one).all() for one in (X, Y, w)) or (w < 0.0).any():
            raise ValueError("the rows that wait in the state do not fit its sums")
        return Waiting(*(GrowingArray.holding(one) for one in (X, Y, w)))


def products(X: Any, vectors: Array) -> Array:
    """Return X V as a numpy array."""
    if type(X) is np.ndarray:
        return X @ vectors
    xp = namespace(X)
    return np.asarray(X @ vectors) if xp is np else to_host(X @ xp.asarray(vectors))


def _sums(X: Any, vectors: Array) -> Array:
    """Return X' R as a numpy array."""
    if type(X) is np.ndarray:
        return X.T @ vectors
    xp = namespace(X)
    return np.asarray(X.T @ vectors) if xp is np else to_host(X.T @ xp.asarray(vectors))


def _centred(X: Any, mean: Array, last: Array) -> Any:
    """Return the rows of X less a mean, with one more row at the end."""
    xp = namespace(X)
    X = X.toarray() if sparse.issparse(X) else X
    return xp.concatenate((X - xp.asarray(mean), xp.asarray(last)[None]))
