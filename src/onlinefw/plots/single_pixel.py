"""Figure 4: how the objective falls, and the pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .panels import Panel, draw_panel, draw_slope

if TYPE_CHECKING:
    from ..experiments.results import Results

__all__ = ["draw"]

PANELS = {
    "objective": ("objective value", r"$F_T(\theta_t)$"),
    "distance": ("distance from the minimum", r"$F_T(\theta_t) - \min F_T$"),
    "radius": ("effect of the radius on O-FW", r"$F_T(\theta_t)$"),
}


def draw(results: Results) -> Any:
    """Draw the figure: for every data set a row of curves and a row of pictures."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(series.dataset for series in results.series))
    figure = Figure(figsize=(13, 6.2 * len(datasets)), layout="constrained")
    heights = [3.6, 2.6] * len(datasets)
    rows: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
    for dataset, curves, pictures in zip(datasets, rows[::2], rows[1::2], strict=True):
        curves.suptitle(dataset, fontweight="bold")
        for axes, (panel, (title, y_label)) in zip(
            curves.subplots(1, len(PANELS)), PANELS.items(), strict=True
        ):
            found = [s for s in results.series if s.dataset == dataset and s.panel == panel]
            draw_panel(axes, Panel(title, found, y_label=y_label))
            if panel == "distance":
                draw_slope(axes, axes.lines[0].get_data(), 4.0)
                axes.legend(frameon=False, fontsize="small")
        _draw_pictures(pictures, _images(results, dataset))
    return figure


def _images(results: Results, dataset: str) -> list[dict[str, Any]]:
    extra = results.extra if "images" in results.extra else results.extra.get(dataset, {})
    return [image for image in extra.get("images", []) if image["dataset"] == dataset]


def _draw_pictures(figure: Any, images: list[dict[str, Any]]) -> None:
    """Draw the pictures from black, no light, to white, the brightest pixels."""
    if not images:
        return
    for axes, image in zip(np.atleast_1d(figure.subplots(1, len(images))), images, strict=True):
        picture = np.asarray(image["values"])
        axes.imshow(picture, cmap="gray", vmin=0.0, vmax=max(np.quantile(picture, 0.998), 1e-300))
        axes.set_title(image["label"], fontsize="medium")
        axes.set_xticks([])
        axes.set_yticks([])
