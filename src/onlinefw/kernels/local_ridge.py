"""Ridge regressions of single rows and columns, on everything that they have seen.

A regression reads all entries of its list, up to a length. A longer list has a running sum of its
normal equations: an entry is added with the factors that the other side has at that moment. Beside
it a new sum is made from the beginning, a piece with every regression, and replaces the old one
when it is complete. So the time of an event is bounded, and no factor in a sum is older than two
rounds through the list. A batch that brings a list one entry or more for each thousand that it has
pays for reading all of them.

For a loss that is no parabola the equations are those of parabolas that touch it at the present
predictions (Newton's method; where the loss is not convex, reweighted squares). A solution that
would raise the sum of losses and penalties is drawn back until it does not; of a long list only the
newest entries are summed up for that.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .entries import POISSON
from .lists import UNCOUNTED
from .local_models import (
    LONG,
    NEWEST,
    STEEPEST,
    centre,
    curvature_of,
    new_workspace,
    ridge_unit,
    slope_of,
    unit,
)
from .ridge import PANEL, WIDTH, add_tile, eliminate, scale_tile, substitute
from .rows import row_value

__all__ = ["PIECE", "solve_column", "solve_lists", "solve_row"]

#: The sums of a long list are made anew, so many entries with each regression ...
PIECE = 64
#: ... or, if many have come since the last one, so many times their number.
FASTER = 4
#: So many parabolas a regression, for other losses than squares, ...
STEPS = 3
#: ... while one lowers the sum by this share at least.
ENOUGH = 1e-3
#: A solution is drawn back by halves, so often at most.
HALVES = 10


# Equations ----------------------------------------------------------------------------------------


@njit(inline="always")
def _prediction(rank, first, other, j, x):
    """Return the features of an entry times x: its prediction without the offsets."""
    total = x[rank]
    for p in range(rank):
        total += x[p] * np.float64(other.factors[j, first + p])
    return total


@njit(cache=True, **UNCOUNTED)
def _parabola(loss, rank, m, other, j, y, w, mean, sigma, x):
    """Return the curvature of a loss at x, and curvature times where its parabola is lowest."""
    first = m * (other.factors.shape[1] // other.offsets.shape[1])
    z = _prediction(rank, first, other, j, x)
    at = mean + np.float64(other.offsets[j, m]) + sigma * z
    if loss[0] == POISSON:
        at = min(at, STEEPEST)
    curvature = w * sigma * sigma * curvature_of(loss, at, y)
    return curvature, curvature * z - sigma * w * slope_of(loss, at, y)


@njit(inline="always")
def _fill_one(work, rank, m, other, q, j, w, target):
    """Fill a line of the panels with the features of an entry: factors, 1 and the target."""
    width = np.uint64(work.left.shape[1])
    full, first, b = work.left.dtype.type(1), np.uint64(m) * width, np.uint64(0)
    while b < width:
        scale_tile(work.left, q, b, full, other.factors, j, first + b)
        scale_tile(work.right, q, b, w, other.factors, j, first + b)
        b += np.uint64(WIDTH)
    work.left[q, np.uint64(rank)] = full
    work.right[q, np.uint64(rank)] = w
    work.right[q, np.uint64(rank + 1)] = target


@njit(inline="always")
def _fill(work, rank, m, lists, other, mean, sigma, start, n):
    """Fill the panels with n entries, for squares."""
    full, inverse, weighted = work.left.dtype.type(1), 1.0 / sigma, len(lists.weight) > 0
    q = np.uint64(0)
    while q < n:
        k = start + q
        j = np.uint64(lists.other[k])
        w = lists.weight[k] if weighted else full
        target = w * ((lists.value[k] - mean - other.offsets[j, m]) * inverse)
        _fill_one(work, rank, m, other, q, j, w, target)
        q += np.uint64(1)


@njit(inline="always")
def _fill_parabolas(work, loss, rank, m, lists, other, mean, sigma, start, n):
    """Fill the panels with n entries, for parabolas that touch the loss."""
    weighted = len(lists.weight) > 0
    q = np.uint64(0)
    while q < n:
        k = start + q
        j = np.uint64(lists.other[k])
        y, w = np.float64(lists.value[k]), np.float64(lists.weight[k]) if weighted else 1.0
        w, target = _parabola(loss, rank, m, other, j, y, w, mean, sigma, work.current)
        _fill_one(work, rank, m, other, q, j, work.left.dtype.type(w), target)
        q += np.uint64(1)


@njit(cache=True, fastmath={"contract"}, **UNCOUNTED)
def _add(normal, loss, rank, m, lists, first, n, other, mean, sigma, work):
    """Add n entries to the normal equations of a list in model m."""
    width, side, unknowns = np.uint64(work.left.shape[1]), np.uint64(WIDTH), np.uint64(rank + 1)
    start = np.uint64(first)
    end = start + np.uint64(n)
    while start < end:
        n = min(end - start, np.uint64(PANEL))
        if loss is None:
            _fill(work, rank, m, lists, other, mean, sigma, start, n)
        else:
            _fill_parabolas(work, loss, rank, m, lists, other, mean, sigma, start, n)
        a = np.uint64(0)
        while a < unknowns:
            b = a
            while b < width:
                add_tile(normal, work.left, work.right, n, a, b)
                b += side
            a += side
        start += n


@njit(inline="always")
def _copy(to, values):
    """Copy equations; numpy's way would ask for memory."""
    for p in range(len(to)):
        for q in range(len(to)):
            to[p, q] = values[p, q]


