"""The score so far after so many rows, in bounded memory."""

from __future__ import annotations

from typing import Any

__all__ = ["ScorePath"]

#: When there are more points than this, every other one goes.
MOST = 400


class ScorePath:
    """Points (rows, score of all of them), evenly spaced over the rounds.

    Examples
    --------
    >>> from onlinefw.fitting.score_path import ScorePath
    >>> path = ScorePath()
    >>> for t in range(1, 1001):
    ...     path.add(32 * t, 1.0 / t)
    >>> len(path.columns()["rows"]), path.columns()["rows"][:2], path.columns()["score"][:2]
    (250, [128, 256], [0.25, 0.125])
    """

    def __init__(self) -> None:
        self._calls, self._stride = 0, 1
        self._rows: list[int] = []
        self._scores: list[float] = []

    def add(self, rows: int, score: float) -> None:
        """Note the score after a round; not every one is kept."""
        self._calls += 1
        if self._calls % self._stride:
            return
        self._rows.append(rows)
        self._scores.append(score)
        if len(self._rows) > MOST:
            del self._rows[::2], self._scores[::2]
            self._stride *= 2

    def columns(self) -> dict[str, Any]:
        """Return the points as JSON-able columns."""
        return {"rows": list(self._rows), "score": list(self._scores)}

    def state_dict(self) -> dict[str, Any]:
        """Return the points, and when the next is due."""
        return {"calls": self._calls, "stride": self._stride, **self.columns()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with these points."""
        self._calls, self._stride = int(state["calls"]), int(state["stride"])
        self._rows, self._scores = list(state["rows"]), list(state["score"])
