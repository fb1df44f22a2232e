"""Single events of matrix completion: predict, note, and solve the event's own row and column.

Several models with other ridges learn side by side from the same lists, and what is predicted is
their mixture.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from .._typing import Array
from .lists import UNCOUNTED, append, has_space
from .local_models import (
    LARGEST,
    LASTING,
    LEAST,
    MEMORY_PRIOR,
    MODELS_PRIOR,
    NEWEST,
    WEIGHT,
    centre,
    has_sums,
    highest,
    largest_curvature,
    note,
    slope_of,
    start_factors,
    typical_curvature,
    unit,
)
from .local_ridge import solve_column, solve_row

__all__ = [
    "count_events",
    "counting",
    "learn_events",
    "new_turns",
    "predict_entries",
    "predict_events",
    "remembered",
    "turns_between",
    "turns_now",
]

#: Errors are forgotten slowly: after n observations those of the last HORIZON + n / 4 count most.
HORIZON = 20_000.0
#: Where observations fade, errors fade sooner: so many count, as a share of the observations that
#: do.
FADING = 0.2
#: ... and never fewer than this.
SHORTEST_HORIZON = 100.0
#: The variance of a weight grows to so many times that of the beginning, at most: of models that
#: agree nothing can be learned, and it would grow for ever.
MOST_UNCERTAIN = 1000.0
#: How fast the memory of a row's or column's errors forgets: the newest has this share.
RATE = 0.15
#: One event changes the weight of a model by so much at most: what is predicted stays within some
#: multiple of the values, even if one of them is a million times as large as all others.
FARTHEST = 10.0
#: After so many events some more rows and columns are solved, all in turn: one of each, or as many
#: as it takes to come to all of them while the events double ...
EVERY = 8
#: ... but no more than this: rows that have been seen are no more than the events.
MOST_TURNS = 2 * EVERY
#: An array of turns says: how many events came, the row and the column that were solved last in
#: turn, and the largest row and column that an event had.
EVENTS, ROW, COLUMN, LAST_ROW, LAST_COLUMN = range(5)


@njit(cache=True, fastmath={"contract", "reassoc"}, **UNCOUNTED)
def _product(rank, first, rows, i, columns, j):
    total = rows.dtype.type(0)
    for p in range(first, first + rank):
        total += rows[i, p] * columns[j, p]
    return np.float64(total)


@njit(cache=True, **UNCOUNTED)
def _predict(rank, i, j, seen, rows, columns, weights, mean, sigma, out):
    """Write what each model and both memories say, in standard units; return the mixture's value.

    A row that was not seen yet has no bias.
    """
    count = rows.offsets.shape[1]
    width = rows.factors.shape[1] // count
    total = 0.0
    for m in range(count):
        z = np.float64(rows.offsets[i, m]) - mean if seen else 0.0
        z = (z + np.float64(columns.offsets[j, m])) / sigma
        out[m] = z + _product(rank, m * width, rows.factors, i, columns.factors, j)
        total += weights[m] * out[m]
    out[count] = rows.memory[i] / sigma
    out[count + 1] = columns.memory[j] / sigma
    total += weights[count] * out[count]
    total += weights[count + 1] * out[count + 1]
    return mean + sigma * total


@njit(cache=True, nogil=True)
def predict_entries(rank, row, col, lengths, rows, columns, weights, mean, sigma):
    """Return what the mixture predicts for entries, with the memories."""
    out, parts = np.empty(len(row)), np.empty(len(weights))
    for t in range(len(row)):
        i, j = row[t], col[t]
        seen = lengths[i] > 0
        out[t] = _predict(rank, i, j, seen, rows, columns, weights, mean, sigma, parts)
    return out


@njit(cache=True, **UNCOUNTED)
def _mix(slope, curvature, mixture, horizon, bounded, x):
    """Let the mixture learn from slope and curvature of the loss at its prediction of x.

    For squares that is recursive least squares, in which about ``horizon`` errors count. If it is
    ``bounded``, there is a bound on how uncertain weights become.
    """
    weights, spread, image = mixture
    norm = 1.0
    for p in range(len(x)):
        image[p] = 0.0
        for q in range(len(x)):
            image[p] += spread[p, q] * x[q]
        norm += curvature * x[p] * image[p]
    if not norm >= 1.0:
        return  # spread has no negative direction, but for rounding: nothing can be learned
    older = 1.0 + 1.0 / horizon
    step, farthest = slope / norm, 0.0
    for p in range(len(x)):
        farthest = max(farthest, abs(image[p] * step))
    if farthest > FARTHEST:
        step *= FARTHEST / farthest
    for p in range(len(x)):
        weights[p] -= image[p] * step
        for q in range(len(x)):
            spread[p, q] -= curvature * image[p] * image[q] / norm
            spread[p, q] *= older if not bounded else 1.0
    if bounded:
        _forget_errors(spread, older, image)


@njit(cache=True, **UNCOUNTED)
def _forget_errors(spread, older, roots):
    """Multiply ``spread`` with a number, but for what would be too large."""
    for p in range(len(roots)):
        prior = MODELS_PRIOR if p < len(roots) - 2 else MEMORY_PRIOR
        roots[p] = sqrt(older) if spread[p, p] * older * prior <= MOST_UNCERTAIN else 1.0
    for p in range(len(roots)):
        for q in range(len(roots)):
            spread[p, q] *= roots[p] * roots[q]


@njit(cache=True, **UNCOUNTED)
def _predict_and_mix(loss, i, j, y, lists, models, moments, biased, clipped, x):
    """Return what the mixture predicts for an entry, then let it and the memories learn.

    They learn from errors in standard units: for squares the error itself, for other losses the
    step of Newton's method.
    """
    mean, sigma = centre(loss, moments, biased), unit(loss, moments)
    sides, weights = (models.rows, models.columns), models.mixture.weights
    value = _predict(models.rank, i, j, lists.length[i] > 0, *sides, weights, mean, sigma, x)
    value = min(value, highest(loss))
    if moments[WEIGHT] == 0.0:
        return value  # nothing is known yet, so nothing is learned from the error
    alone = 0.0  # what the models predict without memories
    for m in range(len(models.ridges)):
        alone += weights[m] * x[m]
    typical = typical_curvature(loss, mean, sigma)
    alone = mean + sigma * alone
    largest = max(typical, sigma * sigma * largest_curvature(loss, alone, y))
    error = -sigma / largest * slope_of(loss, alone, y)
    # A large count where small ones were expected would count for thousands of errors, and send the
    # weights anywhere: it counts for no more than the prior.
    curvature = sigma * sigma * largest_curvature(loss, value, y)
    most = max(typical, curvature / MODELS_PRIOR)
    curvature, slope = curvature / most, sigma / most * slope_of(loss, value, y)
    fades = moments[LASTING] < np.inf
    if fades:
        horizon = max(FADING * moments[LASTING], SHORTEST_HORIZON)
    else:
        count = moments[WEIGHT] / moments[NEWEST]
        horizon = HORIZON + 0.25 * count if count > HORIZON else np.inf
    _mix(slope, curvature, models.mixture, horizon, fades, x)
    rows, columns = models.rows.memory, models.columns.memory
    rows[i] += RATE * (sigma * error - rows[i])
    columns[j] += RATE * (sigma * error - columns[j])
    return min(max(value, moments[LEAST]), moments[LARGEST]) if clipped else value


def remembered(n: int, lasting: float = np.inf) -> float:
    """Return the number of errors that count in the mixture after n: those forgotten do not.

    It grows by 1 - count / (HORIZON + n / 4) with an error, once there are HORIZON. Where
    observations fade, ``lasting`` of them weigh as much as a long past.
    """
    if lasting < np.inf:
        return min(float(n), max(FADING * lasting, SHORTEST_HORIZON))
    return min(float(n), 0.8 * HORIZON + 0.2 * n)


def new_turns() -> Array:
    """Return the turns before the first event."""
    return np.array([0, -1, -1, -1, -1])


@njit(cache=True, **UNCOUNTED)
def count_events(turns, rows, cols):
    """Count events in these rows and columns."""
    turns[EVENTS] += len(rows)
    for t in range(len(rows)):
        turns[LAST_ROW] = max(turns[LAST_ROW], rows[t])
        turns[LAST_COLUMN] = max(turns[LAST_COLUMN], cols[t])


@njit(cache=True, **UNCOUNTED)
def counting(events, most):
    """Return how many events count, of which there are ``most`` at most."""
    return events if events < most else np.int64(most)


@njit(cache=True, **UNCOUNTED)
def turns_now(events, last):
    """Return how many rows, or columns, of which this is the last one, have their turn now.

    With 2 EVERY n / events of them after EVERY events, n ln 4 come while the events double.
    """
    return min(max(-(-2 * EVERY * (last + 1) // events), 1), MOST_TURNS)


@njit(cache=True, **UNCOUNTED)
def turns_between(before, after, last, most=np.inf):
    """Return how many had their turn while events came, from one number of them to another.

    ``most`` of them count at most: where older ones fade, everything is solved anew while so many
    come.
    """
    total = 0
    for events in range((before // EVERY + 1) * EVERY, after + 1, EVERY):
        total += turns_now(counting(events, most), last)
    return total


@njit(cache=True, **UNCOUNTED)
def _solve_in_turn(turns, by_row, by_column, models, moments, biased, work):
    """Solve some more rows and columns, those whose turn it is.

    Factors of the other side have changed since a row had its last observation. To solve all rows
    and columns whenever the events have doubled helps; in turns nobody waits for that.
    """
    events = counting(turns[EVENTS], moments[LASTING])
    for _ in range(turns_now(events, turns[LAST_ROW])):
        turns[ROW] = turns[ROW] + 1 if turns[ROW] < turns[LAST_ROW] else 0
        if by_row.length[turns[ROW]] > 0:
            for m in range(len(models.ridges)):
                solve_row(m, turns[ROW], by_row, models, moments, biased, False, work)
    for _ in range(turns_now(events, turns[LAST_COLUMN])):
        turns[COLUMN] = turns[COLUMN] + 1 if turns[COLUMN] < turns[LAST_COLUMN] else 0
        if by_column.length[turns[COLUMN]] > 0:
            for m in range(len(models.ridges)):
                solve_column(m, turns[COLUMN], by_column, models, moments, biased, False, work)


@njit(cache=True, nogil=True, **UNCOUNTED)
def predict_events(rows, cols, y, w, units, by_row, models, moments, biased, clipped, work, out):
    """Predict events one after another; moments, mixture and memories learn from each.

    Nothing is appended to lists, and no factor changes. ``by_row`` says how long the lists of rows
    were before the first event. ``units`` is what an observation weighed when each came, as w does
    too; empty: 1.
    """
    for t in range(len(y)):
        i, j = rows[t], cols[t]
        if len(units):
            moments[NEWEST] = units[t]
        out[t] = _predict_and_mix(
            models.loss, i, j, y[t], by_row, models, moments, biased, clipped, work.predicted
        )
        note(moments, y[t], w[t] if len(w) else 1.0)


@njit(cache=True, nogil=True, **UNCOUNTED)
def learn_events(
    first, rows, cols, y, w, units, by_row, by_column, models, moments, turns, biased, clipped,
    solving, work, out,
):  # fmt: skip
    """Learn events one after another; return how many, fewer if lists or sums need more memory.

    Each is predicted into ``out`` before it is learned: appended to the lists of its row and its
    column, whose regressions are then solved, the row first, and now and then those of another row
    and column. Without ``solving`` they are appended, and nothing else.
    """
    for t in range(first, len(y)):
        i, j = rows[t], cols[t]
        if not (has_space(by_row, i) and has_space(by_column, j)):
            return t
        if not has_sums(models.row_sums, i, by_row.length[i] + 1):
            return t
        if not has_sums(models.column_sums, j, by_column.length[j] + 1):
            return t
        weight = w[t] if len(w) else 1.0
        if len(units):
            moments[NEWEST] = units[t]
        if solving:
            out[t] = _predict_and_mix(
                models.loss, i, j, y[t], by_row, models, moments, biased, clipped, work.predicted
            )
            note(moments, y[t], weight)
        if by_column.length[j] == 0:
            start_factors(
                models.columns.factors, len(models.ridges), 0, models.rank, cols[t : t + 1]
            )
        append(by_row, i, j, y[t], weight)
        append(by_column, j, i, y[t], weight)
        count_events(turns, rows[t : t + 1], cols[t : t + 1])
        if solving:
            for m in range(len(models.ridges)):
                solve_row(m, i, by_row, models, moments, biased, False, work)
                solve_column(m, j, by_column, models, moments, biased, False, work)
            if turns[EVENTS] % EVERY == 0:
                _solve_in_turn(turns, by_row, by_column, models, moments, biased, work)
    return len(y)
