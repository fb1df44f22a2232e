"""Sums over stored rows, on the host or on a GPU."""

from __future__ import annotations

from typing import Any

from .._devices import namespace, to_host
from .._typing import Array
from .stored_rows import StoredRows

__all__ = ["RowSums"]


class RowSums(StoredRows):
    """The verbs of :class:`~onlinefw.past.protocols.RowsPast` that sum over all rows."""

    def gradients(self, models: list[int], intercepts: list[float]) -> Array:
        rows, columns = self._held
        if len(models) > 1:
            pairs = zip(models, intercepts, strict=True)
            each = [self._losses[m].slopes(*self._for_loss(m), b) for m, b in pairs]
            return rows.rmatvec(namespace(each[0]).column_stack(each))
        (m,), (b,) = models, intercepts
        loss, pending, iterate = self._losses[m], self._pending[m], self.iterates[m]
        if not rows.fuses(loss):
            return rows.rmatvec(loss.slopes(*self._for_loss(m), b))[:, None]
        if pending is None or (iterate is not None and self._theta[m] is not iterate.theta):
            return rows.fused_gradient(loss, None, *self._weighed(m), b)[:, None]
        w, (z, y) = columns.arrays[0], columns.arrays[2 * m + 1 : 2 * m + 3]
        self._theta[m] = self._pending[m] = None
        gradient = rows.fused_gradient(loss, pending, z, y, w, b)[:, None]
        self.agree(m)
        return gradient

    def total(self, m: int, b: float) -> float:
        return self._losses[m].total(*self._for_loss(m), b)

    def totals(self, m: int, b: float) -> tuple[float, float, float]:
        return self._losses[m].totals(*self._for_loss(m), b)

    def few_rows(self, m: int) -> tuple[Any, ...] | None:
        """Return None: there is no compiled search for this place."""
        return None

    def limits(self, m: int) -> tuple[float, float]:
        return self._losses[m].limits(*self._for_loss(m))

    def residuals(self, m: int) -> tuple[Array, Array]:
        z, y, w = self._for_loss(m)
        return to_host(y - z), to_host(w)

    def steepest(self, m: int, b: float) -> float:
        return float(abs(self._losses[m].slopes(*self._for_loss(m), b)).max())

    def second_order(self, m: int, chosen: Array, b: float) -> tuple[Array, Array, float]:
        self.arrange()
        rows = self._held.rows
        d = self._losses[m].curvatures(*self._for_loss(m), b)
        return (*self._gram(rows, chosen, d), float(d.sum()))

    def sharing(self, threads: Any) -> Any:
        return threads

    def _gram(self, rows: Any, chosen: Array, d: Any) -> tuple[Array, Array]:
        return rows.gram(chosen, d)

    def gram_product(self, vector: Array) -> Array:
        rows, columns = self._held
        return rows.rmatvec(columns.arrays[0] * rows.matvec(vector))

    def predictions(self, m: int) -> Array:
        z, _, w = self._weighed(m)
        return to_host(z[w > 0.0])
