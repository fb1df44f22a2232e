"""Models of a matrix that learn from single entries, with what they need of the past."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..._threads import blocks_for, share
from ..._typing import Array, State
from ...kernels import local_models as kernels
from ...kernels.local_events import (
    COLUMN,
    EVENTS,
    EVERY,
    LAST_COLUMN,
    LAST_ROW,
    ROW,
    learn_events,
    meet_events,
    new_turns,
    predict_entries,
    remembered,
)
from ...kernels.local_ridge import solve_lists
from .entry_lists import EntryLists
from .growing_rank import FIRST, is_in_use, next_rank, width_of, with_rank
from .local_models_state import MIXTURE, check_models_state
from .mixed_offsets import MixedOffsets

__all__ = ["LocalModels"]

#: Whether the rank is still enough is asked after so many entries, and whenever they have doubled.
FIRST_CHECK = 1000
_NO_WEIGHTS = np.empty(0)


class LocalModels:
    """Factors, offsets and memories of models with different ridges.

    Parameters
    ----------
    lists : EntryLists
        All entries by row and by column, which ``learn`` adds to.
    rank : int or None
        Of each model; None begins with a small one, which grows as long as all of it is in use.
    ridges : array of shape (models, 3)
        For a row or column of weight n the penalty of its factors is a + b n, in standard units;
        the third number is that of its bias.
    biased : bool
        Whether rows and columns have biases.
    clipped : bool
        Whether predictions are clipped to the range of the values.
    loss : (int, float) or None
        The kernels' kind and parameter of the loss; None for squares.

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

    def __init__(
        self,
        lists: EntryLists,
        rank: int | None,
        ridges: Any,
        biased: bool,
        clipped: bool,
        loss: tuple[int, float] | None = None,
    ) -> None:
        self.lists, self.dtype = lists, lists.dtype
        self.biased, self.clipped = bool(biased), bool(clipped)
        self.n_observations = 0
        self._check_at = FIRST_CHECK if rank is None else None  # None: the rank is what it is
        rank = FIRST if rank is None else rank
        self.moments, self.turns = kernels.new_moments(), new_turns()
        ridges = np.array(ridges, float)
        count = len(ridges)
        self._width = width_of(rank)
        self.shape = 0, 0
        sides = self._empty_side(0, count), self._empty_side(0, count)
        sums = [kernels.new_sums(0, 0, count, self._width) for _ in sides]
        mixture = kernels.new_mixture(count)
        self.models = kernels.Models(loss, rank, *sides, sums[0], sums[1], ridges, mixture)
        self._work = kernels.new_workspace(self.models)
        self.grow(*lists.shape)
        self._begin()

    def _begin(self) -> None:
        """Know the entries that are in the lists already."""
        self.n_observations, which = len(self.lists), np.flatnonzero(self.lists.by_column.length)
        count, rank = len(self.models.ridges), self.models.rank
        kernels.start_factors(self.models.columns.factors, count, 0, rank, which)

    def _empty_side(self, n: int, models: int) -> kernels.Side:
        factors = np.zeros((n, models * self._width), self.dtype)
        return kernels.Side(factors, np.zeros((n, models), self.dtype), np.zeros(n, self.dtype))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lists out: they belong to the past, and whoever copies that has them."""
        return {**vars(self), "lists": None}

    # Growing --------------------------------------------------------------------------------------

    def grow(self, m1: int, m2: int) -> None:
        """Let there be m1 rows and m2 columns at least."""
        m1, m2 = max(m1, self.shape[0]), max(m2, self.shape[1])
        models = self.models
        rows, columns = self._longer(models.rows, m1), self._longer(models.columns, m2)
        grown = models._replace(
            rows=rows,
            columns=columns,
            row_sums=self._more_sums(models.row_sums, len(rows.factors)),
            column_sums=self._more_sums(models.column_sums, len(columns.factors)),
        )
        vars(self).update(models=grown, shape=(m1, m2))  # all at once

    def remember(self) -> dict[str, Any]:
        """Return what ``go_back`` needs to undo growth."""
        return {"models": self.models, "shape": self.shape}

    def go_back(self, memory: dict[str, Any]) -> None:
        """Undo growth, if nothing was learned since."""
        vars(self).update(memory)

    def _longer(self, side: kernels.Side, n: int) -> kernels.Side:
        """Return a side with space for n rows or columns, and some more if it is another one."""
        old = len(side.factors)
        if n <= old:
            return side
        grown = self._empty_side(max(n, old + old // 2), len(self.models.ridges))
        for new, array in zip(grown, side, strict=True):
            new[:old] = array
        return grown

    def _more_sums(self, sums: kernels.Sums, n: int, places: int | None = None) -> kernels.Sums:
        """Return the sums of n lists at least, with memory for so many long ones."""
        old, had = sums.place.size, len(sums.added)
        places = had if places is None else places
        if n <= old and places <= had:
            return sums
        more = kernels.new_sums(max(n, old), places, len(self.models.ridges), self._width)
        more.place[:old] = sums.place
        more.equations[:had], more.added[:had] = sums.equations, sums.added
        more.used[:] = sums.used
        return more

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

    # Learning -------------------------------------------------------------------------------------

    def learn(
        self, rows: Array, cols: Array, y: Array, w: Array | None = None, *, solving: bool = True
    ) -> Array:
        """Learn entries one after another; return what was predicted for each before.

        Without ``solving`` all are predicted with what was learned before the first, and noted.
        """
        out, lists = np.empty(len(y)) if solving else self._met(rows, cols, y, w), self.lists
        if w is None:
            w = _NO_WEIGHTS
        else:
            lists.weigh()
        done, before = 0, self.n_observations
        while True:
            stop = self._stop(len(y), before) if solving else len(y)
            done = learn_events(
                done, rows[:stop], cols[:stop], y[:stop], w, lists.by_row, lists.by_column,
                self.models, self.moments, self.turns, self.biased, self.clipped, solving,
                self._work, out,
            )  # fmt: skip
            self.n_observations = before + done
            if done < stop:
                self._make_space()
            else:
                self._check_rank()
                if done == len(y):
                    return out

    def _stop(self, n: int, before: int) -> int:
        """Return how many of n entries come before the rank is to be checked."""
        return n if self._check_at is None else min(n, self._check_at - before)

    def _check_rank(self) -> None:
        """Let the models have more rank, if it is time to ask and all of it is in use."""
        if self._check_at is None or self.n_observations < self._check_at:
            return
        while self._check_at <= self.n_observations:
            self._check_at *= 2
        models, lists, rank = self.models, self.lists, next_rank(self.models.rank)
        if rank > models.rank and is_in_use(models, lists.by_row, lists.by_column):
            models = with_rank(models, rank, np.flatnonzero(lists.by_column.length))
            work = kernels.new_workspace(models)
            vars(self).update(models=models, _width=width_of(rank), _work=work)  # all at once

    def _met(self, rows: Array, cols: Array, y: Array, w: Array | None) -> Array:
        """Return predictions of entries, from which moments, mixture and memories learn."""
        out, w = np.empty(len(y)), _NO_WEIGHTS if w is None else w
        meet_events(
            rows, cols, y, w, self._seen()[0], self.models, self.moments, self.biased,
            self.clipped, self._work, out,
        )  # fmt: skip
        return out

    def _seen(self) -> tuple[Any, Any]:
        """Return rows and columns with their ``length``: how many observations each has."""
        return self.lists.by_row, self.lists.by_column

    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        """Solve the regressions of these rows, then of these columns, on all that they have.

        ``anew`` makes the sums of long lists from the beginning.
        """
        sides = (True, rows, self.lists.by_row), (False, columns, self.lists.by_column)
        for of_rows, which, lists in sides:
            work = int(lists.length[which].sum()) * self.models.rows.factors.shape[1]
            share(
                solve_lists, blocks_for(which.size, work),
                np.ascontiguousarray(which, np.int64), of_rows, anew, lists, self.models,
                self.moments, self.biased,
            )  # fmt: skip

    def in_turn(self, events: int) -> tuple[Array, Array]:
        """Return the rows and columns whose turn came with the last so many events."""
        came = int(self.turns[EVENTS])
        steps = came // EVERY - (came - events) // EVERY
        both = []
        for at, last in ((ROW, LAST_ROW), (COLUMN, LAST_COLUMN)):
            n = int(self.turns[last]) + 1
            both.append((self.turns[at] + 1 + np.arange(min(steps, n))) % max(n, 1))
            if steps:
                self.turns[at] = (self.turns[at] + steps) % n
        return both[0], both[1]

    def sweep(self) -> None:
        """Solve the regressions of all rows, then of all columns."""
        self.solve(np.arange(self.shape[0]), np.arange(self.shape[1]), anew=True)

    # Asking ---------------------------------------------------------------------------------------

    @property
    def weights(self) -> Array:
        """The weights of the models in the mixture."""
        return self.models.mixture.weights[: len(self.models.ridges)]

    @property
    def memory_weights(self) -> tuple[float, float]:
        """What the memories of a row and of a column are multiplied by in predictions."""
        row, column = self.models.mixture.weights[-2:].tolist()
        return row, column

    @property
    def memory_gain(self) -> float:
        """About how much of the variance of the values the memories explain beyond the models."""
        weights, spread, _ = self.models.mixture
        # In least squares so much is added to the squared errors, in standard units, if some
        # weights are 0 and the others are found again.
        added = weights[-2:] @ np.linalg.lstsq(spread[-2:, -2:], weights[-2:])[0]
        gain = float(added) / max(1.0, remembered(self.n_observations))
        return min(max(gain, 0.0), 1.0)

    @property
    def mean(self) -> float:
        """The prediction that belongs to the mean of the values; 0 without biases."""
        return float(kernels.centre(self.models.loss, self.moments, self.biased))

    @property
    def sigma(self) -> float:
        """What factors are measured in: in a regression, the standard deviation of the values."""
        return float(kernels.unit(self.models.loss, self.moments))

    def factors(self) -> tuple[Array, Array, Array]:
        """Return both factors of the mixture, not copied, and the weights of their columns."""
        (m1, m2), weights = self.shape, np.zeros((len(self.models.ridges), self._width))
        weights[:, : self.models.rank] = self.sigma * self.weights[:, None]
        rows, columns = self.models.rows.factors[:m1], self.models.columns.factors[:m2]
        return rows, weights.reshape(-1), columns

    def offsets(self) -> tuple[MixedOffsets, MixedOffsets]:
        """Return what the mixture adds in every row, with the mean, and in every column."""
        models, w = self.models, self.weights.copy()
        by_row, by_column = self._seen()
        return (
            MixedOffsets(models.rows.offsets, w, self.mean, by_row.length),
            MixedOffsets(models.columns.offsets, w, 0.0, by_column.length),
        )

    def memories(self) -> tuple[Array, Array]:
        """Return what the memories add in every row and in every column."""
        (m1, m2), (of_row, of_column) = self.shape, self.memory_weights
        models = self.models
        return of_row * models.rows.memory[:m1], of_column * models.columns.memory[:m2]

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return what the mixture predicts for entries of the matrix, with the memories."""
        if self.shape != self.lists.shape:  # rows and columns that came without observations
            self.grow(*self.lists.shape)
        models, lengths = self.models, self._seen()[0].length
        sides = models.rows, models.columns
        z = predict_entries(
            models.rank, rows, cols, lengths, *sides, models.mixture.weights, self.mean, self.sigma
        )
        highest = kernels.highest(models.loss)
        return z if highest == np.inf else np.minimum(z, highest)

    def ridges_of(self, n: Array) -> Array:
        """Return the mean ridge of rows or columns of these weights in the mixture."""
        a, b, _ = np.abs(self.weights) @ self.models.ridges / np.abs(self.weights).sum()
        return a + b * n

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything as plain arrays."""
        models, mixture = self.models, self.models.mixture
        state: State = {
            "shape": list(self.shape),
            "rank": models.rank,
            "check_at": self._check_at,
            "loss": None if models.loss is None else list(models.loss),
            "biased": self.biased,
            "clipped": self.clipped,
            "dtype": self.dtype.name,
            "n_observations": self.n_observations,
            "moments": self.moments.copy(),
            "turns": self.turns.copy(),
            "ridges": models.ridges.copy(),
            "mixture": {name: getattr(mixture, name).copy() for name in MIXTURE},
        }
        sides = (models.rows, models.row_sums), (models.columns, models.column_sums)
        for name, (side, sums), n in zip(("rows", "columns"), sides, self.shape, strict=True):
            arrays = {part: getattr(side, part)[:n].copy() for part in side._fields}
            state[name] = {**arrays, **_sums_state(sums, n)}
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the models that ``state_dict`` described, or say what is wrong with them.

        They cannot learn before they have lists.
        """
        check_models_state(state)
        shape, dtype = tuple(state["shape"]), np.dtype(state["dtype"])
        loss = None if state["loss"] is None else (int(state["loss"][0]), float(state["loss"][1]))
        options = state["ridges"], state["biased"], state["clipped"], loss
        models = cls(EntryLists((0, 0), dtype), state["rank"], *options)
        models.grow(*shape)
        sums = models.models.row_sums, models.models.column_sums
        full = []
        for name, its in zip(("rows", "columns"), sums, strict=True):
            side = getattr(models.models, name)
            for part in side._fields:
                getattr(side, part)[:] = state[name][part]
            added, place = state[name]["added"], state[name]["place"]
            more = models._more_sums(its, 0, len(added))
            more.place[:], more.used[0] = place, len(added)
            more.equations[:], more.added[:] = state[name]["equations"], added
            full.append(more)
        models.models = models.models._replace(row_sums=full[0], column_sums=full[1])
        mixture = models.models.mixture
        for part in MIXTURE:
            getattr(mixture, part)[:] = state["mixture"][part]
        models.moments[:], models.turns[:] = state["moments"], state["turns"]
        models.n_observations, check_at = int(state["n_observations"]), state["check_at"]
        models._check_at = None if check_at is None else int(check_at)
        return models

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
            long = sums.place[: one.length.size] > 0
            if (sums.added[sums.place[: long.size][long] - 1] > one.length[long, None]).any():
                raise ValueError("the models of a state are damaged: sums of more than their lists")
        self.lists = lists

    def _check_same(self, *given: Any) -> None:
        """Refuse entries of another shape, type or number."""
        of_models = self.shape, self.dtype, self.n_observations
        if of_models != given:
            raise ValueError(
                "local corrections of a {} matrix ({}, {} observations) do not fit one of {} "
                "({}, {})".format(*of_models, *given)
            )


def _sums_state(sums: kernels.Sums, n: int) -> State:
    used = int(sums.used[0])
    place, added = sums.place[:n].copy(), sums.added[:used].copy()
    return {"place": place, "equations": sums.equations[:used].copy(), "added": added}
