"""A move of theta that the predictions have not made yet."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["PendingMove"]


class PendingMove(NamedTuple):
    """Let z <- keep z + image at the first ``n`` items, when they are read next.

    Attributes
    ----------
    keep : float
        The factor of the old predictions.
    image : tuple of arrays
        What is added: ``(a, step)`` stands for step <x_i, a> at a row, ``(u, v)`` for u_i v_j at
        an entry.
    n : int
        How many of the oldest items have to move; later ones were predicted after the move.
    """

    keep: float
    image: tuple[Any, ...]
    n: int
