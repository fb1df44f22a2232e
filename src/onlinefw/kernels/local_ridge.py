"""Single events of matrix completion: predict, note, and solve the event's own row and column.

Everything is in standard units: values less the mean, divided by their standard deviation.

Several models with other ridges learn side by side from the same lists, and what is predicted is
their mixture. The factors of all of them lie next to each other, each padded to whole tiles, with
at least two columns beside those in use, which panels of features need for bias and target.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numba import njit

from .._typing import Array
from .lists import append, has_space
from .ridge import PANEL, WIDTH, add_tile, eliminate, scale_tile, substitute

__all__ = [
    "BESIDE",
    "MEAN",
    "Mixture",
    "Models",
    "Side",
    "Workspace",
    "learn_events",
    "new_mixture",
    "new_moments",
    "new_workspace",
    "remembered",
    "solve_lists",
    "standard",
    "start_factors",
]

#: Two columns beside the factors: the bias's feature, which is 1, and the target.
BESIDE = 2
#: What all models share: the weight of the values, their mean, the squares about it, and the range.
WEIGHT, MEAN, SQUARES, LEAST, LARGEST = range(5)
#: The mixture begins as the mean of the models, as if so many errors had spoken for that ...
MODELS_PRIOR = 100.0
#: ... and the memories with nothing, as if so many had.
MEMORY_PRIOR = 50.0
#: Errors are forgotten slowly: after n observations those of the last HORIZON + n / 4 count most.
HORIZON = 20_000.0
#: How fast the memory of a row's or column's errors forgets: the newest has this share.
RATE = 0.15


class Side(NamedTuple):
    """All rows, or all columns, in all models."""

    factors: Array  # (n, models * width)
    offsets: Array  # (n, models): what is added to the product; in rows it has the mean
    memory: Array  # (n,): the average of the latest errors of the mixture


class Mixture(NamedTuple):
    """Least squares of values on predictions: those of the models, and both memories."""

    weights: Array  # (models + 2,)
    spread: Array  # the inverse of the matrix of the normal equations


class Models(NamedTuple):
    """Models that learn side by side."""

    rank: int
    rows: Side
    columns: Side
    ridges: Array  # (models, 3): a and b of a + b n, and that of the bias
    mixture: Mixture


class Workspace(NamedTuple):
    """Memory for one regression, and for the predictions of one event."""

    left: Array
    right: Array
    normal: Array
    scaled: Array
    solution: Array
    predicted: Array


def new_moments() -> Array:
    """Return the moments of no values."""
    return np.array([0.0, 0.0, 0.0, np.inf, -np.inf])


def new_mixture(models: int) -> Mixture:
    """Return the mean of all models. That of one model is fixed."""
    weights, spread = np.zeros(models + 2), np.zeros(models + 2)
    weights[:models] = 1.0 / models
    spread[:models] = 1.0 / MODELS_PRIOR if models > 1 else 0.0
    spread[models:] = 1.0 / MEMORY_PRIOR
    return Mixture(weights, np.diag(spread))


@njit(cache=True)
def new_workspace(models):
    """Return memory for these models."""
    count, width = len(models.ridges), models.rows.factors.shape[1] // len(models.ridges)
    dtype = models.rows.factors.dtype
    return Workspace(
        np.zeros((PANEL, width), dtype),
        np.zeros((PANEL, width), dtype),
        np.zeros((width, width)),
        np.zeros((width, width)),
        np.zeros(width),
        np.zeros(count + 2),
    )


@njit(cache=True)
def standard(moments):
    """Return the standard deviation of the values; 1 while they do not differ."""
    spread = moments[SQUARES] / moments[WEIGHT] if moments[WEIGHT] > 0.0 else 0.0
    return sqrt(spread) if spread > 0.0 else 1.0


def remembered(n: int) -> float:
    """Return the number of errors that count in the mixture after n: those forgotten do not.

    It grows by 1 - count / (HORIZON + n / 4) with an error, once there are HORIZON.
    """
    return min(float(n), 0.8 * HORIZON + 0.2 * n)


@njit(cache=True)
def _note(moments, y, w):
    """Add a value to the moments."""
    moments[WEIGHT] += w
    distance = y - moments[MEAN]
    moments[MEAN] += distance * w / moments[WEIGHT]
    moments[SQUARES] += w * distance * (y - moments[MEAN])
    moments[LEAST] = min(moments[LEAST], y)
    moments[LARGEST] = max(moments[LARGEST], y)


# Regressions --------------------------------------------------------------------------------------


@njit(inline="always")
def _fill(work, rank, m, lists, other, mean, unit, start, n):
    """Fill the panels with the features of n entries: factors, 1 and the target."""
    one, width = np.uint64(1), np.uint64(work.left.shape[1])
    bias, target, first = np.uint64(rank), np.uint64(rank + 1), np.uint64(m) * width
    full = work.left.dtype.type(1)
    weighted = len(lists.weight) > 0
    q = np.uint64(0)
    while q < n:
        k = start + q
        j = np.uint64(lists.other[k])
        w = lists.weight[k] if weighted else full
        b = np.uint64(0)
        while b < width:
            scale_tile(work.left, q, b, full, other.factors, j, first + b)
            scale_tile(work.right, q, b, w, other.factors, j, first + b)
            b += np.uint64(WIDTH)
        work.left[q, bias] = full
        work.right[q, bias] = w
        work.right[q, target] = w * ((lists.value[k] - mean - other.offsets[j, m]) * unit)
        q += one


@njit(cache=True, fastmath={"contract"})
def _solve(rank, m, i, lists, own, other, mean, sigma, ridge, biased, work):
    """Solve the ridge regression of list i in model m, exactly, on everything in it."""
    normal, width = work.normal, np.uint64(work.left.shape[1])
    unknowns, side = np.uint64(rank + 1), np.uint64(WIDTH)
    normal[:] = 0.0
    start = np.uint64(lists.start[i])
    end, unit = start + np.uint64(lists.length[i]), 1.0 / sigma
    while start < end:
        n = min(end - start, np.uint64(PANEL))
        _fill(work, rank, m, lists, other, mean, unit, start, n)
        a = np.uint64(0)
        while a < unknowns:
            b = a
            while b < width:
                add_tile(normal, work.left, work.right, n, a, b)
                b += side
            a += side
        start += n
    penalty = ridge[0] + ridge[1] * normal[rank, rank]  # that is the weight of the list
    for p in range(rank):
        normal[p, p] += penalty
    normal[rank, rank] += ridge[2]
    if not biased:
        for p in range(rank):
            normal[p, rank] = 0.0
        normal[rank, rank], normal[rank, rank + 1] = 1.0, 0.0
    eliminate(normal, work.scaled, unknowns, width)
    substitute(normal, unknowns, work.solution)
    first = m * work.left.shape[1]
    for p in range(rank):
        own.factors[i, first + p] = work.solution[p]
    own.offsets[i, m] = mean + sigma * work.solution[rank]


@njit(cache=True)
def _solve_row(m, i, lists, models, moments, biased, work):
    mean, sigma = moments[MEAN] if biased else 0.0, standard(moments)
    sides = models.rows, models.columns
    _solve(models.rank, m, i, lists, *sides, mean, sigma, models.ridges[m], biased, work)


@njit(cache=True)
def _solve_column(m, j, lists, models, moments, biased, work):
    sigma, sides = standard(moments), (models.columns, models.rows)
    _solve(models.rank, m, j, lists, *sides, 0.0, sigma, models.ridges[m], biased, work)


@njit(cache=True, nogil=True)
def solve_lists(from_block, to_block, blocks, which, of_rows, lists, models, moments, biased):
    """Solve the regressions of the lists ``which`` in all models: of rows, or of columns."""
    work = new_workspace(models)
    for block in range(from_block, to_block):
        for k in range(blocks[block], blocks[block + 1]):
            if lists.length[which[k]] > 0:
                for m in range(len(models.ridges)):
                    if of_rows:
                        _solve_row(m, which[k], lists, models, moments, biased, work)
                    else:
                        _solve_column(m, which[k], lists, models, moments, biased, work)


# Predictions --------------------------------------------------------------------------------------


@njit(cache=True, fastmath={"contract", "reassoc"})
def _product(rank, first, rows, i, columns, j):
    total = rows.dtype.type(0)
    for p in range(first, first + rank):
        total += rows[i, p] * columns[j, p]
    return np.float64(total)


@njit(cache=True)
def _predict(i, j, seen, models, moments, biased, out):
    """Write what each model and both memories say, in standard units; return the mixture's value.

    A row that was not seen yet has no bias.
    """
    rows, columns, count = models.rows, models.columns, len(models.ridges)
    width = rows.factors.shape[1] // count
    mean, sigma = moments[MEAN] if biased else 0.0, standard(moments)
    total = 0.0
    for m in range(count):
        z = np.float64(rows.offsets[i, m]) - mean if seen else 0.0
        z = (z + np.float64(columns.offsets[j, m])) / sigma
        out[m] = z + _product(models.rank, m * width, rows.factors, i, columns.factors, j)
        total += models.mixture.weights[m] * out[m]
    out[count] = rows.memory[i] / sigma
    out[count + 1] = columns.memory[j] / sigma
    total += models.mixture.weights[count] * out[count]
    total += models.mixture.weights[count + 1] * out[count + 1]
    return mean + sigma * total


@njit(cache=True)
def _mix(target, mixture, seen, x):
    """Let the mixture learn a value, for which x was predicted: recursive least squares."""
    weights, spread = mixture
    image, norm, error = np.dot(spread, x), 1.0, target
    for p in range(len(x)):
        norm += x[p] * image[p]
        error -= weights[p] * x[p]
    older = 1.0 + 1.0 / (HORIZON + 0.25 * seen) if seen > HORIZON else 1.0
    for p in range(len(x)):
        weights[p] += image[p] * (error / norm)
        for q in range(len(x)):
            spread[p, q] = (spread[p, q] - image[p] * image[q] / norm) * older


@njit(cache=True)
def _meet(i, j, y, lists, models, moments, biased, clipped, x):
    """Return what the mixture predicts for an entry, then let it and the memories learn."""
    value = _predict(i, j, lists.length[i] > 0, models, moments, biased, x)
    if moments[WEIGHT] == 0.0:
        return value  # nothing is known yet, so nothing is learned from the error
    sigma = standard(moments)
    target = (y - (moments[MEAN] if biased else 0.0)) / sigma
    error = target  # of the models, without memories
    for m in range(len(models.ridges)):
        error -= models.mixture.weights[m] * x[m]
    _mix(target, models.mixture, moments[WEIGHT], x)
    rows, columns = models.rows.memory, models.columns.memory
    rows[i] += RATE * (sigma * error - rows[i])
    columns[j] += RATE * (sigma * error - columns[j])
    return min(max(value, moments[LEAST]), moments[LARGEST]) if clipped else value


@njit(cache=True, nogil=True)
def learn_events(
    first, rows, cols, y, w, by_row, by_column, models, moments, biased, clipped, solving, work, out
):
    """Learn events one after another; return how many, fewer if the lists need more memory.

    Each is predicted into ``out`` before it is learned: appended to the lists of its row and its
    column, whose regressions are then solved, the row first (if ``solving``).
    """
    for t in range(first, len(y)):
        i, j = rows[t], cols[t]
        if not (has_space(by_row, i) and has_space(by_column, j)):
            return t
        weight = w[t] if len(w) else 1.0
        out[t] = _meet(i, j, y[t], by_row, models, moments, biased, clipped, work.predicted)
        _note(moments, y[t], weight)
        append(by_row, i, j, y[t], weight)
        append(by_column, j, i, y[t], weight)
        if solving:
            for m in range(len(models.ridges)):
                _solve_row(m, i, by_row, models, moments, biased, work)
                _solve_column(m, j, by_column, models, moments, biased, work)
    return len(y)


@njit(cache=True)
def start_factors(factors, models, rank, first, last, size):
    """Fill rows with numbers of this size that depend on model and index alone: a hash of both."""
    width = factors.shape[1] // models
    for i in range(first, last):
        for m in range(models):
            for p in range(rank):
                x = (np.uint64(i) << np.uint64(20)) + np.uint64(m * rank + p + 1)
                x *= np.uint64(0x9E3779B97F4A7C15)
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                x ^= x >> np.uint64(31)
                share = np.float64(x >> np.uint64(11)) / 9007199254740992.0
                factors[i, m * width + p] = size * (2.0 * share - 1.0) * sqrt(3.0)
