"""The duality gap and the loss of a fitted estimator over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Array
from .frame import check_x, dress, fitted

__all__ = ["plot_history"]

GAP, LOSS = "#1f5fa8", "#d1495b"
#: The line through the noisy losses is their mean over this last part of the rounds so far.
WINDOW = 0.25
#: A loss that falls by less than this factor is easier to read on a linear axis.
WIDE = 10.0


def plot_history(estimator: Any, *, x: str = "t", ax: Any = None) -> Array:
    """Draw the duality gap of an estimator, and the loss that it paid.

    The gap is on log axes, without rounds whose gap is zero to rounding. The loss is that of each
    batch before it was learned (faint) and its mean over the last quarter of the rounds so far;
    rounds without new data have none.

    Parameters
    ----------
    estimator : estimator, mapping or DataFrame
        A fitted ``FrankWolfeRegressor``, ``FrankWolfeClassifier`` or
        ``FrankWolfeMatrixCompletion``, or the ``history_`` of one.
    x : "t" or "seconds"
        Rounds, or seconds of learning.
    ax : pair of matplotlib axes, optional
        Where to draw: the gap on the first, the loss on the second. A new figure by default.

    Returns
    -------
    ndarray of two matplotlib axes
        The gap's and the loss's.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> X = np.random.default_rng(0).standard_normal((500, 20))
    >>> model = ofw.FrankWolfeRegressor(radius=2.0, batch_size=10).fit(X, X[:, 0])
    >>> gap, loss = ofw.plots.plot_history(model)
    >>> gap.get_ylabel(), loss.get_xlabel()
    ('duality gap', 'round t')
    """
    check_x(x)
    history = _columns(estimator)
    left, right = _pair(ax)
    at = history[x]
    _draw_gap(left, at, history)
    _draw_loss(right, at, history)
    dress(left, x, at, ylabel="duality gap")
    dress(right, x, at, ylabel="loss before learning")
    return np.array([left, right])


def _columns(source: Any) -> dict[str, Array]:
    """Return t, seconds, gap, gap_upper and loss of an estimator or of a table."""
    if not (isinstance(source, Mapping) or hasattr(source, "columns")):
        source = fitted(source, "history_")
    names = ("t", "seconds", "gap", "gap_upper", "loss")
    missing = [name for name in names if name not in source]
    if missing:
        raise ValueError(f"a history has the columns {', '.join(names)}; {missing[0]!r} is missing")
    return {name: np.asarray(source[name]) for name in names}


def _pair(ax: Any) -> Any:
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")[1]
    pair = np.ravel(np.asarray(ax, dtype=object))
    if pair.size != 2:
        raise ValueError(f"ax must be a pair of axes, for the gap and for the loss, got {ax!r}")
    return pair


def _draw_gap(axes: Any, at: Array, history: dict[str, Array]) -> None:
    gap, upper = history["gap"], history["gap_upper"]
    shown = gap > 0.0
    axes.plot(at[shown], gap[shown], color=GAP, linewidth=1.5, label="gap")
    # Matrix completion certifies now and then; O-AW steps by a larger gap than it certifies.
    certified = (upper > 0.0) & (upper != gap)
    if certified.any():
        axes.plot(
            at[certified], upper[certified], "o", color="black", markersize=2.5, label="certified"
        )
        axes.legend(frameon=False)
    if shown.any() or certified.any():
        axes.set_yscale("log")
    elif at.size and np.min(at) > 0.0:  # a log axis without data needs limits
        axes.set_xlim(0.5 * np.min(at), 2.0 * np.max(at))


def _draw_loss(axes: Any, at: Array, history: dict[str, Array]) -> None:
    paid = np.isfinite(history["loss"])
    at, t, loss = at[paid], history["t"][paid], history["loss"][paid]
    mean = running_mean(t, loss)
    axes.plot(at, loss, color=LOSS, linewidth=0.8, alpha=0.25, label="batch")
    axes.plot(at, mean, color=LOSS, linewidth=2, label="running mean")
    axes.legend(frameon=False)
    # The losses of some families may be negative.
    if loss.size and loss.min() > 0.0 and mean.max() >= WIDE * mean.min():
        axes.set_yscale("log")


def running_mean(t: Array, values: Array) -> Array:
    """Return the means over the last quarter of the rounds so far: steady in log t."""
    first = np.searchsorted(t, (1.0 - WINDOW) * t)
    last = np.arange(1, t.size + 1)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return (sums[last] - sums[first]) / (last - first)
