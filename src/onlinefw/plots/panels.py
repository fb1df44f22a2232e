"""Grids of panels with curves, for the figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .frame import plain

if TYPE_CHECKING:
    from ..experiments.results import Series

__all__ = ["COLORS", "PURPLE", "Panel", "draw_gap", "draw_panel", "draw_panels", "draw_slope"]

#: One color for one thing in every figure; the duality gap is purple, as in the paper.
COLORS = {
    "O-FW": "#1f5fa8",
    "O-AW": "#d1495b",
    "O-PG": "#7a828c",
    "sPG": "#7a828c",
    "batch FW": "#c98a1b",
    "active ALT": "#2e8b63",
    "sigmoid": "#1f5fa8",
    "logistic": "#c98a1b",
    "duality gap": "#7b3fa0",
    "mean of the training values": "#3a3a3a",
}
PURPLE = COLORS["duality gap"]
_SPARE = ("#2e8b63", "#c98a1b", "#8c5a3c", "#3a9bb5", "#b04a8b", "#5d6b2f")


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its curves, a title, and which axes are logarithmic."""

    title: str
    series: Sequence[Series]
    log_x: bool = True
    log_y: bool = True
    y_label: str = ""


def draw_panels(grid: Sequence[Sequence[Panel | None]], *, width: float = 4.6) -> Any:
    """Return a matplotlib figure with rows of panels; None leaves a panel empty."""
    from matplotlib.figure import Figure

    columns = max(len(row) for row in grid)
    figure = Figure(figsize=(width * columns, 3.5 * len(grid)), layout="constrained")
    rows = figure.subplots(len(grid), columns, squeeze=False)
    for row, panels in zip(rows, grid, strict=True):
        for axes, panel in zip(row, [*panels, *[None] * (columns - len(panels))], strict=True):
            if panel is None:
                axes.set_axis_off()
            else:
                draw_panel(axes, panel)
    return figure


def draw_panel(axes: Any, panel: Panel) -> None:
    """Draw one panel: bounds dashed, shapes (rates up to a constant) dotted, the rest as lines."""
    spare = iter(_SPARE * 3)
    for series in panel.series:
        x, y = np.asarray(series.x), np.asarray(series.y)
        keep = ((x > 0) | (not panel.log_x)) & ((y > 0) | (not panel.log_y))
        known = next((label for label in COLORS if series.label.startswith(label)), None)
        style = "--" if "bound" in series.label else "-"
        style = ":" if series.label.startswith("shape ") else style
        color = "#3a3a3a" if style != "-" else COLORS.get(known or "") or next(spare)
        axes.plot(x[keep], y[keep], style, color=color, linewidth=1.7, label=series.label)
    names = list(dict.fromkeys(series.y_name for series in panel.series))
    axes.set(
        title=panel.title,
        xlabel=panel.series[0].x_name if panel.series else "",
        ylabel=panel.y_label or " / ".join(names),
        xscale="log" if panel.log_x else "linear",
        yscale="log" if panel.log_y else "linear",
    )
    plain(axes)
    if panel.series:
        axes.legend(frameon=False, fontsize="small")


def draw_slope(axes: Any, curve: Any, height: float, **style: Any) -> None:
    """Draw the slope of 1/t beside the late part of a curve (t, h), ``height`` times as high."""
    t, h = map(np.asarray, curve)
    late = t >= t[-1] / 10
    style = {"color": "black", "label": "slope of 1/t", **style}
    axes.plot(t[late], height * h[-1] * t[-1] / t[late], ":", **style)


def draw_gap(axes: Any, gap: Series) -> Any:
    """Draw the gap on logarithmic axes of its own, and return its line."""
    t, value = np.asarray(gap.x), np.asarray(gap.y)
    (line,) = axes.plot(t[value > 0], value[value > 0], color=PURPLE, linewidth=1.3)
    axes.set_yscale("log")
    axes.tick_params(axis="y", which="both", colors=PURPLE)
    axes.spines[["top", "left", "bottom"]].set_visible(False)
    axes.spines["right"].set_color(PURPLE)
    return line
