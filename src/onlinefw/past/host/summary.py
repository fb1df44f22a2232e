"""What a summary keeps of all rows: three numbers for each feature, and how rows change them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
from scipy import sparse

from ..._state import check_state
from ..._typing import Array, Shape, State
from ...kernels import published, summary, tournament
from ...kernels.tournament import BEND, SLOPE, THETA
from ...losses import Gaussian, Loss
from ..place import Place
from .row_loss import compiled

__all__ = ["HostSummary"]

#: Dense rows are given their column numbers for so many values at a time.
PIECE = 2**20
#: A saved theta may exceed its ball by this share of the radius.
ROUNDING = 1e-6
#: Names of the numbers beside the table, in their order.
NAMES = (
    "intercept",
    "intercept_slope",
    "intercept_bend",
    "scale",
    "weight",
    "slack",
    "value",
    "rows",
    "shrink",
    "atom",
    "move",
    "kept",
    "intercept_before",
)


class HostSummary:
    """Theta, the estimated gradient and the diagonal of an estimated Hessian.

    Parameters
    ----------
    loss : Loss
        A built-in one: others have no compiled loops.
    n : int
        The number of features.
    fit_intercept : bool
        Whether predictions have an intercept, outside the ball.
    estimator : "diagonal", "recursive" or "momentum"
        How the gradient is estimated: see :class:`~onlinefw.objectives.SummaryObjective`.
    half_life : float, optional
        After how many rows a row counts half as much in a "diagonal" estimate.
    """

    #: There is one model on a summary, and nothing that other models could share.
    n_models, past, clock = 1, None, None
    place = Place()

    def __init__(
        self,
        loss: Loss,
        n: int,
        fit_intercept: bool,
        estimator: str,
        half_life: float | None = None,
    ) -> None:
        self.half_life = half_life
        self.shape: Shape = (n,)
        self.fit_intercept, self.estimator = fit_intercept, estimator
        # A Gaussian has the slopes of a square, but values that are y^2 / 2 less.
        self._loss = (*compiled(loss), 0.5 if isinstance(loss, Gaussian) else 0.0)
        self._starts = tournament.levels(n)
        self._table = np.zeros((n, 3))
        self._toward = np.zeros(self._starts[-1])
        self._away = np.full(self._starts[-1], -inf)
        self._numbers = np.zeros(summary.N_NUMBERS)
        self._numbers[[summary.SCALE, summary.SHRINK, summary.KEPT]] = 1.0
        self._numbers[summary.ATOM] = -1.0
        self._radius: float | None = None
        self._theta: Array | None = None

    # What is known --------------------------------------------------------------------------------

    @property
    def theta(self) -> Array:
        """The current point, read-only; a new array whenever rows have come."""
        if self._theta is None:
            theta = self._table[:, THETA] * self._numbers[summary.SHRINK]
            theta.flags.writeable = False
            self._theta = theta
        return self._theta

    @property
    def gradient(self) -> Array:
        """The estimated gradient of F."""
        return self._table[:, SLOPE] * self._numbers[summary.SCALE]

    @property
    def curvature(self) -> Array:
        """The estimated diagonal of the Hessian of F."""
        return self._table[:, BEND] * self._numbers[summary.SCALE]

    @property
    def intercept(self) -> float:
        """The intercept; 0 without one."""
        return float(self._numbers[summary.INTERCEPT])

    @property
    def value(self) -> float:
        """The mean of the losses that were paid, with the weights of the gradient."""
        return float(self._numbers[summary.VALUE])

    @property
    def total_weight(self) -> float:
        """The weight of all rows that have come."""
        return float(self._numbers[summary.WEIGHT])

    @property
    def n_rows(self) -> int:
        """How many rows have come."""
        return int(self._numbers[summary.ROWS])

    def go_on(self, half_life: float | None) -> None:
        """Let estimates fade with another half-life from now on."""
        self.half_life = half_life

    @property
    def _fade(self) -> float:
        """What is left of the total weight after a row, so that estimates fade by half-lives.

        They forget by the power FORGET of it.
        """
        return 1.0 if self.half_life is None else 2.0 ** (-1.0 / (self.half_life * summary.FORGET))

    @property
    def nbytes(self) -> int:
        """The memory of all that is kept."""
        kept = (self._table, self._toward, self._away, self._numbers)
        return sum(array.nbytes for array in kept)

    def agrees(self) -> bool:
        """Whether all is counted: a compiled loop cannot stop half-way."""
        return True

    # Rows and moves -------------------------------------------------------------------------------

    def play(self, X: Any, y: Array, w: Array, radius: float) -> tuple[float, Array]:
        """Learn rows one after another on the l1 ball; a radius of 0 leaves theta as it is.

        Returns the sum of the weighted losses, and what was predicted, each row before it came.
        """
        numbers, paid = self._numbers, 0.0
        if self._radius != radius:
            numbers[summary.SLACK] = max(radius - float(np.abs(self.theta).sum()), 0.0)
            self._radius = radius
        self._theta = None
        z = np.empty(y.size)
        for part, indptr, indices, data in _pieces(X):
            rows = (indptr, indices, data, y[part], w[part], self._loss, radius, self.fit_intercept)
            kept = (self._toward, self._away, self._starts, numbers, z[part])
            if self.estimator == "diagonal":
                paid += summary.play_rows(*rows, self._fade, self._table, *kept)
            else:
                recursive = self.estimator == "recursive"
                paid += published.play_published(*rows, recursive, self._table, *kept)
        return paid, z

    def put(self, point: Array) -> None:
        """Put theta at a point; the slopes move along their curvatures."""
        change = point - self.theta
        self._table[:, SLOPE] += self._table[:, BEND] * change
        self._table[:, THETA] = point
        self._numbers[[summary.SHRINK, summary.KEPT]] = 1.0
        self._numbers[summary.MOVE] = 0.0
        self._radius = self._theta = None
        self._fill()

    def _fill(self) -> None:
        tournament.fill(self._table, self._toward, self._starts, False)
        tournament.fill(self._table, self._away, self._starts, True)

    def dot(self, direction: Array) -> float:
        """Return <theta, direction>."""
        return float(self.theta @ direction)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return the table and the numbers; the bounds are made from them."""
        names = ("theta", "slope", "bend")
        columns = {name: self._table[:, k].copy() for k, name in enumerate(names)}
        numbers = dict(zip(NAMES, self._numbers.tolist(), strict=True))
        return {"kind": "summary", **columns, "numbers": numbers, "radius": self._radius}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described, or refuse what cannot be a summary."""
        check_state(state, "theta", "slope", "bend", "numbers", "radius")
        check_state(state["numbers"], *NAMES)
        columns = [np.asarray(state[name]) for name in ("theta", "slope", "bend")]
        if any(one.shape != self.shape or one.dtype != float for one in columns):
            raise ValueError(f"a summary of {self.shape[0]} features has other columns")
        numbers = [state["numbers"][name] for name in NAMES]
        if not all(isinstance(one, float) for one in numbers):
            raise ValueError("the numbers of a summary must be numbers")
        table, values = np.column_stack(columns), np.array(numbers)
        if not (np.isfinite(table).all() and np.isfinite(values).all()):
            raise ValueError("a summary has numbers that are not finite")
        radius = state["radius"]
        _check_numbers(values, table, radius)
        self._table, self._numbers = np.ascontiguousarray(table), values
        self._radius, self._theta = radius, None
        self._fill()


def _check_numbers(numbers: Array, table: Array, radius: Any) -> None:
    """Refuse numbers that no rows lead to."""
    named = dict(zip(NAMES, numbers.tolist(), strict=True))
    scales = [named[name] for name in ("scale", "shrink", "kept")]
    if not summary.SMALL <= min(scales) <= max(scales) <= 1.0:
        raise ValueError("a summary has a scale that is not between 0 and 1")
    counts = min(named[name] for name in ("weight", "rows", "slack", "intercept_bend"))
    if counts < 0.0 or table[:, BEND].min() < 0.0:
        raise ValueError("a summary has a weight or a curvature below 0")
    if radius is None or radius == 0.0:
        return
    if not isinstance(radius, float) or not 0.0 < radius < inf:
        raise ValueError(f"a summary cannot have the radius {radius!r:.40}")
    size = float(np.abs(table[:, THETA]).sum()) * named["shrink"]
    if size > radius * (1.0 + ROUNDING) or named["slack"] > radius * (1.0 + ROUNDING):
        raise ValueError(f"theta has the norm {size:g} in a ball of radius {radius:g}")


def _pieces(X: Any) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Return rows as compressed ones, dense rows some at a time."""
    if sparse.issparse(X):
        X = X.tocsr()
        yield slice(0, X.shape[0]), X.indptr, X.indices, X.data
        return
    n, width = X.shape
    most = max(1, PIECE // width)
    columns = np.tile(np.arange(width, dtype=np.int32), min(n, most))
    for start in range(0, n, most):
        part = slice(start, min(start + most, n))
        ends = np.arange(0, (part.stop - start) * width + 1, width, dtype=np.int32)
        yield part, ends, columns, np.ascontiguousarray(X[part]).reshape(-1)
