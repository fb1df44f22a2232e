"""Ridge regressions of some rows or columns in several models: equations in, solutions out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from .._devices import namespace
from .._typing import Array

__all__ = ["Other", "SomeRegressions", "packed_size", "solved"]

#: Normal matrices with so many coefficients in all are solved at a time.
AT_ONCE = 2**24


class Other(NamedTuple):
    """The side that regressions leave as it is: the columns, if rows are solved."""

    rank: int
    factors: Array  # (n, models * width): of each model the first ``rank`` columns are in use
    offsets: Array  # (n, models): what is added to the product

    def of(self, m: int) -> tuple[Array, Array]:
        """Return factors and offsets of one model."""
        first = m * (self.factors.shape[1] // self.offsets.shape[1])
        return self.factors[:, first : first + self.rank], self.offsets[:, m]


def packed_size(rank: int) -> int:
    """Return how many numbers the upper triangle of [A | b] has, with a bias beside the factors.

    Examples
    --------
    >>> from onlinefw.past.some_regressions import packed_size
    >>> packed_size(1)  # of a 2 x 3 matrix
    5
    """
    return (rank + 1) * (rank + 4) // 2


def solved(equations: Array, rank: int, ridges: Array) -> Array:
    """Return factors and bias of regressions, from their normal equations.

    Parameters
    ----------
    equations : array of shape (n, models, packed_size(rank))
        The upper triangles of [A | b], row by row; the last unknown is the bias. numpy or CuPy.
    rank : int
        Of each model.
    ridges : ndarray of shape (models, 3)
        For a regression of weight n the penalty of the factors is a + b n; the third number is
        that of the bias. If it is infinite, there is no bias.

    Returns
    -------
    array of shape (n, models, rank + 1)

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.some_regressions import solved
    >>> equations = np.array([[[4.0, 0.0, 5.0, 2.0, 3.0]]])  # 4 u = 5, 2 b = 3
    >>> solved(equations, 1, np.array([[1.0, 0.0, 1.0]]))
    array([[[1., 1.]]])
    """
    xp: Any = namespace(equations)
    n, models, r = equations.shape[0], equations.shape[1], rank + 1
    upper = np.triu_indices(r, 0, r + 1)
    position = np.zeros((r, r + 1), int)
    position[upper] = np.arange(upper[0].size)
    of_target, matrix = position[:, r].copy(), position[:, :r]
    matrix = np.maximum(matrix, matrix.T)
    weight, biased = matrix[rank, rank], np.isfinite(ridges[:, 2])
    matrix, of_target, ridges = (xp.asarray(x) for x in (matrix.reshape(-1), of_target, ridges))
    diagonal, out = np.arange(rank), xp.empty((n, models, r))
    step = max(1, AT_ONCE // (models * r * r))
    for start in range(0, n, step):
        some = equations[start : start + step]
        normal = some.take(matrix, axis=2).reshape(-1, models, r, r)
        target = some.take(of_target, axis=2)
        normal[:, :, diagonal, diagonal] += (ridges[:, 0] + ridges[:, 1] * some[:, :, weight])[
            :, :, None
        ]
        for m in range(models):
            if biased[m]:
                normal[:, m, rank, rank] += ridges[m, 2]
            else:
                normal[:, m, rank, :] = normal[:, m, :, rank] = 0.0
                normal[:, m, rank, rank], target[:, m, rank] = 1.0, 0.0
        found = xp.linalg.solve(normal.reshape(-1, r, r), target.reshape(-1, r, 1))
        out[start : start + step] = found.reshape(-1, models, r)
    return out


class SomeRegressions(ABC):
    """Entries in one memory whose single rows and columns can be solved."""

    @abstractmethod
    def equations(self, of_rows: bool, which: Array, other: Other, mean: float) -> Array:
        """Return the normal equations of some rows or columns; those of all shards add up."""

    def solve_some(
        self, of_rows: bool, which: Array, other: Other, mean: float, ridges: Array
    ) -> Array:
        """Return factors and biases of some rows or columns; see :func:`solved`."""
        return solved(self.equations(of_rows, which, other, mean), other.rank, ridges)
