"""F_t of factors as a function of theta alone, with biases and moods held: value, gap, optimum."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from scipy import sparse

from .._threads import blocks_for, share
from .._typing import Array
from ..iterates import LowRank
from ..linalg import krylov_pair
from ..losses import Loss
from ..native import Pointer, Struct, loops, struct
from ..native.losses import loss_code
from ..sets import WeightedTraceNormBall
from .chains import PANEL
from .lists import EntryLists

__all__ = ["HeldLoss"]

#: The ball is that of a weighted trace norm: a row that weighs n has the root of a + b n, where
#: values have a variance of 1.
RIDGE = (8.0, 0.05)
#: The certificate does not hold with this probability, over a random start.
FAILURE = 1e-6
#: How many Krylov steps it may take.
STEPS = 300

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
    """F_t(theta) = weighted mean of loss(offset_ij + theta_ij, y) over all entries in lists.

    It is made when somebody asks, reads all entries, and says what is true now.

    Parameters
    ----------
    lists : EntryLists
        The entries.
    offsets : (ndarray, ndarray)
        What is added in rows and in columns.
    loss : Loss
        Of one prediction.
    unit : float
        The standard deviation of values, 1 where a loss has none.
    one : float
        What a new observation weighs.
    """

    def __init__(
        self, lists: EntryLists, offsets: tuple[Array, Array], loss: Loss, unit: float, one: float
    ) -> None:
        self.lists, self.loss, self.unit, self.one = lists, loss, unit, one
        self.offsets = tuple(np.ascontiguousarray(x, float) for x in offsets)
        indptr, cols, values, weights = lists.by_row.some(slice(lists.shape[0]))
        self.rows = np.repeat(np.arange(lists.shape[0]), np.diff(indptr))
        self.cols = cols.astype(np.int64)
        self.values, self.weights = values.astype(float), weights.astype(float)
        self.total = float(self.weights.sum())

    def _predictions(self, theta: LowRank) -> tuple[Array, Array]:
        """Return theta at all entries, and that plus offsets."""
        z = theta.entries(self.rows, self.cols).astype(float)
        return z, z + self.offsets[0][self.rows] + self.offsets[1][self.cols]

    def value(self, theta: LowRank) -> float:
        """Return F_t(theta)."""
        losses = self.loss.value(self._predictions(theta)[1], self.values)
        return float(self.weights @ losses) / self.total

    def penalties(self) -> tuple[Array, Array]:
        """Return a + b n of all rows and all columns, in units of a new observation's weight."""
        (m1, m2), (a, b) = self.lists.shape, RIDGE
        counts = ((self.rows, m1), (self.cols, m2))
        weights = [np.bincount(at, self.weights, minlength=n) / self.one for at, n in counts]
        return a + b * weights[0], a + b * weights[1]

    def ball(self, theta: LowRank) -> WeightedTraceNormBall:
        """Return the ball with theta on its boundary."""
        rows, columns = map(np.sqrt, self.penalties())
        norm = WeightedTraceNormBall(1.0, rows, columns).norm(theta)
        return WeightedTraceNormBall(norm if norm > 0.0 else 1.0, rows, columns)

    def certificate(self, theta: LowRank) -> float:
        """Return an upper bound on how far F_t(theta) is above its minimum over that ball.

        It is <theta, G> + R sigma_max(diag(a) G diag(b)), for the gradient G. The singular value is
        bounded from above after k Krylov steps from a random start (Kuczynski and Wozniakowski
        1992): P(sigma^2 > x / (1 - e)) <= 1.648 sqrt(n) exp(-sqrt(e) (2 k - 1)) for the largest x.
        """
        if not self.total > 0.0:
            return 0.0
        inside, z = self._predictions(theta)
        slopes = self.weights * self.loss.derivative(z, self.values) / self.total
        ball = self.ball(theta)
        a, b = ball.scales
        entries = a[self.rows] * slopes * b[self.cols], (self.rows, self.cols)
        gradient = sparse.csr_array(entries, shape=self.lists.shape)
        back, radius = gradient.T.tocsr(), ball.radius
        along = float(inside @ slopes)
        log_odds = log(1.648 * sqrt(min(self.lists.shape)) / FAILURE)
        best = [float(sparse.linalg.norm(gradient))]

        def normal(v: Array) -> tuple[Array, Array]:
            image = gradient @ v
            return image, back @ image

        def enough(s: float, gain: float, k: int) -> bool:
            slack = (log_odds / (2 * k - 1)) ** 2
            if slack < 1.0:
                best[0] = min(best[0], s / sqrt(1.0 - slack))
            return radius * (best[0] - s) <= 0.1 * (along + radius * s)

        start = np.random.default_rng(0).standard_normal(self.lists.shape[1])
        steps = min(STEPS, *self.lists.shape)
        start /= np.linalg.norm(start)
        _, s, _ = krylov_pair(normal, start, steps=steps, enough=enough)
        return along + radius * max(s, best[0])

    def corrected(self, theta: LowRank, sweeps: int) -> LowRank:
        """Return theta after ridge regressions of all rows and all columns, in turn.

        With the penalties as ridges its minimum is that over a ball of their weighted trace norm.
        """
        penalties = [x * self.unit * self.one for x in self.penalties()]
        sides = balanced(theta, *map(np.sqrt, penalties))
        sides = [np.ascontiguousarray(x, self.lists.dtype) for x in sides]
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
