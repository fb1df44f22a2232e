"""What online Frank-Wolfe is compared with: projected gradient and batch solvers."""

from .active_alt import active_alt
from .batch import batch_away_frank_wolfe, batch_frank_wolfe
from .projected_gradient import OnlineProjectedGradient, StochasticProjectedGradient

__all__ = [
    "OnlineProjectedGradient",
    "StochasticProjectedGradient",
    "active_alt",
    "batch_away_frank_wolfe",
    "batch_frank_wolfe",
]
