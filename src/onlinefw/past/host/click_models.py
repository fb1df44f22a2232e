"""A model of clicks that learns from entries in lists, one after another."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..._threads import blocks_for, share
from ..._typing import Array, State
from ...kernels import click_tastes, local_clicks
from ...kernels.click_events import learn_clicks, whole_of
from ...kernels.local_events import EVENTS
from ...kernels.local_models import NEWEST, WEIGHT, Models, clear_sums
from ..leaving import Forgotten
from ..mixed_models import NO_WEIGHTS
from .growing_rank import rank_for_clicks
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
        self.wins = np.zeros(click_tastes.ARMS)
        self._taken = np.zeros(0, np.uint8)  # all 0: the columns that a row has had, for kernels
        self._sum_up()

    @property
    def _whole(self) -> local_clicks.Whole:
        return whole_of(self.turns, self.moments, self.unobserved)

    def _sum_up(self) -> None:
        """Compute the products of all factors, and the weight of all entries, from the start."""
        self.grams = self._beside(self.models)["grams"]
        self.moments[WEIGHT] = local_clicks.total_weight(self.lists.by_row)

    def _beside(self, models: Models) -> dict[str, Any]:
        width, sides = models.rows.factors.shape[1], (models.rows, models.columns)
        grams = np.zeros((2, width, width))
        for gram, side, n in zip(grams, sides, self.shape, strict=True):
            local_clicks.add_grams(gram, models.rank, side.factors, np.arange(n), 1.0)
        return {"grams": grams}

    def _rank_for_more(self, one_by_one: bool) -> int:
        whole = self._whole
        shape = whole.n_rows, whole.n_columns
        return rank_for_clicks(self.n_observations, *shape, one_by_one=one_by_one)

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
        if not solving:
            self._judge(rows, cols)
        w, units, ranks = (NO_WEIGHTS if x is None else x for x in (w, units, ranks))

        def learn_from(first: int, stop: int) -> int:
            return learn_clicks(
                first, rows[:stop], cols[:stop], y[:stop], w, units, lists.by_row,
                lists.by_column, self.models, self.grams, self.unobserved, self.moments,
                self.turns, self.wins, solving, self._taken, self._work, out, ranks,
            )  # fmt: skip

        self._learn_in_pieces(len(y), solving, learn_from)
        return out

    def _judge(self, rows: Array, cols: Array) -> None:
        """Let a batch say what counts in a taste: some of its events, with what is known before.

        Their rows are solved first. The latest entries are, too, when somebody asks for a taste.
        """
        some = slice(None, None, click_tastes.judged_of(rows.size))
        rows, cols = rows[some], cols[some]
        self.solve(np.unique(rows), cols[:0])
        lists = self.lists.by_row, self.lists.by_column
        parts = self.models, self.grams[1], self._whole, self.wins, self._taken
        click_tastes.judge_all(rows, cols, int(self.turns[EVENTS]), *lists, *parts)

    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        models, whole = self.models, self._whole
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
                lists, models, self.grams[1 - side], whole,
            )  # fmt: skip
            local_clicks.add_grams(self.grams[side], models.rank, its.factors, which, 1.0)

    def sweep(self) -> None:
        super().sweep()
        self._sum_up()

    def penalties(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        ridge, whole = self.models.ridges[0], self._whole
        of_arrays = local_clicks.penalty_of.py_func  # what is compiled takes one number
        rows = of_arrays(ridge, rows, whole.n_columns, whole)
        return rows, of_arrays(ridge, columns, whole.n_rows, whole)

    # Recommending ---------------------------------------------------------------------------------

    def tastes(self, rows: Array) -> Array:
        """Return what rows like, as factors; 0 for one without entries."""
        self.lists.weigh()
        rows = np.ascontiguousarray(rows, np.int64)
        parts = self.lists.by_row, self.models, self.grams[1], self._whole, self.wins
        return click_tastes.tastes(rows, *parts)

    def taste_of(self, columns: Array, weights: Array | None = None) -> Array:
        """Return what somebody likes who has had these columns, the latest last."""
        models, one = self.models, float(self.moments[NEWEST])
        columns = np.ascontiguousarray(columns, np.int64)
        weights = np.ones(columns.size) if weights is None else np.asarray(weights, float)
        share, found = self.arm[0], np.zeros(models.rank)
        ways = (share, click_tastes.FRESH, click_tastes.LATEST), (1.0 - share, 1.0, columns.size)
        for part, fresh, latest in ways:
            local_clicks.find_taste(
                models.rank, columns, np.ones(columns.size), one * weights, models.columns.factors,
                self.grams[1], self._whole, models.ridges[0], fresh, latest, self._work,
            )  # fmt: skip
            found += part * self._work.solution[: models.rank]
        return found

    def taste_parts(self, columns: Array, weights: Array | None = None) -> Array:
        """Return what each of these columns adds to ``taste_of`` all of them.

        A taste is A^-1 times the sum of c q over the columns, so each has a part of its own.
        """
        rank, whole, n = self.models.rank, self._whole, len(columns)
        factors = self.models.columns.factors[columns, :rank].astype(float)
        weights = whole.one * (np.ones(n) if weights is None else np.asarray(weights, float))
        upper, ridge = self.grams[1, :rank, :rank], self.models.ridges[0]
        gram = np.triu(upper) + np.triu(upper, 1).T
        share, parts = self.arm[0], np.zeros((n, rank))
        ways = (share, click_tastes.FRESH, click_tastes.LATEST), (1.0 - share, 1.0, n)
        for part, fresh, latest in ways:
            at = slice(max(n - latest, 0), n)
            c = weights[at] * fresh ** np.arange(n - at.start)[::-1]
            beyond = np.maximum(c - whole.zero, 0.0)[:, None]
            normal = whole.zero * gram + factors[at].T @ (beyond * factors[at])
            penalty = local_clicks.penalty_of(ridge, c.sum(), whole.n_columns, whole)
            normal += penalty * np.eye(rank)
            parts[at] += part * np.linalg.solve(normal, (c[:, None] * factors[at]).T).T
        return parts

    @property
    def newest(self) -> float:
        """What a new observation weighs."""
        return float(self.moments[NEWEST])

    @property
    def arm(self) -> tuple[float, float]:
        """The share of the latest entries in a taste, and what the trend is worth, as learned."""
        return click_tastes.arm_in_use(self.wins)

    def trend(self) -> Array:
        """Return what columns get for having been frequent of late."""
        memory = self.models.columns.memory[: self.shape[1]].astype(float)
        return self.arm[1] * click_tastes.trend_of(int(self.turns[EVENTS])) * memory

    def scores(self, rows: Array) -> Array:
        """Return the scores of all columns for some rows; the largest is the best."""
        columns = self.models.columns.factors[: self.shape[1], : self.models.rank]
        return self.tastes(rows) @ columns.T.astype(float) + self.trend()

    # Leaving --------------------------------------------------------------------------------------

    def rescale(self, factor: float) -> None:
        self.moments[[WEIGHT, NEWEST]] *= factor
        for sums in (self.models.row_sums, self.models.column_sums):
            sums.equations[: int(sums.used[0]), :, local_clicks.WEIGHTED] *= factor

    def entries_left(self) -> None:
        super().entries_left()
        self._sum_up()

    def forget(self, row: int, gone: Forgotten, low: float, high: float) -> None:
        rows, columns = np.array([row]), np.unique(gone.columns)
        self._left(rows, columns)
        # At least what the row has added to the trend, had it come just now.
        newest = 1.0 / click_tastes.LATELY / click_tastes.trend_of(int(self.turns[EVENTS]))
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
