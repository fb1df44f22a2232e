"""What local corrections have found out about a stream: model files keep it, without the past."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from .._state import check_state
from .._typing import State

__all__ = ["LocalFacts", "ModelMixture", "ShortMemory"]


class ShortMemory(NamedTuple):
    """How the latest errors of a row and of a column enter its next predictions.

    ``rows`` and ``columns`` are what the average of the latest errors is multiplied by. ``gain``
    is about how much of the variance of the values is explained by that, beyond everything else.
    """

    rows: float
    columns: float
    gain: float


class ModelMixture(NamedTuple):
    """The weights of the models that are mixed, and a and b of the ridge a + b n of each."""

    weights: tuple[float, ...]
    ridges: tuple[tuple[float, float], ...]


class LocalFacts(NamedTuple):
    """The mixture and the short memory; None where predictions are made without it.

    Examples
    --------
    >>> from onlinefw.estimators.local_facts import LocalFacts, ModelMixture, ShortMemory
    >>> mixture = ModelMixture((0.7, 0.3), ((10.0, 0.02), (5.0, 0.1)))
    >>> facts = LocalFacts(mixture, ShortMemory(0.5, 0.1, 0.03))
    >>> LocalFacts.from_state(facts.state_dict()) == facts
    True
    """

    mixture: ModelMixture
    memory: ShortMemory | None

    @classmethod
    def of(cls, models: Any, remembers: bool) -> Self:
        """Ask the models of local corrections; ``remembers``: whether the memory is used."""
        ridges = tuple((float(a), float(b)) for a, b in models.models.ridges[:, :2])
        mixture = ModelMixture(tuple(models.weights.tolist()), ridges)
        if not remembers:
            return cls(mixture, None)
        of_row, of_column = models.memory_weights
        return cls(mixture, ShortMemory(of_row, of_column, models.memory_gain))

    def state_dict(self) -> State:
        """Return everything as plain arrays."""
        return {
            "weights": np.array(self.mixture.weights),
            "ridges": np.array(self.mixture.ridges),
            "memory": None if self.memory is None else np.array(self.memory),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the facts that ``state_dict`` described, or say what is wrong with them."""
        check_state(state, "weights", "ridges", "memory")
        weights, ridges, memory = (state[name] for name in ("weights", "ridges", "memory"))
        parts = [weights, ridges] if memory is None else [weights, ridges, memory]
        for part in parts:
            if not isinstance(part, np.ndarray) or part.dtype != float:
                raise ValueError("the facts about the mixture are damaged: not arrays of numbers")
            if not np.isfinite(part).all():
                raise ValueError("the facts about the mixture are damaged: not finite")
        if weights.ndim != 1 or not weights.size or ridges.shape != (weights.size, 2):
            raise ValueError("the facts about the mixture are damaged: weights and ridges")
        if memory is not None and memory.shape != (3,):
            raise ValueError("the facts about the mixture are damaged: the short memory")
        pairs = tuple((float(a), float(b)) for a, b in ridges)
        kept = None if memory is None else ShortMemory(*memory.tolist())
        return cls(ModelMixture(tuple(weights.tolist()), pairs), kept)
