"""All observed entries by row and by column, in lists that grow one entry at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._state import check_state
from .._typing import Array, State
from ..native import Pointer, Struct, loops, struct

__all__ = ["EntryLists", "Lists", "lists_that_had", "longer", "what_rows_had"]

#: The shortest stretch of memory, as in ``native/lists.hpp``; stretches double up to 2^40 times it.
SHORTEST, CLASSES = 2, 40
#: What a state has of the lists of a side.
PARTS = ("length", "other", "value", "weight")
#: What a state has of them where nothing more is learned: of rows alone.
HAD = ("length", "columns", "values", "weights")

ListsStruct = struct(
    "Lists",
    start=Pointer(np.int64),
    length=Pointer(np.int64),
    space=Pointer(np.int64),
    other=Pointer(np.uint32),
    value=Pointer("real"),
    weight=Pointer("real", optional=True),
    free=Pointer(np.int64),
    end=Pointer(np.int64),
    memory=int,
)
Entries = struct(
    "Entries",
    first=int,
    n=int,
    which=Pointer(np.int64, read=True),
    others=Pointer(np.int64, read=True),
    y=Pointer(np.float64, read=True),
    w=Pointer(np.float64, read=True, optional=True),
    lists=Struct,
)
Reserve = struct("Reserve", lists=Struct, n=int, more=Pointer(np.int64, read=True))
Removal = struct("Removal", row=int, by_row=Struct, by_column=Struct)
Weighing = struct("Weighing", lists=Struct, n=int, out=Pointer(np.float64))


class Lists:
    """The lists of one side: ``other`` is an entry's column in a list of rows, or its row.

    ``struct`` is what compiled loops get; it stays the same when the lists get more memory.
    """

    def __init__(self, n: int, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.start, self.length, self.space = (np.zeros(n, np.int64) for _ in range(3))
        self.other, self.value = np.zeros(0, np.uint32), np.zeros(0, self.dtype)
        self.weight: Array | None = None
        self.free, self.end = np.zeros(CLASSES, np.int64), np.zeros(1, np.int64)
        self.struct: Any = ListsStruct(self.dtype)
        self._told()

    def _told(self) -> None:
        """Let compiled loops know the arrays."""
        self.struct.set(
            **{x: getattr(self, x) for x in ListsStruct.parts if x != "memory"},
            memory=self.other.size,
        )

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the lists have reserved."""
        arrays = self.start, self.length, self.space, self.other, self.value, self.weight
        return sum(array.nbytes for array in arrays if array is not None)

    def with_space(self, n: int) -> dict[str, Array]:
        """Return the arrays that have to be longer for n lists; nothing changes."""
        return longer_ones(self, ("start", "length", "space"), n)

    def publish(self, arrays: dict[str, Array]) -> None:
        """Have these arrays from now on."""
        vars(self).update(arrays)
        self._told()

    def make_space(self) -> None:
        """Get a quarter more memory, if the longest list could not move."""
        longest, size = int(self.space.max(initial=1)), self.other.size
        if size - int(self.end[0]) < max(SHORTEST, 2 * longest):
            self._have_memory(max(size + size // 4, size + 2 * longest, 64))

    def _have_memory(self, memory: int) -> None:
        self.other, self.value = longer(self.other, memory), longer(self.value, memory)
        if self.weight is not None:
            self.weight = longer(self.weight, memory)
        self._told()

    def reserve(self, more: Array) -> None:
        """Get space for so many more entries in each list at once."""
        needed = self.length[: more.size] + more
        short = needed > self.space[: more.size]
        spaces = np.exp2(np.ceil(np.log2(np.maximum(needed[short], SHORTEST)))).astype(np.int64)
        memory = int(self.end[0]) + int(spaces.sum())
        if memory > self.other.size:
            self._have_memory(max(memory, self.other.size + self.other.size // 4))
        call: Any = Reserve(self.dtype, lists=self.struct, n=more.size, more=more)
        loops.of("reserve_lists", self.dtype)(call.pointer)

    def weigh(self) -> None:
        """Let entries have weights from now on."""
        if self.weight is None:
            self.weight = np.ones(self.other.size, self.dtype)
            self._told()

    def append(self, which: Array, others: Array, y: Array, w: Array | None) -> None:
        """Add entries to these lists, one after another."""
        if w is not None:
            self.weigh()
        call: Any = Entries(
            self.dtype, first=0, n=len(y), which=which, others=others, y=y, w=w, lists=self.struct
        )
        append_all = loops.of("append_all", self.dtype)
        while call.first < call.n:
            call.first = append_all(call.pointer)
            if call.first < call.n:
                self.make_space()

    def some(
        self, which: Array | slice, skipped: Array | int = 0
    ) -> tuple[Array, Array, Array, Array]:
        """Return some lists one after another: where each begins, others, values and weights.

        So many entries at the beginning of each list are left out.
        """
        length = self.length[which] - skipped
        indptr = np.zeros(length.size + 1, np.int64)
        np.cumsum(length, out=indptr[1:])
        at = np.repeat(self.start[which] + skipped - indptr[:-1], length) + np.arange(indptr[-1])
        weight = np.ones(at.size, self.dtype) if self.weight is None else self.weight[at]
        return indptr, self.other[at], self.value[at], weight

    def fill(self, length: Array, other: Array, value: Array, weight: Array | None) -> None:
        """Let these be the entries, list by list, in memory of their own."""
        space = np.full(length.size, SHORTEST)
        while (short := space < length).any():
            space[short] *= 2
        space[length == 0] = 0
        memory = int(space.sum())
        self.length, self.space = length.astype(np.int64), space
        self.start = np.cumsum(space) - space
        at = np.repeat(self.start - np.cumsum(length) + length, length) + np.arange(other.size)
        self.other, self.value = np.zeros(memory, np.uint32), np.zeros(memory, self.dtype)
        self.other[at], self.value[at] = other, value
        self.weight = None
        if weight is not None:
            self.weight = np.ones(memory, self.dtype)
            self.weight[at] = weight
        self.free[:], self.end[0] = 0, memory
        self._told()


class EntryLists:
    """An entry is in the list of its row and in that of its column.

    So all that a row or a column has seen is read in time proportional to its number. In single
    precision an entry takes 8 bytes in each list, 12 if entries have weights; with what lists have
    to spare that is about 23 bytes an entry, or 34.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns; more come as a model grows.
    dtype : dtype
        float32 or float64, of values and weights.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.factors.lists import EntryLists
    >>> lists = EntryLists((2, 3), float)
    >>> lists.append(np.array([0, 1, 0]), np.array([2, 2, 1]), np.array([3.0, 5.0, 4.0]))
    >>> lists.columns_of(0)
    array([1, 2])
    """

    def __init__(self, shape: tuple[int, int], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.by_row, self.by_column = (Lists(n, self.dtype) for n in shape)

    def __len__(self) -> int:
        return int(self.by_row.length.sum())

    @property
    def weighted(self) -> bool:
        """Whether entries have weights; until one has, all weigh 1."""
        return self.by_row.weight is not None

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the lists have reserved."""
        return self.by_row.nbytes + self.by_column.nbytes

    def make_space(self) -> None:
        """Give the lists more memory; those that have enough for their longest are left alone."""
        self.by_row.make_space()
        self.by_column.make_space()

    def reserve(self, rows: Array, cols: Array) -> None:
        """Get space for entries that will come, which saves moving lists again and again."""
        self.by_row.reserve(np.bincount(rows, minlength=1))
        self.by_column.reserve(np.bincount(cols, minlength=1))

    def weigh(self) -> None:
        """Let entries have weights from now on."""
        self.by_row.weigh()
        self.by_column.weigh()

    def append(self, rows: Array, cols: Array, y: Array, w: Array | None = None) -> None:
        """Add entries; they are in the matrix. An entry that is there already is kept apart."""
        self.by_row.append(rows, cols, y, w)
        self.by_column.append(cols, rows, y, w)

    # Leaving --------------------------------------------------------------------------------------

    def rescale(self, factor: float) -> None:
        """Multiply all weights; entries have some."""
        for one in (self.by_row, self.by_column):
            if one.weight is not None:
                one.weight *= one.dtype.type(factor)

    def drop(self, least: float) -> tuple[Array, Array]:
        """Drop entries that weigh less; return their weights and values.

        The others are in memory of their own, so that what was for more entries is free.
        """
        gone = np.empty(0), np.empty(0)
        for one in (self.by_row, self.by_column):
            indptr, other, value, weight = one.some(slice(None))
            kept = weight >= least
            gone = weight[~kept], value[~kept]
            of = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
            left = np.bincount(of[kept], minlength=indptr.size - 1).astype(np.int64)
            one.fill(left, other[kept], value[kept], weight[kept])
        return gone

    def forget(self, row: int) -> tuple[Array, Array, Array]:
        """Remove a row's entries; return their columns, weights and values."""
        _, columns, values, weights = self.by_row.some(np.array([row]))
        start = int(self.by_row.start[row])
        call: Any = Removal(
            self.dtype, row=row, by_row=self.by_row.struct, by_column=self.by_column.struct
        )
        loops.of("remove_row", self.dtype)(call.pointer)
        self.by_row.value[start : start + values.size] = 0
        return columns.astype(np.int64), weights.astype(float), values.astype(float)

    # Asking ---------------------------------------------------------------------------------------

    def total_weight(self) -> float:
        """Return the weight of all entries."""
        out = np.zeros(1)
        call: Any = Weighing(self.dtype, lists=self.by_row.struct, n=self.shape[0], out=out)
        loops.of("total_weight", self.dtype)(call.pointer)
        return float(out[0])

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed, increasing."""
        start, n = int(self.by_row.start[row]), int(self.by_row.length[row])
        return np.unique(self.by_row.other[start : start + n]).astype(np.int64)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return the lists of both sides."""
        state = {}
        for name, one, n in zip(
            ("rows", "columns"), (self.by_row, self.by_column), self.shape, strict=True
        ):
            indptr, other, value, weight = one.some(slice(n))
            weight = weight if self.weighted else weight[:0]
            state[name] = dict(zip(PARTS, (np.diff(indptr), other, value, weight), strict=True))
        return state

    @classmethod
    def from_state(cls, state: State, shape: tuple[int, int], dtype: Any) -> Self:
        """Make the lists that ``state_dict`` described, or say what is wrong with them."""
        check_lists_state(state, shape, np.dtype(dtype))
        lists = cls(shape, dtype)
        for name, one in (("rows", lists.by_row), ("columns", lists.by_column)):
            length, other, value, weight = (state[name][x] for x in PARTS)
            one.fill(length, other, value, weight if weight.size else None)
        return lists


def longer(array: Array, n: int) -> Array:
    """Return an array of n items, which are those of another and then zeros."""
    found = np.zeros((n, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    return found


def longer_ones(owner: Any, names: Sequence[str], n: int) -> dict[str, Array]:
    """Return longer copies of those arrays that have less than n items, with some to spare."""
    short = {x: getattr(owner, x) for x in names if len(getattr(owner, x)) < n}
    return {x: longer(array, max(n, len(array) + len(array) // 2)) for x, array in short.items()}


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
    by_row, by_column = state["rows"], state["columns"]
    of_rows = np.repeat(np.arange(shape[0]), by_row["length"]) * shape[1] + by_row["other"]
    of_columns = by_column["other"].astype(np.int64) * shape[1]
    of_columns += np.repeat(np.arange(shape[1]), by_column["length"])
    if not np.array_equal(np.sort(of_rows), np.sort(of_columns)):
        raise _damaged("rows and columns do not have the same entries")


def what_rows_had(lists: EntryLists, *, values: bool = True) -> State:
    """Return what ``lists_that_had`` makes lists of, for a model that learns no more."""
    indptr, columns, value, weight = lists.by_row.some(slice(lists.shape[0]))
    plain = not values or not (value != 1.0).any(), not lists.weighted or not values
    value, weight = (x[:0] if none else x for x, none in zip((value, weight), plain, strict=True))
    return dict(zip(HAD, (np.diff(indptr), columns, value, weight), strict=True))


def lists_that_had(state: State, m1: int, m2: int, dtype: np.dtype) -> State:
    """Return the state of lists in which rows have had these columns.

    Without values all are 1; without weights all weigh 1.
    """
    check_state(state, "had")
    check_state(state["had"], *HAD)
    length, columns, value, weight = (state["had"][name] for name in HAD)
    good = all(isinstance(x, np.ndarray) and x.ndim == 1 for x in (length, columns, value, weight))
    if not good or length.dtype != np.int64 or columns.dtype != np.uint32 or length.size != m1:
        raise _damaged("not arrays of rows")
    if (length < 0).any() or any(x.size not in some for x, some in (
        (columns, {int(length.sum())}), (value, {0, columns.size}), (weight, {0, columns.size})
    )):  # fmt: skip
        raise _damaged("of different lengths")
    if columns.size and int(columns.max()) >= m2:
        raise _damaged(f"{columns.max()} of {m2} columns")
    value = value if value.size else np.ones(columns.size, dtype)
    order = np.argsort(columns, kind="stable")
    rows = np.repeat(np.arange(m1, dtype=np.uint32), length)[order]
    of_columns = np.bincount(columns, minlength=m2).astype(np.int64)
    sorted_weight = weight[order] if weight.size else weight
    return {
        "rows": dict(zip(PARTS, (length, columns, value, weight), strict=True)),
        "columns": dict(zip(PARTS, (of_columns, rows, value[order], sorted_weight), strict=True)),
    }


def _check_array(side: State, name: str, dtype: Any, size: int, of: str) -> None:
    array = side[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != (size,):
        raise _damaged(f"{name} of the {of} is no array of {size} {np.dtype(dtype)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise _damaged(f"{name} of the {of} has a number that is not finite")


def _damaged(what: str) -> ValueError:
    return ValueError(f"the lists of entries in a state are damaged: {what}")