@njit(cache=True, **UNCOUNTED)
def _add_to_sums(loss, rank, m, last, i, lists, sums, other, mean, sigma, work):
    """Bring the sums of a long list up to date, and go on with those being made.

    The last model says that the entries have been added.
    """
    at, start, n = sums.number[i] - 1, lists.start[i], lists.length[i]
    had, made = sums.added[at, 0], sums.added[at, 1]
    in_use, new = sums.equations[at, 0, m], sums.equations[at, 1, m]
    _add(in_use, loss, rank, m, lists, start + had, n - had, other, mean, sigma, work)
    more = min(max(PIECE, FASTER * (n - had)), n - made)
    _add(new, loss, rank, m, lists, start + made, more, other, mean, sigma, work)
    _copy(work.normal, in_use)
    if made + more == n:
        _copy(in_use, new)
        new[:] = 0.0
    if last:
        sums.added[at, 0] = n
        sums.added[at, 1] = 0 if made + more == n else made + more


@njit(cache=True, **UNCOUNTED)
def _make_sums(m, last, i, lists, sums, normal):
    """Let the sums of a long list be these, of all its entries."""
    at = sums.number[i] - 1
    _copy(sums.equations[at, 0, m], normal)
    sums.equations[at, 1, m] = 0.0
    if last:
        sums.added[at, 0], sums.added[at, 1] = lists.length[i], 0


@njit(inline="always")
def _equations(loss, rank, m, last, i, lists, sums, other, mean, sigma, anew, work):
    """Let ``work.normal`` be the normal equations of list i in model m.

    All entries of a long list are read, too, if that is asked for (``anew``), or if many have come
    since the last time (in a batch): then it is LONG of them at most for each one that came.
    """
    number = sums.number[i]
    new = lists.length[i] - sums.added[number - 1, 0] if number > 0 else 0
    if number > 0 and not anew and lists.length[i] > LONG * new:
        _add_to_sums(loss, rank, m, last, i, lists, sums, other, mean, sigma, work)
    else:
        start, n = lists.start[i], lists.length[i]
        work.normal[:] = 0.0
        _add(work.normal, loss, rank, m, lists, start, n, other, mean, sigma, work)
        if sums.number[i] > 0:
            _make_sums(m, last, i, lists, sums, work.normal)


@njit(inline="always")
def _solve_equations(rank, penalty, of_bias, biased, work):
    """Add the penalties to ``work.normal`` and solve it: ``work.solution``."""
    normal = work.normal
    for p in range(rank):
        normal[p, p] += penalty
    normal[rank, rank] += of_bias
    if not biased:
        for p in range(rank):
            normal[p, rank] = 0.0
        normal[rank, rank], normal[rank, rank + 1] = penalty, 0.0
    unknowns, width = np.uint64(rank + 1), np.uint64(work.left.shape[1])
    least = min(penalty, of_bias) if biased else penalty
    eliminate(normal, work.scaled, unknowns, width, least)
    substitute(normal, unknowns, work.solution)


# Other losses than squares ------------------------------------------------------------------------


@njit(cache=True, **UNCOUNTED)
def _weight(lists, i):
    """Return the weight of a list."""
    if len(lists.weight) == 0:
        return np.float64(lists.length[i])
    total = 0.0
    for k in range(lists.start[i], lists.start[i] + lists.length[i]):
        total += lists.weight[k]
    return total


