"""h_t and the duality gap against the round number, on log axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Array
from ..experiments.online_lasso import Curve

__all__ = ["plot_convergence"]

COLORS = {"O-FW": "#1f5fa8", "O-AW": "#d1495b", "sPG": "#8a8f98"}


def plot_convergence(curves: Mapping[str, Curve], bound: tuple[Array, Array] | None = None) -> Any:
    """Draw the curves side by side: optimality on the left, certificate on the right.

    Parameters
    ----------
    curves : mapping of label to Curve
        What was measured: any objects with arrays ``t``, ``h`` and ``gap``, such as those that
        :func:`onlinefw.experiments.online_lasso.run_online_lasso` returns.
    bound : (t, values), optional
        A theoretical bound on h_t, drawn dashed.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for label, curve in curves.items():
        style = {"label": label, "color": COLORS.get(label), "linewidth": 2}
        left.loglog(curve.t, curve.h, **style)
        if np.isfinite(curve.gap).any():
            right.loglog(curve.t, curve.gap, **style)
    t = next(iter(curves.values())).t
    anchor = next(iter(curves.values())).h[-1] * t[-1]
    late = t >= t[-1] / 30
    left.loglog(t[late], 2.5 * anchor / t[late], ":", color="black", linewidth=1, label="slope -1")
    if bound is not None:
        left.loglog(*bound, "--", color="#3a3a3a", linewidth=1.2, label="slow bound (theory)")
    left.set(xlabel="round t", ylabel=r"$h_t = f(\theta_t) - \min f$", title="How far from optimal")
    right.set(
        xlabel="round t",
        ylabel=r"$g_t^{FW}$ on $F_t$ at $\theta_t$",
        title="What the learner itself knows: the duality gap",
    )
    for axes in (left, right):
        axes.grid(True, which="major", alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    return figure
