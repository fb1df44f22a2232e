"""The two algorithms of the paper and pairwise steps, their correctives, and what they report."""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Corrective": "correctives",
        "Learner": "learner",
        "NewtonSteps": "newton_steps",
        "OnlineAwayFrankWolfe": "online_away",
        "OnlineFrankWolfe": "online_fw",
        "OnlinePairwiseFrankWolfe": "online_pairwise",
        "RidgeSweeps": "ridge_sweeps",
        "Round": "rounds",
        "SummaryFrankWolfe": "summary_fw",
    },
)
