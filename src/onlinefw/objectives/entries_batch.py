"""Checked observations of entries, and how they are checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import received_here
from .._batches import BatchHandle
from .._typing import Array
from .._validation import (
    TOO_LARGE_FOR_FLOAT32,
    check_indices,
    check_magnitude,
    check_targets,
    check_weights,
)
from ..losses import Loss
from ..native import Pointer, loops, struct

__all__ = ["EntriesBatch", "HandleBatch", "check_entries"]


Extent = struct(
    "Extent",
    n=int,
    X=Pointer(np.int64, read=True),
    y=Pointer("real", read=True),
    low=int,
    row=int,
    column=int,
    largest=float,
)


class EntriesBatch(NamedTuple):
    """Checked observations: rows, columns, values and weights.

    ``shape`` is that of the smallest matrix that has them, if it is known already.
    """

    rows: Array
    cols: Array
    y: Array
    w: Array
    shape: tuple[int, int] | None = None

    def part(self, which: slice) -> EntriesBatch:
        """Return some of the observations."""
        rows, cols, y, w, _ = self
        return EntriesBatch(rows[which], cols[which], y[which], w[which])


class HandleBatch(NamedTuple):
    """Observations that workers have opened, and the shape that they need."""

    handle: BatchHandle
    shape: tuple[int, int]


def check_entries(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    limits: Any,
    loss: Loss,
    dtype: np.dtype,
    device: str,
    factors: bool = False,
) -> EntriesBatch:
    """Return checked observations, or say what is wrong with them.

    They are within ``limits``, the shape of the matrix; None if it may grow. ``factors`` is whether
    they are learned by factors.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.losses import Square
    >>> from onlinefw.objectives.entries_batch import check_entries
    >>> parts = {"limits": (4, 9), "loss": Square(), "dtype": np.dtype(float), "device": "cpu"}
    >>> check_entries([[3, 8], [0, 5]], [1.0, -1.0], None, **parts).shape
    (4, 9)
    """
    if sample_weight is None and _is_plain(X, y):
        low, row, col, largest = _extent(X, y)
        inside = limits is None or (row < limits[0] and col < limits[1])
        if inside and low >= 0 and max(row, col) < 2**32 and largest <= TOO_LARGE_FOR_FLOAT32:
            loss.check_targets(y)
            columns = X[:, 0].copy(), X[:, 1].copy()
            return EntriesBatch(
                *columns, np.ascontiguousarray(y), np.ones(len(y)), (row + 1, col + 1)
            )
    X, y = received_here("X", X, device), received_here("y", y, device)
    rows, cols = check_indices(X, limits or (0, 0), growing=limits is None)
    y = check_targets(y, rows.size, loss)
    w = check_weights(received_here("sample_weight", sample_weight, device), rows.size)
    check_magnitude(y, w, dtype, lambda: factors)
    shape = int(rows.max()) + 1, int(cols.max()) + 1
    if device == "cpu":  # compiled loops take whole arrays
        rows, cols, y, w = map(np.ascontiguousarray, (rows, cols, y, w))
    return EntriesBatch(rows, cols, y, w, shape)


def _extent(X: Array, y: Array) -> tuple[int, int, int, float]:
    """Return the smallest index, the largest row and column, and the largest |y| (inf for NaN)."""
    call: Any = Extent(n=len(y), X=np.ascontiguousarray(X), y=np.ascontiguousarray(y))
    loops.extent_of_entries_f64(call.pointer)
    return call.low, call.row, call.column, call.largest


def _is_plain(X: Any, y: Any) -> bool:
    """Whether these are arrays as they are needed, so that one look is enough."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray:
        return False
    if X.dtype != np.int64 or y.dtype != np.float64 or y.ndim != 1:
        return False
    return X.shape == (y.size, 2) and y.size > 0 and X.flags.aligned and y.flags.aligned
