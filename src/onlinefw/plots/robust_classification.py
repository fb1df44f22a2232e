"""Figure 2: test errors of both losses against rounds, and the sigmoid's duality gap in purple."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .panels import COLORS, Panel, draw_panels

if TYPE_CHECKING:
    from ..experiments.results import Results, Series

__all__ = ["draw"]

ROWS = ("no flips", "25% flips")
TITLES = {"mnist": "mnist (class '1')", "rcv1": "rcv1.binary"}
PURPLE = COLORS["duality gap"]


def draw(results: Results) -> Any:
    """Return the figure: a column a data set, above without flips, below with 25% flipped."""
    columns = list(dict.fromkeys(series.dataset for series in results.series))
    places = [(row, name) for row in ROWS for name in columns]
    chosen = {
        (row, name): [s for s in results.series if s.panel == row and s.dataset == name]
        for row, name in places
    }
    grid = [
        [Panel(f"{TITLES.get(name, name)}, {row}", _errors(chosen[row, name])) for name in columns]
        for row in ROWS
    ]
    figure = draw_panels(grid)
    for axes, place in zip(list(figure.axes), places, strict=True):
        for gap in chosen[place]:
            if gap.y_name == "duality gap":
                _draw_gap(axes.twinx(), gap)
    return figure


def _errors(series: list[Series]) -> list[Series]:
    return [one for one in series if one.y_name.startswith("test error")]


def _draw_gap(axes: Any, gap: Series) -> None:
    t, value = np.asarray(gap.x), np.asarray(gap.y)
    axes.plot(t[value > 0], value[value > 0], color=PURPLE, linewidth=1.3)
    axes.set_yscale("log")
    axes.set_ylabel("duality gap (sigmoid)", color=PURPLE)
    axes.tick_params(axis="y", which="both", colors=PURPLE)
    axes.spines[["top", "left", "bottom"]].set_visible(False)
    axes.spines["right"].set_color(PURPLE)
