"""Choosing the radius while learning: several side by side on the same stream."""

from __future__ import annotations

from contextlib import nullcontext
from math import ceil
from numbers import Real
from typing import Any, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from .._validation import check_whole
from .._whole import Broken, WholeRound, unchanged_unless_learned
from .base import FIRST_ROWS
from .forgetting import check_named, checked_leavers
from .linear_model import LEAST_ROUNDS, LinearModel
from .linear_parts import LinearParts, has_radius, is_auto, suggested_radii, with_radius
from .linear_run import a_piece, new_run
from .progress import progress
from .race import Race
from .run import CANNOT_LEARN
from .search_state import SearchState
from .spelling import Spelled
from .stream import Batch

__all__ = ["RadiusSearch"]


def _best_has(name: str) -> Any:
    def check(search: RadiusSearch) -> bool:
        getattr(search.best_estimator_ if hasattr(search, "_race") else search.estimator, name)
        return True

    return check


class RadiusSearch(Spelled, SearchState):
    """Learn several radii side by side on one stream, and predict with the best so far.

    The rows are kept once, and each pass over them serves all radii. Every batch is predicted
    before it is learned (progressive validation), so each radius is scored on rows it has not
    seen, and no row has to be held out.

    Parameters
    ----------
    estimator : FrankWolfeRegressor or FrankWolfeClassifier
        The model; its own radius (or that of its set) is not used.
    radii : array-like, optional
        The radii to try. By default twelve, a factor of 2 apart, of the size that the first batch
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
        The radius with the best score so far; round t counts t times, so that early rounds
        matter little, and with a ``half_life`` of the estimator fades as the rows do.
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

    def __init__(
        self,
        estimator: LinearModel,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None) -> Self:
        """Forget everything and stream the rows in the estimator's batches, ten at least.

        At the end the best model is corrected.
        """
        played: list[None] = []
        with unchanged_unless_learned(self, played):
            model = self._checked_estimator()
            epochs = check_whole("epochs", model.epochs)
            whole = model._checked(X, y, sample_weight, True, None, ids)
            size = min(check_whole("batch_size", model.batch_size), ceil(whole.n / LEAST_ROUNDS))
            rounds = model._array_rounds(whole, size)
            self._start(model, rounds.first(size), rounds.first(FIRST_ROWS), whole.n)
            with progress(model.verbose, len(rounds) * epochs) as advance:
                for batch in rounds:
                    self._play(batch)
                    played.append(None)
                    advance()
                for _ in range(len(rounds) * (epochs - 1)):
                    self.refine()
                    advance()
        return self.correct()

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
    ) -> Self:
        """Play one round with these rows, for every radius.

        ``classes`` names all labels in the first call, for a classifier; with ``ids``, one for each
        row, ``forget`` can remove them.
        """
        if self.__sklearn_is_fitted__():
            if self._team is None:
                raise ValueError(CANNOT_LEARN)
            self._play(self.estimators_[0]._checked(X, y, sample_weight, False, classes, ids))
            return self
        with unchanged_unless_learned(self, []):
            model = self._checked_estimator()
            batch = model._checked(X, y, sample_weight, True, classes, ids)
            self._start(model, batch, batch, model._expected())
            self._play(batch)
        return self

    def learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        batch_size: int = 1,
        classes: Any = None,
        ids: Any = None,
    ) -> Array:
        """Play rows in the order given, each predicted by the best radius before it is learned.

        Parameters
        ----------
        X, y, sample_weight, classes, ids
            As for ``partial_fit``.
        batch_size : int
            How many are learned at a time.

        Returns
        -------
        ndarray
            What was predicted for each; before any data 0, or the first class.
        """
        size, first = check_whole("batch_size", batch_size), not self.__sklearn_is_fitted__()
        if not first and self._team is None:
            raise ValueError(CANNOT_LEARN)
        played: list[None] = []
        with unchanged_unless_learned(self, played) if first else nullcontext():
            model = self._checked_estimator() if first else self.estimators_[0]
            rows = model._checked(X, y, sample_weight, first, classes, ids)
            if first:
                beginning = rows.part(slice(0, size))
                self._start(model, beginning, beginning, model._expected())
            answers, start = [], 0
            while start < rows.n:
                n, known = _room(self, rows, start, size), self._race.t > 0
                scores = self._play(rows.part(slice(start, start + n)), size)
                model = self.estimators_[0]
                answers.append(model._answers(scores) if known else model._guess(n))
                start += n
                played.append(None)
        return np.concatenate(answers) if answers else model._guess(0)

    def _checked_estimator(self) -> LinearModel:
        if not isinstance(self.estimator, LinearModel):
            raise ValueError(
                "RadiusSearch takes a FrankWolfeRegressor or a FrankWolfeClassifier, got "
                f'{self.estimator!r} (FrankWolfeMatrixCompletion has radius="auto")'
            )
        if not has_radius(self.estimator):
            raise ValueError(f"the set {self.estimator.constraint!r} has no radius to search for")
        if is_auto(self.estimator.half_life):
            raise ValueError(
                "RadiusSearch compares radii that forget alike: give the estimator a half_life, or "
                'None; alone it has half_life="auto" with radius="auto"'
            )
        if not (isinstance(self.standard_errors, Real) and self.standard_errors >= 0.0):
            raise ValueError(
                f"standard_errors must be a number of at least 0, got {self.standard_errors!r}"
            )
        return clone(self.estimator)

    def _start(self, model: LinearModel, batch: Batch, first: Batch, n: int | None) -> None:
        """Make a model for each radius: ``batch`` suggests the radii, ``first`` the scales."""
        radii = self._checked_radii(model, batch)
        names = {k: v for k, v in vars(model).items() if k.endswith("_")}
        estimators = [with_radius(model, radius) for radius in radii.tolist()]
        for one in estimators:
            one.__dict__.update(names)  # n_features_in_, feature_names_in_, classes_
        parts = [LinearParts.of(one, first.X.shape[1], n) for one in estimators]
        teams = self._make_teams(parts, model.device, model.workers)
        for one, its, team in zip(estimators, parts, teams, strict=True):
            one._run = new_run(its, first, one._n_models(), team)
            one._run.turns = estimators[0]._run.turns  # their rounds are one
        self._scorer = None if self.scoring is None else check_scoring(model, self.scoring)
        self.radii_, self.estimators_ = radii, estimators
        self.__dict__.update(names)
        self._race = Race(len(radii), half_life=parts[0].half_life)
        self._leader = self.best_index_

    def _checked_radii(self, model: LinearModel, batch: Batch) -> Array:
        if self.radii is None:
            # Those of K-sparse vectors are of single coordinates, others of whole vectors.
            k = getattr(model.constraint, "k", 1)
            return np.array(suggested_radii(model._loss(), model._n_models(), batch)) / k
        try:
            radii = np.unique(np.asarray(self.radii, dtype=float).reshape(-1))
        except (TypeError, ValueError):
            radii = np.empty(0)
        if radii.size == 0 or not (np.isfinite(radii).all() and radii.min() > 0.0):
            raise ValueError(f"radii must be positive numbers, got {self.radii!r}")
        return radii

    def _use_place(self) -> None:
        assert self._team is not None
        for one in self.estimators_:
            one._run.history.start()
        one = self.estimators_[0]
        self._team.use_place(one.device, one.workers)

    def _play(self, batch: Batch, size: int | None = None) -> Array:
        """Play rounds of ``size`` rows (or one); return what the best radius predicted for them."""
        size = batch.n if size is None else size
        check_named(self.estimators_[0]._run, batch.ids)
        with (
            self.estimators_[0]._run.turns,
            WholeRound(self, [one._run.mark() for one in self.estimators_]),
        ):
            self._use_place()
            assert self._team is not None and batch.y is not None
            models, one = self.estimators_, self.estimators_[0]
            scores = None if self._scorer is None else self._scored(batch)
            run, best = one._run, self._leader
            X = batch.X if run.scaling is None else run.scaling.apply(batch.X)
            w = np.ones(batch.n) if batch.w is None else batch.w
            targets, rounds = one._targets(batch.y) * len(models), -(-batch.n // size)
            told = self._team.foretell(X, targets, w, rounds, batch.ids)
            for model in models:
                model._run.n_observations += batch.n
                model._run.n_rounds += rounds - 1
            self._share(told.rounds)
            if scores is None:
                losses = run.losses(told.predicted, targets, len(models))
                self._race.add_rows(-losses, w, size)
            else:
                self._race.add(scores, batch.weight, batch.n)
            if told.moved:
                self._leader = self.best_index_
            return told.predicted[:, best * run.n_models : (best + 1) * run.n_models]

    def round_failed(self, error: BaseException, marks: list[Any]) -> None:
        """If the round has changed anything before it failed, refuse everything from now on."""
        pairs = zip(self.estimators_, marks, strict=True)
        if not all(one._run.is_at(mark) for one, mark in pairs):
            for one in self.estimators_:
                one._run = Broken(error)
            self._team = self._race = cast(Any, Broken(error))

    def refine(self) -> Self:
        """Play a round of every radius without new rows, over what is kept of the past."""
        check_is_fitted(self)
        if self._team is None:
            raise ValueError(CANNOT_LEARN)
        with (
            self.estimators_[0]._run.turns,
            WholeRound(self, [one._run.mark() for one in self.estimators_]),
        ):
            self._use_place()
            self._share(self._team.refine())
            for one in self.estimators_:
                one._run.n_refined += 1
        return self

    def correct(self) -> Self:
        """Bring the model of the best radius to the optimum of now, if it has a ``corrective``."""
        check_is_fitted(self)
        if self._team is None:
            raise ValueError(CANNOT_LEARN)
        with (
            self.estimators_[0]._run.turns,
            WholeRound(self, [one._run.mark() for one in self.estimators_]),
        ):
            self._use_place()
            self.best_estimator_._run.correct()
        return self

    def forget(self, ids: Any) -> Self:
        """Forget all rows of an id, or of several: see :meth:`FrankWolfeRegressor.forget`.

        The models of all radii are corrected without them; their scores are of all that came.
        """
        check_is_fitted(self)
        if self._team is None:
            raise ValueError(CANNOT_LEARN)
        run = self.estimators_[0]._run
        with run.turns:
            some = checked_leavers(run, ids)
            with WholeRound(self, [one._run.mark() for one in self.estimators_]):
                self._use_place()
                rounds = self._team.forget(some)
                self._share(rounds)
                for one in self.estimators_ if rounds else ():
                    one._run.n_refined += 1
        return self

    def _share(self, rounds: list[Any]) -> None:
        """Let every model note its own rounds, if there were any, and that it has changed."""
        for k, one in enumerate(self.estimators_):
            one._run._known = None
            if rounds:
                one._run._note(one._run._of(rounds, k))

    def _scored(self, batch: Batch) -> Array:
        assert batch.y is not None
        labels = self.estimators_[0]._labels(batch.y)
        extra = {} if batch.w is None else {"sample_weight": batch.w}
        return np.array([self._scorer(one, batch.X, labels, **extra) for one in self.estimators_])

    # The model ------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_race")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, LinearModel):
            inner = self.estimator.__sklearn_tags__()
            tags.estimator_type = inner.estimator_type
            tags.regressor_tags, tags.classifier_tags = inner.regressor_tags, inner.classifier_tags
            tags.target_tags.required = True
            tags.input_tags.sparse = True
        return tags

    @property
    def can_learn_(self) -> bool:
        """Whether the past is there, so that learning can go on."""
        check_is_fitted(self)
        return self._team is not None

    @property
    def scores_(self) -> Array:
        """The score of every radius so far, the larger the better."""
        check_is_fitted(self)
        return self._race.means

    @property
    def best_index_(self) -> int:
        """The index of the best radius in ``radii_``."""
        check_is_fitted(self)
        return self._race.simplest(self.standard_errors)

    @property
    def best_radius_(self) -> float:
        """The radius with the best score so far."""
        return float(self.radii_[self.best_index_])

    @property
    def best_estimator_(self) -> Any:
        """The model with that radius."""
        best = self.best_index_
        return self.estimators_[best]

    @property
    def n_rounds_(self) -> int:
        """Rounds played."""
        return self.best_estimator_.n_rounds_

    def predict(self, X: Any) -> Array:
        """Predict with the best model so far."""
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the best model's accuracy or R^2."""
        return self.best_estimator_.score(X, y, sample_weight)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Return the best model's scores."""
        return self.best_estimator_.decision_function(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the best model's probabilities."""
        return self.best_estimator_.predict_proba(X)


def _room(search: RadiusSearch, rows: Batch, start: int, size: int) -> int:
    """Return how many rows, in whole rounds, come before a model changes or must be scored."""
    assert search._team is not None
    if search._scorer is not None:
        return min(size, rows.n - start)
    most = a_piece(rows.X, len(search._team.learners))
    most = min(-(-most // size) * size, rows.n - start)
    w = np.ones(most) if rows.w is None else rows.w[start : start + most]
    return search._team.room(w, size)
