"""What is held of an observed matrix: theta, the entries and their offsets, at a place."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from .._batches import BatchHandle, naming
from .._devices import to_host
from .._threads import NOTHING, one_blas_thread
from .._typing import Array, Shape
from .._validation import (
    check_alone,
    check_growth,
    check_magnitude,
    check_part,
    check_precision,
    check_whole,
)
from .._whole import Broken
from ..iterates import LowRank
from ..losses import Correntropy, Gaussian, Loss, Square
from ..past.place import check_place, loaded_entries, low_rank_class, new_entries
from ..past.protocols import EntriesPast
from . import merge_rule
from .background import SquaredNorm
from .base import Objective, PickledByState, other_place
from .biases import RunningBiases
from .entries_batch import HandleBatch, check_entries
from .entries_gradient import WarmStart
from .fading_entries import FadingEntries
from .half_life import BLOCK, new_clock
from .seen_entries import SeenEntries
from .unobserved import UnobservedEntries, check_unobserved

__all__ = ["HeldEntries"]

#: What the factors of theta may take before they are recompressed.
FACTOR_BYTES = {"cpu": 2**27, "cuda": 2**30}
#: BLAS works on one thread anyway while no side of the matrix is longer.
SHORT_SIDE = 1000


class HeldEntries(UnobservedEntries, SeenEntries, FadingEntries, PickledByState, Objective):
    """The part of :class:`~onlinefw.objectives.ObservedEntries` that adds and keeps entries."""

    def __init__(
        self,
        shape: Shape,
        loss: Loss,
        dtype: DTypeLike,
        growing: bool,
        limits: tuple[int, int],
        offsets: RunningBiases | None,
        max_atoms: int | None,
        half_life: Any,
        unobserved: Any,
        device: str,
        workers: int | None,
        log_dir: Any,
    ) -> None:
        check_part("loss", loss, Loss, "Square()")
        if np.shape(shape) != (2,) or min(shape) < 1:
            raise ValueError(f"shape must be (rows, columns), both positive, got {shape}")
        self.dtype: Any = check_precision(dtype)
        if max_atoms is not None:
            max_atoms = check_whole("max_atoms", max_atoms, 2, " or None")
        self.loss, self.growing, self.max_atoms = loss, bool(growing), max_atoms
        self.max_rows = check_whole("max_rows", limits[0])
        self.max_columns = check_whole("max_columns", limits[1])
        if offsets is not None:
            check_part("offsets", offsets, RunningBiases, "RunningBiases()")
        if offsets is not None and not isinstance(loss, (Square, Gaussian, Correntropy)):
            raise ValueError(
                f"means make sense as offsets of a regression loss, not of {loss}; use Square() or "
                "Correntropy(sigma), or leave offsets out"
            )
        self.offsets = offsets
        self.unobserved, self._norm = check_unobserved(unobserved, loss), SquaredNorm()
        self._clock = new_clock(half_life)
        self._place = check_place(device, workers, log_dir)
        self._last_batch = 0
        self._has_offsets = False
        self._start = WarmStart()
        super().__init__(tuple(shape))
        self._past: EntriesPast = new_entries(self._place, self._low_rank, self.dtype, loss)
        self._weigh_zeros()

    # Where the entries are ------------------------------------------------------------------------

    @property
    def device(self) -> str:
        """Where entries are: "cpu" or "cuda", of this process or of the workers."""
        return self._place.device

    @property
    def workers(self) -> int | None:
        """How many workers hold the entries; None: they are in this process."""
        return self._place.workers

    def use_place(self, device: str, workers: int | None, log_dir: Any = None) -> None:
        """Move the entries to this many workers (None: into this process), on this device."""
        place = other_place(self._place, device, workers, log_dir)
        if place is None:
            return
        kind, theta, block = low_rank_class(place), self._low_rank, self._start.block
        if type(theta) is not kind:
            theta = kind.from_state(theta.state_dict())
            block = None if block is None else kind._xp.asarray(to_host(block))
        past = loaded_entries(place, theta, self.dtype, self.loss, self._past.state_dict())
        self._past.close()
        parts = {"_past": past, "_iterate": theta, "_place": place, "_start": WarmStart(block)}
        vars(self).update(parts, _scaling=None)  # all at once

    def mark(self) -> tuple[Any, ...]:
        """Return what is another once data or theta have changed, for a round that fails."""
        held: Any = self._low_rank._held  # growing adds zeros, which is no change
        offsets = None if self.offsets is None else self.offsets.rows
        return self._past.counts, held.weights, held.k, held.scale, offsets

    def break_off(self, error: BaseException) -> None:
        """Refuse everything from now on, since a round has failed half-way."""
        super().break_off(error)
        self._past = cast(Any, Broken(error))

    def close(self) -> None:
        """Stop the workers, if there are any; otherwise they stop when the objective is deleted."""
        self._past.close()

    # The iterate ----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        theta = self._iterate
        return theta.shape if isinstance(theta, LowRank) else self._shape

    @shape.setter
    def shape(self, shape: tuple[int, int]) -> None:
        self._shape = shape  # which theta, the entries and the offsets all have

    @property
    def _low_rank(self) -> LowRank:
        return cast(LowRank, self._iterate)

    def _new_iterate(self, shape: Shape) -> LowRank:
        max_atoms, max_rank = self._atom_limits(shape)
        kind = low_rank_class(self._place)
        return kind(shape, max_atoms, max_rank=max_rank, dtype=self.dtype)

    def _atom_limits(self, shape: Shape) -> tuple[int, int | None]:
        """Return how many atoms theta may hold, and what rank recompression keeps (None: all)."""
        lossless = max(8, 2 * min(shape))
        device = "cpu" if self.workers is not None else self.device
        affordable = FACTOR_BYTES[device] // (self.dtype.itemsize * sum(shape))
        limit = max(32, affordable) if self.max_atoms is None else self.max_atoms
        return (lossless, None) if lossless <= limit else (limit, limit // 2)

    def _set_iterate(self, iterate: LowRank) -> None:
        super()._set_iterate(iterate)
        if hasattr(self, "_past"):
            self._past.theta = iterate

    # Observing ------------------------------------------------------------------------------------

    def working(self) -> AbstractContextManager[Any]:
        """Return a context for one round: threads of BLAS would be in the way."""
        if max(self._shape) <= SHORT_SIDE:
            return NOTHING
        return one_blas_thread()

    def check(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Return checked observations, or refuse them; nothing changes.

        X is (n, 2) with row and column, y their values. Or X is a batch of
        :class:`~onlinefw.distributed.ParquetRatings`, without y.
        """
        if isinstance(X, BatchHandle):
            return self._check_handle(X, y, sample_weight)
        batch = check_entries(
            X,
            y,
            sample_weight,
            limits=None if self.growing else self._shape,
            loss=self.loss,
            dtype=self.dtype,
            device=self._place.device,
        )
        if self._clock is not None:
            check_magnitude(batch.y, 2.0**BLOCK * batch.w, self.dtype)
        if self.growing and batch.shape is not None:
            self._check_shape(batch.shape)
        return batch

    def _check_shape(self, needed: tuple[int, int]) -> None:
        """Refuse rows and columns that are too many, or do not fit the set."""
        (m1, m2), (old1, old2) = needed, self._shape
        if m1 > old1 or m2 > old2:
            check_growth(needed, (max(self.max_rows, old1), max(self.max_columns, old2)))
            if self._constraint is not None:
                self._constraint.check_shape((max(m1, old1), max(m2, old2)))

    def _check_handle(self, handle: BatchHandle, y: Any, sample_weight: Any) -> Any:
        with naming(handle):
            check_alone(y, sample_weight)
            if handle.holds != "ratings":
                raise ValueError("ratings are needed, in batches of ParquetRatings")
            if self._past.opens_handles and self.offsets is None and self._clock is None:
                shape = self._past.open_handle(handle, self.growing)
                self._check_shape(shape)
                return HandleBatch(handle.alone(), shape)
            return self.check(*handle.open())

    def add(self, batch: Any) -> float:
        """Add checked observations; return the weighted mean of their losses at theta."""
        if isinstance(batch, HandleBatch):
            return self._add_handle(batch)
        rows, cols, y, w, needed = batch
        m1, m2 = needed or (int(rows.max()) + 1, int(cols.max()) + 1)
        if m1 > self._shape[0] or m2 > self._shape[1]:
            self.grow(m1, m2)
        past = self._past
        weights, clock = self._weigh(w)
        z = past.append(rows, cols, weights, y)
        self._clock = clock
        self._weigh_zeros()
        at = z.astype(float)
        if self._has_offsets:
            at += past.row_offset[rows] + past.col_offset[cols]
        loss = float(w @ self.loss.value(at, y) / w.sum())
        self._last_batch = rows.size
        if self.offsets is not None:
            self.offsets.update(rows, cols, y, weights, z, self._shape, self.unit)
            self.offsets.refresh_if_due(past.weighted_sums, self._shape)
            past.set_offsets(*self.offsets.offsets(self._shape))
            self._has_offsets = True
        if past.n_newest > merge_rule.SHORTEST_TAIL:
            self._merge_if_due()
        return loss

    def _add_handle(self, batch: HandleBatch) -> float:
        """Let workers add what they have read; only sums come back."""
        self.grow(*batch.shape)
        loss, weight = self._past.append_handle(batch.handle)
        self._last_batch = len(batch.handle)
        self._merge_if_due()
        return loss / weight

    def _merge_if_due(self) -> None:
        """Sort the tail in, all but the newest, once it is long."""
        past = self._past
        n = merge_rule.due_for_merge(past.n_sorted, past.n_newest, self._last_batch)
        if n:
            past.merge(n)

    def grow(self, m1: int, m2: int) -> None:
        """Let the matrix have m1 rows and m2 columns at least."""
        if m1 <= self._shape[0] and m2 <= self._shape[1]:
            return
        theta, past = self._low_rank, self._past
        shape = max(m1, self._shape[0]), max(m2, self._shape[1])
        memory = theta.remember(), past.remember()
        try:
            theta.grow(shape, *self._atom_limits(shape))
            past.grow(*shape)
            if self.offsets is not None:  # a row that was never seen has the mean
                self.set_offsets(*self.offsets.offsets(shape))
            self._shape = shape
        except BaseException as error:  # whole or not at all
            theta.go_back(memory[0])
            if not past.go_back(memory[1]):
                self.break_off(error)
            raise

    # Offsets --------------------------------------------------------------------------------------

    def set_offsets(self, rows: Array, columns: Array) -> None:
        """Predict theta[i, j] + rows[i] + columns[j] from now on (biases, say)."""
        m1, m2 = self._past.theta.shape
        if np.shape(rows) != (m1,) or np.shape(columns) != (m2,):
            raise ValueError(
                f"offsets must have one value per row and per column, {m1} and {m2}, "
                f"got shapes {np.shape(rows)} and {np.shape(columns)}"
            )
        self._past.set_offsets(rows, columns)
        self._has_offsets = True

    def refresh_offsets(self) -> None:
        """Bring running biases up to date with everything held (and with theta, if joint)."""
        if self.offsets is not None:
            shape = self._past.shape
            self.offsets.refresh(self._past.weighted_sums, shape)
            self.set_offsets(*self.offsets.offsets(shape))

    # Counts ---------------------------------------------------------------------------------------

    @property
    def n_observations(self) -> int:  # type: ignore[override]
        """How many observations came."""
        return self._past.counts.observations

    def _needs_data(self) -> None:
        if self._past.counts.weight == 0.0:
            raise ValueError("nothing has been observed yet: call observe(X, y) first")

    @property
    def n_entries(self) -> int:
        """How many entries are held (repeated ones count until they are merged)."""
        return self._past.n_sorted + self._past.n_newest

    @property
    def n_newest(self) -> int:
        """How many of them are in the unsorted tail, which only Frank-Wolfe steps use."""
        return self._past.n_newest

    @property
    def reads(self) -> int:  # type: ignore[override]
        """How often all entries have been read."""
        return self._past.reads

    @property
    def quadratic(self) -> bool:
        """Whether the loss is a parabola in the prediction."""
        return self._past.quadratic
