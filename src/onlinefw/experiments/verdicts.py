"""How claims are judged: small functions of measured numbers, with no expected results in them.

Each takes the claim's ``id``, ``statement`` and ``source`` as keywords and returns a
:class:`~onlinefw.experiments.results.Claim` with its criterion written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from .. import theory
from .._typing import Array
from .results import Claim

__all__ = [
    "MeasuredRate",
    "at_least",
    "at_most",
    "close",
    "decays",
    "flat",
    "lower",
    "lower_over_seeds",
    "never_above",
    "no_larger",
    "no_slower_than",
    "seconds_to",
    "slopes",
    "sooner",
]

#: A measured log-log slope may be this much flatter than the predicted one: finite rounds.
SLOPE_TOLERANCE = 0.1


class MeasuredRate(NamedTuple):
    """A log-log slope with a 95% interval: over seeds if there are several, else of the fit."""

    slope: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.slope:.2f} ({self.low:.2f} to {self.high:.2f})"


def slopes(t: ArrayLike, h: ArrayLike, first: float = 0.0) -> MeasuredRate:
    """Fit the slope of log h against log t, from round ``first`` on; all h are positive.

    If h has a row for each of several seeds, each is fitted by itself, and the interval is
    Student's over their slopes.
    """
    t, h = np.asarray(t, dtype=float), np.atleast_2d(np.asarray(h, dtype=float))
    late = t >= first
    rates = [theory.fit_rate(t[late], row[late]) for row in h]
    if len(rates) == 1:
        return MeasuredRate(rates[0].slope, rates[0].low, rates[0].high, 1)
    values = np.array([rate.slope for rate in rates])
    mean, error = float(values.mean()), float(stats.sem(values))
    margin = float(stats.t.ppf(0.975, values.size - 1)) * error
    return MeasuredRate(mean, mean - margin, mean + margin, values.size)


def no_slower_than(
    t: ArrayLike,
    h: ArrayLike,
    rate: Callable[[Array], Array],
    name: str,
    *,
    first: float = 0.0,
    **claim: Any,
) -> Claim:
    """Judge whether h falls at least as fast as ``rate``: by slopes over the same rounds.

    The slope's 95% interval must also be below 0: seeds that scatter more than that show nothing.
    ``rate`` is the predicted function of t, logarithms included, so that its slope over finite
    rounds is what it really is there; ``name`` is how it is written.
    """
    t = np.asarray(t, dtype=float)
    late = t[t >= first]
    predicted = theory.fit_rate(late, rate(late)).slope
    measured = slopes(t, h, first)
    return Claim(
        predicted=f"{name}: slope at most {predicted:.2f} + {SLOPE_TOLERANCE:g} "
        f"over rounds {late[0]:,.0f} to {late[-1]:,.0f}",
        measured=f"slope {measured}" + (f", {measured.seeds} seeds" if measured.seeds > 1 else ""),
        holds=bool(measured.slope <= predicted + SLOPE_TOLERANCE and measured.high < 0.0),
        **claim,
    )


def decays(t: ArrayLike, gap: ArrayLike, *, first: float = 0.0, **claim: Any) -> Claim:
    """Judge whether a positive quantity falls: its log-log slope is below 0 with 95% confidence."""
    measured = slopes(t, gap, first)
    return Claim(
        predicted="falls: the 95% interval of its log-log slope is below 0",
        measured=f"slope {measured}",
        holds=bool(measured.high < 0.0),
        **claim,
    )


def never_above(values: ArrayLike, bound: ArrayLike, **claim: Any) -> Claim:
    """Judge whether no value exceeds its bound."""
    values, bound = np.asarray(values, dtype=float), np.asarray(bound, dtype=float)
    share = float(np.max(values / bound))
    return Claim(
        predicted="never above the bound",
        measured=f"at most {share:.2g} times the bound",
        holds=bool(np.all(values <= bound)),
        **claim,
    )


def lower(
    ours: float, theirs: float, what: str, *, names: tuple[str, str], unit: str = "", **claim: Any
) -> Claim:
    """Judge whether the first number is below the second."""
    return Claim(
        predicted=f"{what}: {names[0]} below {names[1]}",
        measured=f"{names[0]} {ours:.3g}{unit}, {names[1]} {theirs:.3g}{unit}",
        holds=bool(ours < theirs),
        **claim,
    )


def lower_over_seeds(
    ours: ArrayLike, theirs: ArrayLike, what: str, *, names: tuple[str, str], **claim: Any
) -> Claim:
    """Judge whether a positive quantity is lower on average: the mean of log(ours / theirs).

    ``ours`` and ``theirs`` have one row for each seed; a row is averaged first. The 95% interval
    over the seeds must be below 0.
    """
    ratio = np.log(np.atleast_2d(ours) / np.atleast_2d(theirs)).mean(axis=1)
    mean, measured, highest = float(ratio.mean()), f"{ratio.mean():+.3f}", float(ratio.mean())
    if ratio.size > 1:
        margin = float(stats.t.ppf(0.975, ratio.size - 1) * stats.sem(ratio))
        highest = mean + margin
        measured += f" ({mean - margin:+.3f} to {highest:+.3f}, {ratio.size} seeds)"
    return Claim(
        predicted=f"{what}: mean of log({names[0]} / {names[1]}) below 0 with 95% confidence",
        measured=measured,
        holds=bool(highest < 0.0),
        **claim,
    )


def no_larger(
    ours: float,
    theirs: float,
    what: str,
    *,
    factor: float,
    names: tuple[str, str],
    unit: str = "",
    **claim: Any,
) -> Claim:
    """Judge whether the first number is at most ``factor`` times the second."""
    return Claim(
        predicted=f"{what}: {names[0]} at most {factor:g} times {names[1]}",
        measured=f"{names[0]} {ours:.4g}{unit}, {names[1]} {theirs:.4g}{unit}",
        holds=bool(ours <= factor * theirs),
        **claim,
    )


def close(
    ours: float,
    theirs: float,
    what: str,
    *,
    within: float,
    names: tuple[str, str],
    unit: str = "",
    **claim: Any,
) -> Claim:
    """Judge whether two numbers differ by at most ``within``."""
    return Claim(
        predicted=f"{what}: {names[0]} and {names[1]} within {within:g}{unit} of each other",
        measured=f"{names[0]} {ours:.3g}{unit}, {names[1]} {theirs:.3g}{unit}",
        holds=bool(abs(ours - theirs) <= within),
        **claim,
    )


def at_most(value: float, limit: float, what: str, **claim: Any) -> Claim:
    """Judge whether a number is at most a limit."""
    return Claim(
        predicted=f"{what} at most {limit:.3g}",
        measured=f"{value:.3g}",
        holds=bool(value <= limit),
        **claim,
    )


def at_least(value: float, limit: float, what: str, **claim: Any) -> Claim:
    """Judge whether a number is at least a limit."""
    return Claim(
        predicted=f"{what} at least {limit:.3g}",
        measured=f"{value:.3g}",
        holds=bool(value >= limit),
        **claim,
    )


def flat(milliseconds: ArrayLike, *, within: float = 1.5, skip: int = 1, **claim: Any) -> Claim:
    """Judge whether a round costs as much late as early.

    ``milliseconds`` are medians of successive parts of the run, of which the first ``skip`` are
    left out. The last may take ``within`` times as long as the first one looked at.
    """
    milliseconds = np.asarray(milliseconds, dtype=float)
    early, last = float(milliseconds[skip]), float(milliseconds[-1])
    return Claim(
        predicted=f"a late round costs at most {within:g} times an early one",
        measured=f"{early:.3g} ms early, {last:.3g} ms late",
        holds=bool(last <= within * early),
        **claim,
    )


def seconds_to(level: float, seconds: ArrayLike, values: ArrayLike) -> float:
    """Return when a curve is first at or below a level; inf if never."""
    reached = np.flatnonzero(np.asarray(values) <= level)
    return float(np.asarray(seconds)[reached[0]]) if reached.size else float("inf")


def sooner(
    ours: tuple[ArrayLike, ArrayLike],
    theirs: tuple[ArrayLike, ArrayLike],
    what: str,
    *,
    names: tuple[str, str],
    within: float = 1.0,
    level: float | None = None,
    **claim: Any,
) -> Claim:
    """Judge who is first, in seconds, at a level: by default the best that both curves reach.

    The curves are (seconds, values); ``what`` the values are. Ours may take at most ``within``
    times as long as theirs; below 1 it must be that much faster.
    """
    if level is None:
        level = max(float(np.min(ours[1])), float(np.min(theirs[1])))
    mine, other = seconds_to(level, *ours), seconds_to(level, *theirs)
    in_time = mine < other if within == 1.0 else mine <= within * other
    factor = "sooner than" if within == 1.0 else f"in at most {within:g} times the seconds of"
    return Claim(
        predicted=f"{names[0]} reaches {what} {level:.3g} {factor} {names[1]}",
        measured=f"{names[0]} {_when(mine)}, {names[1]} {_when(other)}",
        holds=bool(in_time and mine < np.inf),
        **claim,
    )


def _when(seconds: float) -> str:
    return f"in {seconds:.3g} s" if np.isfinite(seconds) else "never"
