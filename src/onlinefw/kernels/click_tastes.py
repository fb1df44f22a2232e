"""What to recommend from clicks: a row's taste, what is frequent of late, and how much each counts.

A score is the product of a taste with the factors of a column, plus a multiple of the share that
the column has of the latest events. A taste is that of all of a row's entries, or of its latest.
What counts how much is a tournament: candidates, the arms, rank events before these are learned.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numba import njit

from .lists import UNCOUNTED
from .local_clicks import find_taste
from .local_models import new_workspace

__all__ = [
    "ARMS",
    "FRESH",
    "LATELY",
    "LATEST",
    "arm_in_use",
    "judge",
    "judge_all",
    "judged_of",
    "note_trend",
    "place_of",
    "tastes",
    "trend_of",
]

#: What somebody did just now may say most of what comes next: in a present taste an entry counts
#: this much for each later one, and only the latest do ...
FRESH, LATEST = 0.7, 16
#: ... and so may what all do: the share that a column has of the last LATELY events, or so.
LATELY = 1000.0
#: How much of a score is the present taste, the rest being that of all entries, and what a share is
#: worth, which is never nothing: it ranks what is new. Each pair is an arm of a tournament.
PRESENT, WORTH = (0.0, 0.5, 1.0), (0.01, 2.5, 5.0, 10.0)
ARMS = len(PRESENT) * len(WORTH)
#: An arm wins if the event's column beats this share of the columns, of which so many are drawn at
#: most, and the wins of the last SEASON that were judged, or so, count.
DRAWN, MOST_DRAWN, SEASON = 0.1, 1000, 5000.0
#: A lead in wins is clear if it is so many times their root.
CLEAR = 1.0
#: One of so many events in a batch is judged, at least.
JUDGED_OF_BATCHES = 8
#: Counts of events are made smaller after so many times LATELY, by powers of e.
PERIODS = 8.0


@njit(cache=True, **UNCOUNTED)
def _present(i, lists, models, gram, whole, work):
    """Let ``work.solution`` be what row i likes now."""
    its = slice(lists.start[i], lists.start[i] + lists.length[i])
    arrays = lists.other[its], lists.value[its], lists.weight[its], models.columns.factors
    find_taste(models.rank, *arrays, gram, whole, models.ridges[0], FRESH, LATEST, work)


@njit(cache=True, **UNCOUNTED)
def arm_in_use(wins):
    """Return the share of the present taste, and the worth of the trend, that have won most.

    Without a clear lead it is the first arm, all entries: in an order that says nothing one of the
    others would be ahead by chance.
    """
    best = 0
    for arm in range(ARMS):
        if wins[arm] > wins[best]:
            best = arm
    if wins[best] < wins[0] + CLEAR * sqrt(wins[0]):
        best = 0
    return PRESENT[best // len(WORTH)], WORTH[best % len(WORTH)]


@njit(cache=True, **UNCOUNTED)
def _taste(i, lists, models, gram, whole, share, work):
    """Let ``work.solution`` be the taste of row i: of all its entries, and its present one."""
    if share > 0.0:
        _present(i, lists, models, gram, whole, work)
    for p in range(models.rank):
        present = share * work.solution[p] if share > 0.0 else 0.0
        work.solution[p] = present + (1.0 - share) * np.float64(models.rows.factors[i, p])


@njit(cache=True, nogil=True)
def tastes(which, lists, models, gram, whole, wins):
    """Return the tastes of some rows."""
    work, out = new_workspace(models), np.zeros((len(which), models.rank))
    share, _ = arm_in_use(wins)
    for k in range(len(which)):
        if lists.length[which[k]] > 0:
            _taste(which[k], lists, models, gram, whole, share, work)
            out[k] = work.solution[: models.rank]
    return out


@njit(cache=True, **UNCOUNTED)
def trend_of(event):
    """Return what a column's memory is multiplied with after so many events: its share then."""
    return exp(-(event % (PERIODS * LATELY)) / LATELY) / LATELY


@njit(cache=True, **UNCOUNTED)
def note_trend(memory, j, event):
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
def _mark(taken, by_row, i, mark):
    """Mark the columns that row i has had."""
    for k in range(by_row.start[i], by_row.start[i] + by_row.length[i]):
        taken[by_row.other[k]] = mark


@njit(cache=True, **UNCOUNTED)
def place_of(i, j, event, by_row, by_column, models, gram, whole, wins, taken, work):
    """Return which place column j has for row i, 1 the best; nan if it is new to all, or not to i.

    It is compared with the columns that have been seen and that the row has not had. Where scores
    are equal, the column with more entries comes first.

    ``taken`` has zeros for all columns, and will have.
    """
    columns, length = models.columns, by_column.length
    if length[j] == 0:
        return np.nan
    _mark(taken, by_row, i, 1)
    had, better = taken[j] == 1, 0
    if not had:
        share, worth = arm_in_use(wins)
        _taste(i, by_row, models, gram, whole, share, work)
        taste, trend = work.solution, worth * trend_of(event)
        score = _score(models.rank, taste, columns, j, trend)
        for q in range(whole.n_columns):
            if length[q] > 0 and taken[q] == 0:
                other = _score(models.rank, taste, columns, q, trend)
                tie = other == score and (length[q], j) > (length[j], q)
                better += other > score or tie
    _mark(taken, by_row, i, 0)
    return np.nan if had else 1.0 + better


@njit(cache=True, **UNCOUNTED)
def judge(i, j, event, seed, by_row, by_column, models, gram, whole, wins, taken, work):
    """Let all arms rank an event's column, unless the row has had it, among some drawn at random.

    ``event`` is how many came before, ``seed`` says what is drawn. ``taken`` as above.
    """
    if by_column.length[j] == 0:
        return
    _mark(taken, by_row, i, 1)
    if taken[j] == 0:
        won = _winners(i, j, event, seed, by_row, by_column, models, gram, whole, taken, work)
        for arm in range(ARMS):
            wins[arm] += ((won >> arm) & 1) - wins[arm] / SEASON
    _mark(taken, by_row, i, 0)


@njit(cache=True, **UNCOUNTED)
def _winners(i, j, event, seed, by_row, by_column, models, gram, whole, taken, work):
    """Return which arms have column j before all that are drawn, as bits."""
    rank, columns, length = models.rank, models.columns, by_column.length
    _present(i, by_row, models, gram, whole, work)
    present, trend = work.solution, trend_of(event)
    for p in range(rank):
        work.current[p] = models.rows.factors[i, p]
    own = _score(rank, work.current, columns, j, 0.0), _score(rank, present, columns, j, 0.0)
    won, x = (1 << ARMS) - 1, np.uint64(seed)
    for _ in range(min(max(np.int64(DRAWN * whole.n_columns), 1), MOST_DRAWN)):
        x = x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        q = np.int64((x >> np.uint64(33)) % np.uint64(whole.n_columns))
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
    return won


def judged_of(n: int) -> int:
    """Return k, if one of k events in a batch of n is judged: a season's worth is enough."""
    return max(JUDGED_OF_BATCHES, int(n / SEASON))


@njit(cache=True, nogil=True)
def judge_all(rows, cols, event, by_row, by_column, models, gram, whole, wins, taken):
    """Let all arms rank events, with what is known before all of them: none knows more."""
    work = new_workspace(models)
    for t in range(len(rows)):
        parts = by_row, by_column, models, gram, whole, wins, taken, work
        judge(rows[t], cols[t], event, event + t, *parts)
