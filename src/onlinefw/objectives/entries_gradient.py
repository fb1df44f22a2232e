"""The gradient over observed entries, as an operator that is never built."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from .._devices import namespace, to_host
from .._threads import one_blas_thread
from .._typing import Array
from ..atoms import RankOne
from ..kernels import LANES
from ..linalg import PairOperator, Scales, krylov_pair, ritz_pairs
from ..past.protocols import EntriesPast
from .background import Background

__all__ = ["Effort", "EntriesGradient", "Scaling", "WarmStart"]

#: Up to this many entries a certificate takes the exact norm of the dense gradient.
SMALL_MATRIX = 250_000
#: At most this many Krylov steps from a random start, for a certificate or the end of a run.
CLOSE_STEPS = 80
#: A certificate fails with at most this probability over its random start.
CERTIFICATE_FAILURE = 1e-6


class WarmStart:
    """Where the next linear minimisation starts: the best right singular vectors known."""

    __slots__ = ("block",)

    def __init__(self, block: Array | None = None) -> None:
        self.block = block  # up to eight orthonormal columns, at the place of theta

    def columns(self, m2: int, seed: int, xp: Any) -> Array:
        """Return eight orthonormal columns of length m2 (fewer, if the matrix has fewer columns).

        What is missing is drawn at random.
        """
        block = self.block
        wanted = min(LANES, m2)
        if block is not None and block.shape == (m2, wanted):
            return block
        if block is None:
            block = xp.empty((m2, 0))
        elif block.shape[0] < m2:  # new columns of the matrix are zero so far
            block = xp.pad(block, ((0, m2 - block.shape[0]), (0, 0)))
        missing = wanted - block.shape[1]
        if missing == 0:
            return block
        more = np.random.default_rng(seed).standard_normal((m2, missing))
        if xp is np or block.shape[1] == 0:
            return xp.asarray(np.linalg.qr(np.column_stack((to_host(block), more)))[0])
        return complete_basis(block, xp.asarray(more))


class Effort(NamedTuple):
    """How closely a top singular pair is looked for."""

    steps: int  # reads of the entries, at most
    #: Stop when the last read has added less than this fraction of the duality gap to the step's
    #: value.
    tol: float


class EntriesGradient(PairOperator):
    """The gradient of :class:`~onlinefw.objectives.ObservedEntries`, valid until theta moves.

    Making it refreshes all slopes and multiplies eight vectors, those that were best the last
    time, in the same read. The singular pairs change slowly from round to round, so this is mostly
    all that a Frank-Wolfe step needs. The best vectors found are left in ``start`` for the next.

    With the scaling of a ball the operator is diag(a) G diag(b).

    Where entries that were not observed count, G is the sparse matrix of the past plus a
    ``background`` of low rank. ``weight`` is that of all that counts.
    """

    def __init__(
        self,
        past: EntriesPast,
        weight: float,
        background: Background | None,
        scaling: Scaling | None,
        start: WarmStart,
        effort: Effort,
    ) -> None:
        theta, counts = past.theta, past.counts
        if counts.weight == 0.0:
            raise ValueError("nothing has been observed yet: call observe(X, y) first")
        self._background = background
        super().__init__(past.dtype, theta.shape)
        self._past, self._scaling, self._start, self._effort = past, scaling, start, effort
        self._mean, self._seed = 1.0 / weight, counts.observations
        self._precision = _PRECISION[past.dtype.char]
        self._array_module = xp = theta._xp
        V = start.block
        if V is None or V.shape != (self.shape[1], LANES):
            V = start.columns(self.shape[1], self._seed, xp)
        if scaling is None:
            W, z_dot_g = self._read(V, None)
        else:
            W, z_dot_g = self._read(scaling.b_column * V, scaling.squared_rows)
            W = scaling.b_column * W
        self._W = W
        self._overlap, self._gram, self._left_gram, z_dot_g = past.overlaps(V, W, z_dot_g)
        if background is not None:
            z_dot_g += background.theta_dot
        self.theta_dot = z_dot_g * self._mean  # <theta, gradient>
        self._closely = False
        self._found: tuple[Array, float, Array] | None = None
        if not (isfinite(self.theta_dot) and np.isfinite(self._overlap).all()):
            raise OverflowError(
                f"the gradient of {past.loss} overflows at theta: the last step went too far; "
                "use a smaller radius, or LineSearch() as the step"
            )

    @property
    def frobenius_bound(self) -> float:
        """A bound on the Frobenius norm (infinite where repeated entries are kept apart).

        An entry may be among the sorted and among the newest, so squares must not be added up.
        """
        background = self._background
        everywhere = 0.0 if background is None else background.norm * self._mean
        return float(sum(np.sqrt(self._past.squared_norms()))) * self._mean + everywhere

    # Products -------------------------------------------------------------------------------------

    def _read(self, V: Array, row_scale: Array | None) -> tuple[Array, Any]:
        """Return G' (row_scale G V) and <z, g> of the sums, with one read that renews slopes."""
        past, background = self._past, self._background
        if background is None:
            return past.read(V, row_scale)
        W, z_dot_g = past.read(V, row_scale, background.forward(V, self.dtype))
        return W + self._background_of(past.products(), row_scale), z_dot_g

    def _background_of(self, Y: Array, row_scale: Array | None) -> Array:
        """Return what the background adds to G' (row_scale Y)."""
        assert self._background is not None
        if row_scale is not None:
            Y = (row_scale[:, None] if Y.ndim == 2 else row_scale) * Y
        return self._background.backward(Y, self.dtype)

    def _sums(self, v: Array, row_scale: Array | None) -> tuple[Array, Array]:
        """Return G v and G' (row_scale G v) of the sums."""
        past, background = self._past, self._background
        if background is None:
            return past.normal(v, row_scale)
        y, w = past.normal(v, row_scale, background.forward(v, self.dtype))
        return y, w + self._background_of(y, row_scale)

    def _scaling_for(self, scales: Scales | None) -> Scaling | None:
        known = self._scaling
        if scales is None or (known is not None and known.scales is scales):
            return None if scales is None else known
        return Scaling(scales, self._array_module, self.dtype)

    def normal(self, v: Array, scales: Scales | None = None) -> tuple[Array, Array]:
        """Return G v and G' G v, for the scaled G, with one read of the store."""
        return self._normal(v, self._scaling_for(scales))

    def _normal(self, v: Array, scaling: Scaling | None) -> tuple[Array, Array]:
        if scaling is None:
            y, w = self._sums(v, None)
            return y * self._mean, w * self._mean**2
        y, w = self._sums(scaling.b * v, scaling.squared_rows)
        return scaling.a * y * self._mean, scaling.b * (w * self._mean**2)

    def _matvec(self, v: Array) -> Array:
        return self._matmat(np.reshape(v, (-1, 1)))[:, 0]

    def _rmatvec(self, u: Array) -> Array:
        return self._rmatmat(np.reshape(u, (-1, 1)))[:, 0]

    def _matmat(self, v: Array) -> Array:
        """Return G V with one read of the store, in double precision."""
        product, background = self._past.forward(v), self._background
        if background is not None:
            product = product + background.forward(self._array_module.asarray(v))
        return product * self._mean

    def _rmatmat(self, u: Array) -> Array:
        """Return G' U with one read of the store, in double precision."""
        product, background = self._past.backward(u), self._background
        if background is not None:
            product = product + background.backward(self._array_module.asarray(u))
        return product * self._mean

    def toarray(self) -> Array:
        """Return the gradient as a dense array."""
        return self._dense() * self._mean

    def _dense(self) -> Array:
        slopes = self._past.dense_slopes()
        return slopes if self._background is None else slopes + self._background.dense()

    # Linear minimisation --------------------------------------------------------------------------

    def top_pair(self, radius: float, scales: Scales | None) -> tuple[Array, float, Array]:
        """Take the best pair of the block, and Krylov steps from it while they are worth a read."""
        scaling = self._scaling
        if scales is not (None if scaling is None else scaling.scales):
            raise ValueError("this gradient was made for a ball with other weights; make a new one")
        if self._closely:
            u, s, v = self._from_random(scaling)
        else:
            u, s, v = self._from_block(radius)
        if scaling is not None:
            u, v = scaling.a * u, scaling.b * v
        self._found = u, s, v
        return self._found

    def _from_block(self, radius: float) -> tuple[Array, float, Array]:
        xp, scaling = self._array_module, self._scaling
        to_left, values, to_right, before = ritz_pairs(
            self._overlap, self._W, self._precision, self._gram
        )
        if values.size == 0:  # the gradient is zero, and any vertex minimises
            return xp.eye(1, self.shape[0])[0], 0.0, xp.eye(1, self.shape[1])[0]
        best = to_left[:, 0]
        u, right = self._past.combine(best, self._W, to_right)
        if scaling is not None:
            u = scaling.a * u
        # u has length 1 to rounding.
        if self._left_gram is None or scaling is not None:
            length = float(np.sqrt(u @ u))
        else:
            length = float(np.sqrt(best @ self._left_gram @ best))
        u, s = u / length, float(values[0]) * self._mean / length
        v = xp.ascontiguousarray(right[:, 0])
        more = self._effort.steps - 1
        if more and not self._is_enough(radius, s, s - before * self._mean):
            products = partial(self._normal, scaling=scaling)
            enough = partial(self._is_enough_after, radius)
            with one_blas_thread():
                u, s, v = krylov_pair(
                    products, v, steps=more, enough=enough, precision=self._precision
                )
                right = _orthonormal(xp.column_stack((v, right[:, 1:])))
        self._start.block = right
        return u, s, v

    def _is_enough(self, radius: float, s: float, gain: float) -> bool:
        """Tell whether another step is not worth a read.

        A residual only says that *some* singular value is near: after a warm start the top one may
        still be missing. The gain of the last step is a better sign.
        """
        return radius * gain <= self._effort.tol * (self.theta_dot + radius * s)

    def _is_enough_after(self, radius: float, s: float, gain: float, k: int) -> bool:
        return k >= 2 and self._is_enough(radius, s, gain)

    def look_closely(self) -> None:
        """Let the next top pair come from a random start, which misses nothing, with many steps.

        Once a warm start has lost the top singular vector, a few steps do not find it again, and
        near the optimum that looks like a gap of zero.
        """
        self._closely = True

    def _from_random(
        self,
        scaling: Scaling | None,
        enough: Callable[[float, float, int], bool] = lambda s, gain, k: False,
    ) -> tuple[Array, float, Array]:
        rng = np.random.default_rng([self._seed, 1])
        start = rng.standard_normal(self.shape[1])
        start = self._array_module.asarray(start / np.linalg.norm(start))
        products = partial(self._normal, scaling=scaling)
        with one_blas_thread():
            return krylov_pair(
                products, start, steps=CLOSE_STEPS, enough=enough, precision=self._precision
            )

    def score(self, atom: RankOne) -> float:
        """Return <atom, gradient>, at no cost for the pair that was found."""
        if self._found is not None and atom.u is self._found[0]:
            return atom.scale * self._found[1]
        return atom.dot(self)

    # Certificates ---------------------------------------------------------------------------------

    def norm_bound(self, radius: float, scales: Scales | None) -> float:
        """Bound the top singular value from above, with probability at least 1 - 1e-6.

        After k Krylov steps from a random start the largest Ritz value x of G'G satisfies
        P(lambda_1 > x / (1 - e)) <= 1.648 sqrt(n) exp(-sqrt(e) (2 k - 1)) (Kuczynski and
        Wozniakowski 1992); the Frobenius norm is taken where that is smaller.
        """
        a, b = (1.0, 1.0) if scales is None else (scales[0][:, None], scales[1])
        if self.shape[0] * self.shape[1] <= SMALL_MATRIX:
            top = float(np.linalg.norm(a * self._dense() * b, 2)) * self._mean
            return top * (1.0 + 10.0 * np.finfo(self.dtype).eps)
        log_odds = np.log(1.648 * np.sqrt(min(self.shape)) / CERTIFICATE_FAILURE)
        best = [self.frobenius_bound * float(np.max(a) * np.max(b))]

        def enough(s: float, gain: float, k: int) -> bool:
            slack = (log_odds / (2 * k - 1)) ** 2
            if slack < 1.0:
                best[0] = min(best[0], s / np.sqrt(1.0 - slack))
            return radius * (best[0] - s) <= 0.1 * (self.theta_dot + radius * s)

        return max(self._from_random(self._scaling_for(scales), enough)[1], best[0])


#: The precision of products, by the type of the entries.
_PRECISION = {char: 10.0 * float(np.finfo(char).eps) for char in "fd"}


class Scaling:
    """What makes diag(a) G diag(b) of G, at the place of the entries."""

    __slots__ = ("a", "b", "b_column", "scales", "squared_rows")

    def __init__(self, scales: Scales, xp: Any, dtype: Any) -> None:
        self.scales = scales  # those of the ball, in this process's memory
        self.a, self.b = xp.asarray(scales[0]), xp.asarray(scales[1])
        self.b_column = self.b[:, None]
        self.squared_rows = xp.square(self.a).astype(dtype)


def complete_basis(block: Array, more: Array) -> Array:
    """Return an orthonormal basis of both, where the first columns are orthonormal already."""
    for _ in range(2):  # twice is enough
        more = more - block @ (block.T @ more)
    return namespace(block).column_stack((block, _orthonormal(more)))


def _orthonormal(block: Array) -> Array:
    """Return an orthonormal basis of the columns, leaving out what depends on the others."""
    values, vectors = np.linalg.eigh(to_host(block.T @ block))
    kept = values > 1e-6 * values[-1]
    return block @ namespace(block).asarray(vectors[:, kept] / np.sqrt(values[kept]))
