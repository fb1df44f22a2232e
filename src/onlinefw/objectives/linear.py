"""The mean loss of a linear model over the rows kept, with predictions carried along."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._growing import GrowingArray
from .._state import describe, rebuild
from .._threads import one_blas_thread, threads_for
from .._typing import Array, Shape, State
from .._validation import check_part
from ..atoms import Atom, SignedCoordinate
from ..kernels import rows as kernels
from ..kernels.bytes import fused_bytes, suits
from ..linalg import top_singular_pair
from ..losses import Loss
from .base import Line, Objective, spectral_norm_squared
from .coordinate_model import CoordinateModel
from .intercept import InterceptRows, RowSums, best_intercept
from .row_loss import RowLoss
from .row_store import RowStore, row_store
from .rows import DenseRows, Rows

__all__ = ["LinearObjective"]

#: Predictions are recomputed from theta after this many moves, against rounding drift.
REFRESH_EVERY = 1000


class LinearObjective(Objective):
    """F_t(theta) = weighted mean of loss(<theta, x_i> + b, y_i) over the rows kept.

    The past is kept. Its predictions z_i = <theta, x_i> are not recomputed: when theta moves
    along an atom they move along the atom's image, ``z <- (1 - step) z + step X a``. For a signed
    coordinate that is one column of the data; for other atoms of dense data it waits for the next
    gradient, which then reads every row once for both.

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
        Which rows count: all, the newest ``max_past``, or a uniform random sample of so many. The
        mean, and so every gap, is then over the rows kept.
    max_past : int, optional
        How many rows to keep, unless all.
    random_state : int or Generator, optional
        Of the reservoir.
    store : RowStore, optional
        Rows shared with other objectives, which then learn side by side.
    workers : int, optional
        Spread the rows over so many workers of a Ray cluster (:mod:`onlinefw.distributed`), whole
        batches in turn; by default they are in the memory of this process.
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

    def __new__(cls, *args: Any, **options: Any) -> LinearObjective:
        """Make the kind that asks workers, if the rows are with them."""
        store = options.get("store")
        if options.get("workers") is not None or getattr(store, "workers", None) is not None:
            from ..distributed.linear import ShardedLinearObjective

            return object.__new__(ShardedLinearObjective)
        return object.__new__(cls)

    def __init__(
        self,
        loss: Loss,
        *,
        n_features: int | None = None,
        shape: Shape | None = None,
        fit_intercept: bool = False,
        past: str = "all",
        max_past: int | None = None,
        random_state: Any = None,
        store: RowStore | None = None,
        workers: int | None = None,
        log_dir: Any = None,
    ) -> None:
        check_part("loss", loss, Loss, "Square()")
        if n_features is not None and shape is not None:
            raise ValueError("LinearObjective takes n_features or shape, not both")
        if n_features is not None and (int(n_features) != n_features or n_features < 1):
            raise ValueError(f"n_features must be a whole number of at least 1, got {n_features}")
        if shape is not None and (np.shape(shape) != (2,) or min(shape) < 1):
            raise ValueError(f"shape must be (m1, m2) with positive sides, got {shape}")
        super().__init__(shape if n_features is None else (int(n_features),))
        self.loss = loss
        self.fit_intercept = bool(fit_intercept)
        if store is None:
            store = row_store(past, max_past, random_state, workers, log_dir)
        self._store = store
        self._store.lanes.append(self)
        self._row_loss = RowLoss(loss)
        self._z, self._y = GrowingArray(), GrowingArray()
        self._b: float | None = None
        self._b_due = True  # whether b may no longer be the best
        self._moves = 0
        self._warned = False
        self._gradient: Array | None = None
        self._image: tuple[Atom, Array] | None = None
        # A move that the predictions of the first rows have yet to follow: (a, step, rows).
        self._pending: tuple[Array, float, int] | None = None
        self._batch: tuple[Any, Array, Array] | None = None

    def working(self) -> AbstractContextManager[Any]:
        """Leave the cores to the compiled loops."""
        return one_blas_thread()

    @property
    def workers(self) -> int | None:
        """How many workers hold the rows; None: they are in this process."""
        return self._store.workers

    def close(self) -> None:
        """Give the workers back, if there are any; without this, they go with the objective."""
        self._store.close()

    # Data --------------------------------------------------------------------------------------

    @property
    def total_weight(self) -> float:
        """The total weight of the rows kept."""
        return self._store.total_weight

    @property
    def n_kept(self) -> int:
        """How many rows count."""
        return int(np.count_nonzero(self._store.w))

    @property
    def _rows(self) -> Rows:
        assert self._store.rows is not None
        return self._store.rows

    @property
    def _w(self) -> Array:
        return self._store.w

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Add rows; return the weighted mean of their losses at the current iterate."""
        if len(self._store.lanes) > 1:
            raise ValueError("these rows are shared with other objectives: use their RowStore")
        return self._store.observe(X, [y], sample_weight)[0]

    def _predicted(self, X: Any) -> Array:
        """Return <theta, x> of new rows."""
        if self.shape is None:  # theta is 0, of whatever length
            return np.zeros(X.shape[0])
        return np.asarray(X @ self._flat_theta, dtype=float)

    def _loss_of(self, z: Array, y: Array, w: Array) -> float:
        """Return the mean loss of new rows, with the intercept as it is without them."""
        return float(w @ self.loss.value(z + self.intercept, y) / w.sum())

    def _receive(self, X: Any, z: Array, y: Array, w: Array) -> None:
        """Take over checked rows that the store is about to add."""
        if self.shape is None:
            self._set_shape(X.shape[1:])
        self._z.append(z)
        self._y.append(y)
        self.n_observations += X.shape[0]
        self._batch = (X, y, w)
        self._forget_derived()

    def _keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False; the store still holds them."""
        self._settle_predictions()
        self._z.keep(mask)
        self._y.keep(mask)
        self._image = None

    def _forget_derived(self) -> None:
        self._gradient, self._image, self._b_due = None, None, True

    # Value and gradient ------------------------------------------------------------------------

    @property
    def _flat_theta(self) -> Array:
        return np.asarray(self.theta).reshape(-1)

    @property
    def intercept(self) -> float:
        """The best intercept for the current theta; 0 without one."""
        if self.fit_intercept and self._b_due and self.n_observations:
            self._b = best_intercept(self.loss, self._row_sums(), self._b)
            self._b_due = False
        return 0.0 if self._b is None else self._b

    def _row_sums(self) -> InterceptRows:
        return RowSums(self._row_loss, self._predictions(), self._y.data, self._w)

    def _predictions(self) -> Array:
        """The carried predictions (without intercept), brought up to date."""
        self._settle_predictions()
        return self._z.data

    def _settle_predictions(self) -> None:
        if self._pending is not None:
            (a, step, moved), self._pending = self._pending, None
            assert isinstance(self._rows, DenseRows)
            data, blocks = self._rows.data, np.minimum(self._rows.blocks, moved)
            a = a.astype(self._rows.working_dtype, copy=False)
            with threads_for(self._rows.work):
                kernels.move_rows(data, blocks, 1.0 - step, step, a, self._z.data)

    def gradient(self) -> Array:
        """Return X' (w phi'(z + b, y)) / sum(w): one pass over the past."""
        self._needs_data()
        if self._gradient is None:
            self._store.renew_gradients()
            assert self._gradient is not None
            if not self.loss.convex and not self._warned:
                self._warn_if_saturated()
        return self._gradient

    def _set_gradient(self, gradient: Array) -> None:
        assert self.shape is not None
        self._gradient = np.ascontiguousarray(gradient).reshape(self.shape)
        self._gradient.flags.writeable = False

    def _slopes(self) -> Array:
        b = self.intercept
        return self._row_loss.slopes(self._predictions(), self._y.data, self._w, b)

    def _own_gradient(self) -> Array:
        rows = self._rows
        if not (isinstance(rows, DenseRows) and self._row_loss.is_compiled):
            gradient = rows.rmatvec(self._slopes())
            gradient /= self.total_weight
            return gradient
        b = self.intercept  # which, if there is one, needs all predictions before the first slope
        a, step, moved = self._pending or (np.zeros(rows.data.shape[1]), 0.0, 0)
        self._pending = None
        a = a.astype(rows.working_dtype, copy=False)
        out = np.zeros(rows.data.shape[1])
        fused = fused_bytes if suits(rows.data) else kernels.fused_gradient
        with threads_for(rows.work):
            fused(
                rows.data,
                rows.blocks,
                moved,
                1.0 - step,
                step,
                a,
                self._z.data,
                self._y.data,
                self._w,
                b,
                self._row_loss.kind,
                self._row_loss.parameter,
                out,
            )
        out /= self.total_weight
        return out

    def _warn_if_saturated(self) -> None:
        gradient = self._gradient
        assert gradient is not None
        if np.abs(gradient).max() > 1e-9 or self._steepest() >= 1e-9:
            return
        if self.value() > 1e-3:
            self._warned = True
            warnings.warn(
                f"{self.loss} is saturated: all its derivatives are below 1e-9 while the mean loss "
                f"is {self.value():.3g}, so theta cannot move and a gap near zero proves nothing; "
                "use a smaller radius or smaller features",
                RuntimeWarning,
                stacklevel=4,
            )

    def _steepest(self) -> float:
        return float(np.abs(self._slopes()).max(initial=0.0))

    def value(self) -> float:
        """Return F_t at the current iterate, from the carried predictions."""
        self._needs_data()
        return self._value_at(self._predictions(), self.intercept)

    def _value_at(self, z: Array, b: float) -> float:
        return self._row_loss.total(z, self._y.data, self._w, b) / self.total_weight

    def predictions(self) -> Array:
        """Return the carried predictions of all rows kept, in order, without intercept (a copy)."""
        return self._predictions()[self._store.kept]

    # Moving ------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and every past prediction with it."""
        if self.n_observations:
            self._settle_predictions()
            if self._may_wait(atom):
                self._pending = (atom.dense().reshape(-1).astype(float), step, len(self._rows))
            else:
                image = self._image_of(atom)
                z = self._z.data
                z *= 1.0 - step
                z += step * image
        self.iterate.move(atom, step)
        self._moved()

    def _may_wait(self, atom: Atom) -> bool:
        """Whether the next gradient reads all rows anyway, and can move predictions as it does."""
        known = self._image is not None and self._image[0] is atom
        return (
            isinstance(self._store.rows, DenseRows)
            and self._row_loss.is_compiled
            and not isinstance(atom, SignedCoordinate)
            and not known
            and not self.fit_intercept
            and len(self._store.lanes) == 1
        )

    def _moved(self) -> None:
        self._forget_derived()
        self._moves += 1
        if self._moves % REFRESH_EVERY == 0:
            self._refresh()

    def _image_of(self, atom: Atom) -> Array:
        """X a, computed once for a line search and the move that follows it."""
        if self._image is None or self._image[0] is not atom:
            self._image = (atom, atom.image(self._rows))
        return self._image[1]

    def _refresh(self) -> None:
        self._pending = None
        self._forget_derived()
        if self._store.rows is not None:
            self._z.data[:] = self._rows.matvec(self._flat_theta)

    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta), with the intercept as it is."""
        self._needs_data()
        return _LinearLine(self, self._image_of(atom) - self._predictions())

    def coordinate_model(self, chosen: Array) -> CoordinateModel:
        """Return a second-order model of F in the chosen (increasing) coordinates."""
        return CoordinateModel(self, chosen)

    def _second_order(self, chosen: Array) -> tuple[Array, Array, float]:
        """Return X_S' D X_S, X_S' d and sum(d), for the rows' curvatures d (as a mean)."""
        bend = self._row_loss.curvatures(self._predictions(), self._y.data, self._w, self.intercept)
        bend /= self.total_weight
        hessian, cross = self._rows.gram(chosen, bend)
        return hessian, cross, float(bend.sum())

    def _trial(self, chosen: Array, change: Array) -> _Trial:
        return _Trial(self, self._rows.columns(chosen, change))

    # Facts -------------------------------------------------------------------------------------

    def smoothness(self) -> float:
        """Return loss.smoothness times the largest eigenvalue of X' diag(w) X / sum(w)."""
        self._needs_data()
        rows, scale = self._rows, np.sqrt(self._w / self.total_weight)
        operator = LinearOperator(
            (len(rows), int(np.prod(rows.shape))),
            matvec=lambda v: scale * rows.matvec(v.reshape(-1)),
            rmatvec=lambda r: rows.rmatvec(scale * r.reshape(-1)),
            dtype=float,
        )
        return self.loss.smoothness * top_singular_pair(operator, tol=1e-6)[1] ** 2

    def batch_gradient(self) -> Array:
        """Return the gradient of the last batch's mean loss at the current iterate."""
        self._needs_batch(self._batch)
        assert self._batch is not None and self.shape is not None
        X, y, w = self._batch
        z = X @ self._flat_theta + self.intercept
        return (X.T @ (w * self.loss.derivative(z, y) / w.sum())).reshape(self.shape)

    def batch_smoothness(self) -> float:
        """Return the smoothness of the last batch's mean loss."""
        self._needs_batch(self._batch)
        assert self._batch is not None
        return self.loss.smoothness * spectral_norm_squared(self._batch[0], self._batch[2])

    # State -------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return data, predictions and iterate as plain arrays and JSON-able values."""
        if len(self._store.lanes) > 1:
            raise ValueError("these rows are shared with other objectives: pickle them together")
        a, step, moved = self._pending or (None, 0.0, 0)
        return {
            **self._base_state(),
            "loss": describe(self.loss),
            "fit_intercept": self.fit_intercept,
            "intercept": self._b,
            "intercept_due": self._b_due,
            "store": self._store.state_dict(),
            "z": self._z.data.copy(),
            "y": self._y.data.copy(),
            "moves": self._moves,
            "pending": None if a is None else {"a": a.copy(), "step": step, "rows": moved},
        }

    @classmethod
    def from_state(
        cls,
        state: State,
        *,
        loss: Loss | None = None,
        workers: int | None = None,
        log_dir: Any = None,
    ) -> LinearObjective:
        """Make the objective that ``state_dict`` described; a loss of your own is passed in.

        Its rows may have been in one process or with any number of workers, and go to as many as
        you say.
        """
        shape = None if state["shape"] is None else tuple(state["shape"])
        store = RowStore.from_state(state["store"], shape)
        loss = rebuild(state["loss"], "loss", loss)
        assert loss is not None
        objective = cls(loss, fit_intercept=state["fit_intercept"], store=store)
        objective._load_base(state)
        objective._z.append(state["z"])
        objective._y.append(state["y"])
        objective._moves = int(state["moves"])
        objective._b, objective._b_due = state["intercept"], bool(state["intercept_due"])
        if state["pending"] is not None:
            pending = state["pending"]
            objective._pending = (np.array(pending["a"]), pending["step"], pending["rows"])
        if workers is not None:
            from ..distributed.moving import spread_rows

            spread_rows(store, workers, log_dir)
        return objective

    def __repr__(self) -> str:
        past = "" if self._store.past == "all" else f", past={self._store.past!r}"
        kept = "" if not past else f", n_kept={self.n_kept}"
        return (
            f"LinearObjective({self.loss}, shape={self.shape}{past}, "
            f"n_observations={self.n_observations}{kept})"
        )


