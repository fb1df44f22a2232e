"""How well a model predicted what came next, over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..evaluate import Progress
from .frame import plain

__all__ = ["plot_progress"]

NAMES = {"error": "all", "known": "row and column seen before", "new": "row or column new"}


def plot_progress(progress: Progress, *, windows: int = 20, ax: Any = None) -> Any:
    """Draw the mean error of windows of equally many observations, over time.

    Parameters
    ----------
    progress : Progress
        What :func:`onlinefw.evaluate.progressive` has returned.
    windows : int
        How many.
    ax : matplotlib axes, optional
        Where to draw. A new figure by default.

    Returns
    -------
    matplotlib axes
        With a line for all observations and, for entries of a matrix, one for those whose row and
        column had been seen before, and one for the others.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> X = np.random.default_rng(0).standard_normal((400, 3))
    >>> progress = ofw.evaluate.progressive(ofw.FrankWolfeRegressor(radius=2.0), X, X[:, 0])
    >>> axes = ofw.plots.plot_progress(progress, windows=4)
    >>> len(axes.lines)
    1
    """
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots()
    table = progress.windows(windows)
    for name, label in NAMES.items():
        if name in table and not np.isnan(table[name]).all():
            ax.plot(table["until"], table[name], marker=".", label=label)
    ax.set(xlabel="time", ylabel="error, predicted before learned")
    if len(ax.lines) > 1:
        ax.legend(frameon=False)
    plain(ax)
    return ax
