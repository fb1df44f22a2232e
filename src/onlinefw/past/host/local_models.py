"""Models of a matrix that learn from single entries, with what they need of the past."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..._state import check_state
from ..._threads import blocks_for, share
from ..._typing import Array, State
from ..._validation import check_precision, check_whole
from ...kernels import local_ridge as kernels
from ...kernels.lists import copied_lists, new_lists, packed, unpacked
from ...kernels.ridge import WIDTH

__all__ = ["LocalModels"]

#: Start factors of columns are about this large, in standard units; those of rows are 0.
START = 0.1
_NO_WEIGHTS = np.empty(0)
#: What a state has of the lists of a side.
ENTRIES = ("length", "other", "value", "weight")


class LocalModels:
    """Factors, offsets and memories of models with different ridges, and lists of all entries.

    An entry is in the list of its row and in that of its column, so all that a row or a column
    has seen is read in time proportional to its number.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns; more come with ``grow``.
    rank : int
        Of each model.
    ridges : array of shape (models, 3)
        For a row or column of weight n the penalty of its factors is a + b n, in standard units;
        the third number is that of its bias.
    biased : bool
        Whether rows and columns have biases.
    clipped : bool
        Whether predictions are clipped to the range of the values.
    dtype : dtype
        float32 or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.host.local_models import LocalModels
    >>> models = LocalModels((2, 2), 1, [[1.0, 0.0, 1.0]], True, True, np.dtype(float))
    >>> rows, columns = np.array([0, 1, 0]), np.array([0, 0, 1])
    >>> models.learn(rows, columns, np.array([3.0, 5.0, 4.0])).round(2)
    array([0., 3., 3.])
    """

    def __init__(
        self,
        shape: tuple[int, int],
        rank: int,
        ridges: Any,
        biased: bool,
        clipped: bool,
        dtype: np.dtype,
    ) -> None:
        self.shape, self.dtype = (0, 0), np.dtype(dtype)
        self.biased, self.clipped = bool(biased), bool(clipped)
        self.n_observations = 0
        self._weighted = False  # all entries weigh 1 so far
        self.moments = kernels.new_moments()
        self.by_row, self.by_column = (new_lists(0, 0, self.dtype) for _ in range(2))
        ridges = np.array(ridges, float)
        self._width = -(-(rank + kernels.BESIDE) // WIDTH) * WIDTH  # of one model's factors
        sides = self._empty_side(0, len(ridges)), self._empty_side(0, len(ridges))
        self.models = kernels.Models(rank, *sides, ridges, kernels.new_mixture(len(ridges)))
        self._work = kernels.new_workspace(self.models)
        self.grow(*shape)

    def _empty_side(self, n: int, models: int) -> kernels.Side:
        factors = np.zeros((n, models * self._width), self.dtype)
        return kernels.Side(factors, np.zeros((n, models), self.dtype), np.zeros(n, self.dtype))

    # Growing --------------------------------------------------------------------------------------

    def grow(self, m1: int, m2: int) -> None:
        """Let there be m1 rows and m2 columns at least."""
        m1, m2 = max(m1, self.shape[0]), max(m2, self.shape[1])
        count = len(self.models.ridges)
        rows, columns = self._longer(self.models.rows, m1), self._longer(self.models.columns, m2)
        rank, old = self.models.rank, self.shape[1]
        kernels.start_factors(columns.factors, count, rank, old, m2, START)
        lists = []
        for one, side in ((self.by_row, rows), (self.by_column, columns)):
            n = len(side.factors)
            same = n == one.start.size
            lists.append(one if same else copied_lists(one, n, one.other.size, self._weighted))
        models = self.models._replace(rows=rows, columns=columns)
        parts = {"models": models, "by_row": lists[0], "by_column": lists[1], "shape": (m1, m2)}
        vars(self).update(parts)  # all at once

    def _longer(self, side: kernels.Side, n: int) -> kernels.Side:
        """Return a side with space for n rows or columns, and some more if it is another one."""
        old = len(side.factors)
        if n <= old:
            return side
        grown = self._empty_side(max(n, old + old // 2), len(self.models.ridges))
        for new, array in zip(grown, side, strict=True):
            new[:old] = array
        return grown

    def _make_space(self) -> None:
        """Give the lists half as much memory again, and some more."""
        lists = []
        for one in (self.by_row, self.by_column):
            longest = int(one.length.max(initial=1))
            memory = max(one.other.size + one.other.size // 2, one.other.size + 2 * longest, 64)
            lists.append(copied_lists(one, one.start.size, memory, self._weighted))
        self.by_row, self.by_column = lists

    def _weigh(self) -> None:
        """Let entries have weights from now on."""
        lists = self.by_row, self.by_column
        both = [copied_lists(one, one.start.size, one.other.size, True) for one in lists]
        self.by_row, self.by_column = both
        self._weighted = True

    # Learning -------------------------------------------------------------------------------------

    def learn(
        self, rows: Array, cols: Array, y: Array, w: Array | None = None, *, solving: bool = True
    ) -> Array:
        """Learn entries one after another; return what was predicted for each before.

        Without ``solving`` they are predicted and noted, and nothing else changes.
        """
        out = np.empty(len(y))
        if w is None:
            w = _NO_WEIGHTS
        elif not self._weighted:
            self._weigh()
        done = 0
        while True:
            done = kernels.learn_events(
                done, rows, cols, y, w, self.by_row, self.by_column, self.models, self.moments,
                self.biased, self.clipped, solving, self._work, out,
            )  # fmt: skip
            if done == len(y):
                break
            self._make_space()
        self.n_observations += len(y)
        return out

    def solve(self, rows: Array, columns: Array) -> None:
        """Solve the regressions of these rows, then of these columns, on all that they have."""
        for of_rows, which, lists in ((True, rows, self.by_row), (False, columns, self.by_column)):
            work = int(lists.length[which].sum()) * self.models.rows.factors.shape[1]
            share(
                kernels.solve_lists, blocks_for(which.size, work),
                np.ascontiguousarray(which, np.int64), of_rows, lists, self.models, self.moments,
                self.biased,
            )  # fmt: skip

    def sweep(self) -> None:
        """Solve the regressions of all rows, then of all columns."""
        self.solve(np.arange(self.shape[0]), np.arange(self.shape[1]))

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
        weights, spread = self.models.mixture
        # In least squares so much is added to the squared errors, in standard units, if some
        # weights are 0 and the others are found again.
        added = weights[-2:] @ np.linalg.lstsq(spread[-2:, -2:], weights[-2:])[0]
        gain = float(added) / max(1.0, kernels.remembered(self.n_observations))
        return min(max(gain, 0.0), 1.0)

    @property
    def mean(self) -> float:
        """The mean of the values; 0 without biases."""
        return float(self.moments[kernels.MEAN]) if self.biased else 0.0

    @property
    def sigma(self) -> float:
        """The standard deviation of the values, in which factors are measured."""
        return float(kernels.standard(self.moments))

    def factors(self) -> tuple[Array, Array, Array]:
        """Return both factors of the mixture, not copied, and the weights of their columns."""
        (m1, m2), weights = self.shape, np.zeros((len(self.models.ridges), self._width))
        weights[:, : self.models.rank] = self.sigma * self.weights[:, None]
        rows, columns = self.models.rows.factors[:m1], self.models.columns.factors[:m2]
        return rows, weights.reshape(-1), columns

    def offsets(self) -> tuple[Array, Array]:
        """Return what the mixture adds in every row, with the mean, and in every column."""
        (m1, m2), w = self.shape, self.weights
        rows = (self.models.rows.offsets[:m1] - self.mean) @ w
        rows[self.by_row.length[:m1] == 0] = 0.0
        columns = self.models.columns.offsets[:m2] @ w
        return (self.mean + rows).astype(self.dtype), columns.astype(self.dtype)

    def memories(self) -> tuple[Array, Array]:
        """Return what the memories add in every row and in every column."""
        return self.memories_at(slice(self.shape[0]), slice(self.shape[1]))

    def memories_at(self, rows: Any, cols: Any) -> tuple[Array, Array]:
        """Return what they add in some rows and columns."""
        of_row, of_column = self.memory_weights
        return of_row * self.models.rows.memory[rows], of_column * self.models.columns.memory[cols]

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
            "biased": self.biased,
            "clipped": self.clipped,
            "dtype": self.dtype.name,
            "n_observations": self.n_observations,
            "moments": self.moments.copy(),
            "ridges": models.ridges.copy(),
            "mixture": {name: getattr(mixture, name).copy() for name in mixture._fields},
        }
        sides = (models.rows, self.by_row), (models.columns, self.by_column)
        for name, (side, lists), n in zip(("rows", "columns"), sides, self.shape, strict=True):
            arrays = {part: getattr(side, part)[:n].copy() for part in side._fields}
            entries = dict(zip(ENTRIES, packed(lists, n), strict=True))
            state[name] = {**arrays, **entries}
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the models that ``state_dict`` described, or say what is wrong with them."""
        check_models_state(state)
        options = state["biased"], state["clipped"], np.dtype(state["dtype"])
        models = cls((0, 0), state["rank"], state["ridges"], *options)
        models.grow(*state["shape"])
        for name, side in (("rows", models.models.rows), ("columns", models.models.columns)):
            for part in side._fields:
                getattr(side, part)[:] = state[name][part]
        models.by_row, models.by_column = (
            unpacked(*(state[name][part] for part in ENTRIES)) for name in ("rows", "columns")
        )
        models._weighted = models.by_row.weight.size > 0
        mixture = models.models.mixture
        for part in mixture._fields:
            getattr(mixture, part)[:] = state["mixture"][part]
        models.moments[:] = state["moments"]
        models.n_observations = int(state["n_observations"])
        return models


