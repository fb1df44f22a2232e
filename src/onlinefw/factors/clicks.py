"""Clicks, an event at a time: every entry counts, and those that were not observed are zeros."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from math import inf, log
from typing import Any

import numpy as np

from .._state import check_state, number
from .._threads import share
from .._typing import Array, State
from .._validation import check_precision, check_whole
from ..native import Pointer, Struct, loops, struct
from ..past.place import Place
from .chains import Here
from .lists import EntryLists, Lists, lists_that_had, longer, longer_ones, what_rows_had

__all__ = ["LARGEST_RANK", "RIDGE", "Clicks", "clicks_from_state", "rank_for_clicks"]

#: a, b and c of the penalty a + b n + c noise: noise has the largest part.
RIDGE = (0.1, 0.0, 0.55)
#: The rank is about this times the events of a mean row, or of a mean column if that has fewer:
#: rows with many events can tell more directions apart, and more than they can does harm. It is
#: between these; where events are learned one by one it is less, since an event takes time like the
#: square of the rank.
OF_EVENTS, FIRST, MOST, MOST_ONE_BY_ONE = 2.0, 14, 126, 62
#: Whether the rank is still enough is asked after so many events, and whenever they have doubled.
FIRST_CHECK = 1000
#: No state has a larger one: a regression takes 16 bytes for each number of its square.
LARGEST_RANK = 1000
#: No state has counted more events: they are numbers in loops.
MOST_EVENTS = 2**53
#: As in ``native/clicks.hpp``, where it says what they are.
PANEL, KINDS, WEIGHTED, ARMS, FRESH, LATEST, LATELY, EVERY = 64, 2, 0, 12, 0.7, 16, 1000.0, 8
WEIGHT, NEWEST, LASTING = range(3)
EVENTS, ROW, COLUMN, LAST_ROW, LAST_COLUMN = range(5)
#: One of so many events of a batch is judged, at least; so many judged ones are a season's worth.
JUDGED_OF_BATCHES, SEASON = 8, 5000.0
#: So few events are copied to arrays that loops know already, which takes less time than to check
#: the arrays that they are in.
FEW = 64
#: A loop over rows or columns comes back after about so many multiplications: a few hundredths of a
#: second.
MULTIPLICATIONS = 2**27
#: Of so many entries a taste is found, about.
OF_A_TASTE = 32

SideStruct = struct(
    "ClickSide",
    lists=Struct,
    factors=Pointer("real"),
    gram=Pointer(np.float64),
    number=Pointer(np.int64),
    sums=Pointer(np.float64),
    added=Pointer(np.int64),
    used=Pointer(np.int64),
    capacity=int,
)
ModelStruct = struct(
    "ClickModel",
    rank=int,
    unobserved=float,
    ridge=Pointer(np.float64),
    known=Pointer(np.float64),
    turns=Pointer(np.int64),
    wins=Pointer(np.float64),
    trend=Pointer("real"),
    taken=Pointer(np.uint8),
    rows=Struct,
    columns=Struct,
)
WorkStruct = struct("ClickWork", **{x: Pointer(np.float64) for x in (
    "left", "right", "normal", "scaled", "solution", "current")})  # fmt: skip
Events = struct(
    "ClickEvents",
    first=int,
    n=int,
    solving=int,
    ranking=int,
    rows=Pointer(np.int64, read=True),
    cols=Pointer(np.int64, read=True),
    y=Pointer(np.float64, read=True, optional=True),
    w=Pointer(np.float64, read=True, optional=True),
    units=Pointer(np.float64, read=True, optional=True),
    out=Pointer(np.float64, optional=True),
    ranks=Pointer(np.float64, optional=True),
    model=Struct,
    work=Struct,
)
Some = struct(
    "ClickSome",
    first=int,
    n=int,
    which=Pointer(np.int64, read=True),
    of_rows=int,
    anew=int,
    start=int,
    sign=float,
    out=Pointer(np.float64, optional=True),
    model=Struct,
    work=Struct,
)
History = struct(
    "ClickHistory",
    n=int,
    columns=Pointer(np.uint32, optional=True),
    weights=Pointer(np.float64, optional=True),
    out=Pointer(np.float64),
    model=Struct,
    work=Struct,
)


def rank_for_clicks(events: float, rows: int, columns: int, *, one_by_one: bool = False) -> int:
    """Return the rank of a model of clicks that so many events are the beginning of, in tiles.

    Examples
    --------
    >>> from onlinefw.factors.clicks import rank_for_clicks
    >>> [rank_for_clicks(n, 6_000, 3_500) for n in (10_000, 100_000, 300_000, 1e9)]
    [14, 38, 102, 126]
    """
    rank = _width(int(OF_EVENTS * events / max(rows, columns, 1))) - 2
    return min(max(rank, FIRST), MOST_ONE_BY_ONE if one_by_one else MOST)


def _width(rank: int) -> int:
    """Return how long a row of so many factors is: whole tiles, two columns to spare."""
    return -(-(rank + 2) // 8) * 8


class Side:
    """All rows, or all columns: their factors, and the sums of long lists.

    Parameters
    ----------
    lists : Lists
        Their entries.
    rank : int
        How many factors each has.

    Attributes
    ----------
    factors : ndarray of shape (n, width)
        0 beyond the rank.
    gram : ndarray of shape (width, width)
        The sum of f f' over the factors f of all, on and above the diagonal.
    number : ndarray of shape (n,)
        Which sums are those of a list, counted from 1; 0 if it is not long.
    sums : ndarray of shape (capacity, 2, 2, width, width)
        Equations of long lists: those in use, and those being made anew; weighted, and not.
    added : ndarray of shape (capacity, 2)
        How many entries of the list are in each.
    used : ndarray of shape (1,)
        How many lists have sums.
    """

    gram: Array
    sums: Array

    def __init__(self, lists: Lists, rank: int) -> None:
        self.lists = lists
        self.factors = np.zeros((0, 0), lists.dtype)
        self.number, self.used = np.zeros(0, np.int64), np.zeros(1, np.int64)
        self.added = np.zeros((0, 2), np.int64)
        self.struct: Any = SideStruct(lists.dtype, lists=lists.struct, used=self.used)
        self.hold(**self.of_rank(0, rank))

    def hold(self, **arrays: Array) -> None:
        """Have these arrays, and let compiled loops know them."""
        vars(self).update(arrays)
        named = ("factors", "gram", "number", "sums", "added")
        self.struct.set(**{x: getattr(self, x) for x in named}, capacity=len(self.added))

    def of_rank(self, had: int, rank: int) -> dict[str, Array]:
        """Return what of it has more rank: factors, of which the new ones are 0, and empty sums."""
        width, capacity = _width(rank), len(self.added)
        factors: Array = np.zeros((len(self.factors), width), self.factors.dtype)
        factors[:, :had] = self.factors[:, :had]
        gram, sums = np.zeros((width, width)), np.zeros((capacity, 2, KINDS, width, width))
        return {"factors": factors, "gram": gram, "sums": sums, "added": np.zeros_like(self.added)}

    def with_space(self, n: int) -> dict[str, Array]:
        """Return the arrays that have to be longer for n lists; nothing changes."""
        return longer_ones(self, ("factors", "number"), n)

    @property
    def is_full(self) -> bool:
        """Whether there is no memory for the sums of one more list."""
        return int(self.used[0]) == len(self.added)

    def make_space(self) -> None:
        """Get memory for more sums."""
        n = len(self.added) + len(self.added) // 2 + 4
        self.hold(sums=longer(self.sums, n), added=longer(self.added, n))

    def clear_sums(self, which: Array | slice) -> None:
        """Let the sums of some lists be made anew when these are solved: entries have left them."""
        at = self.number[which]
        at = at[at > 0] - 1
        self.sums[at], self.added[at] = 0.0, 0

    def state_dict(self, n: int, rank: int, *, with_sums: bool) -> State:
        """Return what is of the first n lists."""
        used, number = int(self.used[0]) if with_sums else 0, self.number[:n].copy()
        return {
            "factors": self.factors[:n, :rank].copy(),
            "gram": self.gram.copy(),
            "number": number if with_sums else np.zeros_like(number),
            "sums": self.sums[:used].copy(),
            "added": self.added[:used].copy(),
        }

    def load_state(self, state: State, n: int, rank: int) -> None:
        """Take over what ``state_dict`` returned, or say what is wrong with it."""
        check_state(state, "factors", "gram", "number", "sums", "added")
        width = _width(rank)
        factors = _checked(state, "factors", self.factors.dtype, (n, rank))
        added = _checked(state, "added", np.int64, (-1, 2))
        number = _checked(state, "number", np.int64, (n,))
        gram = _checked(state, "gram", np.float64, (width, width))
        sums = _checked(state, "sums", np.float64, (len(added), 2, KINDS, width, width))
        long = np.flatnonzero(number)
        if (added < 0).any() or not np.array_equal(
            np.sort(number[long]), np.arange(1, len(added) + 1)
        ):
            raise _damaged("the sums of long lists")
        if (added[number[long] - 1] > self.lists.length[long, None]).any():
            raise _damaged("sums of more than their lists")
        self.factors[:n, :rank], self.number[:n], self.used[0] = factors, number, len(added)
        self.hold(gram=gram.copy(), sums=sums.copy(), added=added.copy())


class Work:
    """Memory for one regression, which loops on several threads have each."""

    def __init__(self, rank: int) -> None:
        self.struct: Any = WorkStruct()
        self.hold(rank)

    def hold(self, rank: int) -> None:
        """Have memory for this rank."""
        width = _width(rank)
        sizes = {"normal": width**2, "scaled": width**2, "solution": width, "current": width}
        sizes |= {"left": PANEL * width, "right": PANEL * width}
        self.struct.set(**{name: np.zeros(n) for name, n in sizes.items()})


class Clicks:
    """Factors of rows and columns, solved again with each event on all entries of the matrix.

    An entry that was not observed is a 0 of weight ``unobserved``. An event is learned in a
    compiled loop: predicted, added to the lists of its row and its column (or to its weight, if it
    is there), and then the factors of these two are the solutions of ridge regressions on all
    columns, and on all rows. That takes no longer than on those observed: the products of all rows'
    factors with themselves, and of all columns', are kept up to date.

    Theta is the product of the factors. What is best to recommend now is a question of its own:
    ``scores`` are those of a row's ``tastes`` plus ``trend``, what has been frequent of late. So a
    new row gets what is popular now. How much the latest entries count in a taste, and what the
    trend is worth, is learned on the way: what would have ranked events best is in use.

    Indices are trusted: whoever calls has checked them. Loops of events run to the end: whoever
    wants to be interrupted gives them in pieces.

    Parameters
    ----------
    lists : EntryLists
        All entries by row and by column, empty so far, to which ``learn`` adds.
    rank : int or None
        How many factors; None begins with 14, and gets more as events come.
    ridge : (float, float, float)
        a, b and c of the penalty a + b n + c noise of a row, or column, of weight n.
    unobserved : float
        The weight of an entry that was not observed, in units of a new observation.

    Attributes
    ----------
    rows, columns : Side
        Their factors.
    wins : ndarray
        How often each arm has won: a share of the latest entries, and a worth of the trend.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.factors.clicks import Clicks
    >>> from onlinefw.factors.lists import EntryLists
    >>> clicks = Clicks(EntryLists((3, 3), float), 2)
    >>> rows, columns = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0])
    >>> _ = clicks.learn(rows, columns, np.ones(5))
    >>> bool(np.diff(clicks.predict(np.array([2, 2]), np.array([1, 2])))[0] < 0.0)  # 1, not 2
    True
    """

    #: Rows and columns are solved in this process.
    solver = Here()

    def use_place(self, place: Place) -> None:
        """Refuse a place: there is no other."""
        raise ValueError("clicks are learned in this process: use device='cpu' without workers")

    def __init__(
        self,
        lists: EntryLists,
        rank: int | None = None,
        ridge: tuple[float, float, float] = RIDGE,
        *,
        unobserved: float = 0.1,
    ) -> None:
        lists.weigh()
        self.lists, self.dtype, self.shape = lists, lists.dtype, (0, 0)
        self.rank = FIRST if rank is None else rank
        self._check_at = FIRST_CHECK if rank is None else None
        self.ridge, self.unobserved = np.array(ridge, float), float(unobserved)
        self.known, self.turns = np.array([0.0, 1.0, inf]), np.array([0, -1, -1, -1, -1])
        self.wins = np.zeros(ARMS)
        self._trend, self._taken = np.zeros(0, self.dtype), np.zeros(0, np.uint8)
        self.rows, self.columns = (Side(x, self.rank) for x in (lists.by_row, lists.by_column))
        self._sides = self.rows, self.columns
        self._model: Any = ModelStruct(
            self.dtype, unobserved=self.unobserved, ridge=self.ridge, known=self.known,
            turns=self.turns, wins=self.wins, rows=self.rows.struct, columns=self.columns.struct,
        )  # fmt: skip
        self._work, self._spare = Work(self.rank), list[Work]()
        self._tell()
        inbox = {name: np.zeros(FEW) for name in ("y", "w", "units", "out", "ranks")}
        inbox |= {name: np.zeros(FEW, np.int64) for name in ("rows", "cols")}
        self._few = self._call(**inbox)
        self._learn = loops.of("learn_clicks", self.dtype)
        self.grown(*lists.shape)()

    def _tell(self) -> None:
        """Let compiled loops know what is not of a side."""
        self._model.set(rank=self.rank, trend=self._trend, taken=self._taken)

    def _call(self, **fields: Any) -> Any:
        return Events(self.dtype, **fields, model=self._model, work=self._work.struct)

    @property
    def n_observations(self) -> int:
        """How many events were learned."""
        return int(self.turns[EVENTS])

    @property
    def newest(self) -> float:
        """What a new observation weighs."""
        return float(self.known[NEWEST])

    @property
    def zero(self) -> float:
        """What an entry weighs that was not observed."""
        return self.unobserved * self.newest

    # Growing --------------------------------------------------------------------------------------

    def grown(self, m1: int, m2: int) -> Callable[[], None]:
        """Get memory for m1 rows and m2 columns at least; return what makes use of it."""
        m1, m2 = max(m1, self.shape[0]), max(m2, self.shape[1])
        sides = (self.lists.by_row, self.rows, m1), (self.lists.by_column, self.columns, m2)
        arrays = [(its.with_space(n), side.with_space(n)) for its, side, n in sides]
        own = longer_ones(self, ("_trend", "_taken"), m2)

        def publish() -> None:
            for (its, side, _), (of_lists, of_side) in zip(sides, arrays, strict=True):
                its.publish(of_lists)
                side.hold(**of_side)
            vars(self).update(own)
            self._tell()
            self.lists.shape = self.shape = m1, m2

        return publish

    def _make_space(self) -> None:
        """Give more memory to the sums of long lists, if they have none left, else to the lists."""
        full = [side for side in self._sides if side.is_full]
        for side in full:
            side.make_space()
        if not full:
            self.lists.make_space()

    def _check_rank(self, one_by_one: bool) -> None:
        """Have more rank, if it is time to ask and there are enough events for it."""
        if self._check_at is None or int(self.turns[EVENTS]) < self._check_at:
            return
        while self._check_at <= self.n_observations:
            self._check_at *= 2
        known = int(self.turns[LAST_ROW]) + 1, int(self.turns[LAST_COLUMN]) + 1
        had, rank = self.rank, rank_for_clicks(self.n_observations, *known, one_by_one=one_by_one)
        if rank <= had:
            return
        wider = [side.of_rank(had, rank) for side in self._sides]
        self._work.hold(rank)
        self.rank, self._spare = rank, []
        for side, arrays in zip(self._sides, wider, strict=True):
            side.hold(**arrays)
        self._tell()
        # Theta is the same, as the new factors of rows are 0; those of columns are what they would
        # have been from the start.
        which = np.flatnonzero(self.columns.lists.length)
        self._over("start_click_factors", self.columns, which, start=had)
        self._sum_products()

    def _sum_products(self) -> None:
        """Compute the products of all factors from the start."""
        for side, n in zip(self._sides, self.shape, strict=True):
            side.gram[:] = 0.0
            self._over("add_click_products", side, np.arange(n), sign=1.0)

    def _sum_up(self) -> None:
        """Compute the products of all factors, and the weight of all entries, from the start."""
        self._sum_products()
        self.known[WEIGHT] = self.lists.total_weight()

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
        """Learn events one after another; return what was predicted for each before.

        Parameters
        ----------
        rows, cols : ndarray of int64
            Where they are in the matrix.
        y, w : ndarray of float
            Their values and weights; without w all weigh 1.
        units : ndarray, optional
            What an observation of weight 1 weighs when each comes, where older ones fade.
        solving : bool
            Without it all are predicted with what was learned before the first, and added to the
            lists, and no regression is solved (see :meth:`solve_learned`).
        ranks : ndarray, optional
            Gets the place that each column had then among those that were known and that the row
            had not had: 1 is the best, nan for one that was new, or that the row has had.
        """
        n, came = len(y), int(self.turns[EVENTS])
        if units is not None:
            w = units if w is None else units * w
        predicted = None
        if not solving:
            predicted = self.predict(rows, cols)
            self._judge(rows, cols)
        if n > FEW:
            call = self._call(rows=rows, cols=cols, y=y, w=w, units=units, ranks=ranks)
            if predicted is None:
                predicted = np.empty(n)
                call.set(out=predicted)
        else:
            call, inbox = self._few, self._few.kept
            inbox["rows"][:n], inbox["cols"][:n], inbox["y"][:n] = rows, cols, y
            inbox["w"][:n] = 1.0 if w is None else w
            inbox["units"][:n] = self.known[NEWEST] if units is None else units
        call.solving, call.ranking, call.first = solving, ranks is not None, 0
        while True:  # the loop stops before the end to have more memory, or rank
            stop = n
            if solving and self._check_at is not None:
                stop = min(n, self._check_at - came)
            call.n = stop
            call.first = self._learn(byref(call))
            if call.first < stop:
                self._make_space()
                continue
            self._check_rank(solving)
            if stop == n:
                break
        if n <= FEW and ranks is not None:
            ranks[:] = inbox["ranks"][:n]
        return inbox["out"][:n].copy() if predicted is None else predicted

    def solve_learned(self, rows: Array, columns: Array) -> None:
        """Solve the rows and columns of events that were added, and those whose turn came."""
        of_rows, of_columns = self._in_turn(len(rows))
        self.solve(np.union1d(rows, of_rows), np.union1d(columns, of_columns))

    def _judge(self, rows: Array, cols: Array) -> None:
        """Let a batch say what counts in a taste: some of its events, with what is known before.

        Their rows are solved first. The latest entries are, too, when somebody asks for a taste.
        """
        n = len(rows)
        some = slice(None, None, max(JUDGED_OF_BATCHES, int(n / SEASON)))
        rows, cols = np.ascontiguousarray(rows[some]), np.ascontiguousarray(cols[some])
        self.solve(np.unique(rows), cols[:0])
        call = self._call(rows=rows, cols=cols, n=rows.size)
        loops.of("judge_clicks", self.dtype)(call.pointer)

    def _in_turn(self, events: int) -> tuple[Array, Array]:
        """Return the rows and columns whose turn came with the last so many events."""
        came, both = self.n_observations, []
        at = np.arange((came - events) // EVERY + 1, came // EVERY + 1) * EVERY
        counting = np.minimum(at, self.known[LASTING]).astype(np.int64)
        for turn, last in ((ROW, LAST_ROW), (COLUMN, LAST_COLUMN)):
            n = int(self.turns[last]) + 1
            steps = int(np.clip(-(-2 * EVERY * n // counting), 1, 2 * EVERY).sum())
            both.append((self.turns[turn] + 1 + np.arange(min(steps, n))) % max(n, 1))
            if steps:
                self.turns[turn] = (self.turns[turn] + steps) % n
        return both[0], both[1]

    def solve(self, rows: Array, columns: Array, *, anew: bool = False) -> None:
        """Solve the regressions of these rows, then of these columns, on all entries.

        ``anew`` makes the running sums of long lists from the beginning.
        """
        for side, which in zip(self._sides, (rows, columns), strict=True):
            if not which.size:
                continue
            which, width = np.ascontiguousarray(which, np.int64), _width(self.rank)
            self._over("add_click_products", side, which, sign=-1.0)
            work = (side.lists.length[which] + width) * width**2
            self._over("solve_clicks", side, which, work, anew=anew)
            self._over("add_click_products", side, which, sign=1.0)

    def sweep(self) -> None:
        """Solve the regressions of all rows, then of all columns."""
        self.solve(np.arange(self.shape[0]), np.arange(self.shape[1]), anew=True)
        self._sum_up()

    def _over(
        self, name: str, side: Side, which: Array, work: Array | None = None, **fields: Any
    ) -> None:
        """Run a loop over some rows or columns, in blocks that take about as long.

        ``work`` is how many multiplications each takes. Without it they come one after another,
        else threads share them.
        """
        cuts = np.cumsum(np.full(which.size, _width(self.rank) ** 2) if work is None else work)
        parts = max(1, int(cuts[-1]) // MULTIPLICATIONS) if which.size else 0
        inner = np.searchsorted(cuts, np.arange(1, parts) * MULTIPLICATIONS)
        blocks = np.concatenate(([0], inner, [which.size])).astype(np.int64)
        of_rows, function = side is self.rows, loops.of(name, self.dtype)

        def loop(first: int, last: int, blocks: Array) -> None:
            try:
                mine = self._spare.pop()
            except IndexError:
                mine = Work(self.rank)
            call: Any = Some(
                self.dtype, which=which, of_rows=of_rows, **fields, model=self._model,
                work=mine.struct,
            )  # fmt: skip
            for k in range(first, last):
                call.first, call.n = int(blocks[k]), int(blocks[k + 1])
                function(call.pointer)
            self._spare.append(mine)

        if work is None:
            loop(0, len(blocks) - 1, blocks)
        else:
            share(loop, blocks)

    # Asking ---------------------------------------------------------------------------------------

    def factors(self) -> tuple[Array, Array, Array]:
        """Return both factors of theta, and the weights of their first columns."""
        m1, m2 = self.shape
        return self.rows.factors[:m1].copy(), np.ones(self.rank), self.columns.factors[:m2].copy()

    def offsets(self) -> tuple[Array, Array]:
        """Return what is added to theta in rows and in columns: nothing."""
        return np.zeros(self.shape[0]), np.zeros(self.shape[1])

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return theta at entries of the matrix."""
        rows, cols = (np.ascontiguousarray(x, np.int64) for x in (rows, cols))
        out = np.empty(rows.size)
        call = self._call(rows=rows, cols=cols, out=out, n=rows.size)
        loops.of("predict_clicks", self.dtype)(call.pointer)
        return out

    def penalties(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """Return the ridges of rows and of columns, which have these weights."""
        n_rows, n_columns = self.turns[[LAST_ROW, LAST_COLUMN]] + 1
        return self._penalty(rows, n_columns), self._penalty(columns, n_rows)

    def _penalty(self, n: Any, n_other: Any) -> Any:
        """Return a + b n + c noise of rows, or columns, of weight n, as compiled loops do."""
        (a, b, c), one = self.ridge, self.newest
        noise = np.sqrt(one * n) + np.sqrt(one * self.known[WEIGHT] / max(n_other, 1))
        return a * one + b * (n + self.unobserved * one * n_other) + c * noise

    def tastes(self, rows: Array) -> Array:
        """Return what rows like, as factors; 0 for one without entries."""
        rows = np.ascontiguousarray(rows, np.int64)
        out, width = np.zeros((rows.size, self.rank)), _width(self.rank)
        work = np.full(rows.size, OF_A_TASTE * width**2)
        self._over("click_tastes", self.rows, rows, work, out=out)
        return out

    def taste_of(self, columns: Array, weights: Array | None = None) -> Array:
        """Return what somebody likes who has had these columns, the latest last."""
        columns, out = np.ascontiguousarray(columns, np.uint32), np.zeros(self.rank)
        weights = self._weights(columns.size, weights)
        call: Any = History(
            self.dtype, n=columns.size, columns=columns, weights=weights, out=out,
            model=self._model, work=self._work.struct,
        )  # fmt: skip
        loops.of("click_taste_of", self.dtype)(call.pointer)
        return out

    def taste_parts(self, columns: Array, weights: Array | None = None) -> Array:
        """Return what each of these columns adds to ``taste_of`` all of them.

        A taste is A^-1 times the sum of c q over the columns, so each has a part of its own.
        """
        rank, n = self.rank, len(columns)
        weights = self._weights(n, weights)
        factors = self.columns.factors[columns, :rank].astype(float)
        upper, zero = self.columns.gram[:rank, :rank], self.unobserved * self.newest
        gram = np.triu(upper) + np.triu(upper, 1).T
        share, parts = self.arm[0], np.zeros((n, rank))
        for part, fresh, latest in ((share, FRESH, LATEST), (1.0 - share, 1.0, n)):
            at = slice(max(n - latest, 0), n)
            c = weights[at] * fresh ** np.arange(n - at.start)[::-1]
            beyond = np.maximum(c - zero, 0.0)[:, None]
            normal = zero * gram + factors[at].T @ (beyond * factors[at])
            normal += self._penalty(c.sum(), self.turns[LAST_COLUMN] + 1) * np.eye(rank)
            parts[at] += part * np.linalg.solve(normal, (c[:, None] * factors[at]).T).T
        return parts

    def _weights(self, n: int, weights: Array | None) -> Array:
        given: Array = np.ones(n) if weights is None else np.asarray(weights, float)
        return self.newest * given

    def _arm(self) -> tuple[float, float, float]:
        """Return the arm in use, and what counts are multiplied with to be shares."""
        out = np.zeros(3)
        call: Any = History(self.dtype, out=out, model=self._model)
        loops.of("click_arm", self.dtype)(call.pointer)
        share, worth, of_counts = out.tolist()
        return share, worth, of_counts

    @property
    def arm(self) -> tuple[float, float]:
        """The share of the latest entries in a taste, and what the trend is worth, as learned."""
        return self._arm()[:2]

    def trend(self) -> Array:
        """Return what columns get for having been frequent of late."""
        _, worth, of_counts = self._arm()
        return worth * of_counts * self._trend[: self.shape[1]].astype(float)

    def scores(self, rows: Array) -> Array:
        """Return the scores of all columns for some rows; the largest is the best."""
        columns = self.columns.factors[: self.shape[1], : self.rank]
        return self.tastes(rows) @ columns.T.astype(float) + self.trend()

    # Leaving --------------------------------------------------------------------------------------

    def fade(self, half_life: float | None) -> None:
        """Let everything be solved anew while about a half-life of events comes.

        If another one was in use before, the events that it let count are those that came.
        """
        self.turns[EVENTS] = int(min(self.turns[EVENTS], self.known[LASTING]))
        self.known[LASTING] = inf if half_life is None else max(half_life / log(2.0), 2.0)

    def rescale(self, factor: float) -> None:
        """Multiply everything that is weighted with a power of two."""
        self.lists.rescale(factor)
        self.known[[WEIGHT, NEWEST]] *= factor
        for side in self._sides:
            side.sums[: int(side.used[0]), :, WEIGHTED] *= factor

    def drop(self, least: float) -> None:
        """Drop entries that weigh less: rows and columns that have no others are as new."""
        self.lists.drop(least)
        everything = slice(self.shape[0]), slice(self.shape[1])
        for side, which in zip(self._sides, everything, strict=True):
            side.clear_sums(which)
        self._clear_empty(*everything)
        self._sum_up()

    def forget(self, row: int) -> None:
        """Be without a row: its entries leave, and the columns that it had are solved again.

        Long ones, of which it was a thousandth, are solved with their next entry, or in turn.
        """
        columns, weights, _ = self.lists.forget(row)
        different, counts = np.unique(columns), np.zeros(self.shape[1])
        self.rows.clear_sums(np.array([row]))
        self.columns.clear_sums(different)
        # At least what the row has added to the trend, had it come just now.
        np.add.at(counts, columns, np.maximum(weights / self.newest, 1.0))
        newest, trend = 1.0 / LATELY / self._arm()[2], self._trend[: counts.size]
        trend[:] = np.maximum(trend - newest * counts, 0.0)
        self._clear_empty(slice(row, row + 1), slice(self.shape[1]))
        self._sum_up()
        short = (self.columns.lists.length[different] > 0) & (self.columns.number[different] == 0)
        self.solve(different[:0], different[short])

    def _clear_empty(self, rows: slice, columns: slice) -> None:
        """Let those rows and columns that have no entries be as if they never had."""
        for side, which in ((self.rows, rows), (self.columns, columns)):
            empty = side.lists.length[which] == 0
            side.factors[which][empty] = 0.0
        self._trend[columns][empty] = 0.0

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything as plain arrays."""
        return {**self._state(with_sums=True), "lists": self.lists.state_dict()}

    def what_predicts(self) -> State:
        """Return a state that recommends and cannot learn: no sums, and what rows have had.

        Sums of long lists are made again when these are solved.
        """
        return {**self._state(with_sums=False), "had": what_rows_had(self.lists)}

    def _state(self, *, with_sums: bool) -> State:
        state: State = {
            "shape": list(self.shape),
            "dtype": self.dtype.name,
            "rank": self.rank,
            "check_at": self._check_at,
            "unobserved": self.unobserved,
            "lasting": None if self.known[LASTING] == inf else float(self.known[LASTING]),
            "known": self.known[:LASTING].copy(),
            "trend": self._trend[: self.shape[1]].copy(),
        }
        state |= {name: getattr(self, name).copy() for name in ("ridge", "turns", "wins")}
        for name, side, n in zip(("rows", "columns"), self._sides, self.shape, strict=True):
            state[name] = side.state_dict(n, self.rank, with_sums=with_sums)
        return state


def clicks_from_state(state: State) -> Clicks:
    """Make the model that ``state_dict`` or ``what_predicts`` described; refuse a damaged one."""
    check_state(state, "shape", "dtype", "rank", "check_at", "unobserved", "lasting", "trend")
    check_state(state, "ridge", "known", "turns", "wins", "rows", "columns")
    dtype = check_precision(state["dtype"])
    shape, rank = state["shape"], check_whole("the rank of the clicks", state["rank"])
    if not isinstance(shape, list) or len(shape) != 2 or rank > LARGEST_RANK:
        raise _damaged(f"their shape is {shape!r:.40}, and their rank {rank}")
    m1, m2 = (check_whole("each side of the clicks", n) for n in shape)
    unobserved = number(state["unobserved"], "the weight of entries that were not observed")
    lasting = state["lasting"]
    lasting = inf if lasting is None else number(lasting, "how long clicks last")
    ridge = _checked(state, "ridge", np.float64, (3,))
    known, turns = (_checked(state, *x) for x in (
        ("known", np.float64, (2,)), ("turns", np.int64, (5,))))  # fmt: skip
    positive = unobserved > 0.0 and lasting >= 1.0 and ridge[0] > 0.0 and known[NEWEST] > 0.0
    if not positive or (ridge < 0.0).any() or known[WEIGHT] < 0.0:
        raise _damaged("a weight or a ridge is not positive")
    last = np.append(np.array(shape) - 1, turns[[LAST_ROW, LAST_COLUMN]])
    of_last = turns[[LAST_ROW, LAST_COLUMN, ROW, COLUMN]]
    if (turns < -1).any() or (of_last > last).any() or not 0 <= turns[EVENTS] < MOST_EVENTS:
        raise _damaged("turns")
    trend = _checked(state, "trend", dtype, (m2,))
    of_lists = state["lists"] if "lists" in state else lists_that_had(state, m1, m2, dtype)
    lists = EntryLists.from_state(of_lists, (m1, m2), dtype)
    for one, at in ((lists.by_row, LAST_ROW), (lists.by_column, LAST_COLUMN)):
        if turns[at] < np.flatnonzero(one.length).max(initial=-1):
            raise _damaged("turns")
    clicks = Clicks(lists, rank, tuple(ridge), unobserved=unobserved)
    clicks.known[:], clicks.turns[:], clicks._trend[:m2] = (*known, lasting), turns, trend
    clicks.wins[:] = _checked(state, "wins", np.float64, (ARMS,))
    for name, side, n in zip(("rows", "columns"), clicks._sides, shape, strict=True):
        side.load_state(state[name], n, rank)
    if state["check_at"] is not None:
        least = clicks.n_observations + 1
        clicks._check_at = check_whole("check_at of the clicks", state["check_at"], least)
    return clicks


def _checked(state: State, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Return an array of a state, if it is of this type and shape (-1: any) and finite."""
    array = state[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape):
        raise _damaged(f"{name} is no array of {np.dtype(dtype)}")
    fits = all(want in (-1, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or not np.isfinite(array).all():
        raise _damaged(f"{name} has shape {array.shape}, or a number that is not finite")
    return array


def _damaged(what: str) -> ValueError:
    return ValueError(f"the clicks of a state are damaged: {what}")
