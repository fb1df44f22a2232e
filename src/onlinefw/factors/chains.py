"""Ratings, one after another: several Bayesian factor models, sampled as ratings come."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from typing import Any

import numpy as np

from .._state import check_state, number
from .._threads import blocks_for, share
from .._typing import Array, State
from .._validation import check_precision, check_whole
from ..native import Pointer, Struct, loops, struct
from ..past.place import Place
from .lists import EntryLists, Lists, lists_that_had, longer, longer_ones, what_rows_had
from .solver import Solver

__all__ = ["LARGEST_RANK", "MOST_CHAINS", "Chains"]

#: A chain has this rank at most: a solution takes time like its square.
LARGEST_RANK = 256
#: As in ``native/chains.hpp``: what moments, noise and the fit of moods have.
MOMENTS, NOISE, MOOD_FIT = 6, 3, 5
WEIGHT, MEAN, SQUARES, LOW, HIGH, NEWEST = range(MOMENTS)
FACTOR_VARIANCE, BIAS_VARIANCE, PRIOR_ROWS = 0.1, 0.2, 50.0
PANEL, LONG = 64, 2048
#: The ball of theta is that of a weighted trace norm: a row that weighs n has the root of a + b n,
#: where values have a variance of 1.
RIDGE = (8.0, 0.05)
SHRINK, MOOD_RIDGE = np.array([1.0, 3.0]), 100.0
OF_RATED, MORE_RATED, OF_COUNT = 0.375, 8.0, 0.2
MOST_RATED, MOST_EXPECTED = 100.0, 2.0
#: A loop over more entries than that comes back to Python in between.
AT_ONCE = 2**17
#: So few entries are copied into arrays that the loop knows already.
FEW = 64
#: So many entries at once are predicted by several threads, and get their memory at once.
MANY = 10_000
#: More chains than that are refused: memory is in proportion.
MOST_CHAINS = 256
NONE = np.zeros(0, np.int64)
#: How many kinds of losses there are, and which have a parameter.
LOSSES, PARAMETRIC = 7, (3, 5, 6)

SideStruct = struct(
    "ChainSide",
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
    "Chains",
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
    said=Pointer(np.float64, read=True, optional=True),
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
    numbers=Pointer(np.int64, read=True, optional=True),
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
        self.publish(self.with_space(n))

    def told(self) -> None:
        """Let compiled loops know the arrays."""
        names = "means", "samples", "place", "sums", "read", "used", "priors", "solved", "seen"
        self.struct.set(**{x: getattr(self, x) for x in names}, places=len(self.read))

    def with_space(self, n: int) -> dict[str, Array]:
        """Return the arrays that have to be longer for n rows; nothing changes."""
        return longer_ones(self, ("means", "samples", "place"), n)

    def publish(self, arrays: dict[str, Array]) -> None:
        """Have these arrays from now on."""
        vars(self).update(arrays)
        self.told()

    def make_places(self) -> bool:
        """Get memory for more long lists, if there is none left; return whether that was so."""
        n = len(self.read)
        if int(self.used[0]) < n:
            return False
        self.sums, self.read = longer(self.sums, n + n // 2 + 4), longer(self.read, n + n // 2 + 4)
        self.told()
        return True


class Here(Solver):
    """The compiled loop, on all cores of this process."""

    def solve(
        self, chains: Chains, of_rows: bool, which: Array, numbers: Array
    ) -> tuple[Array, Array]:
        """Solve lists; they write into the sides themselves."""
        side, dtype = chains.side(of_rows), chains.lists.dtype
        work = int(side.lists.length[which].sum()) * chains.width * chains.count
        # So many blocks whatever the number of threads: what is added to what must not change.
        blocks = blocks_for(which.size, work)
        priors = np.zeros((len(blocks) - 1, *side.priors.shape))
        noise = np.zeros((len(blocks) - 1, *chains.noise.shape))

        def solve_blocks(first: int, last: int, blocks: Array) -> None:
            its = chains.in_a_thread()
            solve = loops.of("solve_chains", dtype)
            for block in range(first, last):
                solve(
                    ChainLists(
                        float, begin=int(blocks[block]), until=int(blocks[block + 1]), which=which,
                        numbers=numbers, of_rows=of_rows, chains=its, priors=priors[block],
                        noise=noise[block],
                    ).pointer
                )  # fmt: skip

        share(solve_blocks, blocks)
        return priors.sum(0)[:, 2 * chains.width**2 :], noise.sum(0)[:, :2]


HERE = Here()


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
        self.mood_fit, self.latest = np.zeros(MOOD_FIT), np.zeros((0, 4), lists.dtype)
        self.rows = Side(lists.by_row, lists.shape[0], rank, count, width)
        self.columns = Side(lists.by_column, lists.shape[1], rank, count, width)
        self._work = self._workspace()
        self.struct: Any = self._new_struct(self._work)
        self._learn = loops.of("learn_chains", lists.dtype)
        self._events: Any = ChainEvents(float, chains=self.struct)
        self._few: Any = ChainEvents(
            float, rows=np.zeros(FEW, np.int64), cols=np.zeros(FEW, np.int64), y=np.zeros(FEW),
            w=None, units=None, said=None, chains=self.struct, out=np.zeros(FEW),
        )  # fmt: skip
        self.grown(*lists.shape)()
        self.solver: Solver = HERE

    def use_place(self, place: Place) -> None:
        """Let lists be solved there from now on."""
        solver: Solver = HERE
        if place.workers is not None:
            from .on_workers import OnWorkers

            solver = OnWorkers(self, place.device, place.workers)
        elif place.device == "cuda":
            from .on_gpu import OnGpu

            solver = OnGpu(self)
        self.solver.close()
        self.solver = solver

    def _workspace(self) -> tuple[Array, Array]:
        panel = np.zeros((2, PANEL, self.width), self.lists.dtype)
        return np.zeros(2 * self.width**2 + 8 * self.width), panel

    def _new_struct(self, work: tuple[Array, Array]) -> Any:
        return ChainsStruct(
            self.lists.dtype, rank=self.rank, count=self.count, biased=self.biased,
            clipped=self.clipped, seed=self.seed, kind=self.loss[0], parameter=self.loss[1],
            rows=self.rows.struct, columns=self.columns.struct, noise=self.noise,
            moments=self.moments, mood_fit=self.mood_fit, moods=self.latest, fade=1.0,
            work=work[0], panel=work[1],
        )  # fmt: skip

    def in_a_thread(self) -> Any:
        """Return a struct of these chains for a loop of its own, with memory to work with."""
        return self._new_struct(self._workspace())

    def side(self, of_rows: bool) -> Side:
        """Return what is known of rows, or of columns."""
        return self.rows if of_rows else self.columns

    def fade(self, half_life: float | None) -> None:
        """Let the fit of moods fade as observations do."""
        self.struct.fade = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)

    # Growing --------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.lists.shape

    def grown(self, m1: int, m2: int) -> Callable[[], None]:
        """Get memory for m1 rows and m2 columns at least; return what makes use of it."""
        shape = max(m1, self.shape[0]), max(m2, self.shape[1])
        latest = longer_ones(self, ("latest",), shape[0])
        owners = (self.lists.by_row, m1), (self.rows, m1), (self.lists.by_column, m2)
        arrays = [(one, one.with_space(n)) for one, n in (*owners, (self.columns, m2))]

        def publish() -> None:
            for one, its in arrays:
                one.publish(its)
            vars(self).update(latest)
            self.struct.set(moods=self.latest)
            self.lists.shape = shape

        return publish

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
        Without ``solving`` entries are predicted and added, and nothing is solved. Elsewhere than
        in this process each is a batch of one, whose row and column are solved in all chains.
        """
        if solving and self.solver is not HERE:
            return self._learn_in_batches(rows, cols, y, w, units)
        if w is not None or units is not None:
            self.lists.weigh()
        n, call, said = len(y), self._few, None
        if n <= FEW and w is None and units is None:  # into arrays that the loop knows already
            inbox = call.kept
            inbox["rows"][:n], inbox["cols"][:n], inbox["y"][:n] = rows, cols, y
        else:
            if not solving and n >= MANY:
                said = self._say(rows, cols)
                self.lists.reserve(rows, cols)
            call = self._events.set(
                rows=rows, cols=cols, y=y, w=w, units=units, said=said, out=np.empty(n)
            )
        call.first, call.solving, learn = 0, solving, self._learn
        while call.first < n:  # it stops before the end to have more memory, or after a while
            call.n = stop = min(n, call.first + AT_ONCE)
            call.first = learn(byref(call))
            if call.first < stop:
                self._make_space()
        out: Array = call.kept["out"]
        return out[:n].copy() if call is self._few else out

    def _learn_in_batches(
        self, rows: Array, cols: Array, y: Array, w: Array | None, units: Array | None
    ) -> Array:
        out = np.empty(len(y))
        for t in range(len(y)):
            one = slice(t, t + 1)
            more = (None if x is None else x[one] for x in (w, units))
            out[one] = self.learn(rows[one], cols[one], y[one], *more, solving=False)
            self.solve(rows[one], cols[one])
        return out

    def solve_learned(self, rows: Array, columns: Array) -> None:
        """Solve the rows and columns of entries that were added and not solved."""
        self.solve(*(np.flatnonzero(np.bincount(x, minlength=1)) for x in (rows, columns)))

    def _say(self, rows: Array, cols: Array) -> Array:
        """Return what the chains say of many entries, in standard units and about the centre."""
        out = np.empty(len(rows))

        def say_blocks(first: int, last: int, blocks: Array) -> None:
            its = slice(int(blocks[first]), int(blocks[last]))
            call: Any = ChainEntries(
                float, n=its.stop - its.start, rows=rows[its], cols=cols[its],
                chains=self.in_a_thread(), out=out[its],
            )  # fmt: skip
            loops.of("say_chains", self.lists.dtype)(call.pointer)

        share(say_blocks, blocks_for(len(rows), len(rows) * self.width * self.count))
        return out

    def solve(self, rows: Array, columns: Array) -> None:
        """Solve these rows, then these columns, on all that they have, in all chains."""
        for which, of_rows in ((rows, True), (columns, False)):
            which = which[self.side(of_rows).lists.length[which] > 0]
            if which.size:
                self._solve_side(np.ascontiguousarray(which, np.int64), of_rows)

    def _solve_side(self, which: Array, of_rows: bool) -> None:
        side = self.side(of_rows)
        sums, errors = self.solver.solve(self, of_rows, which, np.arange(which.size))
        long = side.place[which]
        long = long[long > 0] - 1
        side.sums[long], side.read[long, 0] = 0.0, 0  # they were read as a whole
        keep = (1.0 - 1.0 / (2.0 * float(side.seen[0]) + PRIOR_ROWS)) ** which.size
        before = side.priors[:, 2 * self.width**2 :], self.noise[:, :2]
        before[0][:] = keep * before[0] + sums
        before[1][:] = keep * before[1] + errors
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
        """Return what is predicted for entries, with moods, and not clipped.

        A row or a column that is not in the matrix is -1: then it is what is expected of it.
        """
        out = np.empty(len(rows))
        call: Any = ChainEntries(
            float, n=len(rows), rows=np.ascontiguousarray(rows, np.int64),
            cols=np.ascontiguousarray(cols, np.int64), chains=self.in_a_thread(), out=out,
        )  # fmt: skip
        loops.of("predict_chains", self.lists.dtype)(call.pointer)
        return out

    #: What an entry weighs that was not observed.
    zero = 0.0

    @property
    def newest(self) -> float:
        """What a new observation weighs."""
        return float(self.moments[NEWEST])

    @property
    def unit(self) -> float:
        """What factors are measured in: the standard deviation of values; 1 for other losses."""
        variance = self.moments[SQUARES] / self.moments[WEIGHT] if self.moments[WEIGHT] else 0.0
        return float(np.sqrt(variance)) if self.loss[0] == 0 and variance > 0.0 else 1.0

    @property
    def centre(self) -> float:
        """What is predicted for all: the prediction that belongs to the mean of the values."""
        out = np.zeros(1)
        call: Any = ChainEntries(float, n=0, rows=NONE, cols=NONE, chains=self.struct, out=out)
        loops.of("centre_of_chains", self.lists.dtype)(call.pointer)
        return float(out[0])

    def factors(self) -> tuple[Array, Array, Array]:
        """Return both factors of the mean, and the weights of their columns."""
        sides = []
        for side, n in zip((self.rows, self.columns), self.shape, strict=True):
            means = self._known_means(side, n)[:, :, : self.rank]
            sides.append(np.ascontiguousarray(means).reshape(n, -1))
        weights = np.full(sides[0].shape[1], self.unit / self.count)
        return sides[0], weights, sides[1]

    def offsets(self) -> tuple[Array, Array]:
        """Return what is added to them in rows, with the centre, and in columns."""
        both = []
        for side, n in zip((self.rows, self.columns), self.shape, strict=True):
            biases = self._known_means(side, n)[:, :, self.rank]
            both.append(self.unit * biases.mean(axis=1, dtype=float))
        return both[0] + self.centre, both[1]

    def penalties(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """Return the ridges of rows and of columns, which have these weights, for theta's ball."""
        (a, b), one = RIDGE, self.newest
        return a * one + b * rows, a * one + b * columns

    def _known_means(self, side: Side, n: int) -> Array:
        """Return the means of n rows; of those without ratings what is expected."""
        means = side.means[:n]
        unknown = side.lists.length[:n] == 0
        if unknown.any():
            means = means.copy()
            means[unknown] = side.priors[:, : self.width]
        return means

    def vectors_of_columns(self) -> Array:
        """Return columns so that a product with ``vectors_of_rows`` tells what they are worth."""
        means = self._known_means(self.columns, self.shape[1])
        return means.reshape(len(means), -1)

    def vectors_of_rows(self, which: Array) -> Array:
        """Return some rows, scaled, with a 1 for the bias of a column."""
        means = self.rows.means[which]
        unknown = self.rows.lists.length[which] == 0
        means[unknown] = self.rows.priors[:, : self.width]
        means[:, :, self.rank] = 1.0
        return (self.unit / self.count * means).reshape(len(means), -1)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest value seen."""
        return float(self.moments[LOW]), float(self.moments[HIGH])

    def mood_fitted(self) -> tuple[float, float, float] | None:
        """Return the weights of the fast and the slow mood, and what they explain of errors."""
        if self.loss[0] != 0 or not self.moments[WEIGHT] > 0.0:
            return None
        normal, found = self._mood_equations()
        weights = np.linalg.solve(normal, found)
        # Least squares take so much off the squared errors, which are about their variance each.
        errors = max(float(self.moments[WEIGHT] / self.newest), 1.0) / self.noise[:, 2].mean()
        gain = min(max(float(weights @ found) / errors, 0.0), 1.0)
        return float(weights[0]), float(weights[1]), gain

    def _mood_equations(self) -> tuple[Array, Array]:
        fit = self.mood_fit
        return np.array([[fit[0], fit[1]], [fit[1], fit[2]]]) + MOOD_RIDGE * np.eye(2), fit[3:]

    def moods(self) -> Array:
        """Return what the latest errors of every row add to its predictions."""
        m = self.latest[: self.shape[0]].astype(float)
        x = m[:, :2] / (m[:, 2:] + SHRINK)
        return self.unit * (x @ np.linalg.solve(*self._mood_equations()))

    # Rows on their own ----------------------------------------------------------------------------

    def _regression(
        self, chain: int, columns: Array, values: Array, weights: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return A, what the prior adds, x and t of a row with these values (a square loss)."""
        d, width, side = self.rank + 1, self.width, self.rows
        x = self.columns.samples[columns, chain, :d].astype(float)
        bias = x[:, -1].copy()
        x[:, -1] = float(self.biased)
        t = (values - self.centre) / self.unit - bias
        prior = side.priors[chain]
        B, precision = prior[: width**2].reshape(width, width), self.noise[chain, 2]
        Lambda = prior[width**2 : 2 * width**2].reshape(width, width)[:d, :d]
        n = weights.sum()
        rated = np.append(weights @ x[:, :-1], weights @ bias)
        sums = np.clip(OF_RATED / np.sqrt(n + MORE_RATED) * rated, -MOST_RATED, MOST_RATED)
        f = np.concatenate(([1.0], sums, [OF_COUNT * np.log1p(n)]))
        expected = np.clip(f @ B[: f.size, :d], -MOST_EXPECTED, MOST_EXPECTED)
        A = Lambda + precision * x.T @ (weights[:, None] * x)
        return A, Lambda @ expected, x, precision * weights * t

    def fold_in(self, columns: Array, values: Array) -> tuple[Array, float]:
        """Return the vector and the offset of a row with these values, each as a new one."""
        vector, offset = np.zeros((self.count, self.width)), 0.0
        if self.loss[0] != 0:
            raise ValueError("only with the square loss a row is found from its values alone")
        for chain in range(self.count):
            A, of_prior, x, t = self._regression(chain, columns, values, np.ones(len(columns)))
            mean = np.linalg.solve(A, of_prior + x.T @ t)
            vector[chain, : self.rank], vector[chain, self.rank] = mean[:-1], 1.0
            offset += mean[-1]
        share = self.unit / self.count
        return (share * vector).reshape(-1), self.centre + share * offset

    def contributions(self, row: int, column: int) -> tuple[Array, Array]:
        """Return a row's columns, and what each of its values adds to one of its predictions."""
        _, columns, values, weights = self.lists.by_row.some(np.array([row]))
        columns, weights = columns.astype(np.int64), weights.astype(float) / self.newest
        found = np.zeros(columns.size)
        for chain in range(self.count):
            A, _, x, t = self._regression(chain, columns, values.astype(float), weights)
            wanted = np.append(self.columns.means[column, chain, : self.rank].astype(float), 1.0)
            found += t * (x @ np.linalg.solve(A, wanted))
        return columns, self.unit / self.count * found

    # Leaving --------------------------------------------------------------------------------------

    def rescale(self, factor: float) -> None:
        """Multiply the weights of all entries with a power of two."""
        self.lists.rescale(factor)
        self.solver.entries_changed()
        self.moments[[WEIGHT, SQUARES, NEWEST]] *= factor

    def drop(self, least: float) -> None:
        """Drop entries that weigh less."""
        before = float(self.moments[WEIGHT])
        self.lists.drop(least)
        self._entries_left()
        left = self.lists.total_weight()
        self.moments[[WEIGHT, SQUARES]] *= left / before if before > 0.0 else 0.0
        self.solver.entries_changed()

    def forget(self, row: int) -> None:
        """Be without a row: its columns are solved again, long ones with their next entries.

        What it has added to the sums behind priors leaves, too.
        """
        columns, weights, values = self.lists.forget(row)
        self._entries_left()
        self._without(values, weights)
        for array in (self.rows.means, self.rows.samples, self.latest):
            array[row] = 0
        self.columns.means[:][self.columns.lists.length[: len(self.columns.means)] == 0] = 0
        self.solver.entries_changed()
        columns = np.unique(columns)
        lengths = self.columns.lists.length[columns]
        self.solve(np.zeros(0, np.int64), columns[(lengths > 0) & (lengths < LONG)])
        self._sum_again()

    def _entries_left(self) -> None:
        """Read long lists from the beginning, and count again what is there."""
        for side in (self.rows, self.columns):
            side.place[:], side.used[0] = 0, 0
            side.sums[:], side.read[:] = 0.0, 0
            side.seen[0] = np.count_nonzero(side.lists.length)

    def _without(self, values: Array, weights: Array) -> None:
        """Take values off the mean, the deviation and the range; lists have them without moods."""
        left = self.moments[WEIGHT] - weights.sum()
        kept = self.lists.by_row.some(slice(None))[2].astype(float)
        if not kept.size or not left > 0.0:
            self.moments[:NEWEST] = 0.0, 0.0, 0.0, np.inf, -np.inf
            return
        unit, mean = self.unit, float(self.moments[MEAN])
        self.moments[MEAN] = (self.moments[WEIGHT] * mean - weights @ values) / left
        apart = weights @ ((values - mean) * (values - self.moments[MEAN]))
        self.moments[SQUARES] = max(self.moments[SQUARES] - apart, 1e-9 * self.moments[SQUARES])
        self.moments[WEIGHT] = left
        # An end of the range leaves with them if it was theirs, and nothing near it is left.
        low, high = float(kept.min()), float(kept.max())
        if values.size and values.min() < self.moments[LOW] + unit < low:
            self.moments[LOW] = low
        if values.size and values.max() > self.moments[HIGH] - unit > high:
            self.moments[HIGH] = high

    def _sum_again(self) -> None:
        """Make the sums behind priors and precisions from what is there now."""
        for side, of_rows in ((self.rows, True), (self.columns, False)):
            side.priors[:, 2 * self.width**2 :] = 0.0
            which = np.flatnonzero(side.lists.length)
            noise = np.zeros_like(self.noise)
            call: Any = ChainLists(
                float, begin=0, until=which.size, which=which, of_rows=of_rows, chains=self.struct,
                priors=side.priors, noise=noise,
            )  # fmt: skip
            loops.of("sum_chains", self.lists.dtype)(call.pointer)
            self.noise[:, :2] = noise[:, :2]
            self._renew(side, of_rows)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything as plain arrays."""
        sides = {}
        for name, side, n in zip(
            ("rows", "columns"), (self.rows, self.columns), self.shape, strict=True
        ):
            used = int(side.used[0])
            sides[name] = {
                **{x: getattr(side, x)[:n].copy() for x in ("means", "samples", "place")},
                **{x: getattr(side, x)[:used].copy() for x in ("sums", "read")},
                **{x: getattr(side, x).copy() for x in ("priors", "solved", "seen")},
            }
        return {
            "shape": list(self.shape),
            "dtype": self.lists.dtype.name,
            **{x: getattr(self, x) for x in ("rank", "count", "biased", "clipped", "seed")},
            "fade": float(self.struct.fade),
            "loss": list(self.loss),
            **{x: getattr(self, x).copy() for x in ("noise", "moments", "mood_fit")},
            "latest": self.latest[: self.shape[0]].copy(),
            "sides": sides,
            "lists": self.lists.state_dict(),
        }

    def what_predicts(self) -> State:
        """Return a state that predicts and cannot learn: no values, no samples, no sums."""
        state = self.state_dict()
        for its in state["sides"].values():
            expected = its["priors"][:, : self.width]
            for name in ("samples", "place", "sums", "read", "priors", "solved", "seen"):
                del its[name]
            its["expected"] = expected
        del state["lists"]
        return {**state, "had": what_rows_had(self.lists, values=False)}


def chains_from_state(state: State) -> Chains:
    """Make the chains that ``state_dict`` or ``what_predicts`` described, or say what is wrong."""
    check_state(state, "shape", "dtype", "rank", "count", "biased", "clipped", "seed", "fade")
    check_state(state, "loss", "noise", "moments", "mood_fit", "latest", "sides")
    dtype = check_precision(state["dtype"])
    shape = [check_whole("each side of the chains", n) for n in state["shape"]]
    rank, count = (check_whole(f"the {x} of chains", state[x]) for x in ("rank", "count"))
    if len(shape) != 2 or rank > LARGEST_RANK or count > MOST_CHAINS:
        raise _damaged("their shape, rank or number")
    kind = check_whole("the kind of a loss", state["loss"][0], 0)
    loss = kind, number(state["loss"][1], "the parameter of a loss")
    if kind >= LOSSES or (kind in PARAMETRIC and not loss[1] > 0.0):
        raise _damaged("their loss")
    m1, m2 = shape
    predicts = "lists" not in state
    lists_state = lists_that_had(state, m1, m2, dtype) if predicts else state["lists"]
    lists = EntryLists.from_state(lists_state, (m1, m2), dtype)
    seed = check_whole("the seed of chains", state["seed"], 0)
    if seed >= 2**63 or not 0.0 < number(state["fade"], "what is left of moods") <= 1.0:
        raise _damaged("their seed, or what is left of moods")
    options: Any = {"biased": state["biased"], "clipped": state["clipped"], "seed": seed}
    chains = Chains(lists, rank=rank, count=count, loss=loss, **options)
    sizes = {"noise": (count, NOISE), "mood_fit": (MOOD_FIT,), "latest": (m1, 4)}
    for name, size in sizes.items():
        array = getattr(chains, name)
        array[: size[0]] = _array(state, name, array.dtype, size)
    moments = _array(state, "moments", np.float64, (MOMENTS,), finite=False)
    finite = np.isfinite(moments[[WEIGHT, MEAN, SQUARES, NEWEST]]).all()
    positive = (moments[[WEIGHT, SQUARES]] >= 0.0).all() and moments[NEWEST] > 0.0
    if not finite or not positive or np.isnan(moments).any():
        raise _damaged("moments")
    if (chains.noise < 0.0).any() or not (chains.noise[:, 2] > 0.0).all():
        raise _damaged("noise")
    chains.moments[:] = moments
    chains.struct.fade = number(state["fade"], "what is left of moods")
    check_state(state["sides"], "rows", "columns")
    load = _load_means if predicts else _load_side
    for name, side, n in (("rows", chains.rows, m1), ("columns", chains.columns, m2)):
        load(side, state["sides"][name], n, rank, f"of the {name}")
    return chains


def _load_means(side: Side, state: State, n: int, rank: int, of: str) -> None:
    """Let a side predict as it did."""
    check_state(state, "means", "expected")
    count, width = side.means.shape[1:]
    side.means[:n] = _padded(_array(state, "means", side.means.dtype, (n, count, width)), rank, of)
    side.priors[:, :width] = _array(state, "expected", np.float64, (count, width))


def _load_side(side: Side, state: State, n: int, rank: int, of: str) -> None:
    """Let a side go on as it was."""
    check_state(state, "means", "samples", "place", "sums", "read", "priors", "solved", "seen")
    count, width = side.means.shape[1:]
    for name in ("means", "samples"):
        array = _array(state, name, side.means.dtype, (n, count, width))
        getattr(side, name)[:n] = _padded(array, rank, of)
    read = _array(state, "read", np.int64, (-1, 2))
    place = _array(state, "place", np.int64, (n,))
    long = np.flatnonzero(place)
    if not np.array_equal(np.sort(place[long]), np.arange(1, len(read) + 1)):
        raise _damaged(f"the long lists {of}")
    lengths = side.lists.length[long[np.argsort(place[long])]]
    inside = (read >= 0).all(axis=1) & (read[:, 0] <= lengths) & (read[:, 1] < count)
    if not inside.all():
        raise _damaged(f"the long lists {of}")
    side.place[:n], side.used[0], side.read = place, len(read), read.copy()
    side.sums = _array(state, "sums", np.float64, (len(read), width * width + width)).copy()
    side.priors[:] = _array(state, "priors", np.float64, side.priors.shape)
    side.solved[:] = _array(state, "solved", np.int64, (count,))
    side.seen[:] = _array(state, "seen", np.int64, (1,))
    if (side.solved < 0).any() or not 0 <= side.seen[0] <= n:
        raise _damaged(f"the counters {of}")
    side.told()


def _padded(array: Array, rank: int, of: str) -> Array:
    """Return factors, whose last numbers must be 0: loops read them."""
    if array[:, :, rank + 1 :].any():
        raise _damaged(f"the factors {of}")
    return array


def _array(
    state: State, name: str, dtype: Any, shape: tuple[int, ...], *, finite: bool = True
) -> Array:
    """Return an array of a state, if it is of this type and shape (-1: any) and finite."""
    array = state[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape):
        raise _damaged(f"{name} is no array of {np.dtype(dtype)}")
    if any(want not in (-1, got) for want, got in zip(shape, array.shape, strict=True)):
        raise _damaged(f"{name} has the shape {array.shape}")
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise _damaged(f"{name} has a number that is not finite")
    return array


def _damaged(what: str) -> ValueError:
    return ValueError(f"the chains of a state are damaged: {what}")


def width_of(rank: int) -> int:
    """Return how long a row of factors is, with a bias and with space for what is expected."""
    return -(-(rank + 3) // 8) * 8


def new_priors(rank: int, count: int, width: int) -> Array:
    """Return what is known before any row: factors about 0, with their prior precision."""
    priors = np.zeros((count, 5 * width**2 + 8))
    at = width**2 + np.arange(rank + 1) * (width + 1)
    priors[:, at] = 1.0 / np.append(np.full(rank, FACTOR_VARIANCE), BIAS_VARIANCE)
    return priors
