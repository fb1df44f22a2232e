"""A move of theta that predictions have yet to follow."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["PendingMove"]


class PendingMove(NamedTuple):
    """Let z <- keep z + image at the first ``n`` items, when the next read passes them.

    Attributes
    ----------
    keep : float
        What remains of the old predictions.
    image : tuple of arrays
        What is added: ``(a, step)`` stands for step <x_i, a> at a row, ``(u, v)`` for u_i v_j at
        an entry.
    n : int
        How many of the oldest items have to follow; those that came later agree already.
    """

    keep: float
    image: tuple[Any, ...]
    n: int
