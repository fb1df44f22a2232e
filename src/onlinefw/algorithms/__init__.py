"""The two algorithms of the paper, and what they report."""

from .learner import Learner
from .newton_steps import NewtonSteps
from .online_away import OnlineAwayFrankWolfe
from .online_fw import OnlineFrankWolfe
from .ridge_sweeps import RidgeSweeps
from .rounds import Round

__all__ = [
    "Learner",
    "NewtonSteps",
    "OnlineAwayFrankWolfe",
    "OnlineFrankWolfe",
    "RidgeSweeps",
    "Round",
]
