"""What regression and classification share: rows in, coefficients out."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import nullcontext
from math import ceil
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_is_fitted

from .._batches import BatchHandle, naming
from .._state import check_state
from .._threads import blas_threads_for
from .._typing import Array, Shape, State
from .._validation import (
    MOST,
    check_row_magnitude,
    check_rows,
    check_targets,
    check_weights,
    check_whole,
    check_width,
)
from .._whole import unchanged_unless_learned
from ..algorithms import NewtonSteps
from ..losses import Loss
from ..readers.rounds import FileRounds
from ..sets import ConvexSet
from .base import StreamingEstimator
from .forgetting import ForgetsRows, check_named
from .linear_parts import LinearParts, is_auto
from .linear_run import LinearRun, new_run, run_from_state
from .opening import FIRST, Opening
from .row_checks import checked_ids, checked_rows, checked_weights, plain_rows
from .row_runs import new_row_runs, row_runs_from_state
from .sparse_state import names_from_state, names_state
from .stream import Batch
from .summary_events import event_room, learn_events, takes_events

__all__ = ["LinearModel"]

#: ``fit`` plays at least so many rounds while radii race: the first cannot tell them apart ...
LEAST_ROUNDS = 10
#: ... unless there are fewer rows than this.
FEW_ROWS = 100


class LinearModel(ForgetsRows, StreamingEstimator):
    """The common part of the regressor and the classifier: see there for the parameters."""

    _run: LinearRun

    def __init__(
        self,
        constraint: str | ConvexSet = "l1",
        radius: float | str = "auto",
        *,
        loss: str | Loss = "square",
        away_steps: bool = False,
        step: Any = None,
        batch_size: int = 256,
        epochs: int = 1,
        inner_steps: int | str = "auto",
        corrective: str | NewtonSteps | None = "auto",
        fit_intercept: bool = True,
        scale: bool | str = "auto",
        past: str = "all",
        max_past: int | None = None,
        half_life: float | str | None = None,
        coef_shape: Shape | None = None,
        expected_size: int | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        history_size: int = 10_000,
        path_size: int = 100,
        max_features: int = MOST,
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
        self.scale = scale
        self.past = past
        self.max_past = max_past
        self.half_life = half_life
        self.coef_shape = coef_shape
        self.expected_size = expected_size
        self.shuffle = shuffle
        self.random_state = random_state
        self.history_size = history_size
        self.path_size = path_size
        self.max_features = max_features
        self.verbose = verbose
        self.device = device
        self.workers = workers

    @classmethod
    def paper(cls, radius: float, **more: Any) -> Self:
        """Return the paper's set-up: one plain step 2 / (t + 1) a round, no intercept.

        Nothing is corrected, scaled or searched. ``more`` are further parameters, or other values
        for these.
        """
        plain: dict[str, Any] = {
            "inner_steps": 1,
            "corrective": None,
            "fit_intercept": False,
            "scale": False,
        }
        return cls(**{"radius": radius, **plain, **more})

    # What the two kinds of model differ in --------------------------------------------------------

    _weights_in_files = ", and name a column of weights: ParquetRows(..., weight=...)"

    @abstractmethod
    def _check_y(self, y: Any, first: bool, classes: Any = None) -> Array:
        """Return targets that the model can learn from; on the first call, learn their kind."""

    @abstractmethod
    def _plain_y(self, y: Any, n: int) -> Array | None:
        """Return targets that need no conversion, checked quickly; None for the full check."""

    def _n_models(self) -> int:
        """How many problems are solved side by side."""
        return 1

    def _labels(self, y: Array) -> Array:
        """Return checked targets as the user gave them."""
        return y

    # Learning -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, ids: Any = None) -> Self:
        """Forget everything and stream the rows in batches of ``batch_size``.

        While radii race each other, the rows are played in at least ten rounds (if there are a
        hundred rows).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or ParquetRows
            The rows. Or, for a regressor, files (:class:`onlinefw.distributed.ParquetRows`) with
            targets as well, in batches of their own size and order, which ``workers`` read
            themselves (this process does where sums of rows suffice, for the square loss with few
            features; while radii race each other; and where columns are scaled).
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            How much each row counts; rows of weight 0 are left out before batches are made.
        ids : array-like of shape (n,), optional
            Whose each row is, text or whole numbers, so that ``forget`` can remove it; only where
            rows are kept.
        """
        return self._fit(X, y, sample_weight, ids)

    def batch_length(self, n: int) -> int:
        """Return how many of n observations make a round of ``fit``."""
        size = check_whole("batch_size", self.batch_size)
        races = is_auto(self.radius) and isinstance(self.constraint, str)
        if not races or n < FEW_ROWS:
            return size
        return min(size, ceil(n / LEAST_ROUNDS))

    def _checked(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        first: bool,
        classes: Any = None,
        ids: Any = None,
    ) -> Batch:
        if not first and classes is None and sample_weight is None and self._is_plain(X):
            plain = self._plain_y(y, X.shape[0])
            if plain is not None:
                named = checked_ids(ids, X.shape[0])
                return Batch(csr_array(X) if issparse(X) else X, plain, ids=named)
        if isinstance(X, (BatchHandle, FileRounds)):
            raise ValueError(self._no_files())
        if first:
            self._forget()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if first:
            most = check_whole("max_features", self.max_features)
            check_width(getattr(X, "shape", ()), most)
        X, y = checked_rows(self, X, y, first=first)
        X, y = check_rows(X, None), self._check_y(y, first, classes)
        named = checked_ids(ids, X.shape[0])
        if sample_weight is None:
            return Batch(X, y, ids=named)
        w = check_weights(checked_weights(self, sample_weight, X), X.shape[0])
        check_row_magnitude(X, y if y.dtype.kind == "f" else np.ones(1), w)
        batch = Batch(X, y, w, ids=named)
        return batch if w.all() else batch.part(w > 0.0)

    def _is_plain(self, X: Any) -> bool:
        """Whether rows need no conversion, and have no names to compare."""
        return plain_rows(X, self.n_features_in_) and not hasattr(self, "feature_names_in_")

    def _new_run(self, first: Batch, n: int | None, rounds: int | None) -> LinearRun:
        parts = LinearParts.of(self, first.X.shape[1], n)
        new: Any = new_row_runs if is_auto(self.half_life) else new_run
        return new(parts, first, self._n_models())

    def _begin(self, first: Batch) -> None:
        super()._begin(first)
        run = self._run
        decides = run.race is not None or (is_auto(self.scale) and is_auto(self.radius))
        if decides and first.y is not None and first.n < FIRST:
            run.opening = Opening()

    def _learn(self, batch: Batch) -> None:
        check_named(self._run, batch.ids)
        self._play(self._learn_batch, batch)

    def _learn_batch(self, batch: Batch) -> None:
        self._run.learn(batch, self._targets(batch.y))
        if self._run.opening is not None:
            self._keep_opening(batch)

    def _learn_in_order(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        batch_size: int,
        classes: Any = None,
        ids: Any = None,
    ) -> Array:
        size, first = check_whole("batch_size", batch_size), "_run" not in self.__dict__
        if not first:
            self._learning("learn")
        played: list[None] = []
        with unchanged_unless_learned(self, played) if first else nullcontext():
            rows = self._batch(X, y, sample_weight, first, classes, ids)
            if rows.y is None:
                raise ValueError(self._no_files())
            if first:
                self._begin(rows.part(slice(0, size)))
            check_named(self._run, rows.ids)
            answers, start = [], 0
            while start < rows.n:
                n, known = self._run.room(rows, start, size), self._run.n_observations > 0
                by_one = size == 1 and takes_events(self._run)  # a summary
                if by_one:
                    n = event_room(self._run, rows.X, rows.n - start)
                batch = rows if n == rows.n else rows.part(slice(start, start + n))
                if by_one:
                    scores = self._play(learn_events, self._run, batch, self._targets(batch.y))
                else:
                    scores = self._play(self._foretell, batch, size)
                answers.append(self._answers(scores) if known else self._guess(n))
                start += n
                played.append(None)
        return np.concatenate(answers) if answers else self._guess(0)

    def _foretell(self, batch: Batch, size: int) -> Array:
        """Learn rows for which the run has room; return their scores from before."""
        scores = self._run.learn_rows(batch, self._targets(batch.y), size)
        if self._run.opening is not None:
            self._keep_opening(batch)
        return scores

    @abstractmethod
    def _answers(self, scores: Array) -> Array:
        """Return predictions from <coef, x> + intercept, a column for each problem."""

    def _keep_opening(self, batch: Batch) -> None:
        """Keep the first rows until they suffice to decide what is "auto"; then decide anew."""
        old = self._run
        opening = old.opening
        assert opening is not None
        opening.put(batch)
        if not opening.is_over:
            return
        rows = opening.batch()
        new = self._new_run(rows, self._expected(), None)
        new.turns, self._run = old.turns, new
        new.learn(rows, self._targets(rows.y))
        new.go_on_from(old)

    def _place(self) -> tuple[str, int | None]:
        # Radii race each other in this process; only the winner's past moves to workers.
        racing = self.workers is not None and self._run.race is not None
        return ("cpu", None) if racing else (self.device, self.workers)

    # Files ----------------------------------------------------------------------------------------

    def _file_rounds(self, files: Any) -> Any:
        raise ValueError(self._no_files())

    def _no_files(self) -> str:
        name = type(self).__name__
        return f"{name} takes arrays here, not files: X, y, weight = batch.read()"

    def _from_file(self, batch: Any, first: bool = False) -> Batch:
        return self._file_rounds(batch)

    # The model ------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def path_(self) -> dict[str, Array]:
        """Coefficients over time: t, seconds, and coef as a sparse array with a row for each t."""
        run = self._fitted("path_")
        return run.path.as_dict(run.n_rounds, run.history.elapsed, run.coefficients[0])

    @property
    def scale_(self) -> Array | None:
        """What columns are divided by before they are learned; None if they are not scaled."""
        scaling = self._fitted("scale_").scaling
        return None if scaling is None else scaling.scale.copy()

    @property
    def gap_estimate_(self) -> float:
        """With ``past="summary"``, the gap of the estimated gradient; else the certificate."""
        return self._fitted("gap_estimate_").gap_estimate()

    def _scores(self, X: Any) -> Array:
        """Return <coef, x> + intercept, one column per problem."""
        if "_run" not in self.__dict__:
            check_is_fitted(self)
        if not self._is_plain(X):
            X = checked_rows(self, X)
            if X.dtype == np.uint8:
                X = X.astype(np.float32)
        coef, intercept = self._run.coefficients
        with blas_threads_for(coef.size * X.shape[0]):
            return np.asarray(X @ coef.T) + intercept

    def _names(self) -> State:
        names: State = {"n_features_in": int(self.n_features_in_)}
        for name in ("feature_names_in_", "classes_"):
            if hasattr(self, name):
                names[name.rstrip("_")] = names_state(name, getattr(self, name))
        return names

    def _load_names(self, state: State) -> None:
        check_state(state, "n_features_in")
        self.n_features_in_ = int(state["n_features_in"])
        for name in ("feature_names_in", "classes"):
            if name in state:
                setattr(self, f"{name}_", names_from_state(name, state[name]))
        classes = getattr(self, "classes_", None)
        if classes is not None and len(classes) < 2:
            raise ValueError("a classifier needs at least 2 classes")
        named = getattr(self, "feature_names_in_", None)
        if named is not None and len(named) != self.n_features_in_:
            raise ValueError("there are not as many feature names as features")

    def _loaded_run(self, state: State) -> LinearRun:
        load: Any = row_runs_from_state if "runs" in state else run_from_state
        return load(self, state, self._n_models())


def checked_file(model: LinearModel, batch: Any) -> Batch:
    """Return what is in a batch of a file."""
    with naming(batch):
        X, y, w = batch.open()
        X = check_rows(X, (model.n_features_in_,))
        y = check_targets(y, X.shape[0], model._loss())
        if w is not None:
            w = check_weights(w, X.shape[0])
    rows = Batch(X, y, w)
    return rows if w is None or w.all() else rows.part(w > 0.0)
