"""Models of a matrix whose entries fade, are dropped, or are forgotten with their row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import log
from typing import Any

import numpy as np

from .._typing import Array
from ..kernels import local_models as kernels
from ..kernels.local_events import EVENTS
from .leaving import Forgotten

__all__ = ["LeavingModels"]


class LeavingModels(ABC):
    """The part of :class:`~onlinefw.past.mixed_models.MixedModels` that learns with less."""

    models: kernels.Models
    moments: Array
    turns: Array
    shape: tuple[int, int]

    @abstractmethod
    def _lists(self) -> tuple[Any, Any]:
        """Return rows and columns with their ``length``: how many observations each has."""

    @abstractmethod
    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        """Solve the regressions of these rows, then of these columns, on all that they have."""

    def fade(self, half_life: float) -> None:
        """Let errors fade, too, and solve everything anew while about a half-life passes.

        If the half-life was another before, the events that it let count are those that came.
        """
        before = self.moments[kernels.LASTING]
        self.turns[EVENTS] = int(min(self.turns[EVENTS], before))
        self.moments[kernels.LASTING] = max(half_life / log(2.0), 2.0)

    def rescale(self, factor: float) -> None:
        """Multiply everything that is weighted with a power of two, as the past has done."""
        self.moments[[kernels.WEIGHT, kernels.SQUARES, kernels.NEWEST]] *= factor
        for sums in (self.models.row_sums, self.models.column_sums):
            sums.equations[: int(sums.used[0])] *= factor

    def entries_left(self) -> None:
        """Note that the past has dropped entries: rows and columns without any are as new."""
        sides = [np.arange(n) for n in self.shape]
        self._left(*sides)
        self._clear(*sides)

    def forget(self, row: int, gone: Forgotten, low: float, high: float) -> None:
        """Be without a row, whose entries have left the past, and solve the columns it had.

        Long ones, of which it was a thousandth, are solved with their next entry, or in turn.

        ``low`` and ``high`` are the smallest and the largest value of the others.
        """
        rows, columns = np.array([row]), np.unique(gone.columns)
        self._left(rows, columns)
        self.models.columns.memory[columns] = 0.0
        self._clear(rows, columns)
        lengths = self._lists()[1].length
        self._note_less(gone, low, high, bool(lengths.any()))
        self.solve(rows[:0], self._solved_now(columns[lengths[columns] > 0]))

    def _solved_now(self, columns: Array) -> Array:
        """Return those of the columns that can be solved without much delay."""
        return columns

    @abstractmethod
    def _left(self, rows: Array, columns: Array) -> None:
        """Note that entries have left the lists of some rows and columns."""

    def _clear(self, rows: Array, columns: Array) -> None:
        """Let those rows and columns that have no entries be as if they never had."""
        sides = (self.models.rows, rows), (self.models.columns, columns)
        for lists, (side, which) in zip(self._lists(), sides, strict=True):
            empty = which[lists.length[which] == 0]
            for array in side:
                array[empty] = 0.0

    def _note_less(self, gone: Forgotten, low: float, high: float, others: bool) -> None:
        """Take values out of the moments; without ``others`` there are none left."""
        moments, weight = self.moments, float(gone.weights.sum())
        if weight == 0.0:
            return
        if not others:
            moments[:5] = kernels.new_moments()[:5]
            return
        had = moments[kernels.WEIGHT]
        left = max(had - weight, np.finfo(float).eps * had)
        mean = float(gone.weights @ gone.values) / weight
        spread = float(gone.weights @ np.square(gone.values - mean))
        apart = mean - moments[kernels.MEAN]
        squares = moments[kernels.SQUARES] - spread - weight * had / left * apart**2
        mean = moments[kernels.MEAN] - apart * weight / left
        moments[:5] = left, mean, max(squares, 0.0), low, high
