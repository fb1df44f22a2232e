"""How good a model is on what comes next: errors of predictions, and ranks of items."""

from .progressive import Progress, progressive
from .ranking import RankedEvents, progressive_ranking, ranking, ranking_scores

__all__ = [
    "Progress",
    "RankedEvents",
    "progressive",
    "progressive_ranking",
    "ranking",
    "ranking_scores",
]
