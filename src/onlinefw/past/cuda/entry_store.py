"""Observed entries on a GPU: sorted by rows and by columns, and a tail of the newest."""

from __future__ import annotations

from functools import cached_property

import cupy as cp
import numpy as np

from ..._devices import to_host
from ..._typing import Array, State
from ..columns import Columns
from ..entries_state import VALUES, Counts
from ..leaving import sums_of
from ..unobserved import first_of
from .entry_kernels import kernels
from .segments import Segments, row_of_each

__all__ = ["CudaEntryStore", "CudaSortedStore"]


class CudaSortedStore:
    """Entries in compressed rows, and their order by columns. Methods return other stores.

    Only predictions and slopes change in a store, when theta moves.

    Attributes
    ----------
    indptr, row, col, z, c, s, g : cupy.ndarray
        As of :class:`~onlinefw.past.host.sorted_store.SortedStore`, with the row of each entry.
        Columns keep their own numbers here: the caches of a GPU hold all of a vector.
    by_column : cupy.ndarray of int
        The positions of the entries in compressed rows, column by column.
    column_ptr : cupy.ndarray of int64
        Where each column starts in ``by_column``.
    rows, columns : Segments
        The segments of the rows, and of the columns.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        indptr: Array,
        row: Array,
        col: Array,
        z: Array,
        c: Array,
        s: Array,
    ) -> None:
        self.shape, self.indptr, self.row, self.col = shape, indptr, row, col
        self.z, self.c, self.s = z, c, s
        self._run = kernels(z.dtype.name)
        self.g = cp.zeros(col.size, z.dtype)
        self.by_column = cp.argsort(col).astype(cp.uint32)
        self.row_by_column = row[self.by_column]
        self.g_by_column = cp.empty_like(self.g)
        counts = cp.bincount(col, minlength=shape[1])
        self.column_ptr = cp.concatenate((cp.zeros(1, cp.int64), cp.cumsum(counts)))
        self.rows, self.columns = (Segments(x, self._run) for x in (indptr, self.column_ptr))

    @classmethod
    def empty(cls, shape: tuple[int, int], dtype: np.dtype) -> CudaSortedStore:
        index, value = cp.empty(0, cp.uint32), cp.empty(0, dtype)
        return cls(shape, cp.zeros(shape[0] + 1, cp.int64), index, index, value, value, value)

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.col.size

    @property
    def arrays(self) -> tuple[Array, ...]:
        """row, col, z, c, s and g, as a tail has them."""
        return self.row, self.col, self.z, self.c, self.s, self.g

    def grown(self, m1: int, m2: int) -> CudaSortedStore:
        extra = m1 - self.shape[0]
        indptr = cp.concatenate((self.indptr, cp.full(extra, self.indptr[-1])))
        return CudaSortedStore((m1, m2), indptr, self.row, self.col, self.z, self.c, self.s)

    def rescaled(self, factor: float, targets: bool) -> CudaSortedStore:
        return self._with_values(factor * self.c, factor * self.s if targets else self.s)

    def _with_values(self, c: Array, s: Array) -> CudaSortedStore:
        """Return the same entries with other weights and targets; the next read makes slopes."""
        return CudaSortedStore(self.shape, self.indptr, self.row, self.col, self.z, c, s)

    def chosen(self, mask: Array) -> CudaSortedStore:
        """Return the entries where ``mask`` is True."""
        position = cp.concatenate((cp.zeros(1, cp.int64), cp.cumsum(mask, dtype=cp.int64)))
        kept = (x[mask] for x in (self.row, self.col, self.z, self.c, self.s))
        return CudaSortedStore(self.shape, position[self.indptr], *kept)

    def merged(self, oldest: tuple[Array, ...], combine: bool) -> CudaSortedStore:
        """Return a store with more entries (row, col, z, c, s), which are sorted."""
        row, col, z, c, s = oldest
        # Where each belongs: after the entries equal to it, if repeats are kept apart.
        position = self._position(row, col, after=not combine)
        old_c, old_s = self.c, self.s
        if combine and self.col.size:
            again = self._is_at(position, row, col)
            old_c, old_s = old_c.copy(), old_s.copy()
            old_c[position[again]] += c[again]
            old_s[position[again]] += s[again]
            row, col, z, c, s, position = (x[~again] for x in (row, col, z, c, s, position))
        old = self.row, self.col, self.z, old_c, old_s
        return self._inserted(position, old, (row, col, z, c, s))

    def has(self, row: Array, col: Array) -> Array:
        """Tell of entries whether they are there."""
        if not self.col.size:
            return cp.zeros(row.size, bool)
        return self._is_at(self._position(row, col, after=False), row, col)

    def _position(self, row: Array, col: Array, after: bool) -> Array:
        """Return where entries belong, before or after those equal to them."""
        out = cp.empty(row.size, cp.int64)
        self._run.lower_bounds(row.size, row.size, row, col, self.indptr, self.col, int(after), out)
        return out

    def _is_at(self, position: Array, row: Array, col: Array) -> Array:
        inside = cp.minimum(position, self.col.size - 1)
        return (position < self.indptr[row + 1]) & (self.col[inside] == col)

    def _inserted(
        self, position: Array, old: tuple[Array, ...], new: tuple[Array, ...]
    ) -> CudaSortedStore:
        """Return a store with sorted entries inserted before the given positions."""
        n_old, n_new = self.col.size, position.size
        zeros = cp.zeros(n_old + 1, cp.int64)
        marks = cp.bincount(position, minlength=n_old + 1) if n_new else zeros
        shift = cp.cumsum(marks, dtype=cp.int32)[:n_old]
        merged = [cp.empty(n_old + n_new, array.dtype) for array in old]
        self._run.spread_out(n_old, n_old, shift, *old, *merged)
        final = position + cp.arange(n_new)
        for array, value in zip(merged, new, strict=True):
            array[final] = value
        indptr = self.indptr.copy()
        if n_new:
            indptr[1:] += cp.cumsum(cp.bincount(new[0], minlength=self.shape[0]))
        return CudaSortedStore(self.shape, indptr, *merged)


class CudaEntryStore:
    """All entries observed. A store does not change: its methods return other stores.

    Where entries that were not observed count, the tail says of each entry whether it is the
    ``first`` observation of it, as that of :class:`~onlinefw.past.host.entry_store.EntryStore`.
    """

    def __init__(self, sorted: CudaSortedStore, tail: Columns, counts: Counts) -> None:
        self.sorted, self.tail, self.counts = sorted, tail, counts
        self.shape, self.n_sorted, self.n_newest = sorted.shape, sorted.size, len(tail)
        self.size = self.n_sorted + self.n_newest

    @classmethod
    def empty(cls, shape: tuple[int, int], dtype: np.dtype) -> CudaEntryStore:
        return cls(CudaSortedStore.empty(shape, dtype), _new_tail(dtype), Counts())

    def with_first(self) -> CudaEntryStore:
        """Return the same store, in which the first observations of entries are found."""
        row, col = self.tail.arrays[:2]
        tail = self.tail.replaced({6: self.first(row, col, row[:0], col[:0])})
        return CudaEntryStore(self.sorted, tail, self.counts)

    def first(self, row: Array, col: Array, tail_row: Array, tail_col: Array) -> Array:
        """Return 1 for new observations of entries that are nowhere yet, 0 for the others."""
        m2 = self.shape[1]
        keys, before = (i.astype(cp.int64) * m2 + j for i, j in ((row, col), (tail_row, tail_col)))
        found = first_of(keys, before) & ~self.sorted.has(row, col)
        return found.astype(self.sorted.z.dtype)

    @cached_property
    def n_distinct(self) -> int:
        """How many entries have been observed, if first observations were found."""
        return self.n_sorted + int(self.tail.arrays[6].sum(dtype=float))

    @property
    def rank(self) -> Array:
        """The number of each column in a state: its own."""
        return np.arange(self.shape[1])

    @property
    def ranked_at(self) -> int:
        """At how many sorted entries columns were numbered, for a host that goes on."""
        return max(1, self.n_sorted)

    @property
    def parts(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """row, col, z, c, s and g of the sorted entries, and of the tail."""
        return self.sorted.arrays, self.tail.arrays

    def grown(self, m1: int, m2: int) -> CudaEntryStore:
        return CudaEntryStore(self.sorted.grown(m1, m2), self.tail, self.counts)

    def merged(self, n: int, combine: bool) -> CudaEntryStore:
        """Return a store with the n oldest entries of the tail among the sorted ones."""
        both = self.sorted.merged(self._oldest(n, combine), combine)
        return CudaEntryStore(both, self.tail.without_first(n), self.counts)

    def rescaled(self, factor: float, targets: bool) -> CudaEntryStore:
        c, s = self.tail.arrays[3:5]
        changed = {3: factor * c, 4: factor * s} if targets else {3: factor * c}
        scaled, counts = self.sorted.rescaled(factor, targets), self.counts.scaled(factor)
        return CudaEntryStore(scaled, self.tail.replaced(changed), counts)

    def without_light(
        self, least: float, sums_repeats: bool
    ) -> tuple[CudaEntryStore, tuple[float, float]]:
        """Return a store without the entries that weigh less, and their sums; no tail."""
        return self._with(self.sorted.c >= least, sums_repeats)

    def without_row(self, row: int, sums_repeats: bool) -> tuple[CudaEntryStore, tuple[Array, ...]]:
        """Return a store without a row's entries, and their columns, c and s; no tail."""
        held = self.sorted
        its = slice(*to_host(held.indptr[row : row + 2]).tolist())
        gone = tuple(to_host(x[its]) for x in (held.col, held.c, held.s))
        kept = cp.ones(held.size, bool)
        kept[its] = False
        return self._with(kept, sums_repeats)[0], (gone[0].astype(np.int64), *gone[1:])

    def _with(self, kept: Array, sums_repeats: bool) -> tuple[CudaEntryStore, tuple[float, float]]:
        gone, rest = self.sorted.chosen(~kept), self.sorted.chosen(kept)
        sums = sums_of(gone.c, gone.s, sums_repeats)
        return CudaEntryStore(rest, self.tail, self.counts.without(*sums, rest.size)), sums

    def _oldest(self, n: int, combine: bool) -> tuple[Array, ...]:
        """Return the n oldest entries of the tail, sorted; repeats summed up, if combined."""
        row, col, z, c, s = (array[:n] for array in self.tail.arrays[:5])
        order = cp.argsort(row.astype(cp.int64) * self.shape[1] + col)
        row, col, z, c, s = (array[order] for array in (row, col, z, c, s))
        if not combine or n == 0:
            return row, col, z, c, s
        new = cp.ones(n, bool)
        new[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
        if bool(new.all()):
            return row, col, z, c, s
        entry = cp.cumsum(new) - 1
        totals = [cp.bincount(entry, x).astype(z.dtype) for x in (c, s)]
        return row[new], col[new], z[new], *totals

    def values(self, which: int | str) -> Array:
        """Return one of row, col, z, c, s and g (or its position) of every entry, on the host."""
        names = ("row", "col", "z", "c", "s", "g")
        position = names.index(which) if isinstance(which, str) else which
        return to_host(cp.concatenate([part[position] for part in self.parts]))

    @classmethod
    def from_state(cls, state: State, dtype: np.dtype) -> CudaEntryStore:
        held, newest, column = state["sorted"], state["tail"], np.argsort(state["rank"])
        shape = held["indptr"].size - 1, column.size
        indptr = cp.asarray(held["indptr"].astype(np.int64))
        row, col = row_of_each(indptr), cp.asarray(column[held["col"]].astype(np.uint32))
        order = cp.argsort(row.astype(cp.int64) * shape[1] + col)
        values = [cp.asarray(held[name])[order] for name in VALUES]
        sorted_entries = CudaSortedStore(shape, indptr, row, col[order], *values)
        tail, new = _new_tail(dtype).lengthened(newest["row"].size)
        columns = newest["row"], column[newest["col"]], *(newest[name] for name in VALUES)
        for part, items in zip(new, columns, strict=False):
            part[:] = cp.asarray(items.astype(part.dtype))
        return cls(sorted_entries, tail, Counts.of(state["counts"]))


def _new_tail(dtype: np.dtype) -> Columns:
    """Return an empty tail: columns for row, column, z, c, s, g and first."""
    return Columns.empty((np.uint32, np.uint32, *[dtype] * 5), cp)
