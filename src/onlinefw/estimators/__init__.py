"""The scikit-learn face of the library."""

from .matrix_completion import FrankWolfeMatrixCompletion

__all__ = ["FrankWolfeMatrixCompletion"]
