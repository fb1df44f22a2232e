"""Least squares over everything seen, kept as two running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import here, received, received_here
from .._devices import check_device
from .._typing import Array, State
from .._validation import check_rows, check_targets, check_weights
from ..atoms import Atom
from ..iterates import DenseIterate
from ..losses import Square
from .base import Objective, spectral_norm_squared
from .from_files import check_batch, is_in_a_file, observe_here
from .places import at_home, back_there, check_places, device_here, new_gram

__all__ = ["RunningLeastSquares", "sums_of_rows"]


#: H theta is recomputed after this many moves (or n of them, if that is more).
REFRESH_EVERY = 1000
#: Rows are centred (which makes them dense) about this many numbers at a time.
MOST_CENTRED = 2**22


class Moments:
    """X'X of everything seen, kept once for all the models that learn from it.

    With an intercept rows and targets are centred. When the means move, that is one more row: the
    old and the new mean differ by delta, and the sums gain weight * delta delta'.
    """

    #: How many workers add up X'X; None: this process does.
    workers: int | None = None

    def __init__(self, n_features: int, centred: bool = False, device: str = "cpu") -> None:
        self.centred, self.device = centred, check_device(device)
        self.gram = new_gram(self.device, n_features)
        self.mean = np.zeros(n_features)
        self.total_weight = 0.0
        self.lanes: list[RunningLeastSquares] = []

    def close(self) -> None:
        """Give workers back, if there are any."""

    def observe(self, X: Any, targets: list[Any], sample_weight: Any = None) -> list[float]:
        """Add rows, with a target for each lane; return each lane's mean loss of them."""
        if is_in_a_file(X):
            check_batch(X, targets, sample_weight)
            return observe_here(self, X)
        X = check_rows(received("X", X, self.device), self.mean.shape)
        targets = [received_here("y", y, self.device) for y in targets]
        sample_weight = received_here("sample_weight", sample_weight, self.device)
        ys = [check_targets(y, X.shape[0]) for y in targets]
        w = check_weights(sample_weight, X.shape[0])
        X = self.gram.bring(X)
        losses = [lane._receive(X, y, w) for lane, y in zip(self.lanes, ys, strict=True)]
        size = max(1, MOST_CENTRED // self.mean.size) if self.centred else X.shape[0]
        for start in range(0, X.shape[0], size):
            part = slice(start, start + size)
            if w[part].any():
                self._add(X[part], [y[part] for y in ys], w[part])
        return losses

    def _add(self, X: Any, ys: list[Array], w: Array) -> None:
        rows, total, seen = X, float(w.sum()), self.total_weight
        if self.centred:
            batch_mean = self.gram.mean(X, w, total)
            delta, share = batch_mean - self.mean, seen * total / (seen + total)
            rows = self.gram.centred(X, batch_mean, delta)
            w = np.append(w, share)
            self.mean = self.mean + total / (seen + total) * delta
        weighted = rows if (w == 1.0).all() else self.gram.scaled(rows, w)
        self._add_gram(rows, weighted, w)
        self.total_weight += total
        for lane, y in zip(self.lanes, ys, strict=True):
            lane._add(y, rows, weighted, w, total)

    def _add_gram(self, X: Any, weighted: Any, w: Array) -> None:
        self.gram.add(X, weighted)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "gram": at_home(self.gram)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.device = device_here(self.device)
        self.gram = back_there(self.device, self.gram)


def sums_of_rows(
    n_features: int,
    centred: bool,
    device: str = "cpu",
    workers: int | None = None,
    log_dir: Any = None,
) -> Moments:
    """Return empty sums, in this process or, with ``workers``, on a Ray cluster."""
    if workers is None:
        return Moments(n_features, centred, device)
    from ..distributed.moments import ShardedMoments

    device, workers = check_places(device, workers)
    assert workers is not None
    return ShardedMoments(n_features, centred, workers=workers, device=device, log_dir=log_dir)


class RunningLeastSquares(Objective):
    """F_t(theta) = mean of (<theta, x_i> + b - y_i)^2 / 2, from X'X and X'y alone.

    Cost and memory per round do not grow with t. The product H theta (H = X'X) is carried: a
    batch adds X'(X theta) to it, and a step along a signed coordinate moves it along one column
    of H, so no round computes an n x n product.

    Parameters
    ----------
    n_features : int
        The length of theta; memory is 8 n^2 bytes.
    fit_intercept : bool
        Add an intercept b, outside the set: F is minimised over it at any theta, by centring the
        sums.
    moments : Moments, optional
        Sums shared with other objectives, which then learn side by side (on their device).
    device : "cpu", "cuda" or "auto"
        Where X'X lives: in this process's memory or on a GPU (which needs ``onlinefw[gpu]``);
        "auto" takes a GPU if there is one. Rows may come as numpy, scipy, CuPy or torch arrays.
        All vectors as long as theta are in this process's memory either way. With ``workers`` the
        device is theirs, one GPU each.
    workers : int, optional
        Let so many workers of a Ray cluster (:mod:`onlinefw.distributed`) add up X'X, whole
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

    def __init__(
        self,
        n_features: int,
        *,
        fit_intercept: bool = False,
        moments: Moments | None = None,
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> None:
        if int(n_features) != n_features or n_features < 1:
            raise ValueError(f"n_features must be a whole number of at least 1, got {n_features}")
        n = int(n_features)
        super().__init__((n,))
        self.fit_intercept = bool(fit_intercept)
        if moments is None:
            moments = sums_of_rows(n, self.fit_intercept, device, workers, log_dir)
        self._moments = moments
        self._moments.lanes.append(self)
        self._b = np.zeros(n)
        self._yy = self._mean_y = 0.0
        self._H_theta = np.zeros(n)
        self._moves = 0
        self._column: tuple[Atom, Array] | None = None
        self._batch: tuple[Any, Array, Array] | None = None

    def __getstate__(self) -> dict[str, Any]:
        batch = self._batch if self._batch is None else (here(self._batch[0]), *self._batch[1:])
        return {**self.__dict__, "_batch": batch}

    def _bring_batch(self) -> None:
        """Hold the last batch in this process's memory, from where it can go anywhere."""
        self.__dict__.update(self.__getstate__())

    @property
    def device(self) -> str:
        """Where X'X lives: "cpu" or "cuda"."""
        return self._moments.device

    @property
    def workers(self) -> int | None:
        """How many workers add up X'X; None: this process does."""
        return self._moments.workers

    def close(self) -> None:
        """Give the workers back, if there are any; without this, they go with the objective."""
        self._moments.close()

    @property
    def total_weight(self) -> float:
        """The total weight of the rows seen."""
        return self._moments.total_weight

    @property
    def _gram(self) -> Any:
        return self._moments.gram

    @property
    def _vector(self) -> Array:
        iterate = self.iterate
        assert isinstance(iterate, DenseIterate)
        return iterate.theta

    @property
    def intercept(self) -> float:
        """The best intercept for the current theta; 0 without one."""
        return self._mean_y - float(self._moments.mean @ self._vector)

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Add rows to the sums; return the weighted mean of their losses at the iterate.

        Or X is a batch of :class:`~onlinefw.distributed.ParquetRows`, without y.
        """
        if len(self._moments.lanes) > 1:
            raise ValueError("these sums are shared with other objectives: use their Moments")
        return self._moments.observe(X, [y], sample_weight)[0]

    def _receive(self, X: Any, y: Array, w: Array) -> float:
        """Take over checked rows; return the weighted mean of their losses."""
        self._batch = (X, y, w)
        self.n_observations += y.size
        return float(w @ self.loss.value(self._predicted(X), y) / w.sum())

    def _predicted(self, X: Any) -> Array:
        return self._gram.products(X, self._vector) + self.intercept

    def _add(self, y: Array, rows: Any, weighted: Any, w: Array, total: float) -> None:
        """Add to the sums, which are made of ``rows``, ``weighted`` and ``w``."""
        targets = y
        if self.fit_intercept:
            batch_mean = float(w[: y.size] @ y) / total
            targets = np.append(y - batch_mean, batch_mean - self._mean_y)
            self._mean_y += total / self.total_weight * (batch_mean - self._mean_y)
        self._b += self._gram.sums(weighted, targets)
        predicted = self._gram.products(rows, self._vector)
        self._H_theta += self._gram.sums(weighted, predicted)
        self._yy += float(w @ targets**2)
        self._column = None

    def gradient(self) -> Array:
        """Return (H theta - b) / sum(w), in O(n)."""
        self._needs_data()
        return (self._H_theta - self._b) / self.total_weight

    def value(self) -> float:
        """Return F_t at the current iterate, in O(n).

        It is a difference of sums of squares, so it is exact to rounding of the mean of y^2 only:
        centre targets that are large compared with their errors.
        """
        self._needs_data()
        theta = self._vector
        quadratic = theta @ (self._H_theta - 2.0 * self._b)
        return max(0.0, float(0.5 * (quadratic + self._yy) / self.total_weight))

    def move(self, atom: Atom, step: float) -> None:
        """Move theta, and H theta with it."""
        column = self._column_of(atom)
        self._H_theta *= 1.0 - step
        self._H_theta += step * column
        self.iterate.move(atom, step)
        self._moved()

    def _moved(self) -> None:
        self._column = None
        self._moves += 1
        # Against rounding drift, so seldom that it costs no more than the moves themselves.
        if self._moves % max(REFRESH_EVERY, self._b.size) == 0:
            self._refresh()

    def _column_of(self, atom: Atom) -> Array:
        """H a, looked up once for a line search and the move that follows it."""
        if self._column is None or self._column[0] is not atom:
            self._column = (atom, self._gram.image(atom))
        return self._column[1]

    def _refresh(self) -> None:
        self._column = None
        self._H_theta = self._gram.times(self._vector)

    def line(self, atom: Atom) -> _QuadraticLine:
        """Return F along theta + c (atom - theta), a parabola."""
        self._needs_data()
        theta, image = self._vector, self._column_of(atom) - self._H_theta  # H d
        gradient = self.gradient()
        slope = atom.dot(gradient) - float(theta @ gradient)
        curvature = (atom.dot(image) - float(theta @ image)) / self.total_weight
        return _QuadraticLine(self.value(), slope, max(curvature, 0.0))

    def coordinate_model(self, chosen: Array) -> _ChosenSquares:
        """Return F in the chosen coordinates."""
        return _ChosenSquares(self, chosen)

    def smoothness(self) -> float:
        """Return the largest eigenvalue of H / sum(w)."""
        self._needs_data()
        return self._gram.largest_eigenvalue() / self.total_weight

    def batch_gradient(self) -> Array:
        """Return the gradient of the last batch's mean loss at the current iterate."""
        self._needs_batch(self._batch)
        assert self._batch is not None
        X, y, w = self._batch
        X = self._gram.bring(X)  # a pickle has brought it here
        return self._gram.sums(X, w * (self._predicted(X) - y) / w.sum())

    def batch_smoothness(self) -> float:
        """Return the smoothness of the last batch's mean loss."""
        self._needs_batch(self._batch)
        assert self._batch is not None
        return spectral_norm_squared(here(self._batch[0]), self._batch[2])

    def state_dict(self) -> State:
        """Return the sums and the iterate."""
        if len(self._moments.lanes) > 1:
            raise ValueError("these sums are shared with other objectives: pickle them together")
        return {
            **self._base_state(),
            "fit_intercept": self.fit_intercept,
            "H": self._gram.values(),
            "mean": self._moments.mean.copy(),
            "total_weight": self.total_weight,
            "b": self._b.copy(),
            "yy": self._yy,
            "mean_y": self._mean_y,
            "H_theta": self._H_theta.copy(),
            "moves": self._moves,
        }

    @classmethod
    def from_state(
        cls,
        state: State,
        *,
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> RunningLeastSquares:
        """Make the objective that ``state_dict`` described, wherever you say."""
        objective = cls(
            state["shape"][0],
            fit_intercept=state["fit_intercept"],
            device=device,
            workers=workers,
            log_dir=log_dir,
        )
        objective._load_base(state)
        moments = objective._moments
        moments.gram.load(state["H"])
        moments.mean = np.array(state["mean"], float)
        moments.total_weight = float(state["total_weight"])
        objective._b = np.array(state["b"], float)
        objective._H_theta = np.array(state["H_theta"], float)
        objective._yy, objective._mean_y = float(state["yy"]), float(state["mean_y"])
        objective._moves = int(state["moves"])
        return objective

    def __repr__(self) -> str:
        return f"RunningLeastSquares({self._b.size}, n_observations={self.n_observations})"


class _ChosenSquares:
    """Gradient and Hessian in the chosen coordinates; F is its own model, so steps are whole."""

    def __init__(self, objective: RunningLeastSquares, chosen: Array) -> None:
        self._objective, self._chosen = objective, chosen
        self.gradient = objective.gradient()[chosen]
        self.hessian = objective._gram.block(chosen) / objective.total_weight

    def move(self, change: Array) -> float:
        objective, iterate = self._objective, self._objective.iterate
        assert isinstance(iterate, DenseIterate)
        objective._H_theta += objective._gram.combine(self._chosen, change)
        iterate.shift(self._chosen, change)
        objective._moved()
        return 1.0


class _QuadraticLine:
    def __init__(self, start: float, slope: float, curvature: float) -> None:
        self._start, self._slope, self.curvature = start, slope, curvature

    def value(self, c: float) -> float:
        return self._start + c * (self._slope + 0.5 * c * self.curvature)

    def slope(self, c: float) -> float:
        return self._slope + c * self.curvature
