"""The mean loss of a linear model over the rows kept, with predictions carried along."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._arrays import here
from .._devices import namespace, to_host
from .._state import describe, rebuild
from .._threads import one_blas_thread
from .._typing import Array, Shape, State
from .._validation import check_part
from ..atoms import Atom, SignedCoordinate
from ..linalg import top_singular_pair
from ..losses import Loss
from .base import Line, Objective, spectral_norm_squared
from .coordinate_model import CoordinateModel
from .places import at_home, back_there, check_places, device_here, new_predictions
from .predictions import Predictions
from .row_store import RowStore, row_store
from .rows import Rows

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
        Rows shared with other objectives, which then learn side by side (where the store is).
    device : "cpu", "cuda" or "auto"
        Where rows and predictions live: in this process's memory or on a GPU (which needs
        ``onlinefw[gpu]``); "auto" takes a GPU if there is one. Rows may come as numpy, scipy, CuPy
        or torch arrays. Theta and its gradient are in this process's memory either way. With
        ``workers`` the device is theirs, one GPU each.
    workers : int, optional
        Spread the rows over so many workers of a Ray cluster (:mod:`onlinefw.distributed`), whole
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
        device: str = "cpu",
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
            store = row_store(past, max_past, random_state, device, workers, log_dir)
        self._store = store
        self._store.lanes.append(self)
        self._device = self._store.device
        self._carried = self._new_carried()
        self._b: float | None = None
        self._b_due = True  # whether b may no longer be the best
        self._moves = 0
        self._warned = False
        self._gradient: Array | None = None
        self._image: tuple[Atom, Any] | None = None
        self._batch: tuple[Any, Array, Array] | None = None

    def _new_carried(self) -> Predictions:
        return new_predictions(self.device, self._store, self.loss)

    def _use_device(self, device: str) -> None:
        """Carry everything on a device of this process; the store has gone there."""
        self.__setstate__({**self.__getstate__(), "_device": device})

    def working(self) -> AbstractContextManager[Any]:
        """Leave the cores to the compiled loops."""
        return one_blas_thread()

    def __getstate__(self) -> dict[str, Any]:
        brought = {
            "_carried": at_home(self._carried),
            "_image": None,
            "_batch": self._last_batch(),
        }
        return {**self.__dict__, **brought}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._device = device_here(self._device)  # the store may not be there yet to say so
        self._carried = back_there(self._device, self._carried)

    @property
    def workers(self) -> int | None:
        """How many workers hold the rows; None: they are in this process."""
        return self._store.workers

    def close(self) -> None:
        """Give the workers back, if there are any; without this, they go with the objective."""
        self._store.close()

    # Data --------------------------------------------------------------------------------------

    @property
    def device(self) -> str:
        """Where rows and predictions live: "cpu" or "cuda"."""
        return self._store.device

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
        """Add rows; return the weighted mean of their losses at the current iterate.

        Or X is a batch of :class:`~onlinefw.distributed.ParquetRows`, without y: where there are
        ``workers``, one of them reads it.
        """
        if len(self._store.lanes) > 1:
            raise ValueError("these rows are shared with other objectives: use their RowStore")
        return self._store.observe(X, [y], sample_weight)[0]

    def _predicted(self, X: Any) -> Array:
        """Return <theta, x> of new rows."""
        if self.shape is None:  # theta is 0, of whatever length
            return np.zeros(X.shape[0])
        if namespace(X) is not np:
            return to_host(X.astype(float) @ namespace(X).asarray(self._flat_theta))
        return np.asarray(X @ self._flat_theta, dtype=float)

    def _loss_of(self, z: Array, y: Array, w: Array) -> float:
        """Return the mean loss of new rows, with the intercept as it is without them."""
        return float(w @ self.loss.value(z + self.intercept, y) / w.sum())

    def _receive(self, X: Any, z: Array, y: Array, w: Array) -> None:
        """Take over checked rows that the store is about to add."""
        if self.shape is None:
            self._set_shape(X.shape[1:])
        self._carried.append(z, y)
        self.n_observations += X.shape[0]
        self._batch = (X, y, w)
        self._forget_derived()

    def _keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False; the store still holds them."""
        self._carried.keep(mask)
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
            self._b, self._b_due = self._best_intercept(), False
        return 0.0 if self._b is None else self._b

    def _best_intercept(self) -> float:
        return self._carried.best_intercept(self._b)

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

    def _slopes(self) -> Any:
        return self._carried.slopes(self.intercept)

    def _own_gradient(self) -> Array:
        gradient = self._carried.gradient(self.intercept)
        gradient /= self.total_weight
        return gradient

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
        return self._carried.steepest(self.intercept)

    def value(self) -> float:
        """Return F_t at the current iterate, from the carried predictions."""
        self._needs_data()
        return self._carried.total(self.intercept) / self.total_weight

    def predictions(self) -> Array:
        """Return the carried predictions of all rows kept, in order, without intercept (a copy)."""
        return self._carried.values()[self._store.kept]

    # Moving ------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and every past prediction with it."""
        if self.n_observations:
            if self._may_wait(atom):
                self._carried.wait(atom.dense().reshape(-1).astype(float), step)
            else:
                self._carried.follow(self._image_of(atom), step)
        self.iterate.move(atom, step)
        self._moved()

    def _may_wait(self, atom: Atom) -> bool:
        """Whether the move is best left to the next gradient, which reads all rows anyway."""
        known = self._image is not None and self._image[0] is atom
        return (
            self._carried.may_wait
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

    def _image_of(self, atom: Atom) -> Any:
        """X a, computed once for a line search and the move that follows it."""
        if self._image is None or self._image[0] is not atom:
            self._image = (atom, atom.image(self._rows))
        return self._image[1]

    def _refresh(self) -> None:
        self._forget_derived()
        self._carried.refresh(self._flat_theta)

    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta), with the intercept as it is."""
        self._needs_data()
        return self._carried.line(self._image_of(atom), self.intercept)

    def coordinate_model(self, chosen: Array) -> CoordinateModel:
        """Return a second-order model of F in the chosen (increasing) coordinates."""
        return CoordinateModel(self, chosen)

    def _second_order(self, chosen: Array) -> tuple[Array, Array, float]:
        """Return Hessian, cross terms with the intercept and its curvature, for a model of F."""
        bend = self._carried.bends(self.intercept)
        bend /= self.total_weight
        return (*self._rows.gram(chosen, bend), float(bend.sum()))

    def _trial(self, chosen: Array, change: Array) -> Any:
        """Return what F would be after a part of a change of some coordinates."""
        return _Trial(self, self._rows.columns(chosen, change))

    # Facts -------------------------------------------------------------------------------------

    def smoothness(self) -> float:
        """Return loss.smoothness times the largest eigenvalue of X' diag(w) X / sum(w)."""
        self._needs_data()
        rows, scale = self._rows, np.sqrt(self._w / self.total_weight)
        operator = LinearOperator(
            (len(rows), int(np.prod(rows.shape))),
            matvec=lambda v: scale * to_host(rows.matvec(v.reshape(-1))),
            rmatvec=lambda r: rows.rmatvec(scale * r.reshape(-1)),
            dtype=float,
        )
        return self.loss.smoothness * top_singular_pair(operator, tol=1e-6)[1] ** 2

    def _last_batch(self) -> tuple[Any, Array, Array] | None:
        """Return rows, targets and weights of the last batch, in this process's memory."""
        return self._batch if self._batch is None else (here(self._batch[0]), *self._batch[1:])

    def batch_gradient(self) -> Array:
        """Return the gradient of the last batch's mean loss at the current iterate."""
        self._needs_batch(batch := self._last_batch())
        assert batch is not None and self.shape is not None
        X, y, w = batch
        z = X @ self._flat_theta + self.intercept
        return (X.T @ (w * self.loss.derivative(z, y) / w.sum())).reshape(self.shape)

    def batch_smoothness(self) -> float:
        """Return the smoothness of the last batch's mean loss."""
        self._needs_batch(batch := self._last_batch())
        assert batch is not None
        return self.loss.smoothness * spectral_norm_squared(batch[0], batch[2])

    # State -------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return data, predictions and iterate as plain arrays and JSON-able values."""
        if len(self._store.lanes) > 1:
            raise ValueError("these rows are shared with other objectives: pickle them together")
        return {
            **self._base_state(),
            "loss": describe(self.loss),
            "fit_intercept": self.fit_intercept,
            "intercept": self._b,
            "intercept_due": self._b_due,
            "store": self._store.state_dict(),
            "moves": self._moves,
            **self._carried.state_dict(),
        }

    @classmethod
    def from_state(
        cls,
        state: State,
        *,
        loss: Loss | None = None,
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> LinearObjective:
        """Make the objective that ``state_dict`` described; a loss of your own is passed in.

        Its rows may have been on any device, in one process or with any number of workers, and go
        where you say.
        """
        shape = None if state["shape"] is None else tuple(state["shape"])
        device, workers = check_places(device, workers)
        store = RowStore.from_state(state["store"], shape, device if workers is None else "cpu")
        loss = rebuild(state["loss"], "loss", loss)
        assert loss is not None
        objective = cls(loss, fit_intercept=state["fit_intercept"], store=store)
        objective._load_base(state)
        objective._carried.load(state)
        objective._moves = int(state["moves"])
        objective._b, objective._b_due = state["intercept"], bool(state["intercept_due"])
        if workers is not None:
            from ..distributed.moving import spread_rows

            spread_rows(store, workers, device, log_dir)
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

    def __init__(self, objective: LinearObjective, image: Any) -> None:
        self._objective, self._image = objective, image

    def value(self, part: float, b: float) -> float:
        """Return F after a part of the change."""
        one = self._objective
        return one._carried.total_along(self._image, part, b) / one.total_weight

    def move(self, part: float) -> None:
        """Let predictions follow; theta is up to the caller."""
        self._objective._carried.shift(self._image, part)
