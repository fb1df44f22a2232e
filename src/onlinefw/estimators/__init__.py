"""The scikit-learn face of the library; a model is imported when it is asked for."""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .classifier import FrankWolfeClassifier
    from .matrix_completion import FrankWolfeMatrixCompletion
    from .radius_search import RadiusSearch
    from .recommender import FrankWolfeRecommender
    from .regressor import FrankWolfeRegressor

__all__ = [
    "FrankWolfeClassifier",
    "FrankWolfeMatrixCompletion",
    "FrankWolfeRecommender",
    "FrankWolfeRegressor",
    "RadiusSearch",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "FrankWolfeClassifier": "classifier",
        "FrankWolfeMatrixCompletion": "matrix_completion",
        "FrankWolfeRecommender": "recommender",
        "FrankWolfeRegressor": "regressor",
        "RadiusSearch": "radius_search",
    },
)
