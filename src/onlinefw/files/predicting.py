"""What stands in the place of learners in an estimator that came from a model file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .._typing import Array, State
from ..estimators.learnable import CANNOT_LEARN
from ..iterates import LowRank
from ..losses import Loss
from ..objectives import ObservedEntries, RunningBiases
from ..objectives.sorted_store import SortedStore

__all__ = ["Columns", "LearnedEntries", "LearnedRows", "Player", "Team"]


@dataclass
class LearnedRows:
    """The objective of a linear model, without its rows."""

    intercept: float
    n_observations: int

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a model file holds no past, so there is no {name}")


@dataclass
class Player:
    """A learner that has stopped learning."""

    objective: Any
    theta: Any
    t: int
    gap: float
    constraint: Any = None
    corrective: None = None

    def certificate(self) -> float:
        """Return the gap when the model was saved."""
        return self.gap

    def observe(self, *data: Any) -> NoReturn:
        """Refuse."""
        raise ValueError(CANNOT_LEARN)


@dataclass
class Team:
    """The learners of a linear model."""

    learners: list[Player]


@dataclass
class Columns:
    """A history or path as it was when the model was saved."""

    columns: dict[str, Any]
    elapsed: float = 0.0

    def as_dict(self, *now: Any) -> dict[str, Any]:
        """Return the columns."""
        return {name: column.copy() for name, column in self.columns.items()}


class LearnedEntries(ObservedEntries):
    """The objective of a matrix completion, with which columns each row has seen but no values."""

    def __init__(
        self,
        theta: LowRank,
        loss: Loss,
        *,
        row_offsets: Array,
        column_offsets: Array,
        biases: RunningBiases | None,
        seen: tuple[Array, Array],
        n_observations: int,
    ) -> None:
        super().__init__(theta.shape, loss, dtype=theta.dtype, growing=True, offsets=biases)
        self._iterate = theta
        self._entries.row_offset, self._entries.col_offset = row_offsets, column_offsets
        self._has_offsets = True
        self.n_observations = n_observations
        nothing = np.empty(0, theta.dtype)
        self._entries.store.bulk = SortedStore(*seen, nothing, nothing, nothing, nothing)

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Refuse."""
        raise ValueError(CANNOT_LEARN)

    def state_dict(self) -> State:
        """Refuse."""
        raise ValueError(CANNOT_LEARN)

    def _needs_data(self) -> None:
        raise ValueError("a model file holds no past: gradients and losses need a checkpoint")
