"""Ratings, an event at a time: factors, solved exactly for the row and the column of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from .._state import check_state, describe, rebuild
from .._typing import Array, Shape, State
from .._validation import MOST, check_growth, check_precision, check_whole
from .._whole import Broken, WholeRound, pieces
from ..algorithms.rounds import Round
from ..iterates import LowRank
from ..losses import Loss, Square
from ..native.losses import loss_code
from ..objectives.entries_batch import EntriesBatch, check_entries
from ..objectives.half_life import BLOCK, KEPT, Clock, clock_from_state, new_clock
from .chains import LARGEST_RANK, Chains, chains_from_state
from .held_loss import HeldLoss
from .lists import EntryLists

__all__ = ["OnlineFactors"]

#: ``correct`` ends when the certificate is this share of the loss, or after so many sweeps.
ENOUGH, SWEEPS = 0.3, 5
#: Light entries are dropped when KEPT half-lives have passed, or at least so many observations.
SHORTEST_STRETCH = 1024
NAN = float("nan")


class OnlineFactors:
    """A low-rank matrix learned from single entries: each is predicted, and then learned exactly.

    It has the face of :class:`~onlinefw.OnlineFrankWolfe`, but takes no Frank-Wolfe steps. Several
    Bayesian factor models ("chains") learn side by side, and their mean predicts. When entry
    (i, j) has come, the bias and the factors of row i are solved on all that the row has seen, and
    then those of column j; so one pass is enough (:class:`~onlinefw.factors.chains.Chains`).

    ``theta`` is the low-rank part of that mean. Its ``certificate()`` is a bound on how far F_t,
    the mean loss of all entries, is above its minimum over the ball of theta's own weighted trace
    norm, with biases and moods held. Chains predict well because they do not minimise F_t: so the bound
    is often as large as the loss itself, and then says nothing. ``correct()`` finds a theta, apart
    from what predicts, of which it does say something.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns at the start; more come as they are seen.
    loss : Loss
        One of :mod:`onlinefw.losses`. Other losses than the square take the parabola at the
        optimum of a row, and have no moods.
    chains : int
        How many models. One event takes time in proportion, and more are more accurate.
    rank : int
        Of each model; theta has rank ``chains * rank`` at most.
    biases : bool
        Whether rows and columns have biases, and values a mean.
    clip : bool
        Whether predictions are clipped to the range of the values seen.
    half_life : float, optional
        After how many observations one weighs half as much; by default nothing fades.
    dtype : dtype
        float32 or float64, of values and factors.
    max_rows, max_columns : int
        How far the matrix may grow.
    random_state : int, optional
        Another number gives other samples; None is always the same.

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
        rank: int = 16,
        biases: bool = True,
        clip: bool = True,
        half_life: float | None = None,
        dtype: DTypeLike = np.float32,
        max_rows: int = MOST,
        max_columns: int = MOST,
        random_state: int | None = None,
    ) -> None:
        code = loss_code(loss)
        if code is None:
            raise ValueError(f"OnlineFactors needs a loss of onlinefw.losses, got {loss!r}")
        if check_whole("rank of OnlineFactors", rank) > LARGEST_RANK:
            raise ValueError(f"rank of OnlineFactors must be at most {LARGEST_RANK}, got {rank}")
        self.loss, self.dtype = loss, check_precision(dtype)
        self.max_rows = check_whole("max_rows", max_rows)
        self.max_columns = check_whole("max_columns", max_columns)
        self.clock = new_clock(half_life)
        m1, m2 = (check_whole("each side of shape", n) for n in shape)
        self.model = Chains(
            EntryLists((m1, m2), self.dtype),
            rank=rank,
            count=check_whole("chains", chains),
            loss=code,
            biased=biases,
            clipped=clip,
            seed=0 if random_state is None else check_whole("random_state", random_state, 0),
        )
        self._note_half_life()
        self.t = self.n_observations = 0
        self._changes = 0  # how often anything was learned
        self._theta: tuple[int, LowRank] | None = None  # that of a number of changes

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

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Learn entries one after another, each predicted before it is learned.

        An interrupt leaves a whole number of them learned; learning in pieces is learning at once.
        Parameters are those of :meth:`observe`.
        """
        batch = self.check(X, y, sample_weight)
        predicted = np.empty(batch.w.size)
        for part in pieces(batch.w.size):
            with WholeRound(self, self._changes):
                predicted[part] = self.learn_checked(batch.part(part))
        return predicted

    def check(self, X: Any, y: Any, sample_weight: Any = None) -> EntriesBatch:
        """Return checked observations, or say what is wrong with them; nothing changes."""
        parts = {"limits": None, "loss": self.loss, "dtype": self.dtype, "device": "cpu"}
        batch = check_entries(X, y, sample_weight, **parts, local=True)
        assert batch.shape is not None
        check_growth(batch.shape, (self.max_rows, self.max_columns))
        return batch

    def play(self, batch: EntriesBatch) -> Round:
        """Learn a checked batch at once."""
        if batch.w.size == 1:
            predicted = self.learn_checked(batch)
        else:
            predicted = self.learn_checked(batch, solving=False)
            self.model.solve(np.unique(batch.rows), np.unique(batch.cols))
        self.t += 1
        losses = self.loss.value(predicted, batch.y)
        loss = float(batch.w @ losses / batch.w.sum())
        return Round(self.t, loss, NAN, NAN, 0.0, "hold", 0)

    def learn_checked(self, batch: EntriesBatch, *, solving: bool = True) -> Array:
        """Learn checked entries one after another; whoever calls it sees that they are whole."""
        rows, cols, y, w, shape = batch
        if shape is None:
            shape = int(rows.max()) + 1, int(cols.max()) + 1
        if shape[0] > self.shape[0] or shape[1] > self.shape[1]:
            self.model.grow(*shape)
        self._changes += 1
        self.n_observations += y.size
        if self.clock is None:
            return self.model.learn(rows, cols, y, plain_weights(w), solving=solving)
        predicted = []
        for which in self._stretches(w):
            units = self._age(w[which])
            its = rows[which], cols[which], y[which], plain_weights(w[which]), units
            predicted.append(self.model.learn(*its, solving=solving))
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
            self.model.drop(2.0**-KEPT * self.model.newest)
        units = old._replace(shift=new.shift).after((w > 0.0).astype(float))[2]
        self.clock = new
        return units

    def go_on(self, half_life: float | None) -> None:
        """Forget with another half-life from now on, where there was one; None: nothing more."""
        assert self.clock is not None
        self.clock = self.clock.going_on(half_life)
        self._note_half_life()

    @property
    def half_life(self) -> float | None:
        """The half-life in use; None while nothing is forgotten."""
        clock = self.clock
        return None if clock is None or np.isinf(clock.half_life) else clock.half_life

    def _note_half_life(self) -> None:
        half_life = self.half_life
        self.model.fade = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)

    # Correcting -----------------------------------------------------------------------------------

    def refine(self) -> Round:
        """Solve all rows and all columns once: a round without new data."""
        with WholeRound(self, self._changes):
            self.sweep()
            self.t += 1
        return Round(self.t, NAN, NAN, NAN, 0.0, "corrective", 0)

    def sweep(self) -> None:
        """Solve all rows, then all columns."""
        self._changes += 1
        self.model.sweep()

    def correct(self) -> None:
        """Let theta be one whose certificate is at most 30% of the loss, if that can be found.

        It stands beside what predicts, which stays as it is, until something is learned.
        """
        held, theta = self.held_loss(), self.theta
        if not held.total > 0.0:
            return
        for _ in range(SWEEPS):
            if held.certificate(theta) <= ENOUGH * held.value(theta):
                break
            theta = held.corrected(theta, 1)
        self._theta = self._changes, theta

    def forget(self, row: int) -> None:
        """Forget a row: its entries leave, and its columns are solved again."""
        number = check_whole("row", row, 0)
        if number >= self.shape[0]:
            raise ValueError(f"row must be one of {self.shape[0]} rows, from 0, got {row}")
        with WholeRound(self, self._changes):
            self._changes += 1
            self.model.forget(number)

    def round_failed(self, error: BaseException, changes: int) -> None:
        """If anything has changed before a round failed, refuse everything from now on."""
        if self._changes != changes:
            self.model: Any = Broken(error)

    # Asking ---------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.model.shape

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return what is predicted for entries of the matrix, which are not clipped."""
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
        model = self.model
        return HeldLoss(model.lists, model.offsets(), self.loss, model.unit, model.newest)

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
    def from_state(cls, state: State, *, loss: Loss | None = None) -> Self:
        """Make the learner that ``state_dict`` described, or say what is wrong with the state."""
        check_state(state, "learner", "loss", "t", "n_observations", "limits", "clock", "model")
        if state["learner"] != cls.__name__:
            raise ValueError(f"this is the state of a {state['learner']}, not of {cls.__name__}")
        new = cls.__new__(cls)
        new.loss = rebuild(state["loss"], "loss", loss)
        code = loss_code(new.loss)
        new.model = chains_from_state(state["model"])
        if code != new.model.loss:
            raise ValueError(f"the state is not of {new.loss}")
        new.dtype = new.model.lists.dtype
        new.t = check_whole("t of the state", state["t"], 0)
        new.n_observations = check_whole("n_observations", state["n_observations"], 0)
        limits = (check_whole("a limit of the state", n) for n in state["limits"])
        new.max_rows, new.max_columns = limits
        new.clock = clock_from_state(state["clock"])
        new._changes, new._theta = 0, None
        new._note_half_life()
        return new

    def __repr__(self) -> str:
        return f"OnlineFactors({self.shape}, {self.loss}, n_observations={self.n_observations})"


def plain_weights(w: Array) -> Array | None:
    """Return weights, or None if all are 1."""
    return None if (w == 1.0).all() else w
