"""X'X of all rows seen, in this process's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsymv, dsyrk

from ..._threads import blas_threads_for
from ..._typing import Array, State
from ...kernels.columns import mirror

__all__ = ["HostGram", "checked_gram"]


#: More than one column in so many are combined by a product with all of H.
COLUMNS = 32


class HostGram:
    """:class:`~onlinefw.past.protocols.GramPast` in this process's memory.

    BLAS adds to the lower triangle only, which is half the work; the upper one is not used.
    """

    def __init__(self, n: int) -> None:
        # In Fortran order, as BLAS adds to it in place.
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
            gram = sparse.tril(weighted.T @ X, format="coo")
            self.n_added += 1
            self._H[gram.coords] += gram.data  # canonical after a product: no duplicates
            return
        rows = np.ascontiguousarray(X if ones else np.sqrt(w)[:, None] * X)
        self.n_added += 1
        with blas_threads_for(rows.size * len(self._H) // 2):
            dsyrk(1.0, rows.T, 1.0, self._H, lower=True, overwrite_c=True)

    def rescale(self, factor: float) -> None:
        self.n_added += 1
        self._H *= factor

    def times(self, vector: Array) -> Array:
        with blas_threads_for(self._H.size):
            return dsymv(1.0, self._H, vector, lower=True)

    def combine(self, chosen: Array, values: Array) -> Array:
        if chosen.size == 1:
            return values[0] * self._column(chosen[0])
        if chosen.size > len(self._H) // COLUMNS:
            vector = np.zeros(len(self._H))
            vector[chosen] = values
            return self.times(vector)
        return values @ np.array([self._column(j) for j in chosen])

    def _column(self, j: int) -> Array:
        return np.concatenate((self._H[j, :j], self._H[j:, j]))

    def block(self, chosen: Array) -> Array:
        block = self._H.T[np.ix_(chosen, chosen)]  # chosen increase, so this is upper, as H.T is
        mirror(block.T)
        return block

    def state_dict(self) -> State:
        H = np.array(self._H, order="C")
        mirror(H)
        return {"H": H}

    def load_state(self, state: State) -> None:
        self._H = np.array(checked_gram(state, len(self._H)), order="F")


def checked_gram(state: State, n: int) -> Array:
    """Return the H of a state, or refuse what is not n x n finite numbers."""
    H = np.asarray(state["H"], float)
    if H.shape != (n, n) or not np.isfinite(H).all():
        raise ValueError(f"X'X must be {n} x {n} finite numbers, got shape {H.shape}")
    return H
