"""Observed entries of a matrix in this process's memory: sorted ones, and a tail of the newest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._threads import blocks_for, share
from ..._typing import Array, State
from ...kernels import entries as kernels
from ...kernels import merging
from ..columns import Columns
from ..entries_state import VALUES, Counts
from ..leaving import sums_of
from .sorted_store import Merging, SortedStore

__all__ = ["EntryStore", "Unfinished", "new_tail", "without_oldest"]

#: The arrays of a tail, as a state names them.
TAIL = ("row", "col", *VALUES)
#: Columns are ranked by popularity again when the store has grown by this factor.
RERANK_FACTOR = 32


class EntryStore:
    """All entries observed. A store does not change: its methods return other stores.

    Columns are numbered by popularity, so that the popular ones share cache lines: ``rank`` has the
    number of each column, and ``ranked_at`` says how many entries were sorted when columns were
    last numbered. The tail has the newest entries, in the order in which they came. Where entries
    that were not observed count, it says of each whether it is the ``first`` observation of its
    entry (1) or not (0); sorted entries are there once.
    """

    __slots__ = (
        "counts", "n_newest", "n_sorted", "rank", "ranked_at", "shape", "size", "sorted", "tail",
    )  # fmt: skip

    def __init__(
        self, sorted: SortedStore, tail: Columns, rank: Array, ranked_at: int, counts: Counts
    ) -> None:
        self.sorted, self.tail, self.rank, self.ranked_at = sorted, tail, rank, ranked_at
        self.counts = counts
        self.shape = sorted.indptr.size - 1, rank.size
        self.n_sorted, self.n_newest = sorted.col.size, tail.arrays[0].size
        self.size = self.n_sorted + self.n_newest

    @classmethod
    def empty(cls, shape: tuple[int, int], dtype: np.dtype) -> EntryStore:
        """Return a store for a matrix of which nothing has been observed."""
        m1, m2 = shape
        return cls(SortedStore.empty(m1, dtype), new_tail(dtype), np.arange(m2), 0, Counts())

    @classmethod
    def from_state(cls, state: State, dtype: np.dtype) -> EntryStore:
        """Make the store that a checked state of any place describes; nothing is ``first``."""
        held = state["sorted"]
        indices = held["indptr"].astype(np.int64), held["col"].astype(np.uint32)
        z, c, s = (np.array(held[name]) for name in VALUES)
        return cls(
            SortedStore(*indices, z, c, s, np.zeros_like(z)),
            new_tail(dtype).extended(*(state["tail"][x] for x in TAIL), 0.0, 0.0),
            state["rank"].astype(np.int64),
            int(state["ranked_at"]),
            Counts.of(state["counts"]),
        )

    def blocks(self) -> Array:
        """Return ranges of rows, one per thread, that take about equally long."""
        return self.sorted.blocks()

    def by_rank(self, columns: Array, dtype: Any = None) -> Array:
        """Return values of the columns in the store's order."""
        out = np.empty(columns.shape, dtype or columns.dtype)
        out[self.rank] = columns
        return out

    # Growing --------------------------------------------------------------------------------------

    def extended(
        self,
        rows: Array,
        cols: Array,
        z: Array,
        c: Array,
        s: Array,
        counts: Counts,
        finding: bool = False,
    ) -> EntryStore:
        """Return a store with more observations in the tail; if ``finding``, first ones are."""
        cols = self.rank[cols]
        first: Any = self._first(rows, cols, *self.tail.arrays[:2]) if finding else 0.0
        tail = self.tail.extended(rows, cols, z, c, s, 0.0, first)
        return EntryStore(self.sorted, tail, self.rank, self.ranked_at, counts)

    def with_first(self) -> EntryStore:
        """Return the same store, in which the first observations of entries are found."""
        row, col = self.tail.arrays[:2]
        tail = self.tail.replaced({6: self._first(row, col, row[:0], col[:0])})
        return EntryStore(self.sorted, tail, self.rank, self.ranked_at, self.counts)

    def _first(self, rows: Array, cols: Array, tail_rows: Array, tail_cols: Array) -> Array:
        """Return 1 for new observations of entries that are nowhere yet, 0 for the others."""
        m2, held = self.rank.size, self.sorted
        keys, first = rows.astype(np.int64) * m2 + cols, np.ones(rows.size, held.z.dtype)
        order = np.argsort(keys, kind="stable")
        arrays = held.indptr, held.col, tail_rows, tail_cols
        merging.first_of_entries(*arrays, keys, order, m2, first)
        return first

    @property
    def n_distinct(self) -> int:
        """How many entries have been observed, if first observations were found."""
        return self.n_sorted + int(self.tail.arrays[6].sum(dtype=float))

    def grown(self, m1: int, m2: int) -> EntryStore:
        """Return a store with empty rows and columns at the end."""
        rank = np.append(self.rank, np.arange(self.rank.size, m2))
        return EntryStore(self.sorted.grown(m1), self.tail, rank, self.ranked_at, self.counts)

    def merged(self, n: int, combine: bool) -> EntryStore | Unfinished:
        """Return a store with the n oldest entries of the tail among the sorted ones."""
        oldest, rest = without_oldest(self.tail, n, self.shape[0])
        both = self.sorted.merged(oldest, combine)
        return self._changed(both, rest, self.rank, self.ranked_at)

    @property
    def wants_ranking(self) -> bool:
        """Whether popularity may have changed much since columns were numbered."""
        return self.sorted.size >= max(1, RERANK_FACTOR * self.ranked_at)

    def reranked(self) -> EntryStore | Unfinished:
        """Return a store whose columns are numbered by popularity."""
        m2 = self.rank.size
        counts = np.bincount(self.sorted.col, minlength=m2)
        renumber = np.empty(m2, np.int64)
        renumber[np.argsort(-counts, kind="stable")] = np.arange(m2)
        row, col, *values = self.tail.arrays
        tail = Columns.empty([array.dtype for array in self.tail.arrays])
        tail = tail.extended(row, renumber[col], *values)
        again = self.sorted.renumbered(renumber)
        return self._changed(again, tail, renumber[self.rank], max(1, self.sorted.size))

    def rescaled(self, factor: float, targets: bool) -> EntryStore:
        """Return a store with other weights (and targets, if these are weighted)."""
        c, s = self.tail.arrays[3:5]
        changed = {3: factor * c, 4: factor * s} if targets else {3: factor * c}
        scaled, counts = self.sorted.rescaled(factor, targets), self.counts.scaled(factor)
        return EntryStore(scaled, self.tail.replaced(changed), self.rank, self.ranked_at, counts)

    def without_light(
        self, least: float, sums_repeats: bool
    ) -> tuple[EntryStore, tuple[float, float]]:
        """Return a store without the entries that weigh less, and their sums; no tail."""
        kept = self.sorted.c >= least
        gone = sums_of(self.sorted.c[~kept], self.sorted.s[~kept], sums_repeats)
        return self._with_fewer(self.sorted.chosen(kept), gone), gone

    def without_row(self, row: int, sums_repeats: bool) -> tuple[EntryStore, tuple[Array, ...]]:
        """Return a store without a row's entries, and their columns, c and s; no tail."""
        held = self.sorted
        its = slice(*held.indptr[row : row + 2].tolist())
        c, s, columns = held.c[its].copy(), held.s[its].copy(), np.argsort(self.rank)[held.col[its]]
        gone = sums_of(c, s, sums_repeats)
        return self._with_fewer(held.without_row(row), gone), (columns, c, s)

    def _with_fewer(self, rest: SortedStore, gone: tuple[float, float]) -> EntryStore:
        counts = self.counts.without(*gone, rest.size)
        return EntryStore(rest, self.tail, self.rank, self.ranked_at, counts)

    def _changed(
        self, change: SortedStore | Merging, tail: Columns, rank: Array, ranked_at: int
    ) -> EntryStore | Unfinished:
        if isinstance(change, SortedStore):
            return EntryStore(change, tail, rank, ranked_at, self.counts)
        before = EntryStore(change.before, self.tail, self.rank, self.ranked_at, self.counts)
        after = EntryStore(change.after, tail, rank, ranked_at, self.counts)
        return Unfinished(before, after, change)

    # Asking ---------------------------------------------------------------------------------------

    def rows_and_columns(self) -> tuple[Array, Array]:
        """Return row and column of every entry: sorted ones, then the tail."""
        row, col = self.tail.arrays[:2]
        rows = np.concatenate((self.sorted.rows(), row))
        # The inverse of ``rank`` gives the column of each number.
        return rows, np.argsort(self.rank)[np.concatenate((self.sorted.col, col))]

    def values(self, name: str) -> Array:
        """Return z, c, s or g of every entry, in the same order."""
        position = ("row", "col", "z", "c", "s", "g").index(name)
        return np.concatenate((getattr(self.sorted, name), self.tail.arrays[position]))

    def columns_of(self, row: int) -> Array:
        held, (rows, cols) = self.sorted, self.tail.arrays[:2]
        found = held.col[held.indptr[row] : held.indptr[row + 1]], cols[rows == row]
        return np.unique(np.argsort(self.rank)[np.concatenate(found)])

    def seen(self) -> tuple[Array, Array]:
        (m1, m2), held, (row, col) = self.shape, self.sorted, self.tail.arrays[:2]
        keys = np.unique(row.astype(np.int64) * m2 + col)
        rows, cols = np.divmod(keys, max(m2, 1))
        starts = np.searchsorted(rows, np.arange(m1 + 1))
        lengths = np.zeros(m1 + 1, np.int64)
        share(merging.count_seen, self.blocks(), held.indptr, held.col, starts, cols, lengths[1:])
        indptr = np.cumsum(lengths)
        columns, out = np.argsort(self.rank).astype(np.uint32), np.empty(indptr[-1], np.uint32)
        arrays = held.indptr, held.col, starts, cols, columns, indptr, out
        share(merging.fill_seen, self.blocks(), *arrays)
        return indptr, out

    def weighted_sums(self, rows: Array, columns: Array, of_z: float) -> tuple[Array, Array]:
        """Sum c (columns[j] + of_z z) in every row, c (rows[i] + of_z z) in every column."""
        (m1, m2), held, (row, col, z, c, *_) = self.shape, self.sorted, self.tail.arrays
        blocks, by_rank = self.blocks(), self.by_rank(columns, float)
        row_sums, acc = np.zeros(m1), np.zeros((len(blocks) - 1, m2))
        arrays = held.indptr, held.col, held.c, held.z
        share(kernels.weighted_sums, blocks, *arrays, of_z, rows, by_rank, row_sums, acc)
        col_sums = acc.sum(axis=0)
        kernels.tail_weighted_sums(row, col, c, z, of_z, rows, by_rank, row_sums, col_sums)
        return row_sums, col_sums[self.rank]

    def newest_by_entry(self, values: Array) -> Array:
        """Return the sums of values of the tail at every entry, which may be there repeatedly."""
        row, col = self.tail.arrays[:2]
        keys = row.astype(np.int64) * self.rank.size + col
        return np.bincount(np.unique(keys, return_inverse=True)[1], values)


