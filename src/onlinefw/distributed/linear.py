"""The mean loss of a linear model over rows that are spread over workers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._state import describe
from .._typing import Array, State
from ..atoms import Atom
from ..linalg import top_singular_pair
from ..objectives.base import Line
from ..objectives.host_predictions import HostPredictions
from ..objectives.intercept import best_intercept
from ..objectives.linear import LinearObjective
from .elsewhere import Elsewhere
from .entries_line import Parabola
from .parquet_rows import ParquetRowsBatch
from .row_store import ShardedRowStore
from .rows_in_files import checked_rows

__all__ = ["ShardedLinearObjective"]


class ShardedLinearObjective(LinearObjective, Elsewhere):
    """A :class:`~onlinefw.objectives.LinearObjective` that asks workers about its rows.

    Each worker holds an objective of its own rows, and returns sums. ``LinearObjective(...,
    workers=N)`` makes one of these.
    """

    home_class = LinearObjective
    _store: ShardedRowStore
    _batch: Any  # as there, or where the last batch is

    def _new_carried(self) -> HostPredictions:
        return HostPredictions(self._store, self.loss)  # of no rows: workers carry those of theirs

    @property
    def _number(self) -> int:
        return next(k for k, lane in enumerate(self._store.lanes) if lane is self)

    @property
    def n_kept(self) -> int:
        """How many rows count."""
        return self._store.n_kept

    def _ask(self, method: str, *args: Any) -> list[Any]:
        return self._store.ask(method, self._number, *args)

    def _tell(self, method: str, *args: Any) -> None:
        self._store.tell(method, self._number, *args)

    def _receive(self, X: Any, z: Array, y: Array, w: Array) -> None:
        if self.shape is None:
            self._set_shape(X.shape[1:])
        self.n_observations += X.shape[0]
        self._batch = (X, y, w)
        self._forget_derived()

    def _receive_file(self, batch: Any) -> None:
        """Take note of rows that a worker has read."""
        if self.shape is None:
            self._set_shape(batch.shape[1:])
        self.n_observations += batch.shape[0]
        self._batch = ParquetRowsBatch(*batch.place)
        self._forget_derived()

    def _last_batch(self) -> tuple[Any, Array, Array] | None:
        if isinstance(self._batch, ParquetRowsBatch):
            self._batch = checked_rows(self._batch.place, self.shape, self.loss)
        return super()._last_batch()

    # Sums -----------------------------------------------------------------------------------------

    def _best_intercept(self) -> float:
        return best_intercept(self.loss, SplitSums(self), self._b)

    def _steepest(self) -> float:
        return max(self._ask("steepest", self.intercept))

    def value(self) -> float:
        """Return F_t at the current iterate, from the carried predictions."""
        self._needs_data()
        return float(sum(self._ask("value", self.intercept)) / self.total_weight)

    def predictions(self) -> Array:
        """Return the carried predictions of all rows kept, in order, without intercept."""
        z, _ = self._store.home_lane(self._number)
        return z[self._store.home_weights() > 0.0]

    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta), with the intercept as it is."""
        self._needs_data()
        b = self.intercept
        parts = self._ask("line", atom, b)
        self._store.lines[self._number] = (atom, b)
        if self.loss.quadratic:
            return Parabola(*(sum(p) / self.total_weight for p in zip(*parts, strict=True)))
        return SplitLine(self)

    def _second_order(self, chosen: Array) -> tuple[Array, Array, float]:
        sums = self._ask("second_order", chosen, self.intercept)
        hessian, cross, bend = (sum(parts) / self.total_weight for parts in zip(*sums, strict=True))
        return hessian, cross, float(bend)

    def _trial(self, chosen: Array, change: Array) -> Any:
        self._tell("trial", chosen, change)
        self._store.trials[self._number] = (chosen, change)
        return SplitTrial(self)

    def smoothness(self) -> float:
        """Return loss.smoothness times the largest eigenvalue of X' diag(w) X / sum(w)."""
        self._needs_data()
        size = int(np.prod(self.shape or ()))

        def product(v: Array) -> Array:
            return sum(self._store.ask("gram_product", v.reshape(-1))) / self.total_weight

        gram = LinearOperator((size, size), matvec=product, rmatvec=product, dtype=float)
        return self.loss.smoothness * top_singular_pair(gram, tol=1e-6)[1]

    # Moves ----------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and every past prediction with it."""
        line = self._store.lines.pop(self._number, None)
        self._tell("move", None if line is not None and line[0] is atom else atom, step)
        self.iterate.move(atom, step)
        self._moved()

    def _refresh(self) -> None:
        self._forget_derived()
        self._tell("place", np.asarray(self.theta))

    # State ----------------------------------------------------------------------------------------

    def home_state(self) -> dict[str, Any]:
        """Return the attributes of the same objective in one process."""
        z, y = self._store.home_lane(self._number)
        carried = HostPredictions(self._store, self.loss)
        carried.append(z, y)
        try:
            batch = self._last_batch()
        except ValueError:  # a file that is gone: all else is with the workers
            batch = None
        brought = {"_carried": carried, "_image": None, "_batch": batch}
        return {**self.__dict__, "_device": "cpu", **brought}

    def state_dict(self) -> State:
        """Return what an objective in one process would; from the log, if need be."""
        if len(self._store.lanes) > 1:
            raise ValueError("these rows are shared with other objectives: pickle them together")
        z, y = self._store.home_lane(self._number)
        return {
            **self._base_state(),
            "objective": "LinearObjective",
            "loss": describe(self.loss),
            "fit_intercept": self.fit_intercept,
            "intercept": self._b,
            "intercept_due": self._b_due,
            "store": self._store.state_dict(),
            "z": z,
            "y": y,
            "moves": self._moves,
            "pending": None,
        }


