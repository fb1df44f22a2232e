"""What all estimators share: streaming into learners, asking about them, their state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain, repeat
from typing import Any, Self

import numpy as np

from .._batches import BatchHandle
from .._typing import Array
from .._validation import check_alone, check_whole
from .._whole import Broken, Uninterrupted, pieces, unchanged_unless_learned
from ..readers.rounds import FileRounds
from .callbacks import CallbackSupportMixin, RoundCallbacks, with_callbacks
from .learned_model import LearnedModel
from .progress import progress
from .row_checks import check_no_ids
from .run import CANNOT_LEARN, Run
from .spelling import Spelled
from .stream import ArrayRounds, Batch, FileStream

__all__ = ["StreamingEstimator"]

#: ``fit`` looks at so many first observations to decide what is "auto": scales, radii and shape.
FIRST_ROWS = 5000


#: So few observations are one piece.
FEW = 64


class StreamingEstimator(Spelled, CallbackSupportMixin, LearnedModel, ABC):
    """An estimator that plays rounds.

    Everything learned is in ``_run``, except the attributes that scikit-learn expects. A new run
    is complete before it replaces another.
    """

    _run: Any
    epochs: int
    shuffle: bool
    random_state: Any
    history_size: int
    expected_size: int | None
    verbose: int
    device: str
    workers: int | None

    # What kinds of estimators differ in -----------------------------------------------------------

    #: What to do instead of passing weights beside files.
    _weights_in_files = ""

    @abstractmethod
    def _checked(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        first: bool,
        classes: Any = None,
        ids: Any = None,
    ) -> Batch:
        """Refuse bad observations before anything changes; return them as a batch."""

    @abstractmethod
    def _from_file(self, batch: Any, first: bool = False) -> Batch:
        """Return a batch of a file: as it is if workers can open it, else opened."""

    @abstractmethod
    def _file_rounds(self, files: Any) -> FileStream:
        """Return files as rounds."""

    @abstractmethod
    def _new_run(self, first: Batch, n: int | None, rounds: int | None) -> Run:
        """Make the learners for a stream that begins with ``first``; check the parameters."""

    def _targets(self, y: Any) -> list[Any]:
        """Return the targets of each problem that is solved; y is None if workers read them."""
        return [y]

    @abstractmethod
    def batch_length(self, n: int) -> int:
        """Return how many of n observations make a round of ``fit``."""

    # Learning -------------------------------------------------------------------------------------

    @with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any, ids: Any = None) -> Self:
        """Forget everything and stream the observations."""
        played: list[None] = []
        with unchanged_unless_learned(self, played):
            epochs = check_whole("epochs", self.epochs)
            rounds = self._rounds(X, y, sample_weight, ids)
            self._run = self._new_run(rounds.first(FIRST_ROWS), rounds.n, len(rounds))
            self._drop_names()
            later = self._run.rounds_without_data(len(rounds), epochs - 1)
            n = len(rounds) + later
            callbacks = RoundCallbacks(self, n, X=X, y=y)
            first: Iterator[Callable[[], Any]] = (partial(self._stream, batch) for batch in rounds)
            with progress(self.verbose, n) as advance:
                for play in chain(first, repeat(self.refine, later)):
                    callbacks.play(play)
                    played.append(None)
                    advance()
                    if callbacks.stopped:
                        break
        self.finish()
        callbacks.end()
        return self

    def _rounds(self, X: Any, y: Any, sample_weight: Any, ids: Any) -> Any:
        if isinstance(X, FileRounds):
            check_alone(y, sample_weight, self._weights_in_files)
            check_no_ids(ids)
            if self.shuffle:
                raise ValueError(
                    f"files are read in their order: use shuffle=False with {type(X).__name__}"
                )
            if len(X) == 0:
                raise ValueError(f"there is nothing to learn from: {X}")
            return self._file_rounds(X)
        whole = self._checked(X, y, sample_weight, True, None, ids)
        return self._array_rounds(whole, self.batch_length(whole.n))

    def _array_rounds(self, whole: Batch, size: int) -> ArrayRounds:
        order = np.random.default_rng(self._seed()).permutation(whole.n) if self.shuffle else None
        return ArrayRounds(whole, size, order)

    def _partial_fit(
        self, X: Any, y: Any, sample_weight: Any, classes: Any = None, ids: Any = None
    ) -> Self:
        """Play one round with these observations."""
        if "_run" in self.__dict__:
            if self._run.team is None:
                raise ValueError(CANNOT_LEARN)
            self._learn(self._batch(X, y, sample_weight, False, classes, ids))
            return self
        with unchanged_unless_learned(self, []):
            batch = self._batch(X, y, sample_weight, True, classes, ids)
            self._begin(batch)
            self._learn(batch)
        return self

    def _begin(self, first: Batch) -> None:
        """Begin a stream of which more will come."""
        self._run = self._new_run(first, self._expected(), None)

    def _batch(
        self, X: Any, y: Any, sample_weight: Any, first: bool, classes: Any, ids: Any = None
    ) -> Batch:
        if isinstance(X, BatchHandle):
            check_alone(y, sample_weight, self._weights_in_files)
            check_no_ids(ids)
            return self._from_file(X, first)
        return self._checked(X, y, sample_weight, first, classes, ids)

    def prepare(self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> Self:
        """Look at the first observations without learning from them.

        They decide the scale of columns, which radii are tried and the shape of a matrix, where
        these are "auto". ``fit`` looks at the first 5000; the first ``partial_fit`` looks at its
        own batch, unless this was called before. Parameters are those of ``partial_fit``.
        """
        if "_run" in self.__dict__:
            raise ValueError("prepare comes before the first observations are learned")
        batch = self._checked(X, y, sample_weight, True, classes)
        self._run = self._new_run(batch, self._expected(), None)
        return self

    def _stream(self, batch: Batch) -> None:
        """Learn a batch of ``fit``."""
        self._learn(batch)

    def _learn(self, batch: Batch) -> None:
        self._play(self._run.learn, batch, self._targets(batch.y))

    def _play(self, act: Callable[..., Any], *args: Any) -> Any:
        """Let the run play a round, whole or not at all; return what ``act`` does.

        If it has changed anything before it fails, everything is refused from now on.
        """
        run = self._run
        with run.turns, Uninterrupted():
            mark = run.mark()
            try:
                run.history.start()
                run.use_place(self._place())
                return act(*args)
            except BaseException as error:
                if not run.is_at(mark):
                    self._run = Broken(error)
                raise

    def _play_events(self, batch: Batch, ranks: Array | None = None) -> Array:
        """Learn observations one after another, in pieces; return what was predicted for each.

        ``ranks`` gets the places of clicks.
        """
        run, n = self._run, len(batch.X)
        if n <= FEW:
            return self._play(run.learn_events, batch, *([] if ranks is None else [ranks]))
        predicted = np.empty(n)
        for part in pieces(n):
            places = [] if ranks is None else [ranks[part]]
            predicted[part] = self._play(run.learn_events, batch.part(part), *places)
        return predicted

    def _place(self) -> tuple[str, int | None]:
        """Return device and workers that should hold the past."""
        return self.device, self.workers

    def learn(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int = 1
    ) -> Array:
        """Play the observations in the order given, each predicted before it is learned.

        Parameters
        ----------
        X, y, sample_weight
            As for ``partial_fit``.
        batch_size : int
            How many are learned at a time.

        Returns
        -------
        ndarray
            What was predicted for each before it was learned. Before any data that is 0.
        """
        return self._learn_in_order(X, y, sample_weight, batch_size)

    def _learn_in_order(
        self, X: Any, y: Any, sample_weight: Any, batch_size: int, classes: Any = None
    ) -> Array:
        """Predict and learn batches one after another; return the predictions."""
        size, first = check_whole("batch_size", batch_size), "_run" not in self.__dict__
        if not first:
            self._learning("learn")
        played: list[None] = []
        with unchanged_unless_learned(self, played) if first else nullcontext():
            whole = self._batch(X, y, sample_weight, first, classes)
            predicted = []
            for batch in ArrayRounds(whole, size):
                if "_run" not in self.__dict__:
                    self._begin(batch)
                known = self._run.n_observations > 0
                predicted.append(self._predict_any(batch.X) if known else self._guess(batch.n))
                self._learn(batch)
                played.append(None)
        return np.concatenate(predicted)

    def _predict_any(self, X: Any) -> Array:
        """Return predictions, with a fallback where the model knows nothing."""
        return self.predict(X)

    def _guess(self, n: int) -> Array:
        """Return predictions before any data."""
        return np.zeros(n)

    @property
    def takes_events(self) -> bool:
        """Whether single observations are learned in a compiled loop."""
        return False

    def later_rounds(self, rounds: int) -> int:
        """Return how many rounds without data the later epochs have, after so many with data."""
        if "_run" not in self.__dict__:
            return 0
        return self._run.rounds_without_data(rounds, check_whole("epochs", self.epochs) - 1)

    def refine(self) -> Self:
        """Play a round without new observations, over what is kept of the past."""
        run = self._learning("refine")
        if run.n_rounds == 0:
            raise ValueError("no round has been played yet; call partial_fit before refine")
        self._play(run.refine)
        return self

    def correct(self) -> Self:
        """Bring the model to the optimum of now, if there is a ``corrective``.

        Of a linear model on an l1 ball with a convex loss, ``gap_`` is then at most 1% of the mean
        loss. Without a corrective nothing changes.
        """
        self._play(self._learning("correct").correct)
        return self

    def finish(self) -> Self:
        """Correct what a schedule has left until now, as ``fit`` does at its end."""
        self._play(self._learning("finish").finish)
        return self

    def _forget(self) -> None:
        self.__dict__.pop("_run", None)

    # Parameters -----------------------------------------------------------------------------------

    def _seed(self, *purpose: int) -> Any:
        """Return the generator, or a seed that differs for each purpose."""
        if self.random_state is None or isinstance(self.random_state, np.random.Generator):
            return self.random_state
        otherwise = ", a numpy Generator or None"
        return [check_whole("random_state", self.random_state, 0, otherwise), *purpose]

    def _expected(self) -> int | None:
        if self.expected_size is None:
            return None
        return check_whole("expected_size", self.expected_size, 0, " or None")
