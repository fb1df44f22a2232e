"""How good predictions were that were made before the truth came."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["WINDOW", "Scores"]

#: The newest so many make a window.
WINDOW = 1000


class Scores:
    """The mean of losses, in total and over the newest 1000.

    The sums do not depend on how the losses are grouped: they are added one after another.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.serve.scores import Scores
    >>> scores = Scores()
    >>> scores.add(np.array([1.0, 3.0]))
    >>> scores.mean, scores.of_window, scores.n
    (2.0, 2.0, 2)
    """

    def __init__(self) -> None:
        self.n, self._total = 0, 0.0
        self._window = np.zeros(WINDOW)

    def add(self, losses: Array) -> None:
        """Add losses in the order in which they came."""
        if not losses.size:
            return
        self._total = float(np.cumsum(np.append(self._total, losses))[-1])
        newest = losses[-WINDOW:]
        places = (self.n + losses.size - newest.size + np.arange(newest.size)) % WINDOW
        self._window[places] = newest
        self.n += losses.size

    @property
    def mean(self) -> float | None:
        """Over all; None before the first."""
        return self._total / self.n if self.n else None

    @property
    def of_window(self) -> float | None:
        """Over the newest 1000."""
        return float(self._window[: self.n].mean()) if self.n else None

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"n": self.n, "total": self._total, "window": self._window.copy()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Scores:
        """Make the scores that ``state_dict`` described."""
        scores = cls()
        scores.n, scores._total = int(state["n"]), float(state["total"])
        scores._window[:] = state["window"]
        return scores
