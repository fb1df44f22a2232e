"""What the page says about a model, taken from the model and from the notes of ``ofw fit``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import (
    FrankWolfeClassifier,
    FrankWolfeMatrixCompletion,
    FrankWolfeRecommender,
    RadiusSearch,
)
from .._typing import Array
from ..fitting.notes import columns_seen, notes_of

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """A fitted or loaded model, and the facts that the page shows about it.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.report.facts import Facts
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> facts = Facts.of(ofw.FrankWolfeRegressor(radius=2.0).fit(X, X[:, 0]))
    >>> facts.kind, facts.convex, facts.feature_names[:2]
    ('regression', True, ['feature 1', 'feature 2'])
    """

    #: As it was saved.
    model: Any
    #: The same, or of a search over radii the best.
    best: Any
    #: What ``ofw fit`` keeps beside the model; empty for a model saved in Python.
    notes: dict[str, Any]

    @classmethod
    def of(cls, model: Any) -> Facts:
        """Return the facts about a model."""
        best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
        return cls(model, best, notes_of(model))

    @property
    def kind(self) -> str:
        """matrix, clicks, regression or classification."""
        if isinstance(self.best, FrankWolfeRecommender):
            return "clicks"
        if isinstance(self.best, FrankWolfeMatrixCompletion):
            return "matrix"
        return "classification" if isinstance(self.best, FrankWolfeClassifier) else "regression"

    @property
    def has_pairs(self) -> bool:
        """Whether it is about users and items."""
        return self.kind in ("matrix", "clicks")

    @property
    def summary(self) -> dict[str, Any]:
        """The scores and counts of ``ofw fit``."""
        return self.notes.get("summary", {})

    @property
    def n_rows(self) -> int:
        """Rows or ratings that were learned."""
        if "rows learned" in self.summary:
            return int(self.summary["rows learned"])
        return int(self.best.n_observations_)

    @cached_property
    def factors(self) -> tuple[Array, Array, Array]:
        """Of a matrix: users, weights and items of its patterns; takes a while to compute."""
        return self.best.factors_

    @property
    def item_ids(self) -> Array | None:
        """Of users and items: what the items are called, if they have names."""
        model = self.model
        return model.items_ if self.kind == "clicks" else model.col_ids_

    @property
    def user_ids(self) -> Array | None:
        """What the users are called."""
        return self.model.users_ if self.kind == "clicks" else self.model.row_ids_

    @property
    def rank(self) -> int:
        """Of a matrix: how many patterns there are."""
        return int(self.factors[1].size)

    @property
    def loss(self) -> str:
        """The name of the loss."""
        return type(self.best.loss_).__name__.lower()

    @property
    def convex(self) -> bool:
        """Whether a small gap proves that the model is nearly the best."""
        return bool(self.best.loss_.convex)

    @property
    def has_gaps(self) -> bool:
        """Whether the gaps of rounds are known; single events have none."""
        return bool(np.any(self.best.history_["gap"] > 0.0))

    @property
    def coefficients(self) -> Array:
        """Of a linear model: a row for each class, or one."""
        return np.reshape(self.best.coef_, (-1, self.best.n_features_in_))

    @property
    def feature_names(self) -> list[str]:
        """Of a linear model: what the columns are called."""
        names = self.notes.get("features")
        if names is None:
            names = getattr(self.best, "feature_names_in_", None)
        if names is None or len(names) != self.best.n_features_in_:
            return [f"feature {j + 1}" for j in range(self.best.n_features_in_)]
        return [str(name) for name in names]

    @property
    def columns_seen(self) -> dict[int, int]:
        """Of a linear model: in how many rows its columns were seen, by their numbers."""
        return columns_seen(self.notes)

    @property
    def made(self) -> dict[str, str]:
        """The date, command and version with which ``ofw fit`` made it, as far as known."""
        return {name: str(value) for name, value in self.notes.get("made", {}).items()}

    @property
    def target(self) -> str | None:
        """Of a linear model: the column that it predicts."""
        target = (self.notes.get("columns") or {}).get("target")
        if target is None:
            return None
        return f"column {target}" if str(target).isdigit() else str(target)
