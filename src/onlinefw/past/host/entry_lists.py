"""All observed entries by row and by column, in lists that grow one entry at a time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..._state import check_state
from ..._typing import Array, State
from ...kernels.lists import (
    SHORTEST,
    Lists,
    append_all,
    append_summed,
    copied_lists,
    new_lists,
    packed,
    remove_row,
    unpacked,
    value_range,
)

__all__ = ["EntryLists"]

#: What a state has of the lists of a side.
PARTS = ("length", "other", "value", "weight")
_NO_WEIGHTS = np.empty(0)


class EntryLists:
    """An entry is in the list of its row and in that of its column.

    So all that a row or a column has seen is read in time proportional to its number. In single
    precision an entry takes 8 bytes in each list, 12 if entries have weights; with what lists have
    to spare that is about 23 bytes an entry, or 34.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns; more come with ``grow``.
    dtype : dtype
        float32 or float64, of values and weights.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.host.entry_lists import EntryLists
    >>> lists = EntryLists((2, 3), np.dtype(float))
    >>> lists.append(np.array([0, 1, 0]), np.array([2, 2, 1]), np.array([3.0, 5.0, 4.0]))
    >>> lists.columns_of(0)
    array([1, 2])
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.by_row, self.by_column = (new_lists(n, 0, self.dtype) for n in shape)

    def __len__(self) -> int:
        return int(self.by_row.length.sum())

    @property
    def weighted(self) -> bool:
        """Whether entries have weights; until one has, all weigh 1."""
        return self.by_row.weight.size > 0

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the lists have reserved."""
        return sum(array.nbytes for lists in (self.by_row, self.by_column) for array in lists)

    # Growing --------------------------------------------------------------------------------------

    def grow(self, m1: int, m2: int) -> None:
        """Let there be m1 rows and m2 columns at least."""
        shape = max(m1, self.shape[0]), max(m2, self.shape[1])
        lists = []
        for one, n in zip((self.by_row, self.by_column), shape, strict=True):
            old = one.start.size
            more = max(n, old + old // 2) if n > old else old
            same = more == old
            lists.append(one if same else copied_lists(one, more, one.other.size, self.weighted))
        self._replace(shape, *lists)

    def _replace(self, shape: tuple[int, int], by_row: Lists, by_column: Lists) -> None:
        parts = {"shape": shape, "by_row": by_row, "by_column": by_column}
        vars(self).update(parts)  # all at once

    def remember(self) -> tuple[Any, ...]:
        """Return what ``go_back`` needs to undo growth."""
        return self.shape, self.by_row, self.by_column

    def go_back(self, memory: tuple[Any, ...]) -> None:
        """Undo growth, if no entries came since."""
        self._replace(*memory)

    def make_space(self) -> None:
        """Give the lists a quarter of their memory more, and some.

        Those of a side that has enough for its longest list to move are left as they are.
        """
        lists = []
        for one in (self.by_row, self.by_column):
            longest = int(one.space.max(initial=1))
            size = one.other.size
            memory = max(size + size // 4, size + 2 * longest, 64)
            full = size - int(one.end[0]) < max(SHORTEST, 2 * longest)
            lists.append(copied_lists(one, one.start.size, memory, self.weighted) if full else one)
        self._replace(self.shape, *lists)

    def weigh(self) -> None:
        """Let entries have weights from now on."""
        if not self.weighted:
            both = self.by_row, self.by_column
            self._replace(
                self.shape,
                *(copied_lists(one, one.start.size, max(1, one.other.size), True) for one in both),
            )

    def append(self, rows: Array, cols: Array, y: Array, w: Array | None = None) -> None:
        """Add entries; they are in the matrix. An entry that is there already is kept apart."""
        if w is not None:
            self.weigh()
        done = 0
        while True:
            given = _NO_WEIGHTS if w is None else w
            done = append_all(done, rows, cols, y, given, self.by_row, self.by_column)
            if done == len(y):
                return
            self.make_space()

    def append_summed(self, rows: Array, cols: Array, y: Array, w: Array) -> None:
        """Add entries; one that is there already gets more weight."""
        self.weigh()
        done = 0
        while True:
            done = append_summed(done, rows, cols, y, w, self.by_row, self.by_column)
            if done == len(y):
                return
            self.make_space()

    # Leaving --------------------------------------------------------------------------------------

    def rescale(self, factor: float) -> None:
        """Multiply all weights; entries have some."""
        with np.errstate(all="ignore"):  # memory that lists have to spare holds anything
            both = [
                one._replace(weight=factor * one.weight) for one in (self.by_row, self.by_column)
            ]
        self._replace(self.shape, *both)

    def drop(self, least: float) -> tuple[Array, Array]:
        """Drop entries that weigh less; return their weights and values.

        The others are in memory of their own, so that what was for more entries is free.
        """
        sides, gone = [], None
        for one, n in ((self.by_row, self.shape[0]), (self.by_column, self.shape[1])):
            length, other, value, weight = packed(one, n)
            kept = weight >= least
            gone = weight[~kept], value[~kept]
            of = np.repeat(np.arange(n), length)
            left = np.bincount(of[kept], minlength=n).astype(np.int64)
            sides.append(unpacked(left, other[kept], value[kept], weight[kept]))
        assert gone is not None
        self._replace(self.shape, *sides)
        self.weigh()
        return gone

    def forget(self, row: int) -> tuple[Array, Array, Array]:
        """Remove a row's entries; return their columns, weights and values."""
        its = slice(
            int(self.by_row.start[row]), int(self.by_row.start[row] + self.by_row.length[row])
        )
        columns = self.by_row.other[its].astype(np.int64)
        values = self.by_row.value[its].astype(float)
        weights = self.by_row.weight[its].astype(float) if self.weighted else np.ones(values.size)
        remove_row(row, self.by_row, self.by_column)
        self.by_row.value[its] = 0
        return columns, weights, values

    def value_range(self) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        low, high = value_range(self.by_row)
        return float(low), float(high)

    # Asking ---------------------------------------------------------------------------------------

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed, increasing."""
        start, n = int(self.by_row.start[row]), int(self.by_row.length[row])
        return np.unique(self.by_row.other[start : start + n]).astype(np.int64)

    def entries(self) -> tuple[Array, Array, Array, Array]:
        """Return row, column, weight and value of every entry, row by row."""
        length, cols, values, weights = packed(self.by_row, self.shape[0])
        rows = np.repeat(np.arange(length.size, dtype=np.uint32), length)
        return rows, cols, weights if weights.size else np.ones_like(values), values

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return the lists of both sides."""
        sides = (self.by_row, self.shape[0]), (self.by_column, self.shape[1])
        rows, columns = (dict(zip(PARTS, packed(*side), strict=True)) for side in sides)
        return {"rows": rows, "columns": columns}

    @classmethod
    def from_state(cls, state: State, shape: tuple[int, int], dtype: np.dtype) -> Self:
        """Make the lists that ``state_dict`` described, or say what is wrong with them."""
        check_lists_state(state, shape, dtype)
        lists = cls(shape, dtype)
        rows, columns = (unpacked(*(state[side][x] for x in PARTS)) for side in ("rows", "columns"))
        lists._replace(shape, rows, columns)
        return lists


