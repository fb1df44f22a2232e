"""Figure 1: the measure against rounds (top) and seconds (bottom), one column a data set.

O-FW's duality gap is purple, as in the paper, on an axis of its own (right). The test MSE has a
linear axis around what matters: from the best value to somewhat above that of a constant, and above
the best of every curve, so that all that is compared is in the panel; the excess of the objective,
which falls over orders of magnitude, a logarithmic one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .panels import PURPLE, Panel, draw_gap, draw_panels, draw_slope

if TYPE_CHECKING:
    from ..experiments.results import Results, Series

__all__ = ["draw"]

ROWS = ("rounds", "seconds")
GAP, EXCESS, CONSTANT = "duality gap", "excess objective", "mean of the training values"
#: The axis of the test MSE ends here, in multiples of the constant's, or of the worst curve's best.
TOP, ABOVE = 1.5, 1.1


def draw(results: Results) -> Any:
    """Draw the figure from its results."""
    every = results.series
    datasets = list(dict.fromkeys(series.dataset for series in every))
    places = [(panel, dataset) for panel in ROWS for dataset in datasets]
    chosen = {at: [s for s in every if (s.panel, s.dataset) == at] for at in places}
    grid = [[_panel(chosen[panel, dataset]) for dataset in datasets] for panel in ROWS]
    figure = draw_panels(grid, width=4.8)
    lines: dict[str, Any] = {}
    for axes, (panel, dataset) in zip(list(figure.axes), places, strict=True):
        series = chosen[panel, dataset]
        axes.set_title(dataset if panel == ROWS[0] else "")
        if series[0].y_name == EXCESS:
            _add_slope(axes, series)
        else:
            axes.set_ylim(*_limits(series))
        axes.get_legend().remove()
        lines |= {line.get_label(): line for line in axes.lines}
        for gap in (one for one in series if one.y_name == GAP):
            right = axes.twinx()
            lines["duality gap of O-FW (right axis)"] = draw_gap(right, gap)
            if dataset == datasets[-1]:
                right.set_ylabel(GAP, color=PURPLE)
    columns = min(2 * len(datasets), 6)
    figure.legend(
        lines.values(), lines.keys(), loc="outside upper center", ncols=columns, frameon=False
    )
    return figure


def _panel(series: list[Series]) -> Panel:
    excess = series[0].y_name == EXCESS
    label = r"f($\theta_t$) - f($\bar\theta$)" if excess else "test MSE"
    shown = [one for one in series if one.y_name != GAP]
    return Panel("", shown, log_y=excess, y_label=label)


def _limits(series: list[Series]) -> tuple[float, float]:
    """Return the ends of the axis of the test MSE; what is above in early rounds is cut off."""
    constant = next(one.y[0] for one in series if one.label == CONSTANT)
    bests = [min(one.y) for one in series if one.y_name != GAP]
    top = max(TOP * constant, ABOVE * max(bests))
    return min(bests) - 0.05 * (top - min(bests)), top


def _add_slope(axes: Any, series: list[Series]) -> None:
    """Show 1 / t beside O-FW's late rounds, on the panel of rounds."""
    ours = next(one for one in series if one.label == "O-FW")
    if ours.x_name == "round":
        draw_slope(axes, (ours.x, ours.y), 0.5, lw=1.2, label="1 / t")
