"""How scores went since the start, in bounded memory."""

from __future__ import annotations

from typing import Any

__all__ = ["Course"]


class Course:
    """Points in time, at least a second apart; when they are many, every other one is dropped.

    So they always reach back to the first, and are the further apart the longer that was ago.

    Examples
    --------
    >>> from onlinefw.serve.course import Course
    >>> course = Course(most=4)
    >>> for second in range(8):
    ...     course.note(float(second), second**2)
    >>> course.points
    [(0.0, 0), (2.0, 4), (4.0, 16), (6.0, 36)]
    """

    def __init__(self, most: int = 400) -> None:
        self._most, self._apart = most, 1.0
        #: Time and values; a list that is replaced, not changed, when points are dropped.
        self.points: list[tuple[Any, ...]] = []

    def is_due(self, now: float) -> bool:
        """Whether a point of now would be kept."""
        return not self.points or now - self.points[-1][0] >= self._apart

    def note(self, now: float, *values: Any) -> None:
        """Keep a point, unless the last is too near."""
        if not self.is_due(now):
            return
        self.points.append((now, *values))
        if len(self.points) > self._most:
            self.points = self.points[::2]
            self._apart *= 2.0
