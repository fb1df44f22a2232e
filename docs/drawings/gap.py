"""What the gap certifies: the tangent at theta is below the loss, also where that is least."""

import matplotlib.pyplot as plt
import numpy as np

PURPLE, RED, BLUE = "#7b3fa0", "#d1495b", "#1f5fa8"


def loss(x):
    return 0.35 * (x - 0.55) ** 2 + 0.12 * np.exp(-1.5 * x) + 0.3


def slope(x):
    return 0.7 * (x - 0.55) - 0.18 * np.exp(-1.5 * x)


x = np.linspace(-1.25, 1.25, 400)
inside = np.abs(x) <= 1.0
theta, atom = -0.35, 1.0
best = x[inside][np.argmin(loss(x[inside]))]
tangent = loss(theta) + slope(theta) * (x - theta)
lowest = loss(theta) + slope(theta) * (atom - theta)

figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
axes.axvspan(-1.0, 1.0, color=BLUE, alpha=0.08, linewidth=0)
axes.text(-0.97, -0.6, "the set", color=BLUE, va="bottom")
axes.plot(x, loss(x), color="black", linewidth=2)
axes.text(-0.58, 1.1, "mean loss $F_t$", ha="left")
axes.plot(x, tangent, color=PURPLE, linewidth=1.5)
axes.text(0.12, 0.2, r"tangent at $\theta$", color=PURPLE, ha="right", va="top")
axes.plot([theta, best], [loss(theta), loss(best)], "o", color=RED, markersize=8, zorder=3)
axes.annotate(r"$\theta$", (theta, loss(theta)), (6, 8), textcoords="offset points", fontsize=14)
axes.annotate("the best", (best, loss(best)), (0, 9), textcoords="offset points", ha="center")
axes.plot(atom, lowest, "o", color=PURPLE, markersize=8, zorder=3)
axes.annotate("the atom", (atom, lowest), (-10, -4), textcoords="offset points", ha="right")
axes.plot([theta, 1.34], [loss(theta)] * 2, ":", color="0.5", linewidth=1)
axes.plot([best, 1.14], [loss(best)] * 2, ":", color="0.5", linewidth=1)
axes.plot([atom, 1.34], [lowest] * 2, ":", color="0.5", linewidth=1)
both = {"arrowstyle": "<->", "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
axes.annotate("", (1.12, loss(theta)), (1.12, loss(best)), arrowprops=both | {"color": RED})
axes.annotate("", (1.32, loss(theta)), (1.32, lowest), arrowprops=both | {"color": PURPLE})
axes.text(1.1, 0.5 * (loss(theta) + loss(best)), "error", color=RED, ha="right", va="center")
axes.text(1.35, 0.5 * (loss(theta) + lowest), "gap", color=PURPLE, va="center")
axes.set(xlim=(-1.25, 1.5), ylim=(-0.62, 1.3))
axes.set_axis_off()
figure.savefig("gap.png")
