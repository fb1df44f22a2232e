"""What an estimator has learned: asking about it, saving it, going on from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from .._state import check_state
from .._typing import Array, State
from ..losses import Loss
from ..past.place import here
from .linear_parts import loss_of
from .run import CANNOT_LEARN, Run

__all__ = ["BESIDE", "LearnedModel", "SavedByState"]

#: Attributes that files and users add to an estimator, beside its parameters and its state.
BESIDE = ("notes_",)


class SavedByState(BaseEstimator):
    """An estimator that is pickled as its parameters and its state."""

    def _check_kind(self, state: State) -> None:
        """Refuse the state of another kind of estimator."""
        if state["estimator"] != type(self).__name__:
            raise ValueError(
                f"this is the state of a {state['estimator']}, not of a {type(self).__name__}"
            )

    def __getstate__(self) -> dict[str, Any]:
        names = type(self)._get_param_names()
        state = {name: value for name, value in super().__getstate__().items() if name in names}
        beside = (*BESIDE, "_skl_callbacks", "_sklearn_output_config")
        kept = {name: getattr(self, name) for name in beside if hasattr(self, name)}
        fitted: Any = self
        if fitted.__sklearn_is_fitted__():
            kept["_state"] = fitted.state_dict(past=fitted.can_learn_)
        return {**state, **kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        learned = state.pop("_state", None)
        self.__dict__.update(state)
        if learned is not None:
            fitted: Any = self
            fitted.load_state(learned)


class LearnedModel(SavedByState):
    """An estimator that has all that it learned in ``_run``: rounds, learners, coefficients.

    Its state, with the parameters beside it, is what is saved, pickled and checkpointed.
    """

    _run: Any
    #: Losses that the parameter ``loss`` may name.
    _losses: Mapping[str, Any]
    loss: str | Loss
    device: str
    workers: int | None

    @abstractmethod
    def _loaded_run(self, state: State) -> Run:
        """Make the run that a state describes."""

    def _loss(self) -> Loss:
        return loss_of(self.loss, self._losses)

    def _learning(self, name: str) -> Any:
        """Return the run, which must be able to go on."""
        run = self._fitted(name)
        if not run.can_learn:
            raise ValueError(CANNOT_LEARN)
        return run

    def _drop_names(self) -> None:
        """Forget the notes of an earlier fit."""
        for name in BESIDE:
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return "_run" in self.__dict__

    def _fitted(self, name: str) -> Any:
        """Return the run, or say that there is no such attribute yet."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"{type(self).__name__} has no {name} before it is fitted")
        return self._run

    @property
    def n_rounds_(self) -> int:
        """Rounds played."""
        return self._fitted("n_rounds_").n_rounds

    @property
    def n_observations_(self) -> int:
        """Observations learned."""
        return self._fitted("n_observations_").n_observations

    @property
    def radius_(self) -> float:
        """The radius in use: while several race each other, that of the best so far."""
        return float(self._fitted("radius_").radius)

    @property
    def n_radii_(self) -> int:
        """How many radii race each other; 1 when one is given, or has been chosen."""
        return len(self._fitted("n_radii_").radii)

    @property
    def gap_(self) -> float:
        """The certificate of the current model, computed when asked for; nothing changes."""
        return self._fitted("gap_").certified()[0]

    @property
    def mean_loss_(self) -> float:
        """The mean loss of what is kept of the past, which the certificate ``gap_`` speaks of.

        A certificate that exceeds it is uninformative, if no loss is below 0. Of several classes
        it is that of the class whose certificate is largest; nan in older model files.
        """
        return self._fitted("mean_loss_").loss_now()

    @property
    def half_life_(self) -> float | None:
        """The half-life in use, in observations; None while nothing is forgotten."""
        return self._fitted("half_life_").half_life

    @property
    def changes_(self) -> Array:
        """After how many observations the data looked as if they had changed.

        With ``half_life="auto"``; with a fixed half-life nothing is looked for.
        """
        return np.array(self._fitted("changes_").changes, dtype=int)

    @property
    def history_(self) -> dict[str, Array]:
        """The rounds as columns: t, loss (paid before learning), gap, step_size, kind, seconds."""
        return self._fitted("history_").history.as_dict()

    @property
    def objective_(self) -> Any:
        """What is kept of the past (a list with one per class, if there are more than two)."""
        run = self._fitted("objective_")
        if not run.can_learn:
            raise AttributeError("a model file holds no past, so there is no objective_")
        objectives = run.objectives
        return objectives[0] if len(objectives) == 1 else objectives

    @property
    def can_learn_(self) -> bool:
        """Whether the past is there, so that learning can go on."""
        return self._fitted("can_learn_").can_learn

    @property
    def loss_(self) -> Loss:
        """The loss as an object; known before anything is fitted."""
        return self._loss()

    def state_dict(self, *, past: bool = True) -> State:
        """Return what has been learned, as plain arrays and JSON-able values, without parameters.

        Parameters
        ----------
        past : bool
            With the past, so that the estimator goes on bit for bit; without it the state is
            small, and an estimator that loads it predicts but cannot learn. The certificate is
            then computed and kept.
        """
        run = self._fitted("state_dict()")
        if past and not run.can_learn:
            raise ValueError(CANNOT_LEARN)
        with run.turns:  # a round that is being played ends first
            return {"estimator": type(self).__name__, **self._names(), "run": run.state_dict(past)}

    def load_state(self, state: State) -> Self:
        """Become what ``state_dict`` described, for an estimator with the same parameters."""
        check_state(state, "estimator", "run")
        self._check_kind(state)
        self._load_names(state)
        self._run = self._loaded_run(state["run"])
        return self

    def _names(self) -> State:
        """Return what else was learned: the number and names of features, and classes."""
        return {}

    def _load_names(self, state: State) -> None:
        return

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.get("workers") is None and state.get("device") == "cuda":
            state["device"] = here("cuda").device  # there may be no GPU here
        super().__setstate__(state)
