"""Figure 1: the measure against rounds (top) and seconds (bottom), one column a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .panels import Panel, draw_panels, draw_slope

if TYPE_CHECKING:
    from ..experiments.results import Results, Series

__all__ = ["draw"]

ROWS = ("rounds", "seconds")


def draw(results: Results) -> Any:
    """Draw the figure from its results; the duality gap of O-FW is purple, as in the paper."""
    datasets = list(dict.fromkeys(series.dataset for series in results.series))
    grid = [[_panel(results.series, panel, dataset) for dataset in datasets] for panel in ROWS]
    figure = draw_panels(grid, width=4.2)
    for axes, panel in zip(figure.axes, [panel for row in grid for panel in row], strict=True):
        if panel.y_label.startswith("f("):
            _add_slope(axes, panel.series)
    return figure


def _panel(every: list[Series], panel: str, dataset: str) -> Panel:
    series = [one for one in every if (one.panel, one.dataset) == (panel, dataset)]
    excess = any(one.y_name == "excess objective" for one in series)
    label = r"f($\theta_t$) - f($\bar\theta$)" if excess else "test MSE"
    return Panel(dataset if panel == "rounds" else "", series, y_label=f"{label}, duality gap")


def _add_slope(axes: Any, every: Any) -> None:
    """Show 1 / t beside O-FW's late rounds, on the panel of rounds."""
    ours = next(one for one in every if one.label == "O-FW")
    if ours.x_name != "round":
        return
    draw_slope(axes, (ours.x, ours.y), 0.5, lw=1.2, label="1 / t")
    axes.legend(frameon=False, fontsize="small")
