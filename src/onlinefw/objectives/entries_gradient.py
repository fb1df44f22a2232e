"""The gradient over observed entries, as an operator that is never built."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._devices import namespace, to_host
from .._threads import one_blas_thread
from .._typing import Array
from ..atoms import RankOne
from ..linalg import PairOperator, Scales, krylov_pair, ritz_pairs

if TYPE_CHECKING:
    from .entries import ObservedEntries

__all__ = ["EntriesGradient"]

#: Up to this many entries a certificate takes the exact norm of the dense gradient.
SMALL_MATRIX = 250_000
#: Krylov steps from a random start, at most, where a certificate or the end of a run depends on it.
CLOSE_STEPS = 80
#: A certificate holds with at least this probability over its random start.
CERTIFICATE_FAILURE = 1e-6


class EntriesGradient(PairOperator):
    """The gradient of :class:`ObservedEntries`, valid until the iterate moves.

    Making it renews all slopes and multiplies eight vectors, those that were best the last time,
    in the same read. The singular pairs change slowly from round to round, so this is mostly all
    that a Frank-Wolfe step needs.

    Attributes
    ----------
    theta_dot : float
        <theta, gradient>, known from the pass that renewed the slopes.
    """

    def __init__(self, objective: ObservedEntries, scales: Scales | None) -> None:
        super().__init__(objective.dtype, objective._matrix_shape)
        self._objective, self._entries, self._scales = objective, objective._entries, scales
        self._mean = 1.0 / objective.total_weight
        self._precision = 10.0 * float(np.finfo(objective.dtype).eps)
        self._v = objective._start_block()
        self._xp = namespace(self._v)
        self._scalings: dict[int, _Scaling] = {}
        scaling = self._scaling(scales)
        y, w, z_dot_g = self._entries.read(scaling.columns(self._v), scaling.squared_rows)
        self._y, self._w = y, scaling.columns(w.astype(float, copy=False))
        home = self._entries.brought_home(self._v, self._w, self._y, z_dot_g)
        self._overlap, self._gram, self._left_gram, z_dot_g = home
        self.theta_dot = z_dot_g * self._mean
        if not (np.isfinite(self.theta_dot) and np.isfinite(self._overlap).all()):
            raise OverflowError(
                f"the gradient of {objective.loss} overflows at theta: the last step went too far; "
                "use a smaller radius, or LineSearch() as the step"
            )
        self._closely = False
        self._found: tuple[Array, float, Array] | None = None

    @property
    def frobenius_bound(self) -> float:
        """A bound on the Frobenius norm (infinite where repeated entries are kept apart)."""
        return self._entries.frobenius_bound() * self._mean

    # Products -------------------------------------------------------------------------------------

    def _scaling(self, scales: Scales | None) -> _Scaling:
        key = id(scales)
        if key not in self._scalings:
            self._scalings[key] = _Scaling(scales, self._xp, self.dtype)
        return self._scalings[key]

    def normal(self, v: Array, scales: Scales | None = None) -> tuple[Array, Array]:
        """Return G v and G' G v, for the scaled G, with one read of the store."""
        scaling = self._scaling(scales)
        y, w = self._entries.normal(scaling.columns(v), scaling.squared_rows)
        return scaling.rows(y) * self._mean, scaling.columns(w * self._mean**2)

    def _matvec(self, v: Array) -> Array:
        return self._matmat(np.reshape(v, (-1, 1)))[:, 0]

    def _rmatvec(self, u: Array) -> Array:
        return self._rmatmat(np.reshape(u, (-1, 1)))[:, 0]

    def _matmat(self, v: Array) -> Array:
        """G V with one read of the store, in double precision."""
        return self._entries.forward(v) * self._mean

    def _rmatmat(self, u: Array) -> Array:
        """G' U with one read of the store, in double precision."""
        return self._entries.backward(u) * self._mean

    def toarray(self) -> Array:
        """Return the gradient as a dense array."""
        return self._entries.dense_slopes() * self._mean

    # Linear minimisation --------------------------------------------------------------------------

    def top_pair(self, radius: float, scales: Scales | None) -> tuple[Array, float, Array]:
        """Take the best pair of the block, and Krylov steps from it while they are worth a read."""
        if scales is not self._scales:
            raise ValueError("this gradient was made for a ball with other weights; make a new one")
        with one_blas_thread():
            u, s, v = self._from_random(scales) if self._closely else self._from_block(radius)
        scaling = self._scaling(scales)
        self._found = scaling.rows(u), s, scaling.columns(v)
        return self._found

    def _from_block(self, radius: float) -> tuple[Array, float, Array]:
        objective, xp = self._objective, self._xp

        def enough(s: float, gain: float, k: int = 2) -> bool:
            # A residual only says that *some* singular value is near: after a warm start the top
            # one may still be missing. What the last step has gained tells more.
            return k >= 2 and radius * gain <= objective.lmo_tol * (self.theta_dot + radius * s)

        to_left, values, to_right, before = ritz_pairs(
            self._overlap, self._w, self._precision, self._gram
        )
        if values.size == 0:  # the gradient is zero, and any vertex minimises
            return xp.eye(1, self.shape[0])[0], 0.0, xp.eye(1, self.shape[1])[0]
        u, right = self._entries.mixed(self._y, to_left[:, 0], self._w, to_right)
        self._ritz = to_left, values, right
        u, s = self._unit(self._scaling(self._scales).rows(u), to_left[:, 0], float(values[0]))
        v = self._xp.ascontiguousarray(right[:, 0])
        more = objective.lmo_steps - 1
        if more and not enough(s, s - before * self._mean):
            products = partial(self.normal, scales=self._scales)
            u, s, v = krylov_pair(products, v, steps=more, enough=enough, precision=self._precision)
            right = _orthonormal(xp.column_stack((v, right[:, 1:])))
        objective._block = right
        return u, s, v

    def _unit(self, u: Array, to_left: Array, value: float) -> tuple[Array, float]:
        """Return a left vector of length 1 (which it has to rounding), and its singular value."""
        if self._left_gram is None or self._scales is not None:
            length = float(self._xp.linalg.norm(u))
        else:
            length = float(np.sqrt(to_left @ self._left_gram @ to_left))
        return u / length, value * self._mean / length

    def more_pairs(self, k: int) -> list[tuple[Array, float, Array]]:
        """Return up to k singular pairs, the best first, from the read that found the top one."""
        to_left, values, right = self._ritz
        scaling, pairs = self._scaling(self._scales), []
        for p in range(len(values))[:k]:
            u = self._entries.mixed(self._y, to_left[:, p], self._w[:0], to_left[:, :0])[0]
            u, s = self._unit(scaling.rows(u), to_left[:, p], float(values[p]))
            pairs.append((scaling.rows(u), s, scaling.columns(right[:, p])))
        return pairs

    def look_closely(self) -> None:
        """Let the next top pair come from a random start, which misses nothing, with many steps.

        Once a warm start has lost the top singular vector, a few steps do not find it again, and
        near the optimum that looks like a gap of zero.
        """
        self._closely = True

    def _from_random(
        self,
        scales: Scales | None,
        enough: Callable[[float, float, int], bool] = lambda s, gain, k: False,
    ) -> tuple[Array, float, Array]:
        rng = np.random.default_rng([self._objective.n_observations, 1])
        start = rng.standard_normal(self.shape[1])
        start = self._xp.asarray(start / np.linalg.norm(start))
        products = partial(self.normal, scales=scales)
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
        objective = self._objective
        a, b = (1.0, 1.0) if scales is None else (scales[0][:, None], scales[1])
        if self.shape[0] * self.shape[1] <= SMALL_MATRIX:
            top = float(np.linalg.norm(a * self._entries.dense_slopes() * b, 2)) * self._mean
            return top * (1.0 + 10.0 * np.finfo(objective.dtype).eps)
        log_odds = np.log(1.648 * np.sqrt(min(self.shape)) / CERTIFICATE_FAILURE)
        best = [self.frobenius_bound * float(np.max(a) * np.max(b))]

        def enough(s: float, gain: float, k: int) -> bool:
            slack = (log_odds / (2 * k - 1)) ** 2
            if slack < 1.0:
                best[0] = min(best[0], s / np.sqrt(1.0 - slack))
            return radius * (best[0] - s) <= 0.1 * (self.theta_dot + radius * s)

        return max(self._from_random(scales, enough)[1], best[0])


class _Scaling:
    """diag(a) G diag(b) instead of G, where the entries live; nothing for ``scales=None``."""

    def __init__(self, scales: Scales | None, xp: Any, dtype: Any) -> None:
        self._scales = scales  # kept alive: it is found by its id
        self._factors = None if scales is None else [xp.asarray(scale) for scale in scales]
        self.squared_rows = (
            None if self._factors is None else xp.square(self._factors[0]).astype(dtype)
        )

    def rows(self, u: Array) -> Array:
        return u if self._factors is None else self._factors[0] * u

    def columns(self, v: Array) -> Array:
        if self._factors is None:
            return v
        b = self._factors[1]
        return (b if v.ndim == 1 else b[:, None]) * v


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
