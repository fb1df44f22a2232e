"""Choosing the radius while learning: several side by side on the same stream."""

from __future__ import annotations

from math import ceil
from numbers import Real
from typing import Any, Self, cast

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._state import check_state
from .._typing import Array, State
from .._validation import check_whole
from .._whole import Broken, WholeRound, unchanged_unless_learned
from ..algorithms.side_by_side import SideBySide
from .base import FIRST_ROWS
from .learned_model import SavedByState
from .linear_model import LEAST_ROUNDS, LinearModel
from .linear_parts import LinearParts, has_radius, suggested_radii, together, with_radius
from .linear_run import check_team, new_run, run_from_state
from .progress import progress
from .race import Race
from .run import CANNOT_LEARN
from .stream import Batch

__all__ = ["RadiusSearch"]


def _best_has(name: str) -> Any:
    def check(search: RadiusSearch) -> bool:
        getattr(search.best_estimator_ if hasattr(search, "_race") else search.estimator, name)
        return True

    return check


class RadiusSearch(MetaEstimatorMixin, SavedByState):
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
        The radius with the best score so far; round t counts t times, so that early rounds
        matter little.
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
    estimators_: list[Any]
    _team: SideBySide | None
    _race: Race
    _scorer: Any

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything and stream the rows in the estimator's batches, ten at least."""
        played: list[None] = []
        with unchanged_unless_learned(self, played):
            model = self._checked_estimator()
            epochs = check_whole("epochs", model.epochs)
            whole = model._checked(X, y, sample_weight, first=True)
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
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Play one round with these rows, for every radius.

        ``classes`` names all labels in the first call, for a classifier.
        """
        if self.__sklearn_is_fitted__():
            if self._team is None:
                raise ValueError(CANNOT_LEARN)
            self._play(self.estimators_[0]._checked(X, y, sample_weight, False, classes))
            return self
        with unchanged_unless_learned(self, []):
            model = self._checked_estimator()
            batch = model._checked(X, y, sample_weight, True, classes)
            self._start(model, batch, batch, model._expected())
            self._play(batch)
        return self

    def _checked_estimator(self) -> LinearModel:
        if not isinstance(self.estimator, LinearModel):
            raise ValueError(
                "RadiusSearch takes a FrankWolfeRegressor or a FrankWolfeClassifier, got "
                f'{self.estimator!r} (FrankWolfeMatrixCompletion has radius="auto")'
            )
        if not has_radius(self.estimator):
            raise ValueError(f"the set {self.estimator.constraint!r} has no radius to search for")
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
        self._race = Race(len(radii))

    def _checked_radii(self, model: LinearModel, batch: Batch) -> Array:
        if self.radii is None:
            return np.array(suggested_radii(model._loss(), model._n_models(), batch))
        try:
            radii = np.unique(np.asarray(self.radii, dtype=float).reshape(-1))
        except (TypeError, ValueError):
            radii = np.empty(0)
        if radii.size == 0 or not (np.isfinite(radii).all() and radii.min() > 0.0):
            raise ValueError(f"radii must be positive numbers, got {self.radii!r}")
        return radii

    def _make_teams(
        self, parts: list[LinearParts], device: str, workers: int | None
    ) -> list[SideBySide]:
        """Make the learners, which take their steps side by side; return those of each model."""
        n = parts[0].model._n_models()
        self._team = together([(one, one.radius) for one in parts], n, device, workers)
        learners = self._team.learners
        return [SideBySide(learners[k : k + n]) for k in range(0, len(learners), n)]

    def _use_place(self) -> None:
        assert self._team is not None
        for one in self.estimators_:
            one._run.history.start()
        one = self.estimators_[0]
        self._team.use_place(one.device, one.workers)

    def _play(self, batch: Batch) -> None:
        with (
            self.estimators_[0]._run.turns,
            WholeRound(self, [one._run.mark() for one in self.estimators_]),
        ):
            self._use_place()
            assert self._team is not None and batch.y is not None
            models, one = self.estimators_, self.estimators_[0]
            scores = None if self._scorer is None else self._scored(batch)
            run = one._run
            X = batch.X if run.scaling is None else run.scaling.apply(batch.X)
            rounds = self._team.learn(X, one._targets(batch.y) * len(models), batch.w)
            if scores is None:
                losses = np.array([round_.loss for round_ in rounds])
                scores = -losses.reshape(len(models), -1).mean(axis=1)
            for model in models:
                model._run.n_observations += batch.n
            self._share(rounds)
            self._race.add(scores, batch.weight, batch.n)

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

    def _share(self, rounds: list[Any]) -> None:
        """Let every model note its own rounds."""
        for k, one in enumerate(self.estimators_):
            one._run._note(one._run._of(rounds, k))

    def _scored(self, batch: Batch) -> Array:
        assert batch.y is not None
        labels = self.estimators_[0]._labels(batch.y)
        extra = {} if batch.w is None else {"sample_weight": batch.w}
        return np.array([self._scorer(one, batch.X, labels, **extra) for one in self.estimators_])

    # State ----------------------------------------------------------------------------------------

    def state_dict(self, *, past: bool = True) -> State:
        """Return what has been learned, as plain arrays and JSON-able values, without parameters.

        Parameters
        ----------
        past : bool
            With the past, so that the search goes on bit for bit; without it, of all models only
            the best, which predicts but cannot learn.
        """
        check_is_fitted(self)
        if self._team is None:
            return self._state(past)
        with self.estimators_[0]._run.turns:  # a round that is being played ends first
            return self._state(past)

    def _state(self, past: bool) -> State:
        state = {
            "estimator": type(self).__name__,
            "radii": self.radii_,
            "race": self._race.state_dict(),
        }
        if not past:
            best = self.best_index_
            model = self.estimators_[best].state_dict(past=False)
            return {**state, "best": best, "models": [model]}
        if self._team is None:
            raise ValueError(CANNOT_LEARN)
        models = [
            {**one._names(), "run": one._run.state_dict(True, team=False)}
            for one in self.estimators_
        ]
        return {**state, "models": models, "team": self._team.state_dict()}

    def load_state(self, state: State) -> Self:
        """Become what ``state_dict`` described, for a search with the same parameters."""
        check_state(state, "estimator", "radii", "race", "models")
        self._check_kind(state)
        radii, race = np.asarray(state["radii"], float), Race.from_state(state["race"])
        if radii.shape != (race.n,):
            raise ValueError("there are not as many scores as radii")
        model = self._checked_estimator()
        self._race = race
        if "team" in state:
            self._load_models(model, radii, state)
        else:
            self._load_best(model, radii, state)
        self.radii_ = radii
        known = next(one for one in self.estimators_ if one is not None)
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(known, name):
                setattr(self, name, getattr(known, name))
        scored = self.scoring is not None
        self._scorer = check_scoring(model, self.scoring) if scored else None
        return self

    def _load_best(self, model: LinearModel, radii: Array, state: State) -> None:
        check_state(state, "best")
        best = int(state["best"])
        if not 0 <= best < radii.size or len(state["models"]) != 1:
            raise ValueError(f"there is no radius number {best}")
        one = with_radius(model, float(radii[best]))
        # A model file holds the best model only.
        estimators: list[Any] = [None] * radii.size
        estimators[best] = one.load_state(state["models"][0])
        self.estimators_, self._team = estimators, None
        if self.best_index_ != best:
            raise ValueError("the radius saved as best does not have the best score")

    def _load_models(self, model: LinearModel, radii: Array, state: State) -> None:
        if len(state["models"]) != radii.size:
            raise ValueError("there are not as many models as radii")
        estimators, parts = [], []
        for radius, its in zip(radii.tolist(), state["models"], strict=True):
            check_state(its, "run")
            check_state(its["run"], "kept")
            one = with_radius(model, radius)
            one._load_names(its)
            kept = its["run"]["kept"]
            parts.append(LinearParts(one, one.n_features_in_, one._loss(), *kept))
            estimators.append(one)
        n_learners = len(parts) * estimators[0]._n_models()
        for n_features in {its.n_features for its in parts}:
            check_team(state["team"], n_learners, n_features)
        teams = self._make_teams(parts, "cpu", None)
        for one, its, team in zip(estimators, state["models"], teams, strict=True):
            one._run = run_from_state(one, its["run"], one._n_models(), team)
            one._run.turns = estimators[0]._run.turns
        self.estimators_ = estimators
        assert self._team is not None
        self._team.load_state(state["team"])

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
