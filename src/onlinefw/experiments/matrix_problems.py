"""Matrix completion problems: entries in order of arrival, a radius, and how far theta is off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._typing import Array, Shape
from ..datasets import Entries, Ratings, make_matrix_completion
from ..iterates import LowRank
from .recorder import batches

__all__ = ["MatrixProblem", "norm_of_mean", "ratings_problem", "synthetic_problem"]


@dataclass(frozen=True)
class MatrixProblem:
    """What the learners are given, and what is measured of their theta."""

    #: Row and column of every training entry, in order of arrival.
    X: Array
    #: What was observed there.
    y: Array
    shape: Shape
    #: Of the trace-norm ball.
    radius: float
    #: The excess of the stochastic objective, or the test MSE.
    measure: Callable[[LowRank], float]
    #: What is measured of the prediction that is the mean training value everywhere.
    constant: float
    #: The distance of the truth from the ball's boundary, where it is known.
    delta: float | None = None

    def rounds(self, batch: int) -> Iterator[tuple[Array, Array]]:
        """Yield the entries in order, ``batch`` at a time."""
        return batches(self.X, self.y, batch)


def synthetic_problem(shape: Shape, rank: int, n: int, factor: float, seed: int) -> MatrixProblem:
    """Make the paper's synthetic problem, in the ball of ``factor`` times the truth's trace norm.

    Measured is f(theta) - f(theta_bar) = ||theta - theta_bar||_F^2 / (2 m1 m2): entries are drawn
    uniformly, and the noise adds the same to both.
    """
    data = make_matrix_completion(shape, rank, n, seed=seed)
    truth = data.left @ data.right.T
    trace_norm = float(np.linalg.norm(truth, "nuc"))
    radius = factor * trace_norm
    return MatrixProblem(
        X=np.column_stack((data.rows, data.cols)),
        y=data.values,
        shape=data.shape,
        radius=radius,
        measure=lambda theta: float(np.sum(np.square(theta.dense() - truth)) / (2 * truth.size)),
        constant=float(np.mean(np.square(truth - data.values.mean())) / 2.0),
        # The nearest boundary point raises all singular values, also those that are 0, equally.
        delta=(radius - trace_norm) / float(np.sqrt(min(shape))),
    )


def ratings_problem(
    data: Ratings | Entries, train: Array, test: Array, radius: float, shape: Shape | None = None
) -> MatrixProblem:
    """Make a problem of ratings; measured is the MSE of raw (not clipped) predictions on the test.

    ``train`` and ``test`` say which ratings; ``shape`` is that of the first rows and columns, if
    they are all that occur.
    """
    rows, cols, values = data.rows[test], data.cols[test], data.values[test].astype(float)
    y = data.values[train].astype(float)
    return MatrixProblem(
        X=np.column_stack((data.rows[train], data.cols[train])),
        y=y,
        shape=data.shape if shape is None else shape,
        radius=radius,
        measure=lambda theta: float(np.mean(np.square(theta.entries(rows, cols) - values))),
        constant=float(np.mean(np.square(y.mean() - values))),
    )


def norm_of_mean(values: Array, shape: Shape) -> float:
    """Return the trace norm of the matrix that has the mean of these values everywhere."""
    return abs(float(values.mean(dtype=float))) * float(np.sqrt(shape[0] * shape[1]))
