"""X'X of all rows seen, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._devices import cupy, to_host
from ..._typing import Array, State
from ..host.gram import checked_gram

__all__ = ["CudaGram"]


class CudaGram:
    """:class:`~onlinefw.past.protocols.GramPast` on the device.

    A batch is sent there once, and products are computed there. What comes back are vectors as long
    as theta, in this process's memory, where the lmo reads them.
    """

    def __init__(self, n: int) -> None:
        self._H = cupy().zeros((n, n))
        self.n_added = 0

    def close(self) -> None:
        """Nothing is held outside this process."""

    @staticmethod
    def bring(X: Any) -> Any:
        """Return a batch as a dense array of doubles on the device."""
        return cupy().asarray(X.toarray() if sparse.issparse(X) else X).astype(float, copy=False)

    def add(self, X: Any, w: Array) -> None:
        X = self.bring(X)
        weighted = X if (w == 1.0).all() else cupy().asarray(w)[:, None] * X
        gram = weighted.T @ X
        self.n_added += 1
        self._H += gram

    def rescale(self, factor: float) -> None:
        self.n_added += 1
        self._H *= factor

    def times(self, vector: Array) -> Array:
        return to_host(self._H @ cupy().asarray(np.ascontiguousarray(vector, float)))

    def combine(self, chosen: Array, values: Array) -> Array:
        if chosen.size == 1:
            return values[0] * to_host(self._H[int(chosen[0])])
        xp = cupy()
        return to_host(xp.asarray(values) @ self._H[xp.asarray(chosen)])

    def block(self, chosen: Array) -> Array:
        where = cupy().asarray(chosen)
        return to_host(self._H[where][:, where])

    def state_dict(self) -> State:
        return {"H": to_host(self._H)}

    def load_state(self, state: State) -> None:
        self._H = cupy().asarray(checked_gram(state, len(self._H)))
