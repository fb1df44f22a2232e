"""
An endless stream in bounded memory
===================================

Most losses need the rows of the past. ``past="reservoir"`` keeps a uniform random sample of all
rows, ``past="recent"`` the newest: the first is steadier, the second follows data that change.
"""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw

before, after = np.zeros((2, 50))
before[:3], after[:3] = (1.0, -1.0, 1.0), (1.0, 1.0, -1.0)


def batches(seed):
    """Yield 300 batches of 20 rows; the rule changes after the first 150."""
    rng = np.random.default_rng(seed)
    for t in range(300):
        X = rng.standard_normal((20, 50))
        yield X, np.sign(X @ (before if t < 150 else after) + 0.5 * rng.standard_normal(20))


errors = {}
for past, size in ("all", None), ("reservoir", 600), ("recent", 600):
    model = ofw.FrankWolfeClassifier(
        radius=5.0, loss="logistic", past=past, max_past=size, random_state=0
    )
    wrong = []
    for X, y in batches(seed=0):
        if wrong or hasattr(model, "coef_"):
            wrong.append(np.mean(model.predict(X) != y))
        model.partial_fit(X, y, classes=[-1, 1])
    name = past if size is None else f"{past}, {size} rows"
    errors[name] = 100 * np.convolve(wrong, np.ones(20) / 20, mode="valid")
    print(f"{name:20} {model.objective_.n_kept:5} rows kept, gap {model.gap_:.4f}")

# %%
# Each batch is predicted before it is learned. Until the rule changes, 600 rows serve almost as
# well as all 3,000.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), color in zip(errors.items(), ("0.5", "#1f5fa8", "#d1495b"), strict=True):
    axes.plot(np.arange(20, 20 + values.size), values, color=color, label=name)
axes.axvline(150, color="black", linestyle=":", linewidth=1)
axes.annotate("the rule changes", (150, 5), (-8, 0), textcoords="offset points", ha="right")
axes.set(xlabel="batch", ylabel="errors, percent of 20 batches", ylim=(0, None))
axes.legend(frameon=False)
plt.show()
