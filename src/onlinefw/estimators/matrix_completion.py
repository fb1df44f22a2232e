"""Online matrix completion as a scikit-learn estimator."""

from __future__ import annotations

from contextlib import nullcontext
from math import ceil
from typing import Any, Self

import numpy as np

from .._batches import naming
from .._devices import check_device
from .._typing import Array, State
from .._validation import MOST, check_whole
from .._whole import unchanged_unless_learned
from ..algorithms import RidgeSweeps
from ..losses import Loss
from ..objectives import RunningBiases
from ..readers.partitioned_ratings import ParquetBatch, ParquetRatings
from .completed_matrix import CompletedMatrix
from .completion_parts import LOSSES, MANY, CompletionParts
from .completion_run import CompletionRun
from .entry_checks import checked_entries, for_each
from .factors_run import new_run_of, run_from_state
from .linear_parts import is_auto
from .rating_runs import new_rating_runs, rating_runs_from_state
from .run import CANNOT_LEARN
from .stream import ArrayRounds, Batch, DoublingRounds, FileStream

__all__ = ["FrankWolfeMatrixCompletion"]

#: ``batch_size="auto"``: so many rounds in one pass, of at least so many observations ...
ROUNDS_PER_PASS, LEAST_BATCH = 1000, 32
#: ... and few rounds where the factors are re-optimised whenever the data have doubled: a power of
#: two, so that the last time is the end.
MANY_ROUNDS = 16


