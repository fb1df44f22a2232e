"""The state of a search: all its models with the past they share, or the best one alone."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from .._state import check_state
from .._typing import Array, State
from ..algorithms.side_by_side import SideBySide
from .learned_model import SavedByState
from .linear_model import LinearModel
from .linear_parts import LinearParts, fixed_half_life, together, with_radius
from .linear_run import check_team, run_from_state
from .race import Race
from .run import CANNOT_LEARN

__all__ = ["SearchState"]


class SearchState(MetaEstimatorMixin, SavedByState):
    """What a search remembers, and how it is saved."""

    scoring: Any
    radii_: Array
    estimators_: list[Any]
    #: None in a model file, which only predicts.
    _team: SideBySide | None
    _race: Race
    #: Who predicts what is learned: the best when theta last moved.
    _leader: int
    _scorer: Any

    @abstractmethod
    def _checked_estimator(self) -> LinearModel:
        """Return a copy of the estimator, or refuse it."""

    @property
    @abstractmethod
    def best_index_(self) -> int:
        """The index of the best radius."""

    def _make_teams(
        self, parts: list[LinearParts], device: str, workers: int | None
    ) -> list[SideBySide]:
        """Make the learners, which take their steps side by side; return those of each model."""
        n = parts[0].model._n_models()
        self._team = together([(one, one.radius) for one in parts], n, device, workers)
        learners = self._team.learners
        return [SideBySide(learners[k : k + n]) for k in range(0, len(learners), n)]

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
            "leader": self._leader,
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
        self._leader = int(state.get("leader", self.best_index_))
        if not 0 <= self._leader < radii.size:
            raise ValueError(f"there is no radius number {self._leader}")
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
            known: Any = (one, one.n_features_in_, one._loss(), *kept, fixed_half_life(one))
            parts.append(LinearParts(*known))
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
