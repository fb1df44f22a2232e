"""What an experiment leaves behind: curves, verdicts, settings; as JSON and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from .._files import write_text
from .._version import __version__

__all__ = ["UNDECIDED", "UNINFORMATIVE", "Claim", "Results", "Series", "plain", "slug"]

#: What a verdict is instead of "holds" or "fails". Undecided: the measurement shows neither (its
#: interval is too wide). Uninformative: nothing feasible could make the claim fail.
UNDECIDED, UNINFORMATIVE = "undecided", "uninformative"


@dataclass(frozen=True)
class Series:
    """One curve of a figure; its points are as many, and all are finite."""

    #: Whose curve it is: "O-FW", "O-PG", "slow bound".
    label: str
    #: What the axes are: "round", "seconds"; "test error", "duality gap".
    x_name: str
    y_name: str
    x: list[float]
    y: list[float]
    #: Curves of one panel share their axes.
    panel: str = ""
    dataset: str = ""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(
                f"the series {self.label!r} has {len(self.x)} values of {self.x_name} and "
                f"{len(self.y)} of {self.y_name}"
            )
        if not (np.all(np.isfinite(self.x)) and np.all(np.isfinite(self.y))):
            raise ValueError(f"the series {self.label!r} of {self.y_name} has values not finite")

    @classmethod
    def of(cls, label: str, x_name: str, y_name: str, x: Any, y: Any, **where: str) -> Self:
        """Make a series of anything array-like, leaving out the points that are not finite."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        good = np.isfinite(x) & np.isfinite(y)
        return cls(label, x_name, y_name, x[good].tolist(), y[good].tolist(), **where)


@dataclass(frozen=True)
class Claim:
    """A thing that the paper says, what was measured of it here, and whether it holds."""

    #: A short name, the same in every run.
    id: str
    #: What is claimed, in a sentence.
    statement: str
    #: The criterion, in words and numbers.
    predicted: str
    measured: str
    holds: bool
    #: Where the paper says so.
    source: str = ""
    dataset: str = ""
    #: ``UNDECIDED`` or ``UNINFORMATIVE`` if the verdict is neither "holds" nor "fails".
    instead: str = ""

    def __post_init__(self) -> None:
        if self.instead not in ("", UNDECIDED, UNINFORMATIVE):
            raise ValueError(
                f"instead must be {UNDECIDED!r}, {UNINFORMATIVE!r} or empty, got {self.instead!r}"
            )
        if self.holds and self.instead:
            raise ValueError(f"the claim {self.id!r} cannot hold and be {self.instead}")

    @property
    def verdict(self) -> str:
        """Return one of holds, fails, undecided, uninformative."""
        return self.instead or ("holds" if self.holds else "fails")

    @property
    def counts(self) -> bool:
        """Whether the claim is among those that are counted: it could have failed."""
        return self.instead != UNINFORMATIVE


@dataclass(frozen=True)
class Results:
    """Everything that one figure, or its part on one data set, has to show.

    ``extra`` holds what is not a curve: pictures (lists of rows of numbers) and tables.
    """

    figure: str
    dataset: str
    series: list[Series]
    claims: list[Claim]
    settings: dict[str, Any]
    seconds: float
    version: str = __version__
    extra: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write as JSON; the file is whole or not there."""
        write_text(path, json.dumps(plain(asdict(self)), indent=1, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what ``write`` wrote."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored["series"] = [Series(**series) for series in stored["series"]]
        stored["claims"] = [Claim(**claim) for claim in stored["claims"]]
        return cls(**stored)

    @classmethod
    def merge(cls, parts: list[Self]) -> Self:
        """Put the parts of a figure into one; settings and extras by data set."""
        first = parts[0]
        return cls(
            figure=first.figure,
            dataset=", ".join(part.dataset for part in parts),
            series=[series for part in parts for series in part.series],
            claims=[claim for part in parts for claim in part.claims],
            settings={part.dataset: part.settings for part in parts},
            seconds=sum(part.seconds for part in parts),
            version=first.version,
            extra={part.dataset: part.extra for part in parts},
        )


def slug(name: str) -> str:
    """Return a name in small letters and hyphens, for a file or an id."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def plain(value: Any) -> Any:
    """Turn arrays and numpy numbers into what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return value.item() if isinstance(value, np.generic) else value
