"""Verdicts on exponents: how fast something grows or falls, judged over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from .. import theory
from .results import UNDECIDED, Claim

__all__ = ["between", "slower_than"]


def slower_than(
    t: ArrayLike, h: ArrayLike, limit: float, why: str, *, first: float = 0.0, **claim: Any
) -> Claim:
    """Judge whether the mean of h over seeds falls slower than t^limit, with 95% confidence.

    h has a row for each of several seeds. The interval of its log-log slope is Student's with the
    jackknife's standard error: the slope without one seed at a time. The claim holds if all of it
    is above the limit, fails if none of it is, else it is undecided.
    """
    t, h = np.asarray(t, dtype=float), np.asarray(h, dtype=float)
    t, h = t[t >= first], h[:, t >= first]
    slope, seeds = theory.fit_rate(t, h.mean(axis=0)).slope, len(h)
    margin = float("inf")
    if seeds > 1:
        without = [
            theory.fit_rate(t, np.delete(h, k, axis=0).mean(axis=0)).slope for k in range(seeds)
        ]
        margin = float(stats.t.ppf(0.975, seeds - 1) * np.sqrt((seeds - 1) * np.var(without)))
    holds = bool(slope - margin > limit)
    return Claim(
        predicted=f"slope of the mean above {limit:.2f} with 95% confidence ({why})",
        measured=f"slope {slope:.2f} ({slope - margin:.2f} to {slope + margin:.2f}, {seeds} seeds)",
        holds=holds,
        instead="" if holds or slope + margin <= limit else UNDECIDED,
        **claim,
    )


def between(values: ArrayLike, low: float, high: float, what: str, why: str, **claim: Any) -> Claim:
    """Judge whether a number, measured once a seed, is in a range.

    It holds if all of the 95% interval of its mean is, fails if none of it is, and is undecided
    otherwise.
    """
    values = np.asarray(values, dtype=float)
    mean, margin = float(values.mean()), float("inf")
    if values.size > 1:
        margin = float(stats.t.ppf(0.975, values.size - 1) * stats.sem(values))
    holds = bool(low <= mean - margin and mean + margin <= high)
    outside = mean + margin < low or mean - margin > high
    return Claim(
        predicted=f"{what} {_range(low, high)} with 95% confidence ({why})",
        measured=f"{mean:.2f} ({mean - margin:.2f} to {mean + margin:.2f}, {values.size} seeds)",
        holds=holds,
        instead="" if holds or outside else UNDECIDED,
        **claim,
    )


def _range(low: float, high: float) -> str:
    if np.isinf(low):
        return f"at most {high:.2f}"
    return f"at least {low:.2f}" if np.isinf(high) else f"from {low:.2f} to {high:.2f}"
