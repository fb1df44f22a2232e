"""
Ratings, as they come
=====================

A stream of (person, film, stars). Every rating is predicted before it is learned, so the errors
are honest, and nothing is ever refitted from scratch.
"""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw

data = ofw.datasets.make_movielens_like(n_rows=300, n_cols=200, n_entries=25_000, seed=0)
where, stars = np.column_stack((data.rows, data.cols)), data.values

model = ofw.FrankWolfeMatrixCompletion(
    shape=(300, 200), offsets="joint", weighting="smoothed", step="line-search"
)
ours, mean = [], []
for k in range(0, 25_000, 100):
    new, values = where[k : k + 100], stars[k : k + 100]
    if k > 0:
        ours.append(np.mean((model.predict(new) - values) ** 2))
        mean.append(np.mean((stars[:k].mean() - values) ** 2))
    model.partial_fit(new, values)

print(f"radius {model.radius_:.0f}, found on the way; gap {model.gap_:.3f}")

# %%
# The error of each batch before it was learned. The noise of these ratings has a variance of 0.56,
# so no model can stay below that line. While little is known, the mean is the better guess.


def smooth(errors):
    return np.convolve(errors, np.ones(20) / 20, mode="valid")


figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
seen = 100 * np.arange(20, len(ours) + 1)
axes.plot(seen, smooth(mean), color="0.6", label="the mean so far")
axes.plot(seen, smooth(ours), color="#1f5fa8", label="onlinefw")
axes.axhline(0.56, color="black", linestyle=":", label="the noise")
axes.set(xlabel="ratings seen", ylabel="squared error, 20 batches")
axes.legend(frameon=False)

# %%
# Somebody new belongs to the model after a few ratings, without a refit.

print("before:", model.predict([[300, 0]], unknown="fallback").round(1), "stars for film 0")
model.partial_fit([[300, 1], [300, 2], [300, 3]], [1.0, 1.5, 1.0])  # a strict one
print("after:", model.predict([[300, 0]]).round(1))
print("films to recommend:", model.recommend(row=300, n=5)[0])

# %%
# The low-rank part: few directions of taste carry most of it.

_, singular_values, _ = model.factors_
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.semilogy(np.arange(1, 41), singular_values[:40], "o-", color="#1f5fa8", markersize=3)
axes.set(xlabel="number", ylabel="singular value")
plt.show()
