"""Observed entries sorted by row and column, in compressed rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._threads import balanced_blocks
from .._typing import Array, State
from ..kernels import entries as kernels

__all__ = ["SortedStore"]


@dataclass
class SortedStore:
    """Entries in compressed rows, with what is carried at each.

    Attributes
    ----------
    indptr : ndarray of int64
        Where each row starts.
    col : ndarray of uint32
        The column of each entry.
    z, c, s, g : ndarray
        Its carried prediction, the total weight and target observed there, and its slope.
    """

    indptr: Array
    col: Array
    z: Array
    c: Array
    s: Array
    g: Array

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

    def merged_with(self, other: SortedStore, combine: bool) -> SortedStore:
        """Return both stores in one; with ``combine``, an entry that both have is summed up.

        The slopes are not carried over: they are due at the next read anyway.
        """
        blocks = balanced_blocks(self.indptr + other.indptr)
        lengths = np.empty(self.indptr.size - 1, np.int64)
        kernels.merged_lengths(
            blocks, self.indptr, self.col, other.indptr, other.col, combine, lengths
        )
        indptr = np.zeros_like(self.indptr)
        np.cumsum(lengths, out=indptr[1:])
        n = int(indptr[-1])
        new = (np.empty(n, np.uint32), *(np.empty(n, self.z.dtype) for _ in range(3)))
        kernels.merge_rows(
            blocks,
            self.indptr,
            other.indptr,
            combine,
            indptr,
            (self.col, self.z, self.c, self.s),
            (other.col, other.z, other.c, other.s),
            new,
        )
        col, z, c, s = new
        return SortedStore(indptr, col, z, c, s, np.zeros(n, self.z.dtype))

    def renumber_columns(self, renumber: Array) -> None:
        """Give every column another number and sort the rows again."""
        col = renumber[self.col].astype(np.uint32)
        order = np.argsort(self.rows() * renumber.size + col, kind="stable")
        self.col = col[order]
        self.z, self.c, self.s, self.g = (x[order] for x in (self.z, self.c, self.s, self.g))

    def state_dict(self) -> State:
        """Return the arrays."""
        return {name: getattr(self, name).copy() for name in self.__dataclass_fields__}

    @classmethod
    def from_state(cls, state: State) -> SortedStore:
        """Make the store that ``state_dict`` described."""
        return cls(**{name: np.array(state[name]) for name in cls.__dataclass_fields__})
