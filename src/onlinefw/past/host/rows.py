"""Rows in this process's memory, with the predictions of the models that learn from them."""

from __future__ import annotations

from typing import Any

from ..._typing import Array
from ...kernels.rows import blend
from ..columns import Columns
from ..row_sums import RowSums
from .dense_rows import DenseRows
from .row_loss import FEW, RowLine, RowLoss
from .shared_products import Sharing
from .sparse_rows import SparseRows

__all__ = ["HostRows"]


class HostRows(RowSums):
    """:class:`~onlinefw.past.protocols.RowsPast` in this process's memory.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.iterates import DenseIterate
    >>> from onlinefw.losses import Square
    >>> from onlinefw.past.host.rows import HostRows
    >>> rows = HostRows()
    >>> m = rows.add_model(Square(), DenseIterate((2,)), waits=True)
    >>> X, y = np.eye(2), np.array([[1.0], [-3.0]])
    >>> rows.append(X, rows.products(X, np.zeros((2, 1))), y, np.ones(2))
    >>> rows.gradients([m], [0.0])[:, 0]
    array([-1.,  3.])
    """

    dense, sparse, columns = DenseRows, SparseRows, Columns
    row_loss, row_line = RowLoss, RowLine
    _blend = staticmethod(blend)
    #: The round that is being played, if its steps share products of columns.
    sharing_now: Sharing | None = None

    def sharing(self, threads: Any) -> Any:
        return Sharing(self, threads) if self._losses[0].loss.quadratic else threads

    def _gram(self, rows: Any, chosen: Array, d: Array) -> tuple[Array, Array]:
        if self.sharing_now is None or not isinstance(rows, DenseRows):
            return super()._gram(rows, chosen, d)
        return self.sharing_now.gram(rows, d, chosen)

    def few_rows(self, m: int) -> tuple[Any, ...] | None:
        loss = self._losses[m]
        if not loss.compiled_values or self._held.columns.arrays[0].size >= FEW:
            return None
        return loss.kind, loss.parameter, *self._weighed(m)
