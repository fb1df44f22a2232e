"""One pass over a batch, for its checks."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def extent_of_entries(X, y):
    """Return the smallest index, the largest row and column, and the largest |y| (inf for NaN)."""
    low, row, col, most = X[0, 0], X[0, 0], X[0, 1], 0.0
    for k in range(len(X)):
        i, j = X[k, 0], X[k, 1]
        low = min(low, min(i, j))
        row, col = max(row, i), max(col, j)
        size = abs(y[k])
        if not size <= most:
            most = size if size == size else np.inf
    return low, row, col, most
