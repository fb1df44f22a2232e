"""The mean loss of a linear model over all rows seen, with predictions carried along."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from .._growing import GrowingArray
from .._state import describe, rebuild
from .._typing import Array, Shape, State
from .._validation import check_part, check_rows, check_targets, check_weights
from ..atoms import Atom
from ..linalg import top_singular_pair
from ..losses import Loss
from .base import Objective, spectral_norm_squared
from .rows import DenseRows, SparseRows, rows_from_state

__all__ = ["LinearObjective"]

#: Predictions are recomputed from theta after this many moves, against rounding drift.
REFRESH_EVERY = 1000


class LinearObjective(Objective):
    """F_t(theta) = weighted mean of loss(<theta, x_i>, y_i) over every row observed.

    The past is kept. Its predictions z_i = <theta, x_i> are not recomputed: when theta moves
    along an atom they move along the atom's image, ``z <- (1 - step) z + step X a``, which for a
    signed coordinate is one column of the data.

    Parameters
    ----------
    loss : Loss
        A pointwise loss from :mod:`onlinefw.losses`, or one of your own.
    n_features : int, optional
        The length of theta; learned from the first batch if not given.
    shape : (int, int), optional
        For matrix-shaped features: theta is m1 x m2 and rows are (B, m1, m2), or (B, m1 * m2) in
        C order.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.LinearObjective(ofw.losses.Square())
    >>> objective.observe(np.eye(2), np.array([1.0, -3.0]))  # the loss at theta = 0
    2.5
    >>> objective.gradient()
    array([-0.5,  1.5])
    """

    def __init__(
        self, loss: Loss, *, n_features: int | None = None, shape: Shape | None = None
    ) -> None:
        check_part("loss", loss, Loss, "Square()")
        if n_features is not None and shape is not None:
            raise ValueError("LinearObjective takes n_features or shape, not both")
        if n_features is not None and (int(n_features) != n_features or n_features < 1):
            raise ValueError(f"n_features must be a whole number of at least 1, got {n_features}")
        if shape is not None and (np.shape(shape) != (2,) or min(shape) < 1):
            raise ValueError(f"shape must be (m1, m2) with positive sides, got {shape}")
        super().__init__(shape if n_features is None else (int(n_features),))
        self.loss = loss
        self.total_weight = 0.0
        self._rows: DenseRows | SparseRows | None = None
        self._z, self._y, self._w = GrowingArray(), GrowingArray(), GrowingArray()
        self._moves = 0
        self._warned = False
        self._image: tuple[Atom, Array] | None = None
        self._batch: tuple[Any, Array, Array] | None = None

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Add rows; return the weighted mean of their losses at the current iterate."""
        X = check_rows(X, self.shape)
        y = check_targets(y, X.shape[0], self.loss)
        w = check_weights(sample_weight, X.shape[0])
        self._agree_on(X.shape[1:])

        if self.shape is None:
            self._set_shape(X.shape[1:])
        assert self.shape is not None
        if self._rows is None:
            self._rows = (SparseRows if sparse.issparse(X) else DenseRows)(self.shape)
        z = X @ np.asarray(self.theta).reshape(-1)
        self._rows.append(X)
        for column, values in ((self._z, z), (self._y, y), (self._w, w)):
            column.append(values)
        self.n_observations += X.shape[0]
        self.total_weight += float(w.sum())
        self._batch, self._image = (X, y, w), None
        return float(w @ self.loss.value(z, y) / w.sum())

    def gradient(self) -> Array:
        """Return X' (w phi'(z, y)) / sum(w): one pass over the past."""
        self._needs_data()
        assert self._rows is not None and self.shape is not None
        slopes = self.loss.derivative(self._z.data, self._y.data) * self._w.data
        if not self.loss.convex and not self._warned:
            self._warn_if_saturated(slopes)
        return self._rows.rmatvec(slopes / self.total_weight).reshape(self.shape)

    def _warn_if_saturated(self, slopes: Array) -> None:
        if np.abs(slopes).max() < 1e-9 and self.value() > 1e-3:
            self._warned = True
            warnings.warn(
                f"{self.loss} is saturated: all its derivatives are below 1e-9 while the mean loss "
                f"is {self.value():.3g}, so theta cannot move and a gap near zero proves nothing; "
                "use a smaller radius or smaller features",
                RuntimeWarning,
                stacklevel=4,
            )

    def value(self) -> float:
        """Return F_t at the current iterate, from the carried predictions."""
        self._needs_data()
        return self._value_at(self._z.data)

    def _value_at(self, z: Array) -> float:
        return float(self._w.data @ self.loss.value(z, self._y.data) / self.total_weight)

    def predictions(self) -> Array:
        """Return the carried predictions of all rows observed, in order (a copy)."""
        return self._z.data.copy()

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and every past prediction with it."""
        if self.n_observations:
            image = self._image_of(atom)
            z = self._z.data
            z *= 1.0 - step
            z += step * image
        self.iterate.move(atom, step)
        self._image = None
        self._moves += 1
        if self._moves % REFRESH_EVERY == 0:
            self._refresh()

    def _image_of(self, atom: Atom) -> Array:
        """X a, computed once for a line search and the move that follows it."""
        if self._image is None or self._image[0] is not atom:
            assert self._rows is not None
            self._image = (atom, atom.image(self._rows))
        return self._image[1]

    def _refresh(self) -> None:
        self._image = None
        if self._rows is not None:
            self._z.data[:] = self._rows.matvec(np.asarray(self.theta).reshape(-1))

    def line(self, atom: Atom) -> _LinearLine:
        """Return F along theta + c (atom - theta)."""
        self._needs_data()
        return _LinearLine(self, self._image_of(atom) - self._z.data)

    def smoothness(self) -> float:
        """Return loss.smoothness times the largest eigenvalue of X' diag(w) X / sum(w)."""
        self._needs_data()
        rows, scale = self._rows, np.sqrt(self._w.data / self.total_weight)
        assert rows is not None
        operator = LinearOperator(
            (len(rows), int(np.prod(rows.shape))),
            matvec=lambda v: scale * rows.matvec(v),
            rmatvec=lambda r: rows.rmatvec(scale * r),
            dtype=float,
        )
        return self.loss.smoothness * top_singular_pair(operator, tol=1e-6)[1] ** 2

    def batch_gradient(self) -> Array:
        """Return the gradient of the last batch's mean loss at the current iterate."""
        self._needs_batch(self._batch)
        assert self._batch is not None and self.shape is not None
        X, y, w = self._batch
        z = X @ np.asarray(self.theta).reshape(-1)
        return (X.T @ (w * self.loss.derivative(z, y) / w.sum())).reshape(self.shape)

    def batch_smoothness(self) -> float:
        """Return the smoothness of the last batch's mean loss."""
        self._needs_batch(self._batch)
        assert self._batch is not None
        return self.loss.smoothness * spectral_norm_squared(self._batch[0], self._batch[2])

    def state_dict(self) -> State:
        """Return data, predictions and iterate as plain arrays and JSON-able values."""
        return {
            **self._base_state(),
            "loss": describe(self.loss),
            "rows": None if self._rows is None else self._rows.state_dict(),
            "z": self._z.data.copy(),
            "y": self._y.data.copy(),
            "w": self._w.data.copy(),
            "total_weight": self.total_weight,
            "moves": self._moves,
        }

    @classmethod
    def from_state(cls, state: State, *, loss: Loss | None = None) -> LinearObjective:
        """Make the objective that ``state_dict`` described; a loss of your own is passed in."""
        objective = cls(rebuild(state["loss"], "loss", loss))
        objective._load_base(state)
        if state["rows"] is not None:
            assert objective.shape is not None
            objective._rows = rows_from_state(state["rows"], objective.shape)
        for column, name in ((objective._z, "z"), (objective._y, "y"), (objective._w, "w")):
            column.append(state[name])
        objective.total_weight = float(state["total_weight"])
        objective._moves = int(state["moves"])
        return objective

    def __repr__(self) -> str:
        return (
            f"LinearObjective({self.loss}, shape={self.shape}, "
            f"n_observations={self.n_observations})"
        )


class _LinearLine:
    """F along z + c * direction, from predictions only."""

    def __init__(self, objective: LinearObjective, direction: Array) -> None:
        self._objective, self._direction = objective, direction
        self._z, self._y = objective._z.data, objective._y.data
        self._w = objective._w.data / objective.total_weight
        self.curvature: float | None = None
        if objective.loss.quadratic:
            bend = objective.loss.second_derivative(self._z, self._y)
            self.curvature = float((self._w * bend) @ direction**2)

    def value(self, c: float) -> float:
        return self._objective._value_at(self._z + c * self._direction)

    def slope(self, c: float) -> float:
        slopes = self._objective.loss.derivative(self._z + c * self._direction, self._y)
        return float((self._w * slopes) @ self._direction)
