"""X'X of all rows seen, in this process's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from .._typing import Array
from ..atoms import Atom, SignedCoordinate, SparseAtom
from ..linalg import top_singular_pair

__all__ = ["HostGram"]


class HostGram:
    """The symmetric H = X'X, and products with it and with the rows that are about to be added.

    All that is n x n stays here; vectors of n numbers come and go. So it may as well live
    elsewhere, if it answers the same questions.

    Parameters
    ----------
    n : int
        The number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.objectives.host_gram import HostGram
    >>> gram = HostGram(2)
    >>> gram.add(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))
    >>> gram.combine(np.array([1]), np.array([1.0]))
    array([2., 4.])
    """

    def __init__(self, n: int) -> None:
        self._H = np.zeros((n, n))

    # Rows that are about to be added --------------------------------------------------------------

    def bring(self, X: Any) -> Any:
        """Return rows in double precision where the sums are."""
        return X.astype(float, copy=False)

    def mean(self, X: Any, weights: Array, total: float) -> Array:
        """Return X' w / total."""
        return (weights @ X) / total

    def centred(self, X: Any, mean: Array, last: Array) -> Array:
        """Return the rows of X less a mean, with one more row at the end."""
        return np.vstack(((X.toarray() if sparse.issparse(X) else X) - mean, last))

    def scaled(self, X: Any, weights: Array) -> Any:
        """Return diag(weights) X."""
        return sparse.diags_array(weights) @ X if sparse.issparse(X) else weights[:, None] * X

    def products(self, X: Any, vector: Array) -> Array:
        """Return X v."""
        return X @ vector

    def sums(self, X: Any, vector: Array) -> Array:
        """Return X' r."""
        return X.T @ vector

    def add(self, X: Any, weighted: Any) -> None:
        """H += weighted' X."""
        if sparse.issparse(X):
            gram = (weighted.T @ X).tocoo()
            self._H[gram.coords] += gram.data  # canonical after a product: no duplicates
            return
        # Block by block, so that the products stay in cache: a whole n x n temporary costs 12 times
        # as much at n = 4096.
        n = len(self._H)
        block = max(1, 2**17 // n)
        for start in range(0, n, block):
            rows = slice(start, start + block)
            self._H[rows] += weighted[:, rows].T @ X

    # Products -------------------------------------------------------------------------------------

    def times(self, vector: Array) -> Array:
        """Return H v."""
        return self._H @ vector

    def image(self, atom: Atom) -> Array:
        """Return H a: a row of the symmetric H for a coordinate, a few rows for a sparse atom."""
        if isinstance(atom, SignedCoordinate):
            return atom.value * self._H[atom.index]
        if isinstance(atom, SparseAtom):
            return self.combine(atom.indices, atom.values)
        return self.times(np.asarray(atom))

    def combine(self, chosen: Array, values: Array) -> Array:
        """Return the sum of values_k H e_{chosen_k}."""
        return values @ self._H[chosen]

    def block(self, chosen: Array) -> Array:
        """Return H in the chosen rows and columns."""
        return self._H[np.ix_(chosen, chosen)]

    def largest_eigenvalue(self) -> float:
        """Return the largest eigenvalue of H."""
        return top_singular_pair(aslinearoperator(self._H), tol=1e-6)[1]

    def values(self) -> Array:
        """Return a copy of H."""
        return self._H.copy()

    def load(self, H: Array) -> None:
        """Become a copy of a given matrix."""
        self._H = np.array(H, float)
