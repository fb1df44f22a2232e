"""A random sample of rows whose weights fade, of which the newest are kept most often."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._growing import GrowingArray
from .._state import check_state
from .._typing import Array, State
from .half_life import Clock, powers

__all__ = ["FadingSample"]


class FadingSample:
    """Priority sampling [1]_ of the rows held, at most ``size`` of them.

    A row that comes when the clock has counted n observations gets the priority d / u, where
    d = 2**(n / half_life) and u is random, uniform in (0, 1]. The rows of the largest priorities
    stay; tau is the largest priority of all that have left. Given tau, a row is kept with
    probability min(1, d / tau), and counts max(d, tau) times its own weight: in expectation that
    is d times its weight, as if all rows were kept. So a sample much shorter than the half-life has
    rows that count alike, most of them new, and one that is longer has all new rows, faded.

    Only logarithms (to the base 2) are kept, so that nothing overflows.

    References
    ----------
    .. [1] N. Duffield, C. Lund and M. Thorup, "Priority sampling for estimation of arbitrary subset
       sums", Journal of the ACM 54(6), 2007.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._tau = -inf
        self._own = GrowingArray()  # the weight of every row held, as it came
        self._came = GrowingArray()  # log2 d
        self._priority = GrowingArray()  # log2 (d / u); -inf for rows that have left

    def draw(self, before: Clock, w: Array, rng: np.random.Generator) -> None:
        """Add rows of weights w, which come when the clock shows ``before``; drop the lowest."""
        came = before.exponent(before.n + np.cumsum(w > 0.0))
        priority = np.full(w.size, -inf)
        counts = w > 0.0
        u = 1.0 - rng.random(np.count_nonzero(counts))
        priority[counts] = came[counts] - np.log2(u)
        self._own, self._came = self._own.extended(w), self._came.extended(came)
        self._priority = self._priority.extended(priority)
        priority = self._priority.data
        # Those below tau would be the lowest of a full sample. It has free places only where rows
        # were forgotten by their ids, and these are not for them: they would count too much.
        priority[priority <= self._tau] = -inf
        alive = np.flatnonzero(priority > -inf)
        if alive.size > self.size:
            some = priority[alive]
            lowest = alive[np.argpartition(some, alive.size - self.size)[: alive.size - self.size]]
            self._tau = max(self._tau, float(priority[lowest].max()))
            priority[lowest] = -inf

    def weights(self, shift: int) -> Array:
        """Return what every row held counts, divided by 2**shift; 0 for rows that have left."""
        counts = self._priority.data > -inf
        powered = powers(np.maximum(self._came.data, self._tau), shift)
        return np.where(counts, self._own.data * powered, 0.0)

    def came_with(self, shift: int) -> Array:
        """Return what every row held weighs without the sampling, divided by 2**shift."""
        return self._own.data * powers(self._came.data, shift)

    def keep(self, mask: Array) -> None:
        """Remove the rows where ``mask`` is False."""
        self._own, self._came = self._own.kept(mask), self._came.kept(mask)
        self._priority = self._priority.kept(mask)

    def state_dict(self) -> State:
        """Return everything but the size."""
        columns = {"own": self._own, "came": self._came, "priority": self._priority}
        return {"tau": self._tau, **{name: one.data.copy() for name, one in columns.items()}}

    def load_state(self, state: State, rows: int) -> None:
        """Become what ``state_dict`` described, of so many rows."""
        check_state(state, "tau", "own", "came", "priority")
        columns: list[Any] = [np.array(state[name], float) for name in ("own", "came", "priority")]
        own, came, priority = columns
        fit = all(one.shape == (rows,) for one in columns) and np.isfinite(own + came).all()
        tau = float(state["tau"])
        if not fit or (own < 0.0).any() or np.isnan(priority).any() or np.isnan(tau):
            raise ValueError("the sample of the state does not fit its rows")
        self._tau = tau
        self._own, self._came, self._priority = map(GrowingArray.holding, columns)
