"""Batches of entries that workers read from files themselves.

One worker reads and checks a batch and cuts it into pieces, which go to the others directly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._batches import BatchHandle, naming
from ..._typing import Array
from ..._validation import check_indices, check_magnitude, check_targets, check_weights
from ...losses import Loss
from ..entries_state import Counts

__all__ = ["OpenedEntries", "Piece", "ReadAhead", "piece_of"]

#: Local rows, columns, weights and values.
Piece = tuple[Array, Array, Array, Array]
#: The shape of the matrix; None if it may grow.
Limits = tuple[int, int] | None


class OpenedEntries(NamedTuple):
    """A checked batch in the memory of the workers."""

    handle: BatchHandle
    shape: tuple[int, int]  # of the smallest matrix that has all its entries
    counts: Counts
    owners: Array  # the shard of each entry
    pieces: list[Any]  # a reference to the piece of every shard


class ReadAhead:
    """Lets workers read batches, each while the one before is learned from."""

    def __init__(self) -> None:
        self._ahead: tuple[Any, list[Any]] | None = None  # the batch being read ahead

    def read(
        self, shards: Any, handle: BatchHandle, limits: Limits, dtype: Any, loss: Loss
    ) -> OpenedEntries:
        """Return a batch that a worker has read and checked, or refuse it."""

        def start(which: BatchHandle) -> list[Any]:
            args = which.alone(), shards.n, limits, dtype, loss
            return shards.start(which.partition % shards.n, _cut, *args, returns=shards.n + 1)

        ahead, self._ahead = self._ahead, None
        waiting = ahead is not None and ahead[0] == (handle, limits)
        refs = ahead[1] if ahead is not None and waiting else start(handle)
        known, *pieces = shards.first_of(refs, lambda: start(handle))
        if isinstance(known, str):
            raise ValueError(known)
        if handle.following is not None:
            self._ahead = (handle.following, limits), start(handle.following)
        return OpenedEntries(handle.alone(), known[0], known[1], known[2], pieces)


def _cut(handle: BatchHandle, n: int, limits: Limits, dtype: Any, loss: Loss) -> tuple[Any, ...]:
    """Return what the driver needs to know about a batch (or what is wrong), and all pieces."""
    try:
        rows, cols, w, y = _checked(handle, limits, dtype, loss)
    except (ValueError, OSError) as error:
        return (str(error), *[None] * n)
    owners = (rows % n).astype(np.uint16)
    known = (int(rows.max()) + 1, int(cols.max()) + 1), Counts().plus(w, y), owners
    return (known, *[_piece(rows, cols, w, y, k, n) for k in range(n)])


def piece_of(handle: BatchHandle, k: int, n: int, dtype: Any, loss: Loss) -> Piece:
    """Return the piece of one shard, which reads the batch alone."""
    with naming(handle):
        return _piece(*_checked(handle, None, dtype, loss), k, n)


def _checked(handle: BatchHandle, limits: Limits, dtype: Any, loss: Loss) -> Piece:
    X, values, weights = handle.open()
    rows, cols = check_indices(X, limits or (0, 0), growing=limits is None)
    y = check_targets(values, rows.size, loss)
    w = check_weights(weights, rows.size)
    check_magnitude(y, w, np.dtype(dtype))
    return rows, cols, w, y


def _piece(rows: Array, cols: Array, w: Array, y: Array, k: int, n: int) -> Piece:
    mine = np.flatnonzero(rows % n == k)
    local, columns = (rows[mine] // n).astype(np.uint32), cols[mine].astype(np.uint32)
    return local, columns, w[mine], y[mine]
