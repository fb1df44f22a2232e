"""What online Frank-Wolfe is compared with: projected gradient, a hybrid, and batch solvers."""

from .active_alt import active_alt
from .batch import batch_away_frank_wolfe, batch_frank_wolfe
from .local_frank_wolfe import OnlineLocalFrankWolfe
from .projected_gradient import OnlineProjectedGradient, StochasticProjectedGradient

__all__ = [
    "OnlineLocalFrankWolfe",
    "OnlineProjectedGradient",
    "StochasticProjectedGradient",
    "active_alt",
    "batch_away_frank_wolfe",
    "batch_frank_wolfe",
]
