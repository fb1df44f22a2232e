"""A batch of a Parquet file, cut into what each worker gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from .._validation import check_indices, check_magnitude, check_targets
from ..losses import Loss
from .parquet import ParquetBatch

__all__ = ["Piece", "checked_pieces", "piece_of"]

#: Local rows, columns, weights, targets, and their places in the batch.
Piece = tuple[Array, Array, Array, Array, Array]


def checked_pieces(
    place: tuple[Any, ...], n: int, shape: tuple[int, int] | None, dtype: Any, loss: Loss
) -> tuple[Any, ...]:
    """Return what the driver needs to know about a batch, and the piece of each worker.

    That is the number of ratings, the largest row and the largest column; or what is wrong.
    """
    try:
        rows, cols, y = _checked(place, shape, dtype, loss)
    except ValueError as error:
        return (f"{ParquetBatch(*place)}: {error}", *[None] * n)
    pieces = [_cut(rows, cols, y, dtype, k, n) for k in range(n)]
    return ((rows.size, int(rows.max()), int(cols.max())), *pieces)


def piece_of(place: tuple[Any, ...], k: int, n: int, dtype: Any, loss: Loss) -> Piece:
    """Return the piece of one worker, who reads it alone."""
    return _cut(*_checked(place, None, dtype, loss), dtype, k, n)


def _checked(
    place: tuple[Any, ...], shape: tuple[int, int] | None, dtype: Any, loss: Loss
) -> tuple[Array, Array, Array]:
    X, values = ParquetBatch(*place).read()
    rows, cols = check_indices(X, shape or (0, 0), growing=shape is None)
    y = check_targets(values, rows.size, loss)
    check_magnitude(y, np.ones(1), dtype)
    return rows, cols, y


def _cut(rows: Array, cols: Array, y: Array, dtype: Any, k: int, n: int) -> Piece:
    mine = np.flatnonzero(rows % n == k)
    local, columns = (rows[mine] // n).astype(np.uint32), cols[mine].astype(np.uint32)
    return local, columns, np.ones(mine.size, dtype), y[mine].astype(dtype), mine
