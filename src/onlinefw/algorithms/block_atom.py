"""Several singular pairs of the gradient in one Frank-Wolfe step."""

from __future__ import annotations

import numpy as np

from .._devices import namespace
from .._typing import Array
from ..atoms import LowRankAtom
from ..objectives import ObservedEntries
from ..objectives.entries_gradient import EntriesGradient

__all__ = ["block_atom"]


def block_atom(
    objective: ObservedEntries, gradient: EntriesGradient, radius: float, step: float, k: int
) -> LowRankAtom:
    """Return a point of the ball that spreads the step over the k best singular pairs.

    Each pair alone would be best for a step that is short enough. For one of length ``step`` the
    weights minimise the quadratic upper model without its cross terms,

        sum over p of -step w_p s_p + (step w_p)^2 c_p / 2,  w >= 0, sum w = radius,

    where c_p is the objective's curvature along pair p.
    """
    lefts, values, rights = zip(*gradient.more_pairs(k), strict=True)
    stack = namespace(lefts[0]).stack
    u, s, v = stack(lefts), np.array(values), stack(rights)
    smoothness = objective.loss.smoothness
    curvature = (smoothness if np.isfinite(smoothness) else 1.0) * objective.curvatures(u.T, v.T)
    weights = _water_fill(s, step * curvature, radius)
    used = weights > 0.0
    return LowRankAtom(u[used].T, -weights[used], v[used].T)


def _water_fill(gain: Array, slope: Array, total: float) -> Array:
    """Return w >= 0 with sum ``total`` and gain - slope w equal wherever w > 0.

    ``gain`` is in decreasing order.
    """
    inverse = 1.0 / np.maximum(slope, np.finfo(float).tiny)
    # With the first p pairs in use the common level is (sum gain/slope - total) / sum 1/slope.
    levels = (np.cumsum(gain * inverse) - total) / np.cumsum(inverse)
    used = int(np.flatnonzero(gain > levels)[-1]) + 1
    weights = np.zeros_like(gain)
    weights[:used] = (gain[:used] - levels[used - 1]) * inverse[:used]
    return np.maximum(weights, 0.0)
