"""Models of a matrix that learn side by side from single entries: what they are made of.

Everything is in standard units: predictions less their centre, divided by a unit. For regressions
these are mean and standard deviation of the values; for other losses the centre is the prediction
that belongs to the mean, and the unit is 1.

The factors of all models lie next to each other, each padded to whole tiles, with at least two
columns beside those in use, which panels of features need for bias and target.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numba import njit

from .._typing import Array
from .entries import BERNOULLI, CORRENTROPY, EXPONENTIAL, LOGISTIC, POISSON, SIGMOID
from .lists import UNCOUNTED
from .ridge import PANEL, WIDTH
from .rows import _error, _expit, row_curvature, row_slope

__all__ = [
    "LASTING",
    "MEAN",
    "NEWEST",
    "SQUARES",
    "WEIGHT",
    "Mixture",
    "Models",
    "Side",
    "Sums",
    "Workspace",
    "centre",
    "clear_sums",
    "curvature_of",
    "has_sums",
    "highest",
    "largest_curvature",
    "new_mixture",
    "new_moments",
    "new_sums",
    "new_workspace",
    "note",
    "ridge_unit",
    "slope_of",
    "start_factors",
    "typical_curvature",
    "unit",
    "weighted_gram",
    "width_of",
]

#: Two columns beside the factors: the bias's feature, which is 1, and the target.
BESIDE = 2
#: What all models share: the weight of the values, their mean, the squares about it, the range, ...
WEIGHT, MEAN, SQUARES, LEAST, LARGEST = range(5)
#: ... what a new observation weighs, and how many of them weigh as much as a long past. Where old
#: ones do not fade that is 1, and infinite. Else weights grow: counts, and constants that are added
#: to them, are in units of the newest one's.
NEWEST, LASTING = 5, 6
#: The mixture begins as the mean of the models, as if so many errors had spoken for that ...
MODELS_PRIOR = 100.0
#: ... and the memories with nothing, as if so many had.
MEMORY_PRIOR = 50.0
#: Ridges were chosen for ratings. The dispersion of labels is 1 by definition, but the ridges suit
#: them if it is taken to be OF_LABELS, or OF_SIGMOID with the sigmoid loss.
OF_LABELS, OF_SIGMOID = 2.0, 0.25
#: The dispersion of counts and times is taken to be this at least: all may be equal.
LEAST_DISPERSION = 1e-3
#: A label is taken to be at least so frequent: one of a huge weight would leave none to the other.
RAREST = 1e-9
#: Factors of columns begin with numbers of about this size, in standard units; those of rows are 0.
START = 0.1
#: Beyond this a parabola that touches exp is too narrow to compute with.
STEEPEST = 30.0
#: A list of so many entries has running sums.
LONG = 1024


class Side(NamedTuple):
    """All rows, or all columns, in all models."""

    factors: Array  # (n, models * width)
    offsets: Array  # (n, models): what is added to the product; those of rows include the mean
    memory: Array  # (n,): the average of the latest errors of the mixture


class Sums(NamedTuple):
    """The normal equations of long lists, in all models: those in use, and those made anew."""

    number: Array  # (n,): which sums are those of a list, counted from 1; 0 if it is not long
    equations: Array  # (capacity, 2, models, width, width)
    added: Array  # (capacity, 2): how many entries of the list are in each
    used: Array  # one number: how many lists have sums


class Mixture(NamedTuple):
    """Least squares of values on predictions: those of the models, and both memories."""

    weights: Array  # (models + 2,)
    spread: Array  # the inverse of the matrix of the normal equations
    image: Array  # space for a product with it


class Models(NamedTuple):
    """Models that learn side by side."""

    loss: tuple[int, float] | None  # the kind and parameter of kernels; None: squares
    rank: int
    rows: Side
    columns: Side
    row_sums: Sums
    column_sums: Sums
    ridges: Array  # (models, 3): a and b of a + b n, and that of the bias
    mixture: Mixture


class Workspace(NamedTuple):
    """Memory for one regression, and for the predictions of one event."""

    left: Array
    right: Array
    normal: Array
    scaled: Array
    solution: Array
    current: Array
    predicted: Array


def width_of(rank: int) -> int:
    """Return how many columns the factors of a model of this rank take, in whole tiles."""
    return -(-(rank + BESIDE) // WIDTH) * WIDTH


def new_sums(n: int, capacity: int, models: int, width: int) -> Sums:
    """Return sums of n lists, none of them long so far, with memory for so many that will be."""
    return Sums(
        np.zeros(n, np.int64),
        np.zeros((capacity, 2, models, width, width)),
        np.zeros((capacity, 2), np.int64),
        np.zeros(1, np.int64),
    )


def new_moments() -> Array:
    """Return the moments of no values."""
    return np.array([0.0, 0.0, 0.0, np.inf, -np.inf, 1.0, np.inf])


def new_mixture(models: int) -> Mixture:
    """Return the mean of all models. That of one model is fixed."""
    weights, spread = np.zeros(models + 2), np.zeros(models + 2)
    weights[:models] = 1.0 / models
    spread[:models] = 1.0 / MODELS_PRIOR if models > 1 else 0.0
    spread[models:] = 1.0 / MEMORY_PRIOR
    return Mixture(weights, np.diag(spread), np.zeros(models + 2))


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
        np.zeros(width),
        np.zeros(count + 2),
    )


# Units --------------------------------------------------------------------------------------------


@njit(cache=True, **UNCOUNTED)
def note(moments, y, w):
    """Add a value to the moments; one without weight counts for nothing."""
    if w == 0.0:
        return
    moments[WEIGHT] += w
    distance = y - moments[MEAN]
    moments[MEAN] += distance * w / moments[WEIGHT]
    moments[SQUARES] += w * distance * (y - moments[MEAN])
    moments[LEAST] = min(moments[LEAST], y)
    moments[LARGEST] = max(moments[LARGEST], y)


@njit(cache=True, **UNCOUNTED)
def unit(loss, moments):
    """Return what predictions are measured in.

    That is the standard deviation of the values in a regression, 1 while they do not differ.
    """
    if loss is None:
        variance = moments[SQUARES] / moments[WEIGHT] if moments[WEIGHT] > 0.0 else 0.0
        return sqrt(variance) if variance > 0.0 else 1.0
    kind, parameter = loss
    return sqrt(parameter) if kind == CORRENTROPY else 1.0


@njit(cache=True, **UNCOUNTED)
def centre(loss, moments, biased):
    """Return the prediction that fits the mean of the values best; 0 without biases."""
    n, mean, one = moments[WEIGHT], moments[MEAN], moments[NEWEST]
    if not biased or n == 0.0:
        return 0.0
    if loss is None:
        return mean
    # ``loss`` is a pair from here on: numba leaves out what its type rules out.
    kind = loss[0]
    if kind == SIGMOID:
        return 0.0
    if kind == CORRENTROPY:
        return mean
    if kind in (BERNOULLI, LOGISTIC):
        share = mean if kind == BERNOULLI else 0.5 * (mean + 1.0)
        share = (share * n + 0.5 * one) / (n + one)
        share = min(max(share, RAREST), 1.0 - RAREST)  # never 0 or 1
        return log(share / (1.0 - share))
    mean = max((mean * n + 0.5 * one) / (n + one), 1e-12)
    return log(mean) if kind == POISSON else -1.0 / mean


@njit(cache=True, **UNCOUNTED)
def highest(loss):
    """Return the largest prediction: of counts, that beyond which all parabolas are the same."""
    return STEEPEST if loss is not None and loss[0] == POISSON else np.inf


@njit(cache=True, **UNCOUNTED)
def slope_of(loss, z, y):
    """Return the derivative of the loss at z."""
    if loss is None:
        return z - y
    if loss[0] == POISSON:
        z, y = min(z, STEEPEST), min(y, exp(STEEPEST))
    return row_slope(loss[0], loss[1], z, y, 1.0)


@njit(cache=True, **UNCOUNTED)
def curvature_of(loss, z, y):
    """Return a curvature >= 0 of the loss for a parabola: phi'' itself where it is convex."""
    if loss is None:
        return 1.0
    kind, parameter = loss
    if kind == SIGMOID:
        p, q = _expit(-parameter * y * z), _expit(parameter * y * z)
        return parameter * parameter * p * q * max(abs(q - p), 0.25)
    if kind == CORRENTROPY:
        e = _error(parameter, z, y)
        return exp(-0.5 * e * e) / parameter
    return row_curvature(kind, parameter, z, y)


@njit(cache=True, **UNCOUNTED)
def largest_curvature(loss, z, y):
    """Return the largest curvature between z and where the loss of y is lowest.

    With it a step does not go too far where the curvature grows on the way: that of counts.
    """
    if loss is not None and loss[0] == POISSON:
        return exp(min(max(z, log(max(y, 0.5))), STEEPEST))
    return curvature_of(loss, z, y)


@njit(cache=True, **UNCOUNTED)
def typical_curvature(loss, at, unit):
    """Return the curvature at the centre, in standard units."""
    return unit * unit * curvature_of(loss, at, at)


@njit(cache=True, **UNCOUNTED)
def ridge_unit(loss, at, moments):
    """Return what a ridge of 1 is worth: the typical curvature times the dispersion of the values.

    That is their variance, compared with what the loss expects of values with this mean.
    """
    if loss is None:
        return 1.0
    kind, n, mean = loss[0], moments[WEIGHT], moments[MEAN]
    worth = typical_curvature(loss, at, unit(loss, moments))
    if kind in (POISSON, EXPONENTIAL) and n > 0.0 and mean > 0.0:
        expected = mean if kind == POISSON else mean * mean
        return worth * max(moments[SQUARES] / n / expected, LEAST_DISPERSION)
    if kind in (BERNOULLI, LOGISTIC):
        return worth * OF_LABELS
    return worth * OF_SIGMOID if kind == SIGMOID else worth


# Sums of long lists -------------------------------------------------------------------------------


@njit(cache=True, **UNCOUNTED)
def has_sums(sums, i, length):
    """Let a list of this length have sums, if it is long; False if there is no memory for them."""
    if length < LONG or sums.number[i] > 0:
        return True
    if sums.used[0] == len(sums.added):
        return False
    sums.used[0] += 1
    sums.number[i] = sums.used[0]
    return True


def clear_sums(sums: Sums, which: Array) -> None:
    """Let the sums of some lists be made anew when these are solved: entries have left them."""
    at = sums.number[which]
    at = at[at > 0] - 1
    sums.equations[at], sums.added[at] = 0.0, 0


@njit(cache=True, **UNCOUNTED)
def start_factors(factors, models, from_rank, to_rank, which):
    """Fill some factors of columns that have their first entry with small numbers, in all models.

    They depend on column, model and factor alone: a hash of these. Without entries factors are 0.
    """
    width = factors.shape[1] // models
    for i in which:
        for m in range(models):
            for p in range(from_rank, to_rank):
                x = (np.uint64(i) << np.uint64(20)) + np.uint64((m << 16) + p + 1)
                x *= np.uint64(0x9E3779B97F4A7C15)
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                x ^= x >> np.uint64(31)
                share = np.float64(x >> np.uint64(11)) / 9007199254740992.0
                factors[i, m * width + p] = START * (2.0 * share - 1.0) * sqrt(3.0)


@njit(cache=True)
def weighted_gram(factors, m, rank, length, ridges):
    """Return the sum of ridge f f' over lists with entries, with f their factors in model m."""
    first = m * (factors.shape[1] // len(ridges))
    gram = np.zeros((rank, rank))
    for i in range(len(factors)):
        if length[i] > 0:
            ridge = ridges[m, 0] + ridges[m, 1] * length[i]
            for p in range(rank):
                x = ridge * np.float64(factors[i, first + p])
                for q in range(rank):
                    gram[p, q] += x * np.float64(factors[i, first + q])
    return gram
