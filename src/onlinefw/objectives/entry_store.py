"""Observed entries of a matrix: a sorted bulk, and a tail of the newest."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from .._threads import balanced_blocks
from .._typing import Array, State
from ..kernels import blocks as block_kernels
from ..kernels import entries as kernels
from .sorted_store import SortedStore
from .tail import Tail

__all__ = ["EntryStore", "due_for_merge"]

#: The tail is sorted into the bulk when it has more entries than this, and than the square root of
#: MERGE_COST * (entries in the bulk) * (entries of the last batch). A longer tail makes rounds
#: slow, a shorter one merges frequent; there both cost the same, if merging an entry takes as long
#: as three quarters of what an entry in the tail costs per round.
SHORTEST_TAIL = 1024
#: More would take more memory to sort (44 bytes an entry) than merging takes time.
LONGEST_TAIL = 2**23
MERGE_COST = 1.5
#: So many of the newest entries stay in the tail, where nothing but Frank-Wolfe steps sees them.
NEWEST = 2**15
#: Columns are ranked by popularity again when the store has grown by this factor.
RERANK_FACTOR = 16


class EntryStore:
    """All entries observed, with what is carried at each.

    Columns are numbered by popularity, so that the popular ones share cache lines.

    Attributes
    ----------
    bulk, tail
        The sorted entries, and the newest in the order in which they came.
    rank : ndarray of int
        Column -> its number in the store.
    combine : bool
        Whether repeated observations of an entry are summed up.
    last_batch : int
        How many entries came last.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, combine: bool) -> None:
        m1, m2 = shape
        self.dtype, self.combine = dtype, combine
        self.bulk, self.tail = SortedStore.empty(m1, dtype), Tail(dtype)
        self.rank = np.arange(m2)
        self._ranked_at = self.last_batch = 0

    def __len__(self) -> int:
        return self.bulk.size + len(self.tail)

    @property
    def parts(self) -> tuple[SortedStore, Tail]:
        """The bulk and the tail."""
        return self.bulk, self.tail

    @property
    def n_sorted(self) -> int:
        """How many entries are in the bulk."""
        return self.bulk.size

    @property
    def n_tail(self) -> int:
        """How many are in the tail."""
        return len(self.tail)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.bulk.indptr.size - 1, self.rank.size

    def blocks(self) -> Array:
        """Return ranges of rows, one per thread, with about equally many sorted entries."""
        return balanced_blocks(self.bulk.indptr)

    def by_rank(self, columns: Array, dtype: Any = None) -> Array:
        """Return values of the columns in the store's order."""
        out = np.empty(columns.shape, dtype or columns.dtype)
        out[self.rank] = columns
        return out

    # Growing --------------------------------------------------------------------------------------

    def append(self, rows: Array, cols: Array, z: Array, c: Array, s: Array) -> None:
        """Add observations to the tail."""
        self.tail.append(rows, self.rank[cols], z, c, s)
        self.last_batch = rows.size

    def grow(self, m1: int, m2: int) -> None:
        """Add empty rows and columns at the end."""
        self.bulk.grow(m1)
        self.rank = np.append(self.rank, np.arange(self.rank.size, m2))

    def merge(self, n: int) -> None:
        """Sort the n oldest entries of the tail into the bulk. Slopes are not carried over."""
        oldest = self.tail.take_oldest(n, self.shape[0])
        self.bulk.merge(oldest, self.combine)
        if self.bulk.size >= RERANK_FACTOR * self._ranked_at:
            self.rerank()

    def rerank(self) -> None:
        """Number the columns by popularity."""
        m2 = self.rank.size
        counts = np.bincount(self.bulk.col, minlength=m2)
        renumber = np.empty(m2, np.int64)
        renumber[np.argsort(-counts, kind="stable")] = np.arange(m2)
        self.rank = renumber[self.rank]
        self.bulk.renumber_columns(renumber)
        self.tail.col[:] = renumber[self.tail.col]
        self._ranked_at = max(1, self.bulk.size)

    # Asking ---------------------------------------------------------------------------------------

    def rows_and_columns(self) -> tuple[Array, Array]:
        """Return row and column of every entry: bulk, then tail."""
        column = np.argsort(self.rank)  # position -> column
        rows = (self.bulk.rows(), self.tail.row)
        return np.concatenate(rows), column[self.carried("col")]

    def carried(self, name: str) -> Array:
        """Return col, z, c, s or g of every entry, in the same order."""
        return np.concatenate([getattr(part, name) for part in self.parts])

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        bulk, tail = self.parts
        found = bulk.col[bulk.indptr[row] : bulk.indptr[row + 1]], tail.col[tail.row == row]
        return np.unique(np.argsort(self.rank)[np.concatenate(found)])

    def seen(self) -> tuple[Array, Array]:
        """Return the columns in which each row has been observed, increasing: indptr, columns."""
        (m1, m2), (bulk, tail) = self.shape, self.parts
        keys = np.unique(tail.row.astype(np.int64) * m2 + tail.col)
        rows, cols = np.divmod(keys, max(m2, 1))
        starts = np.searchsorted(rows, np.arange(m1 + 1))
        lengths = np.zeros(m1 + 1, np.int64)
        kernels.count_seen(bulk.indptr, bulk.col, starts, cols, lengths[1:])
        indptr = np.cumsum(lengths)
        columns, out = np.argsort(self.rank).astype(np.uint32), np.empty(indptr[-1], np.uint32)
        kernels.fill_seen(bulk.indptr, bulk.col, starts, cols, columns, indptr, out)
        return indptr, out

    def weighted_sums(self, rows: Array, columns: Array, share: float) -> tuple[Array, Array]:
        """Sum c (columns[j] + share z) in every row, c (rows[i] + share z) in every column."""
        (m1, m2), (bulk, tail) = self.shape, self.parts
        blocks, by_rank = self.blocks(), self.by_rank(columns, float)
        row_sums, acc = np.zeros(m1), np.zeros((len(blocks) - 1, m2))
        kernels.weighted_sums(
            blocks, bulk.indptr, bulk.col, bulk.c, bulk.z, share, rows, by_rank, row_sums, acc
        )
        col_sums = acc.sum(axis=0)
        row_sums += np.bincount(tail.row, tail.c * (by_rank[tail.col] + share * tail.z), m1)
        col_sums += np.bincount(tail.col, tail.c * (rows[tail.row] + share * tail.z), m2)
        return row_sums, col_sums[self.rank]

    def weighted_products(self, v: Array) -> Array:
        """Return C v for a block of columns, where C holds the weights c. One read."""
        bulk, tail = self.parts
        by_rank = self.by_rank(v, float)
        y = np.zeros((self.shape[0], v.shape[1]))
        block_kernels.forward(self.blocks(), bulk.indptr, bulk.col, bulk.c, by_rank, y)
        np.add.at(y, tail.row, tail.c[:, None] * by_rank[tail.col])
        return y

    def squared_norms(self) -> tuple[float, float]:
        """Return the squared Frobenius norms of the slopes in the bulk and in the tail.

        They are infinite where repeats are kept apart: an entry may be more than once in the bulk.
        """
        if not self.combine:
            return np.inf, np.inf
        tail = self.tail
        keys = tail.row.astype(np.int64) * self.rank.size + tail.col
        newest = np.bincount(np.unique(keys, return_inverse=True)[1], tail.g)
        return float(kernels.sum_of_squares(self.bulk.g)), float(newest @ newest)

    def dense_slopes(self) -> Array:
        """Return the slopes as a matrix."""
        slopes = np.zeros(self.shape)
        np.add.at(slopes, self.rows_and_columns(), self.carried("g"))
        return slopes

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers."""
        return {
            "bulk": self.bulk.state_dict(),
            "tail": self.tail.state_dict(),
            "rank": self.rank.copy(),
            "ranked_at": self._ranked_at,
            "last_batch": self.last_batch,
        }

    @classmethod
    def from_state(cls, state: State, dtype: Any, combine: bool) -> EntryStore:
        """Make the store that ``state_dict`` described."""
        store = cls((0, 0), dtype, combine)
        store.bulk = SortedStore.from_state(state["bulk"])
        store.tail = Tail.from_state(state["tail"], dtype)
        store.rank = np.array(state["rank"])
        store._ranked_at, store.last_batch = int(state["ranked_at"]), int(state["last_batch"])
        return store


def due_for_merge(bulk: int, tail: int, last_batch: int) -> int:
    """Return how many of the oldest entries of a tail are to be sorted in; 0 while it is short."""
    longest = int(min(max(SHORTEST_TAIL, sqrt(MERGE_COST * bulk * last_batch)), LONGEST_TAIL))
    return 0 if tail <= longest else tail - min(longest // 2, NEWEST)