class Unfinished:
    """A large store while it is changed in place.

    It acts as the old store until the change is done, and as the new one from then on. So an
    interrupt leaves one or the other.
    """

    def __init__(self, before: EntryStore, after: EntryStore, change: Merging) -> None:
        self._before, self._after, self._change = before, after, change

    def finish(self) -> EntryStore:
        """Carry out the change; return the new store."""
        self._change.run()
        return self._after

    def __getattr__(self, name: str) -> Any:
        if name in ("_before", "_after", "_change"):  # __init__ has not set it yet
            raise AttributeError(name)
        return getattr(self._after if self._change.is_done else self._before, name)


def new_tail(dtype: np.dtype) -> Columns:
    """Return an empty tail: columns for row, column, z, c, s, g and first."""
    return Columns.empty((np.uint32, np.uint32, *[dtype] * 5))


def without_oldest(tail: Columns, n: int, n_rows: int) -> tuple[SortedStore, Columns]:
    """Return the n oldest entries, sorted by row and column, and the others as a tail."""
    row, *oldest, g, _ = (array[:n] for array in tail.arrays)
    indptr, order = np.zeros(n_rows + 1, np.int64), np.empty(n, np.int64)
    merging.sort_by_row(row, oldest[0], indptr, order)
    ordered = tuple(np.empty_like(x) for x in oldest)
    share(merging.take_four, blocks_for(n, n), order, tuple(oldest), ordered)
    return SortedStore(indptr, *(*ordered, np.zeros_like(g))), tail.without_first(n)
