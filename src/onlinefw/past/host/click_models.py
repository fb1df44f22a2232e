"""A model of clicks that learns from entries in lists, one after another."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..._threads import blocks_for, share
from ..._typing import Array, State
from ...kernels import local_clicks
from ...kernels.local_events import EVENTS, LAST_COLUMN, LAST_ROW
from ...kernels.local_models import NEWEST, clear_sums
from ..leaving import Forgotten
from ..mixed_models import NO_WEIGHTS
from .local_models import LocalModels

__all__ = ["ClickModels"]


class ClickModels(LocalModels):
    """One model whose every entry counts: one that was not observed is a 0 of some weight.

    An event is learned in a compiled loop: predicted, added to the lists of its row and its column
    (or to its weight, if it is there), and then these two are solved on all entries of the matrix.
    The products of all rows' factors with themselves, and of all columns', are kept up to date.

    There are no biases, clipping or memories of errors: zeros are where they are.

    Theta is the model of all that was observed. What is best to recommend now is a question of its
    own: ``scores`` are those of a row's ``tastes`` plus ``trend``, what has been frequent of late.
    So a new row gets what is popular now. How much the latest entries count in a taste, and what
    the trend is worth, is learned on the way: what would have ranked events best is in use.

    Attributes
    ----------
    unobserved : float
        The weight of an entry that was not observed, in units of a new observation.
    grams : ndarray of shape (2, width, width)
        The upper triangles of those products, of rows and of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.host.click_models import ClickModels
    >>> from onlinefw.past.host.entry_lists import EntryLists
    >>> lists = EntryLists((3, 3), np.dtype(float))
    >>> models = ClickModels(lists, 2, [[0.1, 0.0, 1.0]], False, False)
    >>> models.unobserved = 0.1
    >>> rows, columns = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0])
    >>> _ = models.learn(rows, columns, np.ones(5))
    >>> bool(np.diff(models.predict(np.array([2, 2]), np.array([1, 2])))[0] < 0.0)  # 1, not 2
    True
    """

    _sums = 2
    unobserved: float = 0.0

    def __init__(self, lists: Any, rank: int | None, *options: Any) -> None:
        super().__init__(lists, rank, *options)
        self._check_at = None
        width = self.models.rows.factors.shape[1]
        self.grams = np.zeros((2, width, width))
        self.wins = np.zeros(local_clicks.ARMS)
        self._taken = np.zeros(0, np.uint8)  # all 0: the columns that a row has had, for kernels
        self._sum_up()

    @property
    def _known(self) -> tuple[int, int]:
        """How many rows and columns there are, up to the last that an event had."""
        return int(self.turns[LAST_ROW]) + 1, int(self.turns[LAST_COLUMN]) + 1

    def _sum_up(self) -> None:
        """Compute the products of all factors from the beginning."""
        rank, sides = self.models.rank, (self.models.rows, self.models.columns)
        self.grams[:] = 0.0
        for gram, side, n in zip(self.grams, sides, self.shape, strict=True):
            local_clicks.add_grams(gram, rank, side.factors, np.arange(n), 1.0)

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
        ranks: Array | None = None,
    ) -> Array:
        """Learn entries one after another; return what was predicted for each before.

        ``ranks`` gets the place that each column had then among those that were known and that
        the row had not had: 1 is the best, nan for one that was new, or that the row has had.
        """
        lists = self.lists
        lists.weigh()
        out = np.empty(len(y)) if solving else self.predict(rows, cols)
        if self._taken.size < self.shape[1]:
            self._taken = np.zeros(len(self.models.columns.factors), np.uint8)
        w, units, ranks = (NO_WEIGHTS if x is None else x for x in (w, units, ranks))
        done, before = 0, self.n_observations
        while done < len(y):
            done = local_clicks.learn_clicks(
                done, rows, cols, y, w, units, lists.by_row, lists.by_column, self.models,
                self.grams, self.unobserved, self.moments, self.turns, self.wins, solving,
                self._taken, self._work, out, ranks,
            )  # fmt: skip
            self.n_observations = before + done
            if done < len(y):
                self._make_space()
        return out

    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        models, one = self.models, float(self.moments[NEWEST])
        sides = (
            (models.rows, rows, self.lists.by_row),
            (models.columns, columns, self.lists.by_column),
        )
        for side, (its, which, lists) in enumerate(sides):
            if not which.size:
                continue
            which = np.ascontiguousarray(which, np.int64)
            work = int(lists.length[which].sum()) * its.factors.shape[1]
            local_clicks.add_grams(self.grams[side], models.rank, its.factors, which, -1.0)
            share(
                local_clicks.solve_clicks, blocks_for(which.size, work), which, side == 0, anew,
                lists, models, self._known, self.grams[1 - side], self.unobserved, one,
            )  # fmt: skip
            local_clicks.add_grams(self.grams[side], models.rank, its.factors, which, 1.0)

    def sweep(self) -> None:
        super().sweep()
        self._sum_up()

    def penalties(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        (m1, m2), (a, b, _) = self._known, self.models.ridges[0]
        one = self.moments[NEWEST]
        zeros = self.unobserved * one
        return a * one + b * (rows + zeros * m2), a * one + b * (columns + zeros * m1)

    # Recommending ---------------------------------------------------------------------------------

    def tastes(self, rows: Array) -> Array:
        """Return what rows like, as factors; 0 for one without entries."""
        self.lists.weigh()
        return local_clicks.tastes(
            np.ascontiguousarray(rows, np.int64), self.lists.by_row, self.models, self._known,
            self.grams[1], self.unobserved, float(self.moments[NEWEST]), self.wins,
        )  # fmt: skip

    def taste_of(self, columns: Array, weights: Array | None = None) -> Array:
        """Return what somebody likes who has had these columns, the latest last."""
        models, one = self.models, float(self.moments[NEWEST])
        columns = np.ascontiguousarray(columns, np.int64)
        weights = np.ones(columns.size) if weights is None else np.asarray(weights, float)
        share, found = self.arm[0], np.zeros(models.rank)
        ways = (share, local_clicks.FRESH, local_clicks.LATEST), (1.0 - share, 1.0, columns.size)
        for part, fresh, latest in ways:
            local_clicks.find_taste(
                models.rank, columns, np.ones(columns.size), one * weights, models.columns.factors,
                self._known[1], self.grams[1], self.unobserved, one, models.ridges[0], fresh,
                latest, self._work,
            )  # fmt: skip
            found += part * self._work.solution[: models.rank]
        return found

    def taste_parts(self, columns: Array, weights: Array | None = None) -> Array:
        """Return what each of these columns adds to ``taste_of`` all of them.

        A taste is A^-1 times the sum of c q over the columns, so each has a part of its own.
        """
        rank, one, n = self.models.rank, float(self.moments[NEWEST]), len(columns)
        factors = self.models.columns.factors[columns, :rank].astype(float)
        weights = one * (np.ones(n) if weights is None else np.asarray(weights, float))
        upper, less = self.grams[1, :rank, :rank], self.unobserved * one
        gram, (a, b, _) = np.triu(upper) + np.triu(upper, 1).T, self.models.ridges[0]
        share, parts = self.arm[0], np.zeros((n, rank))
        ways = (share, local_clicks.FRESH, local_clicks.LATEST), (1.0 - share, 1.0, n)
        for part, fresh, latest in ways:
            at = slice(max(n - latest, 0), n)
            c = weights[at] * fresh ** np.arange(n - at.start)[::-1]
            beyond = np.maximum(c - less, 0.0)[:, None]
            normal = less * gram + factors[at].T @ (beyond * factors[at])
            normal += (a * one + b * (c.sum() + less * self._known[1])) * np.eye(rank)
            parts[at] += part * np.linalg.solve(normal, (c[:, None] * factors[at]).T).T
        return parts

    @property
    def newest(self) -> float:
        """What a new observation weighs."""
        return float(self.moments[NEWEST])

    @property
    def arm(self) -> tuple[float, float]:
        """The share of the latest entries in a taste, and what the trend is worth, as learned."""
        return local_clicks.arm_in_use(self.wins)

    def trend(self) -> Array:
        """Return what columns get for having been frequent of late."""
        memory = self.models.columns.memory[: self.shape[1]].astype(float)
        return self.arm[1] * local_clicks.trend_of(int(self.turns[EVENTS])) * memory

    def scores(self, rows: Array) -> Array:
        """Return the scores of all columns for some rows; the largest is the best."""
        columns = self.models.columns.factors[: self.shape[1], : self.models.rank]
        return self.tastes(rows) @ columns.T.astype(float) + self.trend()

    # Leaving --------------------------------------------------------------------------------------

    def rescale(self, factor: float) -> None:
        self.moments[NEWEST] *= factor
        for sums in (self.models.row_sums, self.models.column_sums):
            sums.equations[: int(sums.used[0]), :, local_clicks.WEIGHTED] *= factor

    def entries_left(self) -> None:
        super().entries_left()
        self._sum_up()

    def forget(self, row: int, gone: Forgotten, low: float, high: float) -> None:
        rows, columns = np.array([row]), np.unique(gone.columns)
        self._left(rows, columns)
        # At least what the row has added to the trend, had it come just now.
        newest = 1.0 / local_clicks.LATELY / local_clicks.trend_of(int(self.turns[EVENTS]))
        counts = np.zeros(self.shape[1])
        np.add.at(counts, gone.columns, np.maximum(gone.weights / self.moments[NEWEST], 1.0))
        memory = self.models.columns.memory
        memory[: counts.size] = np.maximum(memory[: counts.size] - newest * counts, 0.0)
        self._clear(rows, columns)
        self._sum_up()
        lengths = self.lists.by_column.length
        self.solve(rows[:0], self._solved_now(columns[lengths[columns] > 0]))

    def _left(self, rows: Array, columns: Array) -> None:
        clear_sums(self.models.row_sums, rows)
        clear_sums(self.models.column_sums, columns)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        arrays = {"grams": self.grams.copy(), "wins": self.wins.copy()}
        clicks = {"unobserved": float(self.unobserved), **arrays}
        return {**super().state_dict(), "clicks": clicks}

    @classmethod
    def from_state(cls, state: State) -> Self:
        models = super().from_state(state)
        models.unobserved = float(state["clicks"]["unobserved"])
        models.grams[:], models.wins[:] = (state["clicks"][x] for x in ("grams", "wins"))
        return models
