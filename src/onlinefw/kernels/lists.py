"""Lists that grow one entry at a time: what has been observed in each row, or in each column.

All lists of one side share the memory of a few arrays. A list that is full moves to a stretch twice
as long, and its old stretch is for others of that length. So an entry is added in constant time, on
average, and lists take one and a half to two times the memory of their entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .._typing import Array

__all__ = [
    "UNCOUNTED",
    "Lists",
    "add_weight",
    "append",
    "append_all",
    "append_summed",
    "copied_lists",
    "has_space",
    "is_there",
    "new_lists",
    "packed",
    "position",
    "remove_row",
    "some_lists",
    "unpacked",
    "value_range",
]

#: Functions that ask for no memory need not count who holds which array: each count is a locked
#: instruction, and the arrays of an event are many.
UNCOUNTED = {"_nrt": False}
#: The shortest stretch of memory. The first two numbers of a free one say where the next one is.
SHORTEST = 2
#: Stretches have lengths of SHORTEST times a power of two, up to this one.
LONGEST = 40


class Lists(NamedTuple):
    """Lists of entries; ``other`` is an entry's column in a list of rows, or its row."""

    start: Array  # where each list begins
    length: Array
    space: Array  # for how many entries each list has space
    other: Array
    value: Array
    weight: Array  # empty while all weigh 1
    free: Array  # the first free stretch of each length, plus 1; 0 if there is none
    end: Array  # one number: where the memory that was never used begins


def new_lists(n: int, memory: int, dtype: np.dtype, weighted: bool = False) -> Lists:
    """Return n empty lists, with memory for so many entries."""
    return Lists(
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.empty(memory, np.uint32),
        np.empty(memory, dtype),
        np.empty(memory if weighted else 0, dtype),
        np.zeros(LONGEST, np.int64),
        np.zeros(1, np.int64),
    )


def copied_lists(lists: Lists, n: int, memory: int, weighted: bool) -> Lists:
    """Return the same lists and empty ones after them, with more memory; weights become 1s."""
    new = new_lists(n, memory, lists.value.dtype, weighted)
    old, used = lists.start.size, int(lists.end[0])
    for name in ("start", "length", "space"):
        getattr(new, name)[:old] = getattr(lists, name)
    for name in ("other", "value"):
        getattr(new, name)[:used] = getattr(lists, name)[:used]
    if weighted:
        new.weight[:used] = lists.weight[:used] if lists.weight.size else 1
    new.free[:], new.end[:] = lists.free, lists.end
    return new


def packed(lists: Lists, n: int) -> tuple[Array, Array, Array, Array]:
    """Return the lengths of the first n lists, and others, values and weights list by list."""
    indptr, other, value, weight = some_lists(lists, slice(n))
    return np.diff(indptr), other, value, weight


def some_lists(lists: Lists, which: Array | slice) -> tuple[Array, Array, Array, Array]:
    """Return some lists one after another: where each begins, and others, values and weights."""
    length = lists.length[which]
    indptr = np.zeros(length.size + 1, np.int64)
    np.cumsum(length, out=indptr[1:])
    at = np.repeat(lists.start[which] - indptr[:-1], length) + np.arange(indptr[-1])
    weight = lists.weight[at] if lists.weight.size else lists.weight.copy()
    return indptr, lists.other[at], lists.value[at], weight


def unpacked(length: Array, other: Array, value: Array, weight: Array) -> Lists:
    """Return the lists that ``packed`` has described."""
    space = np.full(length.size, SHORTEST)
    while (short := space < length).any():
        space[short] *= 2
    space[length == 0] = 0
    memory = int(space.sum())
    lists = new_lists(length.size, memory, value.dtype, weight.size > 0)
    lists.length[:], lists.space[:], lists.end[0] = length, space, memory
    lists.start[:] = np.cumsum(space) - space
    at = np.repeat(lists.start - np.cumsum(length) + length, length) + np.arange(length.sum())
    lists.other[at], lists.value[at] = other, value
    if weight.size:
        lists.weight[at] = weight
    return lists


@njit(cache=True, **UNCOUNTED)
def _size_class(space):
    which = 0
    while (SHORTEST << which) < space:
        which += 1
    return which


@njit(cache=True, **UNCOUNTED)
def has_space(lists, i):
    """Whether list i can take one more entry without more memory."""
    space = lists.space[i]
    if lists.length[i] < space:
        return True
    longer = max(SHORTEST, 2 * space)
    return lists.free[_size_class(longer)] > 0 or lists.end[0] + longer <= len(lists.other)


