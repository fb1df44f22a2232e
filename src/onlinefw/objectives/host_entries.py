"""Observed entries in the memory of this process: their predictions, slopes and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._threads import threads_for
from .._typing import Array, State
from ..iterates import LowRank
from ..kernels import blocks as block_kernels
from ..kernels import entries as kernels
from ..kernels.lanes import LANES
from ..losses import Loss
from .entry_store import EntryStore
from .host_line import entries_line, total_loss
from .host_regressions import HostRegressions
from .sorted_store import SortedStore
from .stored_entries import StoredEntries
from .tail import Tail

__all__ = ["HostEntries"]


class HostEntries(StoredEntries):
    """:class:`~onlinefw.objectives.stored_entries.StoredEntries` in this process's memory.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    dtype, loss
        As there.
    """

    store: EntryStore

    def __init__(self, shape: tuple[int, int], dtype: Any, loss: Loss) -> None:
        super().__init__(dtype, loss)
        self.store = EntryStore(shape, dtype, self.combine)
        self.row_offset, self.col_offset = (np.zeros(size, dtype) for size in shape)
        self._buffers: dict[str, Array] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_buffers": {}}  # memory to work in, no state

    @staticmethod
    def there(array: Array) -> Array:
        """Return an array where the entries are: here."""
        return array

    @staticmethod
    def theta_there(theta: LowRank) -> LowRank:
        """Return theta where the entries are."""
        return theta

    # Growing --------------------------------------------------------------------------------------

    def observe(self, theta: LowRank, rows: Array, cols: Array, w: Array, y: Array) -> Array:
        """Add entries with their weights and values; return theta there."""
        z = theta.entries(rows, cols)
        self.append(rows, cols, z, w, w * y if self.combine else y)
        return z

    def grow(self, m1: int, m2: int) -> None:
        """Make room for m1 rows and m2 columns."""
        self.settle()
        old1, old2 = self.shape
        self.store.grow(m1, m2)
        self.row_offset = np.pad(self.row_offset, (0, m1 - old1))
        self.col_offset = np.pad(self.col_offset, (0, m2 - old2))

    def set_offsets(self, rows: Array, columns: Array) -> None:
        """Predict theta[i, j] + rows[i] + columns[j] from now on."""
        self.row_offset, self.col_offset = np.array(rows, self.dtype), np.array(columns, self.dtype)
        self._due = True

    # Moving ---------------------------------------------------------------------------------------

    def _held(self, u: Array, v: Array) -> tuple[Array, Array]:
        return u.astype(self.dtype), self.store.by_rank(v, self.dtype)

    def _nothing(self) -> tuple[Array, Array]:
        m1, m2 = self.shape
        return np.zeros(m1, self.dtype), np.zeros(m2, self.dtype)

    def _let_wait(self, keep: float, u: Array, v: Array) -> None:
        self._pending = (keep, u, v)
        tail = self.store.tail
        kernels.tail_move(tail.row, tail.col, tail.z, self.dtype.type(keep), u, v)

    def place(self, theta: LowRank) -> None:
        """Z <- theta at every entry."""
        self._move_now(0.0, theta.left, theta.right * theta.weights.astype(self.dtype))
        self._pending = None

    def _move_now(self, keep: float, left: Array, right: Array) -> None:
        by_rank = self.store.by_rank(right, self.dtype)
        left = np.ascontiguousarray(left, self.dtype)
        blocks, keep = self.store.blocks(), self.dtype.type(keep)
        bulk, tail = self.store.parts
        block_kernels.factor_rows(blocks, bulk.indptr, bulk.col, left, by_rank, keep, bulk.z)
        block_kernels.tail_factor(tail.row, tail.col, left, by_rank, keep, tail.z)
        self.reads += 1
        self._due = True

    def settle(self) -> None:
        """Carry a pending move out and renew the slopes, without a product."""
        if self._pending is not None or self._due:
            m2 = self.shape[1]
            self._read_all(np.zeros((m2, LANES), self.dtype), self._ones)

    # Products with the slopes ---------------------------------------------------------------------

    def read(self, v: Array, row_scale: Array | None) -> tuple[Array, Array, float]:
        """Carry out what is pending; return G V, G' (row_scale G V) and <z, g>.

        V is a block of at most eight columns; without a ``row_scale`` it is 1 for all rows.
        """
        k = v.shape[1]
        row_scale = self._ones if row_scale is None else row_scale
        padded = np.zeros((v.shape[0], LANES), self.dtype)
        padded[self.store.rank, :k] = v
        y, w, z_dot_g = self._read_all(padded, row_scale)
        return y[:, :k], w[self.store.rank, :k], z_dot_g

    def _read_all(self, v: Array, row_scale: Array) -> tuple[Array, Array, float]:
        """Do that for eight columns, by rank."""
        keep, u, right = self._pending or (1.0, *self._nothing())
        self._pending, self._due = None, False
        m1, m2 = self.shape
        columns = np.empty((m2, 2), self.dtype)
        columns[:, 0] = right
        columns[self.store.rank, 1] = self.col_offset
        self._renew_tail(columns[:, 1])
        blocks = self.store.blocks()
        y = self._zeros("y", (m1, LANES))
        acc = self._zeros("acc", (len(blocks) - 1, m2, LANES))
        self.store.tail.multiply(v, y)
        sums = np.zeros(len(blocks) - 1)
        fused = (
            kernels.move_and_normal_quadratic if self.quadratic else kernels.move_and_normal_general
        )
        fused(
            blocks, *self.store.bulk.arrays, self.dtype.type(keep), u,
            self.row_offset, columns, max(self.kind, 0), self.parameter,
            row_scale, v, y, acc, sums,
        )  # fmt: skip
        self.reads += 1
        z_dot_g = float(sums.sum())
        if self.kind < 0:  # a loss of the user's own: its slopes in numpy, then the products
            z_dot_g = self._renew_by_loss()
            y, w = self._block_by_block(v, row_scale)
        else:
            w = acc.sum(axis=0)
            self.store.tail.multiply_transposed(row_scale, y, w)
        return y, w, z_dot_g + float(np.dot(self.store.tail.z.astype(float), self.store.tail.g))

    @property
    def _ones(self) -> Array:
        return np.ones(self.shape[0], self.dtype)

    def _zeros(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return zeros in memory that is used again: fresh pages cost more than the products."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.shape != shape:
            buffer = self._buffers[name] = np.empty(shape, self.dtype)
        buffer.fill(0)
        return buffer

    def _renew_tail(self, col_offset: Array) -> None:
        tail = self.store.tail
        if self.kind >= 0:
            kernels.tail_slopes(
                tail.row, tail.col, tail.z, tail.c, tail.s, tail.g,
                self.row_offset, np.ascontiguousarray(col_offset), self.kind, self.parameter,
            )  # fmt: skip
        else:
            tail.g[:] = self.slopes(self.predictions(tail), tail.c, tail.s)

    def _renew_by_loss(self) -> float:
        store = self.store.bulk
        store.g[:] = self.slopes(self.predictions(store), store.c, store.s)
        return float(store.z @ store.g)

    def predictions(self, part: SortedStore | Tail) -> Array:
        """Return theta plus offsets at the entries of a part of the store."""
        if not (self.row_offset.any() or self.col_offset.any()):
            return part.z
        by_rank = self.store.by_rank(self.col_offset)
        rows = part.row if isinstance(part, Tail) else part.rows()
        return part.z + (self.row_offset[rows] + by_rank[part.col])

    def slopes(self, at: Array, c: Array, s: Array) -> Array:
        """Slopes by the loss itself (its kernel would be faster, where there is one)."""
        if self.combine:
            return c * self.loss.derivative(at, 0.0) - s
        return c * self.loss.derivative(at, s)

    def _block_by_block(self, v: Array, row_scale: Array) -> tuple[Array, Array]:
        columns = [self._normal(np.ascontiguousarray(x), row_scale) for x in v.T]
        self.reads -= len(columns) - 1  # slow losses are slow for another reason
        return np.column_stack([y for y, _ in columns]), np.column_stack([w for _, w in columns])

    def normal(self, v: Array, row_scale: Array | None) -> tuple[Array, Array]:
        """Return G v and G' (row_scale G v) with one read."""
        row_scale = self._ones if row_scale is None else row_scale
        y, w = self._normal(self.store.by_rank(v, self.dtype), row_scale)
        return y, w[self.store.rank]

    def _normal(self, v: Array, row_scale: Array) -> tuple[Array, Array]:
        """Do that with columns by rank."""
        m1, m2 = self.shape
        y = np.zeros((m1, 1), self.dtype)
        self.store.tail.multiply(v[:, None], y)
        with threads_for(len(self)):
            blocks = self.store.blocks()
            acc = np.zeros((len(blocks) - 1, m2), self.dtype)
            kernels.normal(
                blocks, *self.store.bulk.products, row_scale, v, y[:, 0], acc, self.combine
            )  # fmt: skip
        w = acc.sum(axis=0)
        self.store.tail.multiply_transposed(row_scale, y, w[:, None])
        self.reads += 1
        return y[:, 0], w

    @staticmethod
    def brought_home(
        v: Array, w: Array, y: Any, z_dot_g: float
    ) -> tuple[Array, Array | None, Array | None, float]:
        """Return V' W on the host; W' W and Y' Y, if they come with it; and <z, g>."""
        with np.errstate(over="ignore", invalid="ignore"):  # whoever asks looks
            return v.T @ w, None, None, z_dot_g

    @staticmethod
    def mixed(y: Any, to_left: Array, w: Array, to_right: Array) -> tuple[Array, Array]:
        """Return Y to_left and W to_right, in double precision."""
        return (y @ to_left.astype(y.dtype)).astype(float), w @ to_right

    def forward(self, v: Array) -> Array:
        """Return G V with one read, in double precision."""
        by_rank = self.store.by_rank(v, float)
        y = np.zeros((self.shape[0], v.shape[1]))
        block_kernels.forward(self.store.blocks(), *self.store.bulk.products, by_rank, y)
        self.store.tail.multiply(by_rank, y)
        self.reads += 1
        return y

    def backward(self, u: Array) -> Array:
        """Return G' U with one read, in double precision."""
        blocks, (m1, m2) = self.store.blocks(), self.shape
        y = np.ascontiguousarray(u, dtype=float)
        acc = np.zeros((len(blocks) - 1, m2, u.shape[1]))
        block_kernels.backward(blocks, *self.store.bulk.products, y, acc)
        w = acc.sum(axis=0)
        self.store.tail.multiply_transposed(np.ones(m1, self.dtype), y, w)
        self.reads += 1
        return w[self.store.rank]

    def squared_norms(self) -> tuple[float, float]:
        """Return those of the slopes, sorted ones and newest; infinite where repeats are apart."""
        with threads_for(len(self)):
            return self.store.squared_norms()

    def dense_slopes(self) -> Array:
        """Return the slopes as a matrix."""
        return self.store.dense_slopes()

    # Other sums -----------------------------------------------------------------------------------

    def total_loss(self) -> float:
        """Return the total loss; of the square loss, without the squares of the values."""
        self.settle()
        with threads_for(len(self)):
            return total_loss(self)

    def line(self, u: Array, v: Array) -> Any:
        """Return the total loss along z + t (u_i v_j - z)."""
        self.settle()
        with threads_for(len(self)):
            return entries_line(self, u.astype(self.dtype), self.store.by_rank(v, self.dtype))

    def heaviest_parts(self) -> tuple[float, float]:
        """Return the largest total weight of one entry, sorted ones and newest."""
        bulk, tail = self.store.parts
        if self.combine:  # an entry stands there once
            total = float(bulk.c.max(initial=0.0))
        else:
            blocks = self.store.blocks()
            total = float(block_kernels.heaviest(blocks, bulk.indptr, bulk.col, bulk.c))
        keys = tail.row.astype(np.int64) * self.shape[1] + tail.col
        weights = np.bincount(np.unique(keys, return_inverse=True)[1], tail.c)
        return total, float(weights.max(initial=0.0))

    def weighted_sums(
        self, rows: Array, columns: Array, with_theta: bool = False
    ) -> tuple[Array, Array]:
        """Return the sums of w * columns[j] in every row, and of w * rows[i] in every column."""
        if with_theta and self._pending is not None:
            self.settle()
        self.reads += 1
        return self.store.weighted_sums(rows, columns, float(with_theta))

    def weighted_products(self, v: Array) -> Array:
        """Return W V for a block of columns, where W holds the weights."""
        self.reads += 1
        return self.store.weighted_products(v)

    def _newest(self, theta: LowRank | None, since: int) -> tuple[Array, Array, Array]:
        tail = self.store.tail
        if theta is None:
            at = self.predictions(tail)[since:]
        else:
            rows, cols = tail.row[since:], np.argsort(self.store.rank)[tail.col[since:]]
            at = theta.entries(rows, cols) + (self.row_offset[rows] + self.col_offset[cols])
        return at, tail.c[since:], tail.s[since:]

    def regressions_of_sorted(self) -> HostRegressions:
        """Return the regressions of what has been sorted in, just after a merge."""
        store, bulk = self.store, self.store.bulk
        all_ones = bulk.size == 0 or bulk.c.min() == 1.0 == bulk.c.max()
        target = bulk.g  # the slopes are due after a merge, so their memory is free
        kernels.targets(
            store.blocks(), bulk.indptr, bulk.col, bulk.c, bulk.s,
            self.row_offset, store.by_rank(self.col_offset), target,
        )  # fmt: skip
        weight = bulk.c[:0] if all_ones else bulk.c
        return HostRegressions(bulk.indptr, bulk.col, weight, target, store.rank)

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        return self.store.columns_of(row)

    def seen(self) -> tuple[Array, Array]:
        """Return the columns in which each row has been observed, increasing: indptr, columns."""
        with threads_for(len(self)):
            return self.store.seen()

    # State ----------------------------------------------------------------------------------------

    def columns(self) -> tuple[list[Array], list[Array]]:
        """Return row, column, z, c, s and g of the sorted entries, and of the newest.

        A pending move is carried out in what is returned, not here.
        """
        store, (bulk, tail) = self.store, self.store.parts
        column, rows = np.argsort(store.rank).astype(np.uint32), bulk.rows().astype(np.uint32)
        z = bulk.z
        if self._pending is not None:
            keep, u, right = self._pending
            z = self.dtype.type(keep) * z + u[rows] * right[bulk.col]
        return (
            [rows, column[bulk.col], z, bulk.c, bulk.s, bulk.g],
            [tail.row, column[tail.col], tail.z, tail.c, tail.s, tail.g],
        )

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers."""
        pending = self._pending
        return {
            "store": self.store.state_dict(),
            "pending": None if pending is None else list(pending),
            "due": self._due,
            "offset": [self.row_offset.copy(), self.col_offset.copy()],
            "reads": self.reads,
        }

    def load_state(self, state: State) -> None:
        """Take over what ``state_dict`` described."""
        self.store = EntryStore.from_state(state["store"], self.dtype, self.combine)
        if state["pending"] is not None:
            keep, u, right = state["pending"]
            self._pending = (float(keep), np.array(u), np.array(right))
        self._due, self.reads = bool(state["due"]), int(state["reads"])
        self.row_offset, self.col_offset = (np.array(x) for x in state["offset"])
