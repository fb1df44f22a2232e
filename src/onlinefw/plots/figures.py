"""Pictures of the paper's figures: one module for each, with a function ``draw(results)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import matrix_completion, online_lasso, rates, robust_classification, single_pixel

if TYPE_CHECKING:
    from ..experiments.results import Results

__all__ = ["draw_figure"]

#: By the names of :data:`onlinefw.experiments.figures.FIGURES`.
DRAWN_BY = {
    "fig1": matrix_completion.draw,
    "fig2": robust_classification.draw,
    "fig3": online_lasso.draw,
    "fig4": single_pixel.draw,
    "table1": rates.draw,
}


def draw_figure(results: Results) -> Any:
    """Return a matplotlib figure of the results of one of the paper's figures."""
    return DRAWN_BY[results.figure](results)
