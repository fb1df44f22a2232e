"""Running global, row and column means of a stream of matrix entries."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from .._typing import Array, State

if TYPE_CHECKING:
    from .entries import ObservedEntries

__all__ = ["RunningBiases"]

#: The means are brought up to date with the whole past when it has grown by this factor.
REFRESH_GROWTH = 1.1
#: Which biases a refresh solves for in turn, with a read of the store each. Never both from the
#: same read: what rows and columns can both explain would be counted twice.
REFRESH_TURNS = ("columns", "rows", "columns")


class RunningBiases:
    """value ~ mean + row bias + column bias, each bias shrunk towards 0.

    A bias is the sum of its entries' residuals over (their number + shrinkage). New observations
    change the biases of their own rows and columns at once. Those of others follow when the past
    has grown by a tenth, with a few reads of the store.

    Parameters
    ----------
    shrinkage : float
        As if every row and column had been seen this many times more, with residual 0.
    joint : bool
        Take the means of what theta leaves over, so that biases and theta are fitted together,
        instead of the means of the values themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.objectives import RunningBiases
    >>> biases = RunningBiases(shrinkage=0.0)
    >>> biases.update(np.array([0, 0]), np.array([0, 1]), np.array([1.0, 3.0]), np.ones(2))
    >>> biases.mean, biases.columns
    (2.0, array([-1.,  1.]))
    """

    def __init__(self, shrinkage: float = 3.0, *, joint: bool = False) -> None:
        is_number = isinstance(shrinkage, Real)
        if not (is_number and 0.0 <= shrinkage < np.inf):
            raise ValueError(f"RunningBiases needs a shrinkage of at least 0, got {shrinkage!r}")
        self.shrinkage, self.joint = float(shrinkage), bool(joint)
        self.weight = self.total = 0.0
        self._due = 0.0
        # Per row and per column: weight, sum of values, sum of what else explains them.
        self._row_sums, self._col_sums = np.zeros((3, 0)), np.zeros((3, 0))
        self.rows, self.columns = np.zeros(0), np.zeros(0)

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return self.total / self.weight if self.weight else 0.0

    def update(
        self, rows: Array, cols: Array, y: Array, w: Array, theta: Array | None = None
    ) -> None:
        """Add observations, with theta's predictions of them."""
        self._grow(int(rows.max()) + 1, int(cols.max()) + 1)
        self.weight += float(w.sum())
        self.total += float(w @ y)
        z = theta if self.joint and theta is not None else 0.0
        _add(self._col_sums, cols, w, w * y, w * (self.rows[rows] + z))
        self.columns = self._shrunk(self._col_sums)
        _add(self._row_sums, rows, w, w * y, w * (self.columns[cols] + z))
        self.rows = self._shrunk(self._row_sums)

    def refresh_if_due(self, objective: ObservedEntries) -> None:
        """Solve for the means of everything that the objective holds, if it has grown enough."""
        if self.weight >= self._due:
            self._due = REFRESH_GROWTH * self.weight
            self.refresh(objective)

    def refresh(self, objective: ObservedEntries) -> None:
        """Solve for the means of everything that the objective holds."""
        self._grow(*(objective.shape or ()))
        for side in REFRESH_TURNS:
            row_sums, col_sums = objective.weighted_sums(
                self.rows, self.columns, with_theta=self.joint
            )
            if side == "rows":
                self._row_sums[2] = row_sums
                self.rows = self._shrunk(self._row_sums)
            else:
                self._col_sums[2] = col_sums
                self.columns = self._shrunk(self._col_sums)

    def _shrunk(self, sums: Array) -> Array:
        weight, total, others = sums
        residual = total - weight * self.mean - others
        return np.divide(residual, weight + self.shrinkage, where=weight > 0, out=0.0 * weight)

    def _grow(self, m1: int, m2: int) -> None:
        self._row_sums = _grown(self._row_sums, m1)
        self._col_sums = _grown(self._col_sums, m2)
        self.rows, self.columns = _grown(self.rows, m1), _grown(self.columns, m2)

    def offsets(self, shape: tuple[int, int]) -> tuple[Array, Array]:
        """Return what to add in every row (with the mean) and in every column."""
        self._grow(*shape)
        return self.rows + self.mean, self.columns

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers."""
        return {
            "shrinkage": self.shrinkage,
            "joint": self.joint,
            "weight": self.weight,
            "total": self.total,
            "due": self._due,
            "row_sums": self._row_sums.copy(),
            "col_sums": self._col_sums.copy(),
            "rows": self.rows.copy(),
            "columns": self.columns.copy(),
        }

    @classmethod
    def from_state(cls, state: State) -> RunningBiases:
        """Make the biases that ``state_dict`` described."""
        biases = cls(state["shrinkage"], joint=state["joint"])
        biases.weight, biases.total = float(state["weight"]), float(state["total"])
        biases._due = float(state["due"])
        biases._row_sums, biases._col_sums = (
            np.array(state[name]) for name in ("row_sums", "col_sums")
        )
        biases.rows, biases.columns = np.array(state["rows"]), np.array(state["columns"])
        return biases

    def __repr__(self) -> str:
        return f"RunningBiases(shrinkage={self.shrinkage:g}, joint={self.joint})"


def _add(sums: Array, at: Array, *values: Array) -> None:
    for total, value in zip(sums, values, strict=True):
        total += np.bincount(at, value, total.size)


def _grown(array: Array, size: int) -> Array:
    missing = size - array.shape[-1]
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)]) if missing > 0 else array
