"""What stored rows can be asked, dense or sparse, on the host or on a GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .._typing import Array, Shape, State

__all__ = ["RowStore", "spaced"]

#: Second-order models of dense rows use about this many rows per coordinate: with fewer rows steps
#: are shorter, and each row costs coordinates^2.
ROWS_PER_COORDINATE, LEAST_ROWS = 8, 2048
#: So few columns are read one by one; a product with a vector reads all of them.
FEW_COLUMNS = 4


class RowStore(ABC):
    """Rows in one memory. A store does not change: to add or remove rows is to make another one.

    What is as long as the number of rows is where the rows are. What is as long as theta is in this
    process's memory.
    """

    shape: Shape  # of the features of a row
    n_features: int

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def extended(self, batch: Any) -> Any:
        """Return rows with a batch at the end."""

    @abstractmethod
    def kept(self, mask: Array) -> Any:
        """Return the rows where ``mask`` (in this process's memory) is True."""

    @abstractmethod
    def matrix(self) -> Any:
        """Return all rows as one array or CSR matrix of this process, not to be changed."""

    def merged(self) -> Any:
        """Return the same rows in the form that second-order models read."""
        return self

    # Products -------------------------------------------------------------------------------------

    def fuses(self, loss: Any) -> bool:
        """Whether one read can carry out a move that waits and compute the gradient of a loss.

        Rows that can have ``fused_gradient`` and ``move`` as well.
        """
        return False

    @abstractmethod
    def matvec(self, vector: Array) -> Any:
        """Return X v."""

    @abstractmethod
    def rmatvec(self, vector: Any) -> Array:
        """Return X' r, for one vector (N,) or several (N, k)."""

    @abstractmethod
    def column(self, j: int) -> Any:
        """Return X e_j."""

    def columns(self, indices: Array, values: Array) -> Any:
        """Return the sum of values_k X e_{indices_k}."""
        if 0 < indices.size <= FEW_COLUMNS:
            first, *others = zip(indices.tolist(), values.tolist(), strict=True)
            total = first[1] * self.column(first[0])
            for j, value in others:
                total += value * self.column(j)
            return total
        vector = np.zeros(self.n_features)
        vector[indices] = values
        return self.matvec(vector)

    def bilinear(self, u: Array, v: Array) -> Any:
        """Return u' x_i v: each column of the data has one coefficient u_a v_b."""
        return self.matvec(np.multiply.outer(u, v).reshape(-1))

    @abstractmethod
    def gram(self, chosen: Array, weights: Any) -> tuple[Array, Array]:
        """Return X_S' diag(w) X_S and X_S' w; of many dense rows, from evenly spaced ones."""

    # State ----------------------------------------------------------------------------------------

    @abstractmethod
    def state_dict(self) -> State:
        """Return the rows as plain arrays, the same from every place."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, shape: Shape) -> Any:
        """Make the rows that ``state_dict`` described, or refuse what cannot be rows."""


def spaced(weights: Any, n_coordinates: int) -> tuple[slice, Any]:
    """Choose evenly spaced rows for a second-order model; return which, and their weights."""
    every = max(1, len(weights) // max(LEAST_ROWS, ROWS_PER_COORDINATE * n_coordinates))
    some = slice(None, None, every)
    w = weights[some]
    if every > 1 and float(w.sum()) > 0.0:
        w = w * (float(weights.sum()) / float(w.sum()))
    return some, w
