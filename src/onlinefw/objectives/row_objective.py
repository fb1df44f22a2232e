"""What the objectives of rows share: checked batches, places, and a past that others may share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from .._arrays import received, received_here
from .._batches import BatchHandle, naming
from .._devices import to_host
from .._typing import Array, State
from .._validation import check_alone, check_row_magnitude, check_rows, check_targets, check_weights
from .._whole import Broken
from ..losses import Loss
from .base import Objective, PickledByState, spectral_norm_squared
from .half_life import Clock

__all__ = ["RowObjective", "RowsBatch"]

#: What to do instead of passing weights for rows in files.
WEIGHTS = ", and name a column of weights: ParquetRows(..., weight=...)"


class RowsBatch(NamedTuple):
    """Checked rows, with targets for each of the objectives that learn from them."""

    X: Any
    targets: list[Array]
    w: Array
    #: <theta, x> of every row, a column for each objective, if that is known.
    Z: Array | None = None
    #: Whose each row is, if that is known.
    ids: Array | None = None


class Placed:
    """What says where the past of an objective is, and moves it."""

    _shared: Any

    @property
    def device(self) -> str:
        """Where the past is: "cpu" or "cuda", of this process or of the workers."""
        return self._shared.place.device

    @property
    def workers(self) -> int | None:
        """How many workers hold the past; None: this process does."""
        return self._shared.place.workers

    def use_place(self, device: str, workers: int | None, log_dir: Any = None) -> None:
        """Move the past to this many workers (None: into this process), on this device."""
        self._shared.use_place(device, workers, log_dir)

    def close(self) -> None:
        """Stop the workers, if there are any; otherwise they stop when the objective is deleted."""
        self._shared.past.close()


class RowObjective(PickledByState, Placed, Objective):
    """An objective of rows, alone or beside others on the same past.

    ``_shared`` is what they share: it has a ``past``, a ``place``, the ``total_weight`` of the
    rows, the number of objectives, ``n_models``, and a ``clock``, if they fade.
    """

    loss: Loss
    #: Whether the intercept stays as it is while rows come, until the next gradient.
    holds: bool = False
    _shared: Any
    _batch: Any

    def mark(self) -> tuple[Any, ...]:
        """Return what is another once data or theta have changed, for a round that fails."""
        iterate: Any = self._iterate
        theta, shared = iterate and iterate.theta, self._shared
        return self.n_observations, shared.seen_weight, shared.total_weight, theta

    def _agrees(self) -> bool:
        return self._shared.agrees()

    def break_off(self, error: BaseException) -> None:
        """Refuse everything from now on, since a round has failed half-way."""
        super().break_off(error)
        self._shared = Broken(error)

    # Batches --------------------------------------------------------------------------------------

    @property
    def total_weight(self) -> float:
        """The total weight of the rows in F_t."""
        return self._shared.total_weight

    @property
    def seen_weight(self) -> float:
        """The total weight of the rows that have come."""
        return self._shared.seen_weight

    @property
    def reach(self) -> float:
        """The weight that new rows are compared with: of all that the rows in F_t stand for."""
        return self._shared.reach

    @property
    def clock(self) -> Clock | None:
        """What new rows weigh; None if nothing is forgotten."""
        return self._shared.clock

    def go_on(self, half_life: float | None) -> None:
        """Let rows fade with another half-life from now on, all that share this past.

        None: nothing is forgotten any more. Rows that have a half-life only; what they weigh now
        stays as it is.
        """
        self._shared.go_on(half_life)

    def seen_with(self, w: Array) -> tuple[Array, int]:
        """Return the ``seen_weight`` after each of the next rows, of weights w, and the shift."""
        seen, clock = self._shared.seen_weight, self._shared.clock
        if clock is not None:
            clock, factor, w = clock.after(w)
            seen *= factor
        # One after another, as they are counted.
        return np.add.accumulate(np.append(seen, w))[1:], 0 if clock is None else clock.shift

    def _check_no_rows(self) -> None:
        if self.n_observations:
            raise ValueError("rows have been observed: call beside() before the first batch")

    def _check_alone(self, remedy: str) -> None:
        if self._shared.n_models > 1:
            raise ValueError(f"these rows are shared with other objectives: {remedy}")

    def check(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Return checked rows, or refuse them; nothing changes.

        X may be a batch of :class:`~onlinefw.distributed.ParquetRows`, without y.
        """
        self._check_alone("play their learners together (algorithms.side_by_side.SideBySide)")
        return self.check_together([self], X, [y], sample_weight)

    @staticmethod
    def check_together(
        objectives: Sequence[RowObjective],
        X: Any,
        targets: Sequence[Any],
        sample_weight: Any = None,
    ) -> Any:
        """Check rows for several objectives on one past, with a target for each."""
        first = objectives[0]
        device = first._shared.place.device
        if isinstance(X, BatchHandle):
            return _check_handle(objectives, X, targets, sample_weight)
        X = check_rows(received("X", X, device), first.shape)
        n, ys = X.shape[0], []
        for y, one in zip(targets, objectives, strict=True):
            ys.append(check_targets(received_here("y", y, device), n, one.loss))
        w = check_weights(received_here("sample_weight", sample_weight, device), n)
        for y in ys:
            check_row_magnitude(X, y, w)
        if first.shape is None:
            for one in objectives:
                one._agree_on(X.shape[1:])
        return RowsBatch(X, ys, w)

    @staticmethod
    @abstractmethod
    def products_together(objectives: Sequence[Any], X: Any) -> Array:
        """Return <theta, x> of checked rows, a column for each objective."""

    def add(self, batch: Any) -> float:
        """Add checked rows; return the weighted mean of their losses at the current iterate."""
        return self.add_together([self], batch)[0]

    @staticmethod
    @abstractmethod
    def add_together(objectives: Sequence[Any], batch: Any) -> list[float]:
        """Add a checked batch to the past of several objectives; return each one's mean loss."""

    @staticmethod
    @abstractmethod
    def keep_together(objectives: Sequence[Any]) -> None:
        """Let the past of these objectives forget all others that share it."""

    @staticmethod
    def make_gradients(objectives: Sequence[Any]) -> None:
        """Make the gradients of several objectives on one past in one read, where that helps."""

    @property
    @abstractmethod
    def intercept(self) -> float:
        """The intercept; 0 without one."""

    def hold(self) -> None:
        """Keep the intercept, the best one for the rows so far, from now on while rows come."""
        _ = self.intercept

    def _last_batch(self) -> tuple[Any, Array, Array]:
        """Return rows, targets and weights of the last batch, in this process's memory."""
        if self._batch is None:
            raise ValueError("there is no last batch yet (a state does not hold it): observe one")
        if isinstance(self._batch, BatchHandle):
            X, y, w = self._batch.open()
            X, (y,), w, *_ = self.check_together([self], X, [y], w)
        else:
            X, y, w = self._batch
        return to_host(X) if hasattr(X, "get") else X, y, w

    def batch_gradient(self) -> Array:
        """Return the gradient of the last batch's mean loss at the current iterate."""
        X, y, w = self._last_batch()
        z = X @ np.asarray(self.theta).reshape(-1) + self.intercept
        return (X.T @ (w * self.loss.derivative(z, y) / w.sum())).reshape(self.shape)

    def batch_smoothness(self) -> float:
        """Return the smoothness of the last batch's mean loss."""
        X, _, w = self._last_batch()
        return self.loss.smoothness * spectral_norm_squared(X, w)

    # State ----------------------------------------------------------------------------------------

    @abstractmethod
    def own_state(self) -> State:
        """Return what is this objective's own: all but the past."""

    @abstractmethod
    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described."""

    def past_state(self) -> State:
        """Return the past, which other objectives may share."""
        return self._shared.state_dict()

    def load_past(self, state: State) -> None:
        """Take over what ``past_state`` described."""
        self._shared.load_state(state)

    def state_dict(self) -> State:
        """Return the past and all else as plain arrays and JSON-able values."""
        self._check_alone("save them together (SideBySide.state_dict)")
        return {**self.own_state(), "past": self.past_state()}

    def load_state(self, state: State) -> Self:
        """Become what ``state_dict`` described."""
        self.load_own(state)
        self.load_past(state["past"])
        return self


def _check_handle(
    objectives: Sequence[RowObjective], handle: Any, targets: Sequence[Any], sample_weight: Any
) -> Any:
    """Open a batch of a file, or leave that to the workers that hold the rows."""
    first = objectives[0]
    with naming(handle):
        for y in targets:
            check_alone(y, sample_weight, WEIGHTS)
        if handle.holds != "rows":
            raise ValueError("rows of features are needed, in batches of ParquetRows")
        # Weights that fade are made here, so this process reads the rows.
        left = len(objectives) == 1 and first.half_life is None
        if left and getattr(first._shared.past, "opens_handles", False):
            first._agree_on(handle.shape[1:])
            return handle
        X, y, w = handle.open()
        return first.check_together(objectives, X, [y] * len(objectives), w)
