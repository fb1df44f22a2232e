"""The paper's online LASSO: how far from optimal, and what the learner itself knows of that."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from onlinefw.datasets import make_lasso
from onlinefw.experiments.online_lasso import (
    LEARNERS,
    minimum_excess,
    run_online_lasso,
    slow_bound,
)

ROUNDS = 2000
COLORS = {"O-FW": "#1f5fa8", "O-AW": "#d1495b", "sPG": "#8a8f98"}

problem = make_lasso(seed=0)
radius = 1.1 * float(np.abs(problem.theta).sum())
minimum = minimum_excess(problem, radius)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for label, learner in LEARNERS.items():
    curve = run_online_lasso(problem, radius, ROUNDS, learner, minimum=minimum)
    style = {"label": label, "color": COLORS[label], "linewidth": 2}
    left.loglog(curve.t, curve.h, **style)
    if np.isfinite(curve.gap).any():
        right.loglog(curve.t, curve.gap, **style)
t = curve.t
left.loglog(t, slow_bound(problem, radius, t), "--", color="#3a3a3a", label="slow bound (theory)")
left.set(xlabel="round t", ylabel=r"$h_t = f(\theta_t) - \min f$", title="How far from optimal")
right.set(
    xlabel="round t",
    ylabel=r"$g_t^{FW}$ on $F_t$ at $\theta_t$",
    title="What the learner itself knows: the duality gap",
)
for axes in (left, right):
    axes.grid(True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
figure.savefig("online_lasso.png", dpi=100)