@njit(cache=True, **UNCOUNTED)
def append(lists, i, other, value, weight):
    """Add an entry to list i, which ``has_space``."""
    n = lists.length[i]
    if n == lists.space[i]:
        _lengthen(lists, i)
    at = lists.start[i] + n
    lists.other[at] = other
    lists.value[at] = value
    if len(lists.weight):
        lists.weight[at] = weight
    lists.length[i] = n + 1


@njit(cache=True, nogil=True, **UNCOUNTED)
def append_all(first, rows, cols, y, w, by_row, by_column):
    """Add entries to the lists of both sides; return how many, fewer if they need more memory."""
    for t in range(first, len(y)):
        i, j = rows[t], cols[t]
        if not (has_space(by_row, i) and has_space(by_column, j)):
            return t
        weight = w[t] if len(w) else 1.0
        append(by_row, i, j, y[t], weight)
        append(by_column, j, i, y[t], weight)
    return len(y)


@njit(cache=True, **UNCOUNTED)
def position(lists, i, other):
    """Return where in list i an entry is, counted from its beginning; -1 if it is not there."""
    start = lists.start[i]
    for k in range(start, start + lists.length[i]):
        if lists.other[k] == other:
            return k - start
    return -1


@njit(cache=True, **UNCOUNTED)
def is_there(by_row, by_column, i, j):
    """Whether entry (i, j) is in the lists of both sides; the shorter one says."""
    if by_row.length[i] <= by_column.length[j]:
        return position(by_row, i, np.uint32(j)) >= 0
    return position(by_column, j, np.uint32(i)) >= 0


@njit(cache=True, **UNCOUNTED)
def add_weight(lists, i, at, value, weight):
    """Observe an entry of list i again: weights add up, and its value is the weighted mean."""
    k = lists.start[i] + at
    before = np.float64(lists.weight[k])
    total = before + weight
    if total > 0.0:
        lists.value[k] = (before * np.float64(lists.value[k]) + weight * value) / total
    lists.weight[k] = total


@njit(cache=True, nogil=True, **UNCOUNTED)
def append_summed(first, rows, cols, y, w, by_row, by_column):
    """Add entries as ``append_all`` does; those that are there already get more weight.

    All entries have weights.
    """
    for t in range(first, len(y)):
        i, j = rows[t], cols[t]
        if is_there(by_row, by_column, i, j):
            add_weight(by_row, i, position(by_row, i, np.uint32(j)), y[t], w[t])
            add_weight(by_column, j, position(by_column, j, np.uint32(i)), y[t], w[t])
            continue
        if not (has_space(by_row, i) and has_space(by_column, j)):
            return t
        append(by_row, i, j, y[t], w[t])
        append(by_column, j, i, y[t], w[t])
    return len(y)


@njit(cache=True, nogil=True, **UNCOUNTED)
def remove_row(row, by_row, by_column):
    """Empty a row's list, and take its entries out of those of columns; others keep their order."""
    start, n = by_row.start[row], by_row.length[row]
    for k in range(start, start + n):
        j = by_row.other[k]
        first, left = by_column.start[j], 0
        for q in range(first, first + by_column.length[j]):
            if by_column.other[q] != row:
                at = first + left
                by_column.other[at] = by_column.other[q]
                by_column.value[at] = by_column.value[q]
                if len(by_column.weight):
                    by_column.weight[at] = by_column.weight[q]
                left += 1
        by_column.length[j] = left
    by_row.length[row] = 0


@njit(cache=True, nogil=True, **UNCOUNTED)
def value_range(lists):
    """Return the smallest and the largest value in all lists."""
    low, high = np.inf, -np.inf
    for i in range(len(lists.length)):
        for k in range(lists.start[i], lists.start[i] + lists.length[i]):
            value = np.float64(lists.value[k])
            low, high = min(low, value), max(high, value)
    return low, high


@njit(cache=True, **UNCOUNTED)
def _lengthen(lists, i):
    """Move list i to a stretch twice as long."""
    n, old = lists.space[i], lists.start[i]
    longer = max(SHORTEST, 2 * n)
    which = _size_class(longer)
    at = lists.free[which] - 1
    if at >= 0:
        lists.free[which] = np.int64(lists.other[at]) | (np.int64(lists.other[at + 1]) << 32)
    else:
        at = lists.end[0]
        lists.end[0] = at + longer
    for k in range(n):
        lists.other[at + k] = lists.other[old + k]
        lists.value[at + k] = lists.value[old + k]
    if len(lists.weight):
        for k in range(n):
            lists.weight[at + k] = lists.weight[old + k]
    if n > 0:
        next_one = lists.free[which - 1]
        lists.other[old] = np.uint32(next_one & 0xFFFFFFFF)
        lists.other[old + 1] = np.uint32(next_one >> 32)
        lists.free[which - 1] = old + 1
    lists.start[i] = at
    lists.space[i] = longer
