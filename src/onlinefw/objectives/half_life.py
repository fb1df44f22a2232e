"""A past that fades: an observation weighs half as much after every half-life.

F_t is then a mean with weights 2**(-age / half_life), ages counted in observations. No old weight
is changed for that: new observations get growing weights instead, and their common factor cancels
in a mean. Now and then all weights are divided by the same power of two, which is exact, so that
none overflows. When that happens makes no difference to any result.
"""

from __future__ import annotations

from math import inf, log
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._state import check_state, number
from .._typing import Array, State

__all__ = ["KEPT", "Clock", "check_half_life", "clock_from_state", "new_clock", "powers"]

#: Observations are dropped after so many half-lives. They weigh less than a thousandth of a new one
#: then, all of them together less than a thousandth of F_t.
KEPT = 10
#: Longer half-lives are refused: KEPT of them are to be a number, too.
LONGEST = 1e18
#: Weights are divided by this power of two (an even one, as roots are taken) whenever a new one has
#: reached it. Single precision holds its square.
BLOCK = 32


def check_half_life(half_life: Any, otherwise: str = "") -> float | None:
    """Return the half-life as a number, or None: nothing is forgotten.

    ``otherwise`` says what else it could have been.
    """
    if half_life is None:
        return None
    is_number = isinstance(half_life, Real) and not isinstance(half_life, (bool, np.bool_))
    if is_number and LONGEST < half_life < inf:
        raise ValueError(
            f"half_life must be at most {LONGEST:.0e}, or None (nothing is forgotten), "
            f"got {half_life!s:.20}"
        )
    if not is_number or not 1.0 <= float(half_life) < inf:
        raise ValueError(
            "half_life must be a number of observations, at least 1, or None (nothing is "
            f"forgotten){otherwise}, got {half_life!r}"
        )
    return float(half_life)


class Clock(NamedTuple):
    """How many observations have come, and what a new one weighs. A new clock replaces the old.

    Observations of weight 0 do not count: they make nothing older.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.objectives.half_life import Clock
    >>> clock, factor, weights = Clock(half_life=2.0).after(np.ones(4))
    >>> (weights[-1] / weights).round(3)  # the newest one weighs most
    array([2.828, 2.   , 1.414, 1.   ])
    """

    half_life: float  # infinite: what comes from now on does not fade
    n: int = 0  # observations that have come
    shift: int = 0  # all weights have been divided by 2**shift
    # Since when the half-life is this one; what the newest observation weighed then (a power of
    # two, before the shift), and as how many like it all of them counted.
    since: int = 0
    start: float = 0.0
    counted: float = 0.0

    def exponent(self, n: Any) -> Any:
        """Return log2 of the weight, before the shift, of observation number n."""
        return self.start + (n - self.since) / self.half_life

    def going_on(self, half_life: float | None) -> Clock:
        """Return the clock that goes on with another half-life; weights stay as they are."""
        h = inf if half_life is None else half_life
        return Clock(h, self.n, self.shift, self.n, float(self.exponent(self.n)), self.counting)

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
        shift = BLOCK * int(self.exponent(last) // BLOCK)
        # The smallest normal number is enough for what is that old, and computes no slower.
        factor = 2.0 ** max(self.shift - shift, -1000)
        return self._replace(n=last, shift=shift), factor, w * powers(self.exponent(n), shift)

    @property
    def unit(self) -> float:
        """What the newest observation weighs, if its own weight is 1."""
        return float(powers(np.array([self.exponent(self.n)]), self.shift)[0])

    @property
    def counting(self) -> float:
        """As how many observations like the newest one all of them count."""
        new = self.n - self.since
        if self.half_life == inf:
            return self.counted + new
        faded = np.expm1(-new * np.log(2.0) / self.half_life)
        fresh = float(faded / np.expm1(-np.log(2.0) / self.half_life))
        return self.counted * 2.0 ** (-new / self.half_life) + fresh

    @property
    def most(self) -> float:
        """As how many observations a past that is very long counts."""
        return self.half_life / log(2.0)

    @property
    def in_effect(self) -> float:
        """The share of all observations so far that counts: the sum of 2**(-age / half_life) / n.

        1 at first, and about 1.44 half-lives over n when many half-lives have passed.
        """
        if self.n <= 1:
            return 1.0
        return self.counting / self.n

    def state_dict(self) -> State:
        """Return all fields; the half-life is None if it is infinite."""
        half_life = None if self.half_life == inf else self.half_life
        return {**self._asdict(), "half_life": half_life}


def powers(x: Array, shift: int) -> Array:
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
    check_state(state, "half_life", "n", "shift")
    half_life = check_half_life(state["half_life"])
    later = {"since": 0, "start": 0.0, "counted": 0.0, **state}  # older states do not tell
    clock = Clock(
        inf if half_life is None else half_life,
        int(state["n"]),
        int(state["shift"]),
        int(later["since"]),
        number(later["start"], "the first weight of a half-life"),
        number(later["counted"], "the weight before a half-life"),
    )
    past = 0 <= clock.since <= clock.n and min(clock.start, clock.counted) >= 0.0
    if not past or clock.shift != BLOCK * int(clock.exponent(clock.n) // BLOCK):
        raise ValueError(f"the half-life of the state is impossible: {state}")
    return clock
