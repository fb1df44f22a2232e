"""
Finding the radius on the way
=============================

The radius of the ball is the one number to choose. ``RadiusSearch`` learns several at once on the
same rows, predicts every batch before it is learned, and uses whichever radius predicts best.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import onlinefw as ofw

data = load_diabetes()
X, y = data.data / data.data.std(axis=0), data.target
radii = np.geomspace(5.0, 400.0, 12)
search = ofw.RadiusSearch(ofw.FrankWolfeRegressor(batch_size=10), radii=radii).fit(X, y)
print("best radius:", round(search.best_radius_))

# %%
# Small balls cannot fit, large ones fit the noise of the first batches; the score is the mean loss
# before learning.

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.semilogx(search.radii_, -search.scores_, "o-", color="#1f5fa8")
axes.axvline(search.best_radius_, color="#d1495b", linestyle=":")
axes.set(xlabel="radius", ylabel="mean loss before learning")

# %%
# The path: coefficients against the radius, all learned in the same pass.

coefficients = np.array([model.coef_ for model in search.estimators_])
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for values, name in zip(coefficients.T, data.feature_names, strict=True):
    axes.semilogx(search.radii_, values, label=name)
axes.axvline(search.best_radius_, color="#d1495b", linestyle=":")
axes.set(xlabel="radius", ylabel="coefficient")
axes.legend(frameon=False, fontsize="small", ncols=2)

# %%
# The best model is an estimator like any other, with the history of its coefficients.

ofw.plots.plot_path(search.best_estimator_, feature_names=data.feature_names)
plt.show()
