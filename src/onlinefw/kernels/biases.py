"""Loops over the sums behind running means of rows and columns."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def add_observations(rows, cols, y, w, z, row_sums, col_sums, row_bias, mean, shrinkage):
    """Return new sums and biases, of rows and columns, with observations added.

    First those of columns, given the biases of rows; then those of rows, given the new ones of
    columns. An empty z is 0.
    """
    new_cols = _added(col_sums, cols, rows, row_bias, y, w, z)
    col_bias = shrunken_means(new_cols, mean, shrinkage)
    new_rows = _added(row_sums, rows, cols, col_bias, y, w, z)
    return new_rows, new_cols, shrunken_means(new_rows, mean, shrinkage), col_bias


@njit(cache=True)
def _added(sums, at, across, biases, y, w, z):
    """Return the sums (weight, values, what else explains them) with observations added.

    What else explains an observation is the bias of the other side, biases[across_k], and z_k.
    """
    if len(at) < sums.shape[1]:  # to turn them over would take longer
        return _add(sums.copy(), at, across, biases, y, w, z)
    # The three sums of a row side by side: one access to memory instead of three.
    turned = np.ascontiguousarray(sums.T)
    _add(turned.T, at, across, biases, y, w, z)
    return np.ascontiguousarray(turned.T)


@njit(cache=True)
def _add(sums, at, across, biases, y, w, z):
    for k in range(len(at)):
        i = at[k]
        sums[0, i] += w[k]
        sums[1, i] += w[k] * y[k]
        others = biases[across[k]]
        if len(z):
            others += z[k]
        sums[2, i] += w[k] * others
    return sums


@njit(cache=True)
def shrunken_means(sums, mean, shrinkage):
    """Return what mean and others leave over, as means shrunk towards 0; 0 without weight."""
    out = np.zeros(sums.shape[1])
    for i in range(len(out)):
        if sums[0, i] > 0.0:
            left = sums[1, i] - sums[0, i] * mean - sums[2, i]
            out[i] = left / (sums[0, i] + shrinkage)
    return out
