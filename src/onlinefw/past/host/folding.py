"""Rows that are not in the models: solved as theirs are, and stored nowhere."""

from __future__ import annotations

import numpy as np

from ..._typing import Array
from ...kernels import local_models as kernels
from ...kernels.lists import unpacked
from ...kernels.local_ridge import solve_lists
from .local_models import LocalModels

__all__ = ["contributions", "fold_in"]


def fold_in(models: LocalModels, columns: Array, values: Array) -> tuple[Array, float]:
    """Return the factors and the offset of a row with these observations, each as a new one.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.host.entry_lists import EntryLists
    >>> from onlinefw.past.host.folding import fold_in
    >>> from onlinefw.past.host.local_models import LocalModels
    >>> models = LocalModels(EntryLists((2, 2), np.dtype(float)), 1, [[1.0, 0.0, 1.0]], True, True)
    >>> _ = models.learn(np.array([0, 1, 0]), np.array([0, 0, 1]), np.array([3.0, 5.0, 4.0]))
    >>> bool(fold_in(models, np.array([0]), np.array([5.0]))[1] > models.mean)
    True
    """
    own, n, one = models.models, len(columns), float(models.moments[kernels.NEWEST])
    row = models._empty_side(1, len(own.ridges))
    if n:
        weights = np.full(n, one, models.dtype) if one != 1.0 else np.empty(0, models.dtype)
        lists = unpacked(
            np.array([n]), columns.astype(np.uint32), values.astype(models.dtype), weights
        )
        sums = kernels.new_sums(1, 0, len(own.ridges), models._width)
        alone = own._replace(rows=row, row_sums=sums)
        blocks, which = np.array([0, 1]), np.array([0])
        solve_lists(0, 1, blocks, which, True, False, lists, alone, models.moments, models.biased)
    beyond = (row.offsets[0].astype(float) - models.mean) @ models.weights if n else 0.0
    return row.factors[0], models.mean + float(beyond)


def contributions(
    models: LocalModels, columns: Array, values: Array, weights: Array, column: int
) -> Array:
    """Return what each observation of a row adds to the prediction of a column (square loss).

    Bias and factors of a row are A^-1 times a sum over its observations, in each model.
    """
    own, one = models.models, float(models.moments[kernels.NEWEST])
    rank, found = own.rank, np.zeros(len(columns))
    for m, (share, (a, b, of_bias)) in enumerate(zip(models.weights, own.ridges, strict=True)):
        its = slice(m * models._width, m * models._width + rank)
        at = np.append(columns, column)
        features = own.columns.factors[at, its].astype(float)
        penalty = np.full(rank, a * one + b * weights.sum())
        if models.biased:
            features = np.column_stack((features, np.ones(len(features))))
            penalty = np.append(penalty, of_bias * one)
        own_features, target = features[:-1], values - models.mean - own.columns.offsets[columns, m]
        normal = own_features.T @ (weights[:, None] * own_features) + np.diag(penalty)
        parts = np.linalg.solve(normal, ((weights * target)[:, None] * own_features).T).T
        found += share * (parts @ features[-1])  # sigma of the target and of the factors cancel
    return found
