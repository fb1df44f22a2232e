"""Observed entries sorted by row and column, in compressed rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .._growing import GrowingArray
from .._threads import balanced_blocks
from .._typing import Array, State
from ..kernels import entries as kernels
from .carried import Carried

__all__ = ["SortedStore"]

_FIELDS = ("col", "z", "c", "s", "g")

#: So many entries are merged at once, into new memory (16 bytes each, 270 MB).
MERGED_AT_ONCE = 2**24


class SortedStore(Carried):
    """Entries in compressed rows, with what is carried at each.

    Parameters
    ----------
    indptr : ndarray of int64
        Where each row starts.
    col : ndarray of uint32
        The column of each entry.
    z, c, s, g : ndarray
        Its carried prediction, the total weight and target observed there, and its slope.
    """

    def __init__(self, indptr: Array, col: Array, z: Array, c: Array, s: Array, g: Array) -> None:
        self.indptr = indptr
        self._hold(col, z, c, s, g)

    def _hold(self, *values: Array) -> None:
        self._columns = dict(zip(_FIELDS, map(GrowingArray.holding, values), strict=True))

    @classmethod
    def empty(cls, n_rows: int, dtype: np.dtype) -> SortedStore:
        """Return a store with rows but no entries."""
        values = (np.empty(0, dtype) for _ in range(4))
        return cls(np.zeros(n_rows + 1, np.int64), np.empty(0, np.uint32), *values)

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self._columns["col"])

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Everything, for the kernel that moves predictions."""
        return self.indptr, self.col, self.z, self.c, self.s, self.g

    @property
    def products(self) -> tuple[Array, Array, Array]:
        """What products with the slopes read: 8 bytes an entry in single precision."""
        return self.indptr, self.col, self.g

    def rows(self) -> Array:
        """Return the row of each entry."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    def grow(self, n_rows: int) -> None:
        """Add empty rows at the end."""
        extra = n_rows + 1 - self.indptr.size
        self.indptr = np.append(self.indptr, np.full(extra, self.indptr[-1]))

    def merge(self, other: SortedStore, combine: bool) -> None:
        """Take the entries of another store in; with ``combine``, those here already are summed up.

        The slopes are not carried over: they are due at the next read anyway.
        """
        indptr = self._merged_indptr(other, combine)
        if indptr[-1] <= MERGED_AT_ONCE:
            merged = self._merged_rows(other, combine, indptr, 0, indptr.size - 1)
            self._hold(*merged, np.zeros(int(indptr[-1]), self.g.dtype))
        else:
            self._merge_in_place(other, combine, indptr)
            self.g.fill(0)
        self.indptr = indptr

    def _merge_in_place(self, other: SortedStore, combine: bool, indptr: Array) -> None:
        """Merge some rows at a time, from the last to the first: rows only move towards the end.

        So there is never a second copy of the store.
        """
        for column in self._columns.values():
            column.lengthen(int(indptr[-1]))
        for first, last in reversed(list(pairwise(_cuts(indptr, MERGED_AT_ONCE)))):
            merged = self._merged_rows(other, combine, indptr, first, last)
            kernels.copy_four(merged, (self.col, self.z, self.c, self.s), indptr[first])

    def _merged_rows(
        self, other: SortedStore, combine: bool, indptr: Array, first: int, last: int
    ) -> tuple[Array, ...]:
        """Return col, z, c and s of some rows of both stores."""
        old, new = ((x.col, x.z, x.c, x.s) for x in (self, other))
        n = int(indptr[last] - indptr[first])
        merged = tuple(np.empty(n, values.dtype) for values in old)
        blocks = first + balanced_blocks(indptr[first : last + 1] - indptr[first])
        kernels.merge_rows(blocks, self.indptr, other.indptr, combine, indptr, old, new, merged)
        return merged

    def _merged_indptr(self, other: SortedStore, combine: bool) -> Array:
        blocks = balanced_blocks(self.indptr + other.indptr)
        lengths = np.empty(self.indptr.size - 1, np.int64)
        kernels.merged_lengths(
            blocks, self.indptr, self.col, other.indptr, other.col, combine, lengths
        )
        return np.concatenate(([0], np.cumsum(lengths)))

    def renumber_columns(self, renumber: Array) -> None:
        """Give every column another number and sort the rows again."""
        self.col[:] = renumber.astype(np.uint32)[self.col]
        kernels.sort_rows(balanced_blocks(self.indptr), *self.arrays)

    def state_dict(self) -> State:
        """Return the arrays."""
        carried = {name: getattr(self, name).copy() for name in _FIELDS}
        return {"indptr": self.indptr.copy(), **carried}

    @classmethod
    def from_state(cls, state: State) -> SortedStore:
        """Make the store that ``state_dict`` described."""
        return cls(*(np.array(state[name]) for name in ("indptr", *_FIELDS)))


def _cuts(indptr: Array, size: int) -> list[int]:
    """Cut the rows into ranges of about ``size`` entries, at least a row each."""
    at = np.searchsorted(indptr, np.arange(size, int(indptr[-1]) + size, size), side="left")
    return np.unique(np.concatenate(([0], np.minimum(at, indptr.size - 1)))).tolist()
