"""Play a learner on a stream and record what it does; only its own work is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._typing import Array
from ..algorithms import Learner
from .experiment import Advance

__all__ = ["BatchWatch", "Trace", "batches", "late_minimum", "log_rounds", "play"]

#: Measures something about the theta that is given.
Look = Callable[[Any], float]


@dataclass(frozen=True)
class Trace:
    """What was measured of theta_t at some rounds t, and what every round returned."""

    #: The rounds at which theta_t was looked at, before round t was played.
    t: Array
    #: When theta_t was ready: the learner's own seconds in the rounds before t.
    seconds: Array
    #: What was measured of theta_t.
    looks: dict[str, Array]
    #: From here on of every round, in order.
    gap: Array
    fw_gap: Array
    n_steps: Array
    round_seconds: Array
    #: As it ended, for what is to be seen of it at the end only.
    learner: Learner

    def gap_at(self) -> Array:
        """Return g_t^FW at the rounds t that were looked at."""
        return self.fw_gap[self.t - 1]

    def round_milliseconds(self, parts: int = 10) -> list[float]:
        """Return the median milliseconds of a round in each of some equal parts of the run."""
        return [1e3 * float(np.median(part)) for part in np.array_split(self.round_seconds, parts)]


def log_rounds(T: int, number: int = 60, first: int = 2) -> Array:
    """Return about ``number`` rounds from ``first`` to T, evenly spaced in log t."""
    return np.unique(np.geomspace(min(first, T), T, number).round().astype(int))


def batches(X: Any, y: Any, size: int) -> Iterator[tuple[Any, Any]]:
    """Yield the rows in order, ``size`` at a time."""
    for start in range(0, X.shape[0], size):
        yield X[start : start + size], y[start : start + size]


def play(
    make: Callable[[], Learner],
    stream: Callable[[], Iterable[tuple[Any, Any]]],
    T: int,
    looks: Mapping[str, Look],
    advance: Advance | None = None,
    *,
    at: Array | None = None,
    warm_up: int = 3,
) -> Trace:
    """Stream T rounds through a learner and look at theta_t now and then, which is not timed.

    ``make`` is called twice: a first learner plays ``warm_up`` rounds, so that compiling is not
    timed. ``stream`` starts the same stream of (X, y) every time. ``at`` are the rounds t at which
    to look; about 60, evenly in log t, by default.
    """
    if warm_up:
        first = make()
        for X, y in islice(stream(), warm_up):
            first.observe(X, y)
    learner = make()
    at = log_rounds(T) if at is None else at
    wanted = set(at.tolist())
    seen: dict[str, list[float]] = {name: [] for name in looks}
    ready, rounds, spent = [], [], np.empty(T)
    clock = 0.0
    for t, (X, y) in enumerate(islice(stream(), T), start=1):
        if t in wanted:
            ready.append(clock)
            for name, look in looks.items():
                seen[name].append(float(look(learner.theta)))
        started = perf_counter()
        rounds.append(learner.observe(X, y))
        spent[t - 1] = perf_counter() - started
        clock += spent[t - 1]
        if advance is not None:
            advance(t)
    if len(rounds) < T:
        raise ValueError(f"the stream ended after {len(rounds)} of {T} rounds")
    return Trace(
        t=at,
        seconds=np.array(ready),
        looks={name: np.array(values) for name, values in seen.items()},
        gap=np.array([round_.gap for round_ in rounds]),
        fw_gap=np.array([round_.fw_gap for round_ in rounds]),
        n_steps=np.array([round_.n_steps for round_ in rounds]),
        round_seconds=spent,
        learner=learner,
    )


class BatchWatch:
    """A callback for batch solvers: looks at theta after every iteration, untimed.

    The clock starts when the watch is made, so make it before the objective observes its data.
    """

    def __init__(self, looks: Mapping[str, Look], advance: Advance | None = None):
        self._looks, self._advance = looks, advance
        self._started, self._paused = perf_counter(), 0.0
        self.seconds: list[float] = []
        self.looks: dict[str, list[float]] = {name: [] for name in looks}

    def __call__(self, result: OptimizeResult) -> None:
        """Look at what the solver has."""
        entered = perf_counter()
        self.seconds.append(entered - self._started - self._paused)
        for name, look in self._looks.items():
            self.looks[name].append(float(look(result.theta)))
        if self._advance is not None:
            self._advance(int(result.nit))
        self._paused += perf_counter() - entered


def late_minimum(gap: Array, T: Array) -> Array:
    """Return the smallest gap of the rounds T/2 + 1 to T, for each (even) T."""
    return np.array([np.min(gap[int(end) // 2 : int(end)]) for end in np.atleast_1d(T)])
