"""Observed entries in lists by row and by column, for local corrections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._state import check_state
from ..._threads import balanced_blocks
from ..._typing import Array, State
from ...iterates import LowRank
from ...kernels.lists import some_lists
from ...kernels.ridge import normal_rows
from ...losses import Loss
from ..entries_state import Counts, all_entries, check_counts, check_offsets, check_unobserved
from ..leaving import Forgotten, sums_of
from ..mixed_offsets import MixedOffsets
from ..some_regressions import Other, SomeRegressions, packed_size
from ..stored_entries import NONE, SUMMABLE
from ..unobserved import ListedZeros
from .entries import HostEntries
from .entry_lists import EntryLists
from .entry_store import EntryStore, Unfinished

__all__ = ["ListedEntries", "listed_state", "sorted_state"]


class ListedEntries(ListedZeros, SomeRegressions, HostEntries):
    """:class:`~onlinefw.past.protocols.ListedPast` in this process's memory: entries in lists.

    Local corrections read the lists, and add entries to them. What reads all entries (gradients,
    values, certificates) needs them sorted, with their predictions: that is made from the lists
    when it is asked for, and given up when the next entries come.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.iterates import LowRank
    >>> from onlinefw.losses import Square
    >>> from onlinefw.past.host.listed_entries import ListedEntries
    >>> past = ListedEntries(LowRank((2, 3)), float, Square())
    >>> past.append(np.array([0, 1]), np.array([2, 0]), np.ones(2), np.array([1.0, -4.0]))
    array([0., 0.])
    >>> past.lists.columns_of(1), past.total_loss()
    (array([0]), 0.0)
    """

    listed = True
    _changed_by_growth: ClassVar[tuple[str, ...]] = ("_kept", "_offsets", "_version")
    _kept: EntryStore | None

    def __init__(self, theta: LowRank, dtype: Any, loss: Loss) -> None:
        self.lists = EntryLists(theta.shape, np.dtype(dtype))
        self._counts = Counts()
        self._kept = None
        self._offsets: list[Any] = [np.zeros(n, dtype) for n in theta.shape]
        super().__init__(theta, dtype, loss)
        self._kept = None  # the store of no entries that a past begins with

    # The sorted store -----------------------------------------------------------------------------

    @property
    def _store(self) -> EntryStore:
        """All entries sorted; predictions are out of date where it has just been made."""
        if self._kept is None:
            row, col, w, y = self.lists.entries()
            z, s = np.zeros_like(y), w * y if self.sums_repeats else y
            store: Any = EntryStore.empty(self.shape, self.dtype)
            store = store.extended(row, col.astype(np.int64), z, w, s, self._counts)
            self._version, self._due = NONE, True
            self._kept = _finished(_finished(store.merged(row.size, self.sums_repeats)).reranked())
        return self._kept

    @_store.setter
    def _store(self, store: EntryStore) -> None:
        self._kept = store

    @property
    def local_loss(self) -> tuple[int, float] | None:
        """What local corrections know of the loss: kind and parameter; None for squares."""
        return None if self.quadratic else (self.kind, self.parameter)

    @property
    def counts(self) -> Counts:
        return self._counts

    @property
    def shape(self) -> tuple[int, int]:
        return self.lists.shape

    @property
    def n_sorted(self) -> int:
        return len(self.lists)

    @property
    def n_newest(self) -> int:
        return 0

    def __len__(self) -> int:
        return len(self.lists)

    # Adding ---------------------------------------------------------------------------------------

    def count(self, w: Array, y: Array) -> None:
        """Count entries, which the caller adds to the lists."""
        self._lose_predictions()
        self._counts = self._counts.plus(w, y)

    def _lose_predictions(self) -> None:
        self._line = self._regressions = self._pending = self._kept = None
        self._version = NONE  # no predictions are held: a move has nothing to move

    def append(self, rows: Array, cols: Array, w: Array, y: Array, z: Array | None = None) -> Array:
        z = self.theta.at(rows, cols) if z is None else z
        self.count(w, y)
        if self.unobserved > 0.0:
            self.lists.append_summed(rows, cols, y, w)
        else:
            self.lists.append(rows, cols, y, None if (w == 1.0).all() else w)
        return z

    def merge(self, n: int) -> None:
        """Everything is sorted already."""

    def rescale(self, factor: float) -> None:
        self._lose_predictions()
        self.lists.weigh()
        self.lists.rescale(factor)
        self._counts = self._counts.scaled(factor)

    def drop(self, least: float) -> tuple[float, float]:
        self._lose_predictions()
        self.lists.weigh()
        weights, values = self.lists.drop(least)
        gone = sums_of(weights, values, False)
        self._counts = self._counts.without(*gone, len(self.lists))
        return gone

    def forget(self, row: int) -> Forgotten:
        self._lose_predictions()
        columns, weights, values = self.lists.forget(row)
        gone = sums_of(weights, values, False)
        self._counts = self._counts.without(*gone, len(self.lists))
        return Forgotten(columns, weights, values)

    def value_range(self) -> tuple[float, float]:
        return self.lists.value_range()

    def grow(self, m1: int, m2: int) -> None:
        self._line = self._regressions = self._pending = self._kept = None
        self._version = NONE
        self.lists.grow(m1, m2)
        self._offsets = [
            offset if isinstance(offset, MixedOffsets) else np.pad(offset, (0, n - offset.size))
            for offset, n in zip(self._offsets, self.lists.shape, strict=True)
        ]

    def remember(self) -> dict[str, Any]:
        return {**super().remember(), "lists": self.lists.remember()}

    def go_back(self, memory: dict[str, Any]) -> bool:
        self.lists.go_back(memory["lists"])
        return super().go_back({name: memory[name] for name in self._changed_by_growth})

    # Offsets --------------------------------------------------------------------------------------

    def set_offsets(self, rows: Any, columns: Any) -> None:
        self._line = self._regressions = None
        offsets = [
            one if isinstance(one, MixedOffsets) else np.array(one, self.dtype)
            for one in (rows, columns)
        ]
        self._due, self._offsets = True, offsets

    @property
    def row_offset(self) -> Array:
        """What is added in every row."""
        return self._offset(0)

    @row_offset.setter
    def row_offset(self, offset: Array) -> None:
        self._offsets[0] = offset

    @property
    def col_offset(self) -> Array:
        """What is added in every column."""
        return self._offset(1)

    @col_offset.setter
    def col_offset(self, offset: Array) -> None:
        self._offsets[1] = offset

    def _offset(self, side: int) -> Array:
        offset = self._offsets[side]
        if isinstance(offset, MixedOffsets):
            offset = self._offsets[side] = offset.all(self.shape[side], self.dtype)
        return offset

    # Asking ---------------------------------------------------------------------------------------

    def columns_of(self, row: int) -> Array:
        return self.lists.columns_of(row)

    def equations(self, of_rows: bool, which: Array, other: Other, mean: float) -> Array:
        lists = self.lists.by_row if of_rows else self.lists.by_column
        indptr, index, value, weight = some_lists(lists, which)
        out = np.empty((which.size, other.offsets.shape[1], packed_size(other.rank)))
        blocks = balanced_blocks(indptr)
        for m in range(out.shape[1]):
            factors, offsets = other.of(m)
            features = np.empty((len(factors), other.rank + 1), self.dtype)
            features[:, :-1], features[:, -1] = factors, 1
            target = value - (offsets[index] + self.dtype.type(mean))
            target = target * weight if weight.size else target
            part = np.empty((which.size, out.shape[2]))
            normal_rows(blocks, indptr, index, weight, target, features, part)
            out[:, m] = part
        return out

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        return {
            "lists": self.lists.state_dict(),
            "offsets": [np.array(self.row_offset), np.array(self.col_offset)],
            "counts": list(self._counts),
            "reads": int(self.reads),
            "unobserved": float(self.unobserved),
        }

    def load_state(self, state: State) -> None:
        check_state(state, "lists", "offsets", "counts", "reads")
        lists = EntryLists.from_state(state["lists"], self.theta.shape, self.dtype)
        counts = check_counts(state["counts"], len(lists))
        check_offsets(state["offsets"], self.theta.shape, self.dtype)
        self.set_offsets(*state["offsets"])
        self._pending, self._kept, self.reads = None, None, int(state["reads"])
        self.lists, self._counts, self._version = lists, counts, NONE
        self.set_unobserved(check_unobserved(state, self.loss))


def sorted_state(state: State, theta: LowRank, dtype: Any, loss: Loss) -> State:
    """Return the state of listed entries as sorted ones have it, with the predictions of theta."""
    here = ListedEntries(LowRank.from_state(theta.state_dict()), dtype, loss)
    here.load_state(state)
    return HostEntries.state_dict(here)


def listed_state(state: State, dtype: Any, loss: Loss) -> State:
    """Return the state of sorted entries as listed ones have it, without predictions."""
    rows, cols, c, s = all_entries(state)
    shape = state["sorted"]["indptr"].size - 1, state["rank"].size
    y = np.divide(s, c, where=c > 0.0, out=0.0 * s) if type(loss) in SUMMABLE else s
    lists = EntryLists(shape, np.dtype(dtype))
    if state.get("unobserved", 0.0) > 0.0:
        lists.append_summed(rows, cols, y, c)
    else:
        lists.append(rows, cols, y, None if (c == 1.0).all() else c)
    same = {name: state[name] for name in ("offsets", "counts", "reads")}
    same["unobserved"] = state.get("unobserved", 0.0)
    return {"lists": lists.state_dict(), **same}


def _finished(store: EntryStore | Unfinished) -> EntryStore:
    return store.finish() if isinstance(store, Unfinished) else store
