"""A session that completes a matrix from (user, item, rating) rows."""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

import numpy as np

from .._typing import Array
from ..estimators import FrankWolfeMatrixCompletion
from ..readers import IdMap
from .scores import SquaredError
from .session import Session

__all__ = ["RatingsSession"]

#: What one pass over ratings does best with (benchmarks/matrix/accuracy-*.md).
DEFAULTS: dict[str, Any] = {
    "offsets": "joint",
    "weighting": "smoothed",
    "step": "line-search",
    "clip": True,
}
#: With so many ratings one atom a round is too little: the factors are re-optimised now and then.
MANY = 2_000_000
MANY_DEFAULTS: dict[str, Any] = {
    "offsets": "biases",
    "step": "line-search",
    "corrective": "ridge",
    "clip": True,
}
MANY_ROUNDS = 80
#: The ridge keeps the factors small then, and the radius is a cap: so many times the square root of
#: rows times columns, in standard deviations of the ratings.
CAP = 4.0


class RatingsSession(Session):
    """Users and items have names; the model numbers them in the order in which they appear.

    Parameters
    ----------
    **settings
        Of :class:`~onlinefw.FrankWolfeMatrixCompletion` (over ``DEFAULTS``), or of
        :class:`~onlinefw.fitting.session.Session`.

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

    def __init__(
        self,
        *,
        batch_size: int | str = "auto",
        test_share: float = 0.0,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(batch_size=batch_size, test_share=test_share, seed=seed)
        self._settings = settings
        self.model = FrankWolfeMatrixCompletion(**{**DEFAULTS, **settings})
        self.users, self.items = IdMap(), IdMap()
        self.score = SquaredError()

    @property
    def has_many(self) -> bool:
        """Whether there are many ratings to come."""
        return self.expected_rows is not None and self.expected_rows >= MANY

    @property
    def batch_length(self) -> int:
        """Ratings of a round."""
        if self.batch_size == "auto" and self.has_many:
            assert self.expected_rows is not None
            return ceil((1.0 - self.test_share) * self.expected_rows / MANY_ROUNDS)
        return super().batch_length

    def read(self, chunk: Any) -> None:
        """Take ratings in; names not seen before get the next numbers."""
        rows, columns = self.users.add(chunk.users), self.items.add(chunk.items)
        self._put(np.column_stack((rows, columns)), np.asarray(chunk.values, dtype=float))

    def _learn(self, X: Array, y: Array) -> None:
        if self.rounds:
            self.score.add(y, self.model.predict(X, unknown="fallback"))
        else:
            self._prepare(X, y)
        self.model.partial_fit(X, y)

    def _refine(self) -> None:
        self.model._refine(self.refined, self.rounds - self.refined)

    def use_workers(self, workers: int | None) -> None:
        """Let the model keep its past with so many workers; None: in this process."""
        super().use_workers(workers)
        self._settings = {**self._settings, "workers": workers}  # of the model for many, too

    def use_device(self, device: str) -> None:
        """Let the model keep its past on a device."""
        super().use_device(device)
        self._settings = {**self._settings, "device": device}

    def finish(self) -> None:
        """Re-optimise the factors a last time, where that is done at all."""
        self.model.correct()

    def predictor(self) -> FrankWolfeMatrixCompletion:
        """Return the model; its rows and columns are in the order of ``users`` and ``items``."""
        return self.model

    def size(self) -> dict[str, int]:
        """Return the rank."""
        return {"rank": self.model.rank_}

    def _prepare(self, X: Array, y: Array) -> None:
        """Let all that has been read, not the first batch alone, settle which radii are tried."""
        self.model.set_params(shape=(len(self.users), len(self.items)))
        if self.has_many:
            self._prepare_for_many(y)
        elif self.n_waiting:
            more_X, more_y = self._waiting.look()
            self.model._begin(
                np.concatenate((X, more_X)), np.concatenate((y, more_y)), batch_length=len(y)
            )

    def _prepare_for_many(self, y: Array) -> None:
        settings = {**MANY_DEFAULTS, **self._settings, "shape": self.model.shape}
        if settings.get("radius", "auto") == "auto":
            settings["radius"] = (
                CAP * sqrt(len(self.users) * len(self.items)) * (float(y.std()) or 1.0)
            )
        self.model = FrankWolfeMatrixCompletion(**settings)

    def size_so_far(self) -> tuple[str, int]:
        """Return the number of atoms, which bounds the rank; the rank itself needs an SVD."""
        return "atoms", int(self.model._learner.theta.n_atoms)

    def new_score(self) -> SquaredError:
        """Return a score that has counted nothing."""
        return SquaredError()

    def score_chunk(self, chunk: Any, score: SquaredError) -> None:
        """Count how well the model predicts ratings; names never seen get the fallback."""
        X = np.column_stack((self.users.lookup(chunk.users), self.items.lookup(chunk.items)))
        beyond = max(self.model.objective_.shape or (0,))  # a number that no row or column has
        X[X < 0] = beyond
        score.add(chunk.values, self.model.predict(X, unknown="fallback"))

    def test_score(self) -> SquaredError:
        """Score the model on the ratings that were held out."""
        score = SquaredError()
        if self.n_test:
            X, y = self._test.look()
            score.add(y, self.model.predict(X, unknown="fallback"))
        return score
