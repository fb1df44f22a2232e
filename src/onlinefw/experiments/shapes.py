"""Predicted rates: a function of the round, logarithms included, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import theory
from .._typing import Array

__all__ = ["RateShape", "log_over", "power", "root_log_over"]


@dataclass(frozen=True)
class RateShape:
    """A rate up to its constant."""

    name: str
    of: Callable[[Array], Array]

    def slope(self, t: Array) -> float:
        """Return its log-log slope over these rounds."""
        return theory.fit_rate(t, self.of(np.asarray(t, dtype=float))).slope

    def through(self, t: Array, value: float) -> Array:
        """Return the shape at these rounds, scaled to have this value at the first."""
        values = self.of(np.asarray(t, dtype=float))
        return values * (value / values[0])


def log_over(logs: int, of: str = "t") -> RateShape:
    """Return log^logs t / t."""
    top = {0: "1", 1: f"log {of}"}.get(logs, f"log^{logs} {of}")
    return RateShape(f"{top} / {of}", lambda t: np.log(t) ** logs / t)


def root_log_over(logs: int, of: str = "t") -> RateShape:
    """Return sqrt(log^logs t / t)."""
    inside = log_over(logs, of)
    return RateShape(f"sqrt({inside.name})", lambda t: np.sqrt(inside.of(t)))


def power(exponent: float, of: str = "T") -> RateShape:
    """Return T^-exponent."""
    return RateShape(f"{of}^-{exponent:g}", lambda t: t**-exponent)
