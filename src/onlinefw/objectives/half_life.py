"""A past that fades: an observation weighs half as much after every half-life.

F_t is then a mean with weights 2**(-age / half_life), ages counted in observations. No old weight
is changed for that: new observations get growing weights instead, and their common factor cancels
in a mean. Now and then all weights are divided by the same power of two, which is exact, so that
none overflows. When that happens makes no difference to any result.
"""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._state import check_state
from .._typing import Array, State

__all__ = ["KEPT", "Clock", "check_half_life", "clock_from_state", "new_clock"]

#: Observations are dropped after so many half-lives. They weigh less than a thousandth of a new one
#: then, all of them together less than a thousandth of F_t.
KEPT = 10
#: Weights are divided by this power of two (an even one, as roots are taken) whenever a new one has
#: reached it. Single precision holds its square.
BLOCK = 32


def check_half_life(half_life: Any) -> float | None:
    """Return the half-life as a number, or None: nothing is forgotten."""
    if half_life is None:
        return None
    is_number = isinstance(half_life, Real) and not isinstance(half_life, (bool, np.bool_))
    if not is_number or not 1.0 <= float(half_life) or not isfinite(half_life):
        raise ValueError(
            "half_life must be a number of observations, at least 1, or None (nothing is "
            f"forgotten), got {half_life!r}"
        )
    return float(half_life)


class Clock(NamedTuple):
    """How many observations have come, and what a new one weighs. A new clock replaces the old.

    Observations of weight 0 do not count: they make nothing older.

    Examples
    --------
    >>> clock, factor, weights = Clock(half_life=2.0).after(np.ones(4))
    >>> (weights[-1] / weights).round(3).tolist()  # the newest one weighs most
    [2.828, 2.0, 1.414, 1.0]
    """

    half_life: float
    n: int = 0  # observations that have come
    shift: int = 0  # all weights have been divided by 2**shift

    def after(self, w: Array) -> tuple[Clock, float, Array]:
        """Weigh new observations, whose own weights are w.

        Returns
        -------
        clock : Clock
            The clock after them.
        factor : float
            What everything that was weighted before is to be multiplied with, before they are
            added: a power of two, mostly 1.
        weights : ndarray
            Theirs.
        """
        n = self.n + np.cumsum(w > 0.0)
        last = int(n[-1]) if n.size else self.n
        shift = BLOCK * int(last / self.half_life // BLOCK)
        # The smallest normal number is enough for what is that old, and computes no slower.
        factor = 2.0 ** max(self.shift - shift, -1000)
        return Clock(self.half_life, last, shift), factor, w * _powers(n / self.half_life, shift)

    @property
    def unit(self) -> float:
        """What the newest observation weighs, if its own weight is 1."""
        return float(_powers(np.array([self.n / self.half_life]), self.shift)[0])

    def state_dict(self) -> State:
        """Return half-life, count and shift."""
        return self._asdict()


def _powers(x: Array, shift: int) -> Array:
    """Return 2**(x - shift), with the same digits whatever the shift."""
    whole = np.floor(x)
    return np.ldexp(np.exp2(x - whole), np.maximum(whole - shift, -1000).astype(np.int32))


def new_clock(half_life: Any) -> Clock | None:
    """Return a clock that has counted nothing; None if nothing is forgotten."""
    checked = check_half_life(half_life)
    return None if checked is None else Clock(checked)


def clock_from_state(state: State | None) -> Clock | None:
    """Return the clock that ``state_dict`` described; None of None."""
    if state is None:
        return None
    check_state(state, *Clock._fields)
    half_life, n, shift = check_half_life(state["half_life"]), int(state["n"]), int(state["shift"])
    if half_life is None or n < 0 or shift != BLOCK * int(n / half_life // BLOCK):
        raise ValueError(f"the half-life of the state is impossible: {state}")
    return Clock(half_life, n, shift)
