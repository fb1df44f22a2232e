"""What regression and classification share: streaming rows into learners on one past."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from math import ceil
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._arrays import received_here
from .._typing import Array, Shape
from .._validation import check_finite, check_part, check_whole
from ..algorithms import Learner, NewtonSteps, OnlineAwayFrankWolfe, OnlineFrankWolfe, Round
from ..algorithms.side_by_side import SideBySide
from ..distributed.file_rounds import FileBatch, FileRounds
from ..losses import Loss, Square
from ..objectives import LinearObjective, RunningLeastSquares
from ..objectives.least_squares import Moments, sums_of_rows
from ..objectives.row_store import RowStore, row_store
from ..sets import ConvexSet, L1Ball, L2Ball, LinfBall, Simplex, TraceNormBall
from ..steps import Harmonic, LineSearch
from .callbacks import CallbackSupportMixin, RoundCallbacks, with_callbacks
from .history import History
from .learnable import check_can_learn
from .path import Path
from .progress import progress
from .unpickled import GoesOnHere

__all__ = ["CONSTRAINTS", "StreamingLinearModel", "batches"]

CONSTRAINTS: dict[str, type[Any]] = {
    "l1": L1Ball,
    "l2": L2Ball,
    "linf": LinfBall,
    "simplex": Simplex,
    "trace": TraceNormBall,
}
#: The square loss with at most this many features is kept as sums (8 n^2 bytes, constant cost).
MOST_SUMS = 1024
#: The radius by default, which says nothing about a set that is given as an object.
RADIUS = 1.0
#: Numbers that are kept as they come; everything else becomes double precision.
KEPT = (np.float64, np.float32, np.uint8)


class StreamingLinearModel(GoesOnHere, CallbackSupportMixin, BaseEstimator, ABC):
    """The common part of the regressor and the classifier: see there for the parameters."""

    def __init__(
        self,
        constraint: str | ConvexSet = "l1",
        radius: float = RADIUS,
        *,
        loss: str | Loss = "square",
        away_steps: bool = False,
        step: Any = None,
        batch_size: int = 256,
        epochs: int = 1,
        inner_steps: int | str = "auto",
        corrective: str | NewtonSteps | None = "auto",
        fit_intercept: bool = True,
        past: str = "all",
        max_past: int | None = None,
        coef_shape: Shape | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        history_size: int = 10_000,
        path_size: int = 100,
        verbose: int = 0,
        device: str = "cpu",
        workers: int | None = None,
    ) -> None:
        self.constraint = constraint
        self.radius = radius
        self.loss = loss
        self.away_steps = away_steps
        self.step = step
        self.batch_size = batch_size
        self.epochs = epochs
        self.inner_steps = inner_steps
        self.corrective = corrective
        self.fit_intercept = fit_intercept
        self.past = past
        self.max_past = max_past
        self.coef_shape = coef_shape
        self.shuffle = shuffle
        self.random_state = random_state
        self.history_size = history_size
        self.path_size = path_size
        self.verbose = verbose
        self.device = device
        self.workers = workers

    # What the two kinds of model differ in --------------------------------------------------------

    _losses: dict[str, Any]

    @abstractmethod
    def _check_y(self, y: Any, first: bool, classes: Any = None) -> Array:
        """Return targets that the model can learn from; on the first call, learn their kind."""

    def _lanes(self) -> int:
        """How many problems are solved side by side."""
        return 1

    def _targets(self, y: Array) -> list[Array]:
        """Return the targets of each problem."""
        return [y]

    def _labels(self, y: Array) -> Array:
        """Return checked targets as the user gave them."""
        return y

    # Learning -------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything and stream the rows in batches of ``batch_size``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            The rows.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            How much each row counts; rows of weight 0 are left out before batches are made.
        """
        self._forget()
        X, y, w = self._checked(X, y, sample_weight, first=True)
        parts = batches(self, X.shape[0], check_whole("batch_size", self.batch_size))
        self._start(X)
        return self._stream(parts, partial(self._play, X, y, w), X=X, y=y)

    def _stream(self, parts: list[Any], play: Callable[[Any], None], **data: Any) -> Self:
        """Play a round with each part of the data."""
        callbacks = RoundCallbacks(self, len(parts), **data)
        with progress(self.verbose, len(parts)) as advance:
            for part in parts:
                if callbacks.play(partial(play, part)):
                    break
                advance()
        callbacks.end()
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        check_can_learn(self)
        first = not self.__sklearn_is_fitted__()
        X, y, w = self._checked(X, y, sample_weight, first, classes)
        if first:
            self._start(X)
        try:
            self._play(X, y, w, slice(None))
        except ValueError:
            if first:  # nothing has been learned: the model is not fitted
                self._forget()
            raise
        return self

    def _play(self, X: Any, y: Array, w: Array | None, part: Any) -> None:
        """Play a round with a part of the rows, or (None) with those already held."""
        if part is None:
            self._round()
        else:
            self._round(X[part], self._targets(y[part]), None if w is None else w[part])

    def _round(self, *new: Any) -> None:
        """Play a round with new rows, targets and weights, or with those already held."""
        self._history.start()
        self._team.use_places(self.device, self.workers)
        self._record(self._team.observe(*new) if new else self._team.refine())

    def _record(self, rounds: list[Round]) -> None:
        self._history.append(_summary(rounds))
        self._path.append(rounds[0].t, self._history.elapsed, lambda: self.coef_)

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, first: bool, classes: Any = None
    ) -> tuple[Any, Array, Array | None]:
        """Refuse bad input before anything changes."""
        if isinstance(X, (FileBatch, FileRounds)):
            raise ValueError(
                f"{type(self).__name__} learns from arrays here: X, y, weight = batch.read()"
            )
        X, y, sample_weight = self._here(X=X, y=y, sample_weight=sample_weight)
        if y is not None and not issparse(y):
            check_finite("y", np.asarray(y))
        X, y = validate_data(
            self,
            X,
            y,
            reset=first,
            accept_sparse="csr",
            dtype=KEPT,
            order="C",
            y_numeric=False,
            ensure_all_finite=False,  # we say where, below
        )
        check_finite("X", X, getattr(self, "feature_names_in_", None))
        y = self._check_y(y, first, classes)
        if sample_weight is None:
            return X, y, None
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        counts = w > 0.0
        if not counts.any():
            raise ValueError("sample_weight is zero for every row; at least one row must count")
        return (X, y, w) if counts.all() else (X[counts], y[counts], w[counts])

    def _here(self, **arrays: Any) -> list[Any]:
        """Return arrays that are on a GPU in this process's memory, where batches are made."""
        return [received_here(name, values, self.device) for name, values in arrays.items()]

    def _forget(self) -> None:
        for name in ("_team", "_history", "_path", "_only_predicts"):
            self.__dict__.pop(name, None)

    def _start(self, X: Any, past: RowStore | Moments | None = None) -> None:
        """Make the learners; parameters are checked here, as scikit-learn wants it."""
        n_features = X.shape[1]
        history_size = check_whole("history_size", self.history_size, 2)
        path_size = check_whole("path_size", self.path_size, 0)
        past = self._new_past(n_features) if past is None else past
        learners = [self._new_learner(n_features, past) for _ in range(self._lanes())]
        self._history, self._path = History(history_size), Path(path_size)
        self._team = SideBySide(past, learners)
        # Singles and bytes give coefficients and predictions in single precision.
        self._precision = np.float64 if X.dtype == np.float64 else np.float32

    def _new_past(self, n_features: int) -> RowStore | Moments:
        """Make what is kept of the past: sums where they suffice, else rows."""
        RowStore(self.past, self.max_past, self._seed(1))  # checks them, also where sums suffice
        plain = type(self._loss()) is Square and self.past == "all" and self.coef_shape is None
        where = (self.device, self.workers)
        if plain and n_features <= MOST_SUMS:
            return sums_of_rows(n_features, bool(self.fit_intercept), *where)
        return row_store(self.past, self.max_past, self._seed(1), *where)

    def _seed(self, *purpose: int) -> Any:
        """Return what to draw random numbers from: others for each purpose."""
        if self.random_state is None or isinstance(self.random_state, np.random.Generator):
            return self.random_state
        otherwise = ", a numpy Generator or None"
        return [check_whole("random_state", self.random_state, 0, otherwise), *purpose]

    def _new_learner(self, n_features: int, past: RowStore | Moments) -> Learner:
        shape, constraint = self._shape(n_features), self._set()
        objective: LinearObjective | RunningLeastSquares
        if isinstance(past, Moments):
            objective = RunningLeastSquares(
                n_features, fit_intercept=self.fit_intercept, moments=past
            )
        else:
            sizes: dict[str, Any] = (
                {"shape": shape} if len(shape) == 2 else {"n_features": n_features}
            )
            objective = LinearObjective(
                self._loss(), fit_intercept=self.fit_intercept, store=past, **sizes
            )
        step, corrective = self._step_rule(constraint), self._corrective(constraint)
        if self.away_steps:
            return OnlineAwayFrankWolfe(objective, constraint, step, self.inner_steps)
        return OnlineFrankWolfe(
            objective, constraint, step, self.inner_steps, corrective=corrective
        )

    def _loss(self) -> Loss:
        if isinstance(self.loss, str) and self.loss in self._losses:
            return self._losses[self.loss]()
        names = ", ".join(self._losses)
        if isinstance(self.loss, str):
            raise ValueError(f"loss must be one of {names} or a Loss, got {self.loss!r}")
        check_part("loss", self.loss, Loss, f'{next(iter(self._losses.values()))()} or "{names}"')
        return self.loss

    def _set(self) -> ConvexSet:
        if isinstance(self.constraint, str):
            if self.constraint not in CONSTRAINTS:
                raise ValueError(
                    f"constraint must be one of {', '.join(CONSTRAINTS)} or a set of "
                    f"onlinefw.sets, got {self.constraint!r}"
                )
            if not isinstance(self.radius, Real):
                raise ValueError(f"radius must be a positive number, got {self.radius!r}")
            return CONSTRAINTS[self.constraint](float(self.radius))
        check_part("constraint", self.constraint, ConvexSet, 'L1Ball(1.0), or a name such as "l1"')
        if self.radius != RADIUS:
            raise ValueError(
                f"radius={self.radius!r} is for a set given by name, but constraint is "
                f"{self.constraint!r}, whose size is its own: leave radius out, or pass a name "
                'such as "l1"'
            )
        return self.constraint

    def _shape(self, n_features: int) -> Shape:
        needs_matrix = self._set().needs_matrix
        if self.coef_shape is None:
            if needs_matrix:
                raise ValueError(
                    f"{self._set()} needs matrix-shaped features: pass coef_shape=(m1, m2) with "
                    f"m1 * m2 = {n_features} (the number of columns of X)"
                )
            return (n_features,)
        if np.shape(self.coef_shape) != (2,):
            raise ValueError(f"coef_shape must be (m1, m2) or None, got {self.coef_shape!r}")
        m1, m2 = (check_whole("each side of coef_shape", side) for side in self.coef_shape)
        if m1 * m2 != n_features:
            raise ValueError(
                f"X has {n_features} features, but coef_shape={self.coef_shape!r} is for {m1 * m2}"
            )
        return (m1, m2)

    def _step_rule(self, constraint: ConvexSet) -> Any:
        if isinstance(self.step, str) and self.step == "line-search":
            return LineSearch()
        if self.step is not None:
            return self.step
        searched = self.inner_steps == "auto" and (constraint.contains_zero or self.away_steps)
        return LineSearch() if searched else Harmonic(2)

    def _corrective(self, constraint: ConvexSet) -> NewtonSteps | None:
        if isinstance(self.corrective, str) and self.corrective == "auto":
            wanted = self.inner_steps == "auto" and isinstance(constraint, L1Ball)
            return NewtonSteps() if wanted and not self.away_steps else None
        if self.corrective is not None and not isinstance(self.corrective, NewtonSteps):
            raise ValueError(
                f'corrective must be "auto", None or NewtonSteps(), got {self.corrective!r}'
            )
        if self.corrective is not None and self.away_steps:
            raise ValueError(
                f'{self.corrective} corrects O-FW: use away_steps=False or corrective="auto"'
            )
        return self.corrective

    # The model ------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_team")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fitted(self, name: str) -> SideBySide:
        """Return the learners, or say (as AttributeError) that there is no such attribute yet."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted")
        return self._team

    @property
    def _thetas(self) -> Array:
        team = self._fitted("coef_")
        rows = [np.asarray(one.theta).reshape(-1) for one in team.learners]
        return np.array(rows, dtype=self._precision)

    @property
    def _intercepts(self) -> Array:
        objectives: list[Any] = [one.objective for one in self._fitted("intercept_").learners]
        return np.array([one.intercept for one in objectives], self._precision)

    @property
    def n_rounds_(self) -> int:
        """Rounds played."""
        return self._fitted("n_rounds_").learners[0].t

    @property
    def gap_(self) -> float:
        """The certificate of the current coefficients, computed when asked for.

        For a convex loss the mean loss over the rows kept is at most this far above its minimum
        over the set (with any intercept); of several classes, the largest.
        """
        return max(one.certificate() for one in self._fitted("gap_").learners)

    @property
    def objective_(self) -> Any:
        """What is kept of the past (a list with one per class, if there are more than two)."""
        objectives = [one.objective for one in self._fitted("objective_").learners]
        return objectives[0] if len(objectives) == 1 else objectives

    @property
    def history_(self) -> dict[str, Array]:
        """The rounds as columns: t, loss (paid before learning), gap, step_size, kind, seconds."""
        self._fitted("history_")
        return self._history.as_dict()

    @property
    def path_(self) -> dict[str, Array]:
        """Coefficients over time: t, seconds, and coef as a sparse array with a row for each t."""
        self._fitted("path_")
        return self._path.as_dict(self.n_rounds_, self._history.elapsed, self.coef_)

    def _scores(self, X: Any) -> Array:
        """Return <theta, x> + intercept, one column per problem."""
        check_is_fitted(self)
        (X,) = self._here(X=X)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=KEPT, ensure_all_finite=False
        )
        check_finite("X", X, getattr(self, "feature_names_in_", None))
        thetas, intercepts = self._thetas, self._intercepts
        if X.dtype == np.uint8:
            X = X.astype(np.float32)
        return np.asarray(X @ thetas.T) + intercepts


def batches(model: StreamingLinearModel, n_rows: int, size: int) -> list[Any]:
    """Return the rows of each round of ``fit``; None where no new ones come."""
    epochs = check_whole("epochs", model.epochs)
    rounds = ceil(n_rows / size)
    parts: list[Any] = [slice(k * size, (k + 1) * size) for k in range(rounds)]
    if model.shuffle:
        order = np.random.default_rng(model._seed()).permutation(n_rows)
        parts = [order[part] for part in parts]
    return parts + [None] * (rounds * (epochs - 1))


def _summary(rounds: list[Round]) -> Round:
    """One round for several problems: their mean loss, and the one with the largest gap."""
    widest = max(rounds, key=lambda one: one.gap)
    loss = float(np.mean([one.loss for one in rounds]))
    values = {name: getattr(widest, name) for name in Round.__slots__}
    return Round(**{**values, "loss": loss})
