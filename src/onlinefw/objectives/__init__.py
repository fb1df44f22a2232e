"""Objectives: what is kept of the past, how its predictions move, and the gradient of the mean."""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .base import Objective
    from .biases import RunningBiases
    from .entries import ObservedEntries
    from .least_squares import RunningLeastSquares
    from .linear import LinearObjective
    from .oracle import GradientOracle
    from .summary import SummaryObjective

__all__ = [
    "GradientOracle",
    "LinearObjective",
    "Objective",
    "ObservedEntries",
    "RunningBiases",
    "RunningLeastSquares",
    "SummaryObjective",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "GradientOracle": "oracle",
        "LinearObjective": "linear",
        "Objective": "base",
        "ObservedEntries": "entries",
        "RunningBiases": "biases",
        "RunningLeastSquares": "least_squares",
        "SummaryObjective": "summary",
    },
)
