"""Compressed rows cut into segments of bounded length, one for each warp."""

from __future__ import annotations

from typing import Any

import cupy as cp

from ..._typing import Array
from .entry_kernels import LANES, SEGMENT

__all__ = ["Segments", "row_of_each"]


class Segments:
    """Where the segments of compressed rows begin and end."""

    def __init__(self, indptr: Array, run: Any) -> None:
        self._run = run
        self.n_rows = indptr.size - 1
        counts = (cp.diff(indptr) + (SEGMENT - 1)) // SEGMENT
        self.indptr = cp.zeros(indptr.size, cp.int32)
        cp.cumsum(counts, out=self.indptr[1:])
        self.row = row_of_each(self.indptr)
        self.n = self.row.size
        within = cp.arange(self.n, dtype=cp.int64) - self.indptr[self.row]
        self.first = indptr[self.row] + SEGMENT * within
        self.last = cp.minimum(self.first + SEGMENT, indptr[self.row + 1])

    @property
    def bounds(self) -> tuple[int, Array, Array]:
        """The first arguments of every kernel over segments."""
        return self.n, self.first, self.last

    def dots(self, col: Array, g: Array, x: Array) -> Array:
        """Return the product of the rows with a vector."""
        sums, y = cp.empty(self.n, g.dtype), cp.empty(self.n_rows, g.dtype)
        self._run.segment_dots(32 * self.n, *self.bounds, col, g, x, sums)
        self._run.add_segments(self.n_rows, self.n_rows, self.indptr, sums, y)
        return y

    def block(self, col: Array, g: Array, x: Array) -> Array:
        """Return the product of the rows with a block of vectors."""
        sums = cp.empty((self.n, LANES), g.dtype)
        self._run.segment_block(32 * self.n, *self.bounds, col, g, x, sums)
        return self.added_up(sums)

    def gathered_block(self, col: Array, at: Array, source: Array, g: Array, x: Array) -> Array:
        """Return that product for ``g = source[at]``, and write g."""
        sums = cp.empty((self.n, LANES), g.dtype)
        self._run.gathered_block(32 * self.n, *self.bounds, col, at, source, g, x, sums)
        return self.added_up(sums)

    def added_up(self, sums: Array) -> Array:
        """Return the sums of rows, from those of segments, for a block of vectors."""
        y = cp.empty((self.n_rows, LANES), sums.dtype)
        threads = LANES * self.n_rows
        self._run.add_segment_blocks(threads, self.n_rows, self.indptr, sums, y)
        return y

    def sums(self, x: Array) -> Array:
        """Return the sum of a number per entry in every row, in double precision."""
        sums, y = cp.empty(self.n), cp.empty(self.n_rows)
        self._run.segment_sums(32 * self.n, *self.bounds, x, sums)
        self._run.add_double_segments(self.n_rows, self.n_rows, self.indptr, sums, y)
        return y


def row_of_each(indptr: Array) -> Any:
    """Return the row of each entry of compressed rows."""
    n = int(indptr[-1])
    starts = indptr[1:-1]
    marks = cp.bincount(starts[starts < n], minlength=n) if n else cp.empty(0, cp.int64)
    return cp.cumsum(marks, dtype=cp.uint32)
