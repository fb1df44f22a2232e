"""A session that completes a matrix from (user, item, rating) rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, State
from ..estimators import FrankWolfeMatrixCompletion
from ..readers import IdMap
from .scores import SquaredError
from .session import Session

__all__ = ["RatingsSession"]


class RatingsSession(Session):
    """Users and items have names; the model numbers them in the order in which they appear.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace as Chunk
    >>> from onlinefw.fitting.ratings import RatingsSession
    >>> session = RatingsSession(radius=2.0, batch_size=2)
    >>> users, items = np.array(["ann", "bob", "ann"]), np.array([7, 7, 9])
    >>> session.read(Chunk(users=users, items=items, values=np.array([5.0, 3.0, 4.0])))
    >>> while session.n_waiting:
    ...     session.play()
    >>> session.rounds, session.users.ids.tolist(), session.items.ids.tolist()
    (2, ['ann', 'bob'], [7, 9])
    """

    kind = "matrix"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.users, self.items = IdMap(), IdMap()

    def _new_model(self, settings: dict[str, Any]) -> FrankWolfeMatrixCompletion:
        return FrankWolfeMatrixCompletion(**settings)

    @property
    def batch_length(self) -> int:
        """Ratings of a round: as many as the model's own ``fit`` would take."""
        if self.batch_size != "auto" or self.expected_rows is None:
            return super().batch_length
        return self.model.batch_length(round((1.0 - self.test_share) * self.expected_rows))

    def read(self, chunk: Any) -> None:
        """Take ratings in; names not seen before get the next numbers."""
        rows, columns = self.users.add(chunk.users), self.items.add(chunk.items)
        self._put(np.column_stack((rows, columns)), np.asarray(chunk.values, dtype=float))

    def _prepare(self, X: Array, y: Array) -> None:
        # All that has been read, not the first batch alone, decides which radii are tried.
        self.model.set_params(shape=(len(self.users), len(self.items))).prepare(X, y)

    def _predict(self, X: Array) -> Array:
        return self.model.predict(X, unknown="fallback")

    def size(self) -> dict[str, int]:
        """Return the rank."""
        return {"rank": self.model.rank_}

    def size_so_far(self) -> tuple[str, int]:
        """Return the number of atoms, which bounds the rank; the rank itself needs an SVD."""
        return "atoms", self.model.n_atoms_

    def new_score(self) -> SquaredError:
        """Return a score that has counted nothing."""
        return SquaredError()

    def score_chunk(self, chunk: Any, score: SquaredError) -> None:
        """Count how well the model predicts ratings; names never seen get the fallback."""
        X = np.column_stack((self.users.lookup(chunk.users), self.items.lookup(chunk.items)))
        X[X < 0] = max(self.model.shape_)  # a number that no row or column has
        score.add(chunk.values, self._predict(X))

    def state_dict(self) -> State:
        """Return everything: the model itself, and plain values and arrays beside it."""
        names = {"users": self.users.state_dict(), "items": self.items.state_dict()}
        return {**super().state_dict(), **names}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        super().load_state(state)
        self.users, self.items = (IdMap.from_state(state[name]) for name in ("users", "items"))
