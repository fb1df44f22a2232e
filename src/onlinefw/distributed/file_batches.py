"""Batches of entries that workers read from files themselves."""

from __future__ import annotations

from typing import Any

from ..losses import Loss
from .parquet import ParquetBatch
from .pieces import checked_pieces
from .shards import Shards

__all__ = ["FileBatches"]


class FileBatches:
    """Lets workers read batches, each while the one before is learned from.

    Parameters
    ----------
    shards : Shards
        Of the workers.
    dtype, loss
        Of the entries.

    Attributes
    ----------
    learned : list
        Where each batch that has become part of the past is, and the number of its first entry.
    """

    def __init__(self, shards: Shards, dtype: Any, loss: Loss) -> None:
        self._shards, self._dtype, self._loss = shards, dtype, loss
        self.learned: list[tuple[tuple[Any, ...], int]] = []
        self._ahead: tuple[Any, list[Any]] | None = None  # what is being read already

    def read(
        self, batch: ParquetBatch, shape: tuple[int, int] | None
    ) -> tuple[int, int, int, list[Any]]:
        """Let a worker read and check a batch; None is any shape.

        Return its length, its largest row and column, and references to the pieces of each worker.
        """
        ahead, self._ahead = self._ahead, None
        what = (batch, shape)
        refs = ahead[1] if ahead is not None and ahead[0] == what else self._start(*what)
        known, *pieces = self._shards.first_of(refs, lambda: self._start(*what))
        if isinstance(known, str):
            raise ValueError(known)
        if batch.following is not None:
            self._ahead = (batch.following, shape), self._start(batch.following, shape)
        return *known, pieces

    def _start(self, batch: ParquetBatch, shape: tuple[int, int] | None) -> list[Any]:
        n = self._shards.n
        args = batch.place, n, shape, self._dtype, self._loss
        return self._shards.start(batch.partition % n, checked_pieces, *args, returns=n + 1)
