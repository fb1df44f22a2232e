"""Entries in one memory: what ``host/`` and ``cuda/`` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from .._devices import to_host
from .._typing import Array, State
from ..iterates import LowRank
from ..kernels.entries import QUADRATIC
from ..losses import Bernoulli, Exponential, Gaussian, Loss, Poisson, Square
from .entries_state import Counts, check_entries_state, check_unobserved, entries_state
from .host.row_loss import compiled
from .leaving import LeavingEntries
from .pending import PendingMove
from .unobserved import StoredZeros

__all__ = ["SUMMABLE", "StoredEntries"]

#: Losses for which repeated observations of one entry can be summed up: count and sum suffice.
SUMMABLE = (Square, Gaussian, Bernoulli, Poisson, Exponential)
#: Stands for no version of theta: predictions are changing, or out of date.
NONE = -1


class Regrets:
    """Growth that can be undone, since everything that it changes is replaced, not overwritten."""

    _version: int
    _changed_by_growth: ClassVar[tuple[str, ...]] = (
        "_store", "row_offset", "col_offset", "_version",
    )  # fmt: skip

    def remember(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._changed_by_growth}

    def go_back(self, memory: dict[str, Any]) -> bool:
        out_of_date = self._version == NONE  # a move was being carried out
        vars(self).update(memory)
        if out_of_date:
            self._version = NONE
        return True


class StoredEntries(Regrets, LeavingEntries, StoredZeros, ABC):
    """:class:`~onlinefw.past.protocols.EntriesPast` in the memory of one process or GPU.

    Predictions are overwritten when they change. While they change, and when theta has moved but
    ``move`` was not called, they belong to no version of theta, and the next read computes them
    again. So an interrupt anywhere costs one read of the entries at most.
    """

    opens_handles = False
    _line_class: ClassVar[Any]
    _store: Any
    row_offset: Array
    col_offset: Array

    def __init__(self, theta: LowRank, dtype: Any, loss: Loss) -> None:
        self.theta, self.dtype, self.loss = theta, np.dtype(dtype), loss
        self.kind, self.parameter = compiled(loss)
        self.quadratic = self.kind == QUADRATIC
        self.sums_repeats = type(loss) in SUMMABLE
        self.reads = 0
        self._pending: PendingMove | None = None
        self._version = theta.version
        self._due = True  # whether slopes have to be renewed
        self._line: Any = None
        self._regressions: Any = None

    def slopes(self, at: Array, c: Array, s: Array) -> Array:
        """Return slopes from the loss itself; its kernel, if it has one, is faster."""
        if self.sums_repeats:
            return c * self.loss.derivative(at, 0.0) - s
        return c * self.loss.derivative(at, s)

    def close(self) -> None:
        """Nothing is held outside this process."""

    @property
    def counts(self) -> Counts:
        return self._store.counts

    @property
    def shape(self) -> tuple[int, int]:
        return self._store.shape

    @property
    def n_sorted(self) -> int:
        return self._store.n_sorted

    @property
    def n_newest(self) -> int:
        return self._store.n_newest

    def __len__(self) -> int:
        return self._store.size

    def grow(self, m1: int, m2: int) -> None:
        self._line = self._regressions = None
        if self._pending is not None:
            self._carry_out()
        rows, columns = self.row_offset, self.col_offset
        # Offsets first: an interrupt may leave them longer than the store, not shorter.
        self.set_offsets(np.pad(rows, (0, m1 - rows.size)), np.pad(columns, (0, m2 - columns.size)))
        self._store = self._store.grown(m1, m2)
        if self._version + 1 == self.theta.version:
            self._version = self.theta.version

    @abstractmethod
    def set_offsets(self, rows: Array, columns: Array) -> None: ...

    def merge(self, n: int) -> None:
        self._line = self._regressions = None
        if self._pending is not None:
            self._carry_out()
        self._due = True
        self._merge(n)

    @abstractmethod
    def _merge(self, n: int) -> None:
        """Sort the n oldest entries of the tail in; no move waits."""

    # Moving ---------------------------------------------------------------------------------------

    def move(self, keep: float, u: Array | None, v: Array | None) -> None:
        if self._pending is not None:
            self._carry_out()
        self._line = self._regressions = None
        self._due = True
        version = self.theta.version
        if self._version + 1 != version:  # an earlier move of theta was interrupted
            self._version = NONE
            return
        self._pending = PendingMove(keep, self._image(u, v), self._store.size)
        self._version = version

    def refresh(self) -> None:
        self._line = self._regressions = None
        self._version = NONE
        self._pending, self._due = None, True
        if self.shape != self.theta.shape:
            self.grow(*self.theta.shape)
        self._predict()
        self.reads += 1
        self._version = self.theta.version

    @abstractmethod
    def _predict(self) -> None:
        """Write theta at every entry."""

    @abstractmethod
    def _image(self, u: Array | None, v: Array | None) -> tuple[Any, Any]:
        """Return the vectors of an atom in the form that the kernels take."""

    @abstractmethod
    def _carry_out(self) -> None:
        """Carry out the move that waits; the slopes are out of date then."""

    @abstractmethod
    def _renew(self) -> None:
        """Bring predictions and slopes up to date, without a product."""

    def _renew_if_due(self) -> None:
        if self._due or self._pending is not None or self._version != self.theta.version:
            self._renew()

    # Sums -----------------------------------------------------------------------------------------

    def total_loss(self) -> float:
        self._renew_if_due()
        return self._line_class(self).value(0.0)

    def line(self, u: Array, v: Array) -> tuple[float, float, float] | None:
        self._renew_if_due()
        self._line = line = self._line_class(self, *self._image(u, v))
        return line.parabola

    def line_value(self, t: float) -> float:
        if self._line.parabola is None:
            return self._line.value(t)
        value, slope, curvature = self._line.parabola
        return value + t * (slope + 0.5 * t * curvature)

    def line_slope(self, t: float) -> float:
        if self._line.parabola is None:
            return self._line.slope(t)
        _, slope, curvature = self._line.parabola
        return slope + t * curvature

    def newest_sums(self, theta: LowRank) -> tuple[float, float]:
        at, c, s = (x.astype(float) for x in self._newest(theta))
        return float(c @ self.loss.value(at, self._values(c, s))), float(c.sum())

    @abstractmethod
    def _newest(self, theta: LowRank) -> tuple[Array, Array, Array]:
        """Return predictions, c and s of the newest entries, in this process's memory."""

    # Regressions ----------------------------------------------------------------------------------

    def solve_rows(self, right: Array, ridge: Array) -> Array:
        return self._regressions.solve_rows(right, ridge)

    def solve_columns(self, left: Array, ridge: Array) -> Array:
        return self._regressions.solve_columns(left, ridge)

    def column_equations(self, left: Array) -> Array:
        """Return the columns' normal equations; those of all shards add up."""
        return self._regressions.column_equations(left)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        reads = self.reads
        if self._version != self.theta.version:
            self.refresh()
        if self._pending is not None:
            self._carry_out()
        self.reads = reads
        store, held = self._store, self._store.sorted
        return entries_state(
            tuple(map(to_host, (held.indptr, held.col, held.z, held.c, held.s))),
            tuple(map(to_host, store.tail.arrays[:5])),
            store.rank,
            store.ranked_at,
            (self.row_offset, self.col_offset),
            store.counts,
            reads,
            self.unobserved,
        )

    def load_state(self, state: State) -> None:
        check_entries_state(state, self.theta.shape, self.dtype)
        store = self._store.from_state(state, self.dtype)
        self.set_offsets(*state["offsets"])
        self._pending, self._due, self.reads = None, True, int(state["reads"])
        self._store, self._version = store, self.theta.version
        self.unobserved = 0.0  # nothing is known yet of which entries are the first
        self.set_unobserved(check_unobserved(state, self.loss))
