"""A pointwise loss over all rows: on the device for the built-in losses, else in this process."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any

from ..._devices import cupy, to_host
from ..._typing import Array
from ...losses import Gaussian, Loss, SignedLabels
from ..host.row_loss import RowLine, RowLoss, compiled
from . import row_kernels as kernels

__all__ = ["CudaRowLine", "CudaRowLoss"]

#: A Gaussian has the slopes of a square, but other values.
GAUSSIAN = 7


class CudaRowLoss:
    """Sums and slopes of w phi(z + b, y) over rows: see :class:`~.host.row_loss.RowLoss`.

    The arrays are on the device, except for a loss of the user's own: then they are in this
    process's memory, and only the slopes and curvatures of the rows are sent to the device.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.kind = (GAUSSIAN, 0.0) if type(loss) is Gaussian else compiled(loss)
        self.own = RowLoss(loss)  # the same in this process's memory
        self.is_compiled = self.kind[0] >= 0
        self._partial = cupy().empty((kernels.PARTS, 5))

    def sums(self, z: Any, y: Any, w: Any, b: float, d: Any = None, t: float = 0.0) -> Array:
        """Return the sums of w phi, w phi', w phi'', w phi' d and w phi'' d^2 at z + t d + b.

        For a built-in loss; without a direction d, the last two have no meaning.
        """
        d = z if d is None else d
        used = kernels.row_sums(self.kind, len(z), z, d, t, y, w, b, self._partial)
        return to_host(self._partial[:used]).sum(axis=0)

    def total(self, z: Any, y: Any, w: Any, b: float) -> float:
        if not self.is_compiled:
            return self.own.total(z, y, w, b)
        return float(self.sums(z, y, w, b)[0])

    def slopes(self, z: Any, y: Any, w: Any, b: float) -> Any:
        """Return w phi'(z + b, y) of every row, on the device."""
        if not self.is_compiled:
            return cupy().asarray(self.own.slopes(z, y, w, b))
        out = cupy().empty(len(z))
        kernels.row_slopes(self.kind, len(z), z, y, w, b, out)
        return out

    def curvatures(self, z: Any, y: Any, w: Any, b: float) -> Any:
        """Return w times a curvature >= 0 of phi at (z + b, y) of every row, on the device."""
        if not self.is_compiled:
            return cupy().asarray(self.own.curvatures(z, y, w, b))
        out = cupy().empty(len(z))
        kernels.row_bends(self.kind, len(z), z, y, w, b, out)
        return out

    def parabola(
        self, z: Any, y: Any, w: Any, b: float, direction: Any
    ) -> tuple[float, float, float]:
        if not self.is_compiled:
            return self.own.parabola(z, y, w, b, to_host(direction))
        value, _, _, slope, curvature = self.sums(z, y, w, b, direction).tolist()
        return value, slope, curvature

    def totals(self, z: Any, y: Any, w: Any, b: float) -> tuple[float, float, float]:
        if not self.is_compiled:
            return self.own.totals(z, y, w, b)
        value, slope, curvature = self.sums(z, y, w, b)[:3].tolist()
        return value, slope, curvature

    def limits(self, z: Any, y: Any, w: Any) -> tuple[float, float]:
        at = (-z if isinstance(self.loss, SignedLabels) else y - z)[w > 0.0]
        return (float(at.min()), float(at.max())) if at.size else (inf, -inf)


class CudaRowLine:
    """The sum of w phi(z + t direction + b, y), as :class:`~onlinefw.past.host.row_loss.RowLine`.

    One pass on the device gives value and slope, and no pass is repeated. For a loss of the user's
    own the arrays are in this process's memory, and the direction is copied there as well.
    """

    def __init__(self, loss: CudaRowLoss, z: Any, y: Any, w: Any, direction: Any) -> None:
        self.direction = direction
        self._loss, self._weighed = loss, (z, y, w)
        self._known: dict[tuple[float, float], tuple[float, float]] = {}

    @cached_property
    def _here(self) -> RowLine:
        return RowLine(self._loss.own, *self._weighed, to_host(self.direction))

    def _at(self, t: float, b: float) -> tuple[float, float]:
        found = self._known.get((t, b))
        if found is None:
            value, _, _, slope, _ = self._loss.sums(*self._weighed, b, self.direction, t).tolist()
            found = self._known[t, b] = (value, slope)
        return found

    def value(self, t: float, b: float) -> float:
        return self._at(t, b)[0] if self._loss.is_compiled else self._here.value(t, b)

    def slope(self, t: float, b: float) -> float:
        return self._at(t, b)[1] if self._loss.is_compiled else self._here.slope(t, b)
