"""What this process knows about entries that are spread over workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..._growing import GrowingArray
from ..._typing import Array, State
from ...iterates import LowRank
from ...kernels.entries import QUADRATIC
from ...losses import Loss
from ..entries_state import Counts
from ..host.row_loss import compiled
from . import entries_in_worker as in_worker
from .entries_files import OpenedEntries, ReadAhead
from .recovery import Message, Placement, Recovery
from .splits import row_count, rows, theta_rows

__all__ = ["EntriesPlacement"]

#: A shard that is rebuilt sorts entries in when it has so many in its tail.
LONGEST_TAIL = 2**22


class EntriesPlacement(Placement):
    """Which shard has which entry of the tail, and the attributes of the past.

    Theta is in this process's memory; the objective moves it before it calls ``move``.
    """

    def __init__(self, theta: LowRank, dtype: Any, loss: Loss, n: int) -> None:
        self.opens_handles = True
        self.theta, self.dtype, self.loss = theta, np.dtype(dtype), loss
        self.quadratic = compiled(loss)[0] == QUADRATIC
        self.shape = self._first_shape = theta.shape
        self.counts, self.reads, self.n_sorted = Counts(), 0, 0
        self.row_offset, self.col_offset = (np.zeros(size, dtype) for size in theta.shape)
        # The shard of each entry in the tail, in the order in which they came.
        self.owners = GrowingArray(dtype=np.uint16)
        self.arrived = np.zeros(n, np.int64)  # how many have ever come to the tail of each shard
        self.version = theta.version  # of theta, that the predictions belong to
        self.due = True  # whether slopes have to be renewed
        self.moving = False  # whether a move of the predictions waits
        self.row_scale: Array | None = None  # weights of rows that were sent to the shards
        self.block: Array | None = None  # G V of the last read, unless it stayed with the workers
        self.known_atoms: int | None = None  # how many terms of theta the shards know, if they do
        self.unobserved = 0.0  # the weight of entries that were not observed
        self.distinct: int | None = None  # how many were, if that is known
        self.files = ReadAhead()
        self.opened: OpenedEntries | None = None  # the batch that was opened last

    @property
    def n_newest(self) -> int:
        return len(self.owners)

    def __len__(self) -> int:
        return self.n_sorted + self.n_newest

    def opening(self, k: int, n: int, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what makes a shard, as large as the matrix was at the start."""
        m1, m2 = self._first_shape
        shape = row_count(k, n, m1), m2
        kind = self.theta.dtype, self.dtype, self.loss
        return in_worker.new_shard, (shape, *kind, device)

    def rebuild(self, recovery: Recovery, k: int, logged: Iterable[Message]) -> Iterator[Message]:
        """Yield the log, then messages that sort entries in, set offsets and predict."""
        # How many entries are still to be sorted in.
        left = int(self.arrived[k]) - int(self.tail_lengths(self.n_newest)[k])
        waiting = 0
        for method, args in logged:
            yield method, args
            if method == "load_state" and "tail" in args[0]:
                waiting += args[0]["tail"]["row"].size
            if method is in_worker.drop or method == "forget":  # these sort everything in
                left, waiting = left - waiting, 0
            waiting += args[-1] if method is in_worker.append_again else 0
            waiting += len(args[0]) if method == "append" else 0
            if LONGEST_TAIL < waiting <= left:
                yield "merge", (waiting,)
                left, waiting = left - waiting, 0
        if left:
            yield "merge", (left,)
        if self.unobserved > 0.0:  # a state that was loaded has a weight of its own
            yield "set_unobserved", (self.unobserved,)
        (row_offset,) = rows(recovery, self.row_offset)[k : k + 1]
        yield "set_offsets", (row_offset, self.col_offset)
        theta = theta_rows(recovery, self.theta)[k]
        if self.known_atoms is not None:
            yield in_worker.know_theta, (theta,)
        yield in_worker.refresh_from, (theta,)

    # What changes ---------------------------------------------------------------------------------

    def tail_lengths(self, n: int) -> Array:
        """Return how many of the n oldest entries in the tails each shard has."""
        return np.bincount(self.owners.data[:n], minlength=self.arrived.size)

    def came(self, rows: Array, cols: Array, w: Array, y: Array, z: Array) -> None:
        """Note new entries in the tails."""
        self._lengthen(rows % self.arrived.size, self.counts.plus(w, y))

    def pieces_came(self, opened: OpenedEntries) -> None:
        """Note new entries from a file."""
        (n, weight, squares), more = self.counts, opened.counts
        counts = Counts(n + more.observations, weight + more.weight, squares + more.squares)
        self._lengthen(opened.owners, counts)

    def _lengthen(self, owners: Array, counts: Counts) -> None:
        arrived = self.arrived + np.bincount(owners, minlength=self.arrived.size)
        self.due, self.distinct = True, None
        longer = self.owners.extended(owners)
        self.arrived, self.owners, self.counts = arrived, longer, counts

    def merged(self, n: int, n_sorted: int) -> None:
        """Note that the n oldest entries are sorted in."""
        rest = GrowingArray(dtype=np.uint16)
        rest.append(self.owners.data[n:])
        self.owners, self.n_sorted = rest, n_sorted

    def rescaled(self, factor: float) -> None:
        """Note that weights have been multiplied."""
        self.due, self.counts = True, self.counts.scaled(factor)

    def left(self, n_sorted: int, weight: float, squares: float) -> None:
        """Note that so many entries are left, and what those had that are not."""
        self.n_sorted, self.counts = int(n_sorted), self.counts.without(weight, squares, n_sorted)
        self.distinct = None

    def grew(self, m1: int, m2: int) -> None:
        """Note that the matrix has grown."""
        self.row_offset = np.pad(self.row_offset, (0, m1 - self.row_offset.size))
        self.col_offset = np.pad(self.col_offset, (0, m2 - self.col_offset.size))
        self.shape, self.row_scale, self.due, self.moving = (m1, m2), None, True, False
        if self.version + 1 == self.theta.version:
            self.version = self.theta.version

    def zeros_weigh(self, weight: float) -> None:
        """Note what entries weigh that were not observed."""
        if self.unobserved == 0.0:
            self.distinct = None  # first observations are found from now on
        self.due, self.unobserved = True, weight

    def offset(self, rows: Array, columns: Array) -> None:
        rows, columns = np.array(rows, self.dtype), np.array(columns, self.dtype)
        self.due = True
        self.row_offset, self.col_offset = rows, columns

    def moved(self, keep: float, u: Array | None, v: Array | None) -> None:
        """Note that the shards were told of the last move of theta."""
        self.due = self.moving = True
        if self.known_atoms is not None and u is not None:
            self.known_atoms = 1 + (self.known_atoms if keep != 0.0 else 0)
        self.version = self.theta.version

    def refreshed(self, theta: LowRank) -> None:
        """Note that predictions are those of theta."""
        self.due, self.moving, self.version = True, False, theta.version
        self.reads += 1
        if self.known_atoms is not None:
            self.known_atoms = theta.n_atoms

    def theta_known(self, theta: LowRank) -> None:
        self.known_atoms = theta.n_atoms

    def is_due(self, *args: Any) -> None:
        """Note that slopes have to be renewed, and that no move waits."""
        self.due, self.moving = True, False

    def start_with(self, state: State) -> None:
        """Note what is in a state that the shards have loaded."""
        self.owners = GrowingArray(dtype=np.uint16)
        self.owners.append(state["tail"]["row"] % self.arrived.size)
        self.arrived = self.tail_lengths(self.n_newest)
        self.n_sorted = len(state["sorted"]["col"])
        self.counts, self.distinct = Counts.of(state["counts"]), None
        self.unobserved = float(state.get("unobserved", 0.0))
        self.row_offset, self.col_offset = (np.array(offset) for offset in state["offsets"])
        self.reads, self.due, self.moving = int(state["reads"]), True, False
        self.version = self.theta.version
        self.known_atoms = self.row_scale = None

    # Reads ----------------------------------------------------------------------------------------

    def counted(self, *args: Any) -> None:
        self.reads += 1

    def was_read(self, *args: Any) -> None:
        """Count a read that has renewed the slopes."""
        self.reads += 1
        self.due = self.moving = False

    def renewed(self, *args: Any) -> None:
        """Count the read that renews the slopes, if that was due."""
        if self.due:
            self.was_read()

    def line_begun(self, u: Array, v: Array) -> None:
        """Count the reads that it takes to begin a line."""
        self.renewed()
        self.reads += 1

    def line_asked(self, t: float) -> None:
        """Count the read of a line, unless it is a parabola, which needs none."""
        self.reads += not self.quadratic

    def weighed(self, rows: Array, columns: Array, with_theta: bool) -> None:
        """Count the reads of weighted sums."""
        if with_theta and self.moving:
            self.renewed()
        self.reads += 1
