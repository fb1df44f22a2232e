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
#: How fast the memory of a row's or column's errors forgets: the newest has this share.
RATE = 0.15
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
        ridges: Array,
        biased: bool,
        clipped: bool,
        dtype: np.dtype,
    ) -> None:
        self.shape, self.dtype = (0, 0), np.dtype(dtype)
        self.biased, self.clipped = bool(biased), bool(clipped)
        ridges = np.array(ridges, float)
        self._strides = np.zeros(2, np.int64)
        self.n_observations = 0
        self._weighted = False  # all entries weigh 1 so far
        self.moments = kernels.new_moments()
        self.by_row, self.by_column = (new_lists(0, 0, self.dtype) for _ in range(2))
        width = -(-(rank + kernels.BESIDE) // WIDTH) * WIDTH
        self._work = kernels.new_workspace(width, self.dtype)
        sides = self._empty_side(0, width), self._empty_side(0, width)
        recent, playing = np.zeros((len(ridges), 7)), np.arange(len(ridges))
        self.models = kernels.Models(rank, *sides, ridges, recent, playing)
        self.grow(*shape)

    def _empty_side(self, n: int, width: int) -> kernels.Side:
        factors = np.zeros((n, width), self.dtype)
        return kernels.Side(factors, np.zeros(n, self.dtype), np.zeros(n, self.dtype))

    # Growing --------------------------------------------------------------------------------------

    def grow(self, m1: int, m2: int) -> None:
        """Let there be m1 rows and m2 columns at least."""
        m1, m2 = max(m1, self.shape[0]), max(m2, self.shape[1])
        rows, row_stride = self._longer(self.models.rows, int(self._strides[0]), m1)
        columns, column_stride = self._longer(self.models.columns, int(self._strides[1]), m2)
        for k in range(len(self.models.ridges)):
            part = columns.factors[k * column_stride : (k + 1) * column_stride]
            kernels.start_factors(part, self.models.rank, self.shape[1], m2, START)
        by_row, by_column = self.by_row, self.by_column
        if row_stride > by_row.start.size:
            by_row = copied_lists(by_row, row_stride, by_row.other.size, self._weighted)
        if column_stride > by_column.start.size:
            size = by_column.other.size
            by_column = copied_lists(by_column, column_stride, size, self._weighted)
        models = self.models._replace(rows=rows, columns=columns)
        strides = np.array([row_stride, column_stride])
        parts = {"models": models, "by_row": by_row, "by_column": by_column, "_strides": strides}
        vars(self).update(parts, shape=(m1, m2))  # all at once

    def _longer(self, side: kernels.Side, stride: int, n: int) -> tuple[kernels.Side, int]:
        """Return a side with space for n rows of each model, and the distance of models in it."""
        if n <= stride:
            return side, stride
        longer, count = max(n, stride + stride // 2), len(self.models.ridges)
        grown = self._empty_side(count * longer, side.factors.shape[1])
        for new, old in zip(grown, side, strict=True):
            for k in range(count):
                new[k * longer : k * longer + stride] = old[k * stride : (k + 1) * stride]
        return grown, longer

    def _make_space(self) -> None:
        """Give the lists half as much memory again, and some more."""
        lists = []
        for one in (self.by_row, self.by_column):
            longest = int(one.length.max(initial=1))
            memory = max(one.other.size + one.other.size // 2, 2 * longest, 64)
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
                done, rows, cols, y, w, self.by_row, self.by_column, self.models, self._strides,
                self.moments, self.biased, self.clipped, RATE, solving, self._work, out,
            )  # fmt: skip
            if done == len(y):
                break
            self._make_space()
        self.n_observations += len(y)
        return out

    def solve(self, rows: Array, columns: Array) -> None:
        """Solve the regressions of these rows, then of these columns, on all that they have."""
        for of_rows, which, lists in ((True, rows, self.by_row), (False, columns, self.by_column)):
            work = int(lists.length[which].sum()) * len(self.models.playing)
            blocks = blocks_for(which.size, work * self.models.rows.factors.shape[1])
            share(
                kernels.solve_lists, blocks, np.ascontiguousarray(which, np.int64), of_rows, lists,
                self.models, self._strides, self.moments, self.biased,
            )  # fmt: skip

    def sweep(self) -> None:
        """Solve the regressions of all rows, then of all columns."""
        self.solve(np.arange(self.shape[0]), np.arange(self.shape[1]))

    # Models ---------------------------------------------------------------------------------------

    @property
    def errors(self) -> Array:
        """The sum of squared errors of every model that plays, all made before learning."""
        return self.models.recent[self.models.playing, kernels.SQUARED]

    @property
    def best(self) -> int:
        """The model that has predicted best so far."""
        return int(self.models.playing[np.argmin(self.errors)])

    def drop_worst(self) -> None:
        """Let the model that has predicted worst leave the race."""
        playing = np.delete(self.models.playing, np.argmax(self.errors))
        self.models = self.models._replace(playing=playing)

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.moments[kernels.MEAN])

    @property
    def sigma(self) -> float:
        """The standard deviation of the values, in which factors are measured."""
        return float(kernels.standard(self.moments))

    def parts(self, m: int) -> tuple[Array, Array, Array, Array]:
        """Return both factors of a model (with unused columns) and both offsets, not copied."""
        found = []
        sides = self.models.rows, self.models.columns
        for side, stride, n in zip(sides, self._strides.tolist(), self.shape, strict=True):
            part = slice(m * stride, m * stride + n)
            found.append((side.factors[part], side.offsets[part]))
        return found[0][0], found[1][0], found[0][1], found[1][1]

    def memory_weights(self, m: int) -> tuple[float, float]:
        """Return what the memories of a row and of a column are multiplied by in predictions."""
        return kernels.of_memories(self.models.recent[m])

    def memories(self, m: int, rows: Array, cols: Array) -> Array:
        """Return what the memories of rows and columns add to the predictions of a model."""
        of_row, of_column = self.memory_weights(m)
        at = m * self._strides[0] + rows, m * self._strides[1] + cols
        return (
            of_row * self.models.rows.memory[at[0]] + of_column * self.models.columns.memory[at[1]]
        )

    def all_memories(self, m: int) -> tuple[Array, Array]:
        """Return what the memories of all rows, and of all columns, add."""
        of_row, of_column = self.memory_weights(m)
        (m1, m2), (row, column) = self.shape, (m * self._strides).tolist()
        memories = self.models.rows.memory, self.models.columns.memory
        return (
            of_row * memories[0][row : row + m1],
            of_column * memories[1][column : column + m2],
        )

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything as plain arrays; of the models, those that still play."""
        models = self.models
        state: State = {
            "shape": list(self.shape),
            "rank": models.rank,
            "biased": self.biased,
            "clipped": self.clipped,
            "dtype": self.dtype.name,
            "n_observations": self.n_observations,
            "moments": self.moments.copy(),
            "ridges": models.ridges[models.playing],
            "recent": models.recent[models.playing],
        }
        strides, lists = self._strides.tolist(), (self.by_row, self.by_column)
        for k, (name, side) in enumerate((("rows", models.rows), ("columns", models.columns))):
            at = (models.playing[:, None] * strides[k] + np.arange(self.shape[k])).reshape(-1)
            factors = side.factors[at, : models.rank]
            entries = dict(zip(ENTRIES, packed(lists[k], self.shape[k]), strict=True))
            arrays = {"factors": factors, "offsets": side.offsets[at], "memory": side.memory[at]}
            state[name] = {**arrays, **entries}
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the models that ``state_dict`` described, or say what is wrong with them."""
        check_models_state(state)
        (m1, m2), rank, dtype = state["shape"], state["rank"], np.dtype(state["dtype"])
        options = state["biased"], state["clipped"], dtype
        models = cls((0, 0), rank, state["ridges"], *options)
        models.grow(m1, m2)
        for name, side in (("rows", models.models.rows), ("columns", models.models.columns)):
            side.factors[:, :rank] = state[name]["factors"]
            side.offsets[:], side.memory[:] = state[name]["offsets"], state[name]["memory"]
        models.by_row, models.by_column = (
            unpacked(*(state[name][part] for part in ENTRIES)) for name in ("rows", "columns")
        )
        models._weighted = models.by_row.weight.size > 0
        models.moments[:], models.models.recent[:] = state["moments"], state["recent"]
        models.n_observations = int(state["n_observations"])
        return models


def check_models_state(state: State) -> None:
    """Refuse a state of models whose parts do not fit each other."""
    numbers = "shape", "rank", "biased", "clipped", "dtype", "n_observations"
    check_state(state, *numbers, "moments", "ridges", "recent", "rows", "columns")
    dtype = check_precision(state["dtype"])
    shape = [check_whole("each side of the models", n, 0) for n in state["shape"]]
    rank = check_whole("the rank of the models", state["rank"])
    check_whole("the observations of the models", state["n_observations"], 0)
    ridges = _array(state, "ridges", np.float64, (-1, 3))
    if not len(ridges) or not ((ridges[:, 0] > 0.0).all() and (ridges >= 0.0).all()):
        raise ValueError("the models of a state are damaged: a ridge is not positive")
    _array(state, "recent", np.float64, (len(ridges), 7))
    moments = np.asarray(state["moments"])
    if moments.shape != (5,) or moments.dtype != float or not np.isfinite(moments[:3]).all():
        raise ValueError("the models of a state are damaged: moments")
    if len(shape) != 2 or np.isnan(moments).any() or moments[0] < 0 or moments[2] < 0:
        raise ValueError("the models of a state are damaged: moments or shape")
    for name, n, others in (("rows", shape[0], shape[1]), ("columns", shape[1], shape[0])):
        side = state[name]
        check_state(side, "factors", "offsets", "memory", *ENTRIES)
        _array(side, "factors", dtype, (len(ridges) * n, rank))
        for part in ("offsets", "memory"):
            _array(side, part, dtype, (len(ridges) * n,))
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
