"""Choosing the radius while learning: several side by side on the same stream."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from math import ceil
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from .._validation import check_whole
from ..algorithms.side_by_side import SideBySide
from ..losses import Correntropy, Gaussian, Square
from .learnable import check_can_learn
from .linear_model import StreamingLinearModel, batches
from .progress import progress

__all__ = ["RadiusSearch"]

#: ``fit`` makes at least so many rounds, by smaller batches if need be: the first says nothing.
LEAST_ROUNDS = 10
#: The radii tried by default are these powers of 3 times what makes predictions of the right size.
POWERS = range(-1, 7)


def _best_has(name: str) -> Any:
    def check(search: RadiusSearch) -> bool:
        getattr(search.best_estimator_ if hasattr(search, "_scores") else search.estimator, name)
        return True

    return check


class RadiusSearch(MetaEstimatorMixin, BaseEstimator):
    """Learn several radii side by side on one stream, and predict with the best so far.

    The rows are kept once, and each pass over them serves all radii. Every batch is predicted
    before it is learned (progressive validation), so each radius is scored on rows it has not
    seen, and no row has to be held out.

    Parameters
    ----------
    estimator : FrankWolfeRegressor or FrankWolfeClassifier
        The model; its own radius (or that of its set) is not used.
    radii : array-like, optional
        The radii to try. By default eight, a factor of 3 apart, of the size that the first batch
        suggests.
    scoring : str or callable, optional
        A scikit-learn scorer, applied to each batch before it is learned (one for which it is not
        defined does not count). By default the model's own loss decides.
    standard_errors : float
        Prefer the smallest radius (the simplest model) whose score is within so many standard
        errors of the best one. 0 takes the best.

    Attributes
    ----------
    best_radius_ : float
        The radius with the best score so far; round t counts t times, so that what happened
        before much was known matters little.
    best_estimator_ : estimator
        Its model.
    radii_ : ndarray
        The radii.
    scores_ : ndarray
        Their scores, the larger the better: minus the mean loss, or the scorer's.
    estimators_ : list
        All models. They share their rows.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> search = ofw.RadiusSearch(ofw.FrankWolfeRegressor(), radii=[0.3, 3.0, 30.0])
    >>> for _ in range(20):
    ...     X = rng.standard_normal((20, 50))
    ...     search = search.partial_fit(X, X[:, 0] - 2 * X[:, 1] + rng.standard_normal(20))
    >>> search.best_radius_
    3.0
    """

    radii_: Array
    estimators_: list[StreamingLinearModel]
    _team: SideBySide
    _scores: RunningScores
    _scorer: Any
    _t: int

    def __init__(
        self,
        estimator: StreamingLinearModel,
        radii: Any = None,
        *,
        scoring: Any = None,
        standard_errors: float = 0.0,
    ) -> None:
        self.estimator = estimator
        self.radii = radii
        self.scoring = scoring
        self.standard_errors = standard_errors

    # Learning -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything and stream the rows in the estimator's batches, ten at least."""
        model = self._checked_estimator()
        self.__dict__.pop("_scores", None)
        X, y_checked, w = model._checked(X, y, sample_weight, first=True)
        size = min(check_whole("batch_size", model.batch_size), ceil(X.shape[0] / LEAST_ROUNDS))
        parts = batches(model, X.shape[0], size)
        with progress(model.verbose, len(parts)) as advance:
            for k, part in enumerate(parts):
                if k == 0:
                    self._start(model, X[part], y_checked[part])
                self._play(X, y_checked, w, part)
                advance()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Play one round with these rows, for every radius.

        ``classes`` names all labels in the first call, for a classifier.
        """
        check_can_learn(self)
        first = not self.__sklearn_is_fitted__()
        model = self._checked_estimator() if first else self.estimators_[0]
        X, y, w = model._checked(X, y, sample_weight, first, classes)
        if first:
            self._start(model, X, y)
        try:
            self._play(X, y, w, slice(None))
        except ValueError:
            if first:  # nothing has been learned: the search is not fitted
                del self._scores
            raise
        return self

    def _checked_estimator(self) -> StreamingLinearModel:
        if not isinstance(self.estimator, StreamingLinearModel):
            raise ValueError(
                "RadiusSearch takes a FrankWolfeRegressor or a FrankWolfeClassifier, got "
                f'{self.estimator!r} (FrankWolfeMatrixCompletion has radius="auto")'
            )
        constraint = self.estimator.constraint
        if not isinstance(constraint, str) and not (
            is_dataclass(constraint) and hasattr(constraint, "radius")
        ):
            raise ValueError(f"the set {constraint!r} has no radius to search for")
        return clone(self.estimator)

    def _start(self, model: StreamingLinearModel, X: Any, y: Array) -> None:
        if not (isinstance(self.standard_errors, Real) and self.standard_errors >= 0.0):
            raise ValueError(
                f"standard_errors must be a number of at least 0, got {self.standard_errors!r}"
            )
        radii = self._checked_radii(model, X, y)
        past = model._new_past(X.shape[1])
        fitted = {k: v for k, v in vars(model).items() if k.endswith("_")}
        estimators = []
        for radius in radii:
            one = with_radius(model, float(radius))
            for name, value in fitted.items():  # n_features_in_, feature_names_in_, classes_
                setattr(one, name, value)
            one._start(X, past)
            estimators.append(one)
        self.radii_, self.estimators_ = radii, estimators
        self._team = SideBySide(past, [k for one in estimators for k in one._team.learners])
        self._scorer = None if self.scoring is None else check_scoring(model, self.scoring)
        self._scores, self._t = RunningScores(len(radii)), 0
        self.__dict__.pop("_only_predicts", None)
        for name, value in fitted.items():
            setattr(self, name, value)

    def _checked_radii(self, model: StreamingLinearModel, X: Any, y: Array) -> Array:
        if self.radii is None:
            return suggested_radius(model, X, y) * 3.0 ** np.array(POWERS)
        try:
            radii = np.unique(np.asarray(self.radii, dtype=float).reshape(-1))
        except (TypeError, ValueError):
            radii = np.empty(0)
        if radii.size == 0 or not (np.isfinite(radii).all() and radii.min() > 0.0):
            raise ValueError(f"radii must be positive numbers, got {self.radii!r}")
        return radii

    def _play(self, X: Any, y: Array, w: Array | None, part: Any) -> None:
        for one in self.estimators_:
            one._history.start()
        self._team.use_places(self.estimators_[0].device, self.estimators_[0].workers)
        if part is None:
            self._share(self._team.refine())
            return
        rows, targets = X[part], y[part]
        weights = None if w is None else w[part]
        scores = None if self._scorer is None else self._scored(rows, targets, weights)
        lanes = self.estimators_[0]._targets(targets)
        rounds = self._team.observe(rows, lanes * len(self.radii_), weights)
        self._share(rounds)
        losses = np.array([one.loss for one in rounds]).reshape(len(self.radii_), -1).mean(axis=1)
        self._t += 1
        share = self._t * (targets.size if weights is None else float(weights.sum()))
        self._scores.add(-losses if scores is None else scores, share)

    def _share(self, rounds: list[Any]) -> None:
        """Let every model keep its own history."""
        lanes = len(rounds) // len(self.radii_)
        for k, one in enumerate(self.estimators_):
            one._record(rounds[k * lanes : (k + 1) * lanes])

    def _scored(self, X: Any, y: Array, w: Array | None) -> Array:
        labels = self.estimators_[0]._labels(y)
        extra = {} if w is None else {"sample_weight": w}
        assert self._scorer is not None
        return np.array([self._scorer(one, X, labels, **extra) for one in self.estimators_])

    # The model ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if isinstance(self.scoring, str):  # found again by its name
            state.pop("_scorer", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(self.scoring, str) and self.__sklearn_is_fitted__():
            self._scorer = check_scoring(self.estimator, self.scoring)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_scores")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, StreamingLinearModel):
            inner = self.estimator.__sklearn_tags__()
            tags.estimator_type = inner.estimator_type
            tags.regressor_tags, tags.classifier_tags = inner.regressor_tags, inner.classifier_tags
            tags.target_tags.required = True
            tags.input_tags.sparse = True
        return tags

    @property
    def scores_(self) -> Array:
        """The score of every radius so far, the larger the better."""
        check_is_fitted(self)
        return self._scores.means

    @property
    def best_index_(self) -> int:
        """The place of the best radius in ``radii_``."""
        check_is_fitted(self)
        means = self._scores.means
        best = np.flatnonzero(means == means.max())
        chosen = int(best[best.size // 2])  # while nothing is known, not the extremes
        slack = self.standard_errors * self._scores.standard_error(chosen) if self._t > 1 else 0.0
        return chosen if slack == 0.0 else int(np.flatnonzero(means >= means.max() - slack)[0])

    @property
    def best_radius_(self) -> float:
        """The radius with the best score so far."""
        return float(self.radii_[self.best_index_])

    @property
    def best_estimator_(self) -> StreamingLinearModel:
        """The model with that radius."""
        return self.estimators_[self.best_index_]

    def predict(self, X: Any) -> Array:
        """Predict with the best model so far."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the best model's accuracy or R^2."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Return the best model's scores."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the best model's probabilities."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)


