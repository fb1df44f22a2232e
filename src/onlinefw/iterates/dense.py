"""A vector or matrix held as an ndarray."""

from __future__ import annotations

import numpy as np

from .._typing import Array, Direction, Shape, State
from ..atoms import Atom
from ..linalg import inner

__all__ = ["DenseIterate"]


class DenseIterate:
    """A vector or matrix held as an ndarray; starts at zero.

    ``theta`` is never written to: each move makes a new array, which costs the same one pass, so
    a theta that a user keeps stays what it was.

    Examples
    --------
    >>> from onlinefw.atoms import SignedCoordinate
    >>> from onlinefw.iterates import DenseIterate
    >>> iterate = DenseIterate((3,))
    >>> iterate.move(SignedCoordinate(1, 4.0, (3,)), 0.5)
    >>> iterate.theta
    array([0., 2., 0.])
    """

    #: The current point, read-only.
    theta: Array

    def __init__(self, shape: Shape) -> None:
        self._set(np.zeros(shape))

    @property
    def shape(self) -> Shape:
        """The shape of theta."""
        return self.theta.shape

    def dot(self, direction: Direction) -> float:
        """Return <theta, direction>."""
        if isinstance(direction, np.ndarray):
            return float(self.theta.reshape(-1) @ direction.reshape(-1))
        return inner(self.theta, direction)

    def move(self, atom: Atom, step: float) -> None:
        """Let theta <- (1 - step) theta + step * atom."""
        theta = (1.0 - step) * self.theta
        atom.add_to(theta, step)
        self._set(theta)

    def shift(self, indices: Array, change: Array) -> None:
        """Add ``change`` at the given flat positions."""
        theta = self.theta.copy()
        theta.reshape(-1)[indices] += change
        self._set(theta)

    def put(self, point: Array) -> None:
        """Put theta at a point, which is copied."""
        self._set(np.array(point, dtype=float, order="C"))

    def _set(self, theta: Array) -> None:
        theta.flags.writeable = False
        self.theta = theta

    def squared_norm(self) -> float:
        """Return the squared Euclidean norm of theta."""
        return inner(self.theta, self.theta)

    def state_dict(self) -> State:
        """Return theta."""
        return {"kind": "DenseIterate", "theta": self.theta.copy()}

    @classmethod
    def from_state(cls, state: State) -> DenseIterate:
        """Make the iterate that ``state_dict`` described."""
        iterate = cls(())
        iterate.put(state["theta"])
        return iterate
