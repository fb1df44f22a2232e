"""The newest observed entries, in the order in which they came."""

from __future__ import annotations

import numpy as np

from ..._typing import Array
from ...kernels import entries as kernels
from ...kernels import merging
from ..columns import Columns
from .sorted_store import SortedStore

__all__ = ["multiply", "multiply_transposed", "new_tail", "without_oldest"]


def new_tail(dtype: np.dtype) -> Columns:
    """Return an empty tail: columns for row, column, z, c, s and g."""
    return Columns.empty((np.uint32, np.uint32, *[dtype] * 4))


def without_oldest(tail: Columns, n: int, n_rows: int) -> tuple[SortedStore, Columns]:
    """Return the n oldest entries, sorted by row and column, and the others as a tail."""
    oldest = [array[:n] for array in tail.arrays]
    indptr, order = np.zeros(n_rows + 1, np.int64), np.empty(n, np.int64)
    merging.sort_by_row(oldest[0], oldest[1], indptr, order)
    return SortedStore(indptr, *(x[order] for x in oldest[1:])), tail.without_first(n)


def multiply(tail: Columns, v: Array, y: Array) -> None:
    """Let Y += G V, for blocks of columns."""
    row, col, _, _, _, g = tail.arrays
    kernels.tail_forward(row, col, g, v, y)


def multiply_transposed(tail: Columns, y: Array, w: Array) -> None:
    """Let W += G' Y, for blocks of columns."""
    row, col, _, _, _, g = tail.arrays
    kernels.tail_backward(row, col, g, y, w)
