"""What a reader yields: some rows, where they come from, and where to go on after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._typing import Array

__all__ = ["Chunk", "RatingChunk", "RowChunk"]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Rows of one file.

    Attributes
    ----------
    file : str
        The file they come from, ``"-"`` for standard input.
    rows : ndarray of int64
        The number of each row in its file, counted from 1 without the header. They follow each
        other unless bad rows were left out.
    position : dict
        Where to go on after this chunk, as JSON values.
    """

    file: str
    rows: Array
    position: dict[str, Any] = field(repr=False)
    #: By what rows are to be sorted, while they wait for it.
    order: Array | None = field(default=None, repr=False)

    @property
    def first_row(self) -> int:
        """The number of the first row in its file, counted from 1."""
        return int(self.rows[0])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, kw_only=True)
class RatingChunk(Chunk):
    """Ratings: who rated what, and how.

    Attributes
    ----------
    users, items : ndarray
        The ids as given: int64, or str (dtype object).
    values : ndarray of float64, or None
        The ratings; None where none were asked for.
    """

    users: Array
    items: Array
    values: Array | None


@dataclass(frozen=True, kw_only=True)
class RowChunk(Chunk):
    """Rows of features, with or without what is to be predicted.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_matrix
        One row of features per row; sparse for LIBSVM.
    y : ndarray, or None
        Numbers (float64), or labels: int64 or str (dtype object). None where none were asked for.
    """

    X: Any
    y: Array | None
