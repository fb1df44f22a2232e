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
from .results import UNDECIDED, UNINFORMATIVE, Claim

__all__ = [
    "LATE",
    "MeasuredRate",
    "at_least",
    "at_most",
    "close",
    "decays",
    "equivalent",
    "flat",
    "lower",
    "lower_over_seeds",
    "never_above",
    "no_larger",
    "no_slower_than",
    "seconds_to",
    "similar_slopes",
    "slopes",
    "sooner",
]

#: Rates are judged from this share of the rounds on: late, when plateaus are over.
LATE = 0.3
#: A measured log-log slope may be this much flatter than the predicted one: finite rounds.
SLOPE_TOLERANCE = 0.1
#: Of two runs of the same thing one may take this many times as long: a closer race is undecided.
CLOSE = 1.2
#: A race is run to so many levels.
LEVELS = 5


class MeasuredRate(NamedTuple):
    """The log-log slope of a mean over seeds, with a 95% interval over seeds (none: -inf, inf)."""

    slope: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        if self.seeds == 1:
            return f"{self.slope:.2f} (one seed, no interval)"
        return f"{self.slope:.2f} ({self.low:.2f} to {self.high:.2f}, {self.seeds} seeds)"


def slopes(t: ArrayLike, h: ArrayLike, first: float = 0.0) -> MeasuredRate:
    """Fit log(mean of h over seeds) against log t, from round ``first`` on; all h are positive.

    h has a row for each seed. Theory bounds h, so it is h that is averaged, not slopes. The
    interval is Student's, with the jackknife's standard error: the slope without one seed at a
    time. Rounds of one run are correlated, so one seed has no interval.
    """
    t, h = np.asarray(t, dtype=float), np.atleast_2d(np.asarray(h, dtype=float))
    late, n = t >= first, len(h)
    t, h = t[late], h[:, late]
    slope = theory.fit_rate(t, h.mean(axis=0)).slope
    if n == 1:
        return MeasuredRate(slope, -np.inf, np.inf, 1)
    without = [theory.fit_rate(t, np.delete(h, k, axis=0).mean(axis=0)).slope for k in range(n)]
    error = np.sqrt((n - 1) * np.var(without))
    margin = float(stats.t.ppf(0.975, n - 1) * error)
    return MeasuredRate(slope, slope - margin, slope + margin, n)


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

    ``rate`` is the predicted function of t, logarithms included, so that its slope over finite
    rounds is what it really is there; ``name`` is how it is written. The limit is the predicted
    slope plus ``SLOPE_TOLERANCE``: the claim holds if the whole 95% interval of the measured slope
    is at or below it (and below 0), fails if the whole interval is above, else it is undecided.
    """
    t = np.asarray(t, dtype=float)
    late = t[t >= first]
    predicted = theory.fit_rate(late, rate(late)).slope
    measured = slopes(t, h, first)
    limit = min(predicted + SLOPE_TOLERANCE, 0.0)
    holds = bool(measured.high <= limit and measured.high < 0.0)
    return Claim(
        predicted=f"{name}: slope of the mean at most {predicted:.2f} + {SLOPE_TOLERANCE:g} "
        f"over rounds {late[0]:,.0f} to {late[-1]:,.0f}",
        measured=f"slope {measured}",
        holds=holds,
        instead="" if holds or measured.low > limit else UNDECIDED,
        **claim,
    )


def decays(t: ArrayLike, gap: ArrayLike, *, first: float = 0.0, **claim: Any) -> Claim:
    """Judge whether a positive quantity falls: its log-log slope is below 0 with 95% confidence.

    With one seed there is no such confidence: then every value of the last third of the rounds
    looked at must be below every value of the first third.
    """
    if len(np.atleast_2d(gap)) == 1:
        late = np.asarray(gap, dtype=float).ravel()[np.asarray(t) >= first]
        third = max(1, late.size // 3)
        lowest, highest = float(late[:third].min()), float(late[-third:].max())
        return Claim(
            predicted="falls: the last third of its values is below the first third (one seed)",
            measured=f"first third {lowest:.3g} or more, last third {highest:.3g} or less",
            holds=highest < lowest,
            **claim,
        )
    measured = slopes(t, gap, first)
    holds = bool(measured.high < 0.0)
    return Claim(
        predicted="falls: the 95% interval of the log-log slope of its mean is below 0",
        measured=f"slope {measured}",
        holds=holds,
        instead="" if holds or measured.low > 0.0 else UNDECIDED,
        **claim,
    )


def never_above(
    values: ArrayLike,
    bound: ArrayLike,
    *,
    worst: ArrayLike | None = None,
    whose: str = "the worst feasible theta",
    **claim: Any,
) -> Claim:
    """Judge whether no value exceeds its bound, where the bound says anything.

    ``worst`` is the value that the worst feasible theta has, or what else the words ``whose`` name.
    Where the bound is not below it, nothing can be above the bound: these places are left out, and
    if there are no others the claim is uninformative.
    """
    values, bound = np.asarray(values, dtype=float), np.asarray(bound, dtype=float)
    share = values / bound
    if worst is None:
        return Claim(
            predicted="never above the bound",
            measured=f"at most {share.max():.2g} times the bound",
            holds=bool(np.all(values <= bound)),
            **claim,
        )
    excess = np.broadcast_to(np.asarray(worst, dtype=float), bound.shape) / bound
    bites = np.broadcast_to(excess > 1.0, share.shape) | (share > 1.0)
    if not bites.any():
        return Claim(
            predicted="never above the bound",
            measured=f"{whose} has at most {excess.max():.2g} times the bound, so nothing can be "
            f"above it (measured: {share.max():.2g} times)",
            holds=False,
            instead=UNINFORMATIVE,
            **claim,
        )
    return Claim(
        predicted=f"never above the bound, where {whose} would be "
        f"({bites.mean():.0%} of the places; there up to {excess.max():.2g} times the bound)",
        measured=f"at most {share[bites].max():.2g} times the bound there",
        holds=bool(np.all(share <= 1.0)),
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

    ``ours`` and ``theirs`` have one row (or number) for each seed; a row is averaged first. It
    holds if the 95% interval over the seeds is below 0, fails if it is above, else it is undecided.
    """
    ratio = np.log(np.asarray(ours, dtype=float) / np.asarray(theirs, dtype=float))
    ratio = ratio.reshape(len(ratio), -1).mean(axis=1)
    mean, half, seeds = float(ratio.mean()), np.inf, "one seed, no interval"
    if ratio.size > 1:
        half = float(stats.t.ppf(0.975, ratio.size - 1) * stats.sem(ratio))
        seeds = f"{mean - half:+.3f} to {mean + half:+.3f}, {ratio.size} seeds"
    holds = mean + half < 0.0
    return Claim(
        predicted=f"{what}: mean of log({names[0]} / {names[1]}) below 0 with 95% confidence",
        measured=f"{mean:+.3f} ({seeds})",
        holds=holds,
        instead="" if holds or mean - half > 0.0 else UNDECIDED,
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


def equivalent(
    ours: ArrayLike,
    theirs: ArrayLike,
    what: str,
    *,
    margin: float,
    names: tuple[str, str],
    unit: str = "",
    **claim: Any,
) -> Claim:
    """Judge whether two positive quantities are the same up to a share ``margin`` of their level.

    ``ours`` and ``theirs`` have a value for each of several seeds, in pairs; the level is the mean
    of theirs. An equivalence test: the 95% interval of the mean difference must be inside
    +-margin times the level. It fails if the interval is outside, and is undecided if it reaches
    across: not to see a difference is no proof that there is none.
    """
    ours, theirs = np.atleast_1d(ours).astype(float), np.atleast_1d(theirs).astype(float)
    level = abs(float(theirs.mean()))
    apart = (ours - theirs) / level
    mean, half = float(apart.mean()), np.inf
    if apart.size > 1:
        half = float(stats.t.ppf(0.975, apart.size - 1) * stats.sem(apart))
    holds = abs(mean) + half <= margin
    different = abs(mean) - half > margin
    interval = f"{mean - half:+.1%} to {mean + half:+.1%}, {apart.size} seeds"
    return Claim(
        predicted=f"{what}: {names[0]} within {margin:.0%} of {names[1]} (the 95% interval of the "
        f"difference, relative to {names[1]})",
        measured=f"{names[0]} {ours.mean():.3g}{unit}, {names[1]} {theirs.mean():.3g}{unit}: "
        f"{mean:+.1%} ({interval if apart.size > 1 else 'one seed, no interval'})",
        holds=bool(holds),
        instead="" if holds or different else UNDECIDED,
        **claim,
    )


def similar_slopes(
    ours: MeasuredRate,
    theirs: MeasuredRate,
    *,
    margin: float,
    names: tuple[str, str],
    **claim: Any,
) -> Claim:
    """Judge whether two slopes are the same up to a share ``margin`` of theirs.

    An equivalence test, like ``equivalent``: the error of the difference is that of both slopes,
    as if their seeds were not the same.
    """
    limit = margin * abs(theirs.slope)
    apart = abs(ours.slope - theirs.slope)
    half = float(np.hypot(ours.high - ours.slope, theirs.high - theirs.slope))
    holds, different = apart + half <= limit, apart - half > limit
    return Claim(
        predicted=f"slope of the mean: {names[0]} within {margin:.0%} of {names[1]} (the 95% "
        "interval of the difference)",
        measured=f"{names[0]} {ours}, {names[1]} {theirs}",
        holds=bool(holds),
        instead="" if holds or different else UNDECIDED,
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
    constant: float = np.inf,
    **claim: Any,
) -> Claim:
    """Judge who is first, in seconds, at a level: by default the best that both curves reach.

    The curves are (seconds, values); ``what`` the values are. Ours may take at most ``within``
    times as long as theirs; below 1 it must be that much faster. ``constant`` is what the best
    constant prediction has: a race to a level that is not below it says nothing. Below it there are
    races to ``LEVELS`` levels, evenly down to the best that both reach, or, if only one gets below
    the constant, to the best of that one. It holds if ours is in time at all levels, and fails if
    at none, but late at some. It is undecided if ours is in time at some levels only, if nobody
    gets below the constant, or if no race tells (too close, or their run ended too early).
    """
    reached = [float(np.min(curve[1])) for curve in (ours, theirs)]
    levels = _levels(max(reached), min(reached), constant) if level is None else [level]
    if not levels or levels[0] >= constant:
        races = [0]
    else:
        races = [_race(each, ours, theirs, within) for each in levels]
    holds = min(races) > 0
    factor = "sooner than" if within == 1.0 else f"in at most {within:g} times the seconds of"
    span = " to ".join(f"{each:.4g}" for each in dict.fromkeys([*levels[:1], *levels[-1:]]))
    known = f" (the constant prediction has {constant:.4g})" if np.isfinite(constant) else ""
    measured = [
        f"{each:.4g}: {names[0]} {_when(each, ours)}, {names[1]} {_when(each, theirs)}"
        for each in levels
    ] + [
        f"{name} ends after {float(np.asarray(curve[0])[-1]):.3g} s with {best:.4g} at best"
        for name, curve, best in zip(names, (ours, theirs), reached, strict=True)
        if not levels or best > levels[-1]
    ]
    return Claim(
        predicted=f"{names[0]} reaches {what} {span or 'below a constant'}{known} {factor} "
        f"{names[1]}",
        measured="; ".join(measured),
        holds=holds,
        instead="" if holds or (max(races) <= 0 and min(races) < 0) else UNDECIDED,
        **claim,
    )


def _levels(both: float, one: float, constant: float) -> list[float]:
    """Return the levels of a race: to what both reach, or else one; none if nobody is below."""
    if constant == np.inf:
        return [both]
    best = both if both < constant else one
    levels: list[float] = np.linspace(constant, best, LEVELS + 1)[1:].tolist()
    return levels if best < constant else []


def _race(
    level: float,
    ours: tuple[ArrayLike, ArrayLike],
    theirs: tuple[ArrayLike, ArrayLike],
    within: float,
) -> int:
    """Return 1 if ours is in time at a level, -1 if it is not, 0 if that cannot be said.

    A race for less time (``within`` 1) that is closer than ``CLOSE`` is a draw. A run of ours that
    ends without getting there is late.
    """
    mine, other = seconds_to(level, *ours), seconds_to(level, *theirs)
    slack = CLOSE if within == 1.0 else 1.0
    at_least = other if np.isfinite(other) else float(np.asarray(theirs[0])[-1])
    if slack * mine <= within * at_least:
        return 1
    return -1 if np.isfinite(other) and mine > slack * within * other else 0


def _when(level: float, curve: tuple[ArrayLike, ArrayLike]) -> str:
    seconds = seconds_to(level, *curve)
    return f"{seconds:.3g} s" if np.isfinite(seconds) else "not"
