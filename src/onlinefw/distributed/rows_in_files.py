"""Batches of rows in files, as a worker reads them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from .._typing import Array, Shape
from .._validation import check_rows, check_targets, check_weights
from ..losses import Loss
from ..objectives.from_files import naming
from .parquet_rows import ParquetRowsBatch

__all__ = ["ReadAhead", "checked_rows"]

#: Rows, targets and weights.
Checked = tuple[Any, Array, Array]


def checked_rows(place: tuple[Any, ...], shape: Shape | None, loss: Loss) -> Checked:
    """Read a batch, and refuse what a model with this loss cannot learn from."""
    batch = ParquetRowsBatch(*place)
    with naming(batch):
        X, y, w = batch.read()
        X = check_rows(X, shape)
        y = check_targets(y, X.shape[0], loss)
        return np.ascontiguousarray(X), y, check_weights(w, X.shape[0])


class ReadAhead:
    """Reads batches: the one that was announced in another thread, while this one goes on."""

    def __init__(self, shape: Shape, loss: Loss) -> None:
        self._shape, self._loss = shape, loss
        self._pool = ThreadPoolExecutor(1)
        self._announced: tuple[tuple[Any, ...], Future[Checked]] | None = None

    def announce(self, place: tuple[Any, ...]) -> None:
        """Begin to read a batch."""
        future = self._pool.submit(checked_rows, place, self._shape, self._loss)
        self._announced = place, future

    def read(self, place: tuple[Any, ...]) -> Checked:
        """Return a batch, or refuse it."""
        announced, self._announced = self._announced, None
        if announced is not None and announced[0] == place:
            return announced[1].result()
        return checked_rows(place, self._shape, self._loss)
