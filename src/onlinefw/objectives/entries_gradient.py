"""The gradient over observed entries, as an operator that is never built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._threads import one_blas_thread
from .._typing import Array
from ..atoms import RankOne
from ..kernels import entries as kernels
from ..linalg import PairOperator, krylov_pair

if TYPE_CHECKING:
    from .entries import ObservedEntries

__all__ = ["EntriesGradient"]

#: Up to this many entries a certificate takes the exact norm of the dense gradient.
SMALL_MATRIX = 250_000
#: A certificate holds with at least this probability over its random start.
CERTIFICATE_FAILURE = 1e-6


class EntriesGradient(PairOperator):
    """The gradient of :class:`ObservedEntries`, valid until the iterate moves.

    Attributes
    ----------
    theta_dot : float
        <theta, gradient>, known from the pass that renewed the slopes.
    frobenius_bound : float
        A bound on the Frobenius norm (infinite where repeated entries are kept apart).
    """

    def __init__(self, objective: ObservedEntries, start: Array) -> None:
        super().__init__(objective.dtype, objective._matrix_shape)
        self._objective, self._start = objective, start
        self._scale = 1.0 / objective.total_weight
        self._precision = 10.0 * float(np.finfo(objective.dtype).eps)
        y, w, z_dot_g, frobenius = objective._read_all(self._by_rank(start))
        self._first = self._scaled(y, w)
        self.theta_dot = z_dot_g * self._scale
        self.frobenius_bound = frobenius * self._scale
        self._found: tuple[Array, float, Array] | None = None

    def _by_rank(self, v: Array) -> Array:
        out = np.empty(v.size, self._objective.dtype)
        out[self._objective._rank] = v
        return out

    def _scaled(self, y: Array, w: Array) -> tuple[Array, Array]:
        return y * self._scale, w[self._objective._rank] * self._scale**2

    def normal(self, v: Array) -> tuple[Array, Array]:
        """Return G v and G' (G v) with one read of the store."""
        return self._scaled(*self._objective._normal(self._by_rank(v)))

    def _matvec(self, v: Array) -> Array:
        return self.normal(np.asarray(v).reshape(-1))[0]

    def _rmatvec(self, u: Array) -> Array:
        objective = self._objective
        blocks = objective._blocks()
        y = np.asarray(u, objective.dtype).reshape(-1)
        acc = np.zeros((len(blocks) - 1, self.shape[1]), objective.dtype)
        for store in (objective._bulk, objective._recent):
            kernels.backward(blocks, *store.products, y, acc)
        w = acc.sum(axis=0)
        row, col = objective._tail_row.data, objective._tail_col.data
        kernels.tail_backward(row, col, objective._tail_g.data, y, w)
        objective.reads += 1
        return w[objective._rank] * self._scale

    def top_pair(self, radius: float) -> tuple[Array, float, Array]:
        """Take warm-started Krylov steps until more would not change the step by much."""
        tol = self._objective.lmo_tol

        def enough(s: float, gain: float, k: int) -> bool:
            # A residual only says that *some* singular value is near: after a warm start the top
            # one may still be missing. What the last step has gained tells more.
            return k >= 3 and radius * gain <= tol * (self.theta_dot + radius * s)

        with one_blas_thread():
            self._found = krylov_pair(
                self.normal,
                self._start,
                first=self._first,
                steps=self._objective.lmo_steps,
                enough=enough,
                precision=self._precision,
            )
        return self._found

    def score(self, atom: RankOne) -> float:
        """Return <atom, gradient>, at no cost for the pair that was found."""
        if self._found is not None and atom.u is self._found[0]:
            return atom.scale * self._found[1]
        return atom.dot(self)

    def norm_bound(self, radius: float) -> float:
        """Bound the top singular value from above, with probability at least 1 - 1e-6.

        After k Krylov steps from a random start the largest Ritz value x of G'G satisfies
        P(lambda_1 > x / (1 - e)) <= 1.648 sqrt(n) exp(-sqrt(e) (2 k - 1)) (Kuczynski and
        Wozniakowski 1992); the Frobenius norm is taken where that is smaller.
        """
        objective = self._objective
        n = min(self.shape)
        if self.shape[0] * self.shape[1] <= SMALL_MATRIX:
            top = float(np.linalg.norm(objective._dense_slopes(), 2)) * self._scale
            return top * (1.0 + 10.0 * np.finfo(objective.dtype).eps)
        log_odds = np.log(1.648 * np.sqrt(n) / CERTIFICATE_FAILURE)
        best = [self.frobenius_bound]

        def enough(s: float, gain: float, k: int) -> bool:
            slack = (log_odds / (2 * k - 1)) ** 2
            if slack < 1.0:
                best[0] = min(best[0], s / np.sqrt(1.0 - slack))
            return radius * (best[0] - s) <= 0.1 * (self.theta_dot + radius * s)

        rng = np.random.default_rng([objective.n_observations, 1])
        start = rng.standard_normal(self.shape[1])
        start /= np.linalg.norm(start)
        with one_blas_thread():
            s = krylov_pair(self.normal, start, steps=80, enough=enough, precision=self._precision)[
                1
            ]
        return max(best[0], s)
