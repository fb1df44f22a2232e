"""
A set of one's own
==================

A constraint is anything over which a linear function is easy to minimise. Here: signals that are
constant up to a few jumps, the ball of total variation. Its extreme points are single steps, and
finding the best one is a cumulative sum and an ``argmax``; projecting onto it would be an
optimisation problem of its own.
"""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw


class TotalVariationBall(ofw.sets.ConvexSet):
    """Signals that start at 0 and whose jumps add up to at most ``radius``."""

    is_polytope = True  # finitely many extreme points, so that away steps work too

    def __init__(self, radius):
        self.radius = radius

    def lmo(self, direction):
        """Return the step, up or down, that lowers the linear function most."""
        after = np.cumsum(direction[::-1])[::-1]  # after[k] = what a unit step at k costs
        k = 1 + np.argmax(np.abs(after[1:]))
        step = np.zeros(direction.size)
        step[k:] = -self.radius * np.sign(after[k])
        return step


# %%
# Two hundred sensors in a row, each read with noise, ten readings at a time. A row of the data says
# which sensor was read: a one at its place.

rng = np.random.default_rng(0)
truth = np.repeat([0.0, 2.0, -1.0, 1.5], 50)
learner = ofw.OnlineAwayFrankWolfe(
    ofw.objectives.RunningLeastSquares(n_features=200),
    TotalVariationBall(radius=7.5),
    inner_steps=5,
)
sums, counts = np.zeros(200), np.zeros(200)
for _ in range(400):
    sensor = rng.integers(200, size=10)
    reading = truth[sensor] + rng.standard_normal(10)
    learner.observe(np.eye(200)[sensor], reading)
    np.add.at(sums, sensor, reading)
    np.add.at(counts, sensor, 1)

jumps = np.count_nonzero(np.abs(np.diff(learner.theta)) > 1e-9)
print(f"{jumps} jumps, certificate {learner.certificate():.4f}")

# %%
# The mean of each sensor knows nothing of its neighbours; the model does.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(sums / np.maximum(counts, 1), ".", color="0.7", markersize=3, label="mean of each sensor")
axes.step(range(200), truth, color="black", linewidth=1, where="mid", label="the truth")
axes.step(range(200), learner.theta, color="#d1495b", linewidth=2, where="mid", label="learned")
axes.set(xlabel="sensor", ylabel="value", ylim=(-2, 3.5))
axes.legend(frameon=False, ncols=3, loc="upper center")
plt.show()
