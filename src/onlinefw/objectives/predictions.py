"""What a linear objective asks of the predictions it carries, wherever they are kept."""

from __future__ import annotations

from typing import Any, Protocol

from .._typing import Array, State
from .base import Line
from .intercept import InterceptRows

__all__ = ["Predictions"]


class Predictions(Protocol):
    """Prediction z_i and target y_i of every row of a store, for one model, and sums over them.

    An objective decides what to move and when; whatever sums a loss over the rows asks here. So
    predictions may live wherever the rows do. An image (the products <a, x_i> of an atom with the
    rows) is an array of that place and opaque to the objective; what else comes back is in this
    process's memory. Losses are weighted by the store's weights; sums are not divided.
    """

    def append(self, z: Array, y: Array) -> None:
        """Add the rows that the store is about to add."""
        ...

    def keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False; the store still holds them."""
        ...

    def values(self) -> Array:
        """Return all z, not to be changed."""
        ...

    def targets(self) -> Array:
        """Return all y, not to be changed."""
        ...

    # Moving ---------------------------------------------------------------------------------------

    @property
    def may_wait(self) -> bool:
        """Whether the next gradient reads all rows anyway, and can move predictions as it does."""
        ...

    def wait(self, a: Array, step: float) -> None:
        """Let z <- (1 - step) z + step X a wait for the next read."""
        ...

    def follow(self, image: Any, step: float) -> None:
        """Z <- (1 - step) z + step image."""
        ...

    def shift(self, image: Any, part: float) -> None:
        """Z <- z + part image."""
        ...

    def refresh(self, theta: Array) -> None:
        """Z <- X theta."""
        ...

    # Sums over the rows ---------------------------------------------------------------------------

    def gradient(self, b: float) -> Array:
        """Return X' (w phi'(z + b, y))."""
        ...

    def total(self, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        ...

    def total_along(self, image: Any, part: float, b: float) -> float:
        """Return the sum of w phi(z + part image + b, y)."""
        ...

    def line(self, image: Any, b: float) -> Line:
        """Return the *mean* loss along z + c (image - z)."""
        ...

    def best_intercept(self, start: float | None) -> float:
        """Return the b that minimises the sum of w phi(z + b, y)."""
        ...

    def row_sums(self) -> InterceptRows:
        """Return what an intercept needs to know."""
        ...

    def steepest(self, b: float) -> float:
        """Return the largest w |phi'(z + b, y)|."""
        ...

    def slopes(self, b: float) -> Any:
        """Return w phi'(z + b, y) of every row, where the rows are."""
        ...

    def bends(self, b: float) -> Any:
        """Return w times a curvature >= 0 of phi at (z + b, y) of every row, where the rows are."""
        ...

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return z, y and a move that waits as plain arrays."""
        ...

    def load(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        ...
