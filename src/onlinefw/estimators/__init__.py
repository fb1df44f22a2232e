"""The scikit-learn face of the library; a model is imported when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOME = {
    "FrankWolfeClassifier": "classifier",
    "FrankWolfeMatrixCompletion": "matrix_completion",
    "FrankWolfeRecommender": "recommender",
    "FrankWolfeRegressor": "regressor",
    "RadiusSearch": "radius_search",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
