"""Observed entries in one memory: when they are merged, moved and read, wherever that memory is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._typing import Array
from ..iterates import LowRank
from ..kernels.entries import QUADRATIC
from ..losses import Bernoulli, Exponential, Gaussian, Loss, Poisson, Square
from . import entry_store
from .row_loss import compiled

__all__ = ["SUMMABLE", "StoredEntries"]

#: Losses for which repeated observations of one entry can be summed up: count and sum suffice.
SUMMABLE = (Square, Gaussian, Bernoulli, Poisson, Exponential)


class StoredEntries(ABC):
    """All observed entries with what is carried at each, and the passes over them.

    Whatever asks for sums over the entries asks here; an objective only knows theta and how to put
    sums together. So entries may live in this process's memory, on a device or elsewhere, if they
    answer the same questions. All results are sums, not means.

    A move along an atom is carried out by the next read, which reads all entries anyway.

    Parameters
    ----------
    dtype : dtype
        Of what is carried.
    loss : Loss
        Of an entry.

    Attributes
    ----------
    store
        The entries: sorted ones, and a tail of the newest.
    row_offset, col_offset : ndarray
        What is predicted besides theta.
    reads : int
        How often all entries have been read.
    merges_itself : bool
        Whether the tail is merged when that is due; otherwise somebody else decides.
    """

    store: Any
    row_offset: Array
    col_offset: Array

    def __init__(self, dtype: Any, loss: Loss) -> None:
        self.dtype, self.loss = np.dtype(dtype), loss
        self.kind, self.parameter = compiled(loss)
        self.combine = type(loss) in SUMMABLE
        self.merges_itself = True
        self.reads = 0
        self._pending: tuple[float, Array, Array] | None = None  # a move yet to be carried out
        self._due = True  # whether slopes have to be renewed

    def __len__(self) -> int:
        return len(self.store)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.store.shape

    @property
    def quadratic(self) -> bool:
        """Whether the loss is a parabola in the prediction."""
        return self.kind == QUADRATIC

    @property
    def n_sorted(self) -> int:
        """How many entries have been sorted in."""
        return self.store.n_sorted

    @property
    def n_newest(self) -> int:
        """How many of the newest entries have not been sorted in."""
        return self.store.n_tail

    # Growing --------------------------------------------------------------------------------------

    def append(self, rows: Array, cols: Array, z: Array, c: Array, s: Array) -> None:
        """Add entries with their predictions, weights and targets (sums of them, if combined)."""
        self.store.append(rows, cols, z, c, s)
        self._have_come()

    def _have_come(self) -> None:
        """Let new entries in the tail count."""
        self._due = True
        if self._pending is None:  # a merge that had to carry a move out would cost a read
            self._merge_if_due()

    def _merge_if_due(self) -> None:
        """Sort a tail that has become long in, all but the newest."""
        store = self.store
        n = entry_store.due_for_merge(store.n_sorted, store.n_tail, store.last_batch)
        if n and self.merges_itself:
            store.merge(n)

    def merge(self, held_out: int = 0) -> None:
        """Sort everything but the ``held_out`` newest entries in."""
        self.settle()
        self.merge_oldest(self.n_newest - held_out)

    def merge_oldest(self, n: int) -> None:
        """Sort the n oldest of the newest entries in, while no move is pending."""
        assert self._pending is None
        if n:
            self.store.merge(n)
        self._due = True

    # Moving ---------------------------------------------------------------------------------------

    def move(self, keep: float, u: Array, v: Array) -> None:
        """Z <- keep z + u_i v_j; the sorted entries follow when the next read passes by."""
        self._make_way()
        self._let_wait(keep, *self._held(u, v))

    def shrink(self, factor: float) -> None:
        """Z <- factor z."""
        self.settle()
        self._let_wait(float(factor), *self._nothing())

    def move_block(self, keep: float, left: Array, right: Array) -> None:
        """Z <- keep z + left_i . right_j at every entry, now."""
        self._make_way()
        self._move_now(keep, left, right)

    def _make_way(self) -> None:
        """Carry out what is pending before another move; the slopes are due in any case."""
        if self._pending is not None:
            self.settle()
        self._merge_if_due()

    @abstractmethod
    def _held(self, u: Array, v: Array) -> tuple[Array, Array]:
        """Return the vectors of an atom as they are kept until they are needed."""

    @abstractmethod
    def _nothing(self) -> tuple[Array, Array]:
        """Return the vectors of an atom that is zero."""

    @abstractmethod
    def _let_wait(self, keep: float, u: Array, v: Array) -> None:
        """Let a move wait for the next read."""

    @abstractmethod
    def _move_now(self, keep: float, left: Array, right: Array) -> None:
        """Z <- keep z + left_i . right_j at every entry."""

    @abstractmethod
    def settle(self) -> None:
        """Carry a pending move out and renew the slopes, without a product."""

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let later decisions be the same as if nothing had been asked within."""
        before = self._pending is not None, self._due
        yield
        self.go_back(*before)

    def go_back(self, moving: bool, due: bool) -> None:
        """Let later decisions be as if a move were pending, and slopes due."""
        self._due = due
        if moving:
            self._let_wait(1.0, *self._nothing())

    # Sums -----------------------------------------------------------------------------------------

    def frobenius_bound(self) -> float:
        """Bound the Frobenius norm of the slopes.

        An entry may stand among the sorted and the newest, so the squares must not be added up.
        """
        return float(sum(np.sqrt(self.squared_norms())))

    @abstractmethod
    def squared_norms(self) -> tuple[float, float]:
        """Return those of the slopes, sorted ones and newest; infinite where repeats are apart."""

    def heaviest(self) -> float:
        """Bound the largest total weight of an entry, which may be sorted in and newest at once."""
        return sum(self.heaviest_parts())

    @abstractmethod
    def heaviest_parts(self) -> tuple[float, float]:
        """Return the largest total weight of one entry, sorted ones and newest."""

    def newest_loss(self, theta: LowRank) -> float:
        """Return the mean loss of another theta on the newest entries."""
        loss, weight, _ = self.newest_sums(theta)
        return loss / max(weight, np.finfo(float).tiny)

    def newest_sums(
        self, theta: LowRank | None = None, since: int = 0
    ) -> tuple[float, float, float]:
        """Return loss, weight and weighted squares of the values of the newest entries.

        Parameters
        ----------
        theta : LowRank, optional
            To predict with; by default the one whose predictions are carried.
        since : int
            Leave so many of the oldest of them out.
        """
        at, c, s = (x.astype(float) for x in self._newest(theta, since))
        y = np.divide(s, c, where=c > 0.0, out=0.0 * s) if self.combine else s
        return float(c @ self.loss.value(at, y)), float(c.sum()), float(c @ y**2)

    @abstractmethod
    def _newest(self, theta: LowRank | None, since: int) -> tuple[Array, Array, Array]:
        """Return predictions, c and s of those entries, in this process's memory."""

    def regressions(self, everything: bool) -> Any:
        """Return every row's and column's regression of what the offsets leave over.

        They are good until the next read or merge.

        Parameters
        ----------
        everything : bool
            With the newest entries, those that stay in the tail otherwise.
        """
        self.merge(0 if everything else min(self.n_newest // 2, entry_store.NEWEST))
        return self.regressions_of_sorted()

    @abstractmethod
    def regressions_of_sorted(self) -> Any:
        """Return the regressions of what has been sorted in, just after a merge."""
