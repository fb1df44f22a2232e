"""What the parameters of a recommender mean: checked together, once, at the start."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from numbers import Real
from typing import Any

from .._typing import Array
from ..algorithms import LocalRidge, OnlineFrankWolfe
from ..algorithms.local_ridge import NO_CAP
from ..losses import Loss, Square
from ..objectives import ObservedEntries
from ..objectives.half_life import check_half_life
from ..sets import TraceNormBall
from .linear_parts import is_auto

__all__ = ["UNOBSERVED", "ClickParts"]

#: ``unobserved="auto"``: what an item weighs that a user has not had, if one that they had weighs
#: 1. Rank and ridge that are "auto" are those of :class:`~onlinefw.LocalRidge`.
UNOBSERVED = 0.2


@dataclass(frozen=True)
class ClickParts:
    """What a recommender is made of: its parameters, with "auto" decided.

    It answers as :class:`~onlinefw.estimators.completion_parts.CompletionParts` does.
    """

    model: Any
    local: LocalRidge
    unobserved: float
    half_life: float | None  # None: nothing is forgotten
    loss: Loss = field(default_factory=Square)

    many = False
    offsets = None
    weighting = None
    clip = False
    is_local = True

    @classmethod
    def of(cls, model: Any, half_life: Any) -> ClickParts:
        """Check the parameters, and decide what is "auto"."""
        if is_auto(half_life):
            raise ValueError(
                'half_life must be a number of events or None for a recommender, got "auto": what '
                "users did of late counts more already, as much as helps"
            )
        alpha = UNOBSERVED if is_auto(model.unobserved) else model.unobserved
        if not isinstance(alpha, Real) or not 0.0 < float(alpha) < inf:
            raise ValueError(
                f'unobserved must be a positive number or "auto", got {model.unobserved!r}'
            )
        local = LocalRidge(model.rank, model.ridge, biases=False, clip=False)
        return cls(model, local, float(alpha), check_half_life(half_life))

    def learner(self, shape: tuple[int, int], radius: float) -> OnlineFrankWolfe:
        """Make a learner for a matrix of this shape, which may grow."""
        objective = ObservedEntries(
            shape,
            self.loss,
            dtype=self.model.dtype,
            growing=True,
            half_life=self.half_life,
            unobserved=self.unobserved,
        )
        return OnlineFrankWolfe(objective, TraceNormBall(radius), corrective=self.local)

    def shape(self, seen: tuple[int, int]) -> tuple[int, int]:
        """Return the shape at the start: one user and one item, and more as they come."""
        return 1, 1

    def radii(self, shape: tuple[int, int], y: Array) -> list[float]:
        """Return one radius without bound: the ball is that of theta's own norm."""
        return [NO_CAP]
