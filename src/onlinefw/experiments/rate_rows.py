"""What the parts of Table 1 share: predicted rates, and rows whose slopes are judged by them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from .._typing import Array
from . import verdicts
from .experiment import Advance, Record, Records, Run, SeededExperiment
from .results import Claim, Series
from .seeds import as_seeds, named_seeds

__all__ = ["RateShape", "TablePart", "log_over", "power", "root_log_over"]


@dataclass(frozen=True)
class RateShape:
    """A rate up to its constant."""

    name: str
    of: Callable[[Array], Array]

    def slope(self, t: Array) -> float:
        """Return its log-log slope over these rounds."""
        return theory.fit_rate(t, self.of(np.asarray(t, dtype=float))).slope

    def through(self, t: Array, value: float) -> Array:
        """Return the shape at these rounds, scaled to have this value at the first."""
        values = self.of(np.asarray(t, dtype=float))
        return values * (value / values[0])


def log_over(logs: int, of: str = "t") -> RateShape:
    """Return log^logs t / t."""
    top = {0: "1", 1: f"log {of}"}.get(logs, f"log^{logs} {of}")
    return RateShape(f"{top} / {of}", lambda t: np.log(t) ** logs / t)


def root_log_over(logs: int, of: str = "t") -> RateShape:
    """Return sqrt(log^logs t / t)."""
    inside = log_over(logs, of)
    return RateShape(f"sqrt({inside.name})", lambda t: np.sqrt(inside.of(t)))


def power(exponent: float, of: str = "T") -> RateShape:
    """Return T^-exponent."""
    return RateShape(f"{of}^-{exponent:g}", lambda t: t**-exponent)


class TablePart(SeededExperiment):
    """A part of Table 1: rows with an ``id``, and records of rounds with values at them."""

    figure = "table1"
    #: What the records call the rounds.
    rounds_key = "t"

    def __init__(
        self, rows: Sequence[Any], T: int, seeds: int | range, *, quick: bool, first: float = 0.0
    ) -> None:
        self.rows, self.T, self.seeds = rows, T, as_seeds(seeds)
        self.fit_from = max(first, verdicts.LATE * T)
        self.settings = {"quick": quick, "T": T, **named_seeds(self.seeds)}

    def runs(self) -> list[Run]:
        """Return one run a row and seed."""
        return [run for row in self.rows for run in self.runs_of(row.id, self.T, self.play, row)]

    @abstractmethod
    def play(self, row: Any, seed: int, advance: Advance) -> Record:
        """Play a row with one seed."""

    def rounds(self, records: Records, row: Any) -> Array:
        """Return the rounds at which the row was looked at."""
        return self.each(records, row.id, self.rounds_key)[0]

    def mean(
        self, records: Records, row: Any, key: str, panel: str, label: str, y_name: str
    ) -> Series:
        """Return the mean over seeds of what was measured."""
        values = self.each(records, row.id, key).mean(axis=0)
        return self.series(panel, label, "round", y_name, self.rounds(records, row), values)

    def shape(self, shape: RateShape, curve: Series, by: float) -> Series:
        """Return a predicted shape over the late rounds, from ``by`` times the curve there on."""
        t, measured = np.array(curve.x), np.array(curve.y)
        late = t >= self.fit_from
        values = shape.through(t[late], by * measured[late][0])
        name = f"shape {shape.name}"
        return self.series(curve.panel, name, "round", curve.y_name, t[late], values)

    def has_bound(self, records: Records, row: Any) -> bool:
        """Whether there is a bound on what was measured."""
        return "bound" in self.records_of(records, row.id)[0]

    def judge_rate(
        self, records: Records, row: Any, key: str, shape: RateShape, **claim: Any
    ) -> Claim:
        """Judge whether what was measured falls as fast as the shape."""
        measured = self.each(records, row.id, key)
        t, first = self.rounds(records, row), self.fit_from
        return verdicts.no_slower_than(t, measured, shape.of, shape.name, first=first, **claim)

    def slope_columns(
        self, records: Records, row: Any, key: str, shape: RateShape, name: str
    ) -> dict[str, Any]:
        """Return what a table says of a rate, predicted and measured."""
        t = self.rounds(records, row)
        rate = verdicts.slopes(t, self.each(records, row.id, key), self.fit_from)
        return {
            f"predicted_{name}": shape.name,
            f"predicted_{name}_slope": shape.slope(t[t >= self.fit_from]),
            f"measured_{name}_slope": rate.slope,
            f"measured_{name}_interval": [rate.low, rate.high] if rate.seeds > 1 else "none",
        }
