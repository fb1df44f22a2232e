"""Errors about data, in one line: where they are, what is wrong, what to do; and their count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._words import counted

__all__ = ["BadRow", "BadRows", "DataError", "asked_at_once", "shortened", "shown"]

_LONGEST_VALUE = 40
#: How many columns a message names.
_MOST_NAMES = 5


def shown(value: object) -> str:
    """A value as an error message shows it: quoted, on one line, at most 40 characters of it."""
    text = value if isinstance(value, str) else str(value)
    if len(text) > _LONGEST_VALUE:
        text = text[: _LONGEST_VALUE - 3] + "..."
    return repr(text)


class DataError(ValueError):
    """Data that cannot be used; the message names file, row, column, value and remedy.

    Parameters
    ----------
    problem : str
        What is wrong, with the value.
    file : str, optional
        The file as it was given (``"-"`` is standard input).
    row : int, optional
        The record, counted from 1; a header is not a record.
    line : int, optional
        The line of the file, where it is not the same number as the row.
    column : str, optional
        The column, as the header or the caller names it.
    remedy : str, optional
        What to do about it.

    Examples
    --------
    >>> from onlinefw.readers import DataError
    >>> print(DataError("'x' is not a number", file="a.csv", row=7, line=8, column="rating"))
    a.csv: row 7 (line 8), column 'rating': 'x' is not a number
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.remedy = problem, remedy
        self.file, self.row, self.line, self.column = file, row, line, column
        where = []
        if row is not None:
            where.append(f"row {row}" if line in (None, row) else f"row {row} (line {line})")
        if column is not None:
            where.append(f"column {shown(column)}")
        parts = ["standard input" if file == "-" else file, ", ".join(where), problem]
        message = ": ".join(part for part in parts if part)
        super().__init__(" ".join(f"{message}; {remedy}".split()) if remedy else message)


def shortened(file: str) -> DataError:
    """Return the error for a file of which less is there than was read before."""
    problem = "the file is shorter than when it was read last"
    return DataError(problem, file=file, remedy="go on with the file as it was")


@dataclass(frozen=True)
class BadRow:
    """One row that cannot be used, and why; rows and lines are counted from 1."""

    #: A few words that many rows share, by which they are counted.
    reason: str
    #: What is wrong in this row, with the value.
    problem: str
    row: int
    line: int | None = None
    column: str | None = None
    #: What to do, beside skipping the row.
    remedy: str = "correct it"
    #: Its features that hold text, and those that have no value.
    texts: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    def error(self, file: str) -> DataError:
        """The row as an error about its file."""
        return DataError(
            self.problem,
            file=file,
            row=self.row,
            line=self.line,
            column=self.column,
            remedy=f"{self.remedy}, or leave bad rows out (--on-bad-row skip)",
        )


def asked_at_once(bad: list[BadRow]) -> BadRow:
    """Return the first bad row; if these have text and gaps, with a remedy for both.

    Examples
    --------
    >>> from onlinefw.readers.errors import BadRow, asked_at_once
    >>> bad = [
    ...     BadRow("not a number", "'flat' is not a number", 1, texts=("kind", "agent")),
    ...     BadRow("empty", "the cell is empty", 2, gaps=("area",)),
    ... ]
    >>> print(asked_at_once(bad).remedy)  # doctest: +NORMALIZE_WHITESPACE
    kind, agent hold text and area has gaps: say --text one-hot --missing mean, leave columns out
    (--drop NAMES), correct them
    """
    texts = list(dict.fromkeys(name for row in bad for name in row.texts))
    gaps = list(dict.fromkeys(name for row in bad for name in row.gaps))
    if not texts or not gaps or not (bad[0].texts or bad[0].gaps):
        return bad[0]
    text = f"{_listed(texts)} {'holds' if len(texts) == 1 else 'hold'} text"
    gap = f"{_listed(gaps)} {'has' if len(gaps) == 1 else 'have'} gaps"
    options = "say --text one-hot --missing mean, leave columns out (--drop NAMES), correct them"
    return replace(bad[0], remedy=f"{text} and {gap}: {options}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} others" if len(names) > _MOST_NAMES + 1 else ""
    return ", ".join(names[:_MOST_NAMES] if more else names) + more


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
