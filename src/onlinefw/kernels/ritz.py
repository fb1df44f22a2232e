"""The small dense algebra of a block of singular vectors, in one call."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def ritz_of_block(overlap, w, precision):
    """Return to_left, s, to_right and before, as :func:`onlinefw.linalg.ritz_pairs` says."""
    values, vectors = np.linalg.eigh(0.5 * (overlap + overlap.T))
    n, floor = len(values), max(precision * values[-1], 0.0)
    first = 0  # eigenvalues increase
    while first < n and not values[first] > floor:
        first += 1
    k = n - first
    to_left, to_right, s = np.empty((n, k)), np.empty((n, k)), np.empty(k)
    if k == 0:
        return to_left, s, to_right, 0.0
    for q in range(k):
        root = np.sqrt(values[first + q])
        for p in range(n):
            to_right[p, q] = vectors[p, first + q] / root
    right = np.dot(w, to_right)
    images = np.dot(right.T, right)
    squares, turn = np.linalg.eigh(0.5 * (images + images.T))
    for q in range(k):
        s[q] = np.sqrt(max(squares[k - 1 - q], np.finfo(np.float64).tiny))
        for p in range(n):
            total = 0.0
            for r in range(k):
                total += to_right[p, r] * turn[r, k - 1 - q]
            to_left[p, q] = total
    for q in range(k):
        for p in range(n):
            to_right[p, q] = to_left[p, q] / s[q]
    return to_left, s, to_right, np.sqrt(values[-1])
