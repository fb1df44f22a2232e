"""The search for the intercept that minimises a sum of losses.

It is written once, for any function ``totals(data, b)`` that returns the sums of the losses, of
their slopes and of their curvatures at intercept b: compiled for rows in this process's memory, and
as plain Python where a GPU or workers compute every sum.
"""

from __future__ import annotations

from math import inf

from numba import njit

from . import ROUNDING
from .rows import extremes, totals_between

__all__ = ["few_rows_descent", "few_rows_root", "searches"]

#: Newton steps stop when the slope is below this share of the total weight, or after MAX_STEPS.
SHARE, MAX_STEPS = 1e-12, 60
#: Below this share one more Newton step is the last: it squares what is left.
LAST = 1e-8


def searches(totals):
    """Return the two searches, for a convex sum of losses and for any."""

    def root(data, weight, b):
        """Find where an increasing slope is 0: Newton steps, kept inside what is known to hold it.

        Steps outside are of limited length, so a slope that never turns (only one class so far)
        ends at a finite b.
        """
        low, high, reach = -inf, inf, 1.0
        for _ in range(MAX_STEPS):
            _, slope, bend = totals(data, b)
            if abs(slope) <= SHARE * weight or high - low <= 1e-14 * (1.0 + abs(b)):
                break
            if slope < 0.0:
                low, sign = b, -1.0
            else:
                high, sign = b, 1.0
            newton = b - slope / bend if bend > 0.0 else -sign * inf
            if abs(slope) <= LAST * weight and low < newton < high and abs(newton - b) <= LAST:
                return newton
            newton = min(max(newton, b - reach), b + reach)
            if not low < newton < high:
                newton = 0.5 * (low + high) if high - low < inf else b - sign * reach
            b, reach = newton, 2.0 * reach
        return b

    def descent(data, weight, b, low, high):
        """Take Newton (or, where F bends down, gradient) steps that lower F, halved as needed.

        A bounded loss would push the intercept of unbalanced classes to infinity, where nothing can
        be learned any more. So b stays between ``low`` and ``high``: some row is undecided.
        """
        b = min(max(b, low), high)
        value, slope, bend = totals(data, b)
        for _ in range(MAX_STEPS):
            if abs(slope) <= SHARE * weight:
                break
            sign, longest = (1.0 if slope > 0.0 else -1.0), 0.25 * (high - low)
            length = min(abs(slope) / bend, longest) if bend > 0.0 else longest
            if bend > 0.0 and abs(slope) <= LAST * weight and length <= LAST:
                return min(max(b - slope / bend, low), high)
            start = b
            while length > 1e-15 * (1.0 + abs(start)):
                trial = min(max(start - sign * length, low), high)
                there, its_slope, its_bend = totals(data, trial)
                # F is lower there, or the same to rounding and flatter.
                same = abs(there - value) <= ROUNDING * abs(value)
                if (same and abs(its_slope) < abs(slope)) or (not same and there < value):
                    b, value, slope, bend = trial, there, its_slope, its_bend
                    break
                length *= 0.5
            if b == start:
                break
        return b

    return root, descent


@njit(cache=True)
def _totals_of_rows(data, b):
    kind, parameter, z, y, w = data
    return totals_between(0, len(z), kind, parameter, z, y, w, b)


few_rows_root, _descent = map(njit(cache=True), searches(_totals_of_rows))


@njit(cache=True)
def few_rows_descent(data, weight, start, signed):
    """Descend from ``start``, between the extremes of the rows."""
    _, _, z, y, w = data
    low, high = extremes(z, y, w, signed)
    return _descent(data, weight, start, low, high)
