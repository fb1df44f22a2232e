"""Batches of rows that are in files: what their ``read()`` returns is observed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._validation import check_alone
from ..distributed.file_rounds import FileBatch
from ..distributed.parquet_rows import ParquetRowsBatch

__all__ = ["WEIGHTS", "check_batch", "is_in_a_file", "naming", "observe_here"]

#: How rows in files have weights.
WEIGHTS = ", and name a column of weights: ParquetRows(..., weight=...)"


def is_in_a_file(X: Any) -> bool:
    """Whether X only says where rows are, as batches of ParquetRows do."""
    return isinstance(X, FileBatch)


def check_batch(batch: Any, targets: list[Any], sample_weight: Any) -> None:
    """Refuse other batches, and targets or weights beside those of the files."""
    with naming(batch):
        for y in targets:
            check_alone(y, sample_weight, WEIGHTS)
    if not isinstance(batch, ParquetRowsBatch):
        raise ValueError(f"{batch}: rows of features are needed, in batches of ParquetRows")


@contextmanager
def naming(batch: Any) -> Iterator[None]:
    """Let what is wrong with its rows say where they are."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise ValueError(f"{batch}: {error}") from None


def observe_here(past: Any, batch: Any) -> list[float]:
    """Read a batch in this process, whose targets are those of all lanes, and add it to a past."""
    with naming(batch):
        X, y, w = batch.read()
        return past.observe(X, [y] * len(past.lanes), w)
