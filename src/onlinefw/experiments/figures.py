"""The figures of the paper: which module plays them, and on which data.

A module of :mod:`onlinefw.experiments` that is listed here has

- ``DATASETS``: the names that ``make`` knows, in the order of the figure's columns;
- ``usual_datasets()``: those to run when none is named, depending on the data available;
- ``make(dataset, *, quick, seeds)``: the :class:`~onlinefw.experiments.experiment.Experiment`;
  ``seeds`` None is its own number of them;

and a module of the same name in :mod:`onlinefw.plots` draws the figure from its results.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .experiment import Experiment

__all__ = ["FIGURES", "PaperFigure"]


@dataclass(frozen=True)
class PaperFigure:
    """One figure or table of the paper, and the data sets that the paper plays it on."""

    name: str
    title: str
    module: str
    of_the_paper: tuple[str, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets it knows."""
        return self._experiments().DATASETS

    def usual_datasets(self) -> list[str]:
        """Return the data sets to run when none is named."""
        return self._experiments().usual_datasets()

    def make(self, dataset: str, *, quick: bool, seeds: int | None) -> Experiment:
        """Return the experiment on one data set."""
        return self._experiments().make(dataset, quick=quick, seeds=seeds)

    def _experiments(self) -> Any:
        return import_module(f"onlinefw.experiments.{self.module}")


FIGURES = {
    figure.name: figure
    for figure in (
        PaperFigure(
            "fig1",
            "Online matrix completion",
            "matrix_completion",
            ("synthetic", "movielens100k", "movielens20m"),
        ),
        PaperFigure(
            "fig2",
            "Classification with wrong labels",
            "robust_classification",
            ("synthetic", "mnist", "rcv1"),
        ),
        PaperFigure("fig3", "Online LASSO", "online_lasso", ("synthetic",)),
        PaperFigure("fig4", "Single-pixel imaging", "single_pixel", ("R64",)),
        PaperFigure("table1", "Rates and bounds", "rates", ()),
    )
}
