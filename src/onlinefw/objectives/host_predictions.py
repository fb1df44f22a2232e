"""The carried predictions of a linear model in this process's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._growing import GrowingArray
from .._threads import threads_for
from .._typing import Array, State
from ..kernels import rows as kernels
from ..kernels.bytes import fused_bytes, suits
from ..losses import Loss
from .intercept import RowSums, best_intercept
from .row_loss import RowLoss
from .rows import DenseRows

if TYPE_CHECKING:
    from .row_store import RowStore

__all__ = ["HostPredictions"]


class HostPredictions:
    """Predictions and targets of the rows of a store: see :class:`Predictions`.

    Parameters
    ----------
    store : RowStore
        The rows and their weights.
    loss : Loss
        Of a row.
    """

    def __init__(self, store: RowStore, loss: Loss) -> None:
        self._store, self._loss = store, RowLoss(loss)
        self._z, self._y = GrowingArray(), GrowingArray()
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
        return self._z.data

    def targets(self) -> Array:
        """Return all y, not to be changed."""
        return self._y.data

    @property
    def _weighed(self) -> tuple[Array, Array, Array]:
        """Z, y and w of all rows, up to date."""
        return self.values(), self._y.data, self._store.w

    # Moving ---------------------------------------------------------------------------------------

    @property
    def may_wait(self) -> bool:
        """Whether the next gradient reads all rows anyway, and can move predictions as it does."""
        return self._loss.is_compiled and isinstance(self._store.rows, DenseRows)

    def wait(self, a: Array, step: float) -> None:
        """Let z <- (1 - step) z + step X a wait for the next read."""
        self._settle()
        self._pending = (a, step, len(self._z))

    def _settle(self) -> None:
        if self._pending is not None:
            (a, step, moved), self._pending = self._pending, None
            rows = self._store.rows
            assert isinstance(rows, DenseRows)
            data, blocks = rows.data, np.minimum(rows.blocks, moved)
            a = a.astype(rows.working_dtype, copy=False)
            with threads_for(rows.work):
                kernels.move_rows(data, blocks, 1.0 - step, step, a, self._z.data)

    def follow(self, image: Array, step: float) -> None:
        """Z <- (1 - step) z + step image."""
        z = self.values()
        z *= 1.0 - step
        z += step * image

    def shift(self, image: Array, part: float) -> None:
        """Z <- z + part image."""
        z = self.values()
        z += part * image

    def refresh(self, theta: Array) -> None:
        """Z <- X theta."""
        self._pending = None
        if self._store.rows is not None:
            self._z.data[:] = self._store.rows.matvec(theta)

    # Sums over the rows ---------------------------------------------------------------------------

    def gradient(self, b: float) -> Array:
        """Return X' (w phi'(z + b, y)): one pass over dense rows for a move and the gradient."""
        rows = self._store.rows
        assert rows is not None
        if not (isinstance(rows, DenseRows) and self._loss.is_compiled):
            return rows.rmatvec(self.slopes(b))
        a, step, moved = self._pending or (np.zeros(rows.data.shape[1]), 0.0, 0)
        self._pending = None
        a = a.astype(rows.working_dtype, copy=False)
        out = np.zeros(rows.data.shape[1])
        fused = fused_bytes if suits(rows.data) else kernels.fused_gradient
        with threads_for(rows.work):
            fused(
                rows.data,
                rows.blocks,
                moved,
                1.0 - step,
                step,
                a,
                self._z.data,
                self._y.data,
                self._store.w,
                b,
                self._loss.kind,
                self._loss.parameter,
                out,
            )
        return out

    def total(self, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        return self._loss.total(*self._weighed, b)

    def total_along(self, image: Array, part: float, b: float) -> float:
        """Return the sum of w phi(z + part image + b, y)."""
        z, y, w = self._weighed
        return self._loss.total(z + part * image, y, w, b)

    def line(self, image: Array, b: float) -> HostLine:
        """Return the *mean* loss along z + c (image - z)."""
        z, y, w = self._weighed
        return HostLine(self._loss, z, y, w, self._store.total_weight, b, image - z)

    def best_intercept(self, start: float | None) -> float:
        """Return the b that minimises the sum of w phi(z + b, y)."""
        return best_intercept(self._loss.loss, self.row_sums(), start)

    def row_sums(self) -> RowSums:
        """Return what an intercept needs to know."""
        return RowSums(self._loss, *self._weighed)

    def steepest(self, b: float) -> float:
        """Return the largest w |phi'(z + b, y)|."""
        return float(np.abs(self.slopes(b)).max())

    def slopes(self, b: float) -> Array:
        """Return w phi'(z + b, y) of every row."""
        return self._loss.slopes(*self._weighed, b)

    def bends(self, b: float) -> Array:
        """Return w times a curvature >= 0 of phi at (z + b, y) of every row."""
        return self._loss.curvatures(*self._weighed, b)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return z, y and a move that waits as plain arrays."""
        a, step, moved = self._pending or (None, 0.0, 0)
        return {
            "z": self._z.data.copy(),
            "y": self._y.data.copy(),
            "pending": None if a is None else {"a": a.copy(), "step": step, "rows": moved},
        }

    def load(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        self._z.append(state["z"])
        self._y.append(state["y"])
        if state["pending"] is not None:
            pending = state["pending"]
            self._pending = (np.array(pending["a"]), pending["step"], pending["rows"])


class HostLine:
    """The mean loss along z + c direction, from predictions only."""

    def __init__(
        self,
        loss: RowLoss,
        z: Array,
        y: Array,
        w: Array,
        total_weight: float,
        b: float,
        direction: Array,
    ) -> None:
        self._loss, self._z, self._y, self._w, self._b = loss, z, y, w, b
        self._total_weight, self._direction = total_weight, direction
        self._shares = w / total_weight
        self.curvature: float | None = None
        if loss.loss.quadratic:
            bend = loss.loss.second_derivative(z, y)
            self.curvature = float((self._shares * bend) @ direction**2)

    def value(self, c: float) -> float:
        """Return the mean loss at c."""
        at = self._z + c * self._direction
        return self._loss.total(at, self._y, self._w, self._b) / self._total_weight

    def slope(self, c: float) -> float:
        """Return its derivative at c."""
        at = self._z + c * self._direction
        return float(self._loss.slopes(at, self._y, self._shares, self._b) @ self._direction)
