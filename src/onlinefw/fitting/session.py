"""A model that learns from rows as they are read, and all that goes with it.

Everything that decides what is learned next is in the session: the model, rows read and not yet
learned, rows held out, scores and counters. So a session that is saved and loaded goes on as if
nothing had happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil
from typing import Any

from ..losses import Loss
from .held_out import held_out
from .row_queue import RowQueue
from .score_path import ScorePath
from .scores import ErrorRate, SquaredError

__all__ = ["Session"]

#: ``batch_size="auto"``: so many rounds in a pass, if the number of rows is known ...
ROUNDS = 1000
#: ... and rounds of so many rows, if it is not (a pipe).
BATCH = 256


class Session(ABC):
    """Rows come in, rounds are played.

    Parameters
    ----------
    batch_size : int or "auto"
        Rows a round.
    test_share : float
        About this share of the rows is held out and not learned.
    seed : int
        Decides which.
    """

    model: Any
    score: SquaredError | ErrorRate
    least_batch = 32
    #: Rounds without new rows, which are counted in ``rounds``, too.
    refined = 0

    def __init__(
        self, *, batch_size: int | str = "auto", test_share: float = 0.0, seed: int = 0
    ) -> None:
        self.batch_size, self.test_share, self.seed = batch_size, test_share, seed
        self.rows_read = self.rows_learned = self.rounds = 0
        self.expected_rows: int | None = None
        self._waiting, self._test = RowQueue(), RowQueue()
        self.score_path = ScorePath()

    @abstractmethod
    def read(self, chunk: Any) -> None:
        """Take a chunk of rows in."""

    @abstractmethod
    def _learn(self, *columns: Any) -> None:
        """Predict these rows, count the score, and learn from them."""

    @abstractmethod
    def _refine(self) -> None:
        """Play a round with what is kept of the rows learned."""

    @property
    def loss(self) -> Loss | None:
        """The loss, if it is one of targets as they are read."""
        return self.model._loss()

    @abstractmethod
    def predictor(self) -> Any:
        """Return an estimator that predicts from rows as they were read."""

    @abstractmethod
    def size(self) -> dict[str, int]:
        """Return how large the model is: its "rank", or "nonzeros" of so many "coefficients"."""

    @abstractmethod
    def size_so_far(self) -> tuple[str, int]:
        """Return a size that costs nothing to tell, for displays."""

    @abstractmethod
    def new_score(self) -> SquaredError | ErrorRate:
        """Return a score that has counted nothing."""

    @abstractmethod
    def score_chunk(self, chunk: Any, score: Any) -> None:
        """Count how well the model predicts a chunk, without learning from it."""

    @abstractmethod
    def test_score(self) -> SquaredError | ErrorRate:
        """Score the model on the rows that were held out."""

    def _put(self, *columns: Any) -> None:
        n = columns[0].shape[0]
        apart = held_out(self.rows_read, n, self.test_share, self.seed)
        self._test.put(*(column[apart] for column in columns))
        self._waiting.put(*(column[~apart] for column in columns))
        self.rows_read += n

    def use_workers(self, workers: int | None) -> None:
        """Let the model keep its past with so many workers; None: in this process."""
        self.model.set_params(workers=workers)

    def use_device(self, device: str) -> None:
        """Let the model keep its past on a device."""
        self.model.set_params(device=device)

    def finish(self) -> None:
        """Do what is done once, when the data have ended."""
        return

    @property
    def batch_length(self) -> int:
        """Rows of a round."""
        if self.batch_size != "auto":
            return int(self.batch_size)
        if self.expected_rows is None:
            return BATCH
        return max(self.least_batch, ceil((1.0 - self.test_share) * self.expected_rows / ROUNDS))

    @property
    def ready(self) -> bool:
        """Whether there are rows for a round."""
        return len(self._waiting) >= self.batch_length

    @property
    def n_waiting(self) -> int:
        """Rows read and not yet learned."""
        return len(self._waiting)

    @property
    def n_test(self) -> int:
        """Rows held out."""
        return len(self._test)

    @property
    def has_passes_left(self) -> bool:
        """Whether the model asks for more epochs than the one in which rows were read."""
        return self.refined < (self.model.epochs - 1) * (self.rounds - self.refined)

    def refine(self) -> None:
        """Play a round of a later epoch: nothing is read, stored or scored again."""
        self._refine()
        self.rounds += 1
        self.refined += 1

    def play(self) -> None:
        """Play a round."""
        columns = self._waiting.take(self.batch_length)
        self._learn(*columns)
        self.rounds += 1
        self.rows_learned += columns[0].shape[0]
        if self.score.n:  # the first rows are learned without a prediction
            self.score_path.add(self.score.n, self.score.value)
