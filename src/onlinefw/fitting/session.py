"""A model that learns from rows as they are read, with its queue, scores and counters.

Everything that decides what is learned next is in the session: the model, rows read and not yet
learned, rows held out, scores and counters. So a session that is saved and loaded goes on as if
nothing had happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from math import ceil
from typing import Any

import numpy as np

from .._state import check_state
from .._typing import State
from ..estimators.row_queue import RowQueue
from ..losses import Loss
from .held_out import held_out
from .score_path import ScorePath
from .scores import ErrorRate, RankScore, SquaredError

__all__ = ["Session"]

#: ``batch_size="auto"``: so many rounds in a pass, if the number of rows is known ...
ROUNDS = 1000
#: ... and rounds of so many rows, if it is not (a pipe), or if they would have fewer: a round
#: re-optimises all coefficients, so fewer rounds suffice.
BATCH = 256
#: ``batch_size=1``: single events are learned up to so many in a call, which is the same as one by
#: one, but at the speed of the compiled loop.
EVENTS = 100
COUNTERS = ("rows_read", "rows_learned", "rounds", "refined")


class Session(ABC):
    """Rows come in, rounds are played with ``batch_size`` of them.

    About ``test_share`` of the rows is held out and not learned; ``seed`` decides which. About
    ``expected_rows`` will come, if that is known. ``settings`` are those of the estimator.
    """

    kind: str

    def __init__(
        self,
        *,
        batch_size: int | str = "auto",
        test_share: float = 0.0,
        seed: int = 0,
        expected_rows: int | None = None,
        **settings: Any,
    ) -> None:
        self.batch_size, self.test_share, self.seed = batch_size, test_share, seed
        self.expected_rows = expected_rows
        self.model = self._new_model({"expected_size": expected_rows, **settings})
        self.score = self.new_score()
        self.rows_read = self.rows_learned = self.rounds = 0
        #: Rounds without new rows, which are counted in ``rounds``, too.
        self.refined = 0
        #: Where the reader has to go on.
        self.position: Any = None
        self._waiting, self._test = RowQueue(), RowQueue()
        self.score_path = ScorePath()

    # What the kinds of sessions differ in ---------------------------------------------------------

    @abstractmethod
    def _new_model(self, settings: dict[str, Any]) -> Any:
        """Make the estimator."""

    @abstractmethod
    def read(self, chunk: Any) -> None:
        """Take a chunk of rows in."""

    @abstractmethod
    def _prepare(self, *columns: Any) -> None:
        """Let the model look at the rows in the queue, before the first round."""

    def _predict(self, X: Any) -> Any:
        """Return the predictions of rows."""
        return self.model.predict(X)

    def _known(self, y: Any) -> Any:
        """Return targets as the model knows them."""
        return y

    @abstractmethod
    def size(self) -> dict[str, int]:
        """Return how large the model is: its "rank", or "nonzeros" of so many "coefficients"."""

    @abstractmethod
    def size_so_far(self) -> tuple[str, int]:
        """Return the name and value of a size that is cheap to compute, for displays."""

    @abstractmethod
    def new_score(self) -> SquaredError | ErrorRate | RankScore:
        """Return a score that has counted nothing."""

    @abstractmethod
    def score_chunk(self, chunk: Any, score: Any) -> None:
        """Count how well the model predicts a chunk, without learning from it."""

    @property
    def loss(self) -> Loss | None:
        """The loss that checks targets as they are read; None if it takes others."""
        return self.model.loss_

    # Rows -----------------------------------------------------------------------------------------

    def _put(self, X: Any, y: Any) -> None:
        n = X.shape[0]
        apart = held_out(self.rows_read, n, self.test_share, self.seed)
        self._test.put(X[apart], y[apart])
        self._waiting.put(X[~apart], y[~apart])
        self.rows_read += n

    @property
    def batch_length(self) -> int:
        """Rows of a round."""
        if self.batch_size != "auto":
            return int(self.batch_size)
        if self.expected_rows is None:
            return BATCH
        return max(BATCH, ceil((1.0 - self.test_share) * self.expected_rows / ROUNDS))

    @property
    def ready(self) -> bool:
        """Whether there are rows for a round."""
        return len(self._waiting) >= self.batch_length

    @property
    def n_waiting(self) -> int:
        """Rows read and not yet learned."""
        return len(self._waiting)

    @property
    def whole(self) -> bool:
        """Whether no round has failed between the model and the counters."""
        return bool(self.model.n_rounds_ == self.rounds)

    @property
    def n_test(self) -> int:
        """Rows held out."""
        return len(self._test)

    # Rounds ---------------------------------------------------------------------------------------

    def play_chunks(self, chunks: Iterable[Any]) -> Iterator[None]:
        """Read chunks (with their ``position``), play with enough rows; pause after each round."""
        while self.ready:  # rows in the queue of a checkpoint come first
            self.play()
            yield
        for chunk in chunks:
            self.read(chunk)
            self.position = chunk.position
            while self.ready:
                self.play()
                yield

    def play_rest(self) -> Iterator[None]:
        """Play with the rows left in the queue, when no more will come, then the later epochs."""
        while self.n_waiting:
            self.play()
            yield
        while self.refined < self.model.later_rounds(self.rounds - self.refined):
            self.refine()
            yield

    def play(self) -> None:
        """Play a round with rows of the queue: predict, learn, and count the score.

        If the round fails before the model has changed, nothing else has changed either.
        """
        if self.rounds == 0:
            self._prepare(*self._waiting.look())  # the whole queue
        X, y = self._waiting.look(self._at_a_time())
        y = self._known(y)
        predicted = self._learn(X, y)
        self._waiting.drop(X.shape[0])
        if predicted.size:
            self.score.add(y[-predicted.size :], predicted)
            self.score_path.add(self.score.n, self.score.value)
        self.rounds = self.model.n_rounds_
        self.rows_learned += X.shape[0]

    def _at_a_time(self) -> int:
        """Return how many rows of the queue, at most, the next call of the model gets."""
        n = self.batch_length
        if n > 1 or not self.model.takes_events:
            return n
        return EVENTS - self.rows_learned % EVENTS

    def _learn(self, X: Any, y: Any) -> Any:
        """Learn rows; return what was predicted before, but for those before any data."""
        if self.model.takes_events:
            return self.model.learn(X, y)[int(self.rounds == 0) :]
        predicted = self._predict(X) if self.rounds else np.empty(0)
        self.model.partial_fit(X, y)
        return predicted

    def refine(self) -> None:
        """Play a round of a later epoch: nothing is read, stored or scored again."""
        self.model.refine()
        self.rounds += 1
        self.refined += 1

    def test_score(self) -> SquaredError | ErrorRate | RankScore:
        """Score the model on the rows that were held out."""
        score = self.new_score()
        if self.n_test:
            X, y = self._test.look()
            score.add(self._known(y), self._predict(X))
        return score

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything: the model itself, and plain values and arrays beside it."""
        return {
            "model": self.model,
            "kind": self.kind,
            "settings": self._settings(),
            "counters": {name: getattr(self, name) for name in COUNTERS},
            "position": self.position,
            "waiting": self._waiting.state_dict(),
            "test": self._test.state_dict(),
            "score": self.score.state_dict(),
            "score_path": self.score_path.state_dict(),
        }

    def _settings(self) -> State:
        """Return the arguments that make this session, except those of the model."""
        names = ("batch_size", "test_share", "seed", "expected_rows")
        return {name: getattr(self, name) for name in names}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        check_state(state, "model", "counters", "position", "waiting", "test", "score")
        if type(state["model"]) is not type(self.model):
            raise ValueError(f"this is the state of a {type(state['model']).__name__}")
        self.model = state["model"]
        for name in COUNTERS:
            setattr(self, name, int(state["counters"][name]))
        self.position = state["position"]
        self._waiting = RowQueue.from_state(state["waiting"])
        self._test = RowQueue.from_state(state["test"])
        self.score.load_state(state["score"])
        self.score_path.load_state(state["score_path"])
