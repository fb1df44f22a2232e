"""Running global, row and column means of a stream of matrix entries."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

import numpy as np

from .._state import check_state
from .._typing import Array, State

__all__ = ["Biases", "RunningBiases"]

#: The means are brought up to date with the whole past when it has grown by this factor.
REFRESH_GROWTH = 1.1
#: Which biases a refresh solves for in turn, with a read of the store each. Never both from the
#: same read: what rows and columns can both explain would be counted twice.
REFRESH_TURNS = ("columns", "rows", "columns")
#: ``sums(rows, columns, with_theta)`` returns the sums of w columns[j] in every row, and of
#: w rows[i] in every column; with theta's predictions added to both, if asked for.
WeightedSums = Callable[[Array, Array, bool], tuple[Array, Array]]


class Biases(NamedTuple):
    """The mean, and how far rows and columns are from it."""

    mean: float
    rows: Array
    columns: Array


class _Held(NamedTuple):
    """All that changes; always replaced as a whole, in one assignment.

    The sums have three rows: weight, sum of values, and sum of what else explains them.
    """

    weight: float
    total: float
    due: float
    unit: float  # what a new observation weighs, where older ones fade
    row_sums: Array
    col_sums: Array
    rows: Array
    columns: Array


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
        sums = np.zeros((3, 0))
        self._held = _Held(0.0, 0.0, 0.0, 1.0, sums, sums, np.zeros(0), np.zeros(0))

    @property
    def mean(self) -> float:
        """The mean of all values."""
        held = self._held
        return held.total / held.weight if held.weight else 0.0

    @property
    def rows(self) -> Array:
        """The bias of every row."""
        return self._held.rows

    @property
    def columns(self) -> Array:
        """The bias of every column."""
        return self._held.columns

    def update(
        self,
        rows: Array,
        cols: Array,
        y: Array,
        w: Array,
        theta: Array | None = None,
        shape: tuple[int, int] | None = None,
        unit: float = 1.0,
    ) -> None:
        """Add observations, with theta's predictions of them; they are within a shape, if given.

        ``unit`` is what a new observation weighs: where older ones fade, w grows, and everything
        is scaled back with ``rescale`` now and then.
        """
        from ..kernels.biases import add_observations

        held = self._grown(*(shape or (int(rows.max()) + 1, int(cols.max()) + 1)))
        z = theta if self.joint and theta is not None else np.zeros(0, y.dtype)
        weight, total = held.weight + float(w.sum()), held.total + float(w @ y)
        mean = total / weight if weight else 0.0
        sums = held.row_sums, held.col_sums, held.rows
        found = add_observations(rows, cols, y, w, z, *sums, mean, self.shrinkage * unit)
        self._held = _Held(weight, total, held.due, unit, *found)

    def rescale(self, factor: float) -> None:
        """Multiply all weights with a power of two; means stay as they are."""
        held = self._held
        self._held = held._replace(
            weight=factor * held.weight,
            total=factor * held.total,
            due=factor * held.due,
            unit=factor * held.unit,
            row_sums=factor * held.row_sums,
            col_sums=factor * held.col_sums,
        )

    def forget(self, row: int, columns: Array, weights: Array, values: Array) -> None:
        """Take out what a row has given; ``refresh`` then solves for the means of the rest.

        All biases begin anew: those of others have been found with its own.
        """
        held = self._held
        row_sums, col_sums = held.row_sums.copy(), held.col_sums.copy()
        row_sums[:, row] = 0.0
        np.subtract.at(col_sums[0], columns, weights)
        np.subtract.at(col_sums[1], columns, weights * values)
        # What is left of a column that nobody else has seen is rounding.
        alone = columns[col_sums[0, columns] < 1e-6 * held.col_sums[0, columns]]
        col_sums[:, alone] = 0.0
        others = row_sums[0].any()
        weight = held.weight - float(weights.sum()) if others else 0.0
        total = held.total - float(weights @ values) if others else 0.0
        numbers = weight, total, held.due, held.unit
        zeros = np.zeros_like(held.rows), np.zeros_like(held.columns)
        self._held = _Held(*numbers, row_sums, col_sums, *zeros)

    def refresh_if_due(self, sums: WeightedSums, shape: tuple[int, int]) -> None:
        """Solve for the means of everything that a past holds, if it has grown enough."""
        if self._held.weight >= self._held.due:
            self.refresh(sums, shape)
            self._held = self._held._replace(due=REFRESH_GROWTH * self._held.weight)

    def refresh(self, sums: WeightedSums, shape: tuple[int, int]) -> None:
        """Solve for the means of everything that a past of this shape holds, from its sums."""
        from ..kernels.biases import shrunken_means

        held, mean = self._grown(*shape), self.mean
        row_sums, col_sums = held.row_sums.copy(), held.col_sums.copy()
        rows, columns, shrinkage = held.rows, held.columns, self.shrinkage * held.unit
        for side in REFRESH_TURNS:
            row_sum, col_sum = sums(rows, columns, self.joint)
            if side == "rows":
                row_sums[2] = row_sum
                rows = shrunken_means(row_sums, mean, shrinkage)
            else:
                col_sums[2] = col_sum
                columns = shrunken_means(col_sums, mean, shrinkage)
        self._held = _Held(*held[:4], row_sums, col_sums, rows, columns)

    def _grown(self, m1: int, m2: int) -> _Held:
        """Return what is held, with at least m1 rows and m2 columns."""
        held = self._held
        if m1 <= held.rows.size and m2 <= held.columns.size:
            return held
        row_sums, col_sums = _longer(held.row_sums, m1), _longer(held.col_sums, m2)
        rows, columns = _longer(held.rows, m1), _longer(held.columns, m2)
        return _Held(*held[:4], row_sums, col_sums, rows, columns)

    def offsets(self, shape: tuple[int, int]) -> tuple[Array, Array]:
        """Return what to add in every row (with the mean) and in every column."""
        held = self._grown(*shape)
        mean = held.total / held.weight if held.weight else 0.0
        return held.rows + mean, held.columns

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers."""
        arrays = {name: np.array(getattr(self._held, name)) for name in _Held._fields[4:]}
        numbers = {name: getattr(self._held, name) for name in _Held._fields[:4]}
        return {"shrinkage": self.shrinkage, "joint": self.joint, **numbers, **arrays}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        state = {"unit": 1.0, **state}  # earlier versions did not let observations fade
        check_state(state, "shrinkage", "joint", *_Held._fields)
        arrays = [np.array(state[name], float) for name in _Held._fields[4:]]
        row_sums, col_sums, rows, columns = arrays
        whole = row_sums.shape == (3, rows.size) and col_sums.shape == (3, columns.size)
        if not whole or rows.ndim != 1 or columns.ndim != 1:
            raise ValueError(
                f"the state of the biases is damaged: sums {row_sums.shape} and {col_sums.shape} "
                f"for {rows.size} rows and {columns.size} columns"
            )
        if not all(np.isfinite(array).all() for array in arrays):
            raise ValueError("the state of the biases is damaged: it has NaN or infinity")
        self.shrinkage, self.joint = float(state["shrinkage"]), bool(state["joint"])
        weight, total, due, unit = (float(state[name]) for name in _Held._fields[:4])
        self._held = _Held(weight, total, due, unit, row_sums, col_sums, rows, columns)

    @classmethod
    def from_state(cls, state: State) -> RunningBiases:
        """Make the biases that ``state_dict`` described."""
        biases = cls()
        biases.load_state(state)
        return biases

    def __repr__(self) -> str:
        return f"RunningBiases(shrinkage={self.shrinkage:g}, joint={self.joint})"


def _longer(array: Array, size: int) -> Array:
    missing = size - array.shape[-1]
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)]) if missing > 0 else array
