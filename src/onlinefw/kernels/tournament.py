"""The largest of many keys, without reading them all: a tree of upper bounds, eight keys to a node.

A key that grows lifts the bounds above it at once. One that shrinks lowers nothing: bounds that are
too large are found and lowered on the way down to the largest key, and only where they are in the
way. So a change costs one comparison in most cases, and a search a few nodes. What is found does
not depend on the bounds: of equal keys the first is taken.

The keys are those of a table with a row for each coordinate: ``|slope|`` of all of them, or the
slope in the direction of theta of those where theta is not 0 (``active``).
"""

from __future__ import annotations

from math import inf

import numpy as np
from numba import njit

#: Columns of the table.
THETA, SLOPE, BEND = range(3)
#: Keys, or nodes, below a node: as many as one line of the cache holds.
WIDTH, BITS = 8, 3


def levels(n: int) -> np.ndarray:
    """Return where each level of a tree over n keys begins, from the lowest, and its length."""
    starts, size = [0], n
    while size > 1 or len(starts) == 1:
        size = -(-size // WIDTH)
        starts.append(starts[-1] + size)
    return np.array(starts, np.intp)


@njit(inline="always")
def key_of(table, j, active):
    """Return the key of a coordinate."""
    if not active:
        return abs(table[j, SLOPE])
    theta = table[j, THETA]
    if theta == 0.0:
        return -inf
    return table[j, SLOPE] if theta > 0.0 else -table[j, SLOPE]


@njit(inline="always")
def lift(bounds, starts, j, key):
    """Let no bound above coordinate j be below its key."""
    node = j
    for level in range(len(starts) - 1):
        node = node >> BITS
        if not key > bounds[starts[level] + node]:
            return
        bounds[starts[level] + node] = key


@njit(cache=True)
def fill(table, bounds, starts, active):
    """Make the bounds of a table from nothing."""
    bounds[:] = -inf
    for j in range(len(table)):
        lift(bounds, starts, j, key_of(table, j, active))


@njit(cache=True)
def largest(table, bounds, starts, active):
    """Return the coordinate with the largest key; -1 if all are minus infinity."""
    top = len(starts) - 2
    level, node = top, 0
    while True:
        bound = bounds[starts[level] + node]
        if bound == -inf:
            return -1
        first, best, chosen = node << BITS, -inf, 0
        below = len(table) if level == 0 else starts[level] - starts[level - 1]
        for child in range(first, min(first + WIDTH, below)):
            lower = level > 0
            key = bounds[starts[level - 1] + child] if lower else key_of(table, child, active)
            if key > best:
                best, chosen = key, child
        if best == bound:
            if level == 0:
                return chosen
            level, node = level - 1, chosen
        else:  # the bound was too large: lower it, and look from above again
            bounds[starts[level] + node] = best
            if level < top:
                level, node = level + 1, node >> BITS
