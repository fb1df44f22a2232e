"""Table 1 as a picture: measured curves, predicted shapes and the theorems' bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .panels import COLORS, Panel, draw_panels

if TYPE_CHECKING:
    from ..experiments.results import Results, Series

__all__ = ["draw"]

COLUMNS = 4


def draw(results: Results) -> Any:
    """Draw one panel for each setting, the parts of the table below one another."""
    panels: dict[str, dict[str, list[Series]]] = {}
    for series in results.series:
        panels.setdefault(series.dataset, {}).setdefault(series.panel, []).append(series)
    grid: list[list[Panel | None]] = []
    for part in panels.values():
        row = [Panel(title, series) for title, series in part.items()]
        grid += [list(row[i : i + COLUMNS]) for i in range(0, len(row), COLUMNS)]
    figure = draw_panels(grid, width=4.8)
    for axes in figure.axes:
        _tidy(axes)
    return figure


def _tidy(axes: Any) -> None:
    """Use small legends and ticks at powers of ten; a bound has its algorithm's color."""
    from matplotlib.ticker import NullFormatter

    for line in axes.lines:
        color = COLORS.get(line.get_label().removeprefix("bound, "))
        if color is not None:
            line.set_color(color)
    if axes.get_legend() is not None:
        axes.legend(frameon=False, fontsize="x-small", loc="best")
    axes.title.set_fontsize("medium")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", labelsize="small")
