"""What all estimators of a matrix share, whether values or clicks are learned."""

from __future__ import annotations

import numpy as np

from .._devices import to_host
from .._typing import Array
from .base import StreamingEstimator
from .recommending import Recommending

__all__ = ["MatrixEstimator"]


class MatrixEstimator(Recommending, StreamingEstimator):
    """An estimator of a matrix: it recommends columns to rows, and has factors."""

    @property
    def shape_(self) -> tuple[int, int]:
        """Rows and columns seen."""
        rows, columns = self._fitted("shape_").matrix.shape
        return int(rows), int(columns)

    @property
    def factors_(self) -> tuple[Array, Array, Array]:
        """(U, s, V) with low-rank part = U diag(s) V'."""
        run = self._fitted("factors_")
        with run.turns:
            theta = run.matrix.theta
            u, s, v = theta.svd()
        k = int(np.count_nonzero(s > s.max(initial=0.0) * 10 * np.finfo(theta.dtype).eps))
        return to_host(u[:, :k]), s[:k], to_host(v[:, :k])

    @property
    def rank_(self) -> int:
        """The rank of the low-rank part."""
        return self.factors_[1].size

    @property
    def n_atoms_(self) -> int:
        """How many rank-one terms the low-rank part has: a bound on the rank, at no cost."""
        return int(self._fitted("n_atoms_").matrix.theta.n_atoms)
