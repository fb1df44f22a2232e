"""Figure 3: h_t of online LASSO against rounds and seconds, inside and on the boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .panels import Panel, draw_panels, draw_slope

if TYPE_CHECKING:
    from ..experiments.results import Results

__all__ = ["draw"]

TITLES = {
    "interior": r"minimiser inside: $r = 1.1\,\|\bar\theta\|_1$",
    "boundary": r"minimiser on the boundary: $r = 0.15\,\|\bar\theta\|_1$",
}


def draw(results: Results) -> Any:
    """Draw the figure from its results: columns are the two radii, rows are rounds and seconds."""
    figure = draw_panels(
        [
            [
                Panel(
                    title,
                    [s for s in results.series if s.panel == panel and s.x_name == x_name],
                    y_label=r"$h_t = f(\theta_t) - \min f$, mean over seeds",
                )
                for panel, title in TITLES.items()
            ]
            for x_name in ("round", "seconds")
        ],
        width=5.4,
    )
    return _with_one_legend(figure)


def _with_one_legend(figure: Any) -> Any:
    """Draw the slope of 1/t, and move the legend, the same for all panels, below them."""
    rounds = figure.axes[: len(TITLES)]
    for axes in figure.axes:
        axes.get_legend().remove()
    for axes in rounds:
        draw_slope(axes, axes.lines[0].get_data(), 3.0)
    handles, labels = rounds[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure
