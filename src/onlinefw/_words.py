"""Numbers with their nouns, and what a gap means."""

from __future__ import annotations

__all__ = ["counted", "gap_in_words", "printable"]


def counted(n: int, noun: str) -> str:
    """Return a number and what it counts, in the singular where there is one."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def gap_in_words(gap: float, convex: bool) -> str:
    """Say what a duality gap proves about a model: nothing, unless its loss is convex.

    Examples
    --------
    >>> from onlinefw._words import gap_in_words
    >>> gap_in_words(0.0123, convex=True)
    'certificate: its mean loss is at most 0.0123 above the smallest possible'
    >>> gap_in_words(0.0123, convex=False)
    'gap 0.0123: a measure of stationarity, no proof of optimality (the loss is not convex)'
    """
    if convex:
        return f"certificate: its mean loss is at most {gap:.3g} above the smallest possible"
    return (
        f"gap {gap:.3g}: a measure of stationarity, no proof of optimality (the loss is not convex)"
    )


def printable(text: object) -> str:
    r"""Return text for a terminal: what would steer it, or turn its direction, is escaped.

    Examples
    --------
    >>> from onlinefw._words import printable
    >>> print(printable("\x1b[31mred"))
    \x1b[31mred
    """
    return "".join(c if c.isprintable() or c in " \n\t" else ascii(c)[1:-1] for c in str(text))
