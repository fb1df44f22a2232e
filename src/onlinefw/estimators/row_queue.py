"""Rows that have been read and not yet learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["RowQueue"]


class RowQueue:
    """First in, first out: parts of any length go in, batches of a given length come out.

    A part is a tuple of columns of equal length (arrays or CSR matrices).
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Any, ...]] = []
        self._used = 0  # rows of the first part that were taken

    def __len__(self) -> int:
        return sum(part[0].shape[0] for part in self._parts) - self._used

    def put(self, *columns: Any) -> None:
        """Add rows at the end."""
        if columns[0].shape[0]:
            self._parts.append(columns)

    def take(self, n: int) -> tuple[Any, ...]:
        """Remove and return up to n rows from the front."""
        taken = self.look(n)
        self.drop(n)
        return taken

    def drop(self, n: int) -> None:
        """Remove up to n rows from the front."""
        left = min(n, len(self))
        while left:
            here = self._parts[0][0].shape[0] - self._used
            if here > left:
                self._used += left
                break
            del self._parts[0]
            self._used, left = 0, left - here

    def state_dict(self) -> dict[str, Any]:
        """Return the rows in the queue, as columns."""
        return {"columns": list(self.look()) if len(self) else []}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> RowQueue:
        """Make the queue that ``state_dict`` described."""
        queue = cls()
        columns = state["columns"]
        if columns:
            if len({column.shape[0] for column in columns}) > 1:
                raise ValueError("the columns of the queue differ in length")
            queue.put(*columns)
        return queue

    def look(self, n: int | None = None) -> tuple[Any, ...]:
        """Return up to n rows from the front, or all, without removing them."""
        return self._front(len(self) if n is None else n)

    def _front(self, n: int) -> tuple[Any, ...]:
        pieces, first = [], self._used
        for part in self._parts:
            piece = tuple(column[first : first + n] for column in part)
            pieces.append(piece)
            n, first = n - piece[0].shape[0], 0
            if n == 0:
                break
        return tuple(_join(columns) for columns in zip(*pieces, strict=True))


def _join(columns: tuple[Any, ...]) -> Any:
    if len(columns) == 1:
        return columns[0]
    if sparse.issparse(columns[0]):
        return sparse.vstack(columns, "csr")
    return np.concatenate(columns)
