"""Numbers with their nouns, and what a gap and a mood mean."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

__all__ = ["UNINFORMATIVE", "counted", "forgetting_in_words", "gap_in_words", "gap_share",
           "is_informative", "mood_in_words", "printable"]  # fmt: skip

#: A mood that explains so much of the variance helps.
HELPS = 0.005
#: So many changes of the data are told, at most.
MOST_CHANGES = 3
#: What is said of a certificate that proves nothing.
UNINFORMATIVE = (
    "uninformative: the gap, {gap:.3g}, is larger than the mean loss itself, {loss:.3g}, and no "
    "loss is below 0. The model may still be good; few steps in a wide ball, or few observations "
    "a row, make the gap large"
)


def counted(n: int, noun: str) -> str:
    """Return a number and what it counts, in the singular where there is one."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def gap_in_words(gap: float, convex: bool, loss: float | None = None) -> str:
    """Say what a duality gap proves about a model: nothing, unless its loss is convex.

    ``loss`` is the mean loss that the gap speaks of; None if it is not known, or if values of
    the loss may be below 0.

    Examples
    --------
    >>> from onlinefw._words import gap_in_words
    >>> gap_in_words(0.0123, convex=True)
    'certificate: its mean loss is at most 0.0123 above the smallest of its radius'
    >>> gap_in_words(0.0123, convex=True, loss=0.41)
    'certificate: its mean loss is at most 0.0123 above the smallest of its radius (3% of the loss)'
    >>> gap_in_words(4.1, convex=True, loss=0.41).split(",")[0]
    'certificate: uninformative: the gap'
    >>> gap_in_words(0.0123, convex=False)
    'gap 0.0123: a measure of stationarity, no proof of optimality (the loss is not convex)'
    >>> gap_in_words(float("nan"), convex=True)
    'no certificate: the rows are not kept, so the gap is not known'
    """
    if isnan(gap):
        return "no certificate: the rows are not kept, so the gap is not known"
    if not convex:
        return (
            f"gap {gap:.3g}: a measure of stationarity, no proof of optimality "
            "(the loss is not convex)"
        )
    informative = is_informative(gap, loss)
    if informative is False:
        return f"certificate: {UNINFORMATIVE.format(gap=gap, loss=loss)}"
    share = f" ({gap_share(gap, loss)} of the loss)" if informative else ""
    bound = f"at most {gap:.3g} above the smallest of its radius"
    return f"certificate: its mean loss is {bound}{share}"


def is_informative(gap: float, loss: float | None) -> bool | None:
    """Whether a certificate says more than that no loss is below 0; None if that is not known."""
    if loss is None or not loss > 0.0 or isnan(gap):  # nan is not known, either
        return None
    return gap < loss


def gap_share(gap: float, loss: float | None) -> str:
    """Return a gap as a percentage of the loss, or that it is uninformative.

    Examples
    --------
    >>> from onlinefw._words import gap_share
    >>> gap_share(0.066, 0.41), gap_share(0.0012, 0.41), gap_share(4.1, 0.41)
    ('16%', '0.29%', 'uninformative')
    """
    if loss is None or not is_informative(gap, loss):
        return "uninformative" if is_informative(gap, loss) is False else "unknown"
    share = 100.0 * gap / loss
    return f"{share:.0f}%" if share >= 10.0 else f"{share:.2g}%"


def mood_in_words(fast: float, slow: float, gain: float) -> str:
    """Say what a mood does, and whether it helps.

    Examples
    --------
    >>> from onlinefw._words import mood_in_words
    >>> mood_in_words(0.32, 0.41, 0.036).split(". ")[1]
    'That helps here: it explains 3.6% of the variance of the errors'
    >>> mood_in_words(0.03, -0.06, 0.0003).split(". ")[1]
    'That hardly matters here: it explains 0.03% of the variance of the errors'
    """
    helps = "helps" if gain >= HELPS else "hardly matters"
    return (
        "where the latest predictions of a row were too low or too high, its next ones are "
        f"corrected by {fast:.2g} times the mean of about 3 errors, and {slow:.2g} times that of "
        f"about 14. That {helps} here: it explains {100.0 * gain:.2g}% of the variance of the "
        "errors"
    )


def forgetting_in_words(half_life: float | None, changes: Sequence[int]) -> str:
    """Say how fast a model forgets, and when the data looked as if they had changed.

    Examples
    --------
    >>> from onlinefw._words import forgetting_in_words
    >>> forgetting_in_words(None, [])
    'nothing is forgotten'
    >>> forgetting_in_words(400.0, [5200, 7100]).split("; ")[1]
    'the data look as if they had changed, shortly before observations 5,200 and 7,100'
    """
    if half_life is not None:
        now = f"an observation counts half as much after {half_life:,.0f} others"
    else:
        now = "nothing is forgotten" + (" since the last change" if len(changes) else "")
    if not len(changes):
        return now
    *first, last = (f"{n:,}" for n in changes[-MOST_CHANGES:])
    when = f"{', '.join(first)} and {last}" if first else last
    more = "" if len(changes) <= MOST_CHANGES else f", the latest of {len(changes):,} times"
    word = "observations" if first else "observation"
    return f"{now}; the data look as if they had changed, shortly before {word} {when}{more}"


def printable(text: object) -> str:
    r"""Return text for a terminal: what would steer it, or turn its direction, is escaped.

    Examples
    --------
    >>> from onlinefw._words import printable
    >>> print(printable("\x1b[31mred"))
    \x1b[31mred
    """
    return "".join(c if c.isprintable() or c in " \n\t" else ascii(c)[1:-1] for c in str(text))
