"""Step lengths from the objective along a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.optimize import brentq, minimize_scalar

__all__ = ["Line", "search"]


class Line(Protocol):
    """F along theta + c (atom - theta), for line searches."""

    @property
    def curvature(self) -> float | None:
        """The second derivative in c where F is quadratic, else None."""
        ...

    def value(self, c: float) -> float:
        """Return F at c."""
        ...

    def slope(self, c: float) -> float:
        """Return dF/dc at c."""
        ...


def search(line: Line, sign: float, longest: float) -> float:
    """Return the step gamma in [0, longest] that minimises ``line`` at c = sign * gamma.

    A quadratic has a closed form. Otherwise a root of the slope is bracketed (the minimum, if the
    objective is convex); a step that does not lower the objective is replaced by a bounded
    minimisation of its values, and by 0 if that does not help either.
    """
    if line.curvature is not None:
        descent = -sign * line.slope(0.0)
        if descent <= 0.0:
            return 0.0
        return min(descent / line.curvature, longest) if line.curvature > 0.0 else longest

    def slope(gamma: float) -> float:
        return sign * line.slope(sign * gamma)

    if slope(0.0) >= 0.0:
        return 0.0
    bound = _finite_bound(slope, longest)
    gamma = bound if slope(bound) <= 0.0 else float(brentq(slope, 0.0, bound, xtol=1e-14))
    return _safeguarded(line, sign, gamma, bound)


def _finite_bound(slope: Callable[[float], float], longest: float) -> float:
    """Return the end of the bracket: ``longest``, or where the slope turns if that is infinite."""
    if np.isfinite(longest):
        return longest
    bound = 1.0
    while slope(bound) < 0.0 and bound < 1e12:
        bound *= 2.0
    return bound


def _safeguarded(line: Line, sign: float, gamma: float, bound: float) -> float:
    start, end = line.value(0.0), line.value(sign * gamma)
    # Values are not known, or they agree to rounding with what the slope says.
    if np.isnan(end) or end <= start + 1e-12 * abs(start):
        return gamma
    best = minimize_scalar(lambda c: line.value(sign * c), bounds=(0.0, bound), method="bounded")
    return float(best.x) if best.fun < start else 0.0
