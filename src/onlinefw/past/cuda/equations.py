"""Normal equations of some rows or columns of observed entries, summed up on a GPU."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..._devices import cupy
from ..._typing import Array
from ..some_regressions import Other, packed_size

__all__ = ["add_equations"]

#: Entries that a block of threads takes at most.
SEGMENT = 2048
#: Entries whose features are in shared memory at once, at most, and the bytes that they may take.
PANEL, SHARED = 32, 40_960
#: Threads of a block, at most.
THREADS = 256
#: At most so many bytes of sums over segments are there at once.
AT_ONCE = 2**30
NAMES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


@cache
def _kernel(name: str, dtype: np.dtype, rank: int) -> tuple[Any, int]:
    """Return a kernel for models of this rank, and the threads of its blocks."""
    size = packed_size(rank)
    threads = min(THREADS, -(-size // 32) * 32)
    panel = max(1, min(PANEL, SHARED // (2 * (rank + 2) * dtype.itemsize)))
    defined = {"REAL": NAMES[dtype], "RANK": rank, "PANEL": panel}
    defined |= {"THREADS": threads, "PACKED": size}
    lines = [f"#define {key} {value}\n" for key, value in defined.items()]
    code = Path(__file__).with_name("equations.cu").read_text()
    return cupy().RawModule(code="".join([*lines, code])).get_function(name), threads


def add_equations(
    bounds: tuple[Array, Array],
    order: Array | None,
    entries: tuple[Array, Array, Array],
    other: Other,
    mean: float,
    out: Array,
) -> None:
    """Add the upper triangles of [A | b] of some rows (or columns) to ``out``.

    Parameters
    ----------
    bounds : (ndarray, ndarray)
        Where the entries of each row begin and end, in this process's memory.
    order : cupy.ndarray of uint32, optional
        For each position within the bounds, where its entry is in ``entries``; by default at the
        position itself.
    entries : tuple of cupy.ndarray
        Of all entries: the index on the other side (uint32), c and s.
    other : Other
        The other side, on the device, in the type of c and s.
    mean : float
        What is subtracted from the targets, with the offsets of the other side.
    out : cupy.ndarray of shape (n, models, packed_size(rank))
        In double precision.
    """
    xp, (first, last), (index, c, s) = cupy(), bounds, entries
    models, size = out.shape[1], out.shape[1] * out.shape[2]
    segments = np.zeros(first.size + 1, np.int64)
    np.cumsum(-(-(last - first) // SEGMENT), out=segments[1:])
    most = max(1, AT_ONCE // (8 * size))
    sums, threads = _kernel("segment_equations", c.dtype, other.rank)
    add, _ = _kernel("add_equations", c.dtype, other.rank)
    ordered, order = np.int64(order is not None), index if order is None else order
    width = np.int64(other.factors.shape[1] // models)
    start = 0
    while start < first.size:
        fitting = int(np.searchsorted(segments, segments[start] + most, side="right")) - 1
        some = slice(start, max(start + 1, fitting))
        start = some.stop
        cuts = segments[some.start : some.stop + 1] - segments[some.start]
        begin, end = _segments(first[some], last[some], cuts)
        if not begin.size:
            continue
        parts = xp.empty((begin.size, size))
        sums(
            (begin.size, models), (threads,),
            (
                xp.asarray(begin), xp.asarray(end), ordered, order, index, c, s, np.int64(models),
                width, other.factors, other.offsets, np.float64(mean), parts,
            ),
        )  # fmt: skip
        n = cuts.size - 1
        rows = out[some]
        args = np.int64(n), np.int64(size), xp.asarray(cuts), parts, rows
        add((-(-n * size // THREADS),), (THREADS,), args)


def _segments(first: Array, last: Array, cuts: Array) -> tuple[Array, Array]:
    """Return where the segments of rows begin and end; ``cuts`` counts them."""
    row = np.repeat(np.arange(first.size), np.diff(cuts))
    begin = first[row] + SEGMENT * (np.arange(cuts[-1]) - cuts[row])
    return begin, np.minimum(begin + SEGMENT, last[row])
