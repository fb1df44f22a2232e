"""A move of theta that the predictions have not made yet."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["PendingMove"]


class PendingMove(NamedTuple):
    """Let z <- keep z + image at the first ``n`` items, when they are read next."""

    keep: float
    #: ``(a, step)`` stands for step <x_i, a> at a row, ``(u, v)`` for u_i v_j at an entry.
    image: tuple[Any, ...]
    n: int  # later items were predicted after the move
