"""Models of a matrix that learn side by side from single entries, and their mixture."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from .._typing import Array, State
from ..kernels import local_models as kernels
from ..kernels.local_events import (
    COLUMN,
    EVENTS,
    LAST_COLUMN,
    LAST_ROW,
    ROW,
    new_turns,
    predict_entries,
    predict_events,
    remembered,
    turns_between,
)
from .leaving_models import LeavingModels
from .mixed_offsets import MixedOffsets
from .models_state import MIXTURE, check_models_state, sums_state

__all__ = ["NO_WEIGHTS", "MixedModels"]

#: What compiled loops get if all observations weigh 1.
NO_WEIGHTS = np.empty(0)


class MixedModels(LeavingModels):
    """Factors, offsets and memories of models with different ridges, in this process's memory.

    Subclasses know where the entries are, and so how regressions of them are solved.

    Parameters
    ----------
    dtype : dtype
        float32 or float64, of factors and offsets.
    rank : int
        Of each model.
    ridges : array of shape (models, 3)
        For a row or column of weight n the penalty of its factors is a + b n, in standard units;
        the third number is that of its bias.
    biased : bool
        Whether rows and columns have biases.
    clipped : bool
        Whether predictions are clipped to the range of the values.
    loss : (int, float) or None
        The kernels' kind and parameter of the loss; None for squares.
    """

    #: How many sums a long list has: one for each model.
    _sums: int | None = None
    #: The rank is checked again after so many observations; None if it stays as it is.
    _check_at: int | None = None

    def __init__(
        self,
        dtype: np.dtype,
        rank: int,
        ridges: Any,
        biased: bool,
        clipped: bool,
        loss: tuple[int, float] | None = None,
    ) -> None:
        self.dtype, self.biased, self.clipped = dtype, bool(biased), bool(clipped)
        self.n_observations = 0
        self.moments, self.turns = kernels.new_moments(), new_turns()
        ridges = np.array(ridges, float)
        count = len(ridges)
        self._width = kernels.width_of(rank)
        self.shape = 0, 0
        sides = self._empty_side(0, count), self._empty_side(0, count)
        sums = [kernels.new_sums(0, 0, self._sums or count, self._width) for _ in sides]
        mixture = kernels.new_mixture(count)
        self.models = kernels.Models(loss, rank, *sides, sums[0], sums[1], ridges, mixture)
        self._work = kernels.new_workspace(self.models)

    def _empty_side(self, n: int, models: int) -> kernels.Side:
        factors = np.zeros((n, models * self._width), self.dtype)
        return kernels.Side(factors, np.zeros((n, models), self.dtype), np.zeros(n, self.dtype))

    # Growing --------------------------------------------------------------------------------------

    def grow(self, m1: int, m2: int) -> None:
        """Let there be m1 rows and m2 columns at least."""
        m1, m2 = max(m1, self.shape[0]), max(m2, self.shape[1])
        models = self.models
        rows, columns = self._longer(models.rows, m1), self._longer(models.columns, m2)
        grown = models._replace(
            rows=rows,
            columns=columns,
            row_sums=self._more_sums(models.row_sums, len(rows.factors)),
            column_sums=self._more_sums(models.column_sums, len(columns.factors)),
        )
        vars(self).update(models=grown, shape=(m1, m2))  # all at once

    def remember(self) -> dict[str, Any]:
        """Return what ``go_back`` needs to undo growth."""
        return {"models": self.models, "shape": self.shape}

    def go_back(self, memory: dict[str, Any]) -> None:
        """Undo growth, if nothing was learned since."""
        vars(self).update(memory)

    def _longer(self, side: kernels.Side, n: int) -> kernels.Side:
        """Return a side with space for n rows or columns: itself, or a copy with more."""
        old = len(side.factors)
        if n <= old:
            return side
        grown = self._empty_side(max(n, old + old // 2), len(self.models.ridges))
        for new, array in zip(grown, side, strict=True):
            new[:old] = array
        return grown

    def _more_sums(self, sums: kernels.Sums, n: int, capacity: int | None = None) -> kernels.Sums:
        """Return the sums of n lists at least, with memory for so many long ones."""
        old, had = sums.number.size, len(sums.added)
        capacity = had if capacity is None else capacity
        if n <= old and capacity <= had:
            return sums
        count = self._sums or len(self.models.ridges)
        more = kernels.new_sums(max(n, old), capacity, count, self._width)
        more.number[:old] = sums.number
        more.equations[:had], more.added[:had] = sums.equations, sums.added
        more.used[:] = sums.used
        return more

    # Learning -------------------------------------------------------------------------------------

    @abstractmethod
    def learn(
        self,
        rows: Array,
        cols: Array,
        y: Array,
        w: Array | None = None,
        units: Array | None = None,
        *,
        solving: bool = True,
    ) -> Array:
        """Learn entries one after another; return what was predicted for each before.

        ``units`` is what an observation weighs when each comes, where older ones fade. Without
        ``solving`` all are predicted with what was learned before the first. They are added to the
        past, and no regression is solved.
        """

    @abstractmethod
    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        """Solve the regressions of these rows, then of these columns, on all that they have.

        ``anew`` makes the running sums of long lists from the beginning, where there are some.
        """

    @abstractmethod
    def sweep(self) -> None:
        """Solve the regressions of all rows, then of all columns."""

    @abstractmethod
    def _lists(self) -> tuple[Any, Any]:
        """Return rows and columns with their ``length``: how many observations each has."""

    def _predict_and_note(
        self, rows: Array, cols: Array, y: Array, w: Array | None, units: Array | None
    ) -> Array:
        """Return predictions of entries; moments, mixture and memories learn from the errors."""
        out, w = np.empty(len(y)), NO_WEIGHTS if w is None else w
        predict_events(
            rows, cols, y, w, NO_WEIGHTS if units is None else units, self._lists()[0],
            self.models, self.moments, self.biased, self.clipped, self._work, out,
        )  # fmt: skip
        return out

    def in_turn(self, events: int) -> tuple[Array, Array]:
        """Return the rows and columns whose turn came with the last so many events."""
        came = int(self.turns[EVENTS])
        both = []
        for at, last in ((ROW, LAST_ROW), (COLUMN, LAST_COLUMN)):
            n = int(self.turns[last]) + 1
            most = float(self.moments[kernels.LASTING])
            steps = turns_between(came - events, came, n - 1, most)
            both.append((self.turns[at] + 1 + np.arange(min(steps, n))) % max(n, 1))
            if steps:
                self.turns[at] = (self.turns[at] + steps) % n
        return both[0], both[1]

    # Asking ---------------------------------------------------------------------------------------

    @property
    def weights(self) -> Array:
        """The weights of the models in the mixture."""
        return self.models.mixture.weights[: len(self.models.ridges)]

    @property
    def memory_weights(self) -> tuple[float, float]:
        """What the memories of a row and of a column are multiplied by in predictions."""
        row, column = self.models.mixture.weights[-2:].tolist()
        return row, column

    @property
    def memory_gain(self) -> float:
        """About how much of the variance of the values the memories explain beyond the models."""
        weights, spread, _ = self.models.mixture
        # In least squares so much is added to the squared errors, in standard units, if some
        # weights are 0 and the others are found again.
        added = weights[-2:] @ np.linalg.lstsq(spread[-2:, -2:], weights[-2:])[0]
        count = remembered(self.n_observations, float(self.moments[kernels.LASTING]))
        gain = float(added) / max(1.0, count)
        return min(max(gain, 0.0), 1.0)

    @property
    def mean(self) -> float:
        """The prediction that belongs to the mean of the values; 0 without biases."""
        return float(kernels.centre(self.models.loss, self.moments, self.biased))

    @property
    def sigma(self) -> float:
        """What factors are measured in: in a regression, the standard deviation of the values."""
        return float(kernels.unit(self.models.loss, self.moments))

    def factors(self) -> tuple[Array, Array, Array]:
        """Return both factors of the mixture, not copied, and the weights of their columns."""
        (m1, m2), weights = self.shape, np.zeros((len(self.models.ridges), self._width))
        weights[:, : self.models.rank] = self.sigma * self.weights[:, None]
        rows, columns = self.models.rows.factors[:m1], self.models.columns.factors[:m2]
        return rows, weights.reshape(-1), columns

    @abstractmethod
    def offsets(self) -> tuple[Any, Any]:
        """Return what the mixture adds in rows, with the mean, and in columns, for the past."""

    def all_offsets(self) -> tuple[Array, Array]:
        """Return the offsets of all rows and of all columns as arrays."""
        sides = zip(self._mixed_offsets(), self.shape, strict=True)
        rows, columns = (offsets.all(n, self.dtype) for offsets, n in sides)
        return rows, columns

    def _mixed_offsets(self) -> tuple[MixedOffsets, MixedOffsets]:
        models, w = self.models, self.weights.copy()
        by_row, by_column = self._lists()
        return (
            MixedOffsets(models.rows.offsets, w, self.mean, by_row.length),
            MixedOffsets(models.columns.offsets, w, 0.0, by_column.length),
        )

    def memories(self) -> tuple[Array, Array]:
        """Return what the memories add in every row and in every column."""
        (m1, m2), (of_row, of_column) = self.shape, self.memory_weights
        models = self.models
        return of_row * models.rows.memory[:m1], of_column * models.columns.memory[:m2]

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return what the mixture predicts for entries of the matrix, with the memories."""
        models, lengths = self.models, self._lists()[0].length
        sides = models.rows, models.columns
        z = predict_entries(
            models.rank, rows, cols, lengths, *sides, models.mixture.weights, self.mean, self.sigma
        )
        highest = kernels.highest(models.loss)
        return z if highest == np.inf else np.minimum(z, highest)

    def penalties(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """Return the ridges of all rows and of all columns, which have these weights."""
        return self.ridges_of(rows), self.ridges_of(columns)

    def ridges_of(self, n: Array) -> Array:
        """Return the mean ridge of rows or columns of these weights in the mixture.

        It is in units of what a new observation weighs.
        """
        a, b, _ = np.abs(self.weights) @ self.models.ridges / np.abs(self.weights).sum()
        return a + b * (n / self.moments[kernels.NEWEST])

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything as plain arrays."""
        models, mixture = self.models, self.models.mixture
        state: State = {
            "shape": list(self.shape),
            "rank": models.rank,
            "check_at": self._check_at,
            "loss": None if models.loss is None else list(models.loss),
            "biased": self.biased,
            "clipped": self.clipped,
            "dtype": self.dtype.name,
            "n_observations": self.n_observations,
            "moments": self.moments.copy(),
            "turns": self.turns.copy(),
            "ridges": models.ridges.copy(),
            "mixture": {name: getattr(mixture, name).copy() for name in MIXTURE},
        }
        sides = (models.rows, models.row_sums), (models.columns, models.column_sums)
        for name, (side, sums), n in zip(("rows", "columns"), sides, self.shape, strict=True):
            arrays = {part: getattr(side, part)[:n].copy() for part in side._fields}
            state[name] = {**arrays, **sums_state(sums, n)}
        return state

    @classmethod
    @abstractmethod
    def _without_entries(cls, dtype: np.dtype, *options: Any) -> Self:
        """Make models that have nothing to learn with yet."""

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the models that ``state_dict`` described, or say what is wrong with them.

        They cannot learn before they are given their entries.
        """
        check_models_state(state)
        loss = None if state["loss"] is None else (int(state["loss"][0]), float(state["loss"][1]))
        options = state["rank"], state["ridges"], state["biased"], state["clipped"], loss
        models = cls._without_entries(np.dtype(state["dtype"]), *options)
        models.grow(*state["shape"])
        sums = models.models.row_sums, models.models.column_sums
        full = []
        for name, its in zip(("rows", "columns"), sums, strict=True):
            side = getattr(models.models, name)
            for part in side._fields:
                getattr(side, part)[:] = state[name][part]
            added, numbers = state[name]["added"], state[name]["place"]
            more = models._more_sums(its, 0, len(added))
            more.number[:], more.used[0] = numbers, len(added)
            more.equations[:], more.added[:] = state[name]["equations"], added
            full.append(more)
        models.models = models.models._replace(row_sums=full[0], column_sums=full[1])
        mixture = models.models.mixture
        for part in MIXTURE:
            getattr(mixture, part)[:] = state["mixture"][part]
        moments = state["moments"]
        models.moments[: moments.size] = moments  # those of earlier versions do not fade
        models.turns[:] = state["turns"]
        models.n_observations, check_at = int(state["n_observations"]), state["check_at"]
        models._check_at = None if check_at is None else int(check_at)
        return models

    def _check_same(self, *given: Any) -> None:
        """Refuse entries of another shape, type or number."""
        of_models = self.shape, self.dtype, self.n_observations
        if of_models != given:
            raise ValueError(
                "local corrections of a {} matrix ({}, {} observations) do not fit one of {} "
                "({}, {})".format(*of_models, *given)
            )
