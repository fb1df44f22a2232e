"""What an atom is: the extreme point of a set that lies furthest down the gradient."""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw

DOWN = np.array([0.9, 0.5])  # where the loss falls: minus the gradient

triangle = np.array([[-1.0, -0.8], [1.1, -0.3], [0.1, 1.1]])
angle = np.linspace(0.0, 2.0 * np.pi, 200)
circle = np.column_stack((np.cos(angle), np.sin(angle)))
SETS = {
    "L1Ball: one coordinate": (ofw.sets.L1Ball(1.0), np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])),
    "LinfBall: all signs": (ofw.sets.LinfBall(1.0), np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])),
    "L2Ball: any direction": (ofw.sets.L2Ball(1.0), circle),
    "Polytope: your own points": (ofw.sets.Polytope(triangle), triangle),
}

figure, places = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
for axes, (title, (constraint, outline)) in zip(places, SETS.items(), strict=True):
    atom = constraint.lmo(-DOWN).dense()
    axes.fill(*outline.T, color="#1f5fa8", alpha=0.15, linewidth=0)
    axes.plot(*np.vstack((outline, outline[:1])).T, color="#1f5fa8", linewidth=1.5)
    axes.annotate("", DOWN * 0.75, (0, 0), arrowprops={"arrowstyle": "->", "lw": 2})
    across = np.array([-DOWN[1], DOWN[0]])
    axes.plot(*np.column_stack((atom - 2 * across, atom + 2 * across)), ":", color="0.4")
    axes.plot(*atom, "o", color="#d1495b", markersize=9, zorder=3)
    axes.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), aspect="equal", title=title)
    axes.title.set_fontsize("medium")
    axes.set_axis_off()
figure.savefig("atoms.png", bbox_inches="tight")
