"""Single events of clicks: solve the event's own row and column, where all else counts as zeros.

An entry that was not observed is a 0 of weight alpha. So the normal equations of a row on the
factors Q of the columns are

    (alpha Q'Q + sum over the row's entries of (c - alpha) q q' + ridge I) p = sum of c y q.

Q'Q changes with every column that is solved, by two products of a vector with itself: an entry that
was not observed costs nothing. Lists have each entry once; events that repeat add to its weight.

Long lists have running sums (:mod:`onlinefw.kernels.local_ridge` says how they are made): of
c q q', with c y q and the weight of the list beside it, and of q q'.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit

from .lists import UNCOUNTED, add_weight, append, has_space, is_there, position
from .local_events import (
    COLUMN,
    EVENTS,
    EVERY,
    LAST_COLUMN,
    LAST_ROW,
    ROW,
    count_events,
    counting,
    turns_now,
)
from .local_models import LASTING, LONG, NEWEST, has_sums, new_workspace, start_factors
from .local_ridge import FASTER, PIECE
from .ridge import PANEL, WIDTH, add_tile, eliminate, scale_tile, substitute

__all__ = [
    "ARMS",
    "add_grams",
    "arm_in_use",
    "find_taste",
    "learn_clicks",
    "solve_clicks",
    "tastes",
    "trend_of",
]

#: Which sums: of weighted squares, and of squares.
WEIGHTED, PLAIN = 0, 1
#: What somebody did just now may say most of what comes next: in a present taste an entry counts
#: this much for each later one, and only the latest do ...
FRESH, LATEST = 0.85, 32
#: ... and so may what all do: the share that a column has of the last LATELY events, or so.
LATELY = 1000.0
#: How much of a score is the present taste, the rest being that of all entries, and what a share is
#: worth. Each pair is an arm of a tournament: that which would have ranked events best is in use.
PRESENT, WORTH = (0.0, 0.5, 1.0), (0.0, 2.5, 5.0, 10.0)
ARMS = len(PRESENT) * len(WORTH)
#: An arm wins if the event's column beats this share of the columns, of which so many are drawn at
#: most, and the wins of the last SEASON events, or so, count.
DRAWN, MOST_DRAWN, SEASON = 0.1, 128, 5000.0
#: Counts of events are made smaller after so many times LATELY, by powers of e.
PERIODS = 8.0


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
def _solve(rank, i, lists, sums, own, other, n_other, gram, alpha, one, ridge, anew, work):
    """Solve the regression of list i on the other side's factors, whose products are ``gram``.

    ``one`` is what a new observation weighs, ``n_other`` how many entries a list could have: as
    many as there were rows, or columns, when the event came.
    """
    normal, less = work.normal, alpha * one
    _equations(rank, i, lists, sums, other, less, anew, work)
    penalty = ridge[0] * one + ridge[1] * (normal[rank + 1, rank + 1] + less * n_other)
    for p in range(rank):
        for q in range(p, rank):
            normal[p, q] += less * gram[p, q]
        normal[p, p] += penalty
    eliminate(normal, work.scaled, np.uint64(rank), np.uint64(work.left.shape[1]), penalty)
    substitute(normal, np.uint64(rank), work.solution)
    for p in range(rank):
        own[i, p] = work.solution[p]


@njit(cache=True, **UNCOUNTED)
def _add_product(gram, rank, x, sign):
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
        _add_product(gram, rank, factors[i], sign)


@njit(cache=True, **UNCOUNTED)
def _solve_row(i, lists, models, known, grams, alpha, one, work):
    """Solve a row, and keep the products of all rows up to date."""
    rank, rows = models.rank, models.rows.factors
    _add_product(grams[0], rank, rows[i], -1.0)
    parts = lists, models.row_sums, rows, models.columns.factors, known[1], grams[1]
    _solve(rank, i, *parts, alpha, one, models.ridges[0], False, work)
    _add_product(grams[0], rank, rows[i], 1.0)


@njit(cache=True, **UNCOUNTED)
def _solve_column(j, lists, models, known, grams, alpha, one, work):
    """Solve a column, and keep the products of all columns up to date."""
    rank, columns = models.rank, models.columns.factors
    _add_product(grams[1], rank, columns[j], -1.0)
    parts = lists, models.column_sums, columns, models.rows.factors, known[0], grams[0]
    _solve(rank, j, *parts, alpha, one, models.ridges[0], False, work)
    _add_product(grams[1], rank, columns[j], 1.0)


@njit(cache=True, nogil=True)
def solve_clicks(
    from_block, to_block, blocks, which, of_rows, anew, lists, models, known, gram, alpha, one
):
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
                parts = lists, models.row_sums, rows, columns, known[1]
                _solve(rank, i, *parts, gram, alpha, one, ridge, anew, work)
            else:
                parts = lists, models.column_sums, columns, rows, known[0]
                _solve(rank, i, *parts, gram, alpha, one, ridge, anew, work)


# Events -------------------------------------------------------------------------------------------


@njit(cache=True, fastmath={"contract", "reassoc"}, **UNCOUNTED)
def _product(rank, rows, i, columns, j):
    total = rows.dtype.type(0)
    for p in range(rank):
        total += rows[i, p] * columns[j, p]
    return np.float64(total)


@njit(cache=True, fastmath={"contract"}, **UNCOUNTED)
def find_taste(
    rank, other, value, weight, columns, n_columns, gram, alpha, one, ridge, fresh, latest, work
):
    """Let ``work.solution`` be what somebody likes who has had these columns, the latest last.

    That is the regression of a row of the latest entries, in which each counts ``fresh`` times as
    much as the next.
    """
    normal, less, n = work.normal, alpha * one, len(other)
    for p in range(rank):
        for q in range(p, rank):
            normal[p, q] = less * gram[p, q]
        normal[p, rank] = 0.0
    total, age = 0.0, 1.0
    for k in range(n - 1, max(n - latest, 0) - 1, -1):
        x, c = columns[other[k]], age * np.float64(weight[k])
        beyond, target = max(c - less, 0.0), c * np.float64(value[k])
        for p in range(rank):
            xp = np.float64(x[p])
            for q in range(p, rank):
                normal[p, q] += beyond * xp * np.float64(x[q])
            normal[p, rank] += target * xp
        total += c
        age *= fresh
    penalty = ridge[0] * one + ridge[1] * (total + less * n_columns)
    for p in range(rank):
        normal[p, p] += penalty
    eliminate(normal, work.scaled, np.uint64(rank), np.uint64(work.left.shape[1]), penalty)
    substitute(normal, np.uint64(rank), work.solution)


@njit(cache=True, **UNCOUNTED)
def _present(i, lists, models, known, gram, alpha, one, work):
    """Let ``work.solution`` be what row i likes now."""
    its = slice(lists.start[i], lists.start[i] + lists.length[i])
    arrays = lists.other[its], lists.value[its], lists.weight[its], models.columns.factors
    parts = known[1], gram, alpha, one, models.ridges[0], FRESH, LATEST, work
    find_taste(models.rank, *arrays, *parts)


@njit(cache=True, **UNCOUNTED)
def arm_in_use(wins):
    """Return the share of the present taste, and the worth of the trend, that have won most."""
    best = 0
    for arm in range(ARMS):
        if wins[arm] > wins[best]:
            best = arm
    return PRESENT[best // len(WORTH)], WORTH[best % len(WORTH)]


@njit(cache=True, **UNCOUNTED)
def _taste(i, lists, models, known, gram, alpha, one, share, work):
    """Let ``work.solution`` be the taste of row i: of all its entries, and its present one."""
    if share > 0.0:
        _present(i, lists, models, known, gram, alpha, one, work)
    for p in range(models.rank):
        present = share * work.solution[p] if share > 0.0 else 0.0
        work.solution[p] = present + (1.0 - share) * np.float64(models.rows.factors[i, p])


@njit(cache=True, nogil=True)
def tastes(which, lists, models, known, gram, alpha, one, wins):
    """Return the tastes of some rows."""
    work, out = new_workspace(models), np.zeros((len(which), models.rank))
    share, _ = arm_in_use(wins)
    for k in range(len(which)):
        if lists.length[which[k]] > 0:
            _taste(which[k], lists, models, known, gram, alpha, one, share, work)
            out[k] = work.solution[: models.rank]
    return out


@njit(cache=True, **UNCOUNTED)
def trend_of(event):
    """Return what a column's memory is multiplied with after so many events: its share then."""
    return exp(-(event % (PERIODS * LATELY)) / LATELY) / LATELY


