"""Products of the columns of dense rows, which the steps of a round share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import Array
from ..row_store import spaced
from .dense_rows import DenseRows

__all__ = ["SharedProducts", "Sharing"]

#: So many numbers of the columns are held at most (64 MB).
MOST = 2**23


class SharedProducts:
    """X_S' diag(w) X_S for any columns S, of which each product is computed once.

    Second-order models of the square loss ask for nearly the same columns again and again: in step
    after step, for radius after radius.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw._growing import GrowingArray
    >>> from onlinefw.past.host.dense_rows import DenseRows
    >>> from onlinefw.past.host.shared_products import SharedProducts
    >>> rows = DenseRows((3,), GrowingArray.holding(np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0]])))
    >>> products = SharedProducts(rows, np.array([1.0, 4.0]))
    >>> products.gram(np.array([0, 1]))[0]
    array([[1., 2.],
           [2., 8.]])
    >>> products.gram(np.array([1, 2]))[1]  # the weighted sums of the columns
    array([6., 7.])
    """

    def __init__(self, rows: DenseRows, w: Array) -> None:
        n, dtype = len(rows), rows.working_dtype
        most = min(rows.n_features, MOST // n)
        self._rows, self._w, self._root = rows, w, np.sqrt(w).astype(dtype)
        self._columns, self._gram = np.empty((most, n), dtype), np.empty((most, most), dtype)
        self._cross = np.empty(most)
        self._place = np.full(rows.n_features, -1)  # of each column among those that are known
        self._n = 0

    def are_of(self, rows: DenseRows, w: Array) -> bool:
        """Whether they are of these rows with these weights."""
        return self._rows is rows and np.array_equal(self._w, w)

    def gram(self, chosen: Array) -> tuple[Array, Array] | None:
        """Return X_S' diag(w) X_S and X_S' w; None if there is no room for so many columns."""
        new = chosen[self._place[chosen] < 0]
        if self._n + new.size > len(self._columns):
            return None
        if new.size:
            self._add(new)
        at = self._place[chosen]
        return self._gram[np.ix_(at, at)].astype(float, copy=False), self._cross[at]

    def _add(self, new: Array) -> None:
        first, n = self._n, self._n + new.size
        columns = self._columns[first:n]
        np.multiply(self._rows.data[:, new].T, self._root, out=columns)
        products = columns @ self._columns[:n].T
        self._gram[first:n, :n] = products
        self._gram[:first, first:n] = products[:, :first].T
        self._cross[first:n] = columns @ self._root
        self._place[new], self._n = np.arange(first, n), n


class Sharing:
    """A context in which second-order models share products, and BLAS has so many ``threads``.

    It is a round: products that were kept longer would be rounded differently from those of a
    model that was saved and loaded in between.
    """

    __slots__ = ("_known", "_past", "_threads")

    def __init__(self, past: Any, threads: Any) -> None:
        self._past, self._threads = past, threads
        self._known: SharedProducts | None = None

    def __enter__(self) -> None:
        self._threads.__enter__()
        self._past.sharing_now = self

    def __exit__(self, *raised: Any) -> None:
        self._past.sharing_now = None
        self._threads.__exit__(*raised)

    def gram(self, rows: DenseRows, w: Array, chosen: Array) -> tuple[Array, Array]:
        """Return X_S' diag(w) X_S and X_S' w."""
        some, _ = spaced(w, chosen.size)
        if some.step == 1:
            if self._known is None or not self._known.are_of(rows, w):
                self._known = SharedProducts(rows, w)
            known = self._known.gram(chosen)
            if known is not None:
                return known
        return rows.gram(chosen, w)
