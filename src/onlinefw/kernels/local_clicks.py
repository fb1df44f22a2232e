"""Regressions of clicks: a row or a column on all entries, where what was not observed is zeros.

An entry that was not observed is a 0 of weight alpha. So the normal equations of a row on the
factors Q of the columns are

    (alpha Q'Q + sum over the row's entries of (c - alpha) q q' + penalty I) p = sum of c y q.

Q'Q changes with every column that is solved, by two products of a vector with itself: an entry that
was not observed costs nothing. Lists have each entry once; events that repeat add to its weight.

Long lists have running sums (:mod:`onlinefw.kernels.local_ridge` says how they are made): of
c q q', with c y q and the weight of the list beside it, and of q q'.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .lists import UNCOUNTED, add_weight, position
from .local_models import LONG, new_workspace
from .local_ridge import FASTER, PIECE
from .ridge import PANEL, WIDTH, add_tile, eliminate, scale_tile, substitute

__all__ = [
    "WEIGHTED",
    "Whole",
    "add_grams",
    "add_product",
    "find_taste",
    "observe_again",
    "penalty_of",
    "solve_clicks",
    "solve_column",
    "solve_row",
    "total_weight",
]

#: Which sums: of weighted squares, and of squares.
WEIGHTED, PLAIN = 0, 1


class Whole(NamedTuple):
    """What a regression knows of the matrix as a whole."""

    n_rows: int  # up to the last that an event had
    n_columns: int
    weight: float  # of all observations
    one: float  # what a new observation weighs
    zero: float  # what an entry weighs that was not observed


@njit(cache=True, **UNCOUNTED)
def penalty_of(ridge, n, n_other, whole):
    """Return the ridge of a row, or column, of weight n, which has so many entries at most.

    With ridge (a, b, c) it is, if a new observation weighs 1, a + b (n + zeros) + c noise. A matrix
    of independent events has a spectral norm of about the root of what a row has, plus the root of
    what a column has: so much is noise. Of a row that is its own n, and the mean of all columns.

    Examples
    --------
    >>> from onlinefw.kernels.local_clicks import Whole, penalty_of
    >>> whole = Whole(n_rows=50, n_columns=100, weight=400.0, one=1.0, zero=0.1)
    >>> penalty_of((0.0, 0.0, 0.5), 9.0, 100, whole)  # half of 3 + 2
    2.5
    """
    a, b, c = ridge[0], ridge[1], ridge[2]
    noise = np.sqrt(whole.one * n) + np.sqrt(whole.one * whole.weight / max(n_other, 1))
    return a * whole.one + b * (n + whole.zero * n_other) + c * noise


# Equations ----------------------------------------------------------------------------------------


@njit(inline="always")
def _fill(work, rank, lists, factors, less, plain, start, n):
    """Fill the panels with n entries; return their weight."""
    width, full, total = np.uint64(work.left.shape[1]), work.left.dtype.type(1), 0.0
    q = np.uint64(0)
    while q < n:
        k = start + q
        j, c = np.uint64(lists.other[k]), lists.weight[k]
        w = full if plain else work.left.dtype.type(c - less)
        b = np.uint64(0)
        while b < width:
            scale_tile(work.left, q, b, full, factors, j, b)
            scale_tile(work.right, q, b, w, factors, j, b)
            b += np.uint64(WIDTH)
        work.right[q, np.uint64(rank)] = 0 if plain else c * lists.value[k]
        total += c
        q += np.uint64(1)
    return total


@njit(cache=True, fastmath={"contract"}, **UNCOUNTED)
def _add(normal, rank, lists, first, n, factors, less, plain, work):
    """Add n entries of a list to equations, of weights c - less (``plain``: 1 and no targets).

    The sum of the weights c is added beside them, in the last row and column that a rank has.
    """
    width, side, unknowns = np.uint64(work.left.shape[1]), np.uint64(WIDTH), np.uint64(rank)
    start = np.uint64(first)
    end = start + np.uint64(n)
    total = 0.0
    while start < end:
        some = min(end - start, np.uint64(PANEL))
        total += _fill(work, rank, lists, factors, less, plain, start, some)
        a = np.uint64(0)
        while a < unknowns:
            b = a
            while b < width:
                add_tile(normal, work.left, work.right, some, a, b)
                b += side
            a += side
        start += some
    normal[rank + 1, rank + 1] += total


@njit(inline="always")
def _clear(normal):
    for p in range(len(normal)):
        for q in range(len(normal)):
            normal[p, q] = 0.0


@njit(inline="always")
def _difference(to, sums, less):
    """Let equations be those of weights c - less, from both sums."""
    for p in range(len(to)):
        for q in range(len(to)):
            to[p, q] = sums[WEIGHTED, p, q] - less * sums[PLAIN, p, q]


@njit(cache=True, **UNCOUNTED)
def _add_both(both, rank, lists, first, n, factors, work):
    """Add n entries of a list to both of its sums."""
    _add(both[WEIGHTED], rank, lists, first, n, factors, 0.0, False, work)
    _add(both[PLAIN], rank, lists, first, n, factors, 0.0, True, work)
    both[PLAIN, rank + 1, rank + 1] = 0.0  # the weight is with the others


@njit(cache=True, **UNCOUNTED)
def _equations(rank, i, lists, sums, factors, less, anew, work):
    """Let ``work.normal`` be the equations of list i, without the zeros everywhere."""
    start, n, at = lists.start[i], lists.length[i], sums.number[i] - 1
    if at < 0:
        _clear(work.normal)
        _add(work.normal, rank, lists, start, n, factors, less, False, work)
        return
    had, made = sums.added[at, 0], sums.added[at, 1]
    in_use, new = sums.equations[at, 0], sums.equations[at, 1]
    if anew or n <= LONG * (n - had):
        for one in range(2):
            _clear(in_use[one])
            _clear(new[one])
        _add_both(in_use, rank, lists, start, n, factors, work)
        sums.added[at, 0], sums.added[at, 1] = n, 0
    else:
        _add_both(in_use, rank, lists, start + had, n - had, factors, work)
        more = min(max(PIECE, FASTER * (n - had)), n - made)
        _add_both(new, rank, lists, start + made, more, factors, work)
        sums.added[at, 0], sums.added[at, 1] = n, made + more
        if made + more == n:
            for one in range(2):
                for p in range(len(work.normal)):
                    for q in range(len(work.normal)):
                        in_use[one, p, q] = new[one, p, q]
                _clear(new[one])
            sums.added[at, 1] = 0
    _difference(work.normal, in_use, less)


@njit(cache=True, **UNCOUNTED)
def _solve(rank, i, lists, sums, own, other, n_other, gram, whole, ridge, anew, work):
    """Solve the regression of list i on the other side's factors, whose products are ``gram``.

    ``n_other`` is how many entries a list could have: as many as there were rows, or columns, when
    the event came.
    """
    normal = work.normal
    _equations(rank, i, lists, sums, other, whole.zero, anew, work)
    penalty = penalty_of(ridge, normal[rank + 1, rank + 1], n_other, whole)
    for p in range(rank):
        for q in range(p, rank):
            normal[p, q] += whole.zero * gram[p, q]
        normal[p, p] += penalty
    eliminate(normal, work.scaled, np.uint64(rank), np.uint64(work.left.shape[1]), penalty)
    substitute(normal, np.uint64(rank), work.solution)
    for p in range(rank):
        own[i, p] = work.solution[p]


@njit(cache=True, **UNCOUNTED)
def add_product(gram, rank, x, sign):
    """Add the product of a vector with itself (upper triangle), or take it off."""
    for p in range(rank):
        for q in range(p, rank):
            gram[p, q] += sign * np.float64(x[p]) * np.float64(x[q])


@njit(cache=True, nogil=True)
def add_grams(gram, rank, factors, which, sign):
    """Add the products of some rows of factors with themselves (upper triangle), or take them off.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.kernels.local_clicks import add_grams
    >>> gram = np.zeros((2, 2))
    >>> add_grams(gram, 2, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1]), 1.0)
    >>> gram
    array([[ 9., 12.],
           [ 0., 16.]])
    """
    for i in which:
        add_product(gram, rank, factors[i], sign)


@njit(cache=True, **UNCOUNTED)
def solve_row(i, lists, models, grams, whole, work):
    """Solve a row, and keep the products of all rows up to date."""
    rank, rows = models.rank, models.rows.factors
    add_product(grams[0], rank, rows[i], -1.0)
    parts = lists, models.row_sums, rows, models.columns.factors, whole.n_columns
    _solve(rank, i, *parts, grams[1], whole, models.ridges[0], False, work)
    add_product(grams[0], rank, rows[i], 1.0)


@njit(cache=True, **UNCOUNTED)
def solve_column(j, lists, models, grams, whole, work):
    """Solve a column, and keep the products of all columns up to date."""
    rank, columns = models.rank, models.columns.factors
    add_product(grams[1], rank, columns[j], -1.0)
    parts = lists, models.column_sums, columns, models.rows.factors, whole.n_rows
    _solve(rank, j, *parts, grams[0], whole, models.ridges[0], False, work)
    add_product(grams[1], rank, columns[j], 1.0)


@njit(cache=True, nogil=True)
def solve_clicks(from_block, to_block, blocks, which, of_rows, anew, lists, models, gram, whole):
    """Solve the regressions of the lists ``which``: of rows, or of columns. ``gram`` is fixed."""
    work = new_workspace(models)
    rank, ridge = models.rank, models.ridges[0]
    rows, columns = models.rows.factors, models.columns.factors
    for block in range(from_block, to_block):
        for k in range(blocks[block], blocks[block + 1]):
            i = which[k]
            if lists.length[i] == 0:
                continue
            if of_rows:
                parts = lists, models.row_sums, rows, columns, whole.n_columns
                _solve(rank, i, *parts, gram, whole, ridge, anew, work)
            else:
                parts = lists, models.column_sums, columns, rows, whole.n_rows
                _solve(rank, i, *parts, gram, whole, ridge, anew, work)


@njit(cache=True, fastmath={"contract"}, **UNCOUNTED)
def find_taste(rank, other, value, weight, columns, gram, whole, ridge, fresh, latest, work):
    """Let ``work.solution`` be what somebody likes who has had these columns, the latest last.

    That is the regression of a row of the latest entries, in which each counts ``fresh`` times as
    much as the next.
    """
    normal, n = work.normal, len(other)
    for p in range(rank):
        for q in range(p, rank):
            normal[p, q] = whole.zero * gram[p, q]
        normal[p, rank] = 0.0
    total, age = 0.0, 1.0
    for k in range(n - 1, max(n - latest, 0) - 1, -1):
        x, c = columns[other[k]], age * np.float64(weight[k])
        beyond, target = max(c - whole.zero, 0.0), c * np.float64(value[k])
        for p in range(rank):
            xp = np.float64(x[p])
            for q in range(p, rank):
                normal[p, q] += beyond * xp * np.float64(x[q])
            normal[p, rank] += target * xp
        total += c
        age *= fresh
    penalty = penalty_of(ridge, total, whole.n_columns, whole)
    for p in range(rank):
        normal[p, p] += penalty
    eliminate(normal, work.scaled, np.uint64(rank), np.uint64(work.left.shape[1]), penalty)
    substitute(normal, np.uint64(rank), work.solution)


# Entries ------------------------------------------------------------------------------------------


@njit(cache=True, **UNCOUNTED)
def _add_to_sums(lists, i, at, sums, rank, x, y, w):
    """Observe an entry of a long list again, whose factors on the other side are x."""
    number = sums.number[i] - 1
    if number < 0:
        return
    for which in range(2):
        if at < sums.added[number, which]:
            both = sums.equations[number, which, WEIGHTED]
            for p in range(rank):
                for q in range(p, rank):
                    both[p, q] += w * np.float64(x[p]) * np.float64(x[q])
                both[p, rank] += w * y * np.float64(x[p])
            both[rank + 1, rank + 1] += w


@njit(cache=True, **UNCOUNTED)
def observe_again(i, j, y, w, by_row, by_column, models):
    """Add weight to an entry that is there."""
    rank, rows, columns = models.rank, models.rows.factors, models.columns.factors
    at = position(by_row, i, np.uint32(j))
    add_weight(by_row, i, at, y, w)
    _add_to_sums(by_row, i, at, models.row_sums, rank, columns[j], y, w)
    at = position(by_column, j, np.uint32(i))
    add_weight(by_column, j, at, y, w)
    _add_to_sums(by_column, j, at, models.column_sums, rank, rows[i], y, w)


@njit(cache=True, nogil=True)
def total_weight(lists):
    """Return the weight of all entries in lists."""
    if len(lists.weight) == 0:
        return float(lists.length.sum())
    total = 0.0
    for i in range(len(lists.length)):
        for k in range(lists.start[i], lists.start[i] + lists.length[i]):
            total += np.float64(lists.weight[k])
    return total
