"""Figure 2: test errors of both losses against rounds, and the sigmoid's duality gap in purple."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .panels import PURPLE, Panel, draw_gap, draw_panels

if TYPE_CHECKING:
    from ..experiments.results import Results, Series

__all__ = ["draw"]

ROWS = ("no flips", "25% flips")
TITLES = {"mnist": "mnist (class '1')", "rcv1": "rcv1.binary"}


def draw(results: Results) -> Any:
    """Return the figure: a column a data set, above without flips, below with 25% flipped."""
    columns = list(dict.fromkeys(series.dataset for series in results.series))
    panels = [(row, name) for row in ROWS for name in columns]
    chosen = {
        (row, name): [s for s in results.series if s.panel == row and s.dataset == name]
        for row, name in panels
    }
    grid = [
        [Panel(f"{TITLES.get(name, name)}, {row}", _errors(chosen[row, name])) for name in columns]
        for row in ROWS
    ]
    figure = draw_panels(grid, width=4.2)
    lines: dict[str, Any] = {}
    for axes, (row, name) in zip(list(figure.axes), panels, strict=True):
        _plain_percents(axes)
        if name != columns[0]:
            axes.set_ylabel("")
        lines |= {line.get_label(): line for line in axes.lines}
        for gap in chosen[row, name]:
            if gap.y_name == "duality gap":
                right = axes.twinx()
                lines["duality gap (sigmoid, right axis)"] = draw_gap(right, gap)
                if name == columns[-1]:
                    right.set_ylabel("duality gap", color=PURPLE)
    figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def _errors(series: list[Series]) -> list[Series]:
    return [one for one in series if one.y_name.startswith("test error")]


def _plain_percents(axes: Any) -> None:
    """Label 1, 2, 5, 10, 20, 50 percent, as numbers; the legend is the figure's."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if axes.get_legend() is not None:
        axes.get_legend().remove()
