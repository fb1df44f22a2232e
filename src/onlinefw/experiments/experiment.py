"""The base class of experiments: runs whose records are kept, and what follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._typing import Array
from .results import Claim, Results, Series

__all__ = ["Advance", "Experiment", "Record", "Records", "Run", "SeededExperiment", "run_name"]

#: Called with the number of rounds done so far.
Advance = Callable[[int], None]
#: What a run measured: lists, numbers and strings by name; it must survive JSON unchanged.
Record = dict[str, Any]
#: What all runs measured, by their names.
Records = Mapping[str, Record]


@dataclass(frozen=True)
class Run:
    """One learner on one stream. Its record is kept, so a finished run is not repeated."""

    #: Unique among the experiment's runs, such as "O-FW, seed 3".
    name: str
    #: For the progress bar.
    rounds: int
    #: Plays them, calling its argument with the number of rounds done, and returns the record.
    play: Callable[[Advance], Record]


class Experiment(ABC):
    """One part of one figure: an experiment of the paper on one data set."""

    #: "fig1" to "fig4", or "table1".
    figure: str
    dataset: str
    #: Everything that determines the numbers; a record made with other settings is not used.
    settings: dict[str, Any]

    @abstractmethod
    def runs(self) -> list[Run]:
        """Return what is to be played. Data are loaded or generated when a run is played."""

    @abstractmethod
    def curves(self, records: Records) -> list[Series]:
        """Return the figure's curves, from the record of each run by its name."""

    @abstractmethod
    def claims(self, records: Records) -> list[Claim]:
        """Return a verdict on each thing that the paper says about this experiment."""

    def series(self, panel: str, label: str, x_name: str, y_name: str, x: Any, y: Any) -> Series:
        """Return a curve of one panel, on this data set."""
        return Series.of(label, x_name, y_name, x, y, panel=panel, dataset=self.dataset)

    def named(self, id: str, statement: str, source: str) -> dict[str, Any]:
        """Return what every verdict on this data set is called with."""
        return {"id": id, "statement": statement, "source": source, "dataset": self.dataset}

    def extra(self, records: Records) -> dict[str, Any]:
        """Return pictures and tables, if there are any."""
        return {}

    def results(self, records: Records, seconds: float) -> Results:
        """Return everything that there is to show."""
        return Results(
            figure=self.figure,
            dataset=self.dataset,
            series=self.curves(records),
            claims=self.claims(records),
            settings=self.settings,
            seconds=seconds,
            extra=self.extra(records),
        )


def run_name(case: str, seed: int) -> str:
    """Return the name of the run of a case with one seed."""
    return f"{case}, seed {seed}"


class SeededExperiment(Experiment):
    """An experiment of cases, such as an algorithm on a problem, each played with several seeds."""

    seeds: Sequence[int]

    def runs_of(
        self, case: str, rounds: int, play: Callable[..., Record], *which: Any
    ) -> list[Run]:
        """Return one run a seed, each of which calls ``play(*which, seed, advance)``."""
        return [
            Run(run_name(case, seed), rounds, partial(play, *which, seed)) for seed in self.seeds
        ]

    def records_of(self, records: Records, case: str) -> list[Record]:
        """Return the record of every seed."""
        return [records[run_name(case, seed)] for seed in self.seeds]

    def each(self, records: Records, case: str, key: str) -> Array:
        """Return what was measured, a row for every seed."""
        return np.array([record[key] for record in self.records_of(records, case)])
