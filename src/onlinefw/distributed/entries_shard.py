"""Some rows of the observed entries, in the process of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._devices import check_device, to_host
from .._growing import GrowingArray
from .._threads import one_blas_thread, threads_for
from .._typing import Array
from ..iterates import LowRank
from ..losses import Loss
from ..objectives.entry_store import LONGEST_TAIL
from ..objectives.places import new_entries
from .pieces import Piece, piece_of

__all__ = ["EntriesShard"]


class EntriesShard:
    """Entries of some rows, with the number of every entry that is still in the tail.

    They live in memory or on a GPU; what comes and goes is in numpy arrays either way.

    Entries are numbered in the order in which they came, over all shards. The driver says up to
    which number they are sorted in, so the tails of all shards together are what the tail of one
    process would be.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, loss: Loss, device: str) -> None:
        self.entries = new_entries(check_device(device), None, shape, dtype, loss)
        self.entries.merges_itself = False  # the driver says when, so that all shards agree
        self._numbers = GrowingArray(dtype=np.int64)
        self._row_scale: Array | None = None
        self._y: Array | None = None  # G V of the last read
        self._line: Any = None
        self._regressions: Any = None
        self._theta: LowRank | None = None  # these rows of theta, where new entries come from files

    @contextmanager
    def working(self) -> Iterator[None]:
        """Return a context to carry out a message in."""
        with one_blas_thread(), threads_for(len(self.entries)):
            yield

    def _there(self, u: Array, v: Array) -> tuple[Array, Array]:
        return self.entries.there(u), self.entries.there(v)

    def wait(self) -> None:
        """Do nothing: the answer says that all earlier messages have been carried out."""

    # Data -----------------------------------------------------------------------------------------

    def append(
        self, rows: Array, cols: Array, z: Array, c: Array, s: Array, numbers: Array
    ) -> None:
        """Add entries with their predictions, weights and targets."""
        self.entries.append(rows, cols, z, c, s)
        self._numbers.append(numbers)

    def append_piece(self, piece: Piece, first: int) -> None:
        """Add entries that another worker has read; theta is known here."""
        assert self._theta is not None
        rows, cols, c, s, places = piece
        self.append(rows, cols, self._theta.entries(rows, cols), c, s, first + places)

    def batch_sums(self, first: int) -> tuple[float, float, float]:
        """Return loss, weight and weighted squares of the values, from a number on."""
        return self.entries.newest_sums(since=int(np.searchsorted(self._numbers.data, first)))

    def load_file(self, place: tuple[Any, ...], k: int, n: int, first: int, cut: int) -> None:
        """Read a batch again, for a worker that was restarted."""
        piece = piece_of(place, k, n, self.entries.dtype, self.entries.loss)
        rows, cols, c, s, places = piece
        self.load(rows, cols, np.zeros_like(c), c, s, first + places, cut)

    def follow(self, theta: LowRank) -> None:
        """Know theta from now on: it is told here, and moves as predictions do."""
        self._theta = self.entries.theta_there(theta)
        self._theta.max_atoms = 2**31

    def _follow(self, keep: float, left: Array, right: Array) -> None:
        theta = self._theta
        if theta is None:
            return
        theta.shrink(keep)
        if keep == 0.0:
            theta._k = 0
        for u, v in zip(left.T, right.T, strict=True):
            theta._append(u, 1.0, v)

    def load(
        self, rows: Array, cols: Array, z: Array, c: Array, s: Array, numbers: Array, cut: int
    ) -> None:
        """Add entries of a state or of the log, many; those below ``cut`` may be sorted in."""
        self.append(rows, cols, z, c, s, numbers)
        if len(self._numbers) > LONGEST_TAIL:
            self._merge(cut)

    def restore(self, cut: int, theta: LowRank, offsets: tuple[Array, Array]) -> None:
        """Bring everything to where it should be, after all entries have been loaded."""
        self._merge(cut)
        self.entries.set_offsets(*offsets)
        self.entries.place(self.entries.theta_there(theta))
        self.entries.settle()

    def grow(self, m1: int, m2: int) -> None:
        """Make room for rows and columns."""
        self.entries.grow(m1, m2)
        if self._theta is not None:
            self._theta.grow((m1, m2), self._theta.max_atoms, None)

    def set_offsets(self, rows: Array, columns: Array) -> None:
        """Predict with these from now on."""
        self.entries.set_offsets(rows, columns)

    def merge(self, cut: int) -> None:
        """Sort the entries with smaller numbers in, after carrying out what is pending."""
        if self.entries._pending is not None:
            self.entries.settle()
        self._merge(cut)

    def _merge(self, cut: int) -> None:
        n = int(np.searchsorted(self._numbers.data, cut))
        self.entries.merge_oldest(n)
        if n:
            self._numbers.drop_first(n)

    def bulk_size(self) -> int:
        """Return how many entries have been sorted in."""
        return self.entries.n_sorted

    # Moves ----------------------------------------------------------------------------------------

    def move(self, keep: float, u: Array, v: Array) -> None:
        """Z <- keep z + u_i v_j."""
        u, v = self._there(u, v)
        self.entries.move(keep, u, v)
        self._follow(keep, u[:, None], v[:, None])

    def move_block(self, keep: float, left: Array, right: Array) -> None:
        """Z <- keep z + left_i . right_j."""
        left, right = self._there(left, right)
        self.entries.move_block(keep, left, right)
        self._follow(keep, left, right)

    def shrink(self, factor: float) -> None:
        """Z <- factor z."""
        self.entries.shrink(factor)
        if self._theta is not None:
            self._theta.shrink(factor)

    def place(self, theta: LowRank) -> None:
        """Z <- theta."""
        self._regressions = None
        self.entries.place(self.entries.theta_there(theta))
        if self._theta is not None:
            self.follow(theta)

    def settle(self) -> None:
        """Carry out what is pending."""
        self.entries.settle()

    def go_back(self, moving: bool, due: bool) -> None:
        """Let later decisions be as if nothing had been asked in between."""
        self.entries.go_back(moving, due)

    # Products -------------------------------------------------------------------------------------

    def set_row_scale(self, scale: Array | None) -> None:
        """Weigh the rows of products G'(scale G V) from now on; None: all the same."""
        self._row_scale = None if scale is None else self.entries.there(scale)

    def read(self, v: Array, keep: bool) -> tuple[tuple[Array | None, float], Array]:
        """Return the rows of G V and this part of <z, g>; and that of G'(scale G V).

        With ``keep``, the rows of G V stay here, for :meth:`combined`.
        """
        self._regressions = None
        y, w, z_dot_g = self.entries.read(self.entries.there(v), self._row_scale)
        self._y = y.copy() if keep else None
        sums = None if keep else to_host(y), float(np.sum(to_host(z_dot_g)))
        return sums, to_host(w.astype(self.entries.dtype, copy=False))

    def combined(self, coefficients: Array) -> Array:
        """Return combinations of the columns of G V."""
        assert self._y is not None
        return to_host(self._y @ self.entries.there(coefficients))

    def normal(self, v: Array) -> tuple[Array, Array]:
        """Return the rows of G v and this part of G'(scale G v)."""
        y, w = self.entries.normal(self.entries.there(v), self._row_scale)
        return to_host(y), to_host(w)

    def forward(self, v: Array) -> Array:
        """Return the rows of G V."""
        return to_host(self.entries.forward(self.entries.there(v)))

    def backward(self, u: Array) -> Array:
        """Return this part of G' U."""
        return to_host(self.entries.backward(self.entries.there(u)))

    def squared_norms(self) -> tuple[float, float]:
        """Return those of the slopes, sorted ones and newest."""
        return self.entries.squared_norms()

    def dense_slopes(self) -> Array:
        """Return rows of the gradient."""
        return self.entries.dense_slopes()

    # Other sums -----------------------------------------------------------------------------------

    def total_loss(self) -> float:
        """Return the loss of these entries."""
        return self.entries.total_loss()

    def line(self, u: Array, v: Array) -> tuple[float, float, float] | None:
        """Start a line; return value, slope and curvature of a parabola."""
        self._line = self.entries.line(*self._there(u, v))
        if self._line.curvature is None:
            return None
        return self._line.value(0.0), self._line.slope(0.0), self._line.curvature

    def line_value(self, t: float) -> float:
        """Return the loss along the line."""
        return self._line.value(t)

    def line_slope(self, t: float) -> float:
        """Return its derivative."""
        return self._line.slope(t)

    def heaviest_parts(self) -> tuple[float, float]:
        """Return the largest weights, sorted ones and newest."""
        return self.entries.heaviest_parts()

    def weighted_sums(self, rows: Array, columns: Array, theta: bool) -> tuple[Array, Array]:
        """Return sums of the rows, and these rows' part of the sums of the columns."""
        return self.entries.weighted_sums(rows, columns, theta)

    def weighted_products(self, v: Array) -> Array:
        """Return the rows of W V."""
        return to_host(self.entries.weighted_products(self.entries.there(v)))

    def newest_sums(self, theta: LowRank) -> tuple[float, float, float]:
        """Return loss, weight and weighted squares of the values of the newest entries."""
        return self.entries.newest_sums(self.entries.theta_there(theta))

    def regressions(self, cut: int) -> None:
        """Sort entries up to a number in, and start regressions of what has been sorted in."""
        self._regressions = None
        self.entries.settle()
        self._merge(cut)
        self._regressions = self.entries.regressions_of_sorted()

    def solve_rows(self, right: Array, ridge: Array) -> Array:
        """Return these rows' factor."""
        return to_host(self._regressions.solve_rows(self.entries.there(right), ridge))

    def column_equations(self, left: Array) -> Array:
        """Return these rows' part of the columns' normal equations."""
        return to_host(self._regressions.column_equations(self.entries.there(left)))

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        return self.entries.columns_of(row)

    def seen(self) -> tuple[Array, Array]:
        """Return the columns of every row."""
        return self.entries.seen()

    # State ----------------------------------------------------------------------------------------

    def part(self) -> tuple[list[Array], list[Array], Array]:
        """Return what the entries are, sorted ones and newest, and the newest's numbers."""
        return *self.entries.columns(), self._numbers.data.copy()
