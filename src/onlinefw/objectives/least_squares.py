"""Least squares over everything seen, kept as two running sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._typing import Array, State
from .._validation import check_whole
from ..atoms import Atom, SignedCoordinate, SparseAtom
from ..linalg import top_singular_pair
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
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> None:
        n = check_whole("n_features", n_features)
        place = check_place(device, workers, log_dir)
        self._join(RunningSums(n, bool(fit_intercept), place))

    def _join(self, sums: RunningSums) -> None:
        """Learn from these sums."""
        n = sums.mean.size
        self._shared, self.fit_intercept = sums, sums.centred
        sums.n_models += 1
        super().__init__((n,))
        self._sums = ModelSums(np.zeros(n), np.zeros(n), 0.0, 0.0)
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

    # Data --------------------------------------------------------------------------------------

    @property
    def _theta(self) -> Array:
        return self._iterate.theta  # type: ignore[union-attr,return-value]

    @property
    def intercept(self) -> float:
        """The best intercept for the current theta; 0 without one."""
        if not self.fit_intercept:
            return 0.0
        return float(self._sums.mean_y - self._shared.mean @ self._theta)

    @staticmethod
    def add_together(objectives: Sequence[RunningLeastSquares], batch: RowsBatch) -> list[float]:
        """Add checked rows to the sums of several objectives; return each one's mean loss."""
        shared = objectives[0]._shared
        X, targets, w = batch
        X = shared.past.bring(X)
        thetas = np.empty((shared.mean.size, len(objectives)), order="F")
        weight, losses = w.sum(), []
        for k, (one, y) in enumerate(zip(objectives, targets, strict=True)):
            thetas[:, k] = one._theta
            errors = products(X, thetas[:, k]) + one.intercept - y
            losses.append(float(w @ errors**2 / (2.0 * weight)))
        sums = shared.add(X, targets, w, thetas, [one._sums for one in objectives])
        for one, new, y in zip(objectives, sums, targets, strict=True):
            one._sums, one._image = new, None
            one.n_observations += y.size
            one._batch = (X, y, w)
        return losses

    @staticmethod
    def keep_together(objectives: Sequence[RunningLeastSquares]) -> None:
        """Let the past of these objectives forget all others that share it."""
        objectives[0]._shared.n_models = len(objectives)

    # Value and gradient ------------------------------------------------------------------------

    def gradient(self) -> Array:
        """Return (H theta - b) / sum(w), in O(n)."""
        self._needs_data()
        return (self._sums.H_theta - self._sums.b) / self._shared.total_weight

    def value(self) -> float:
        """Return F_t at the current iterate, in O(n).

        It is a difference of sums of squares, so it is exact to rounding of the mean of y^2 only:
        centre targets that are large compared with their errors.
        """
        self._needs_data()
        b, H_theta, yy, _ = self._sums
        quadratic = self._theta @ (H_theta - 2.0 * b)
        return max(0.0, float(0.5 * (quadratic + yy) / self.total_weight))

    # Moving ------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and H theta with it."""
        image = self._image_of(atom)
        self._iterate.move(atom, step)  # type: ignore[union-attr]
        self._sums = self._sums._replace(H_theta=(1.0 - step) * self._sums.H_theta + step * image)
        self._moved()

    def _moved(self) -> None:
        self._image = None
        self._moves += 1
        # Against rounding drift, so seldom that it costs no more than the moves themselves.
        if self._moves % max(REFRESH_EVERY, self._sums.b.size) == 0:
            self._refresh()

    def _image_of(self, atom: Atom) -> Array:
        """H a: one column of H for a coordinate. A line search and the move after it share it."""
        if self._image is None or self._image[0] is not atom:
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
        self._image = None
        self._sums = self._sums._replace(H_theta=self._shared.past.times(self._theta))

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
        return _ChosenSquares(self, chosen)

    def begin_change(self, chosen: Array, change: Array, *b: float) -> Parabola:
        """Return F along a change of the chosen coordinates; the best intercept goes along."""
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
        self._sums = self._sums._replace(H_theta=H_theta)
        self._moved()

    # Facts -------------------------------------------------------------------------------------

    def smoothness(self) -> float:
        """Return the largest eigenvalue of H / sum(w)."""
        self._needs_data()
        times, n = self._shared.past.times, self._sums.b.size
        H = LinearOperator((n, n), matvec=times, rmatvec=times, dtype=float)
        return top_singular_pair(H, tol=1e-6)[1] / self.total_weight

    def batch_gradient(self) -> Array:
        """Return the gradient of the last batch's mean loss at the current iterate."""
        X, y, w = self._last_batch()
        return X.T @ (w * (X @ self._theta + self.intercept - y) / w.sum())

    # State -------------------------------------------------------------------------------------

    def own_state(self) -> State:
        """Return what is this objective's own: all but the past."""
        b, H_theta, yy, mean_y = self._sums
        return {
            **self._base_state(),
            "fit_intercept": self.fit_intercept,
            "b": b.copy(),
            "H_theta": H_theta.copy(),
            "yy": float(yy),
            "mean_y": float(mean_y),
            "moves": self._moves,
        }

    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described."""
        b, H_theta = np.array(state["b"], float), np.array(state["H_theta"], float)
        if not b.shape == H_theta.shape == self._shared.mean.shape:
            raise ValueError(f"the sums of the state have shapes {b.shape} and {H_theta.shape}")
        self._load_base(state)
        self._sums = ModelSums(b, H_theta, float(state["yy"]), float(state["mean_y"]))
        self._moves, self._image, self._batch = int(state["moves"]), None, None

    @classmethod
    def from_state(cls, state: State, **place: Any) -> Self:
        """Make the objective that ``state_dict`` described.

        Its sums go to the ``place``: ``device``, ``workers`` and ``log_dir``.
        """
        n, fit_intercept = state["shape"][0], state["fit_intercept"]
        return cls(n, fit_intercept=fit_intercept, **place).load_state(state)

    def __repr__(self) -> str:
        return f"RunningLeastSquares({self._sums.b.size}, n_observations={self.n_observations})"


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
