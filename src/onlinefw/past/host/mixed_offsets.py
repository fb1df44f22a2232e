"""Offsets of several models and their weights: what a mixture of them adds, where it is needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._typing import Array

__all__ = ["MixedOffsets"]


class MixedOffsets(NamedTuple):
    """What a mixture of models adds in rows, or in columns.

    The weights change with every event, and so the offsets of all rows and columns. To compute
    them is left until they are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.host.mixed_offsets import MixedOffsets
    >>> of_models, seen = np.array([[3.0, 5.0], [0.0, 0.0]]), np.array([1, 0])
    >>> MixedOffsets(of_models, np.array([0.5, 0.5]), 3.0, seen).all(2, float)
    array([4., 3.])
    """

    of_models: Array  # (n, models)
    weights: Array
    mean: float  # what is added where nothing was seen
    seen: Array  # how much was

    def all(self, n: int, dtype: Any) -> Array:
        """Return those of the first n."""
        beyond = np.zeros(n)  # there may be fewer yet: the others have not been seen
        known = self.of_models[:n]
        seen = self.seen[: len(known)] > 0
        beyond[: len(known)][seen] = (known[seen] - self.mean) @ self.weights
        return (self.mean + beyond).astype(dtype)
