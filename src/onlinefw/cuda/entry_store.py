"""Observed entries on a CUDA device: sorted by rows and by columns, and a tail of the newest."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from .._devices import to_host
from .._typing import Array, State
from .entry_kernels import kernels
from .segments import Segments, row_of_each

__all__ = ["CudaEntryStore"]

CARRIED = ("z", "c", "s")


class CudaEntryStore:
    """All entries observed, with what is carried at each.

    Columns keep their own numbers here: the caches of a GPU hold all of a vector.

    Attributes
    ----------
    indptr, row, col, z, c, s, g : cupy.ndarray
        The sorted entries in compressed rows, with what :class:`~onlinefw.objectives.sorted_store.
        SortedStore` has.
    by_column : cupy.ndarray of int
        The sorted entries' places, column by column.
    rows, columns : Segments
        Of the rows, and of the columns.
    tail : dict of cupy.ndarray
        row, col, z, c, s and g of the newest entries.
    n_tail, last_batch : int
        How many those are, and how many came last.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, combine: bool) -> None:
        self.shape, self.dtype, self.combine = shape, np.dtype(dtype), combine
        self.indptr = cp.zeros(shape[0] + 1, cp.int64)
        self.row = self.col = cp.empty(0, cp.uint32)
        self.z = self.c = self.s = cp.empty(0, self.dtype)
        self._tail = {name: cp.empty(0, kind) for name, kind in self._tail_types()}
        self.last_batch = 0
        self._run = kernels(self.dtype.name)
        self._set_tail(0)
        self._index()

    def _tail_types(self) -> list[tuple[str, Any]]:
        return [("row", cp.uint32), ("col", cp.uint32), *((name, self.dtype) for name in "zcsg")]

    def __len__(self) -> int:
        return self.n_sorted + self.n_tail

    @property
    def n_sorted(self) -> int:
        """How many entries have been sorted in."""
        return self.col.size

    def _set_tail(self, n: int) -> None:
        """Let the tail have so many entries."""
        self.n_tail = n
        self.tail = {name: values[:n] for name, values in self._tail.items()}

    # Growing --------------------------------------------------------------------------------------

    def make_room(self, size: int) -> dict[str, Array]:
        """Lengthen the tail by so many entries, and return the new ones, to be filled."""
        old, n = self.n_tail, self.n_tail + size
        if n > self._tail["row"].size:
            for name, values in self._tail.items():
                self._tail[name] = grown = cp.empty(2 * n, values.dtype)
                grown[:old] = values[:old]
        self._set_tail(n)
        self.last_batch = size
        return {name: values[old:] for name, values in self.tail.items()}

    def append(self, rows: Array, cols: Array, z: Array, c: Array, s: Array) -> None:
        """Add observations to the tail; they may be in this process's memory."""
        new = self.make_room(rows.size)
        for name, values in zip(("row", "col", *CARRIED), (rows, cols, z, c, s), strict=True):
            new[name][:] = cp.asarray(values, dtype=new[name].dtype)

    def grow(self, m1: int, m2: int) -> None:
        """Add empty rows and columns at the end."""
        extra = m1 - self.shape[0]
        self.indptr = cp.concatenate((self.indptr, cp.full(extra, self.indptr[-1])))
        self.shape = (m1, m2)
        self._index()

    def merge(self, n: int) -> None:
        """Sort the n oldest entries of the tail in. Slopes are not carried over."""
        row, col, z, c, s = self._oldest(n)
        # Where each belongs; behind its equals, where repeats are kept apart.
        place = cp.empty(row.size, cp.int64)
        self._run.lower_bounds(
            row.size, row.size, row, col, self.indptr, self.col, int(not self.combine), place
        )
        if self.combine and self.col.size:
            inside = cp.minimum(place, self.col.size - 1)
            there = (place < self.indptr[row + 1]) & (self.col[inside] == col)
            self.c[place[there]] += c[there]
            self.s[place[there]] += s[there]
            row, col, z, c, s, place = (x[~there] for x in (row, col, z, c, s, place))
        self._insert(place, row, col, z, c, s)
        self._index()

    def _oldest(self, n: int) -> tuple[Array, ...]:
        """Take the n oldest entries out of the tail, sorted; repeats summed up, if combined."""
        taken = {name: values[:n] for name, values in self._tail.items()}
        order = cp.argsort(taken["row"].astype(cp.int64) * self.shape[1] + taken["col"])
        row, col, z, c, s = (taken[name][order] for name in ("row", "col", *CARRIED))
        for name, values in self._tail.items():
            rest = values[n : self.n_tail].copy()
            self._tail[name][: rest.size] = rest
        self._set_tail(self.n_tail - n)
        if not self.combine or n == 0:
            return row, col, z, c, s
        new = cp.ones(n, bool)
        new[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
        if bool(new.all()):
            return row, col, z, c, s
        entry = cp.cumsum(new) - 1
        totals = [cp.bincount(entry, x).astype(self.dtype) for x in (c, s)]
        return row[new], col[new], z[new], *totals

    def _insert(self, place: Array, *values: Array) -> None:
        """Insert sorted entries (row, col, z, c, s) before the given places."""
        old, new = self.col.size, place.size
        marks = cp.bincount(place, minlength=old + 1) if new else cp.zeros(old + 1, cp.int64)
        shift = cp.cumsum(marks, dtype=cp.int32)[:old]
        arrays = (self.row, self.col, self.z, self.c, self.s)
        merged = [cp.empty(old + new, array.dtype) for array in arrays]
        self._run.spread_out(old, old, shift, *arrays, *merged)
        places = place + cp.arange(new)
        for array, value in zip(merged, values, strict=True):
            array[places] = value
        self.row, self.col, self.z, self.c, self.s = merged
        counts = cp.bincount(values[0], minlength=self.shape[0]) if new else 0
        self.indptr[1:] += cp.cumsum(counts) if new else 0

    def _index(self) -> None:
        """Find the columns' order, and cut rows and columns into segments."""
        self.g = cp.zeros(self.col.size, self.dtype)
        self.by_column = cp.argsort(self.col).astype(cp.uint32)
        self.row_by_column = self.row[self.by_column]
        self.g_by_column = cp.empty_like(self.g)
        counts = cp.bincount(self.col, minlength=self.shape[1])
        column_ptr = cp.concatenate((cp.zeros(1, cp.int64), cp.cumsum(counts)))
        self.rows, self.columns = (Segments(x, self._run) for x in (self.indptr, column_ptr))

    # Asking ---------------------------------------------------------------------------------------

    def rows_and_columns(self) -> tuple[Array, Array]:
        """Return row and column of every entry, on the host: sorted ones, then the tail."""
        tail = self.tail
        return (
            to_host(cp.concatenate((self.row, tail["row"]))),
            to_host(cp.concatenate((self.col, tail["col"]))),
        )

    def carried(self, name: str) -> Array:
        """Return z, c, s or g of every entry, on the host, in the same order."""
        return to_host(cp.concatenate((getattr(self, name), self.tail[name])))

    def state_dict(self) -> State:
        """Return everything as the host's store would."""
        bulk = {name: to_host(getattr(self, name)) for name in ("indptr", "col", *CARRIED, "g")}
        return {
            "bulk": bulk,
            "tail": {name: to_host(values) for name, values in self.tail.items()},
            "rank": np.arange(self.shape[1]),
            "ranked_at": max(1, self.col.size),
            "last_batch": self.last_batch,
        }

    @classmethod
    def from_state(cls, state: State, dtype: Any, combine: bool) -> CudaEntryStore:
        """Make the store that this or the host's ``state_dict`` described."""
        bulk, column = state["bulk"], np.argsort(state["rank"])
        store = cls((bulk["indptr"].size - 1, column.size), dtype, combine)
        store.indptr = cp.asarray(bulk["indptr"].astype(np.int64))
        store.row = row_of_each(store.indptr)
        store.col = cp.asarray(column[bulk["col"]].astype(np.uint32))
        order = cp.argsort(store.row.astype(cp.int64) * store.shape[1] + store.col)
        store.col = store.col[order]
        store.z, store.c, store.s = (cp.asarray(bulk[name])[order] for name in CARRIED)
        tail = state["tail"]
        newest = {**tail, "col": column[tail["col"]].astype(np.uint32)}
        for name, values in store.make_room(tail["row"].size).items():
            values[:] = cp.asarray(newest[name])
        store._index()
        store.g[:] = cp.asarray(bulk["g"])[order]
        store.last_batch = int(state["last_batch"])
        return store
