"""Losses that say that theta has gone astray: infinite ones, and flat ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from ..losses import Loss

if TYPE_CHECKING:
    from .linear import LinearObjective

__all__ = ["check_losses", "warn_if_saturated"]

#: A loss whose derivatives are all below this cannot be lowered any more ...
FLAT = 1e-9
#: ... which is a fault if it is still above this.
STILL_HIGH = 1e-3


def check_losses(loss: Loss, losses: Sequence[float]) -> None:
    """Refuse rows whose mean loss is infinite in all models."""
    if not any(map(isfinite, losses)):  # one of several models may have overflowed
        raise ValueError(
            f"{loss} of these rows is infinite at the current coefficients; "
            "rescale the features, or use a smaller radius"
        )


def warn_if_saturated(objective: LinearObjective) -> None:
    """Warn once of a loss that is high and flat at every row."""
    steepest = objective._shared.past.steepest(objective._model, objective.intercept)
    if steepest / objective.unit >= FLAT:
        return
    if (value := objective.value()) > STILL_HIGH:
        objective._warned = True
        warnings.warn(
            f"{objective.loss} is saturated: all its derivatives are below 1e-9 while the mean "
            f"loss is {value:.3g}, so theta cannot move and a gap near zero proves nothing; "
            "use a smaller radius or smaller features",
            RuntimeWarning,
            stacklevel=4,
        )
