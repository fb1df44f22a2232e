"""Predictions that were served and wait for their labels, in bounded memory."""

from __future__ import annotations

import secrets
from typing import Any

__all__ = ["MOST_PENDING", "Pending"]

#: So many values of rows are kept; the oldest leave first.
MOST_PENDING = 1_000_000


class Pending:
    """Rows and what was predicted for them, by the id of the request.

    Examples
    --------
    >>> from onlinefw.serve.pending import Pending
    >>> pending = Pending(most=5)
    >>> one = pending.put([("ann", "Up")], [3.5])
    >>> pending.get(one, 0)
    (('ann', 'Up'), 3.5)
    >>> other = pending.put([("bob", "Up"), ("bob", "Jaws")], [4.0, 2.0])
    >>> pending.get(one, 0) is None
    True
    """

    def __init__(self, most: int = MOST_PENDING) -> None:
        self._most, self._size = most, 0
        self._kept: dict[str, tuple[list[Any], list[Any]]] = {}

    def put(self, rows: list[Any], predictions: list[Any]) -> str:
        """Keep predictions; return their id."""
        id_ = secrets.token_hex(8)
        self._kept[id_] = rows, predictions
        self._size += _size(rows)
        while self._size > self._most and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            self._size -= _size(self._kept.pop(oldest)[0])
        return id_

    def drop(self, who: Any) -> None:
        """Drop the rows that begin with somebody."""
        for rows, _ in self._kept.values():
            left = [row if row[:1] != (who,) else () for row in rows]
            if left != rows:
                self._size += _size(left) - _size(rows)
                rows[:] = left

    def __len__(self) -> int:
        return len(self._kept)

    def n_rows(self, id_: str) -> int | None:
        """Return how many rows were predicted together; None if that is not known any more."""
        kept = self._kept.get(id_)
        return None if kept is None else len(kept[0])

    def get(self, id_: str, row: int) -> tuple[Any, Any] | None:
        """Return a row and its prediction; None if there is none."""
        kept = self._kept.get(id_)
        if kept is None or not 0 <= row < len(kept[0]) or not kept[0][row]:
            return None
        return kept[0][row], kept[1][row]


def _size(rows: list[Any]) -> int:
    """Return how many values rows have, with one for each row; long text counts as several."""
    return sum(1 + sum(_values(v) for v in row) for row in rows)


def _values(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value) // 64
    return len(value) if isinstance(value, (list, dict)) else 1
