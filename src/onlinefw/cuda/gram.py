"""X'X of all rows seen, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from .._devices import cupy, to_host
from .._typing import Array
from ..atoms import Atom, SignedCoordinate, SparseAtom
from ..linalg import top_singular_pair
from ..objectives.host_gram import HostGram

__all__ = ["CudaGram"]


class CudaGram:
    """The symmetric H = X'X on the device: see :class:`~onlinefw.objectives.host_gram.HostGram`.

    A batch goes there once, and its products are formed there, as is H v; what comes back are
    vectors of as many numbers as theta has. Those are kept in this process's memory, where linear
    minimisation reads them.

    Parameters
    ----------
    n : int
        The number of features.
    """

    def __init__(self, n: int) -> None:
        self._H = cupy().zeros((n, n))

    # Rows that are about to be added --------------------------------------------------------------

    def bring(self, X: Any) -> Any:
        """Return rows as a dense array of doubles on the device."""
        return cupy().asarray(X.toarray() if sparse.issparse(X) else X).astype(float, copy=False)

    def mean(self, X: Any, weights: Array, total: float) -> Array:
        """Return X' w / total."""
        return self.sums(X, weights) / total

    def centred(self, X: Any, mean: Array, last: Array) -> Any:
        """Return the rows of X less a mean, with one more row at the end."""
        xp = cupy()
        return xp.vstack((X - xp.asarray(mean), xp.asarray(last)[None]))

    def scaled(self, X: Any, weights: Array) -> Any:
        """Return diag(weights) X."""
        return cupy().asarray(weights)[:, None] * X

    def products(self, X: Any, vector: Array) -> Array:
        """Return X v."""
        return to_host(X @ cupy().asarray(vector))

    def sums(self, X: Any, vector: Array) -> Array:
        """Return X' r."""
        return to_host(X.T @ cupy().asarray(vector))

    def add(self, X: Any, weighted: Any) -> None:
        """H += weighted' X."""
        self._H += weighted.T @ X

    # Products -------------------------------------------------------------------------------------

    def times(self, vector: Array) -> Array:
        """Return H v."""
        return to_host(self._H @ cupy().asarray(np.ascontiguousarray(vector, float)))

    def image(self, atom: Atom) -> Array:
        """Return H a: a row of the symmetric H for a coordinate, a few rows for a sparse atom."""
        if isinstance(atom, SignedCoordinate):
            return atom.value * to_host(self._H[atom.index])
        if isinstance(atom, SparseAtom):
            return self.combine(atom.indices, atom.values)
        return self.times(np.asarray(atom))

    def combine(self, chosen: Array, values: Array) -> Array:
        """Return the sum of values_k H e_{chosen_k}."""
        xp = cupy()
        return to_host(xp.asarray(values) @ self._H[xp.asarray(chosen)])

    def block(self, chosen: Array) -> Array:
        """Return H in the chosen rows and columns."""
        where = cupy().asarray(chosen)
        return to_host(self._H[where][:, where])

    def largest_eigenvalue(self) -> float:
        """Return the largest eigenvalue of H."""
        shape = self._H.shape
        operator = LinearOperator(shape, matvec=self.times, rmatvec=self.times, dtype=float)
        return top_singular_pair(operator, tol=1e-6)[1]

    def values(self) -> Array:
        """Return a copy of H in this process's memory."""
        return to_host(self._H)

    def load(self, H: Array) -> None:
        """Become a copy of a given matrix."""
        self._H = cupy().asarray(np.array(H, float))

    def on_host(self) -> HostGram:
        """Return the same sums in this process's memory."""
        copy = HostGram(len(self._H))
        copy.load(self.values())
        return copy

    @classmethod
    def from_host(cls, gram: HostGram) -> CudaGram:
        """Make sums on the device from others."""
        copy = cls(0)
        copy.load(gram.values())
        return copy