class SplitSums:
    """What an intercept needs to know, from all shards."""

    def __init__(self, objective: ShardedLinearObjective) -> None:
        self._objective = objective

    @property
    def weight(self) -> float:
        """The total weight."""
        return self._objective.total_weight

    def sums(self, b: float) -> tuple[float, float]:
        """Return the sums of slopes and curvatures."""
        slope, bend = map(sum, zip(*self._objective._ask("intercept_sums", b), strict=True))
        return slope, bend

    def value(self, b: float) -> float:
        """Return the sum of losses."""
        return float(sum(self._objective._ask("intercept_value", b)))

    def limits(self) -> tuple[float, float]:
        """Return between which intercepts some row is undecided."""
        low, high = zip(*self._objective._ask("intercept_limits"), strict=True)
        return min(low), max(high)

    def residuals(self) -> tuple[Array, Array]:
        """Return y - z and w of all rows."""
        values, w = zip(*self._objective._ask("residuals"), strict=True)
        return np.concatenate(values), np.concatenate(w)


class SplitLine:
    """F along a line; each evaluation asks all shards."""

    curvature = None

    def __init__(self, objective: ShardedLinearObjective) -> None:
        self._objective = objective

    def value(self, c: float) -> float:
        """Return F at c."""
        return self._mean("line_value", c)

    def slope(self, c: float) -> float:
        """Return dF/dc at c."""
        return self._mean("line_slope", c)

    def _mean(self, method: str, c: float) -> float:
        return float(sum(self._objective._ask(method, float(c))) / self._objective.total_weight)


class SplitTrial:
    """A change of theta whose image the workers know."""

    def __init__(self, objective: ShardedLinearObjective) -> None:
        self._objective = objective

    def value(self, part: float, b: float) -> float:
        """Return F after a part of the change."""
        one = self._objective
        return float(sum(one._ask("trial_value", part, b)) / one.total_weight)

    def move(self, part: float) -> None:
        """Let predictions follow; theta is up to the caller."""
        one = self._objective
        one._tell("trial_move", part, *one._store.trials.pop(one._number))