class FrankWolfeMatrixCompletion(CompletedMatrix):
    """A low-rank matrix from a stream of its entries, by online Frank-Wolfe on a trace-norm ball.

    Each batch is one round. The model can predict after each, and new rows and columns may come at
    any time. For a convex loss ``gap_`` bounds how far the mean loss on what is kept of the data
    seen is above the best within the radius. Without arguments it is the best we know for ratings,
    the same as ``ofw fit matrix``; :meth:`paper` is the paper's set-up.

    Rows and columns are known by *indices*, whole numbers from 0 in an array, or by *ids*, which
    are text or whole numbers: the first X decides. Text, arrays of objects, and frames of pandas,
    Polars and Arrow hold ids. Those of rows are of one kind, and so are those of columns.

    What is "auto" is decided once, at the start, by the loss and by the number of observations
    that will come (those of ``fit``; in a stream, ``expected_size``).

    Parameters
    ----------
    radius : float or "auto"
        Of the trace-norm ball. With factors (see ``corrective``) "auto" is theta's own weighted
        norm. With Frank-Wolfe steps it lets five radii race on the
        first part of the stream and keeps the one that predicts new batches best (the middlemost,
        if several do nearly so); give ``shape`` then if you stream with ``partial_fit``, since the
        radii are multiples of sqrt(rows * columns), or call ``prepare``. With many observations
        the radius is only a cap: four times what the values suggest.
    shape : (int, int), optional
        Rows and columns at the start; more are added as they are seen.
    loss : str or Loss
        "square", "logistic", "sigmoid", "gaussian", "bernoulli", "poisson", "exponential", or an
        object of :mod:`onlinefw.losses`.
    offsets : "auto", None, "biases" or "joint"
        Predict mean + row bias + column bias + low rank. "biases" are running shrunken means of
        the values, "joint" those of what the low-rank part leaves over
        (:class:`~onlinefw.objectives.RunningBiases`; pass one for another shrinkage). "auto" is
        "joint" for a regression, None for other losses; factors have biases of their own, with
        every loss, unless this is None.
    weighting : "auto", None or "smoothed"
        Weigh the trace norm by the square roots of half empirical, half uniform frequencies of
        rows and columns. They are refreshed as data come; theta is scaled back into the ball if
        new weights leave it outside. "auto" is "smoothed" for Frank-Wolfe steps, else None.
    clip : "auto" or bool
        Clip predictions of a regression to the range of the values seen; "auto" does.
    step : "auto", None, "line-search" or step rule
        None is the paper's 2 / (t + 1); see :class:`~onlinefw.OnlineFrankWolfe`. A loss as steep
        as "poisson" needs "line-search" (which "auto" is), or a small radius.
    batch_size : int or "auto"
        Observations a round in ``fit``; "auto" makes 1000 rounds of a pass, of at least 32
        observations each (16 rounds with many observations).
    epochs : int
        Passes of ``fit``. From the second on nothing is stored again: rounds use what is
        already kept.
    inner_steps : int
        Frank-Wolfe steps per round.
    corrective : "auto", None, "ridge", "factors" or RidgeSweeps
        "factors" solves the row and the column of each observation exactly
        (:class:`~onlinefw.OnlineFactors`), and takes no Frank-Wolfe steps: ``fit`` and ``learn``
        are compiled loops over single observations; ``fit`` of two million or more learns batches
        that double, and then solves all rows and columns a few times. "ridge" takes Frank-Wolfe
        steps, and re-optimises all factors when the data have doubled, and at the end of ``fit``.
        None takes Frank-Wolfe steps only. "auto" is "factors", unless a loss of your own, a place
        or another parameter (radius, biases, weighting, steps) asks for Frank-Wolfe steps; of
        these, for the square loss, "ridge" if two million observations or more are expected.
    chains : int or "auto"
        How many factor models learn side by side with "factors": more are more accurate, and take
        time and memory in proportion. "auto" is 4, and 1 if two million observations or more are
        expected.
    half_life : float, "auto" or None
        After how many observations one weighs half as much, for ratings that change: F_t is then
        the mean with weights 2**(-age / half_life). What weighs less than a thousandth of a new
        observation is dropped now and then. So memory follows the half-life, ``gap_`` and
        ``mean_loss_`` speak of what is kept, and ``recommend`` may bring back a column that a row
        rated that long ago. By default nothing fades. "auto" lets three memories learn side by
        side, of which the best predicts; one forgets nothing since the data last looked as if they
        had changed.
    max_atoms : int, optional
        How many rank-one terms theta holds before it is recompressed.
    max_rows, max_columns : int
        How far the matrix may grow: memory follows the largest index, so one wrong index is refused
        before it takes all of it.
    certify_every : int, optional
        Fill ``history_["gap_upper"]`` every so many rounds.
    dtype : "float32" or "float64"
        Of the store: with factors 25 to 35 bytes an observation in single precision,
        else about 20 bytes per distinct entry, and nearly twice that in double precision.
    expected_size : int, optional
        How many observations a stream will have, if that is known; ``fit`` knows.
    shuffle : bool
        Let ``fit`` take the observations in random order.
    random_state : int or Generator, optional
        Of the shuffling; a number also of the samples of factors.
    history_size : int
        Rounds kept in ``history_``, thinned evenly in log t.
    verbose : int
        1 shows a progress bar in terminals and notebooks (with ``rich`` installed).
    device : "cpu", "cuda" or "auto"
        Where the data and the factors are: in memory, on a GPU (``pip install 'onlinefw[gpu]'``),
        or on a GPU if there is one. Predictions and factors are handed out as numpy arrays. With
        ``workers`` the device is theirs, one GPU each, and the factors are in memory. With
        ``corrective="factors"`` it is where rows and columns are solved; everything is in memory.
    workers : int, optional
        Spread the data over so many workers of a Ray cluster (:mod:`onlinefw.distributed`): a
        running one, or a local one that is started; by default this process keeps them.

    Attributes
    ----------
    gap_ : float
        An upper bound on how far the objective is above its minimum over the ball, with offsets
        and weights as they are now (with probability 1 - 1e-6). Computed when asked for.
    mean_loss_ : float
        That objective. A larger certificate is uninformative, where no loss is below 0.
    factors_ : (U, s, V)
        Singular value decomposition of the low-rank part.
    rank_ : int
        Its rank.
    mood_ : (fast, slow, gain) or None
        What two means of a row's latest errors are multiplied by in predictions, and about how
        much of the variance of errors that explains (factors, square loss).
    radius_ : float
        The radius in use.
    half_life_ : float or None
        The half-life in use; None while nothing is forgotten.
    changes_ : ndarray of int
        After how many observations the data looked as if they had changed (``half_life="auto"``).
    n_rounds_, n_observations_ : int
        Rounds played, and observations learned.
    shape_ : (int, int)
        Rows and columns seen.
    row_ids_, col_ids_ : ndarray or None
        Ids in the order in which they were learned; None if the model has indices.
    history_ : dict of arrays
        t, loss (paid before learning), gap, gap_upper, step_size, kind, reads, seconds, half_life
        (in use, infinite if nothing is forgotten).
    objective_ : ObservedEntries
        What is kept of the past.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 40))
    >>> X = np.column_stack((rng.integers(50, size=5000), rng.integers(40, size=5000)))
    >>> model = ofw.FrankWolfeMatrixCompletion().fit(X, truth[X[:, 0], X[:, 1]])
    >>> error = model.predict([[3, 5], [7, 1]]) - truth[[3, 7], [5, 1]]
    >>> bool(np.abs(error).max() < 0.5)
    True
    >>> items, scores = model.recommend(3, n=2, exclude_seen=False)
    >>> model = ofw.FrankWolfeMatrixCompletion()
    >>> _ = model.learn([["ann", "Jaws"], ["bob", "Up"], ["bob", "Jaws"]], [5.0, 2.0, 4.0])
    >>> model.recommend("ann")[0]
    array(['Up'], dtype=object)
    """

    _losses = LOSSES

    def __init__(
        self,
        radius: float | str = "auto",
        *,
        shape: tuple[int, int] | None = None,
        loss: str | Loss = "square",
        offsets: str | RunningBiases | None = "auto",
        weighting: str | None = "auto",
        clip: bool | str = "auto",
        step: Any = "auto",
        batch_size: int | str = "auto",
        epochs: int = 1,
        inner_steps: int = 1,
        corrective: str | RidgeSweeps | None = "auto",
        chains: int | str = "auto",
        half_life: float | str | None = None,
        max_atoms: int | None = None,
        max_rows: int = MOST,
        max_columns: int = MOST,
        certify_every: int | None = None,
        dtype: str = "float32",
        expected_size: int | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        history_size: int = 10_000,
        verbose: int = 0,
        device: str = "cpu",
        workers: int | None = None,
    ) -> None:
        self.radius = radius
        self.shape = shape
        self.loss = loss
        self.offsets = offsets
        self.weighting = weighting
        self.clip = clip
        self.step = step
        self.batch_size = batch_size
        self.epochs = epochs
        self.inner_steps = inner_steps
        self.corrective = corrective
        self.chains = chains
        self.half_life = half_life
        self.max_atoms = max_atoms
        self.max_rows = max_rows
        self.max_columns = max_columns
        self.certify_every = certify_every
        self.dtype = dtype
        self.expected_size = expected_size
        self.shuffle = shuffle
        self.random_state = random_state
        self.history_size = history_size
        self.verbose = verbose
        self.device = device
        self.workers = workers

    @classmethod
    def paper(cls, radius: float, **more: Any) -> Self:
        """Return the paper's set-up: raw values, one plain step 2 / (t + 1) a round.

        There are no offsets, no weights of the norm, no corrections, and nothing is clipped.
        ``more`` are further parameters, or other values for these.
        """
        plain: dict[str, Any] = {
            "offsets": None,
            "weighting": None,
            "clip": False,
            "step": None,
            "inner_steps": 1,
            "corrective": None,
        }
        return cls(radius, **{**plain, **more})

    # Learning -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything and stream the observations in batches.

        Parameters
        ----------
        X : array-like of shape (n, 2), frame with two columns, or ParquetRatings
            Row and column of each observation: whole numbers from 0 in an array or a list, which
            are *indices*; or *ids*, which are text, an array of objects, or a frame of pandas,
            Polars or Arrow (then whole numbers are ids, too). Or files with values as well, in
            batches of their own size and order, which ``workers`` read themselves (this process
            does with ``offsets`` or ``weighting``, which it learns from them).
        y : array-like of shape (n,)
            The observed values.
        sample_weight : array-like, optional
            How much each counts.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Play one round with these observations; parameters as for :meth:`fit`.

        X may also be one batch of ParquetRatings.
        """
        return self._partial_fit(X, y, sample_weight)

    def learn(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int = 1
    ) -> Array:
        """Play the observations in the order given, each predicted before it is learned.

        With factors and a batch size of 1 that is one compiled loop; it comes back
        every now and then, so Ctrl-C leaves a whole number of observations learned. Learning in
        pieces of any length is the same as learning at once. On a GPU or with workers it is a
        loop in Python, with an exchange for each batch: there larger batches are the way.

        Parameters
        ----------
        X, y, sample_weight
            As for ``partial_fit``; rows and columns that were never seen get the fallback of
            ``predict``.
        batch_size : int
            How many are learned at a time.

        Returns
        -------
        ndarray
            What was predicted for each before it was learned. Before any data that is 0; for
            observations of weight 0, which are left out, it is nan.
        """
        if batch_size != 1 or not self.takes_events:
            found = super().learn(X, y, sample_weight, batch_size=batch_size)
            return for_each(found, sample_weight)
        run = self.__dict__.get("_run")
        if run is not None and not run.can_learn:
            raise ValueError(CANNOT_LEARN)
        with unchanged_unless_learned(self, []) if run is None else nullcontext():
            batch = self._batch(X, y, sample_weight, run is None, None)
            if run is None:
                self._run = self._new_run(batch, self._expected(), None)
        predicted = self._answer(self._play_events(batch))
        return predicted if sample_weight is None else for_each(predicted, sample_weight)

    def forget(self, row: Any) -> Self:
        """Forget a row, a person say: all that it has given leaves the model.

        Its observations, its bias and factors, its mood, and what it has added to the sums that
        say what is expected of rows are removed, and its id, if the model has ids. The columns that
        it had are solved without it: at once, or with their next observations if they have more
        than two thousand. (Where Frank-Wolfe steps are taken, a round is played without new data.)
        From then on the row is as one that was never seen: predictions fall back, ``recommend``
        leaves out nothing. ``gap_`` is computed anew when it is asked for.

        This is no proof that nothing could be inferred. Files and checkpoints that were written
        before still hold the row, and so does the log of workers while they run. The low-rank part
        may keep traces of what the row has taught the columns; the weights of moods, counts, and
        the losses in ``history_`` are of all that came. With Frank-Wolfe steps on a GPU or with
        workers, where repeated observations of an entry are one sum, their spread stays in the
        scale of the values.

        Parameters
        ----------
        row : int or str
            Its id if the model has ids, else its index. One that the model does not know is
            refused.
        """
        run = self._learning("forget")
        with run.turns:
            number = self._number_of(row)
            self._play(run.forget, number)
        return self

    @property
    def takes_events(self) -> bool:
        """Whether single observations are learned in a compiled loop.

        With a radius they are not: then Frank-Wolfe steps are taken.
        """
        here = self.device == "cpu" or check_device(self.device) == "cpu"
        if self.workers is not None or not here:
            return False  # there a batch is solved at once
        run = self.__dict__.get("_run")
        return run.takes_events if run is not None and run.can_learn else self._parts().factors

    def _stream(self, batch: Batch) -> None:
        if self.takes_events and not self._run.parts.many:
            self._play(self._run.learn_events, batch)
        else:
            self._learn(batch)

    def _array_rounds(self, whole: Batch, size: int) -> ArrayRounds:
        rounds = super()._array_rounds(whole, size)
        parts = CompletionParts.of(self, whole.n)
        double = parts.factors and parts.many and is_auto(self.batch_size)
        return DoublingRounds(whole, size, rounds._order) if double else rounds

    def _predict_any(self, X: Any) -> Array:
        return self.predict_entries(X[:, 0], X[:, 1], unknown="fallback")

    def batch_length(self, n: int) -> int:
        """Return how many of n observations make a round of ``fit``."""
        if not is_auto(self.batch_size):
            return check_whole("batch_size", self.batch_size, otherwise=' or "auto"')
        if n >= MANY and is_auto(self.corrective):
            return ceil(n / MANY_ROUNDS)
        return max(LEAST_BATCH, ceil(n / ROUNDS_PER_PASS))

    def _checked(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        first: bool,
        classes: Any = None,
        ids: Any = None,
    ) -> Batch:
        return checked_entries(self, None if first else self._run, X, y, sample_weight)

    def _parts(self) -> CompletionParts:
        return CompletionParts.of(self, self._expected())

    def _new_run(self, first: Batch, n: int | None, rounds: int | None) -> Any:
        parts = CompletionParts.of(self, n)
        if is_auto(self.half_life):
            return new_rating_runs(parts, first, rounds)
        return new_run_of(parts)(parts, first, rounds)

    # Files ----------------------------------------------------------------------------------------

    def _file_rounds(self, files: Any) -> FileStream:
        if not isinstance(files, ParquetRatings):
            raise ValueError(f"{files}: ratings are needed, ParquetRatings")

        def first() -> Batch:
            batch = self._opened(next(iter(files)))
            try:
                last = np.array([files.shape]) - 1
            except ValueError:  # the files do not say their shape
                return batch
            return batch._replace(X=np.concatenate((batch.X, last)))

        n = sum(batch.stop - batch.start for batch in files)
        return FileStream(files, n, first, self._from_file)

    def _from_file(self, batch: Any, first: bool = False) -> Batch:
        if not isinstance(batch, ParquetBatch):
            raise ValueError(f"{batch}: ratings are needed, ParquetRatings")
        if not first and self._run.ids is not None:
            raise ValueError(
                f"{batch} has the numbers of rows and columns, and this model has ids: read the "
                "ids yourself, and pass them as arrays or frames"
            )
        if self.workers is not None and not first and not is_auto(self.half_life):
            parts = self._run.parts
            if parts.offsets is None and parts.weighting is None and not parts.factors:
                return Batch(batch)
        return self._opened(batch)

    def _opened(self, batch: Any) -> Batch:
        with naming(batch):
            X, y, w = batch.open()
            return self._checked(X, y, w, first=True)

    # State ----------------------------------------------------------------------------------------

    def _loaded_run(self, state: State) -> CompletionRun:
        load: Any = rating_runs_from_state if "runs" in state else run_from_state
        return load(self, state)
