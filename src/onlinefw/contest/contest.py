"""Which of several models predicts best just now, by what each predicted before it learned."""

from __future__ import annotations

import numpy as np

from .._state import check_state
from .._typing import Array, State
from ..objectives.half_life import Clock, clock_from_state

__all__ = ["Contest"]

#: An earlier model leads unless its losses exceed the best ones by so many standard deviations.
CLOSE = 1.0
#: What is lost now is compared with what was lost over so many times as long.
SLOWER = 10.0
#: A loss that is infinite counts as much as this.
LARGEST = 1e100
#: What is added up.
SUMS = ("totals", "squares", "now", "slow")


class Contest:
    """Losses of n models, faded with a half-life; of models that are close the first one leads.

    All have predicted the same observations, some of which are hard for all. So what is compared is
    the sum of the differences of two models, with the root of the sum of their squares, which is
    the standard deviation of such a sum if nothing but chance makes a difference.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.contest import Contest
    >>> contest = Contest(2, half_life=100)
    >>> contest.score(np.tile([1.0, 1.0], (50, 1)), np.ones(50))
    >>> contest.best, contest.leader
    (0, 0)
    >>> contest.score(np.tile([2.0, 1.0], (50, 1)), np.ones(50))
    >>> contest.leader, contest.behind(0, 1) > 3
    (1, True)
    """

    def __init__(self, n: int, half_life: float) -> None:
        self.n = n
        self._clock = Clock(half_life)
        self._totals, self._squares = np.zeros(n), np.zeros((n, n))
        # Weight and losses of the first model, which fade as the others do, and more slowly.
        self._slow_clock = Clock(SLOWER * half_life)
        self._now, self._slow = np.zeros(2), np.zeros(2)

    def score(self, losses: Array, w: Array) -> None:
        """Score losses of observations of weights w: a line for each, a column for each model."""
        losses = np.minimum(np.nan_to_num(losses, nan=LARGEST, posinf=LARGEST), LARGEST)
        self._clock, factor, weights = self._clock.after(w)
        weighted = weights[:, None] * losses
        apart = weighted[:, :, None] - weighted[:, None, :]
        # One after another, so that it makes no difference how many come at a time.
        self._totals = np.add.accumulate(np.vstack((factor * self._totals, weighted)))[-1]
        squares = np.concatenate(((factor**2 * self._squares)[None], apart**2))
        self._squares = np.add.accumulate(squares)[-1]
        self._now = _added(factor * self._now, weights, losses[:, 0])
        self._slow_clock, factor, weights = self._slow_clock.after(w)
        self._slow = _added(factor * self._slow, weights, losses[:, 0])

    @property
    def rises(self) -> bool:
        """Whether the first model loses more now than it did before, on average."""
        return bool(self._now[1] * self._slow[0] > self._slow[1] * self._now[0])

    @property
    def best(self) -> int:
        """The model with the smallest losses."""
        return int(np.argmin(self._totals))

    @property
    def leader(self) -> int:
        """The first model that is nearly as good as the best one."""
        best = self.best
        return next(k for k in range(self.n) if self.behind(k, best) <= CLOSE)

    def behind(self, j: int, k: int) -> float:
        """Return by how many standard deviations the losses of model j exceed those of model k."""
        apart = float(self._totals[j] - self._totals[k])
        return apart / float(np.sqrt(self._squares[j, k])) if apart else 0.0

    def copy_to(self, j: int, k: int) -> None:
        """Let model j have the losses of model k, of which it is a copy now."""
        self._totals[j] = self._totals[k]
        self._squares[j], self._squares[:, j] = self._squares[k], self._squares[:, k]
        self._squares[j, j] = 0.0

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers."""
        sums = {name: getattr(self, f"_{name}").copy() for name in SUMS}
        slow = self._slow_clock.state_dict()
        return {"clock": self._clock.state_dict(), "slow_clock": slow, **sums}

    @classmethod
    def from_state(cls, state: State, n: int) -> Contest:
        """Make the contest of n models that ``state_dict`` described."""
        check_state(state, "clock", "slow_clock", *SUMS)
        clock, slow = clock_from_state(state["clock"]), clock_from_state(state["slow_clock"])
        sums = {name: np.array(state[name], float) for name in SUMS}
        shapes = [one.shape for one in sums.values()]
        finite = all(np.isfinite(one).all() for one in sums.values())
        if clock is None or slow is None or shapes != [(n,), (n, n), (2,), (2,)] or not finite:
            raise ValueError(f"this is not the state of a contest of {n} models")
        contest = cls(n, clock.half_life)
        contest._clock, contest._slow_clock = clock, slow
        vars(contest).update({f"_{name}": one for name, one in sums.items()})
        return contest


def _added(sums: Array, weights: Array, losses: Array) -> Array:
    """Return weight and loss with those of more observations, added one after another."""
    more = np.column_stack((weights, weights * losses))
    return np.add.accumulate(np.vstack((sums, more)))[-1]
