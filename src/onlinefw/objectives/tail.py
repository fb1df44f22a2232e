"""The newest observed entries, in the order in which they came."""

from __future__ import annotations

import numpy as np

from .._growing import GrowingArray
from .._typing import Array, State
from ..kernels import entries as kernels
from ..kernels.lanes import LANES
from .carried import Carried
from .sorted_store import SortedStore

__all__ = ["Tail"]

_FIELDS = ("row", "col", "z", "c", "s", "g")


class Tail(Carried):
    """A short list of entries that have not been sorted into a :class:`SortedStore` yet."""

    def __init__(self, dtype: np.dtype) -> None:
        self._columns = {
            name: GrowingArray(dtype=np.uint32 if name in ("row", "col") else dtype)
            for name in _FIELDS
        }

    def __len__(self) -> int:
        return len(self._columns["row"])

    @property
    def row(self) -> Array:
        """The row of each entry."""
        return self._columns["row"].data

    def append(self, row: Array, col: Array, z: Array, c: Array, s: Array) -> None:
        """Add entries; their slopes are due at the next move."""
        for name, values in zip(_FIELDS, (row, col, z, c, s, np.zeros_like(z)), strict=True):
            self._columns[name].append(values)

    def multiply(self, v: Array, y: Array) -> None:
        """Y += G V, for blocks of columns."""
        eight = _is_block(v, self.g) and _is_block(y, self.g)
        forward = kernels.tail_forward_block if eight else kernels.tail_forward
        forward(self.row, self.col, self.g, v, y)

    def multiply_transposed(self, row_scale: Array, y: Array, w: Array) -> None:
        """W += G' (row_scale Y), for blocks of columns."""
        eight = _is_block(y, self.g) and _is_block(w, self.g)
        backward = kernels.tail_backward_block if eight else kernels.tail_backward
        backward(self.row, self.col, self.g, row_scale, y, w)

    def take_oldest(self, n: int, n_rows: int) -> SortedStore:
        """Remove the n oldest entries and return them by row and column."""
        indptr, order = np.zeros(n_rows + 1, np.int64), np.empty(n, np.int64)
        kernels.sort_by_row(self.row[:n], self.col[:n], indptr, order)
        store = SortedStore(indptr, *(getattr(self, name)[:n][order] for name in _FIELDS[1:]))
        for column in self._columns.values():
            column.drop_first(n)
        return store

    def state_dict(self) -> State:
        """Return the columns."""
        return {name: getattr(self, name).copy() for name in _FIELDS}

    @classmethod
    def from_state(cls, state: State, dtype: np.dtype) -> Tail:
        """Make the tail that ``state_dict`` described."""
        tail = cls(dtype)
        for name in _FIELDS:
            tail._columns[name].append(state[name])
        return tail


def _is_block(x: Array, g: Array) -> bool:
    """Whether the rows of x fit the registers that kernels for blocks use."""
    return x.shape[1] == LANES and x.dtype == g.dtype and x.flags.c_contiguous
