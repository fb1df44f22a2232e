"""Step rules.

Online learners take a *callable of the step counter*, which starts at 1: :class:`Harmonic`,
:class:`Power`, :class:`LogHarmonic`, or any function of your own with values in (0, 1].
:class:`LineSearch` (for online learners and batch solvers) and :class:`ShortStep` (for batch
solvers only) look at the objective instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

__all__ = ["Harmonic", "LineSearch", "LogHarmonic", "Power", "ShortStep"]


@dataclass(frozen=True)
class Harmonic:
    """gamma_t = K / (K + t - 1), the rule of the paper's convex theorems (K = 2: 2 / (t + 1)).

    Examples
    --------
    >>> from onlinefw.steps import Harmonic
    >>> [Harmonic(2)(t) for t in (1, 2, 3)]
    [1.0, 0.6666666666666666, 0.5]
    """

    K: float = 2

    def __post_init__(self) -> None:
        if not (isfinite(self.K) and self.K > 0):
            raise ValueError(f"Harmonic needs a positive K, got {self.K}")

    def __call__(self, t: int) -> float:
        """Return the step length for step t."""
        return self.K / (self.K + (t - 1))  # exactly 1 at t = 1 for any K


@dataclass(frozen=True)
class Power:
    """gamma_t = t^-alpha with 0.5 <= alpha <= 1, the rule of the non-convex theorem.

    Examples
    --------
    >>> from onlinefw.steps import Power
    >>> Power(0.5)(4)
    0.5
    """

    alpha: float

    def __post_init__(self) -> None:
        if not 0.5 <= self.alpha <= 1.0:
            raise ValueError(f"Power needs 0.5 <= alpha <= 1, got {self.alpha}")

    def __call__(self, t: int) -> float:
        """Return the step length for step t."""
        return float(t) ** -self.alpha


@dataclass(frozen=True)
class LogHarmonic:
    """gamma_t = (2 + log(t + 1)) / (t + 2 + log(t + 1)), an open-loop rule with longer steps.

    gamma_1 is below 1, so it fits neither O-AW nor a set that does not contain 0.

    Examples
    --------
    >>> from onlinefw.steps import LogHarmonic
    >>> round(LogHarmonic()(1), 4)
    0.7292
    """

    def __call__(self, t: int) -> float:
        """Return the step length for step t."""
        numerator = 2.0 + log(t + 1.0)
        return numerator / (t + numerator)


@dataclass(frozen=True)
class LineSearch:
    """The step that minimises the objective along the direction.

    Exact for quadratics; for other losses a root of the directional derivative, bracketed, and
    never a step that makes the objective worse.

    Examples
    --------
    >>> from onlinefw.steps import LineSearch
    >>> LineSearch()
    LineSearch()
    """


@dataclass(frozen=True)
class ShortStep:
    """For batch solvers: gamma = min(gap / (L ||d||^2), gamma_max), L the objective's smoothness.

    Examples
    --------
    >>> from onlinefw.steps import ShortStep
    >>> ShortStep(L=2.0)
    ShortStep(L=2.0)
    """

    L: float

    def __post_init__(self) -> None:
        if not (isfinite(self.L) and self.L > 0):
            raise ValueError(f"ShortStep needs a positive L, got {self.L}")