@njit(cache=True, **UNCOUNTED)
def _note_trend(memory, j, event):
    """Count an event of a column; earlier ones count less, by a factor of e after LATELY more.

    Later ones are counted with growing weights instead, and now and then all are made smaller.
    """
    phase = event % (PERIODS * LATELY)
    if phase == 0:
        smaller = memory.dtype.type(exp(-PERIODS))
        for q in range(len(memory)):
            memory[q] *= smaller
    memory[j] += exp(phase / LATELY)


@njit(cache=True, fastmath={"contract", "reassoc"}, **UNCOUNTED)
def _score(rank, taste, columns, j, trend):
    total = 0.0
    for p in range(rank):
        total += taste[p] * np.float64(columns.factors[j, p])
    return total + trend * np.float64(columns.memory[j])


@njit(cache=True, **UNCOUNTED)
def _rank(i, j, event, by_row, by_column, models, known, gram, alpha, one, wins, taken, work):
    """Return which place column j has for row i, 1 the best; nan if it is new to all, or not to i.

    It is compared with the columns that have been seen and that the row has not had. Where scores
    are equal, the column with more entries comes first.

    ``taken`` has zeros for all columns, and will have.
    """
    columns, length = models.columns, by_column.length
    if length[j] == 0:
        return np.nan
    start, end = by_row.start[i], by_row.start[i] + by_row.length[i]
    for k in range(start, end):
        taken[by_row.other[k]] = 1
    had, better = taken[j] == 1, 0
    if not had:
        share, worth = arm_in_use(wins)
        _taste(i, by_row, models, known, gram, alpha, one, share, work)
        taste, trend = work.solution, worth * trend_of(event)
        score = _score(models.rank, taste, columns, j, trend)
        for q in range(known[1]):
            if length[q] > 0 and taken[q] == 0:
                other = _score(models.rank, taste, columns, q, trend)
                tie = other == score and (length[q], j) > (length[j], q)
                better += other > score or tie
    for k in range(start, end):
        taken[by_row.other[k]] = 0
    return np.nan if had else 1.0 + better