class RunningScores:
    """Weighted means of scores over rounds, and how uncertain they are.

    A round with a score that is not defined says nothing; an infinite loss is never made good.
    """

    def __init__(self, n: int) -> None:
        self._weight, self._total = 0.0, np.zeros(n)
        # Sums of weight^2 times 1, score and score^2.
        self._sums = np.zeros((3, n))

    def add(self, scores: Array, weight: float) -> None:
        """Add a round."""
        if not np.isnan(scores).any():
            self._weight += weight
            self._total += weight * scores
            self._sums += weight**2 * np.array([np.ones_like(scores), scores, scores**2])

    @property
    def means(self) -> Array:
        """The mean scores; 0 before the first."""
        return self._total / self._weight if self._weight else self._total.copy()

    def standard_error(self, k: int) -> float:
        """Return the standard error of the mean score k, from its spread over the rounds."""
        mean = self.means[k]
        if self._weight == 0.0 or not np.isfinite(mean):
            return 0.0
        ones, first, second = self._sums[:, k]
        spread = second - 2.0 * mean * first + mean**2 * ones
        return float(np.sqrt(max(spread, 0.0))) / self._weight


def with_radius(model: StreamingLinearModel, radius: float) -> StreamingLinearModel:
    """Return a new model whose set, given by name or as an object, has another radius."""
    if isinstance(model.constraint, str):
        return clone(model).set_params(radius=radius)
    constraint: Any = model.constraint  # sets with a radius are dataclasses
    return clone(model).set_params(constraint=replace(constraint, radius=radius))


def suggested_radius(model: StreamingLinearModel, X: Any, y: Array) -> float:
    """Return the radius at which one coordinate alone gives predictions as large as they should be.

    The size of the targets (or 1, where the loss has a scale of its own) over the largest root
    mean square of a feature.
    """
    squares = X.astype(float).power(2) if sparse.issparse(X) else np.square(X, dtype=float)
    largest = float(np.sqrt(np.max(np.asarray(squares.mean(axis=0)))))
    spread = 1.0
    if isinstance(model._loss(), (Square, Gaussian, Correntropy)) and model._lanes() == 1:
        spread = float(np.std(y)) or 1.0
    return spread / largest if largest > 0.0 else 1.0
