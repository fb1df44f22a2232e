"""The state of observed entries, the same from every place, and what must be true of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._state import check_state
from .._typing import Array, State
from .._validation import check_whole
from ..losses import Loss, Square

__all__ = [
    "Counts",
    "all_entries",
    "check_counts",
    "check_entries_shape",
    "check_entries_state",
    "check_offsets",
    "check_unobserved",
    "entries_state",
]

#: The values of an entry: prediction, weight and target.
VALUES = ("z", "c", "s")


class Counts(NamedTuple):
    """How many observations came; of those that are kept, weights and weighted squares."""

    observations: int = 0
    weight: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, counts: Any) -> Counts:
        """Return the counts of a state, which are checked."""
        observations, weight, squares = counts
        return cls(int(observations), float(weight), float(squares))

    def plus(self, w: Array, y: Array) -> Counts:
        """Return the counts with more observations.

        They are added one after another: where a batch ends makes no difference.
        """
        weight = np.add.accumulate(np.append(self.weight, w))[-1]
        squares = np.add.accumulate(np.append(self.squares, w * (y * y)))[-1]
        return Counts(self.observations + w.size, float(weight), float(squares))

    def scaled(self, factor: float) -> Counts:
        """Return the counts of the same observations, all their weights multiplied."""
        return Counts(self.observations, factor * self.weight, factor * self.squares)

    def without(self, weight: float, squares: float, left: int) -> Counts:
        """Return the counts without the weight and the squares of some, if so many are left."""
        if left == 0:
            return Counts(self.observations)
        rest = max(self.weight - weight, 0.0), max(self.squares - squares, 0.0)
        return Counts(self.observations, *rest)


def entries_state(
    sorted_entries: tuple[Array, ...],
    tail: tuple[Array, ...],
    rank: Array,
    ranked_at: int,
    offsets: tuple[Array, Array],
    counts: Counts,
    reads: int,
    unobserved: float = 0.0,
) -> State:
    """Return a state, with copies of the arrays.

    Parameters
    ----------
    sorted_entries : tuple of arrays
        indptr, col, z, c and s in compressed rows, columns (by their numbers) increasing.
    tail : tuple of arrays
        row, col, z, c and s of the newest entries, in the order in which they came.
    rank : ndarray of int
        The number that each column has in ``sorted_entries`` and ``tail``.
    ranked_at : int
        How many entries were sorted when columns were last numbered by popularity.
    offsets : (ndarray, ndarray)
        What is added to the entries of theta, for rows and columns.
    counts : Counts
        Of all observations.
    reads : int
        How often all entries have been read.
    unobserved : float
        The weight of every entry that was not observed.
    """
    return {
        "sorted": dict(zip(("indptr", "col", *VALUES), map(np.array, sorted_entries), strict=True)),
        "tail": dict(zip(("row", "col", *VALUES), map(np.array, tail), strict=True)),
        "rank": np.array(rank),
        "ranked_at": int(ranked_at),
        "offsets": [np.array(offset) for offset in offsets],
        "counts": list(counts),
        "reads": int(reads),
        "unobserved": float(unobserved),
    }


def all_entries(state: State) -> tuple[Array, Array, Array, Array]:
    """Return row, column, weight and target of every entry in a state, in double precision."""
    held, tail, column = state["sorted"], state["tail"], np.argsort(state["rank"])
    rows = np.repeat(np.arange(held["indptr"].size - 1), np.diff(held["indptr"]))
    cols = np.concatenate((held["col"], tail["col"]))
    c, s = (np.concatenate((held[name], tail[name])).astype(float) for name in ("c", "s"))
    return np.concatenate((rows, tail["row"])), column[cols], c, s


def check_entries_shape(state: Any, shape: tuple[int, int]) -> None:
    """Refuse a state that does not hold the pointers and numbers of so many rows and columns."""
    check_state(state, "sorted", "rank")
    check_state(state["sorted"], "indptr")
    held = np.size(state["sorted"]["indptr"]) - 1, np.size(state["rank"])
    if held != shape:
        raise _damaged(f"it is of {held[0]} rows and {held[1]} columns, not {shape}")


def check_entries_state(state: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
    """Refuse a state that compiled loops must not see: they trust every index."""
    check_state(state, "sorted", "tail", "rank", "ranked_at", "offsets", "counts", "reads")
    (m1, m2), held, tail = shape, state["sorted"], state["tail"]
    check_state(held, "indptr", "col", *VALUES)
    check_state(tail, "row", "col", *VALUES)
    n, newest = np.size(held["col"]), np.size(tail["col"])
    _check_array("rank", state["rank"], "iu", m2)
    if not np.array_equal(np.sort(state["rank"]), np.arange(m2)):
        raise _damaged(f"rank does not number {m2} columns")
    indptr = held["indptr"]
    _check_array("sorted.indptr", indptr, "iu", m1 + 1)
    if indptr[0] != 0 or indptr[-1] != n or (np.diff(indptr.astype(np.int64)) < 0).any():
        raise _damaged(f"sorted.indptr does not divide {n} entries into {m1} rows")
    _check_indices("sorted.col", held["col"], n, m2, "columns")
    if n and not _increase(indptr.astype(np.int64), held["col"]):
        raise _damaged("columns do not increase within the rows of sorted.col")
    _check_indices("tail.row", tail["row"], newest, m1, "rows")
    _check_indices("tail.col", tail["col"], newest, m2, "columns")
    for name, part, size in (("sorted", held, n), ("tail", tail, newest)):
        for value in VALUES:
            _check_array(f"{name}.{value}", part[value], "f", size, dtype)
    check_offsets(state["offsets"], shape, dtype)
    check_counts(state["counts"], n + newest)
    if not (state["reads"] >= 0 and state["ranked_at"] >= 0):
        raise _damaged("a count is negative")


def check_offsets(offsets: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
    """Refuse offsets that are not one for each row and one for each column."""
    if len(offsets) != 2:
        raise _damaged("there are not two offsets")
    for name, offset, size in zip(("rows", "columns"), offsets, shape, strict=True):
        _check_array(f"the offset of {name}", offset, "f", size, dtype)


def check_unobserved(state: State, loss: Loss) -> float:
    """Return the weight of entries that were not observed; earlier versions knew none."""
    weight = float(state.get("unobserved", 0.0))
    if not 0.0 <= weight < np.inf or (weight > 0.0 and type(loss) is not Square):
        raise _damaged(f"entries that were not observed weigh {weight} with {loss}")
    return weight


def check_counts(counts: Any, entries: int) -> Counts:
    """Return the counts of a state with so many entries, if that is possible."""
    observations, weight, squares = counts
    check_whole("the number of observations in a state", observations, 0)
    if not (0.0 <= weight < np.inf and 0.0 <= squares < np.inf):
        raise _damaged(f"a total weight of {weight} and squares of {squares}")
    if (observations == 0 < entries) or (weight > 0.0) > (entries > 0):
        raise _damaged(f"{entries} entries from {observations} observations")
    return Counts.of(counts)


def _check_array(
    name: str, array: Any, kinds: str, size: int, dtype: np.dtype | None = None
) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kinds:
        raise _damaged(f"{name} is no array of numbers")
    if array.size != size:
        raise _damaged(f"{name} has {array.size} values instead of {size}")
    if dtype is not None and array.dtype != dtype:
        raise _damaged(f"{name} is {array.dtype} instead of {dtype}")


def _check_indices(name: str, array: Any, size: int, limit: int, what: str) -> None:
    _check_array(name, array, "iu", size)
    if size and not 0 <= array.min() <= array.max() < limit:
        wrong = array[(array < 0) | (array >= limit)][0]
        raise _damaged(f"{name} has {wrong}, but there are {limit} {what}")


def _increase(indptr: Array, col: Array) -> bool:
    """Whether columns never decrease within a row (repeats may be kept apart)."""
    falls = np.flatnonzero(col[1:] < col[:-1]) + 1
    return bool(np.isin(falls, indptr).all())


def _damaged(what: str) -> ValueError:
    return ValueError(f"the state of the entries is damaged: {what}")
