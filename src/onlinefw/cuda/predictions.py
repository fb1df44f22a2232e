"""The carried predictions of a linear model on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._devices import cupy, to_host
from .._typing import Array, State
from ..losses import Gaussian, Loss, SignedLabels
from ..objectives.host_predictions import HostPredictions
from ..objectives.intercept import InterceptRows, best_intercept
from ..objectives.row_loss import RowLoss, compiled
from . import row_kernels as kernels
from .dense_rows import CudaDenseRows
from .growing import CudaGrowing
from .sparse_rows import CudaSparseRows

if TYPE_CHECKING:
    from ..objectives.row_store import RowStore

__all__ = ["CudaPredictions"]

#: A Gaussian has the slopes of a square, but other values.
GAUSSIAN = 7


class CudaPredictions:
    """Predictions and targets of the rows of a store: see :class:`Predictions`.

    The sums of a built-in loss are formed on the device. For a loss of the user's own predictions
    come to this process and, for a gradient, its slopes go back.

    Parameters
    ----------
    store : RowStore
        The rows and their weights, on the device.
    loss : Loss
        Of a row.
    """

    def __init__(self, store: RowStore, loss: Loss) -> None:
        self._store, self.loss = store, loss
        self._kind = (GAUSSIAN, 0.0) if type(loss) is Gaussian else compiled(loss)
        self._z, self._y = CudaGrowing(), CudaGrowing()
        self._partial = cupy().empty((kernels.PARTS, 5))
        # A move that the predictions of the first rows have yet to follow: (a, step, rows).
        self._pending: tuple[Array, float, int] | None = None

    def append(self, z: Array, y: Array) -> None:
        """Add the rows that the store is about to add."""
        self._z.append(z)
        self._y.append(y)

    def keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False; the store still holds them."""
        self._settle()
        self._z.keep(mask)
        self._y.keep(mask)

    def values(self) -> Array:
        """Return all z, not to be changed."""
        self._settle()
        return to_host(self._z.data)

    def targets(self) -> Array:
        """Return all y."""
        return to_host(self._y.data)

    @property
    def _rows(self) -> CudaDenseRows | CudaSparseRows:
        rows = self._store.rows
        assert isinstance(rows, (CudaDenseRows, CudaSparseRows))
        return rows

    @property
    def _is_compiled(self) -> bool:
        return self._kind[0] >= 0

    @property
    def _weighed(self) -> tuple[Any, Any, Any]:
        """Buffers of z, y and w that begin with the rows, up to date."""
        self._settle()
        return self._z.buffer, self._y.buffer, self._store.weights_there

    @property
    def _brought(self) -> tuple[Array, Array, Array]:
        """Z, y and w in this process's memory, for losses of the user's own."""
        return self.values(), self.targets(), self._store.w

    # Moving ---------------------------------------------------------------------------------------

    @property
    def may_wait(self) -> bool:
        """Whether the next gradient reads all rows anyway, and can move predictions as it does."""
        rows = self._store.rows
        return self._is_compiled and isinstance(rows, CudaDenseRows) and rows.is_fused

    def wait(self, a: Array, step: float) -> None:
        """Let z <- (1 - step) z + step X a wait for the next read."""
        self._settle()
        self._pending = (a, step, len(self._z))

    def _settle(self) -> None:
        if self._pending is not None:
            (a, step, moved), self._pending = self._pending, None
            self._rows.move(self._z.buffer, a, step, moved)

    def follow(self, image: Any, step: float) -> None:
        """Z <- (1 - step) z + step image."""
        self._settle()
        z = self._z.data
        z *= 1.0 - float(step)
        z += float(step) * image

    def shift(self, image: Any, part: float) -> None:
        """Z <- z + part image."""
        self._settle()
        z = self._z.data
        z += float(part) * image

    def refresh(self, theta: Array) -> None:
        """Z <- X theta."""
        self._pending = None
        if self._store.rows is not None:
            self._z.data[...] = self._rows.matvec(theta)

    # Sums over the rows ---------------------------------------------------------------------------

    def gradient(self, b: float) -> Array:
        """Return X' (w phi'(z + b, y)): one pass over dense rows for a move and the gradient."""
        rows = self._rows
        if not (self._is_compiled and isinstance(rows, CudaDenseRows) and rows.is_fused):
            return rows.rmatvec(self.slopes(b))
        pending, self._pending = self._pending, None
        z, y, w = self._weighed
        return rows.fused_gradient(self._kind, pending, z, y, w, b)

    def _sums(self, b: float, direction: Any = None, c: float = 0.0) -> Array:
        """Return the sums of w phi, w phi', w phi'', w phi' d and w phi'' d^2 at z + c d + b."""
        z, y, w = self._weighed
        d = z if direction is None else direction
        n = len(self._z)
        used = kernels.row_sums(self._kind, n, z, d, c, y, w, b, self._partial)
        return to_host(self._partial[:used]).sum(axis=0)

    def total(self, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        if not self._is_compiled:
            return RowLoss(self.loss).total(*self._brought, b)
        return float(self._sums(b)[0])

    def total_along(self, image: Any, part: float, b: float) -> float:
        """Return the sum of w phi(z + part image + b, y)."""
        if not self._is_compiled:
            z, y, w = self._brought
            return RowLoss(self.loss).total(z + part * to_host(image), y, w, b)
        return float(self._sums(b, image, part)[0])

    def line(self, image: Any, b: float) -> Any:
        """Return the *mean* loss along z + c (image - z)."""
        self._settle()
        if self._is_compiled:
            return CudaLine(self, image - self._z.data, self._store.total_weight, b)
        return self.on_host().line(to_host(image), b)

    def best_intercept(self, start: float | None) -> float:
        """Return the b that minimises the sum of w phi(z + b, y)."""
        return best_intercept(self.loss, self.row_sums(), start)

    def row_sums(self) -> InterceptRows:
        """Return what an intercept needs to know."""
        return CudaRowSums(self) if self._is_compiled else self.on_host().row_sums()

    def steepest(self, b: float) -> float:
        """Return the largest w |phi'(z + b, y)|."""
        return float(abs(self.slopes(b)).max())

    def slopes(self, b: float) -> Any:
        """Return w phi'(z + b, y) of every row, on the device."""
        if not self._is_compiled:
            return cupy().asarray(RowLoss(self.loss).slopes(*self._brought, b))
        z, y, w = self._weighed
        out = cupy().empty(len(self._z))
        kernels.row_slopes(self._kind, len(self._z), z, y, w, b, out)
        return out

    def bends(self, b: float) -> Any:
        """Return w times a curvature >= 0 of phi at (z + b, y) of every row, on the device."""
        if not self._is_compiled:
            return cupy().asarray(RowLoss(self.loss).curvatures(*self._brought, b))
        z, y, w = self._weighed
        out = cupy().empty(len(self._z))
        kernels.row_bends(self._kind, len(self._z), z, y, w, b, out)
        return out

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return z, y and a move that waits as plain arrays."""
        a, step, moved = self._pending or (None, 0.0, 0)
        return {
            "z": to_host(self._z.data),
            "y": to_host(self._y.data),
            "pending": None if a is None else {"a": a.copy(), "step": step, "rows": moved},
        }

    def load(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        self._z.append(np.asarray(state["z"], float))
        self._y.append(np.asarray(state["y"], float))
        if state["pending"] is not None:
            pending = state["pending"]
            self._pending = (np.array(pending["a"]), pending["step"], pending["rows"])

    def on_host(self) -> HostPredictions:
        """Return the same predictions in this process's memory."""
        copy = HostPredictions(self._store, self.loss)
        copy.load(self.state_dict())
        return copy

    @classmethod
    def from_host(cls, carried: HostPredictions) -> CudaPredictions:
        """Make predictions on the device from others."""
        copy = cls(carried._store, carried._loss.loss)
        copy.load(carried.state_dict())
        return copy


class CudaLine:
    """The mean loss along z + c direction; one pass gives its value and its slope."""

    def __init__(
        self, carried: CudaPredictions, direction: Any, total_weight: float, b: float
    ) -> None:
        self._carried, self._direction, self._b = carried, direction, b
        self._total_weight = total_weight
        self._known: tuple[float, Array] | None = None
        self.curvature = float(self._at(0.0)[4]) if carried.loss.quadratic else None

    def _at(self, c: float) -> Array:
        if self._known is None or self._known[0] != c:
            sums = self._carried._sums(self._b, self._direction, c)
            self._known = (c, sums / self._total_weight)
        return self._known[1]

    def value(self, c: float) -> float:
        """Return the mean loss at c."""
        return float(self._at(c)[0])

    def slope(self, c: float) -> float:
        """Return its derivative at c."""
        return float(self._at(c)[3])


class CudaRowSums:
    """What an intercept needs to know, from the device: see :class:`InterceptRows`."""

    def __init__(self, predictions: CudaPredictions) -> None:
        self._of = predictions

    @property
    def _weighed(self) -> list[Any]:
        """Z, y and w of the rows alone."""
        return [buffer[: len(self._of._z)] for buffer in self._of._weighed]

    @property
    def weight(self) -> float:
        """The sum of w."""
        return float(self._weighed[2].sum())

    def sums(self, b: float) -> tuple[float, float]:
        """Return the sums of w phi'(z + b, y) and of w phi''(z + b, y)."""
        slope, bend = self._of._sums(b)[1:3].tolist()
        return slope, bend

    def value(self, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        return self._of.total(b)

    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest intercept that leave some row undecided."""
        z, y, w = self._weighed
        at = (-z if isinstance(self._of.loss, SignedLabels) else y - z)[w > 0.0]
        return (float(at.min()), float(at.max())) if at.size else (np.inf, -np.inf)

    def residuals(self) -> tuple[Array, Array]:
        """Return y - z and w."""
        z, y, w = self._weighed
        return to_host(y - z), to_host(w)
