"""Single events of clicks: predict, rank and judge, then solve the event's own row and column."""

from __future__ import annotations

import numpy as np
from numba import njit

from .click_tastes import judge, note_trend, place_of
from .lists import UNCOUNTED, append, has_space, is_there
from .local_clicks import Whole, add_product, observe_again, solve_column, solve_row
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
from .local_models import LASTING, NEWEST, WEIGHT, has_sums, start_factors

__all__ = ["learn_clicks", "whole_of"]


@njit(cache=True, **UNCOUNTED)
def whole_of(turns, moments, alpha):
    """Return what is known of the matrix as a whole."""
    one = moments[NEWEST]
    return Whole(turns[LAST_ROW] + 1, turns[LAST_COLUMN] + 1, moments[WEIGHT], one, alpha * one)


@njit(cache=True, fastmath={"contract", "reassoc"}, **UNCOUNTED)
def _product(rank, rows, i, columns, j):
    total = rows.dtype.type(0)
    for p in range(rank):
        total += rows[i, p] * columns[j, p]
    return np.float64(total)


@njit(cache=True, **UNCOUNTED)
def _solve_in_turn(turns, by_row, by_column, models, grams, whole, lasting, work):
    """Solve some more rows and columns, those whose turn it is."""
    events = counting(turns[EVENTS], lasting)
    for _ in range(turns_now(events, turns[LAST_ROW])):
        turns[ROW] = turns[ROW] + 1 if turns[ROW] < turns[LAST_ROW] else 0
        if by_row.length[turns[ROW]] > 0:
            solve_row(turns[ROW], by_row, models, grams, whole, work)
    for _ in range(turns_now(events, turns[LAST_COLUMN])):
        turns[COLUMN] = turns[COLUMN] + 1 if turns[COLUMN] < turns[LAST_COLUMN] else 0
        if by_column.length[turns[COLUMN]] > 0:
            solve_column(turns[COLUMN], by_column, models, grams, whole, work)


@njit(cache=True, **UNCOUNTED)
def _add(i, j, y, w, again, by_row, by_column, models, grams, moments):
    """Add an event to the lists of its row and its column, or to its entry that is there."""
    if again:
        observe_again(i, j, y, w, by_row, by_column, models)
    else:
        if by_column.length[j] == 0:
            start_factors(models.columns.factors, 1, 0, models.rank, (j,))
            add_product(grams[1], models.rank, models.columns.factors[j], 1.0)
        append(by_row, i, j, y, w)
        append(by_column, j, i, y, w)
    moments[WEIGHT] += w


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
        if solving:
            whole, event = whole_of(turns, moments, alpha), turns[EVENTS]
            out[t] = _product(models.rank, models.rows.factors, i, models.columns.factors, j)
            parts = by_row, by_column, models, grams[1], whole, wins, taken, work
            if len(ranks):
                ranks[t] = place_of(i, j, event, *parts)
            if not again:
                judge(i, j, event, event, *parts)
        weight = w[t] if len(w) else 1.0
        _add(i, j, y[t], weight, again, by_row, by_column, models, grams, moments)
        count_events(turns, rows[t : t + 1], cols[t : t + 1])
        note_trend(models.columns.memory, j, turns[EVENTS])
        if solving:
            whole = whole_of(turns, moments, alpha)
            solve_row(i, by_row, models, grams, whole, work)
            solve_column(j, by_column, models, grams, whole, work)
            if turns[EVENTS] % EVERY == 0:
                parts = by_row, by_column, models, grams, whole
                _solve_in_turn(turns, *parts, moments[LASTING], work)
    return len(y)
