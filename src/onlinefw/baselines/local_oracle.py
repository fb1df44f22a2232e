"""Linear minimisation near a point: the local oracle of Garber and Hazan, for the l1 ball."""

from __future__ import annotations

import numpy as np

from .._typing import Array

__all__ = ["local_minimiser"]


def local_minimiser(x: Array, direction: Array, distance: float, radius: float) -> Array:
    """Return the p that minimises <p, direction> with ||p||_1 <= radius, ||p - x||_1 <= distance.

    With d = sqrt(n) r this is a *local linear optimisation oracle* of parameter rho = sqrt(n): <p,
    direction> is at most the product of any feasible point within the Euclidean distance r of x
    (their l1 distance is at most d), and ||p - x||_2 <= ||p - x||_1 <= rho r.

    Nothing is gained faster, per unit of length, than by weight on the coordinate with the largest
    entry of the direction. So all of ``distance`` goes there, except where the ball is full: what
    is then missing is taken from the weights of x that pay least, as long as they last.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.baselines.local_oracle import local_minimiser
    >>> local_minimiser(np.array([0.5, 0.5]), np.array([1.0, -2.0]), 0.4, radius=1.0)
    array([0.3, 0.7])
    """
    best = int(np.abs(direction).argmax())
    weights = np.abs(x)
    slack = max(0.0, radius - float(weights.sum()))
    p = x.copy()
    taken, wanted = 0.0, max(0.0, (distance - slack) / 2.0)
    used = np.flatnonzero(weights)
    for i in used[np.argsort(-np.sign(x[used]) * direction[used])]:  # what pays least comes first
        part = min(float(weights[i]), wanted - taken)
        p[i] -= np.sign(x[i]) * part
        taken += part
    p[best] -= np.sign(direction[best]) * min(distance - taken, slack + taken)
    return p
