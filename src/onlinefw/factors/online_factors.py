"""Ratings and clicks, an event at a time: factors, solved for the row and the column of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from .._state import check_state, describe, rebuild
from .._typing import Array, Shape, State
from .._validation import MOST, check_growth, check_magnitude, check_precision, check_whole
from .._whole import Broken, WholeRound, pieces
from ..algorithms.rounds import Round
from ..iterates import LowRank
from ..losses import Loss, Square, loss_code
from ..objectives.base import other_place
from ..objectives.entries_batch import EntriesBatch, check_entries
from ..objectives.half_life import BLOCK, KEPT, Clock, clock_from_state, new_clock
from ..objectives.unobserved import check_unobserved
from ..past.place import Place
from .chains import LARGEST_RANK as RANK_OF_CHAINS
from .chains import MOST_CHAINS, Chains, chains_from_state
from .clicks import LARGEST_RANK as RANK_OF_CLICKS
from .clicks import RIDGE, Clicks, clicks_from_state
from .held_loss import HeldLoss
from .lists import EntryLists
from .on_gpu import solves

__all__ = ["OnlineFactors"]

#: The rank of chains, if none is given.
RANK = 16
#: ``correct`` ends when the certificate is this share of the loss, or after so many sweeps; of
#: clicks it is so many.
ENOUGH, SWEEPS, SWEEPS_OF_CLICKS = 0.3, 5, 3
#: Light entries are dropped when KEPT half-lives have passed, or at least so many observations.
SHORTEST_STRETCH = 1024
NAN = float("nan")
#: Loops count seeds with a sign.
LARGEST_SEED = 2**63 - 1


class OnlineFactors:
    """A low-rank matrix learned from single entries: each is predicted, and then learned exactly.

    It has the face of :class:`~onlinefw.OnlineFrankWolfe`, but takes no Frank-Wolfe steps. When
    entry (i, j) has come, the factors of row i are solved on all that the row has seen, and then
    those of column j; so one pass is enough.

    *Values* are learned by several Bayesian factor models side by side ("chains"), with biases,
    and their mean predicts (:class:`~onlinefw.factors.chains.Chains`). ``theta`` is the low-rank
    part of that mean. Its ``certificate()`` is a bound on how far F_t, the mean loss of all
    entries, is above its minimum over the ball of theta's own weighted trace norm, with biases and
    moods held. Chains predict well because they do not minimise F_t: so the bound is often as large
    as the loss itself, and then says nothing. ``correct()`` finds a theta, apart from what
    predicts, of which it does say something.

    *Clicks* are learned with ``unobserved``: every entry that was not observed counts as a 0 of
    this weight. There is one model then, without biases, whose rows are solved on all columns, and
    columns on all rows, though that takes no longer (:class:`~onlinefw.factors.clicks.Clicks`). An
    entry that is observed again gets more weight, and the mean of its values. Theta nearly
    minimises F_t over its ball; ``correct()`` solves all rows and all columns a few times more.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns at the start; more come as they are seen.
    loss : Loss
        One of :mod:`onlinefw.losses`. Other losses than the square take the parabola at the
        optimum of a row, and have no moods.
    chains : int
        How many models. One event takes time in proportion, and more are more accurate.
    rank : int or "auto"
        Of each chain ("auto" is 16); theta has rank ``chains * rank`` at most. For clicks "auto"
        begins with 14 and becomes about twice the events of a mean row (or column, if that has
        fewer), up to 126; up to 62 where events are learned one by one.
    biases : bool
        Whether rows and columns have biases, and values a mean.
    clip : bool
        Whether predictions are clipped to the range of the values seen.
    unobserved : float
        For clicks: the weight of an entry that was not observed, in units of a new observation.
        F_t is then divided by the weight of all entries. With the square loss only; ``chains``,
        ``biases`` and ``clip`` do not matter then.
    ridge : (float, float) or "auto"
        For clicks: a and b of the penalty a + b n of a row, or column, where n is the weight of
        what was observed and of its zeros. "auto" is 0.1 plus 0.55 times what noise is worth: the
        root of what the row has been observed, plus the root of what columns have on average.
    half_life : float, optional
        After how many observations one weighs half as much; by default nothing fades.
    dtype : dtype
        float32 or float64, of values and factors.
    max_rows, max_columns : int
        How far the matrix may grow.
    random_state : int, optional
        Another number gives other samples; None is always the same.
    device : "cpu", "cuda" or "auto"
        Where rows and columns are solved: in memory, on a GPU (square loss, rank 60 at most), or
        on a GPU if there is one. There batches are the way: a single event is a batch of one. Not
        for clicks.
    workers : int, optional
        Let so many workers of a Ray cluster solve them, each its own (:mod:`onlinefw.distributed`);
        the device is theirs then.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    >>> X = np.column_stack((rng.integers(60, size=4000), rng.integers(40, size=4000)))
    >>> y = truth[X[:, 0], X[:, 1]]
    >>> learner = ofw.OnlineFactors()
    >>> predicted = learner.learn(X, y)  # each one before it is learned
    >>> bool(np.mean((predicted - y)[2000:] ** 2) < 0.1)
    True
    >>> learner.theta.shape
    (60, 40)
    """

    def __init__(
        self,
        shape: Shape = (1, 1),
        loss: Loss = Square(),  # noqa: B008 (immutable)
        *,
        chains: int = 4,
        rank: int | str = "auto",
        biases: bool = True,
        clip: bool = True,
        unobserved: float = 0.0,
        ridge: Any = "auto",
        half_life: float | None = None,
        dtype: DTypeLike = np.float32,
        max_rows: int = MOST,
        max_columns: int = MOST,
        random_state: int | None = None,
        device: str = "cpu",
        workers: int | None = None,
    ) -> None:
        self.loss, self.dtype = loss, check_precision(dtype)
        self.max_rows = check_whole("max_rows", max_rows)
        self.max_columns = check_whole("max_columns", max_columns)
        self.clock = new_clock(half_life)
        m1, m2 = (check_whole("each side of shape", n) for n in shape)
        lists, zero = EntryLists((m1, m2), self.dtype), check_unobserved(unobserved, loss)
        if zero > 0.0:
            its_rank, its_ridge = _rank(rank, RANK_OF_CLICKS), _ridge(ridge)
            self.model: Any = Clicks(lists, its_rank, its_ridge, unobserved=zero)
        else:
            self.model = Chains(
                lists,
                rank=_rank(rank, RANK_OF_CHAINS) or RANK,
                count=_bounded("chains", chains, MOST_CHAINS),
                loss=_known(loss),
                biased=biases,
                clipped=clip,
                seed=0
                if random_state is None
                else _bounded("random_state", random_state, 2**63 - 1, 0),
            )
        self.model.fade(half_life)
        self.t = self.n_observations = 0
        self._changes = 0  # how often anything was learned
        self._can_learn = True
        self._theta: tuple[int, LowRank] | None = None  # that of a number of changes
        self.use_place(device, workers)

    # Where rows and columns are solved ------------------------------------------------------------

    @property
    def device(self) -> str:
        """Where they are solved: "cpu" or "cuda", of this process or of the workers."""
        return self.model.solver.device

    @property
    def workers(self) -> int | None:
        """How many workers solve them; None: this process does."""
        return self.model.solver.workers

    def use_place(self, device: str, workers: int | None) -> None:
        """Let so many workers (None: this process) solve rows and columns, on this device."""
        if isinstance(device, str) and device == "auto" and not solves(self.model):
            device = "cpu"
        place = other_place(Place(self.device, self.workers), device, workers, None)
        if place is not None:
            self.model.use_place(place)

    def close(self) -> None:
        """Give back a GPU or workers; rows and columns are solved in this process from now on."""
        self.use_place("cpu", None)

    # Learning -------------------------------------------------------------------------------------

    def observe(self, X: Any, y: Any, sample_weight: Any = None) -> Round:
        """Learn a batch at once: all is predicted, then its rows and its columns are solved once.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            Row and column of each entry.
        y : array-like
            The values.
        sample_weight : array-like, optional
            How much each counts.
        """
        batch = self.check(X, y, sample_weight)
        with WholeRound(self, self._changes):
            return self.play(batch)

    def learn(self, X: Any, y: Any, sample_weight: Any = None, *, ranks: bool = False) -> Array:
        """Learn entries one after another, each predicted before it is learned.

        An interrupt leaves a whole number of them learned; learning in pieces is learning at once.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`observe`.
        ranks : bool
            For clicks: return, instead of predictions, the place that the column of each had among
            those that had been seen and that the row had not had. 1 is the best; nan is that of a
            column that nobody had seen, or that the row had.
        """
        if ranks and not self.model.zero:
            raise ValueError("ranks are those of clicks: use OnlineFactors(unobserved=0.1)")
        batch = self.check(X, y, sample_weight)
        predicted, places = (np.empty(batch.w.size) for _ in range(2))
        for part in pieces(batch.w.size):
            with WholeRound(self, self._changes):
                its = places[part] if ranks else None
                predicted[part] = self.learn_checked(batch.part(part), ranks=its)
        return places if ranks else predicted

    def check(self, X: Any, y: Any, sample_weight: Any = None) -> EntriesBatch:
        """Return checked observations, or say what is wrong with them; nothing changes."""
        self._needs_past()
        parts: Any = {"limits": None, "loss": self.loss, "dtype": self.dtype, "device": "cpu"}
        batch = check_entries(X, y, sample_weight, **parts, factors=True)
        assert batch.shape is not None
        check_growth(batch.shape, (self.max_rows, self.max_columns))
        if self.clock is not None:  # before weights are scaled they are so large
            check_magnitude(batch.y, 2.0**BLOCK * batch.w, self.dtype, lambda: True)
        return batch

    def play(self, batch: EntriesBatch) -> Round:
        """Learn a checked batch at once."""
        if batch.w.size == 1:
            predicted = self.learn_checked(batch)
        else:
            predicted = self.learn_checked(batch, solving=False)
            self.model.solve_learned(batch.rows, batch.cols)
        self.t += 1
        losses = self.loss.value(predicted, batch.y)
        loss = float(batch.w @ losses / batch.w.sum())
        return Round(self.t, loss, NAN, NAN, 0.0, "hold", 0)

    def learn_checked(
        self, batch: EntriesBatch, *, solving: bool = True, ranks: Array | None = None
    ) -> Array:
        """Learn checked entries one after another; whoever calls it sees that they are whole.

        Without ``solving`` they are predicted and added. ``ranks`` gets the places of clicks.
        """
        rows, cols, y, w, shape = batch
        if self.model.solver.workers is not None:
            self.model.solver.check()
        if shape is None:
            shape = int(rows.max()) + 1, int(cols.max()) + 1
        m1, m2 = self.model.lists.shape
        publish = self.model.grown(*shape) if shape[0] > m1 or shape[1] > m2 else None
        self._changes += 1  # a failure from here on is one half-way
        if publish is not None:
            publish()
        self.n_observations += y.size
        how: dict[str, Any] = {"solving": solving}
        if ranks is not None:
            how["ranks"] = ranks
        if self.clock is None:
            return self.model.learn(rows, cols, y, plain_weights(w), **how)
        predicted = []
        for which in self._stretches(w):
            units = self._age(w[which])
            if ranks is not None:
                how["ranks"] = ranks[which]
            its = rows[which], cols[which], y[which], plain_weights(w[which]), units
            predicted.append(self.model.learn(*its, **how))
        return predicted[0] if len(predicted) == 1 else np.concatenate(predicted)

    # Fading ---------------------------------------------------------------------------------------

    def _stretches(self, w: Array) -> Iterator[slice]:
        """Cut observations where weights are scaled, or light entries dropped."""
        clock, cuts = self.clock, [0, w.size]
        assert clock is not None
        n = clock.n + np.append(0, np.cumsum(w > 0.0))
        blocks = clock.exponent(n) // BLOCK, n // self._stretch(clock)
        first = np.flatnonzero(np.logical_or(*(np.diff(one) > 0 for one in blocks)))
        cuts = np.unique(np.concatenate((cuts, first))).tolist()
        return (slice(*pair) for pair in pairwise(cuts))

    def _stretch(self, clock: Clock) -> float:
        return max(KEPT * clock.half_life, SHORTEST_STRETCH)

    def _age(self, w: Array) -> Array:
        """Let the clock go on by these observations; return what each weighs if its weight is 1.

        Before that all weights are scaled, and light entries leave, if that is due.
        """
        old = self.clock
        assert old is not None
        new, factor, _ = old.after(w)
        if factor != 1.0:
            self.model.rescale(factor)
        if new.n // self._stretch(old) > old.n // self._stretch(old):
            # A thousandth of a new one of the mean weight.
            mean = self.model.lists.total_weight() / max(old.counting, 1.0)
            self.model.drop(2.0**-KEPT * mean)
        before = old._replace(shift=new.shift)
        units = before.after((w > 0.0).astype(float))[2]  # 0 for those that do not count
        self.clock = new
        return np.maximum.accumulate(np.append(before.unit, units))[1:]

    def go_on(self, half_life: float | None) -> None:
        """Forget with another half-life from now on, where there was one; None: nothing more."""
        if self.clock is None:
            raise ValueError("there is no half-life to go on from: OnlineFactors(half_life=...)")
        self.clock = self.clock.going_on(half_life)
        self.model.fade(self.half_life)

    @property
    def half_life(self) -> float | None:
        """The half-life in use; None while nothing is forgotten."""
        clock = self.clock
        return None if clock is None or np.isinf(clock.half_life) else clock.half_life

    # Correcting -----------------------------------------------------------------------------------

    def refine(self) -> Round:
        """Solve all rows and all columns once: a round without new data."""
        with WholeRound(self, self._changes):
            self.sweep()
            self.t += 1
        return Round(self.t, NAN, NAN, NAN, 0.0, "corrective", 0)

    def sweep(self) -> None:
        """Solve all rows, then all columns."""
        self._needs_past()
        self.model.solver.check()
        self._changes += 1
        self.model.sweep()

    def correct(self) -> None:
        """Let theta be one whose certificate is at most 30% of the loss, if that can be found.

        It stands beside what predicts, which stays as it is, until something is learned. Clicks
        are predicted with theta itself: all their rows and columns are solved a few times.
        """
        if self.model.zero:
            for _ in range(SWEEPS_OF_CLICKS):
                with WholeRound(self, self._changes):
                    self.sweep()
            return
        held, theta = self.held_loss(), self.theta
        for _ in range(SWEEPS):
            if held.certificate(theta) <= ENOUGH * held.value(theta):
                break
            theta = held.corrected(theta, 1)
        self._theta = self._changes, theta

    def forget(self, row: int) -> None:
        """Forget a row: its entries leave, and its columns are solved again."""
        self._needs_past()
        number = check_whole("row", row, 0)
        if number >= self.shape[0]:
            raise ValueError(f"row must be one of {self.shape[0]} rows, from 0, got {row}")
        self.model.solver.check()
        with WholeRound(self, self._changes):
            self._changes += 1
            self.model.forget(number)

    def _needs_past(self) -> None:
        if not self._can_learn:
            raise ValueError("this learner was made of what predicts: it has no past to learn with")

    def round_failed(self, error: BaseException, changes: int) -> None:
        """If anything has changed before a round failed, refuse everything from now on."""
        if self._changes != changes:
            self.model = Broken(error)

    # Asking ---------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.model.shape

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return what is predicted for entries, not clipped.

        Who is not in the matrix is -1, but for clicks.
        """
        least = 0 if self.model.zero else -1
        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        for index in (rows, cols):
            if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
                raise ValueError("rows and columns must be whole numbers, one for each entry")
        if rows.size != cols.size:
            raise ValueError(f"there are {rows.size} rows and {cols.size} columns")
        for name, index, size in zip(("row", "column"), (rows, cols), self.shape, strict=True):
            if index.size and not least <= index.min() <= index.max() < size:
                wrong = index[(index < least) | (index >= size)][0]
                raise IndexError(f"there are {size} {name}s, but {name} {wrong} was asked for")
        return self.model.predict(rows, cols)

    @property
    def theta(self) -> LowRank:
        """The low-rank part, or what ``correct`` has found since something was learned."""
        if self._theta is None or self._theta[0] != self._changes:
            left, weights, right = self.model.factors()
            theta = LowRank(self.shape, max(2, weights.size), dtype=self.dtype)
            theta.hold(left, weights, right)
            self._theta = self._changes, theta
        return self._theta[1]

    def held_loss(self) -> HeldLoss:
        """Return F_t as a function of theta, with what is added to it now."""
        if len(self.model.lists) == 0:
            raise ValueError("nothing has been observed yet: call observe or learn first")
        return HeldLoss(self.model, self.loss)

    def value(self) -> float:
        """Return F_t(theta)."""
        return self.held_loss().value(self.theta)

    def certificate(self) -> float:
        """Return a bound on how far F_t(theta) is above its minimum over the ball; see above."""
        return self.held_loss().certificate(self.theta)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything needed to go on, bit for bit."""
        return {**self._progress(), "model": self.model.state_dict()}

    def _progress(self) -> State:
        return {
            "learner": type(self).__name__,
            "loss": describe(self.loss),
            "t": self.t,
            "n_observations": self.n_observations,
            "limits": [self.max_rows, self.max_columns],
            "clock": None if self.clock is None else self.clock.state_dict(),
        }

    def what_predicts(self) -> State:
        """Return a state without the past, whose learner predicts and cannot learn."""
        return {**self._progress(), "model": self.model.what_predicts()}

    @classmethod
    def from_state(
        cls,
        state: State,
        *,
        loss: Loss | None = None,
        device: str = "cpu",
        workers: int | None = None,
    ) -> Self:
        """Make the learner that ``state_dict`` described, or say what is wrong with the state.

        Its rows and columns are solved at this place, wherever they were before.
        """
        check_state(state, "learner", "loss", "t", "n_observations", "limits", "clock", "model")
        if state["learner"] != cls.__name__:
            raise ValueError(f"this is the state of a {state['learner']}, not of {cls.__name__}")
        new = cls.__new__(cls)
        new.loss, its = rebuild(state["loss"], "loss", loss), state["model"]
        if isinstance(its, dict) and "unobserved" in its:
            new.model = clicks_from_state(its)
            check_unobserved(new.model.unobserved, new.loss)
        else:
            new.model = chains_from_state(its)
            if loss_code(new.loss) != new.model.loss:
                raise ValueError(f"the state is not of {new.loss}")
        new.dtype = new.model.lists.dtype
        new.t = check_whole("t of the state", state["t"], 0)
        new.n_observations = check_whole("n_observations", state["n_observations"], 0)
        limits = (check_whole("a limit of the state", n) for n in state["limits"])
        new.max_rows, new.max_columns = limits
        new.clock = clock_from_state(state["clock"])
        new._changes, new._theta = 0, None
        new._can_learn = "had" not in its
        new.use_place(device, workers)
        return new

    def __getstate__(self) -> State:
        return self.state_dict()

    def __setstate__(self, state: State) -> None:
        vars(self).update(vars(type(self).from_state(state)))

    def __repr__(self) -> str:
        return f"OnlineFactors({self.shape}, {self.loss}, n_observations={self.n_observations})"


def _bounded(name: str, value: Any, most: int, least: int = 1) -> int:
    if check_whole(name, value, least) > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")
    return int(value)


def plain_weights(w: Array) -> Array | None:
    """Return weights, or None if all are 1."""
    return None if (w == 1.0).all() else w


def _rank(rank: Any, largest: int) -> int | None:
    """Return a rank, checked; None if it is "auto"."""
    if isinstance(rank, str) and rank == "auto":
        return None
    if check_whole("rank of OnlineFactors", rank, otherwise=' or "auto"') > largest:
        raise ValueError(f"rank of OnlineFactors must be at most {largest}, got {rank}")
    return int(rank)


def _ridge(ridge: Any) -> tuple[float, float, float]:
    """Return a, b and c of a + b n + c noise."""
    if isinstance(ridge, str) and ridge == "auto":
        return RIDGE
    pair = not isinstance(ridge, str) and np.ndim(ridge) == 1 and len(ridge) == 2
    if not pair or not all(isinstance(x, Real) for x in ridge):
        raise ValueError(f'OnlineFactors needs a ridge (a, b) or "auto", got {ridge!r}')
    a, b = (float(x) for x in ridge)
    if not (0.0 < a < inf and 0.0 <= b < inf):
        raise ValueError(f"OnlineFactors needs a ridge (a, b) with a > 0 and b >= 0, got {ridge!r}")
    return a, b, 0.0


def _known(loss: Loss) -> tuple[int, float]:
    """Return the kind and the parameter of a loss that compiled loops know."""
    code = loss_code(loss)
    if code is None:
        raise ValueError(f"OnlineFactors needs a loss of onlinefw.losses, got {loss!r}")
    return code
