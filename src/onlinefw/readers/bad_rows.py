"""The count of rows that were left out."""

from __future__ import annotations

from typing import Any

from .._words import counted
from .errors import BadRow

__all__ = ["BadRows"]


class BadRows:
    """How many rows were left out for which reason, with the first example of each.

    Attributes
    ----------
    counts : dict of str to int
        Rows by reason.
    examples : dict of str to str
        The first row left out for each reason, as the error message would name it.

    Examples
    --------
    >>> from onlinefw.readers import BadRows
    >>> bad = BadRows()
    >>> bad.total, str(bad)
    (0, 'no bad rows')
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}

    @property
    def total(self) -> int:
        """Rows left out so far."""
        return sum(self.counts.values())

    def add(self, file: str, bad: BadRow) -> None:
        """Count one row."""
        if bad.reason not in self.counts:
            self.counts[bad.reason] = 0
            self.examples[bad.reason] = str(bad.error(file)).split(";")[0]
        self.counts[bad.reason] += 1

    def state_dict(self) -> dict[str, Any]:
        """Counts and examples as JSON values."""
        return {"counts": dict(self.counts), "examples": dict(self.examples)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BadRows:
        """Go on counting from a state."""
        self = cls()
        self.counts = {str(k): int(v) for k, v in state["counts"].items()}
        self.examples = {str(k): str(v) for k, v in state["examples"].items()}
        return self

    def __str__(self) -> str:
        if not self.counts:
            return "no bad rows"
        reasons = "; ".join(
            f"{count:,} {reason} (first: {self.examples[reason]})"
            for reason, count in self.counts.items()
        )
        return f"{counted(self.total, 'bad row')} left out: {reasons}"
