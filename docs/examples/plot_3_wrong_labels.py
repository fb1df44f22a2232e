"""
When a quarter of the labels is wrong
=====================================

The logistic loss pays for a wrong label the more, the surer the model is of the right one; the
sigmoid loss pays 1 at most. Here is what that does as more and more labels are flipped.
"""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw

rng = np.random.default_rng(0)
weights = np.zeros(100)
weights[:5] = 3.0, -2.0, 2.0, -1.0, 1.0
X, X_test = rng.standard_normal((2, 4000, 100))
y, y_test = np.sign(X @ weights), np.sign(X_test @ weights)

flips = np.array([0.0, 0.1, 0.2, 0.25, 0.3, 0.35])
radii = {"sigmoid": 1.0, "logistic": 10.0}  # the sigmoid sees ten times the margin
wrong = {loss: [] for loss in radii}
for share in flips:
    spoilt = np.where(rng.random(y.size) < share, -y, y)
    for loss, radius in radii.items():
        model = ofw.FrankWolfeClassifier(radius=radius, loss=loss).fit(X, spoilt)
        wrong[loss].append(100 * (1 - model.score(X_test, y_test)))

# %%
# Errors on test rows whose labels are right:

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for loss, color in ("logistic", "#c98a1b"), ("sigmoid", "#1f5fa8"):
    axes.plot(100 * flips, wrong[loss], "o-", color=color, label=loss)
axes.set(xlabel="labels flipped, percent", ylabel="test errors, percent", ylim=(0, None))
axes.legend(frameon=False)

# %%
# The two losses of a row, by its margin (label times prediction). A row far on the wrong side, as
# a flipped one often is, pulls the logistic model with full force and the sigmoid one hardly.

margin = np.linspace(-3, 3, 200)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(margin, ofw.losses.Logistic().value(margin, 1.0), color="#c98a1b", label="logistic")
axes.plot(margin, ofw.losses.Sigmoid(2.0).value(margin, 1.0), color="#1f5fa8", label="sigmoid")
axes.set(xlabel="margin", ylabel="loss")
axes.legend(frameon=False)
plt.show()
