"""What happened in the rounds, in bounded memory."""

from __future__ import annotations

from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from .._state import check_state
from .._typing import Array, State
from .._validation import check_whole
from ..algorithms import Round

__all__ = ["History"]

COLUMNS = ("t", "loss", "gap", "gap_upper", "step_size", "kind", "reads", "seconds", "half_life")


class History:
    """Rounds as columns; thinned evenly in log t when there are more than ``size``.

    With a size of 0 nothing is kept.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._rounds: list[tuple] = []
        self._elapsed = 0.0
        self._since: float | None = None
        #: The half-life in use, of rounds from now on; infinite where nothing is forgotten.
        self.half_life = inf

    def start(self) -> None:
        """Let the clock run: only time spent learning is counted."""
        self._since = perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds of learning up to the last round."""
        return self._elapsed

    def append(self, one: Round, t: int | None = None, loss: float | None = None) -> None:
        """Add a round, with the seconds of learning up to its end.

        ``t`` and ``loss`` are noted instead of the round's own, if given.
        """
        if self.size == 0:
            return
        if self._since is not None:
            now = perf_counter()
            self._elapsed, self._since = self._elapsed + now - self._since, now
        self._rounds.append(
            (
                one.t if t is None else t,
                one.loss if loss is None else loss,
                one.gap,
                one.gap_upper,
                one.step_size,
                one.kind,
                one.reads,
                self._elapsed,
                self.half_life,
            )
        )
        if len(self._rounds) > self.size:
            self._thin()

    def _thin(self) -> None:
        """Keep half, evenly spaced in log t, with the first and the last."""
        n = len(self._rounds)
        log_t = np.log([round_[0] for round_ in self._rounds])
        wanted = np.linspace(log_t[0], log_t[-1], max(2, self.size // 2))
        kept = np.unique(np.searchsorted(log_t, wanted - 1e-12).clip(0, n - 1))
        self._rounds = [self._rounds[k] for k in kept]

    def as_dict(self) -> dict[str, Array]:
        """Return a dict of arrays of equal length."""
        columns = zip(*self._rounds, strict=True) if self._rounds else [()] * len(COLUMNS)
        return {name: np.array(c) for name, c in zip(COLUMNS, columns, strict=True)}

    def state_dict(self) -> State:
        """Return the rounds as columns, without the clock that runs."""
        return {"size": self.size, "elapsed": self._elapsed, "columns": self.as_dict()}

    @classmethod
    def of(cls, model: Any) -> History:
        """Make an empty one, of the size that an estimator asks for."""
        return cls(check_whole("history_size", model.history_size, 2))

    @classmethod
    def from_state(cls, state: State) -> History:
        """Make the history that ``state_dict`` described."""
        check_state(state, "size", "elapsed", "columns")
        kept = state["columns"]
        check_state(kept, *COLUMNS[:-1])
        if "half_life" not in kept:  # older states
            kept = {**kept, "half_life": np.full(np.shape(kept["t"]), inf)}
        columns = [np.asarray(kept[name]) for name in COLUMNS]
        if any(column.shape != columns[0].shape or column.ndim != 1 for column in columns):
            raise ValueError("the columns of the history differ in length")
        named = dict(zip(COLUMNS, columns, strict=True))
        numbers = [column for name, column in named.items() if name != "kind" and column.size]
        # Rounds are Python's numbers: narrow ones would grow to many times their memory.
        if any(c.dtype.kind not in "iuf" or c.dtype.itemsize < 4 for c in numbers):
            raise ValueError("the history has something else where numbers should be")
        t = named["t"]
        if t.size and not (t.min() >= 0 and t.max() < 2**62):
            raise ValueError("the history has rounds of impossible numbers")
        history = cls(int(state["size"]))
        history._elapsed = float(state["elapsed"])
        history._rounds = list(zip(*(column.tolist() for column in columns), strict=True))
        return history
