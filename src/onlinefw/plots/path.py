"""Coefficients that enter and leave over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from .._validation import check_whole
from .frame import check_x, dress, fitted

__all__ = ["plot_path"]

STYLES = ("-", "--", ":", "-.")


def plot_path(
    estimator: Any, *, x: str = "t", top: int = 10, feature_names: Any = None, ax: Any = None
) -> Any:
    """Draw the coefficients over time, from the snapshots in ``path_`` to those of now.

    A line begins where its coefficient enters, and ends where it leaves.

    Parameters
    ----------
    estimator : FrankWolfeRegressor or FrankWolfeClassifier
        A fitted one.
    x : "t" or "seconds"
        Rounds, or seconds of learning.
    top : int
        How many coefficients get colours and names: the largest now, and if fewer are in use, those
        that were the largest before. All others are grey.
    feature_names : sequence of str, optional
        Names of the features; by default those of the data frame that was fitted, or x0, x1, ...
        With more than two classes a coefficient is called "class: feature".
    ax : matplotlib axes, optional
        Where to draw. A new figure by default.

    Returns
    -------
    matplotlib axes
        With a line for each named coefficient, from the largest to the smallest now.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> X = np.random.default_rng(0).standard_normal((500, 20))
    >>> model = ofw.FrankWolfeRegressor(radius=3.0, batch_size=10).fit(X, X[:, 0] - 2 * X[:, 1])
    >>> axes = ofw.plots.plot_path(model, top=2)
    >>> [line.get_label() for line in axes.lines]
    ['x0', 'x1']
    """
    from matplotlib.collections import LineCollection

    check_x(x)
    top = check_whole("top", top, 0)
    at, coefs = _snapshots(estimator, x)
    names = _names(estimator, feature_names)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(8, 4.2), layout="constrained")[1]

    used = np.unique(coefs.nonzero()[1])
    values = coefs[:, used].toarray()
    named, others = _ranked(values, top)
    values = _while_in_use(values)
    grey = [np.column_stack((at, values[:, k])) for k in others]
    ax.add_collection(LineCollection(grey, colors="0.8", linewidths=0.8))
    for n, k in enumerate(named):
        ax.plot(
            at,
            values[:, k],
            color=f"C{n % 10}",
            linestyle=STYLES[n // 10 % len(STYLES)],
            label=names(used[k]),
        )
    ax.autoscale_view()
    dress(ax, x, at, ylabel="coefficient")
    if named.size:
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _snapshots(estimator: Any, x: str) -> tuple[Array, Any]:
    """Return times and coefficients, the last as they are now."""
    from scipy import sparse

    path = fitted(estimator, "path_")
    if path["t"].size == 0:
        raise ValueError(
            "this model was fitted with path_size=0, which keeps no coefficients of the past; "
            "fit it with path_size=100"
        )
    now = estimator.history_[x][-1]
    coef = sparse.csr_array(np.reshape(estimator.coef_, (1, -1)))
    return np.append(path[x], now), sparse.vstack((path["coef"], coef), format="csr")


def _names(estimator: Any, feature_names: Any) -> Any:
    """Return a function from the index of a coefficient to its name."""
    n_features = estimator.n_features_in_
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is not None and len(feature_names) != n_features:
        raise ValueError(
            f"feature_names has {len(feature_names)} names, but there are {n_features} features"
        )
    several = np.size(estimator.coef_) > n_features

    def name(k: int) -> str:
        row, column = divmod(int(k), n_features)
        feature = f"x{column}" if feature_names is None else str(feature_names[column])
        return f"{estimator.classes_[row]}: {feature}" if several else feature

    return name


def _while_in_use(values: Array) -> Array:
    """Return the values with nan instead of zeros, except next to what is not zero."""
    used = np.pad(values != 0.0, ((1, 1), (0, 0)))
    return np.where(used[:-2] | used[1:-1] | used[2:], values, np.nan)


def _ranked(values: Array, top: int) -> tuple[Array, Array]:
    """Return the columns to name, from the largest to the smallest now, and the others."""
    size = np.abs(values)
    order = np.lexsort((-size.max(axis=0, initial=0.0), -size[-1]))
    named = order[:top]
    return named[np.argsort(-values[-1, named], kind="stable")], order[top:]
