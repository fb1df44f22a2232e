"""Ratings, one after another: several Bayesian factor models, sampled as ratings come."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._state import check_state
from .._threads import blocks_for, share
from .._typing import Array, State
from .._validation import check_precision, check_whole
from ..native import Pointer, Struct, loops, struct
from .lists import EntryLists, Lists

__all__ = ["LARGEST_RANK", "Chains"]

#: A chain has this rank at most: a solution takes time like its square.
LARGEST_RANK = 256
#: As in ``native/chains.hpp``: what moments, noise and the fit of moods have.
MOMENTS, NOISE, MOOD_FIT = 6, 3, 5
WEIGHT, MEAN, SQUARES, LOW, HIGH, NEWEST = range(MOMENTS)
FACTOR_VARIANCE, BIAS_VARIANCE, PRIOR_ROWS, RENEW = 0.1, 0.2, 50.0, 50
PANEL, LONG = 64, 2048

SideStruct = struct(
    "SideStruct",
    lists=Struct,
    means=Pointer("real"),
    samples=Pointer("real"),
    place=Pointer(np.int64),
    sums=Pointer(np.float64),
    read=Pointer(np.int64),
    places=int,
    used=Pointer(np.int64),
    priors=Pointer(np.float64),
    solved=Pointer(np.int64),
    seen=Pointer(np.int64),
)
ChainsStruct = struct(
    "ChainsStruct",
    rank=int,
    count=int,
    biased=int,
    clipped=int,
    seed=int,
    kind=int,
    parameter=float,
    rows=Struct,
    columns=Struct,
    noise=Pointer(np.float64),
    moments=Pointer(np.float64),
    mood_fit=Pointer(np.float64),
    moods=Pointer("real"),
    fade=float,
    work=Pointer(np.float64),
    panel=Pointer("real"),
)
ChainEvents = struct(
    "ChainEvents",
    first=int,
    n=int,
    rows=Pointer(np.int64, read=True),
    cols=Pointer(np.int64, read=True),
    y=Pointer(np.float64, read=True),
    w=Pointer(np.float64, read=True, optional=True),
    units=Pointer(np.float64, read=True, optional=True),
    solving=int,
    chains=Struct,
    out=Pointer(np.float64),
)
ChainEntries = struct(
    "ChainEntries",
    n=int,
    rows=Pointer(np.int64, read=True),
    cols=Pointer(np.int64, read=True),
    chains=Struct,
    out=Pointer(np.float64),
)
ChainLists = struct(
    "ChainLists",
    begin=int,
    until=int,
    which=Pointer(np.int64, read=True),
    of_rows=int,
    chains=Struct,
    priors=Pointer(np.float64),
    noise=Pointer(np.float64),
)


class Side:
    """What the chains know of rows, or of columns.

    Attributes
    ----------
    means, samples : ndarray of shape (rows, chains, width)
        The factors, the bias and zeros.
    priors : ndarray of shape (chains, 5 width^2 + 8)
        B, Lambda, and the sums behind them: of f f', of f s', of s s', and their number.
    place : ndarray
        Which of the long lists a row has, plus 1; 0 for a short one.
    sums, read : ndarray
        Of long lists: equations as far as they have been read, how far, and for which chain.
    """

    def __init__(self, lists: Lists, n: int, rank: int, count: int, width: int) -> None:
        self.lists, self.width = lists, width
        shape = 0, count, width
        self.means, self.samples = np.zeros(shape, lists.dtype), np.zeros(shape, lists.dtype)
        self.place = np.zeros(0, np.int64)
        self.sums, self.read = np.zeros((0, width * width + width)), np.zeros((0, 2), np.int64)
        self.used, self.seen = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.priors, self.solved = new_priors(rank, count, width), np.zeros(count, np.int64)
        self.struct: Any = SideStruct(lists.dtype, lists=lists.struct)
        self.grow(n)

    def told(self) -> None:
        """Let compiled loops know the arrays."""
        names = "means", "samples", "place", "sums", "read", "used", "priors", "solved", "seen"
        self.struct.set(**{x: getattr(self, x) for x in names}, places=len(self.read))

    def grow(self, n: int) -> None:
        """Let there be n rows at least."""
        old = len(self.means)
        if n > old:
            more = max(n, old + old // 2)
            for name in ("means", "samples", "place"):
                setattr(self, name, longer(getattr(self, name), more))
        self.told()

    def make_places(self) -> bool:
        """Get memory for more long lists, if there is none left; return whether that was so."""
        n = len(self.read)
        if int(self.used[0]) < n:
            return False
        self.sums, self.read = longer(self.sums, n + n // 2 + 4), longer(self.read, n + n // 2 + 4)
        self.told()
        return True

    def begin_again(self, which: Array) -> None:
        """Read these long lists from the beginning: their entries have changed."""
        at = self.place[which]
        at = at[at > 0] - 1
        self.sums[at], self.read[at, 0] = 0.0, 0


class Chains:
    """Several Bayesian factor models side by side, whose mean predicts.

    In each of them a row and a column have a bias and factors, as a posterior mean and as a sample.
    After a rating its row is solved, and then its column, on all that they have seen against the
    samples of the other side, and a new sample is drawn: at every rating while there are few, then
    more and more rarely, one chain after another. What is expected of a row before its ratings
    depends on which columns it has rated, and is found on the way (``native/chains.hpp`` has the
    equations).

    With the square loss a row also has a mood: two means of its latest errors, which are added to
    predictions with weights that explain errors best, and taken off the values that are learned.

    Random numbers come from counters: learning in pieces is learning at once, bit for bit.

    Parameters
    ----------
    lists : EntryLists
        All entries by row and by column, which ``learn`` adds to.
    rank : int
        Of each chain, without its biases.
    count : int
        How many chains.
    loss : (int, float)
        Kind and parameter, as in ``native/losses.hpp``.
    biased : bool
        Whether rows and columns have biases, and values a mean.
    clipped : bool
        Whether predictions are clipped to the range of the values.
    seed : int
        Of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.factors.chains import Chains
    >>> from onlinefw.factors.lists import EntryLists
    >>> chains = Chains(EntryLists((2, 2), float), rank=2, count=2)
    >>> rows, columns = np.array([0, 1, 0]), np.array([0, 0, 1])
    >>> chains.learn(rows, columns, np.array([3.0, 5.0, 4.0])).round(2)[:2]
    array([0., 3.])
    """

    def __init__(
        self,
        lists: EntryLists,
        *,
        rank: int = 16,
        count: int = 4,
        loss: tuple[int, float] = (0, 0.0),
        biased: bool = True,
        clipped: bool = True,
        seed: int = 0,
    ) -> None:
        self.lists, self.rank, self.count, self.loss = lists, rank, count, loss
        self.biased, self.clipped, self.seed = bool(biased), bool(clipped), seed
        self.width = width = width_of(rank)
        self.noise = np.tile([0.0, 0.0, 1.0], (count, 1))
        self.moments = np.array([0.0, 0.0, 0.0, np.inf, -np.inf, 1.0])
        self.mood_fit, self.moods = np.zeros(MOOD_FIT), np.zeros((0, 4), lists.dtype)
        self.rows = Side(lists.by_row, lists.shape[0], rank, count, width)
        self.columns = Side(lists.by_column, lists.shape[1], rank, count, width)
        self.fade = 1.0  # what is left of the fit of moods after a rating
        self._work = self._workspace()
        self.struct: Any = self._new_struct(self._work)
        self._events: Any = ChainEvents(float, first=0, chains=self.struct)
        self.grow(*lists.shape)

    def _workspace(self) -> tuple[Array, Array]:
        panel = np.zeros((2, PANEL, self.width), self.lists.dtype)
        return np.zeros(2 * self.width**2 + 8 * self.width), panel

    def _new_struct(self, work: tuple[Array, Array]) -> Any:
        return ChainsStruct(
            self.lists.dtype, rank=self.rank, count=self.count, biased=self.biased,
            clipped=self.clipped, seed=self.seed, kind=self.loss[0], parameter=self.loss[1],
            rows=self.rows.struct, columns=self.columns.struct, noise=self.noise,
            moments=self.moments, mood_fit=self.mood_fit, moods=self.moods, fade=self.fade,
            work=work[0], panel=work[1],
        )  # fmt: skip

    # Growing --------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.lists.shape

    def grow(self, m1: int, m2: int) -> None:
        """Let there be m1 rows and m2 columns at least."""
        self.lists.grow(m1, m2)
        self.rows.grow(m1)
        self.columns.grow(m2)
        if len(self.moods) < len(self.rows.means):
            self.moods = longer(self.moods, len(self.rows.means))
        self.struct.set(moods=self.moods)

    def _make_space(self) -> None:
        """Give more memory to long lists, if they have none left, else to all lists."""
        full = [side.make_places() for side in (self.rows, self.columns)]
        if not any(full):
            self.lists.make_space()

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
        """Learn entries one after another; return what was predicted for each before.

        ``units`` is what an observation of weight 1 weighs when each comes, where older ones fade.
        Without ``solving`` entries are predicted and added, and nothing is solved.
        """
        if w is not None or units is not None:
            self.lists.weigh()
        out = np.empty(len(y))
        call = self._events.set(
            first=0, n=len(y), rows=rows, cols=cols, y=y, w=w, units=units, solving=solving, out=out
        )
        learn = loops.of("learn_chains", self.lists.dtype)
        while call.first < call.n:
            call.first = learn(call.pointer)
            if call.first < call.n:
                self._make_space()
        return out

    def solve(self, rows: Array, columns: Array) -> None:
        """Solve these rows, then these columns, on all that they have, in all chains."""
        for side, which, of_rows in ((self.rows, rows, True), (self.columns, columns, False)):
            which = which[side.lists.length[which] > 0]
            if which.size:
                self._solve_side(side, np.ascontiguousarray(which, np.int64), of_rows)

    def _solve_side(self, side: Side, which: Array, of_rows: bool) -> None:
        width, size = self.width, self.width**2
        work = int(side.lists.length[which].sum()) * width * self.count
        # So many blocks whatever the number of threads: what is added to what must not change.
        blocks = blocks_for(which.size, work)
        priors = np.zeros((len(blocks) - 1, *side.priors.shape))
        noise = np.zeros((len(blocks) - 1, *self.noise.shape))

        def solve_blocks(first: int, last: int, blocks: Array) -> None:
            theirs = self._workspace()
            chains = self._new_struct(theirs)
            solve = loops.of("solve_chains", self.lists.dtype)
            for block in range(first, last):
                solve(
                    ChainLists(
                        float, begin=int(blocks[block]), until=int(blocks[block + 1]), which=which,
                        of_rows=of_rows, chains=chains, priors=priors[block], noise=noise[block],
                    ).pointer
                )  # fmt: skip

        share(solve_blocks, blocks)
        keep = (1.0 - 1.0 / (2.0 * float(side.seen[0]) + PRIOR_ROWS)) ** which.size
        side.priors[:, 2 * size :] = keep * side.priors[:, 2 * size :] + priors.sum(0)[:, 2 * size :]
        self.noise[:, :2] = keep * self.noise[:, :2] + noise.sum(0)[:, :2]
        side.solved += which.size
        self._renew(side, of_rows)

    def _renew(self, side: Side, of_rows: bool) -> None:
        call: Any = ChainLists(
            float, begin=0, until=0, which=np.zeros(0, np.int64), of_rows=of_rows,
            chains=self.struct, priors=side.priors, noise=self.noise,
        )  # fmt: skip
        loops.of("renew_chains", self.lists.dtype)(call.pointer)

    def sweep(self) -> None:
        """Solve all rows, then all columns."""
        self.solve(np.arange(self.shape[0]), np.arange(self.shape[1]))

    # Asking ---------------------------------------------------------------------------------------

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return what is predicted for entries of the matrix, with moods, and not clipped."""
        out = np.empty(len(rows))
        call: Any = ChainEntries(
            float, n=len(rows), rows=np.ascontiguousarray(rows, np.int64),
            cols=np.ascontiguousarray(cols, np.int64), chains=self.struct, out=out,
        )  # fmt: skip
        loops.of("predict_chains", self.lists.dtype)(call.pointer)
        return out


def width_of(rank: int) -> int:
    """Return how long a row of factors is, with a bias and with space for what is expected."""
    return -(-(rank + 3) // 8) * 8


def new_priors(rank: int, count: int, width: int) -> Array:
    """Return what is known before any row: factors about 0, with their prior precision."""
    priors = np.zeros((count, 5 * width**2 + 8))
    at = width**2 + np.arange(rank + 1) * (width + 1)
    priors[:, at] = 1.0 / np.append(np.full(rank, FACTOR_VARIANCE), BIAS_VARIANCE)
    return priors


def longer(array: Array, n: int) -> Array:
    """Return a longer copy, with zeros at its end."""
    more = np.zeros((n, *array.shape[1:]), array.dtype)
    more[: len(array)] = array
    return more
