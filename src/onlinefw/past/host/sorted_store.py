"""Observed entries sorted by row and column, in compressed rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ... import _threads
from ..._threads import balanced_blocks, blocks_for, n_threads, share
from ..._typing import Array
from ..._whole import Uninterrupted, broken_model
from ...kernels import merging as kernels

__all__ = ["SortedStore"]

#: So many entries are merged at once, into new memory (16 bytes each, 270 MB).
MERGED_AT_ONCE = 2**24
#: To begin a row takes as long as so many of its entries.
ENTRIES_PER_ROW = 16


class SortedStore:
    """Entries in compressed rows. A store does not change: its methods return other stores.

    There are two exceptions: predictions and slopes change when theta moves, and a large store is
    merged in place (:class:`Merging`).

    Parameters
    ----------
    indptr : ndarray of int64
        Where each row starts.
    col : ndarray of uint32
        The column of each entry.
    z, c, s, g : ndarray
        Its prediction, the total weight and target observed there, and its slope.
    """

    __slots__ = ("_blocks", "c", "col", "g", "indptr", "s", "z")

    def __init__(self, indptr: Array, col: Array, z: Array, c: Array, s: Array, g: Array) -> None:
        self.indptr, self.col, self.z, self.c, self.s, self.g = indptr, col, z, c, s, g
        self._blocks: Array | None = None

    @classmethod
    def empty(cls, n_rows: int, dtype: np.dtype) -> SortedStore:
        """Return a store with rows but no entries."""
        values = (np.empty(0, dtype) for _ in range(4))
        return cls(np.zeros(n_rows + 1, np.int64), np.empty(0, np.uint32), *values)

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.col.size

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays, in the order of the parameters."""
        return self.indptr, self.col, self.z, self.c, self.s, self.g

    @property
    def products(self) -> tuple[Array, Array, Array]:
        """What products with the slopes read: 8 bytes an entry in single precision."""
        return self.indptr, self.col, self.g

    def blocks(self) -> Array:
        """Return ranges of rows, one per thread, that take about equally long."""
        known, threads = self._blocks, n_threads()
        if threads == 1 or self.size < _threads.SMALL_LOOP:
            return np.array([0, self.indptr.size - 1])
        if known is None or len(known) != threads + 1:
            work = self.indptr + ENTRIES_PER_ROW * np.arange(self.indptr.size)
            known = self._blocks = balanced_blocks(work, self.size)
        return known

    def rows(self) -> Array:
        """Return the row of each entry."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    def grown(self, n_rows: int) -> SortedStore:
        """Return the same entries with empty rows at the end."""
        extra = n_rows + 1 - self.indptr.size
        indptr = np.append(self.indptr, np.full(extra, self.indptr[-1]))
        return SortedStore(indptr, self.col, self.z, self.c, self.s, self.g)

    def rescaled(self, factor: float, targets: bool) -> SortedStore:
        """Return the same entries with other weights, and targets if these are weighted."""
        c, s = factor * self.c, factor * self.s if targets else self.s
        return SortedStore(self.indptr, self.col, self.z, c, s, self.g)

    def chosen(self, mask: Array) -> SortedStore:
        """Return the entries where ``mask`` is True."""
        position = np.zeros(mask.size + 1, np.int64)
        np.cumsum(mask, out=position[1:])
        return SortedStore(position[self.indptr], *(x[mask] for x in self.arrays[1:]))

    def without_row(self, row: int) -> SortedStore:
        """Return the same rows, one of which is empty."""
        start, end = self.indptr[row : row + 2].tolist()
        indptr = self.indptr.copy()
        indptr[row + 1 :] -= end - start
        return SortedStore(indptr, *(np.concatenate((x[:start], x[end:])) for x in self.arrays[1:]))

    # Merging --------------------------------------------------------------------------------------

    def merged(self, other: SortedStore, combine: bool) -> SortedStore | Merging:
        """Return the entries of both; with ``combine``, repeats are summed up.

        The next read computes the slopes. For a large store the answer is a :class:`Merging`.
        """
        indptr = self._merged_indptr(other, combine)
        size = int(indptr[-1])
        if size > MERGED_AT_ONCE:
            return self._merging_in_place(other, combine, indptr)
        old, new = ((x.col, x.z, x.c, x.s) for x in (self, other))
        col, z, c, s = both = tuple(np.empty(size, x.dtype) for x in old)
        pointers = self.indptr, other.indptr, combine, indptr
        share(kernels.merge_rows, balanced_blocks(indptr), *pointers, old, new, both)
        return SortedStore(indptr, col, z, c, s, np.zeros(size, self.g.dtype))

    def _merging_in_place(self, other: SortedStore, combine: bool, indptr: Array) -> Merging:
        size = int(indptr[-1])
        before = SortedStore(self.indptr, *(_with_spare(x, size) for x in self.arrays[1:]))
        after = SortedStore(indptr, *(_lengthened(x, size) for x in before.arrays[1:]))
        cuts = _cuts(indptr, MERGED_AT_ONCE)
        blocks = [
            first + balanced_blocks(indptr[first : last + 1] - indptr[first])
            for first, last in pairwise(cuts)
        ]
        most = int(np.diff(indptr[cuts]).max())
        held = after.col, after.z, after.c, after.s
        memory = tuple(np.empty(most, x.dtype) for x in held)
        new = other.col, other.z, other.c, other.s
        pointers = before.indptr, other.indptr, combine, indptr

        def merge() -> None:
            # From the last rows to the first: rows only move towards the end, so there is never a
            # second copy of the store.
            for p in reversed(range(len(blocks))):
                start, end = int(indptr[cuts[p]]), int(indptr[cuts[p + 1]])
                part = tuple(x[: end - start] for x in memory)
                share(kernels.merge_rows, blocks[p], *pointers, held, new, part)
                share(kernels.copy_four, blocks_for(end - start, end - start), part, held, start)

        return Merging(before, after, merge)

    def _merged_indptr(self, other: SortedStore, combine: bool) -> Array:
        blocks = balanced_blocks(self.indptr + other.indptr)
        lengths = np.empty(self.indptr.size - 1, np.int64)
        arrays = self.indptr, self.col, other.indptr, other.col
        share(kernels.merged_lengths, blocks, *arrays, combine, lengths)
        return np.concatenate(([0], np.cumsum(lengths)))

    def renumbered(self, renumber: Array) -> SortedStore | Merging:
        """Return the same entries with other numbers for the columns, rows sorted again."""
        in_place = self.size > MERGED_AT_ONCE
        after = SortedStore(self.indptr, *(x if in_place else x.copy() for x in self.arrays[1:]))
        numbers, blocks = renumber.astype(np.uint32), balanced_blocks(self.indptr)

        def change_numbers() -> None:
            kernels.renumber(numbers, after.col)
            share(kernels.sort_rows, blocks, *after.arrays)

        change = Merging(self, after, change_numbers)
        return change if in_place else change.run()


class Merging:
    """A change of a large store in place, which Ctrl-C does not interrupt.

    The stores before and after share their memory; the change turns the one into the other.
    """

    def __init__(self, before: SortedStore, after: SortedStore, change: Callable[[], None]) -> None:
        self.before, self.after, self._change = before, after, change
        self._has_begun = self._is_done = False

    def run(self) -> SortedStore:
        """Carry out the change; return the new store."""
        with Uninterrupted():
            self._has_begun = True
            self._change()
            self._is_done = True
        return self.after

    @property
    def is_done(self) -> bool:
        """Whether the change has been carried out; refused if it failed half-way."""
        if self._has_begun and not self._is_done:
            raise broken_model("entries were being sorted in place")
        return self._is_done


def _with_spare(array: Array, size: int) -> Array:
    """Return an array whose memory has at least ``size`` items, the spare ones at its end."""
    whole = array if array.base is None else array.base
    if len(whole) >= size:
        return array
    # The system gives no memory to the spare items before they are written.
    whole = np.empty(max(size, 2 * array.size), array.dtype)
    whole[: array.size] = array
    return whole[: array.size]


def _lengthened(array: Array, size: int) -> Array:
    whole = array if array.base is None else array.base
    return whole[:size]


def _cuts(indptr: Array, size: int) -> list[int]:
    """Cut the rows into ranges of about ``size`` entries, at least a row each."""
    at = np.searchsorted(indptr, np.arange(size, int(indptr[-1]) + size, size), side="left")
    return np.unique(np.concatenate(([0], np.minimum(at, indptr.size - 1)))).tolist()