class _Trial:
    """A change of theta whose image is known."""

    def __init__(self, objective: LinearObjective, image: Array) -> None:
        self._objective, self._image = objective, image

    def value(self, part: float, b: float) -> float:
        """Return F after a part of the change."""
        return self._objective._value_at(self._objective._predictions() + part * self._image, b)

    def move(self, part: float) -> None:
        """Let predictions follow; theta is up to the caller."""
        z = self._objective._predictions()
        z += part * self._image


class _LinearLine:
    """F along z + c * direction, from predictions only."""

    def __init__(self, objective: LinearObjective, direction: Array) -> None:
        self._objective, self._direction = objective, direction
        self._z, self._y = objective._predictions(), objective._y.data
        self._w, self._b = objective._w / objective.total_weight, objective.intercept
        self.curvature: float | None = None
        if objective.loss.quadratic:
            bend = objective.loss.second_derivative(self._z, self._y)
            self.curvature = float((self._w * bend) @ direction**2)

    def value(self, c: float) -> float:
        return self._objective._value_at(self._z + c * self._direction, self._b)

    def slope(self, c: float) -> float:
        at = self._z + c * self._direction
        row_loss = self._objective._row_loss
        return float(row_loss.slopes(at, self._y, self._w, self._b) @ self._direction)
