"""Least squares over everything seen, kept as two running sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._devices import namespace
from .._state import number
from .._typing import Array, State
from .._validation import check_whole
from ..atoms import Atom, SignedCoordinate, SparseAtom
from ..iterates import DenseIterate
from ..linalg import row_products, top_singular_pair
from ..losses import Square
from ..past.place import check_place
from .lines import Parabola
from .row_objective import RowObjective, RowsBatch
from .running_sums import ModelSums, RunningSums, products

__all__ = ["RunningLeastSquares"]

#: H theta is computed again after this many moves (or n of them, if that is more).
REFRESH_EVERY = 1000


class RunningLeastSquares(RowObjective):
    """F_t(theta) = mean of (<theta, x_i> + b - y_i)^2 / 2, from X'X and X'y alone.

    Cost and memory per round do not grow with t. The product H theta (H = X'X) is kept up to date:
    a batch adds X'(X theta) to it, and a step along a signed coordinate moves it along one column
    of H, so no round computes an n x n product.

    Parameters
    ----------
    n_features : int
        The length of theta; memory is 8 n^2 bytes.
    fit_intercept : bool
        Add an intercept b, outside the set: F is minimised over it at any theta, by centring the
        sums.
    half_life : float, optional
        After so many rows a row weighs half as much: F_t is a mean with weights
        2**(-age / half_life). By default nothing is forgotten.
    device : "cpu", "cuda" or "auto"
        Where X'X is: in this process's memory or on a GPU (which needs ``onlinefw[gpu]``);
        "auto" takes a GPU if there is one. Rows may come as numpy, scipy, CuPy or torch arrays.
        All vectors as long as theta are in this process's memory either way. With ``workers`` the
        device is theirs, one GPU each.
    workers : int, optional
        Let this many workers of a Ray cluster (:mod:`onlinefw.distributed`) add up X'X, whole
        batches in turn; a step along a coordinate asks each for one row of it. By default all is
        in this process.
    log_dir : path, optional
        Where to log what workers have received, for those that are restarted; by default where
        temporary files are.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.RunningLeastSquares(2)
    >>> objective.observe(np.eye(2), np.array([1.0, -3.0]))
    2.5
    >>> objective.gradient()
    array([-0.5,  1.5])
    """

    loss = Square()
    takes_changes = True

    def __init__(
        self,
        n_features: int,
        *,
        fit_intercept: bool = False,
        half_life: float | None = None,
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> None:
        n = check_whole("n_features", n_features)
        place = check_place(device, workers, log_dir)
        self._join(RunningSums(n, bool(fit_intercept), place, half_life))

    def _join(self, sums: RunningSums) -> None:
        """Learn from these sums."""
        self._shared, self.fit_intercept = sums, sums.centred
        self._model: int | None = None
        super().__init__((sums.sums.mean.size,))
        self._b: float | None = None  # the intercept that is held
        self._moves = 0
        self._image: tuple[Atom | None, Array] | None = None
        self._batch: tuple[Any, Array, Array] | None = None

    def beside(self) -> RunningLeastSquares:
        """Return another objective on the same rows, before the first have come.

        Both have targets and a theta of their own;
        :class:`~onlinefw.algorithms.side_by_side.SideBySide` plays their learners together.
        """
        self._check_no_rows()
        other = type(self).__new__(type(self))
        other._join(self._shared)
        return other

    def _set_iterate(self, iterate: DenseIterate) -> None:
        super()._set_iterate(iterate)
        if self._model is None:
            self._model = self._shared.add_model(iterate)
        else:
            self._shared.iterates[self._model] = iterate

    # Data --------------------------------------------------------------------------------------

    @property
    def _sums(self) -> ModelSums:
        """The sums of this model over all rows."""
        shared = self._shared
        sums = shared.sums if shared.waiting is None else shared.current
        return sums.models[self._model]

    @property
    def _theta(self) -> Array:
        return self._iterate.theta  # type: ignore[union-attr,return-value]

    @property
    def intercept(self) -> float:
        """The best intercept for the current theta (one that is held: as of then); 0 without."""
        if not self.fit_intercept:
            return 0.0
        return self._best_intercept() if self._b is None else self._b

    def _best_intercept(self) -> float:
        sums = self._shared.current
        return float(sums.models[self._model].mean_y - sums.mean @ self._theta)

    def hold(self) -> None:
        """Keep the intercept, the best one for the rows so far, from now on while rows come."""
        self._shared.fold()
        self._b = None
        if self.fit_intercept:
            self._b = self._best_intercept()

    @staticmethod
    def products_together(objectives: Sequence[RunningLeastSquares], X: Any) -> Array:
        """Return <theta, x> of checked rows, a column for each objective."""
        thetas = np.column_stack([one._theta for one in objectives])
        here = type(X) is np.ndarray or namespace(X) is np
        return row_products(X, thetas) if here else products(X, thetas)

    @staticmethod
    def add_together(objectives: Sequence[RunningLeastSquares], batch: RowsBatch) -> list[float]:
        """Add checked rows to the sums of several objectives; return each one's mean loss."""
        shared = objectives[0]._shared
        X, targets, w, Z, _ = batch
        X = shared.past.bring(X)
        if Z is None:
            Z = RunningLeastSquares.products_together(objectives, X)
        weight, losses = w.sum(), []
        for one, z, y in zip(objectives, Z.T, targets, strict=True):
            losses.append(float(w @ (z + one.intercept - y) ** 2 / (2.0 * weight)))
        shared.add(X, targets, w, wait=objectives[0].holds)
        for one, y in zip(objectives, targets, strict=True):
            one._image = None
            one.n_observations += y.size
            one._batch = (X, y, w)
        return losses

    @staticmethod
    def keep_together(objectives: Sequence[RunningLeastSquares]) -> None:
        """Let the past of these objectives forget all others that share it."""
        objectives[0]._shared.keep_models([one._model for one in objectives])
        for k, one in enumerate(objectives):
            one._model = k

    # Value and gradient ------------------------------------------------------------------------

    def gradient(self) -> Array:
        """Return (H theta - b) / sum(w), in O(n)."""
        if not self.n_observations:
            self._needs_data()
        sums = self._sums
        return (sums.H_theta - sums.b) / self._shared.seen_weight

    def value(self) -> float:
        """Return F_t at the current iterate, in O(n).

        It is a difference of sums of squares, so it is exact to rounding of the mean of y^2 only:
        centre targets that are large compared with their errors.
        """
        self._needs_data()
        b, H_theta, yy, _ = self._sums
        quadratic = self._theta @ (H_theta - 2.0 * b)
        least = max(0.0, float(0.5 * (quadratic + yy) / self.total_weight))
        return least if self._b is None else least + self._held_back()

    def _held_back(self) -> float:
        """Return by how much F is larger than with the best intercept, as one is held."""
        return 0.0 if self._b is None else 0.5 * (self._b - self._best_intercept()) ** 2

    def certificate(self, constraint: Any) -> float:
        """Return a bound on how far F is above its minimum over the set; nothing changes."""
        return super().certificate(constraint) + self._held_back()

    # Moving ------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and H theta with it."""
        image = self._image_of(atom)
        H_theta = (1.0 - step) * self._sums.H_theta + step * image
        self._iterate.move(atom, step)  # type: ignore[union-attr]
        self._moved(H_theta)

    def _moved(self, H_theta: Array) -> None:
        self._shared.replace(self._model, H_theta=H_theta)
        self._image = self._b = None
        self._moves += 1
        # Against rounding drift, so seldom that it costs no more than the moves themselves.
        if self._moves % max(REFRESH_EVERY, self._sums.b.size) == 0:
            self._refresh()

    def _image_of(self, atom: Atom) -> Array:
        """H a: one column of H for a coordinate. A line search and the move after it share it."""
        if self._image is None or self._image[0] is not atom:
            if self._shared.waiting is not None:
                self._shared.fold()
            past = self._shared.past
            if isinstance(atom, SignedCoordinate):
                image = past.combine(np.array([atom.index]), np.array([atom.value]))
            elif isinstance(atom, SparseAtom):
                image = past.combine(atom.indices, atom.values)
            else:
                image = past.times(np.asarray(atom))
            self._image = (atom, image)
        return self._image[1]

    def _refresh(self) -> None:
        self._image = self._b = None
        self._shared.fold()
        self._shared.replace(self._model, H_theta=self._shared.past.times(self._theta))

    def line(self, atom: Atom) -> Parabola:
        """Return F along theta + c (atom - theta), a parabola."""
        self._needs_data()
        theta, image = self._theta, self._image_of(atom) - self._sums.H_theta  # H d
        gradient = self.gradient()
        slope = atom.dot(gradient) - float(theta @ gradient)
        curvature = (atom.dot(image) - float(theta @ image)) / self.total_weight
        return Parabola(self.value(), slope, max(curvature, 0.0))

    def coordinate_model(self, chosen: Array) -> _ChosenSquares:
        """Return F in the chosen coordinates."""
        self._shared.fold()
        return _ChosenSquares(self, chosen)

    def begin_change(self, chosen: Array, change: Array, *b: float) -> Parabola:
        """Return F along a change of the chosen coordinates; the best intercept goes along."""
        self._shared.fold()
        image = self._shared.past.combine(chosen, change)
        self._image = (None, image)
        slope = float(change @ self.gradient()[chosen])
        curvature = float(change @ image[chosen]) / self.total_weight
        return Parabola(self.value(), slope, max(curvature, 0.0))

    def finish_change(self, chosen: Array, change: Array, part: float, *b: float) -> None:
        """Take a part of the change that was begun."""
        assert self._image is not None
        H_theta = self._sums.H_theta + part * self._image[1]
        self._iterate.shift(chosen, part * change)  # type: ignore[union-attr]
        self._moved(H_theta)

    # Facts -------------------------------------------------------------------------------------

    def smoothness(self) -> float:
        """Return the largest eigenvalue of H / sum(w)."""
        self._needs_data()
        self._shared.fold()
        times, n = self._shared.past.times, self._sums.b.size
        H = LinearOperator((n, n), matvec=times, rmatvec=times, dtype=float)
        return top_singular_pair(H, tol=1e-6)[1] / self.total_weight

    # State -------------------------------------------------------------------------------------

    def own_state(self) -> State:
        """Return what is this objective's own: all but the past."""
        b, H_theta, yy, mean_y = self._shared.sums.models[self._model]
        return {
            **self._base_state(),
            "fit_intercept": self.fit_intercept,
            "b": b.copy(),
            "H_theta": H_theta.copy(),
            "yy": float(yy),
            "mean_y": float(mean_y),
            "intercept": self._b,
            "moves": self._moves,
        }

    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described."""
        b, H_theta = np.array(state["b"], float), np.array(state["H_theta"], float)
        if not b.shape == H_theta.shape == self._shared.sums.mean.shape:
            raise ValueError(f"the sums of the state have shapes {b.shape} and {H_theta.shape}")
        self._load_base(state)
        yy, mean_y, held = float(state["yy"]), float(state["mean_y"]), state.get("intercept")
        self._shared.replace(self._model, b=b, H_theta=H_theta, yy=yy, mean_y=mean_y)
        self._b = None if held is None else number(held, "the intercept")
        self._moves, self._image, self._batch = int(state["moves"]), None, None

    @classmethod
    def from_state(cls, state: State, **place: Any) -> Self:
        """Make the objective that ``state_dict`` described.

        Its sums go to the ``place``: ``device``, ``workers`` and ``log_dir``.
        """
        n, fit_intercept = state["shape"][0], state["fit_intercept"]
        return cls(n, fit_intercept=fit_intercept, **place).load_state(state)

    def __repr__(self) -> str:
        fades = "" if self.half_life is None else f", half_life={self.half_life:g}"
        size, n = self._sums.b.size, self.n_observations
        return f"RunningLeastSquares({size}{fades}, n_observations={n})"


class _ChosenSquares:
    """Gradient and Hessian in the chosen coordinates; F is its own model, so steps are whole."""

    def __init__(self, objective: RunningLeastSquares, chosen: Array) -> None:
        self._objective, self._chosen = objective, chosen
        self.gradient = objective.gradient()[chosen]
        self.hessian = objective._shared.past.block(chosen) / objective.total_weight

    def move(self, change: Array) -> float:
        """Move theta by the whole change."""
        self._objective.begin_change(self._chosen, change)
        self._objective.finish_change(self._chosen, change, 1.0)
        return 1.0
