"""The two algorithms of the paper and pairwise steps, their correctives, and what they report."""

from .correctives import Corrective
from .learner import Learner
from .newton_steps import NewtonSteps
from .online_away import OnlineAwayFrankWolfe
from .online_fw import OnlineFrankWolfe
from .online_pairwise import OnlinePairwiseFrankWolfe
from .ridge_sweeps import RidgeSweeps
from .rounds import Round
from .summary_fw import SummaryFrankWolfe

__all__ = [
    "Corrective",
    "Learner",
    "NewtonSteps",
    "OnlineAwayFrankWolfe",
    "OnlineFrankWolfe",
    "OnlinePairwiseFrankWolfe",
    "RidgeSweeps",
    "Round",
    "SummaryFrankWolfe",
]
