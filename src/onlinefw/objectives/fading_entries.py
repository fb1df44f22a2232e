"""Entries that fade with age, and rows that are forgotten."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isinf, log2

from .._typing import Array
from .._validation import check_whole
from ..iterates import LowRank
from ..past.leaving import Forgotten
from ..past.protocols import EntriesPast
from .biases import RunningBiases
from .fading import Fading
from .half_life import KEPT, Clock

__all__ = ["FadingEntries"]

#: Light entries are dropped when KEPT half-lives have passed, or at least so many observations:
#: it takes a read of all entries.
SHORTEST_STRETCH = 1024


class FadingEntries(Fading, ABC):
    """The part of :class:`~onlinefw.objectives.ObservedEntries` that lets entries fade and leave.

    Everything happens at fixed counts of observations, wherever calls and batches end.
    """

    offsets: RunningBiases | None
    _past: EntriesPast
    _clock: Clock | None

    @property
    @abstractmethod
    def _low_rank(self) -> LowRank:
        """Theta."""

    @property
    def clock(self) -> Clock | None:
        """What new observations weigh; None if nothing fades."""
        return self._clock

    @property
    def total_weight(self) -> float:
        """The total weight of the observations."""
        return self._past.counts.weight

    def observations_until(self, growth: float) -> float:
        """Return after how many observations in all the data will have grown by this factor.

        Where older observations fade, new ones weigh as many as they replace: the weight of the
        data, compared with what it was, grows by a factor of 2 in a half-life.
        """
        n = self._past.counts.observations
        clock = self._clock
        if clock is None:
            return growth * n
        more = (growth - 1.0) * self.total_weight / self.unit
        if not isinf(clock.half_life):
            more = clock.half_life * log2(1.0 + more / clock.most)
        return n + max(more, 1.0)

    # Fading ---------------------------------------------------------------------------------------

    def go_on(self, half_life: float | None) -> None:
        """Let entries fade with another half-life from now on, None: no more.

        Only where they have one. What they weigh now stays as it is.
        """
        assert self._clock is not None
        self._clock = self._clock.going_on(half_life)

    @property
    def _stretch(self) -> float:
        """After how many observations light entries are dropped again."""
        assert self._clock is not None
        return max(KEPT * self._clock.half_life, SHORTEST_STRETCH)

    def _weigh(self, w: Array) -> tuple[Array, Clock | None]:
        """Return the weights of new observations in the past, and the clock after them.

        First the past is scaled to these weights, and light entries leave it, if that is due.
        """
        old = self._clock
        if old is None:
            return w, None
        clock, factor, weights = old.after(w)
        if factor != 1.0:
            for part in (self._past, self.offsets):
                if part is not None:
                    part.rescale(factor)
            self._clock = old._replace(shift=clock.shift)
        if clock.n // self._stretch > old.n // self._stretch:
            # What weighs less than 2**-KEPT of a new one of the mean weight.
            past, counting = self._past, old.counting
            past.drop(2.0**-KEPT * past.counts.weight / max(counting, 1.0))
        return weights, clock

    # Forgetting -----------------------------------------------------------------------------------

    def forget(self, row: int) -> None:
        """Remove all that a row has brought: its entries, its bias, and its row of theta.

        The columns' side of theta stays as it is, until a learner moves it on the F_t that is
        left. ``n_observations`` still counts what came.
        """
        self.remove_entries(self.check_row(row))
        theta = self._low_rank
        left = theta.left.copy()
        left[row] = 0.0
        theta.put(left, theta.weights, theta.right)
        self._past.refresh()

    def check_row(self, row: int) -> int:
        """Return the number of a row, if there is such a row."""
        m1 = self._past.shape[0]
        if check_whole("row", row, 0) >= m1:
            raise ValueError(f"row must be one of the {m1} rows, 0 to {m1 - 1}, got {row}")
        return int(row)

    def remove_entries(self, row: int) -> Forgotten:
        """Remove a row's entries and its bias; return what they were."""
        gone = self._past.forget(row)
        if self.offsets is not None:
            self.offsets.forget(row, gone.columns, gone.weights, gone.values)
            self.refresh_offsets()
        return gone

    @abstractmethod
    def refresh_offsets(self) -> None:
        """Bring running biases up to date with everything held."""

    def value_range(self) -> tuple[float, float]:
        """Return the smallest and the largest value kept (of repeats that are summed, means)."""
        return self._past.value_range()
