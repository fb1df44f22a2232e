"""Rows on the device, with the predictions of the models that learn from them."""

from __future__ import annotations

from typing import Any

from ..._devices import cupy, to_host
from ..._typing import Array
from ..row_sums import RowSums
from .dense_rows import CudaDenseRows
from .growing import CudaColumns
from .row_loss import CudaRowLine, CudaRowLoss
from .sparse_rows import CudaSparseRows

__all__ = ["CudaRows"]


class CudaRows(RowSums):
    """:class:`~onlinefw.past.protocols.RowsPast` on the device.

    Vectors as long as theta are in this process's memory, where the lmo reads them.
    """

    dense, sparse, columns = CudaDenseRows, CudaSparseRows, CudaColumns
    row_loss, row_line = CudaRowLoss, CudaRowLine

    def __init__(self) -> None:
        super().__init__()
        # Copies of z, y and w in this process's memory, for losses of the user's own.
        self._brought: dict[int, tuple[Any, ...]] = {}

    def weigh(self, rows: Array, weight: float | Array) -> None:
        xp = cupy()
        super().weigh(xp.asarray(rows), weight if isinstance(weight, float) else xp.asarray(weight))

    def _for_loss(self, m: int) -> tuple[Any, ...]:
        if self._losses[m].is_compiled:
            return self._weighed(m)
        if m not in self._brought:
            self._brought[m] = tuple(map(to_host, self._weighed(m)))
        return self._brought[m]

    def _changed(self, m: int | None = None) -> None:
        super()._changed(m)
        if m is None:
            self._brought = {}
        else:
            self._brought.pop(m, None)

    @staticmethod
    def _blend(z: Any, keep: float, image: Any, step: float) -> None:
        if keep != 1.0:
            z *= float(keep)
        z += float(step) * image
