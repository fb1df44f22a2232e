"""The mean loss of a linear model over the rows kept, whose predictions move along with theta."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from math import prod
from typing import Any, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._batches import BatchHandle
from .._state import describe, number, rebuild
from .._threads import NOTHING, SHORT_WORK, SMALL_LOOP, one_blas_thread
from .._typing import Array, Shape, State
from .._validation import check_part, check_whole
from ..atoms import Atom
from ..iterates import ActiveSet, DenseIterate
from ..linalg import top_singular_pair
from ..losses import Loss
from ..past.place import check_place
from .base import Line
from .coordinate_model import CoordinateModel
from .intercept import best_intercept
from .kept_rows import KeptRows
from .lines import Parabola, PastLine
from .loss_checks import check_losses, warn_if_saturated
from .row_objective import RowObjective

__all__ = ["LinearObjective"]

#: Predictions are computed from theta again after this many moves, against rounding drift.
REFRESH_EVERY = 1000


class LinearObjective(RowObjective):
    """F_t(theta) = weighted mean of loss(<theta, x_i> + b, y_i) over the rows kept.

    The past is kept with its predictions z_i = <theta, x_i>, which are not computed again: when
    theta moves along an atom they move along the atom's image, ``z <- (1 - step) z + step X a``.
    For a signed coordinate that is one column of the data; for other atoms of dense data it waits
    for the next gradient, which then reads every row once for both.

    Parameters
    ----------
    loss : Loss
        A pointwise loss from :mod:`onlinefw.losses`, or one of your own.
    n_features : int, optional
        The length of theta; learned from the first batch if not given.
    shape : (int, int), optional
        For matrix-shaped features: theta is m1 x m2 and rows are (B, m1, m2), or (B, m1 * m2) in
        C order.
    fit_intercept : bool
        Add an intercept b to every prediction. It is outside the set: before each gradient it is
        minimised exactly, so that the gap certifies theta and b together.
    past : "all", "recent" or "reservoir"
        Which rows count: all, the newest ``max_past``, or a random sample of as many (uniform; with
        a half-life the newer a row is, the more likely). The mean, and so every gap, is then over
        the rows kept.
    max_past : int, optional
        How many rows to keep, unless all.
    half_life : float, optional
        After so many rows a row weighs half as much: F_t is a mean with weights
        2**(-age / half_life), and rows older than ten half-lives are dropped. By default nothing
        is forgotten.
    random_state : int or Generator, optional
        Draws the reservoir.
    device : "cpu", "cuda" or "auto"
        Where rows and predictions are: in this process's memory or on a GPU (which needs
        ``onlinefw[gpu]``); "auto" takes a GPU if there is one. Rows may come as numpy, scipy, CuPy
        or torch arrays. Theta and its gradient are in this process's memory either way. With
        ``workers`` the device is theirs, one GPU each.
    workers : int, optional
        Spread the rows over this many workers of a Ray cluster (:mod:`onlinefw.distributed`), whole
        batches in turn; by default they are in this process.
    log_dir : path, optional
        Where to log what workers have received, for those that are restarted; by default where
        temporary files are.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.LinearObjective(ofw.losses.Square())
    >>> objective.observe(np.eye(2), np.array([1.0, -3.0]))  # the loss at theta = 0
    2.5
    >>> objective.gradient()
    array([-0.5,  1.5])
    """

    takes_changes = True

    def __init__(
        self,
        loss: Loss,
        *,
        n_features: int | None = None,
        shape: Shape | None = None,
        fit_intercept: bool = False,
        past: str = "all",
        max_past: int | None = None,
        half_life: float | None = None,
        random_state: Any = None,
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> None:
        place = check_place(device, workers, log_dir)
        rows = KeptRows(past, max_past, random_state, place, half_life)
        self._join(rows, loss, n_features, shape, fit_intercept)

    def _join(
        self,
        rows: KeptRows,
        loss: Loss,
        n_features: int | None,
        shape: Shape | None,
        fit_intercept: bool,
    ) -> None:
        """Learn from these rows."""
        check_part("loss", loss, Loss, "Square()")
        if n_features is not None and shape is not None:
            raise ValueError("LinearObjective takes n_features or shape, not both")
        if n_features is not None:
            shape = (check_whole("n_features", n_features),)
        elif shape is not None and (np.shape(shape) != (2,) or min(shape) < 1):
            raise ValueError(f"shape must be (m1, m2) with positive sides, got {shape}")
        self.loss, self.fit_intercept = loss, bool(fit_intercept)
        self._shared = rows
        self._model = rows.past.add_model(loss, None, waits=not self.fit_intercept)
        rows.n_models += 1
        super().__init__(shape)
        self._b: float | None = None
        self._b_due = True  # whether b may no longer be the best, and is to be found
        self._b_old = False  # whether rows have come while b is held
        self._moves = 0
        self._warned = False
        self._gradient: Array | None = None
        self._line_atom: Atom | None = None  # of the line that the past has begun
        self._batch: Any = None

    def beside(self, loss: Loss | None = None) -> LinearObjective:
        """Return another objective on the same rows, before the first have come.

        Both have targets and a theta of their own;
        :class:`~onlinefw.algorithms.side_by_side.SideBySide` plays their learners together.
        """
        self._check_no_rows()
        other = type(self).__new__(type(self))
        sizes: tuple[Any, Any] = (None, None)
        if self.shape is not None:
            sizes = (self.shape[0], None) if len(self.shape) == 1 else (None, self.shape)
        other._join(self._shared, self.loss if loss is None else loss, *sizes, self.fit_intercept)
        return other

    def _set_iterate(self, iterate: DenseIterate) -> None:
        super()._set_iterate(iterate)
        self._shared.past.iterates[self._model] = iterate

    def working(self) -> AbstractContextManager[Any]:
        """Leave the cores to the compiled loops, where these use more than one."""
        few = self.n_observations < SMALL_LOOP // 64 and self._shared.place.workers is None
        alone = NOTHING if few and prod(self.shape or ()) < SHORT_WORK else one_blas_thread()
        return self._shared.past.sharing(alone)

    # Data --------------------------------------------------------------------------------------

    @property
    def n_kept(self) -> int:
        """How many rows count."""
        return self._shared.n_kept

    @staticmethod
    def products_together(objectives: Sequence[LinearObjective], X: Any) -> Array:
        """Return <theta, x> of checked rows, a column for each objective."""
        first = objectives[0]
        if first.shape is None:  # theta is 0, of whatever length
            return np.zeros((X.shape[0], len(objectives)))
        T: Any = first._iterate.theta.reshape(-1, 1)  # type: ignore[union-attr]
        if len(objectives) > 1:
            T = np.column_stack([np.ravel(one.theta) for one in objectives])  # type: ignore[arg-type]
        return first._shared.past.products(X, T)

    @staticmethod
    def add_together(objectives: Sequence[LinearObjective], batch: Any) -> list[float]:
        """Add checked rows to the past of several objectives; return each one's mean loss."""
        first = objectives[0]
        if isinstance(batch, BatchHandle):
            return [first._add_handle(batch)]
        X, targets, w, Z, ids = batch
        if Z is None:
            Z = first.products_together(objectives, X)
        weight, losses = w.sum(), []
        for k, (one, y) in enumerate(zip(objectives, targets, strict=True)):
            losses.append(float(w @ one.loss.value(Z[:, k] + one.intercept, y) / weight))
        check_losses(first.loss, losses)
        for one in objectives:
            if one.shape is None:
                one._set_shape(X.shape[1:])
        first._shared.append(X, Z, np.column_stack(targets), w, ids)
        for one, y in zip(objectives, targets, strict=True):
            one.n_observations += X.shape[0]
            one._batch = (X, y, w)
            one._forget_derived(held=one.holds)
        return losses

    @staticmethod
    def keep_together(objectives: Sequence[LinearObjective]) -> None:
        """Let the past of these objectives forget all others that share it."""
        rows = objectives[0]._shared
        rows.past.keep_models([one._model for one in objectives])
        rows.n_models = len(objectives)
        for k, one in enumerate(objectives):
            one._model, one._line_atom = k, None

    def _add_handle(self, handle: BatchHandle) -> float:
        """Let a worker read rows and keep them."""
        rows = self._shared
        loss, w = rows.past.append_handle(handle, self.intercept, partial(check_losses, self.loss))
        if self.shape is None:
            self._set_shape(handle.shape[1:])  # type: ignore[attr-defined]
        rows.count(w)
        self.n_observations += len(handle)
        self._batch = handle.alone()
        self._forget_derived(held=self.holds)
        return loss

    # Value and gradient ------------------------------------------------------------------------

    @property
    def intercept(self) -> float:
        """The best intercept for the current theta (one that is held: as of then); 0 without."""
        if self.fit_intercept and self._b_due and self.n_observations:
            rows = self._shared
            weight, start = rows.total_weight, self._b
            self._b = best_intercept(self.loss, rows.past, self._model, weight, start)
            self._b_due = self._b_old = False
        return 0.0 if self._b is None else self._b

    def gradient(self) -> Array:
        """Return X' (w phi'(z + b, y)) / sum(w): one pass over the past."""
        if self._gradient is None:
            if not self.n_observations:
                self._needs_data()
            self.make_gradients([self])
        return self._gradient  # type: ignore[return-value]

    @staticmethod
    def make_gradients(objectives: Sequence[LinearObjective]) -> None:
        """Make the gradients that are out of date, in one read of the rows."""
        due = [one for one in objectives if one._gradient is None]
        if not due:
            return
        rows = due[0]._shared
        if due[0].holds:  # then nothing depends on where batches ended, the intercepts neither
            rows.arrange()
        for one in due:
            one._b_due = one._b_due or one._b_old
        models, intercepts = [one._model for one in due], [one.intercept for one in due]
        columns = rows.past.gradients(models, intercepts)
        columns /= rows.total_weight
        for k, one in enumerate(due):
            gradient = np.ascontiguousarray(columns[:, k])
            if len(one.shape) > 1:  # type: ignore[arg-type]
                gradient = gradient.reshape(one.shape)
            gradient.flags.writeable = False
            one._gradient = gradient
        # Warn only if all are tiny: one model of several may be useless (a radius too large, say).
        first = due[0]
        all_of_them = len(due) == rows.n_models  # others may have taken their steps already
        may_saturate = all_of_them and not first.loss.convex and not first._warned
        if may_saturate and max(columns.max(), -columns.min()) <= 1e-9:
            warn_if_saturated(first)

    def value(self) -> float:
        """Return F_t at the current iterate, from the predictions held."""
        self._needs_data()
        return self._shared.past.total(self._model, self.intercept) / self._shared.total_weight

    def certificate(self, constraint: Any) -> float:
        """Return a bound on how far F is above its minimum over the set; nothing changes."""
        if not self._b_old:
            return super().certificate(constraint)
        # F falls to its minimum over the intercept first, and from there by at most the gap.
        self._shared.arrange()  # both values are sums of the same rows
        b, value = self._b, self.value()
        try:
            gap = super().certificate(constraint)
            return gap + (value - self.value())
        finally:
            self._b, self._b_due, self._b_old, self._gradient = b, False, True, None

    def predictions(self) -> Array:
        """Return the predictions of all rows kept, in order, without the intercept (a copy)."""
        return self._shared.past.predictions(self._model)

    # Moving ------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and every prediction of the past with it."""
        on_line = atom is self._line_atom
        self._forget_derived()
        self._iterate.move(atom, step)  # type: ignore[union-attr]
        if self.n_observations:
            if on_line:
                self._shared.past.advance(self._model, step)
            else:
                self._shared.past.move(self._model, atom, step)
        self._moved()

    def put_combination(self, active_set: ActiveSet) -> None:
        """Put theta at its active set's combination, which equals it to rounding."""
        super().put_combination(active_set)
        self._shared.past.agree(self._model)

    def _forget_derived(self, held: bool = False) -> None:
        """Forget what was computed from theta and the rows, when one of them changes.

        An intercept that is ``held`` stays as it is when rows come.
        """
        self._gradient, self._line_atom = None, None
        if held and self._b is not None:
            self._b_old = True
        else:
            self._b_due = True

    def _moved(self) -> None:
        self._moves += 1
        if self._moves % REFRESH_EVERY == 0:
            self._refresh()

    def _refresh(self) -> None:
        self._forget_derived()
        self._shared.past.refresh(self._model)

    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta), with the intercept as it is."""
        self._needs_data()
        past, weight, b = self._shared.past, self._shared.total_weight, self.intercept
        parabola = past.line(self._model, atom, b)
        self._line_atom = atom
        if parabola is None:
            return PastLine(past, weight, (self._model,), (b,))
        return Parabola(*(number / weight for number in parabola))

    def coordinate_model(self, chosen: Array) -> CoordinateModel:
        """Return a second-order model of F in the chosen (increasing) coordinates."""
        rows = self._shared
        hessian, cross, bend = rows.past.second_order(self._model, chosen, self.intercept)
        hessian /= rows.total_weight
        cross, bend = cross / rows.total_weight, bend / rows.total_weight
        gradient = self.gradient().reshape(-1)[chosen]
        return CoordinateModel(self, chosen, gradient, hessian, cross, bend)

    def begin_change(self, chosen: Array, change: Array, *b: float) -> Any:
        """Return F along a change of the chosen coordinates, with the intercept b.

        Without b its values and slopes take one.
        """
        self._line_atom = None
        past, weight = self._shared.past, self._shared.total_weight
        past.change(self._model, chosen, change)
        line = PastLine(past, weight, (self._model,), b)
        if not (b and self.loss.quadratic):
            return line
        slope = line.slope(0.0)
        return Parabola(line.value(0.0), slope, max(line.slope(1.0) - slope, 0.0))

    def finish_change(self, chosen: Array, change: Array, part: float, *b: float) -> None:
        """Take a part of the change that was begun, with the intercept that goes with it."""
        self._forget_derived()
        self._iterate.shift(chosen, part * change)  # type: ignore[union-attr]
        self._shared.past.advance(self._model, part)
        if self.fit_intercept and b:
            (self._b,) = b
        self._moved()

    # Facts -------------------------------------------------------------------------------------

    def smoothness(self) -> float:
        """Return loss.smoothness times the largest eigenvalue of X' diag(w) X / sum(w)."""
        self._needs_data()
        size, past = int(np.prod(self.shape or ())), self._shared.past

        def product(v: Array) -> Array:
            return past.gram_product(v.reshape(-1)) / self.total_weight

        gram = LinearOperator((size, size), matvec=product, rmatvec=product, dtype=float)
        return self.loss.smoothness * top_singular_pair(gram, tol=1e-6)[1]

    # State -------------------------------------------------------------------------------------

    def own_state(self) -> State:
        """Return what is this objective's own: all but the past."""
        return {
            **self._base_state(),
            "loss": describe(self.loss),
            "fit_intercept": self.fit_intercept,
            "intercept": self._b,
            "intercept_due": self._b_due,
            "intercept_old": self._b_old,
            "moves": self._moves,
        }

    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described."""
        self._load_base(state)
        self._moves = int(state["moves"])
        intercept = state["intercept"]
        self._b = None if intercept is None else number(intercept, "the intercept")
        self._b_due = bool(state["intercept_due"])
        self._b_old = bool(state.get("intercept_old", False))
        self._gradient, self._line_atom, self._batch = None, None, None

    @classmethod
    def from_state(cls, state: State, *, loss: Loss | None = None, **place: Any) -> Self:
        """Make the objective that ``state_dict`` described; a loss of your own is passed in.

        Wherever its rows were, they go to the ``place``: ``device``, ``workers`` and ``log_dir``.
        """
        loss = rebuild(state["loss"], "loss", loss)
        return cls(loss, fit_intercept=state["fit_intercept"], **place).load_state(state)

    def __repr__(self) -> str:
        rule = self._shared.rule
        past = "" if rule == "all" else f", past={rule!r}"
        past += "" if self.half_life is None else f", half_life={self.half_life:g}"
        kept = "" if not past else f", n_kept={self.n_kept}"
        return (
            f"LinearObjective({self.loss}, shape={self.shape}{past}, "
            f"n_observations={self.n_observations}{kept})"
        )