@njit(cache=True, **UNCOUNTED)
def _judge(i, j, event, by_row, by_column, models, known, gram, alpha, one, wins, taken, work):
    """Let all arms rank an event's column, which the row has not had, among some drawn at random.

    What is drawn depends on the number of the event alone.
    """
    rank, columns, length = models.rank, models.columns, by_column.length
    if length[j] == 0:
        return
    start, end = by_row.start[i], by_row.start[i] + by_row.length[i]
    for k in range(start, end):
        taken[by_row.other[k]] = 1
    _present(i, by_row, models, known, gram, alpha, one, work)
    present, trend, row = work.solution, trend_of(event), models.rows.factors[i]
    for p in range(rank):
        work.current[p] = row[p]
    own = _score(rank, work.current, columns, j, 0.0), _score(rank, present, columns, j, 0.0)
    won, x = (1 << ARMS) - 1, np.uint64(event)
    for _ in range(min(max(np.int64(DRAWN * known[1]), 1), MOST_DRAWN)):
        x = x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        q = np.int64((x >> np.uint64(33)) % np.uint64(known[1]))
        if q == j or length[q] == 0 or taken[q] == 1:
            continue
        by_all = own[0] - _score(rank, work.current, columns, q, 0.0)
        by_now = own[1] - _score(rank, present, columns, q, 0.0)
        by_trend = trend * (np.float64(columns.memory[j]) - np.float64(columns.memory[q]))
        for arm in range(ARMS):
            share, worth = PRESENT[arm // len(WORTH)], WORTH[arm % len(WORTH)]
            if (1.0 - share) * by_all + share * by_now + worth * by_trend <= 0.0:
                won &= ~(1 << arm)
        if won == 0:
            break
    for arm in range(ARMS):
        wins[arm] += ((won >> arm) & 1) - wins[arm] / SEASON
    for k in range(start, end):
        taken[by_row.other[k]] = 0


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
def _observe_again(i, j, y, w, by_row, by_column, models):
    """Add weight to an entry that is there."""
    rank, rows, columns = models.rank, models.rows.factors, models.columns.factors
    at = position(by_row, i, np.uint32(j))
    add_weight(by_row, i, at, y, w)
    _add_to_sums(by_row, i, at, models.row_sums, rank, columns[j], y, w)
    at = position(by_column, j, np.uint32(i))
    add_weight(by_column, j, at, y, w)
    _add_to_sums(by_column, j, at, models.column_sums, rank, rows[i], y, w)


@njit(cache=True, **UNCOUNTED)
def _solve_in_turn(turns, by_row, by_column, models, grams, alpha, moments, work):
    """Solve some more rows and columns, those whose turn it is."""
    events, one = counting(turns[EVENTS], moments[LASTING]), moments[NEWEST]
    known = turns[LAST_ROW] + 1, turns[LAST_COLUMN] + 1
    for _ in range(turns_now(events, turns[LAST_ROW])):
        turns[ROW] = turns[ROW] + 1 if turns[ROW] < turns[LAST_ROW] else 0
        if by_row.length[turns[ROW]] > 0:
            _solve_row(turns[ROW], by_row, models, known, grams, alpha, one, work)
    for _ in range(turns_now(events, turns[LAST_COLUMN])):
        turns[COLUMN] = turns[COLUMN] + 1 if turns[COLUMN] < turns[LAST_COLUMN] else 0
        if by_column.length[turns[COLUMN]] > 0:
            _solve_column(turns[COLUMN], by_column, models, known, grams, alpha, one, work)


@njit(cache=True, nogil=True, **UNCOUNTED)
def learn_clicks(
    first, rows, cols, y, w, units, by_row, by_column, models, grams, alpha, moments, turns,
    wins, solving, taken, work, out, ranks,
):  # fmt: skip
    """Learn events one after another; return how many, fewer if lists or sums need more memory.

    Each is predicted into ``out`` before it is learned (and ranked into ``ranks``, unless that is
    empty). Without ``solving`` they are added to the lists, and nothing else.
    """
    for t in range(first, len(y)):
        i, j = rows[t], cols[t]
        again = is_there(by_row, by_column, i, j)
        if not again:
            if not (has_space(by_row, i) and has_space(by_column, j)):
                return t
            if not has_sums(models.row_sums, i, by_row.length[i] + 1):
                return t
            if not has_sums(models.column_sums, j, by_column.length[j] + 1):
                return t
        if len(units):
            moments[NEWEST] = units[t]
        weight = w[t] if len(w) else 1.0
        known = turns[LAST_ROW] + 1, turns[LAST_COLUMN] + 1
        if solving:
            out[t] = _product(models.rank, models.rows.factors, i, models.columns.factors, j)
        if len(ranks):
            ranks[t] = _rank(
                i, j, turns[EVENTS], by_row, by_column, models, known, grams[1], alpha,
                moments[NEWEST], wins, taken, work,
            )  # fmt: skip
        if solving and not again:
            parts = by_row, by_column, models, known, grams[1], alpha, moments[NEWEST]
            _judge(i, j, turns[EVENTS], *parts, wins, taken, work)
        if by_column.length[j] == 0:
            start_factors(models.columns.factors, 1, 0, models.rank, cols[t : t + 1])
            _add_product(grams[1], models.rank, models.columns.factors[j], 1.0)
        if again:
            _observe_again(i, j, y[t], weight, by_row, by_column, models)
        else:
            append(by_row, i, j, y[t], weight)
            append(by_column, j, i, y[t], weight)
        count_events(turns, rows[t : t + 1], cols[t : t + 1])
        _note_trend(models.columns.memory, j, turns[EVENTS])
        if solving:
            one, known = moments[NEWEST], (turns[LAST_ROW] + 1, turns[LAST_COLUMN] + 1)
            _solve_row(i, by_row, models, known, grams, alpha, one, work)
            _solve_column(j, by_column, models, known, grams, alpha, one, work)
            if turns[EVENTS] % EVERY == 0:
                _solve_in_turn(turns, by_row, by_column, models, grams, alpha, moments, work)
    return len(y)