def check_lists_state(state: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
    """Refuse lists that compiled loops must not see: they trust every index."""
    check_state(state, "rows", "columns")
    for name, n, others in (("rows", shape[0], shape[1]), ("columns", shape[1], shape[0])):
        side = state[name]
        check_state(side, *PARTS)
        _check_array(side, "length", np.int64, n, name)
        size = int(side["length"].sum())
        if (side["length"] < 0).any():
            raise _damaged(f"a list of {name} has a negative length")
        _check_array(side, "other", np.uint32, size, name)
        if size and int(side["other"].max()) >= others:
            raise _damaged(f"the lists of {name} have {side['other'].max()}, not below {others}")
        _check_array(side, "value", dtype, size, name)
        _check_array(side, "weight", dtype, size if np.size(side["weight"]) else 0, name)
        if (side["weight"] < 0.0).any():
            raise _damaged(f"a weight of the {name} is negative")
    for one, two in (("rows", "columns"), ("columns", "rows")):
        counts = np.bincount(state[one]["other"], minlength=state[two]["length"].size)
        weighted = np.size(state[one]["weight"]) > 0
        if not np.array_equal(counts, state[two]["length"]):
            raise _damaged("rows and columns do not agree")
        if weighted != (np.size(state[two]["weight"]) > 0):
            raise _damaged("rows and columns do not agree on weights")


def _check_array(side: State, name: str, dtype: Any, size: int, of: str) -> None:
    array = side[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != (size,):
        raise _damaged(f"{name} of the {of} is no array of {size} {np.dtype(dtype)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise _damaged(f"{name} of the {of} has a number that is not finite")


def _damaged(what: str) -> ValueError:
    return ValueError(f"the lists of entries in a state are damaged: {what}")
