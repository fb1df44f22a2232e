"""Observed entries spread over workers: shard k of n holds the rows with row % n == k."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._typing import Array, State
from ..iterates import LowRank
from ..kernels import entries as kernels
from ..losses import Loss
from ..objectives.entry_store import NEWEST, due_for_merge
from ..objectives.host_entries import HostEntries
from ..objectives.row_loss import compiled
from ..objectives.stored_entries import SUMMABLE
from .batch_log import BatchLog
from .elsewhere import Elsewhere
from .entries_line import SplitLine, parabola
from .entries_regressions import SplitRegressions
from .entries_shard import EntriesShard
from .entries_state import split_state, whole_state
from .errors import ClusterLost
from .file_batches import FileBatches
from .interleaved import join_compressed, join_rows, rows_of, split_rows, split_theta
from .parquet import ParquetBatch
from .shards import Message, Shards, added

__all__ = ["RemoteBlock", "ShardedEntries"]

#: A product G V of more bytes stays with the workers: of its eight columns one is wanted, mostly,
#: and asking for it costs less than sending all.
LARGE_BLOCK = 2**20
#: So many entries of a state travel in one message.
AT_ONCE = 2**22


class ShardedEntries(Elsewhere):
    """Answers the questions of :class:`~onlinefw.objectives.host_entries.HostEntries`.

    Whole rows live with one worker, so a product G'(scale G V) needs one exchange: V goes out, each
    worker returns its rows of G V and its part of the sum. Moves go out without waiting.

    Parameters
    ----------
    shape, dtype, loss
        As for ``HostEntries``.
    workers : int
        How many shards.
    theta : callable
        Returns the iterate as it is now: a restarted worker's predictions come from it.
    device : "cpu" or "cuda"
        Where shards live.
    log_dir : path, optional
        Where to log the batches that workers have received.

    Attributes
    ----------
    row_offset, col_offset : ndarray
        What is predicted besides theta.
    reads : int
        How often all entries have been read.
    """

    home_class = HostEntries

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        loss: Loss,
        *,
        workers: int,
        theta: Callable[[], LowRank],
        device: str = "cpu",
        log_dir: Any = None,
    ) -> None:
        self.shape, self.dtype, self.loss = shape, dtype, loss
        self.kind, self.parameter = compiled(loss)
        self.combine = type(loss) in SUMMABLE
        self.workers, self.device, self.log_dir = workers, device, log_dir
        self._theta = theta
        self.reads = 0
        self.row_offset, self.col_offset = np.zeros(shape[0], dtype), np.zeros(shape[1], dtype)
        self._moving, self._due = False, True  # as _pending and _due of HostEntries
        # Entries are numbered as they come; those before the cut have been sorted in.
        self._arrived = self._cut = self._last_batch = 0
        self._bulk: int | None = 0  # None: to be asked for
        self._row_scale: Array | None = None
        self._read: Array | None = None  # the block whose product the workers keep
        self._line: tuple[Array, Array] | None = None
        self._regressing = False
        self._followed: int | None = None  # how many atoms of theta the shards know, if any
        self._log = BatchLog(workers, log_dir)
        args = [self._shard_args(k, device) for k in range(workers)]
        self.shards = Shards(workers, device, EntriesShard, args, self._rebuild)
        self._files = FileBatches(self.shards, dtype, loss)

    def _shard_args(self, k: int, device: str) -> tuple[Any, ...]:
        m1, m2 = self.shape
        return (rows_of(k, self.workers, m1), m2), self.dtype, self.loss, device

    def close(self) -> None:
        """Give the workers back; the log goes, too."""
        self.shards.close()
        self._log.close()

    def __len__(self) -> int:
        return self._bulk_size() + self.n_newest

    @property
    def quadratic(self) -> bool:
        """Whether the loss is a parabola in the prediction."""
        return self.kind == kernels.QUADRATIC

    @property
    def store(self) -> Any:
        """Not here: the entries live with the workers."""
        raise ValueError("this needs all entries in one process: use an objective without workers")

    # Messages -------------------------------------------------------------------------------------

    def _tell(self, method: str, *args: Any) -> None:
        self.shards.tell(method, [args] * self.workers)

    def _ask(self, method: str, *args: Any) -> list[Any]:
        return self.shards.ask(method, [args] * self.workers)

    def _split(self, rows: Array) -> list[Array]:
        """The rows of each shard."""
        return split_rows(rows, self.workers)

    # What a restarted worker is told --------------------------------------------------------------

    def _rebuild(self, k: int) -> Iterator[Message]:
        yield "grow", (rows_of(k, self.workers, self.shape[0]), self.shape[1])
        for record in self._log.records(k):
            if len(record) == 1:  # a batch that is in a file
                (number,) = record[0].tolist()
                place, first = self._files.learned[number]
                yield "load_file", (place, k, self.workers, first, self._cut)
            else:
                row, col, c, s, numbers = record
                yield "load", (row, col, np.zeros_like(c), c, s, numbers, self._cut)
        offsets = self.row_offset[k :: self.workers], self.col_offset
        yield "restore", (self._cut, split_theta(self._theta(), self.workers)[k], offsets)
        if self._followed is not None:
            yield "follow", (split_theta(self._theta(), self.workers)[k],)
        if self._row_scale is not None:
            yield "set_row_scale", (self._row_scale[k :: self.workers],)
        if self._read is not None:
            yield "read", (self._read, True)
        if self._regressing:
            yield "regressions", (self._cut,)
        if self._line is not None:
            u, v = self._line
            yield "line", (u[k :: self.workers], v)

    # Growing --------------------------------------------------------------------------------------

    def observe(self, theta: LowRank, rows: Array, cols: Array, w: Array, y: Array) -> Array:
        """Add entries with their weights and values; return theta there."""
        z = theta.entries(rows, cols)
        self.append(rows, cols, z, w, y)
        return z

    def append(self, rows: Array, cols: Array, z: Array, w: Array, y: Array) -> None:
        """Add entries with their predictions, weights and values."""
        self.shards.check_alive()  # before anything changes
        c, s = w.astype(self.dtype), (w * y if self.combine else y).astype(self.dtype)
        owner, numbers = rows % self.workers, np.arange(self._arrived, self._arrived + rows.size)
        local, cols = (rows // self.workers).astype(np.uint32), cols.astype(np.uint32)
        messages: list[tuple[Array, ...] | None] = []
        for k in range(self.workers):
            mine = np.flatnonzero(owner == k)
            if mine.size == 0:
                messages.append(None)
                continue
            row, col, part_z, part_c, part_s, number = (
                x[mine] for x in (local, cols, z, c, s, numbers)
            )
            self._log.append(k, [row, col, part_c, part_s, number])
            messages.append((row, col, part_z, part_c, part_s, number))
        self._arrived += rows.size
        self._last_batch = rows.size
        self._line, self._due = None, True
        self.shards.tell("append", messages)
        if not self._moving:
            self._merge_if_due()

    # Batches that are in files --------------------------------------------------------------------

    def read_file(self, batch: ParquetBatch, growing: bool) -> tuple[int, int, int, list[Any]]:
        """Let a worker read a batch: see :meth:`FileBatches.read`."""
        return self._files.read(batch, None if growing else self.shape)

    def append_file(
        self, batch: ParquetBatch, length: int, pieces: list[Any]
    ) -> tuple[float, float, float]:
        """Add the entries of a batch that was read; return loss, weight and squares of values."""
        self.shards.check_alive()
        self._lead()
        first = self._arrived
        number = len(self._files.learned)
        self._files.learned.append((batch.place, first))
        for k in range(self.workers):
            self._log.append(k, [np.array([number])])
        self._arrived += length
        self._last_batch = length
        self._line, self._due = None, True
        self.shards.tell("append_piece", [(piece, first) for piece in pieces])
        sums = zip(*self._ask("batch_sums", first), strict=True)
        loss, weight, squares = (float(sum(parts)) for parts in sums)
        if not self._moving:
            self._merge_if_due()
        return loss, weight, squares

    def _lead(self) -> None:
        """Let the shards know theta, if it has changed other than by moves they have seen."""
        theta = self._theta()
        if self._followed != theta.n_atoms:
            self.shards.tell("follow", [(part,) for part in split_theta(theta, self.workers)])
            self._followed = theta.n_atoms

    def _count_atoms(self, keep: float, new: int) -> None:
        if self._followed is not None:
            self._followed = new + (self._followed if keep != 0.0 else 0)

    def grow(self, m1: int, m2: int) -> None:
        """Make room for m1 rows and m2 columns."""
        self.settle()
        old1, old2 = self.shape
        sizes = [(rows_of(k, self.workers, m1), m2) for k in range(self.workers)]
        self.shards.tell("grow", sizes)
        self.shape, self._row_scale = (m1, m2), None
        self._tell("set_row_scale", None)
        self.row_offset = np.pad(self.row_offset, (0, m1 - old1))
        self.col_offset = np.pad(self.col_offset, (0, m2 - old2))

    def set_offsets(self, rows: Array, columns: Array) -> None:
        """Predict theta[i, j] + rows[i] + columns[j] from now on."""
        self.row_offset, self.col_offset = np.array(rows, self.dtype), np.array(columns, self.dtype)
        self._due = True
        self._send_offsets()

    def _send_offsets(self) -> None:
        rows = self._split(self.row_offset)
        self.shards.tell("set_offsets", [(part, self.col_offset) for part in rows])

    def merge(self, held_out: int = 0) -> None:
        """Sort everything but the ``held_out`` newest entries into the bulk."""
        self.settle()
        self._merge(self.n_newest - held_out)

    def _merge_if_due(self) -> None:
        # The rule looks at the bulk for long tails only, so it is not asked for in every round.
        if due_for_merge(0, self.n_newest, self._last_batch) == 0:
            return
        n = due_for_merge(self._bulk_size(), self.n_newest, self._last_batch)
        if n:
            self._merge(n)

    def _merge(self, n: int) -> None:
        self._cut += n
        self._bulk, self._due = None, True
        self._tell("merge", self._cut)

    def _bulk_size(self) -> int:
        if self._bulk is None:
            self._bulk = sum(self._ask("bulk_size"))
        return self._bulk

    # Moving ---------------------------------------------------------------------------------------

    def _make_way(self) -> None:
        """Carry out what is pending before another move, and merge where that costs no read."""
        if self._moving:
            self.settle()
        self._merge_if_due()
        self._line = None

    def move(self, keep: float, u: Array, v: Array) -> None:
        """Z <- keep z + u_i v_j; the sorted entries follow when the next read passes by."""
        self._make_way()
        u, v = u.astype(self.dtype), v.astype(self.dtype)
        self.shards.tell("move", [(keep, part, v) for part in self._split(u)])
        self._count_atoms(keep, 1)
        self._moving = True

    def shrink(self, factor: float) -> None:
        """Z <- factor z."""
        self.settle()
        self._line = None
        self._tell("shrink", float(factor))
        self._moving = True

    def move_block(self, keep: float, left: Array, right: Array) -> None:
        """Z <- keep z + left_i . right_j at every entry, now."""
        self._make_way()
        left, right = left.astype(self.dtype), right.astype(self.dtype)
        self.shards.tell("move_block", [(keep, part, right) for part in self._split(left)])
        self._count_atoms(keep, left.shape[1])
        self.reads += 1
        self._due = True

    def place(self, theta: LowRank) -> None:
        """Z <- theta at every entry."""
        self._line, self._regressing = None, False
        self.shards.tell("place", [(part,) for part in split_theta(theta, self.workers)])
        if self._followed is not None:
            self._followed = theta.n_atoms
        self.reads += 1
        self._moving, self._due = False, True

    def settle(self) -> None:
        """Carry a pending move out and renew the slopes, without a product."""
        if self._moving or self._due:
            self._tell("settle")
            self.reads += 1
            self._moving = self._due = False

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let later decisions be the same as if nothing had been asked within."""
        moving, due = self._moving, self._due
        yield
        self._due = due
        if moving:
            self._moving = True
        self._tell("go_back", moving, due)

    # Products with the slopes ---------------------------------------------------------------------

    def _set_row_scale(self, new: Array | None) -> None:
        """Send the weights of rows when they have changed."""
        old = self._row_scale
        if (new is None and old is None) or (
            new is not None and old is not None and np.array_equal(new, old)
        ):
            return
        self._row_scale = new
        parts = [None] * self.workers if new is None else self._split(new)
        self.shards.tell("set_row_scale", [(part,) for part in parts])

    def read(self, v: Array, row_scale: Array | None) -> tuple[Any, Array, float]:
        """Carry out what is pending; return G V, G' (row_scale G V) and <z, g>.

        A large G V stays with the workers: what is returned can be multiplied from the right.
        """
        self._set_row_scale(row_scale)
        self._regressing = False
        v = v.astype(self.dtype)
        stay = self.shape[0] * v.shape[1] * v.itemsize > LARGE_BLOCK
        parts, w = self.shards.ask_sum("read", (v, stay))
        y, z_dot_g = zip(*parts, strict=True)
        self.reads += 1
        self._moving = self._due = False
        self._read = v if stay else None
        rows = RemoteBlock(self) if stay else join_rows(list(y))
        return rows, w, float(sum(z_dot_g))

    # What is as small as theta's factors is as for entries that are here.
    brought_home = staticmethod(HostEntries.brought_home)
    mixed = staticmethod(HostEntries.mixed)

    def normal(self, v: Array, row_scale: Array | None) -> tuple[Array, Array]:
        """Return G v and G' (row_scale G v) with one read."""
        self._set_row_scale(row_scale)
        y, w = self.shards.ask_sum("normal", (v.astype(self.dtype),))
        self.reads += 1
        return join_rows(y), w

    def forward(self, v: Array) -> Array:
        """Return G V with one read, in double precision."""
        self.reads += 1
        return join_rows(self._ask("forward", v))

    def backward(self, u: Array) -> Array:
        """Return G' U with one read, in double precision."""
        self.reads += 1
        return added(*self.shards.ask("backward", [(part,) for part in self._split(u)]))

    def frobenius_bound(self) -> float:
        """Bound the Frobenius norm of the slopes."""
        bulk, tail = zip(*self._ask("squared_norms"), strict=True)
        return float(np.sqrt(sum(bulk)) + np.sqrt(sum(tail)))

    def dense_slopes(self) -> Array:
        """Return the slopes as a matrix."""
        return join_rows(self._ask("dense_slopes"))

    # Other sums -----------------------------------------------------------------------------------

    def total_loss(self) -> float:
        """Return the total loss; of the square loss, without the squares of the values."""
        self.settle()
        return float(sum(self._ask("total_loss")))

    def line(self, u: Array, v: Array) -> Any:
        """Return the total loss along z + t (u_i v_j - z)."""
        self.settle()
        u, v = u.astype(self.dtype), v.astype(self.dtype)
        answers = self.shards.ask("line", [(part, v) for part in self._split(u)])
        self.reads += 1
        if self.quadratic:
            return parabola(answers)
        self._line = u, v
        return SplitLine(self)

    def heaviest(self) -> float:
        """Bound the largest total weight of one entry."""
        bulk, tail = zip(*self._ask("heaviest_parts"), strict=True)
        return float(max(bulk) + max(tail))

    def weighted_sums(
        self, rows: Array, columns: Array, with_theta: bool = False
    ) -> tuple[Array, Array]:
        """Return the sums of w * columns[j] in every row, and of w * rows[i] in every column."""
        if with_theta and self._moving:
            self.settle()
        self.reads += 1
        args = [(part, columns, with_theta) for part in self._split(rows)]
        row_sums, col_sums = zip(*self.shards.ask("weighted_sums", args), strict=True)
        return join_rows(list(row_sums)), added(*col_sums)

    def weighted_products(self, v: Array) -> Array:
        """Return W V for a block of columns, where W holds the weights."""
        self.reads += 1
        return join_rows(self._ask("weighted_products", v))

    @property
    def n_newest(self) -> int:
        """How many of the newest entries have not been sorted in."""
        return self._arrived - self._cut

    def newest_loss(self, theta: LowRank) -> float:
        """Return the mean loss of another theta on the newest entries."""
        sums = self.shards.ask(
            "newest_sums", [(part,) for part in split_theta(theta, self.workers)]
        )
        loss, weight, _ = map(sum, zip(*sums, strict=True))
        return loss / max(weight, np.finfo(float).tiny)

    def regressions(self, everything: bool) -> SplitRegressions:
        """Return every row's and column's regression of what the offsets leave over."""
        held_out = 0 if everything else min(self.n_newest // 2, NEWEST)
        self.settle()
        self._cut = self._arrived - held_out
        self._bulk, self._due = None, True
        self._tell("regressions", self._cut)
        self._regressing = True
        return SplitRegressions(self)

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        owner, local = row % self.workers, row // self.workers
        asked = [(local,) if k == owner else None for k in range(self.workers)]
        return self.shards.ask("columns_of", asked)[owner]

    def seen(self) -> tuple[Array, Array]:
        """Return the columns in which each row has been observed, increasing: indptr, columns."""
        return join_compressed(self._ask("seen"))

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return what HostEntries with the same entries would; from the log, if need be."""
        try:
            parts = self._ask("part")
        except ClusterLost:
            parts = [self._rebuilt_here(k).part() for k in range(self.workers)]
        return {
            "store": whole_state(parts, self.shape, self._last_batch),
            "pending": self._no_move() if self._moving else None,
            "due": self._due,
            "offset": [self.row_offset.copy(), self.col_offset.copy()],
            "reads": self.reads,
        }

    def _no_move(self) -> list[Any]:
        m1, m2 = self.shape
        return [1.0, np.zeros(m1, self.dtype), np.zeros(m2, self.dtype)]

    def _rebuilt_here(self, k: int) -> EntriesShard:
        shard = EntriesShard(*self._shard_args(k, "cpu"))
        for method, args in self._rebuild(k):
            getattr(shard, method)(*args)
        return shard

    def load_state(self, state: State) -> None:
        """Take over what ``state_dict`` described, of whichever kind of entries."""
        m1, m2 = (len(x) for x in state["offset"])
        if (m1, m2) != self.shape:
            self.grow(m1, m2)
        host = HostEntries(self.shape, self.dtype, self.loss)
        host.load_state(state)
        self.row_offset, self.col_offset = host.row_offset, host.col_offset
        self.reads, self._due = host.reads, host._due
        self._moving = host._pending is not None
        self._last_batch = host.store.last_batch
        parts = split_state(host, self.workers)
        self._bulk, self._cut, self._arrived = host.n_sorted, 1, 1 + host.n_newest
        for k, (bulk, tail, numbers) in enumerate(parts):
            merged = np.zeros(bulk[0].size, np.int64)
            for start in range(0, merged.size, AT_ONCE):
                some = slice(start, start + AT_ONCE)
                self._load(k, [x[some] for x in bulk], merged[some])
            self._load(k, tail, numbers)
        self._tell("merge", self._cut)
        self._send_offsets()
        self._ask("wait")  # until all is there

    def _load(self, k: int, entries: list[Array], numbers: Array) -> None:
        """Give a shard entries with their predictions."""
        row, col, z, c, s = entries
        self._log.append(k, [row, col, c, s, numbers])
        message = (row, col, z, c, s, numbers, self._cut)
        self.shards.tell("load", [message if j == k else None for j in range(self.workers)])

    def in_one_process(self) -> HostEntries:
        """Return the same entries in the memory of this process."""
        host = HostEntries(self.shape, self.dtype, self.loss)
        host.load_state(self.state_dict())
        return host

    def home_state(self) -> dict[str, Any]:
        """Return the attributes of the same entries in one process."""
        return self.in_one_process().__getstate__()


class RemoteBlock:
    """G V of the last read, with the workers."""

    def __init__(self, entries: ShardedEntries) -> None:
        self._entries, self.dtype = entries, entries.dtype

    def __matmul__(self, coefficients: Array) -> Array:
        return join_rows(self._entries._ask("combined", coefficients))
