"""Entries that were not observed and count as zeros: what they add to F_t, from factors alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._devices import to_host
from .._typing import Array
from ..iterates import LowRank

__all__ = ["Background", "SquaredNorm"]


class SquaredNorm:
    """The squared Frobenius norm of theta, which is carried along its moves.

    To compute it takes (rank squared) times (rows + columns), to carry it along rank times that.
    """

    __slots__ = ("_held", "_value")

    def __init__(self, value: float | None = None, theta: LowRank | None = None) -> None:
        self._value = value
        self._held = None if theta is None else _mark(theta)

    def copy(self) -> SquaredNorm:
        """Return another, whose discoveries are its own."""
        other = SquaredNorm(self._value)
        other._held = self._held
        return other

    def known(self, theta: LowRank) -> float | None:
        """Return the norm if it is that of this theta; growing adds zeros, which is no change."""
        held, now = self._held, _mark(theta)
        same = held is not None and held[0] is now[0] and held[1:] == now[1:]
        return self._value if same else None

    def of(self, theta: LowRank) -> float:
        """Return the norm, and know it from now on."""
        value = self.known(theta)
        if value is None:
            left, right = (_gram(x) for x in (theta.left, theta.right))
            value = float(theta.weights @ (left * right) @ theta.weights)
            self._value, self._held = value, _mark(theta)
        return value

    def move(self, theta: LowRank, before: float | None, keep: float, u: Array, v: Array) -> None:
        """Let it be that of theta, which was keep theta + u v' a moment ago.

        ``before`` was ``known`` then.
        """
        terms = -1 if self._held is None else self._held[1]
        if before is None or theta.n_atoms != terms + 1:  # recompression loses a little
            self._value = self._held = None
            return
        added = float(u @ u) * float(v @ v)
        value = keep**2 * before + 2.0 * float(u @ theta.matvec(v)) - added
        self._value, self._held = max(value, 0.0), _mark(theta)


def _mark(theta: LowRank) -> tuple[Any, int, float]:
    held = theta._held
    return held.weights, held.k, held.scale


def _gram(factor: Array) -> Array:
    factor = factor.astype(float)
    return to_host(factor.T @ factor)


class Background:
    """w Z, where Z = theta + rows 1' + 1 columns' is what is predicted everywhere.

    It is the gradient of w |Z|^2 / 2: every entry counts as a 0 of weight w. What was observed is
    a sparse matrix beside it.

    Parameters
    ----------
    weight : float
        w.
    theta : LowRank
        At its place, where products are computed.
    offsets : (ndarray, ndarray) or None
        Of rows and columns, in this process's memory.
    norm : SquaredNorm
        Of theta.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.iterates import LowRank
    >>> from onlinefw.objectives.background import Background, SquaredNorm
    >>> theta = LowRank.from_factors(np.ones((2, 1)), np.ones(1), np.eye(3)[:, :1])
    >>> zeros = Background(0.5, theta, None, SquaredNorm())
    >>> zeros.forward(np.eye(3)).tolist(), zeros.value
    ([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0]], 0.5)
    """

    def __init__(
        self,
        weight: float,
        theta: LowRank,
        offsets: tuple[Array, Array] | None,
        norm: SquaredNorm,
    ) -> None:
        self.weight, self._theta, self._xp = weight, theta, theta._xp
        self._square = norm.of(theta)
        if offsets is not None and not (np.any(offsets[0]) or np.any(offsets[1])):
            offsets = None
        self._offsets = None
        if offsets is not None:
            self._offsets = tuple(self._xp.asarray(x, dtype=float) for x in offsets)

    # Products -------------------------------------------------------------------------------------

    def forward(self, V: Array, dtype: Any = float) -> Array:
        """Return w Z V at the place, for a block or a vector."""
        return self._product(self._theta.left, self._theta.right, V, (0, 1), dtype)

    def backward(self, U: Array, dtype: Any = float) -> Array:
        """Return w Z' U at the place, for a block or a vector."""
        return self._product(self._theta.right, self._theta.left, U, (1, 0), dtype)

    def _product(self, to: Array, of: Array, x: Array, sides: tuple[int, int], dtype: Any) -> Array:
        # In the precision of the factors products of blocks take no copies of them.
        block = x.reshape(len(x), -1)
        weights = self._xp.asarray((self.weight * self._theta.weights).astype(dtype))[:, None]
        out = to.astype(dtype, copy=False) @ (
            weights * (of.astype(dtype, copy=False).T @ block.astype(dtype, copy=False))
        )
        if self._offsets is not None:
            near, far = (self._offsets[side] for side in sides)
            out = out + self.weight * (near[:, None] * block.sum(axis=0) + far @ block)
            out = out.astype(dtype, copy=False)
        return out.reshape(len(out), *x.shape[1:])

    def dense(self) -> Array:
        """Return w Z as a dense numpy array."""
        z = self._theta.dense().astype(float)
        if self._offsets is not None:
            rows, columns = map(to_host, self._offsets)
            z += rows[:, None] + columns
        return self.weight * z

    # Sums -----------------------------------------------------------------------------------------

    @property
    def theta_dot(self) -> float:
        """w <theta, Z>."""
        return self.weight * (self._square + self._theta_on_offsets())

    def _theta_on_offsets(self) -> float:
        """Return <theta, Z - theta>."""
        if self._offsets is None:
            return 0.0
        (rows, columns), theta = self._offsets, self._theta
        ones = [self._xp.ones(n) for n in theta.shape]
        return float(rows @ theta.matvec(ones[1])) + float(ones[0] @ theta.matvec(columns))

    @property
    def value(self) -> float:
        """w |Z|^2 / 2."""
        return 0.5 * self.weight * self._squares()

    def _squares(self) -> float:
        """Return |Z|^2."""
        if self._offsets is None:
            return self._square
        (rows, columns), (m1, m2) = self._offsets, self._theta.shape
        added = m2 * float(rows @ rows) + m1 * float(columns @ columns)
        added += 2.0 * float(rows.sum()) * float(columns.sum())
        return max(self._square + 2.0 * self._theta_on_offsets() + added, 0.0)

    @property
    def norm(self) -> float:
        """The Frobenius norm of w Z."""
        return self.weight * float(np.sqrt(self._squares()))

    def line(self, u: Array, v: Array) -> tuple[float, float, float]:
        """Return value, slope and curvature of w |Z|^2 / 2 along t (u v' - theta) at t = 0."""
        on_theta = float(u @ self._theta.matvec(v))
        on_z = on_theta
        if self._offsets is not None:
            rows, columns = self._offsets
            on_z += float(u @ rows) * float(v.sum()) + float(u.sum()) * float(columns @ v)
        slope = on_z - self._square - self._theta_on_offsets()
        curvature = float(u @ u) * float(v @ v) - 2.0 * on_theta + self._square
        return self.value, self.weight * slope, self.weight * max(curvature, 0.0)