@njit(cache=True, **UNCOUNTED)
def _total(loss, rank, m, i, lists, other, mean, sigma, penalty, of_bias, x):
    """Return losses plus penalties at x; of a long list, its newest entries and their share."""
    (kind, parameter), n = loss, lists.length[i]
    first = m * (other.factors.shape[1] // other.offsets.shape[1])
    end = lists.start[i] + n
    total = 0.0
    for k in range(end - min(n, LONG), end):
        j = lists.other[k]
        at = np.float64(other.offsets[j, m]) + sigma * _prediction(rank, first, other, j, x)
        w = np.float64(lists.weight[k]) if len(lists.weight) > 0 else 1.0
        total += w * row_value(kind, parameter, mean + at, np.float64(lists.value[k]))
    squares = 0.0
    for p in range(rank):
        squares += x[p] * x[p]
    share = min(1.0, LONG / n)
    return total + 0.5 * share * (penalty * squares + of_bias * x[rank] * x[rank])


@njit(cache=True, **UNCOUNTED)
def _draw_back(loss, rank, m, i, lists, other, mean, sigma, penalty, of_bias, work):
    """Draw the solution back to what is there, until it is no worse.

    Returns by which share of losses and penalties it is better.
    """
    there, found = work.current, work.solution
    before = _total(loss, rank, m, i, lists, other, mean, sigma, penalty, of_bias, there)
    for _ in range(HALVES):
        after = _total(loss, rank, m, i, lists, other, mean, sigma, penalty, of_bias, found)
        if after <= before:  # not so if it is NaN
            return (before - after) / abs(before) if before != 0.0 else 0.0
        for p in range(rank + 1):
            found[p] = 0.5 * (found[p] + there[p])
    for p in range(rank + 1):
        found[p] = there[p]
    return 0.0


# Solving ------------------------------------------------------------------------------------------


@njit(cache=True, fastmath={"contract"}, **UNCOUNTED)
def _best(loss, rank, m, i, lists, sums, own, other, scale, ridge, biased, anew, work):
    """Let ``work.solution`` be that of a few parabolas, each solved where the last one ended."""
    (mean, sigma, level, one), last = scale, m == own.offsets.shape[1] - 1
    first = m * work.left.shape[1]
    for p in range(rank):
        work.current[p] = own.factors[i, first + p]
    known = biased and own.offsets[i, m] != 0.0  # it is 0 before the first solution
    work.current[rank] = (own.offsets[i, m] - mean) / sigma if known else 0.0
    penalty = level * (ridge[0] * one + ridge[1] * _weight(lists, i))
    of_bias = level * ridge[2] * one
    for _ in range(1 if sums.number[i] > 0 else STEPS):
        _equations(loss, rank, m, last, i, lists, sums, other, mean, sigma, anew, work)
        _solve_equations(rank, penalty, of_bias, biased, work)
        parts = rank, m, i, lists, other, mean, sigma, penalty, of_bias
        if _draw_back(loss, *parts, work) < ENOUGH:
            break
        for p in range(rank + 1):
            work.current[p] = work.solution[p]


@njit(cache=True, fastmath={"contract"}, **UNCOUNTED)
def _solve(loss, rank, m, i, lists, sums, own, other, scale, ridge, biased, anew, work):
    """Solve the regression of list i in model m, on everything in it.

    ``scale`` is the centre of predictions, their unit, the typical curvature of a loss, in which
    ridges are measured, and what a new observation weighs.
    """
    mean, sigma, _, one = scale
    if loss is None:
        last = m == own.offsets.shape[1] - 1
        _equations(loss, rank, m, last, i, lists, sums, other, mean, sigma, anew, work)
        weight = work.normal[rank, rank]  # of the list
        penalty = ridge[0] * one + ridge[1] * weight
        _solve_equations(rank, penalty, ridge[2] * one, biased, work)
    else:
        _best(loss, rank, m, i, lists, sums, own, other, scale, ridge, biased, anew, work)
    first = m * work.left.shape[1]
    for p in range(rank):
        own.factors[i, first + p] = work.solution[p]
    own.offsets[i, m] = mean + sigma * work.solution[rank]


@njit(cache=True, **UNCOUNTED)
def solve_row(m, i, lists, models, moments, biased, anew, work):
    """Solve the regression of row i in model m; the columns are held fixed."""
    loss = models.loss
    mean, sigma = centre(loss, moments, biased), unit(loss, moments)
    parts = lists, models.row_sums, models.rows, models.columns
    scale = mean, sigma, ridge_unit(loss, mean, moments), moments[NEWEST]
    _solve(loss, models.rank, m, i, *parts, scale, models.ridges[m], biased, anew, work)


@njit(cache=True, **UNCOUNTED)
def solve_column(m, j, lists, models, moments, biased, anew, work):
    """Solve the regression of column j in model m; the rows are held fixed."""
    loss = models.loss
    mean, sigma = centre(loss, moments, biased), unit(loss, moments)
    parts = lists, models.column_sums, models.columns, models.rows
    # The rows' offsets have the mean.
    scale = 0.0, sigma, ridge_unit(loss, mean, moments), moments[NEWEST]
    _solve(loss, models.rank, m, j, *parts, scale, models.ridges[m], biased, anew, work)


@njit(cache=True, nogil=True)
def solve_lists(from_block, to_block, blocks, which, of_rows, anew, lists, models, moments, biased):
    """Solve the regressions of the lists ``which`` in all models: of rows, or of columns."""
    work = new_workspace(models)
    for block in range(from_block, to_block):
        for k in range(blocks[block], blocks[block + 1]):
            if lists.length[which[k]] > 0:
                for m in range(len(models.ridges)):
                    if of_rows:
                        solve_row(m, which[k], lists, models, moments, biased, anew, work)
                    else:
                        solve_column(m, which[k], lists, models, moments, biased, anew, work)
