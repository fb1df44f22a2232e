"""Numbers with their nouns."""

from __future__ import annotations

__all__ = ["counted"]


def counted(n: int, noun: str) -> str:
    """Return a number and what it counts, in the singular where there is one.

    Examples
    --------
    >>> from onlinefw._words import counted
    >>> counted(1, "user"), counted(0, "row"), counted(1682, "item")
    ('1 user', '0 rows', '1,682 items')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
