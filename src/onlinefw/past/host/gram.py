"""X'X of all rows seen, in this process's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dgemm

from ..._threads import blas_threads_for
from ..._typing import Array, State

__all__ = ["HostGram", "checked_gram"]


class HostGram:
    """:class:`~onlinefw.past.protocols.GramPast` in this process's memory."""

    def __init__(self, n: int) -> None:
        # In Fortran order, as BLAS adds to it in place; it is symmetric, so rows are columns.
        self._H = np.zeros((n, n), order="F")
        self.n_added = 0

    def close(self) -> None:
        """Nothing is held outside this process."""

    @staticmethod
    def bring(X: Any) -> Any:
        return X.astype(float, copy=False)

    def add(self, X: Any, w: Array) -> None:
        """H += X' diag(w) X, in one call that cannot be interrupted."""
        ones = (w == 1.0).all()
        if sparse.issparse(X):
            weighted = X if ones else sparse.diags_array(w) @ X
            gram = (weighted.T @ X).tocoo()
            self.n_added += 1
            self._H[gram.coords] += gram.data  # canonical after a product: no duplicates
            return
        weighted = X if ones else w[:, None] * X
        weighted, X = np.ascontiguousarray(weighted), np.ascontiguousarray(X)
        self.n_added += 1
        with blas_threads_for(X.size * len(self._H)):
            dgemm(1.0, weighted.T, X.T, 1.0, self._H, trans_b=True, overwrite_c=True)

    def rescale(self, factor: float) -> None:
        self.n_added += 1
        self._H *= factor

    def times(self, vector: Array) -> Array:
        with blas_threads_for(self._H.size):
            return self._H @ vector

    def combine(self, chosen: Array, values: Array) -> Array:
        if chosen.size == 1:
            return values[0] * self._H[:, chosen[0]]
        return self._H[:, chosen] @ values

    def block(self, chosen: Array) -> Array:
        return self._H[np.ix_(chosen, chosen)]

    def state_dict(self) -> State:
        return {"H": np.array(self._H, order="C")}

    def load_state(self, state: State) -> None:
        self._H = np.array(checked_gram(state, len(self._H)), order="F")


def checked_gram(state: State, n: int) -> Array:
    """Return the H of a state, or refuse what is not n x n finite numbers."""
    H = np.asarray(state["H"], float)
    if H.shape != (n, n) or not np.isfinite(H).all():
        raise ValueError(f"X'X must be {n} x {n} finite numbers, got shape {H.shape}")
    return H
