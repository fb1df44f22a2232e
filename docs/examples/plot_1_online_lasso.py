"""
Online LASSO with its certificate
=================================

The paper's online LASSO: 80 noisy readings a round, 300 features, 30 of which matter. The learner
keeps sums instead of rows, so that round 2,000 costs what round 1 did, and it can say at any time
how far at most its mean loss, on everything seen, is above the best within the radius, without
knowing the truth.
"""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw

stream = ofw.datasets.make_lasso(seed=0)
radius = 1.1 * np.abs(stream.theta).sum()
learner = ofw.OnlineAwayFrankWolfe(
    ofw.objectives.RunningLeastSquares(n_features=300), ofw.sets.L1Ball(radius)
)

rounds, truth, gap = [], [], []
for A, y in stream.rounds(2000):
    played = learner.theta  # what would have been used to predict this round
    told = learner.observe(A, y)
    if told.t > 1:
        rounds.append(told.t)
        truth.append(stream.expected_excess(played))
        gap.append(80 * told.fw_gap)  # the sum over the 80 rows, as the paper counts

print(f"{np.count_nonzero(learner.theta)} of 300 coefficients, {len(learner.active_set)} atoms")
print(f"certificate {80 * learner.certificate():.1f}, noise in a round {80 * 100 / 2:.0f}")

# %%
# The certificate bounds the distance from the best point of the ball *on the data seen*; the other
# curve is the distance from the truth, which only somebody who made the data can draw.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.loglog(rounds, gap, color="#7b3fa0", label="what the learner knows: its duality gap")
axes.loglog(rounds, truth, color="#d1495b", label="how far from the truth it is")
axes.set(xlabel="round t", ylabel="excess loss of a round")
axes.legend(frameon=False)

# %%
# Coefficients of O-AW are exactly zero unless their atom is in use.

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.vlines(np.arange(300), 0, stream.theta, color="0.75", linewidth=3, label="the truth")
used = np.flatnonzero(learner.theta)
axes.plot(used, learner.theta[used], "o", color="#d1495b", markersize=3, label="learned")
axes.set(xlabel="feature", ylabel="coefficient")
axes.legend(frameon=False)
plt.show()