def check_models_state(state: State) -> None:
    """Refuse a state of models whose parts do not fit each other."""
    numbers = "shape", "rank", "biased", "clipped", "dtype", "n_observations"
    check_state(state, *numbers, "moments", "ridges", "mixture", "rows", "columns")
    dtype = check_precision(state["dtype"])
    shape = [check_whole("each side of the models", n, 0) for n in state["shape"]]
    rank = check_whole("the rank of the models", state["rank"])
    check_whole("the observations of the models", state["n_observations"], 0)
    ridges = _array(state, "ridges", np.float64, (-1, 3))
    if not len(ridges) or not ((ridges[:, 0] > 0.0).all() and (ridges >= 0.0).all()):
        raise ValueError("the models of a state are damaged: a ridge is not positive")
    count = len(ridges)
    check_state(state["mixture"], *kernels.Mixture._fields)
    _array(state["mixture"], "weights", np.float64, (count + 2,))
    _array(state["mixture"], "spread", np.float64, (count + 2, count + 2))
    moments = np.asarray(state["moments"])
    if moments.shape != (5,) or moments.dtype != float or not np.isfinite(moments[:3]).all():
        raise ValueError("the models of a state are damaged: moments")
    if len(shape) != 2 or np.isnan(moments).any() or moments[0] < 0 or moments[2] < 0:
        raise ValueError("the models of a state are damaged: moments or shape")
    for name, n, others in (("rows", shape[0], shape[1]), ("columns", shape[1], shape[0])):
        side = state[name]
        check_state(side, "factors", "offsets", "memory", *ENTRIES)
        width = -(-(rank + kernels.BESIDE) // WIDTH) * WIDTH
        _array(side, "factors", dtype, (n, count * width))
        _array(side, "offsets", dtype, (n, count))
        _array(side, "memory", dtype, (n,))
        length = _array(side, "length", np.int64, (n,))
        size = int(length.sum()) if length.size else 0
        other = _array(side, "other", np.uint32, (size,))
        if (length < 0).any() or (size and int(other.max()) >= others):
            raise ValueError(f"the models of a state are damaged: the lists of {name}")
        _array(side, "value", dtype, (size,))
        _array(side, "weight", dtype, (size if np.size(side["weight"]) else 0,))
    for one, two in (("rows", "columns"), ("columns", "rows")):
        counts = np.bincount(state[one]["other"], minlength=state[two]["length"].size)
        if not np.array_equal(counts, state[two]["length"]):
            raise ValueError("the models of a state are damaged: rows and columns do not agree")


def _array(state: State, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Return an array of a state, if it is of this type and shape (-1: any) and finite."""
    array = state[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape):
        raise ValueError(f"the models of a state are damaged: {name} is no array of {dtype}")
    fits = all(want in (-1, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or not np.isfinite(array).all():
        raise ValueError(f"the models of a state are damaged: {name} has shape {array.shape}")
    return array
