"""What the parameters of a recommender mean: checked together, once, at the start."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from numbers import Real
from typing import Any

from ..factors.online_factors import OnlineFactors
from ..losses import Loss, Square
from ..objectives.half_life import check_half_life
from .linear_parts import is_auto

__all__ = ["UNOBSERVED", "ClickParts"]

#: ``unobserved="auto"``: what an item weighs that a user has not had, if one that they had weighs
#: 1. Rank and ridge that are "auto" are those of :class:`~onlinefw.OnlineFactors`.
UNOBSERVED = 0.2


@dataclass(frozen=True)
class ClickParts:
    """What a recommender is made of: its parameters, with "auto" decided.

    It answers as :class:`~onlinefw.estimators.completion_parts.CompletionParts` does.
    """

    model: Any
    unobserved: float
    half_life: float | None  # None: nothing is forgotten
    loss: Loss = field(default_factory=Square)

    clip = False
    factors = True

    @classmethod
    def of(cls, model: Any) -> ClickParts:
        """Check the parameters, and decide what is "auto"."""
        if is_auto(model.half_life):
            raise ValueError(
                'half_life must be a number of events or None for a recommender, got "auto": what '
                "users did of late counts more already, as much as helps"
            )
        alpha = UNOBSERVED if is_auto(model.unobserved) else model.unobserved
        if not isinstance(alpha, Real) or not 0.0 < float(alpha) < inf:
            raise ValueError(
                f'unobserved must be a positive number or "auto", got {model.unobserved!r}'
            )
        return cls(model, float(alpha), check_half_life(model.half_life))

    def factors_learner(self, seen: tuple[int, int]) -> OnlineFactors:
        """Make a learner for one user and one item; more come as they are seen."""
        model = self.model
        return OnlineFactors(
            (1, 1),
            self.loss,
            rank=model.rank,
            ridge=model.ridge,
            unobserved=self.unobserved,
            half_life=self.half_life,
            dtype=model.dtype,
        )
