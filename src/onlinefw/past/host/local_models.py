"""Models of a matrix that learn from entries in lists, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ..._threads import blocks_for, share
from ..._typing import Array
from ...kernels import local_models as kernels
from ...kernels.local_events import learn_events
from ...kernels.local_ridge import solve_lists
from ..mixed_models import NO_WEIGHTS, MixedModels
from ..mixed_offsets import MixedOffsets
from .entry_lists import EntryLists
from .growing_rank import FIRST, is_in_use, next_rank, with_rank

__all__ = ["LocalModels"]

#: Whether the rank is still enough is asked after so many entries, and whenever they have doubled.
FIRST_CHECK = 1000


class LocalModels(MixedModels):
    """:class:`~onlinefw.past.mixed_models.MixedModels` whose entries are in lists of this process.

    An entry is learned in a compiled loop: predicted, added to the lists of its row and its column,
    and then these two are solved.

    Parameters
    ----------
    lists : EntryLists
        All entries by row and by column, which ``learn`` adds to.
    rank : int or None
        Of each model; None begins with a small one, which grows as long as all of it is in use.
    ridges, biased, clipped, loss
        As there.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.host.entry_lists import EntryLists
    >>> from onlinefw.past.host.local_models import LocalModels
    >>> lists = EntryLists((2, 2), np.dtype(float))
    >>> models = LocalModels(lists, 1, [[1.0, 0.0, 1.0]], True, True)
    >>> rows, columns = np.array([0, 1, 0]), np.array([0, 0, 1])
    >>> models.learn(rows, columns, np.array([3.0, 5.0, 4.0])).round(2)
    array([0., 3., 3.])
    """

    def __init__(self, lists: EntryLists, rank: int | None, *options: Any) -> None:
        self.lists = lists
        super().__init__(lists.dtype, FIRST if rank is None else rank, *options)
        self._check_at = FIRST_CHECK if rank is None else None
        self.grow(*lists.shape)
        self.n_observations = len(lists)
        count, rank = len(self.models.ridges), self.models.rank
        columns = np.flatnonzero(lists.by_column.length)
        kernels.start_factors(self.models.columns.factors, count, 0, rank, columns)

    @classmethod
    def _without_entries(cls, dtype: np.dtype, *options: Any) -> Self:
        return cls(EntryLists((0, 0), dtype), *options)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lists out: they belong to the past, and whoever copies that has them."""
        return {**vars(self), "lists": None}

    def use_lists(
        self, lists: EntryLists, n_observations: int, loss: tuple[int, float] | None
    ) -> None:
        """Learn with these lists from now on; they are of the same observations and loss."""
        if self.models.loss != loss:
            raise ValueError("the models of a state are damaged: they are of another loss")
        self._check_same(lists.shape, lists.dtype, n_observations)
        for sums, one in (
            (self.models.row_sums, lists.by_row),
            (self.models.column_sums, lists.by_column),
        ):
            long = sums.number[: one.length.size] > 0
            if (sums.added[sums.number[: long.size][long] - 1] > one.length[long, None]).any():
                raise ValueError("the models of a state are damaged: sums of more than their lists")
        self.lists = lists

    def _lists(self) -> tuple[Any, Any]:
        return self.lists.by_row, self.lists.by_column

    def offsets(self) -> tuple[MixedOffsets, MixedOffsets]:
        return self._mixed_offsets()

    def predict(self, rows: Array, cols: Array) -> Array:
        if self.shape != self.lists.shape:  # rows and columns that came without observations
            self.grow(*self.lists.shape)
        return super().predict(rows, cols)

    # Learning -------------------------------------------------------------------------------------

    def learn(
        self,
        rows: Array,
        cols: Array,
        y: Array,
        w: Array | None = None,
        units: Array | None = None,
        *,
        solving: bool = True,
    ) -> Array:
        out = np.empty(len(y)) if solving else self._predict_and_note(rows, cols, y, w, units)
        units = NO_WEIGHTS if units is None else units
        lists = self.lists
        if w is None:
            w = NO_WEIGHTS
        else:
            lists.weigh()

        def learn_from(first: int, stop: int) -> int:
            return learn_events(
                first, rows[:stop], cols[:stop], y[:stop], w, units, lists.by_row,
                lists.by_column, self.models, self.moments, self.turns, self.biased, self.clipped,
                solving, self._work, out,
            )  # fmt: skip

        self._learn_in_pieces(len(y), solving, learn_from)
        return out

    def _learn_in_pieces(
        self, n: int, solving: bool, learn_from: Callable[[int, int], int]
    ) -> None:
        """Learn n entries with a loop that goes from one to another, and says how far it came.

        It does not come to the end if there is not enough memory. In between the rank may grow.
        """
        done, before = 0, self.n_observations
        while True:
            stop = self._stop(n, before) if solving else n
            done = learn_from(done, stop)
            self.n_observations = before + done
            if done < stop:
                self._make_space()
            else:
                self._check_rank(solving)
                if done == n:
                    return

    def _make_space(self) -> None:
        """Give more memory to the sums of long lists, if they have none left, else to the lists."""
        models, full = self.models, dict[str, Any]()
        for name in ("row_sums", "column_sums"):
            sums = getattr(models, name)
            had = len(sums.added)
            if int(sums.used[0]) == had:
                full[name] = self._more_sums(sums, 0, had + had // 2 + 4)
        self.models = models._replace(**full)
        if not full:
            self.lists.make_space()

    def _stop(self, n: int, before: int) -> int:
        """Return how many of n entries come before the rank is to be checked."""
        return n if self._check_at is None else min(n, self._check_at - before)

    def _check_rank(self, one_by_one: bool) -> None:
        """Let the models have more rank, if it is time to ask and all of it is in use."""
        if self._check_at is None or self.n_observations < self._check_at:
            return
        while self._check_at <= self.n_observations:
            self._check_at *= 2
        rank = self._rank_for_more(one_by_one)
        if rank > self.models.rank:
            columns = np.flatnonzero(self.lists.by_column.length)
            models = with_rank(self.models, rank, columns, self._sums)
            width, work = kernels.width_of(rank), kernels.new_workspace(models)
            more = self._beside(models)
            vars(self).update(models=models, _width=width, _work=work, **more)  # all at once

    def _rank_for_more(self, one_by_one: bool) -> int:
        """Return the rank for as many observations again."""
        models, rank = self.models, next_rank(self.models.rank)
        if rank > models.rank and is_in_use(models, self.lists.by_row, self.lists.by_column):
            return rank
        return models.rank

    def _beside(self, models: kernels.Models) -> dict[str, Any]:
        """Return what subclasses keep that depends on the rank."""
        return {}

    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        sides = (True, rows, self.lists.by_row), (False, columns, self.lists.by_column)
        for of_rows, which, lists in sides:
            if not which.size:
                continue
            work = int(lists.length[which].sum()) * self.models.rows.factors.shape[1]
            share(
                solve_lists, blocks_for(which.size, work),
                np.ascontiguousarray(which, np.int64), of_rows, anew, lists, self.models,
                self.moments, self.biased,
            )  # fmt: skip

    def _solved_now(self, columns: Array) -> Array:
        return columns[self.models.column_sums.number[columns] == 0]

    def _left(self, rows: Array, columns: Array) -> None:
        kernels.clear_sums(self.models.row_sums, rows)
        kernels.clear_sums(self.models.column_sums, columns)

    def sweep(self) -> None:
        self.solve(np.arange(self.shape[0]), np.arange(self.shape[1]), anew=True)
