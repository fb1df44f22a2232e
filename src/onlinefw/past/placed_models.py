"""Models of a matrix whose entries are elsewhere: on a GPU, or with workers."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from .._devices import namespace, to_host
from .._typing import Array, State
from ..kernels.local_events import count_events
from ..kernels.local_models import NEWEST, Side, start_factors
from .mixed_models import MixedModels
from .models_state import without_sums
from .some_regressions import Other

__all__ = ["PlacedModels"]


class Lengths(NamedTuple):
    """How many observations rows, or columns, have: all that predictions need of their lists."""

    length: Array


class PlacedModels(MixedModels):
    """:class:`~onlinefw.past.mixed_models.MixedModels` that ask a past to solve regressions.

    They learn in batches: all rows of a batch are solved at once, then all columns. Single entries
    are batches of one, which take much longer here than in a compiled loop.

    Entries are predicted in this process. If the past is on a GPU, there is a copy of factors and
    offsets on it, for regressions and theta; solutions are written to both.

    Parameters
    ----------
    past : ListedPast or None
        The entries; None for models that get them later (``use_past``).
    rank, ridges, biased, clipped, loss
        As there.
    dtype : dtype, optional
        That of the past, unless there is none yet.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.iterates import LowRank
    >>> from onlinefw.losses import Square
    >>> from onlinefw.past.host.listed_entries import ListedEntries
    >>> from onlinefw.past.placed_models import PlacedModels
    >>> past = ListedEntries(LowRank((2, 2)), float, Square())
    >>> models = PlacedModels(past, 1, [[1.0, 0.0, 1.0]], True, True)
    >>> rows, columns = np.array([0, 1, 0]), np.array([0, 0, 1])
    >>> models.learn(rows, columns, np.array([3.0, 5.0, 4.0])).round(2)
    array([0., 3., 3.])
    """

    def __init__(self, past: Any, *options: Any, dtype: np.dtype | None = None) -> None:
        self._lengths = Lengths(np.zeros(0, np.int64)), Lengths(np.zeros(0, np.int64))
        self._copies: list[Other] | None = None
        self.past: Any = None
        super().__init__(past.dtype if dtype is None else dtype, *options)
        if past is None:
            return
        self.past = past
        self.grow(*past.shape)
        self.n_observations = past.counts.observations
        if self.n_observations:
            self._count_entries()
            self._start(np.flatnonzero(self._lengths[1].length))
        self._copy_to_device()

    @classmethod
    def _without_entries(cls, dtype: np.dtype, *options: Any) -> Self:
        return cls(None, *options, dtype=dtype)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the past out, and what is on its device."""
        return {**vars(self), "past": None, "_copies": None}

    def use_past(self, past: Any) -> None:
        """Learn with this past from now on; it has the same entries."""
        self._check_same(past.shape, past.dtype, past.counts.observations)
        self.past, self._copies = past, None
        self._count_entries()
        self._copy_to_device()

    def _count_entries(self) -> None:
        """Ask the past for the weight of every row and column; what matters is whether it is 0."""
        weights = self.past.weighted_sums(*(np.ones(n) for n in self.past.shape), False)
        for lengths, weight in zip(self._lengths, weights, strict=True):
            lengths.length[: weight.size] = np.minimum(np.ceil(weight), 2**62)

    def _copy_to_device(self) -> None:
        """Copy factors and offsets to the device of the past, if it has one."""
        xp, rank = self.past.theta._xp, self.models.rank
        if xp is not np:
            self._copies = [Other(rank, *map(xp.asarray, side[:2])) for side in self._sides()]

    # Growing --------------------------------------------------------------------------------------

    def grow(self, m1: int, m2: int) -> None:
        """Let there be m1 rows and m2 columns at least."""
        before = self.models
        super().grow(m1, m2)
        lengths = []
        for one, side in zip(self._lengths, self._sides(), strict=True):
            longer = np.zeros(len(side.factors), np.int64)
            longer[: one.length.size] = one.length
            lengths.append(Lengths(longer))
        self._lengths = lengths[0], lengths[1]
        if self._copies is None:
            return
        sides = zip(self._sides(), (before.rows, before.columns), strict=True)
        if any(side.factors is not had.factors for side, had in sides):
            self._copy_to_device()

    def remember(self) -> dict[str, Any]:
        """Return what ``go_back`` needs to undo growth."""
        return {**super().remember(), "_lengths": self._lengths, "_copies": self._copies}

    def _sides(self) -> tuple[Side, Side]:
        return self.models.rows, self.models.columns

    def _there(self) -> list[Other]:
        """Return rows and columns where the past wants them."""
        if self._copies is not None:
            return self._copies
        return [Other(self.models.rank, *side[:2]) for side in self._sides()]

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
        """Learn entries one after another; without ``solving``, add them all to the past."""
        if solving:
            out = np.empty(len(y))
            for t in range(len(y)):
                one = slice(t, t + 1)
                more = (None if x is None else x[one] for x in (w, units))
                out[one] = self.learn(rows[one], cols[one], y[one], *more, solving=False)
                self.solve(rows[one], cols[one])
                self.solve(*self.in_turn(1))
            return out
        weights, z = np.ones(len(y)) if w is None else w, np.zeros(len(y), self.dtype)
        self.past.append(rows, cols, weights, y, z)  # if it is refused, nothing was learned
        out = self._predict_and_note(rows, cols, y, w, units)
        self._start(np.unique(cols[self._lengths[1].length[cols] == 0]))
        for lengths, index in zip(self._lengths, (rows, cols), strict=True):
            np.add.at(lengths.length, index, 1)
        self.n_observations += len(y)
        while self._check_at is not None and self._check_at <= self.n_observations:
            self._check_at *= 2  # nobody asks here: models that came from memory keep their rank
        count_events(self.turns, rows, cols)
        return out

    def _start(self, columns: Array) -> None:
        """Let columns that have their first entries begin with numbers of their own."""
        models = self.models
        factors = models.columns.factors
        start_factors(factors, len(models.ridges), 0, models.rank, columns)
        if self._copies is not None:
            xp = self.past.theta._xp
            self._copies[1].factors[xp.asarray(columns)] = xp.asarray(factors[columns])

    def _lists(self) -> tuple[Any, Any]:
        return self._lengths

    def _left(self, rows: Array, columns: Array) -> None:
        self._count_entries()

    def _clear(self, rows: Array, columns: Array) -> None:
        super()._clear(rows, columns)
        self._copy_to_device()

    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        """Solve the regressions of these rows, then of these columns; there are no sums here."""
        models, sigma = self.models, self.sigma
        ridges = models.ridges.copy()
        ridges[:, [0, 2]] *= self.moments[NEWEST]
        if not self.biased:
            ridges[:, 2] = np.inf
        for own, which in ((0, rows), (1, columns)):
            which = which[self._lengths[own].length[which] > 0]
            if not which.size:
                continue
            mean, there = self.mean if own == 0 else 0.0, self._there()
            found = self.past.solve_some(own == 0, which, self._cut(there, 1 - own), mean, ridges)
            factors, offsets = found[:, :, : models.rank] / sigma, found[:, :, models.rank] + mean
            _write(there[own], which, factors, offsets)
            if self._copies is not None:
                here = Other(models.rank, *self._sides()[own][:2])
                _write(here, which, to_host(factors), to_host(offsets))

    def _cut(self, there: list[Other], side: int) -> Other:
        """Return a side without memory to spare."""
        n, (rank, factors, offsets) = self.shape[side], there[side]
        return Other(rank, factors[:n], offsets[:n])

    def sweep(self) -> None:
        """Solve the regressions of all rows, then of all columns."""
        self.solve(*(np.flatnonzero(one.length) for one in self._lengths))

    def factors(self) -> tuple[Array, Array, Array]:
        """Return both factors of the mixture at the place, and the weights of their columns."""
        (m1, m2), (rows, columns), (_, weights, _) = self.shape, self._there(), super().factors()
        return rows.factors[:m1], weights, columns.factors[:m2]

    def offsets(self) -> tuple[Array, Array]:
        """Return the offsets of all rows and columns: the past does not know the models."""
        return self.all_offsets()

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the models that ``state_dict`` described; to learn they need a past."""
        return super().from_state(without_sums(state))


def _write(own: Other, which: Array, factors: Array, offsets: Array) -> None:
    """Let some rows, or some columns, have these factors and offsets."""
    models = own.offsets.shape[1]
    each = own.factors.reshape(len(own.factors), models, -1)
    index = namespace(each).asarray(which)
    each[index, :, : own.rank] = factors.astype(each.dtype)
    own.offsets[index] = offsets.astype(each.dtype)
