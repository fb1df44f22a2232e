"""F_t of factors as a function of theta alone, with biases and moods held: value, gap, optimum."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from scipy import sparse

from .._threads import blocks_for, share
from .._typing import Array
from ..iterates import LowRank
from ..linalg import krylov_pair, vector_norm
from ..losses import Loss, loss_code
from ..native import Pointer, Struct, loops, struct
from ..sets import WeightedTraceNormBall
from .chains import PANEL, Chains
from .clicks import Clicks

__all__ = ["HeldLoss"]

#: The certificate does not hold with this probability, over a random start.
FAILURE = 1e-6
#: How many Krylov steps it may take.
STEPS = 300
#: Up to so many entries of a matrix all of its singular values are found instead.
SMALL = 250_000

RidgeRows = struct(
    "RidgeRows",
    begin=int,
    until=int,
    rank=int,
    lists=Struct,
    own=Pointer("real"),
    others=Pointer("real", read=True),
    offsets=Pointer(np.float64),
    other_offsets=Pointer(np.float64),
    penalty=Pointer(np.float64),
    kind=int,
    parameter=float,
    work=Pointer(np.float64),
    panel=Pointer("real"),
)


class HeldLoss:
    """F_t(theta) = weighted mean of loss(offset_ij + theta_ij, y) over all entries.

    Those are the entries in lists; in a model of clicks all others as well, as zeros. It is made
    when somebody asks, reads all entries, and says what is true now.

    Parameters
    ----------
    model : Chains or Clicks
        It has the entries, offsets, the weight of an entry that was not observed, and the penalties
        of rows and columns.
    loss : Loss
        Of one prediction; where others count as zeros, ``Square()``.
    """

    def __init__(self, model: Chains | Clicks, loss: Loss) -> None:
        self.model, self.lists, self.loss = model, model.lists, loss
        m1, m2 = self.lists.shape
        self.offsets = tuple(np.ascontiguousarray(x, float) for x in model.offsets())
        indptr, cols, values, weights = self.lists.by_row.some(slice(m1))
        self.rows = np.repeat(np.arange(m1), np.diff(indptr))
        self.cols = cols.astype(np.int64)
        self.values, self.weights = values.astype(float), weights.astype(float)
        self.zero = model.zero
        self.total = float(self.weights.sum()) + self.zero * (m1 * m2 - self.values.size)

    def _predictions(self, theta: LowRank) -> tuple[Array, Array]:
        """Return theta at all entries in lists, and that plus offsets."""
        z = theta.entries(self.rows, self.cols).astype(float)
        return z, z + self.offsets[0][self.rows] + self.offsets[1][self.cols]

    def value(self, theta: LowRank) -> float:
        """Return F_t(theta)."""
        inside, z = self._predictions(theta)
        total = float(self.weights @ self.loss.value(z, self.values))
        if self.zero:  # all entries as zeros, without those that were observed
            total += 0.5 * self.zero * (Product(theta).square() - float(inside @ inside))
        return total / self.total

    def penalties(self) -> tuple[Array, Array]:
        """Return what keeps the factors of rows and of columns small."""
        rows, columns = (
            np.bincount(at, self.weights, minlength=n)
            for at, n in zip((self.rows, self.cols), self.lists.shape, strict=True)
        )
        return self.model.penalties(rows, columns)

    def ball(self, theta: LowRank) -> WeightedTraceNormBall:
        """Return the ball of the norm that belongs to the penalties, with theta on its boundary."""
        one = self.model.newest  # weights grow with a half-life, and the ball does not
        rows, columns = (np.sqrt(x / one) for x in self.penalties())
        norm = WeightedTraceNormBall(1.0, rows, columns).norm(theta)
        return WeightedTraceNormBall(norm if norm > 0.0 else 1.0, rows, columns)

    def certificate(self, theta: LowRank) -> float:
        """Return an upper bound on how far F_t(theta) is above its minimum over that ball.

        It is <theta, G> + R sigma_max(diag(a) G diag(b)), for the gradient G: a sparse matrix, and
        where all other entries count a multiple of theta. Of a large matrix the singular value is
        bounded from above after k Krylov steps from a random start (Kuczynski and Wozniakowski
        1992): P(sigma^2 > x / (1 - e)) <= 1.648 sqrt(n) exp(-sqrt(e) (2 k - 1)) for the largest x.
        """
        if not self.total > 0.0:
            return 0.0
        inside, z = self._predictions(theta)
        ball, zero = self.ball(theta), self.zero / self.total
        slopes = self.weights * self.loss.derivative(z, self.values) / self.total - zero * inside
        along = float(inside @ slopes) + (zero * Product(theta).square() if zero else 0.0)
        a, b = ball.scales
        entries = a[self.rows] * slopes * b[self.cols], (self.rows, self.cols)
        gradient: Any = sparse.csr_array(entries, shape=self.lists.shape)
        others = Product(theta, a, b, zero) if zero else None
        return along + ball.radius * largest_singular(gradient, others, along, ball.radius)

    def corrected(self, theta: LowRank, sweeps: int) -> LowRank:
        """Return theta after ridge regressions of all rows and all columns, in turn.

        With the penalties as ridges its minimum is that over a ball of their weighted trace norm.
        """
        assert isinstance(self.model, Chains)
        penalties = [x * self.model.unit for x in self.penalties()]
        both = balanced(theta, *map(np.sqrt, penalties))
        sides = [np.ascontiguousarray(x, self.lists.dtype) for x in both]
        for _ in range(sweeps):
            self._solve(self.lists.by_row, sides[0], sides[1], self.offsets, penalties[0])
            self._solve(self.lists.by_column, sides[1], sides[0], self.offsets[::-1], penalties[1])
        new = LowRank(self.lists.shape, sides[0].shape[1], dtype=self.lists.dtype)
        new.hold(sides[0], np.ones(sides[0].shape[1]), sides[1])
        return new

    def _solve(self, lists: Any, own: Array, others: Array, offsets: Any, penalty: Array) -> None:
        rank, code = own.shape[1], loss_code(self.loss)
        assert code is not None
        width = -(-(rank + 2) // 8) * 8

        def solve_blocks(first: int, last: int, blocks: Array) -> None:
            call: Any = RidgeRows(
                self.lists.dtype, begin=int(blocks[first]), until=int(blocks[last]), rank=rank,
                lists=lists.struct, own=own, others=others, offsets=offsets[0],
                other_offsets=offsets[1], penalty=penalty, kind=code[0], parameter=code[1],
                work=np.zeros((2, width, width)), panel=np.zeros((2, PANEL, width), own.dtype),
            )  # fmt: skip
            loops.of("solve_ridge", own.dtype)(call.pointer)

        share(solve_blocks, blocks_for(len(own), len(self.values) * width))


def balanced(theta: LowRank, rows: Array, columns: Array) -> tuple[Array, Array]:
    """Return factors of theta of which neither is the larger, in weighted norms."""
    left = rows[:, None] * (theta.left.astype(float) * theta.weights)
    q1, r1 = np.linalg.qr(left)
    q2, r2 = np.linalg.qr(columns[:, None] * theta.right.astype(float))
    u, s, vt = np.linalg.svd(r1 @ r2.T)
    k, root = s.size, np.sqrt(s)
    first, second = (q1 @ u[:, :k]) * root, (q2 @ vt.T[:, :k]) * root
    return first / rows[:, None], second / columns[:, None]


class Product:
    """scale diag(a) theta diag(b), of which only the factors are kept."""

    def __init__(
        self, theta: LowRank, a: Array | None = None, b: Array | None = None, scale: float = 1.0
    ) -> None:
        left, right = theta.left.astype(float) * (scale * theta.weights), theta.right.astype(float)
        self.left = left if a is None else a[:, None] * left
        self.right = right if b is None else b[:, None] * right

    def square(self) -> float:
        """Return the sum of the squares of all entries."""
        both = (self.left.T @ self.left) * (self.right.T @ self.right)
        return max(float(both.sum()), 0.0)


def largest_singular(gradient: Any, others: Product | None, along: float, radius: float) -> float:
    """Return a bound on the largest singular value of a sparse matrix plus a product."""
    if gradient.shape[0] * gradient.shape[1] <= SMALL:
        dense = gradient.toarray()
        if others is not None:
            dense += others.left @ others.right.T
        return float(np.linalg.norm(dense, 2)) * (1.0 + 10.0 * float(np.finfo(float).eps))
    back, n = gradient.T.tocsr(), min(gradient.shape)
    log_odds = log(1.648 * sqrt(n) / FAILURE)
    best = [vector_norm(gradient.data)]
    if others is not None:
        best[0] += sqrt(others.square())

    def normal(v: Array) -> tuple[Array, Array]:
        image = gradient @ v
        if others is None:
            return image, back @ image
        image += others.left @ (others.right.T @ v)
        return image, back @ image + others.right @ (others.left.T @ image)

    def enough(s: float, gain: float, k: int) -> bool:
        slack = (log_odds / (2 * k - 1)) ** 2
        if slack < 1.0:
            best[0] = min(best[0], s / sqrt(1.0 - slack))
        return radius * (best[0] - s) <= 0.1 * (along + radius * s)

    start = np.random.default_rng(0).standard_normal(gradient.shape[1])
    start /= np.linalg.norm(start)
    _, s, _ = krylov_pair(normal, start, steps=min(STEPS, n), enough=enough)
    return max(s, best[0])
