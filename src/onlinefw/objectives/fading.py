"""What learners ask of an objective that forgets: the units of its weights, steps that count."""

from __future__ import annotations

from math import ceil, isinf

from .half_life import Clock

__all__ = ["Fading"]


class Fading:
    """The part of an objective that knows about its half-life."""

    @property
    def clock(self) -> Clock | None:
        """What new observations weigh; None if nothing is forgotten."""
        return None

    @property
    def half_life(self) -> float | None:
        """After how many observations one weighs half as much; None: nothing is forgotten."""
        return None if self.clock is None or isinf(self.clock.half_life) else self.clock.half_life

    @property
    def unit(self) -> float:
        """What the newest observation weighs in ``total_weight``, if its own weight is 1."""
        return 1.0 if self.clock is None else self.clock.unit

    @property
    def shift(self) -> int:
        """All weights have been divided by 2**shift, those that are compared with them too."""
        return 0 if self.clock is None else self.clock.shift

    def steps_in_effect(self, n: int) -> int:
        """Return how many of n steps have been taken for observations that still count."""
        return n if self.clock is None else max(1, ceil(n * self.clock.in_effect))
