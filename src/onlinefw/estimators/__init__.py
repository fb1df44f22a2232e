"""The scikit-learn face of the library."""

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
