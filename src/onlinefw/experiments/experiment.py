"""The base class of experiments: runs whose records are kept, and what follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .results import Claim, Results, Series

__all__ = ["Advance", "Experiment", "Record", "Run"]

#: Called with the number of rounds done so far.
Advance = Callable[[int], None]
#: What a run measured: lists, numbers and strings by name; it must survive JSON unchanged.
Record = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One learner on one stream. Its record is kept, so a finished run is not repeated.

    Attributes
    ----------
    name : str
        Unique among the experiment's runs, such as "O-FW, seed 3".
    rounds : int
        How many rounds it plays, for the progress bar.
    play : callable
        Plays them, calling its argument with the number of rounds done, and returns the record.
    """

    name: str
    rounds: int
    play: Callable[[Advance], Record]


class Experiment(ABC):
    """One part of one figure: an experiment of the paper on one data set.

    Attributes
    ----------
    figure, dataset : str
        Which figure ("fig1" to "fig4", "table1"), on which data.
    settings : dict
        Everything that determines the numbers; a record made with other settings is not used.
    """

    figure: str
    dataset: str
    settings: dict[str, Any]

    @abstractmethod
    def runs(self) -> list[Run]:
        """Return what is to be played. Data are loaded or generated when a run is played."""

    @abstractmethod
    def curves(self, records: Mapping[str, Record]) -> list[Series]:
        """Return the figure's curves, from the record of each run by its name."""

    @abstractmethod
    def claims(self, records: Mapping[str, Record]) -> list[Claim]:
        """Return a verdict on each thing that the paper says about this experiment."""

    def extra(self, records: Mapping[str, Record]) -> dict[str, Any]:
        """Return pictures and tables, if there are any."""
        return {}

    def results(self, records: Mapping[str, Record], seconds: float) -> Results:
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
