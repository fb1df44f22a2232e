"""Single events of matrix completion: predict, note, and solve the event's own row and column.

Everything is in standard units: values less the mean, divided by their standard deviation. Factors
are padded to whole tiles, with at least two columns beside those in use, which panels of features
need for the bias and the target.

Several models with other ridges learn side by side from the same lists. Their rows and columns are
one after another in the same arrays, ``stride`` apart.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numba import njit

from .._typing import Array
from .lists import append, has_space
from .ridge import PANEL, WIDTH, _add_tile, _eliminate, _scale, _substitute

__all__ = [
    "BESIDE",
    "Models",
    "Side",
    "Workspace",
    "learn_events",
    "new_moments",
    "new_workspace",
    "of_memories",
    "solve_lists",
    "standard",
    "start_factors",
]

#: Two columns beside the factors: the bias's feature, which is 1, and the target.
BESIDE = 2


class Side(NamedTuple):
    """The rows of all models, or the columns."""

    factors: Array  # (models * stride, rank and at least BESIDE columns more)
    offsets: Array  # what is added to the product of the factors; for rows with the mean
    memory: Array  # the average of its latest errors


class Models(NamedTuple):
    """Models that learn side by side: each has factors, offsets and memories of its own."""

    rank: int
    rows: Side
    columns: Side
    ridges: Array  # (models, 3): a and b of a + b n, and that of the bias
    recent: Array  # (models, 7): sums over errors and memories, their number, squared errors
    playing: Array  # the models that have not left the race


class Workspace(NamedTuple):
    """Memory for one regression."""

    left: Array
    right: Array
    normal: Array
    scaled: Array
    solution: Array


def new_workspace(width: int, dtype: np.dtype) -> Workspace:
    """Return memory for regressions of this width."""
    panels = np.zeros((PANEL, width), dtype), np.zeros((PANEL, width), dtype)
    return Workspace(*panels, np.zeros((width, width)), np.zeros((width, width)), np.zeros(width))


#: What all models share: the weight of the values, their mean, the squares about it, and the range.
WEIGHT, MEAN, SQUARES, LEAST, LARGEST = range(5)
#: The sums of a model's race: of memories of rows and columns (squares, products) and errors.
ROW_ROW, ROW_COLUMN, COLUMN_COLUMN, ROW_ERROR, COLUMN_ERROR, NUMBER, SQUARED = range(7)
#: As if so many errors had been seen for which the memories were of no use.
CAUTION = 50.0


def new_moments() -> Array:
    """Return the moments of no values."""
    return np.array([0.0, 0.0, 0.0, np.inf, -np.inf])


@njit(cache=True)
def standard(moments):
    """Return the standard deviation of the values; 1 while they do not differ."""
    spread = moments[SQUARES] / moments[WEIGHT] if moments[WEIGHT] > 0.0 else 0.0
    return sqrt(spread) if spread > 0.0 else 1.0


@njit(cache=True)
def _note(moments, y, w):
    """Add a value to the moments."""
    moments[WEIGHT] += w
    distance = y - moments[MEAN]
    moments[MEAN] += distance * w / moments[WEIGHT]
    moments[SQUARES] += w * distance * (y - moments[MEAN])
    moments[LEAST] = min(moments[LEAST], y)
    moments[LARGEST] = max(moments[LARGEST], y)


@njit(inline="always")
def _fill(work, rank, lists, other, base, mean, unit, start, n):
    """Fill the panels with the features of n entries: factors, 1 and the target."""
    one, width = np.uint64(1), np.uint64(other.factors.shape[1])
    bias, target = np.uint64(rank), np.uint64(rank + 1)
    full = work.left.dtype.type(1)
    weighted = len(lists.weight) > 0
    q = np.uint64(0)
    while q < n:
        k = start + q
        j = base + np.uint64(lists.other[k])
        w = lists.weight[k] if weighted else full
        b = np.uint64(0)
        while b < width:
            _scale(work.left, q, full, other.factors, j, b)
            _scale(work.right, q, w, other.factors, j, b)
            b += np.uint64(WIDTH)
        work.left[q, bias] = full
        work.right[q, bias] = w
        work.right[q, target] = w * ((lists.value[k] - mean - other.offsets[j]) * unit)
        q += one


@njit(cache=True, fastmath={"contract"})
def _solve(rank, i, lists, own, own_base, other, other_base, mean, sigma, ridge, biased, work):
    """Solve the ridge regression of list i, exactly, on everything in it."""
    normal, width = work.normal, np.uint64(other.factors.shape[1])
    unknowns, side = np.uint64(rank + 1), np.uint64(WIDTH)
    normal[:] = 0.0
    start = np.uint64(lists.start[i])
    end, unit = start + np.uint64(lists.length[i]), 1.0 / sigma
    while start < end:
        n = min(end - start, np.uint64(PANEL))
        _fill(work, rank, lists, other, other_base, mean, unit, start, n)
        a = np.uint64(0)
        while a < unknowns:
            b = a
            while b < width:
                _add_tile(normal, work.left, work.right, n, a, b)
                b += side
            a += side
        start += n
    weight = normal[rank, rank]
    penalty = ridge[0] + ridge[1] * weight
    for p in range(rank):
        normal[p, p] += penalty
    normal[rank, rank] += ridge[2]
    if not biased:
        for p in range(rank):
            normal[p, rank] = 0.0
        normal[rank, rank], normal[rank, rank + 1] = 1.0, 0.0
    _eliminate(normal, work.scaled, unknowns, width)
    _substitute(normal, unknowns, work.solution)
    for p in range(rank):
        own.factors[own_base + i, p] = work.solution[p]
    own.offsets[own_base + i] = mean + sigma * work.solution[rank]


@njit(cache=True, fastmath={"contract", "reassoc"})
def _product(rank, rows, i, columns, j):
    total = rows.dtype.type(0)
    for p in range(rank):
        total += rows[i, p] * columns[j, p]
    return np.float64(total)


@njit(cache=True)
def of_memories(recent):
    """Return the weights of a row's and a column's memory: a regression on the errors so far."""
    caution = 1.0 + CAUTION / max(recent[NUMBER], 1.0)
    rows, columns = recent[ROW_ROW] * caution, recent[COLUMN_COLUMN] * caution
    both = recent[ROW_COLUMN]
    determinant = rows * columns - both * both
    if not determinant > 0.0:
        return 0.0, 0.0
    return (
        (columns * recent[ROW_ERROR] - both * recent[COLUMN_ERROR]) / determinant,
        (rows * recent[COLUMN_ERROR] - both * recent[ROW_ERROR]) / determinant,
    )


@njit(cache=True)
def _meet(m, i, j, y, models, strides, moments, mean, seen, clipped, rate):
    """Return what model m predicts for an entry, then let its memories learn from the error."""
    rows, columns, recent = models.rows, models.columns, models.recent[m]
    at_row, at_column = m * strides[0] + i, m * strides[1] + j
    z = np.float64(rows.offsets[at_row]) if seen else mean
    z += np.float64(columns.offsets[at_column])
    z += standard(moments) * _product(models.rank, rows.factors, at_row, columns.factors, at_column)
    row, column = np.float64(rows.memory[at_row]), np.float64(columns.memory[at_column])
    of_row, of_column = of_memories(recent)
    if moments[WEIGHT] == 0.0:
        return z  # nothing is known yet, so nothing is learned from the error
    whole = z + of_row * row + of_column * column
    if clipped:
        whole = min(max(whole, moments[LEAST]), moments[LARGEST])
    error = y - z
    recent[ROW_ROW] += row * row
    recent[ROW_COLUMN] += row * column
    recent[COLUMN_COLUMN] += column * column
    recent[ROW_ERROR] += row * error
    recent[COLUMN_ERROR] += column * error
    recent[NUMBER] += 1.0
    recent[SQUARED] += (y - whole) * (y - whole)
    rows.memory[at_row] = row + rate * (error - row)
    columns.memory[at_column] = column + rate * (error - column)
    return whole


@njit(cache=True)
def _meet_all(i, j, y, lists, models, strides, moments, biased, clipped, rate):
    """Return what the best model so far predicts for an entry, and let all meet it."""
    mean = moments[MEAN] if biased else 0.0
    seen, best, answer = lists.length[i] > 0, np.inf, 0.0
    for m in models.playing:
        before = models.recent[m, SQUARED]
        whole = _meet(m, i, j, y, models, strides, moments, mean, seen, clipped, rate)
        if before < best:
            best, answer = before, whole
    return answer


@njit(cache=True, nogil=True)
def learn_events(
    first, rows, cols, y, w, by_row, by_column, models, strides, moments, biased, clipped, rate,
    solving, work, out,
):  # fmt: skip
    """Learn events one after another; return how many, fewer if the lists need more memory.

    Each is predicted into ``out`` before it is learned: appended to the lists of its row and its
    column, whose regressions are then solved, the row first (if ``solving``).
    """
    for t in range(first, len(y)):
        i, j = rows[t], cols[t]
        if not (has_space(by_row, i) and has_space(by_column, j)):
            return t
        weight = w[t] if len(w) else 1.0
        out[t] = _meet_all(i, j, y[t], by_row, models, strides, moments, biased, clipped, rate)
        _note(moments, y[t], weight)
        append(by_row, i, j, y[t], weight)
        append(by_column, j, i, y[t], weight)
        if solving:
            for m in models.playing:
                _solve_row(m, i, by_row, models, strides, moments, biased, work)
                _solve_column(m, j, by_column, models, strides, moments, biased, work)
    return len(y)


@njit(cache=True)
def _solve_row(m, i, lists, models, strides, moments, biased, work):
    mean = moments[MEAN] if biased else 0.0
    bases = m * strides[0], np.uint64(m * strides[1])
    _solve(
        models.rank, i, lists, models.rows, bases[0], models.columns, bases[1], mean,
        standard(moments), models.ridges[m], biased, work,
    )  # fmt: skip


@njit(cache=True)
def _solve_column(m, j, lists, models, strides, moments, biased, work):
    bases = m * strides[1], np.uint64(m * strides[0])
    _solve(
        models.rank, j, lists, models.columns, bases[0], models.rows, bases[1], 0.0,
        standard(moments), models.ridges[m], biased, work,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def solve_lists(
    from_block, to_block, blocks, which, of_rows, lists, models, strides, moments, biased
):
    """Solve the regressions of the lists ``which``: of rows, or of columns."""
    width = models.rows.factors.shape[1]
    dtype = models.rows.factors.dtype
    work = Workspace(
        np.zeros((PANEL, width), dtype),
        np.zeros((PANEL, width), dtype),
        np.zeros((width, width)),
        np.zeros((width, width)),
        np.zeros(width),
    )
    for block in range(from_block, to_block):
        for k in range(blocks[block], blocks[block + 1]):
            i = which[k]
            if lists.length[i] > 0:
                for m in models.playing:
                    if of_rows:
                        _solve_row(m, i, lists, models, strides, moments, biased, work)
                    else:
                        _solve_column(m, i, lists, models, strides, moments, biased, work)


@njit(cache=True)
def start_factors(factors, rank, first, last, size):
    """Fill rows with numbers of this size that depend on their index alone: a hash of it."""
    for i in range(first, last):
        for p in range(rank):
            x = np.uint64(i) * np.uint64(rank) + np.uint64(p) + np.uint64(1)
            x *= np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
            share = np.float64(x >> np.uint64(11)) / 9007199254740992.0
            factors[i, p] = size * (2.0 * share - 1.0) * sqrt(3.0)
