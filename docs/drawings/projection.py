"""Steps towards corners stay inside the ball; gradient steps leave it and must be projected."""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw

ball = ofw.sets.L1Ball(1.0)
corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]])
bend, best = np.array([[1.0, 0.25], [0.25, 2.2]]), np.array([1.0, 0.62])


def gradient(theta):
    return bend @ (theta - best)


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.1), layout="constrained")
x, y = np.meshgrid(np.linspace(-0.45, 1.3, 200), np.linspace(-0.55, 1.2, 200))
offset = np.stack((x, y), axis=-1) - best
loss = 0.5 * np.einsum("...i,ij,...j", offset, bend, offset)
for axes in (left, right):
    axes.contour(x, y, loss, levels=np.geomspace(0.01, 2.5, 8), colors="0.8", linewidths=0.8)
    axes.fill(*corners.T, color="#1f5fa8", alpha=0.12, linewidth=0)
    axes.plot(*corners.T, color="#1f5fa8", linewidth=1.2)
    axes.set(xlim=(-0.45, 1.3), ylim=(-0.55, 1.2), aspect="equal")
    axes.plot(*best, "*", color="0.4", markersize=10)
    axes.annotate("lowest loss, outside", best, (0, 26), textcoords="offset points", ha="center")
    axes.set_axis_off()

path = [np.array([-0.2, -0.3])]
for t in range(2, 14):
    atom = ball.lmo(gradient(path[-1])).dense()
    if t < 6:
        left.plot(*np.column_stack((path[-1], atom)), ":", color="#d1495b", linewidth=0.9)
    path.append(path[-1] + 2.0 / (t + 1) * (atom - path[-1]))
left.plot(*np.transpose(path), "o-", color="#d1495b", markersize=4, linewidth=1.5)
left.set_title("Frank-Wolfe: part of the way to a corner")

path = [np.array([-0.2, -0.3])]
for _ in range(5):
    out = path[-1] - 0.42 * gradient(path[-1])
    path.append(ball.project(out))
    right.plot(*np.column_stack((path[-2], out)), color="0.45", linewidth=1.2)
    right.plot(*np.column_stack((out, path[-1])), ":", color="#c98a1b", linewidth=2)
right.plot(*np.transpose(path), "o", color="0.25", markersize=4)
right.set_title("Projected gradient: out of the set and back (dotted)")
figure.savefig("projection.png")
