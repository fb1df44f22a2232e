"""Online matrix completion as a scikit-learn estimator."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from math import ceil, sqrt
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._devices import to_host
from .._typing import Array
from .._validation import (
    check_alone,
    check_indices,
    check_magnitude,
    check_precision,
    check_targets,
    check_weights,
    check_whole,
)
from ..algorithms import OnlineFrankWolfe, RidgeSweeps, Round
from ..distributed.file_rounds import FileBatch, FileRounds
from ..distributed.parquet import ParquetBatch, ParquetRatings
from ..losses import Bernoulli, Exponential, Gaussian, Logistic, Loss, Poisson, Sigmoid, Square
from ..objectives import ObservedEntries, RunningBiases
from ..objectives.from_files import naming
from ..sets import TraceNormBall
from ..steps import Harmonic, LineSearch
from .history import History
from .learnable import check_can_learn
from .progress import progress
from .race import Race
from .smoothed_weights import SmoothedWeights
from .unpickled import GoesOnHere

__all__ = ["FrankWolfeMatrixCompletion"]

LOSSES: dict[str, type[Loss]] = {
    "square": Square,
    "logistic": Logistic,
    "sigmoid": Sigmoid,
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "exponential": Exponential,
}
#: ``batch_size="auto"``: so many rounds in one pass.
ROUNDS_PER_PASS = 1000
#: ``radius="auto"``: these times sqrt(rows * columns) * the size of the values race each other ...
RADII = (0.25, 0.5, 1.0, 2.0, 4.0)
#: ... over this part of a fit, and over this many rounds of ``partial_fit``.
RACE_SHARE, RACE_ROUNDS = 0.2, 100
#: A race keeps a store per candidate, so it ends after this many observations.
RACE_SIZE = 1_000_000
#: How often a pass without new data brings the biases up to date.
REFRESHES_PER_PASS = 10


class FrankWolfeMatrixCompletion(GoesOnHere, BaseEstimator):
    """A low-rank matrix from a stream of its entries, by online Frank-Wolfe on a trace-norm ball.

    Each batch costs one round: the model is right *now*, rows and columns may appear at any time,
    and ``gap_`` says how far from optimal it is.

    Parameters
    ----------
    radius : float or "auto"
        Of the trace-norm ball. "auto" lets five radii race on the first part of the stream and
        keeps the one that predicts new batches best (the middlemost, if several do nearly so).
        Give ``shape`` if you stream with ``partial_fit``, since the radii are multiples of
        sqrt(rows * columns). Values far from 0 want ``offsets="biases"``: otherwise theta must
        reach them first.
    shape : (int, int), optional
        Rows and columns at the start; more are added as they are seen.
    loss : str or Loss
        "square", "logistic", "sigmoid", "gaussian", "bernoulli", "poisson", "exponential", or an
        object of :mod:`onlinefw.losses`.
    offsets : None, "biases" or "joint"
        Predict mean + row bias + column bias + low rank. "biases" are running shrunken means of
        the values, "joint" those of what the low-rank part leaves over
        (:class:`~onlinefw.objectives.RunningBiases`; pass one for another shrinkage).
    weighting : None or "smoothed"
        Weigh the trace norm by the square roots of half empirical, half uniform frequencies of
        rows and columns. They follow the data; theta is scaled back into the ball if a change of
        weights leaves it outside.
    clip : bool
        Clip predictions of a regression to the range of the values seen.
    step : None, "line-search" or step rule
        None is the paper's 2 / (t + 1); see :class:`~onlinefw.OnlineFrankWolfe`. A loss as steep
        as "poisson" needs "line-search", or a small radius.
    batch_size : int or "auto"
        Observations a round in ``fit``; "auto" makes 1000 rounds of a pass.
    epochs : int
        Passes of ``fit``. From the second on nothing is stored again: rounds go on with what is
        held.
    inner_steps : int
        Frank-Wolfe steps per round.
    atoms_per_round : int
        Spread every step over so many singular pairs.
    corrective : None, "ridge" or RidgeSweeps
        Re-optimise the factors when the data have doubled, and at the end of ``fit``.
    max_atoms : int, optional
        How many rank-one terms theta holds before it is recompressed.
    certify_every : int, optional
        Fill ``history_["gap_upper"]`` every so many rounds.
    dtype : "float32" or "float64"
        Of the store: about 20 or 36 bytes per distinct entry.
    shuffle : bool
        Let ``fit`` take the observations in random order.
    random_state : int or Generator, optional
        Of the shuffling.
    history_size : int
        Rounds kept in ``history_``, thinned evenly in log t.
    verbose : int
        1 shows a progress bar in terminals and notebooks (with ``rich`` installed).
    device : "cpu", "cuda" or "auto"
        Where the data and the factors live: in memory, on a GPU (``pip install 'onlinefw[gpu]'``),
        or on a GPU if there is one. Predictions and factors are handed out as numpy arrays. With
        ``workers`` the device is theirs, one GPU each, and the factors are in memory.
    workers : int, optional
        Spread the data over so many workers of a Ray cluster (:mod:`onlinefw.distributed`): a
        running one, or a local one that is started; by default they are in this process.

    Attributes
    ----------
    gap_ : float
        An upper bound on how far the objective is above its minimum over the ball, with offsets
        and weights as they are now (with probability 1 - 1e-6). Computed when asked for.
    factors_ : (U, s, V)
        Singular value decomposition of the low-rank part.
    rank_ : int
        Its rank.
    radius_ : float
        The radius in use.
    n_rounds_ : int
        Rounds played.
    history_ : dict of arrays
        t, loss (paid before learning), gap, gap_upper, step_size, kind, reads, seconds.
    objective_ : ObservedEntries
        What is kept of the past.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 40))
    >>> X = np.column_stack((rng.integers(50, size=5000), rng.integers(40, size=5000)))
    >>> model = ofw.FrankWolfeMatrixCompletion(radius=120.0).fit(X, truth[X[:, 0], X[:, 1]])
    >>> error = model.predict([[3, 5], [7, 1]]) - truth[[3, 7], [5, 1]]
    >>> bool(np.abs(error).max() < 0.5)
    True
    >>> items, scores = model.recommend(3, n=2, exclude_seen=False)
    """

    def __init__(
        self,
        radius: float | str = "auto",
        *,
        shape: tuple[int, int] | None = None,
        loss: str | Loss = "square",
        offsets: str | RunningBiases | None = None,
        weighting: str | None = None,
        clip: bool = False,
        step: Any = None,
        batch_size: int | str = "auto",
        epochs: int = 1,
        inner_steps: int = 1,
        atoms_per_round: int = 1,
        corrective: str | RidgeSweeps | None = None,
        max_atoms: int | None = None,
        certify_every: int | None = None,
        dtype: str = "float32",
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
        self.atoms_per_round = atoms_per_round
        self.corrective = corrective
        self.max_atoms = max_atoms
        self.certify_every = certify_every
        self.dtype = dtype
        self.shuffle = shuffle
        self.random_state = random_state
        self.history_size = history_size
        self.verbose = verbose
        self.device = device
        self.workers = workers

    # Learning -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything and stream the observations in batches.

        Parameters
        ----------
        X : array-like of shape (n, 2), or ParquetRatings
            Row and column of each observation, whole numbers from 0. Or files with values as well,
            in batches of their own size and order, which ``workers`` read themselves (this process
            does with ``offsets`` or ``weighting``, which it learns from them).
        y : array-like of shape (n,)
            The observed values.
        sample_weight : array-like, optional
            How much each counts.
        """
        if isinstance(X, ParquetRatings):
            check_alone(y, sample_weight)
            return self._fit_files(X)
        X, y, w = self._checked(X, y, sample_weight)
        size = self._batch_length(len(y))
        rounds = ceil(len(y) / size)
        order = np.arange(len(y))
        if self.shuffle:
            order = self._generator().permutation(len(y))
        self._start(_shape_of(X), y, _race_rounds(rounds, size))
        parts = (order[k * size : (k + 1) * size] for k in range(rounds))
        batches = ((X[part], y[part], None if w is None else w[part]) for part in parts)
        return self._stream(batches, rounds)

    def _fit_files(self, ratings: ParquetRatings) -> Self:
        if self.shuffle:
            raise ValueError("files are read in their order: use shuffle=False with ParquetRatings")
        if len(ratings) == 0:
            raise ValueError(f"there is nothing to learn from: {ratings}")
        X, y, _ = self._read(next(iter(ratings)))
        try:
            shape = ratings.shape
        except ValueError:  # the files do not say
            shape = _shape_of(X)
        rounds = len(ratings)
        self._start(shape, y, _race_rounds(rounds, ratings.batch_size))
        return self._stream(map(self._left_to_workers, ratings), rounds)

    def _stream(self, batches: Iterable[Any], rounds: int) -> Self:
        epochs = int(self.epochs)
        with progress(self.verbose, rounds * epochs) as advance:
            for batch in batches:
                self._learn(*batch)
                advance()
            for k in range(rounds * (epochs - 1)):
                self._refine(k, rounds)
                advance()
        return self.correct()

    def _left_to_workers(self, batch: ParquetBatch) -> tuple[Any, Array | None, Array | None]:
        """Return a batch as it is where workers can read it, and what is in it otherwise."""
        here = self.workers is None or self.offsets is not None or self.weighting is not None
        return self._read(batch) if here else (batch, None, None)

    def _read(self, batch: ParquetBatch) -> tuple[Array, Array, None]:
        with naming(batch):
            X, y, _ = self._checked(*batch.read(), None)
        return X, y, None

    def correct(self) -> Self:
        """Re-optimise the factors now, if ``corrective`` is set; ``fit`` does so at its end."""
        check_is_fitted(self, "_learner")
        if self._learner.corrective is not None:
            self._learner.correct()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Play one round with these observations; parameters as for :meth:`fit`.

        X may also be one batch of ParquetRatings.
        """
        check_can_learn(self)
        if isinstance(X, ParquetBatch):
            check_alone(y, sample_weight)
            if not hasattr(self, "_learner"):
                first = self._read(X)
                self._begin(*first[:2], len(first[1]))
            self._learn(*self._left_to_workers(X))
            return self
        X, y, w = self._checked(X, y, sample_weight)
        if not hasattr(self, "_learner"):
            self._begin(X, y, len(y))
        self._learn(X, y, w)
        return self

    def _begin(self, X: Array, y: Array, batch_length: int) -> None:
        """Get ready for a stream of batches; the radii fit the shape and size of what is given."""
        self._start(_shape_of(X), y, min(RACE_ROUNDS, max(10, ceil(RACE_SIZE / batch_length))))

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        """Refuse bad observations before anything changes."""
        if isinstance(X, (FileBatch, FileRounds)):
            raise ValueError(f"{X}: ratings are needed, ParquetRatings")
        if y is None:
            raise ValueError("y is missing: pass the observed value of each entry")
        rows, cols = check_indices(X, (0, 0), growing=True)
        y = check_targets(y, rows.size, self._loss())
        w = check_weights(sample_weight, rows.size)
        check_magnitude(y, w, check_precision(self.dtype))
        X = np.column_stack((rows, cols))
        if sample_weight is None:
            return X, y, None
        counts = w > 0.0  # a batch of fit may happen to have no weight at all
        return X[counts], y[counts], w[counts]

    def _loss(self) -> Loss:
        if isinstance(self.loss, str) and self.loss in LOSSES:
            return LOSSES[self.loss]()
        if not isinstance(self.loss, Loss):
            raise ValueError(
                f"loss must be one of {', '.join(LOSSES)} or a Loss, got {self.loss!r}"
            )
        return self.loss

    def _batch_length(self, n: int) -> int:
        if self.batch_size == "auto":
            return ceil(n / ROUNDS_PER_PASS)
        return check_whole("batch_size", self.batch_size, otherwise=' or "auto"')

    def _start(self, seen: tuple[int, int], y: Array, race_rounds: int) -> None:
        """Make the learners; parameters are checked here, as scikit-learn wants it."""
        check_whole("epochs", self.epochs)
        history_size = check_whole("history_size", self.history_size, 2)
        _choice("weighting", self.weighting, (None, "smoothed"))
        shape = tuple(max(sizes) for sizes in zip(seen, self._least_shape(), strict=True))
        if isinstance(self.radius, str) and self.radius == "auto":
            scale = sqrt(shape[0] * shape[1]) * self._size(y)
            radii = [factor * scale for factor in RADII]
        elif isinstance(self.radius, Real):
            radii = [float(self.radius)]
        else:
            raise ValueError(f'radius must be a positive number or "auto", got {self.radius!r}')
        learners = [self._new_learner(shape, radius) for radius in radii]
        self._race = Race(learners, race_rounds) if len(learners) > 1 else None
        self._learner = learners[0]
        self._history = History(history_size)
        self._low, self._high = np.inf, -np.inf
        self._weights = None if self.weighting is None else SmoothedWeights()
        self.n_features_in_ = 2
        for name in ("_only_predicts", "row_ids_", "col_ids_"):  # of a model file
            self.__dict__.pop(name, None)

    def _size(self, y: Array) -> float:
        """How large the entries of theta will be, about."""
        families = (Bernoulli, Poisson, Exponential)  # theta is not in the units of y
        if self.offsets is not None or isinstance(self._loss(), families):
            return float(np.std(y)) or 1.0
        return float(np.sqrt(np.mean(y**2))) or 1.0

    def _least_shape(self) -> tuple[int, int]:
        if self.shape is None:
            return 1, 1
        if np.ndim(self.shape) != 1 or len(self.shape) != 2:
            raise ValueError(f"shape must be (rows, columns) or None, got {self.shape!r}")
        rows, columns = (check_whole("each side of shape", n) for n in self.shape)
        return rows, columns

    def _generator(self) -> np.random.Generator:
        try:
            return np.random.default_rng(self.random_state)
        except (TypeError, ValueError):
            raise ValueError(
                "random_state must be None, a whole number of at least 0 or a Generator, "
                f"got {self.random_state!r}"
            ) from None

    def _new_learner(self, shape: tuple[int, ...], radius: float) -> OnlineFrankWolfe:
        objective = ObservedEntries(
            shape,
            self._loss(),
            dtype=self.dtype,
            growing=True,
            offsets=self._new_biases(),
            max_atoms=self.max_atoms,
            device=self.device,
            workers=self.workers,
        )
        return OnlineFrankWolfe(
            objective,
            TraceNormBall(radius),
            step=self._step_rule(),
            inner_steps=self.inner_steps,
            certify_every=self.certify_every,
            atoms_per_round=self.atoms_per_round,
            corrective=self._new_corrective(),
        )

    def _new_biases(self) -> RunningBiases | None:
        if isinstance(self.offsets, RunningBiases):
            return RunningBiases(self.offsets.shrinkage, joint=self.offsets.joint)
        _choice("offsets", self.offsets, (None, "biases", "joint"))
        return None if self.offsets is None else RunningBiases(joint=self.offsets == "joint")

    def _step_rule(self) -> Any:
        if self.step is None:
            return Harmonic(2)
        searched = isinstance(self.step, str) and self.step == "line-search"
        return LineSearch() if searched else self.step

    def _new_corrective(self) -> RidgeSweeps | None:
        if isinstance(self.corrective, RidgeSweeps):
            return dataclasses.replace(self.corrective, _due=0.0, _found=None)
        _choice("corrective", self.corrective, (None, "ridge"))
        return None if self.corrective is None else RidgeSweeps()

    def _refine(self, k: int, rounds: int) -> None:
        """Play round k of the later epochs, each of so many rounds, with the entries held."""
        self._take_places()
        if k % ceil(rounds / REFRESHES_PER_PASS) == 0:
            self.objective_.refresh_offsets()
        self._record(self._learner.refine())

    def _learn(self, X: Any, y: Array | None, w: Array | None) -> None:
        self._history.start()
        self._take_places()
        if self._weights is not None:
            self._weights.make_room(self._learners, X)
        player = self._learner if self._race is None else self._race
        round_ = player.observe(X, y, w)
        if self._race is not None:
            over = self._race.over
            self._learner = self._race.winner if over else self._race.leader
            if over:
                self._race = None
        low, high = X.value_range() if y is None else (float(y.min()), float(y.max()))
        self._low, self._high = min(self._low, low), max(self._high, high)
        if self._weights is not None:
            self._weights.follow(self._learners)
        self._record(round_)

    def _take_places(self) -> None:
        """Bring the data where they should be: a file holds the data, not where they were."""
        for learner in self._learners:
            learner.objective.use_places(self.device, self.workers)  # type: ignore[attr-defined]

    @property
    def _learners(self) -> list[OnlineFrankWolfe]:
        return [self._learner] if self._race is None else self._race.learners

    def _record(self, round_: Round) -> None:
        self._history.append(round_)

    # Asking ---------------------------------------------------------------------------------------

    def predict(self, X: Any, *, unknown: str = "raise") -> Array:
        """Return the expected value of entries.

        For the square loss that is the model itself; for exponential families their mean; for
        labels (logistic, sigmoid) -1 or +1.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            Rows and columns.
        unknown : "raise" or "fallback"
            What to do with rows or columns that were never seen: refuse, or predict what the
            offsets know about them: the mean plus the bias of the row or column that was seen
            (0 without offsets).
        """
        z = self.decision_function(X, unknown=unknown)
        loss = self._learner.objective.loss  # type: ignore[attr-defined]
        if isinstance(loss, (Logistic, Sigmoid)):
            return np.where(z >= 0.0, 1.0, -1.0).astype(z.dtype)
        if isinstance(loss, (Bernoulli, Poisson, Exponential)):
            return loss.derivative(z, 0.0)  # the mean of G(z) - y z is G'(z)
        return np.clip(z, self._low, self._high) if self.clip else z

    def decision_function(self, X: Any, *, unknown: str = "raise") -> Array:
        """Return the model's entries, low-rank part plus offsets; parameters as for predict."""
        check_is_fitted(self, "_learner")
        _choice("unknown", unknown, ("raise", "fallback"))
        rows, cols = check_indices(X, (0, 0), growing=True)
        objective = self.objective_
        m1, m2 = objective.shape or (0, 0)
        known = (rows < m1) & (cols < m2)
        if unknown == "raise" and not known.all():
            k = int(np.argmin(known))
            raise ValueError(
                f"X has the entry ({rows[k]}, {cols[k]}), but the model has seen {m1} rows and "
                f'{m2} columns; pass unknown="fallback" to predict what is known without it'
            )
        if known.all():
            return objective.predict(rows, cols)
        z = self._fallback(rows, cols)
        z[known] = objective.predict(rows[known], cols[known])
        return z

    def _fallback(self, rows: Array, cols: Array) -> Array:
        """Mean and biases where they are known; 0 without offsets."""
        objective = self.objective_
        biases = objective.offsets or RunningBiases()
        z = np.full(rows.size, biases.mean)
        for index, known in ((rows, biases.rows), (cols, biases.columns)):
            seen = index < known.size
            z[seen] += known[index[seen]]
        return z.astype(objective.dtype)

    def score(self, X: Any, y: Any) -> float:
        """Return the coefficient of determination R^2 of the predictions (1 is best)."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, unknown="fallback")))

    def recommend(self, row: int, n: int = 10, *, exclude_seen: bool = True) -> tuple[Array, Array]:
        """Return the n columns with the largest predictions in a row, and these.

        For labels the margins are returned instead: they tell +1 from +1.

        Parameters
        ----------
        row : int
            The row.
        n : int
            How many columns, at most.
        exclude_seen : bool
            Leave out columns in which the row has been observed.
        """
        check_is_fitted(self, "_learner")
        objective = self.objective_
        m1, m2 = objective.shape or (0, 0)
        if not isinstance(row, Integral) or not 0 <= row < m1:
            raise ValueError(f"row must be one of the {m1} rows seen, 0 to {m1 - 1}, got {row!r}")
        n = check_whole("n", n)
        scores = objective.predict(np.full(m2, int(row)), np.arange(m2)).astype(float)
        if exclude_seen:
            scores[objective.columns_of(int(row))] = -np.inf
        best = np.argsort(-scores, kind="stable")[:n]
        best = best[scores[best] > -np.inf]
        if best.size == 0:
            return best, np.empty(0, objective.dtype)
        entries = np.column_stack((np.full(best.size, int(row)), best))
        labels = isinstance(objective.loss, (Logistic, Sigmoid))
        return best, self.decision_function(entries) if labels else self.predict(entries)

    @property
    def objective_(self) -> ObservedEntries:
        """What is kept of the past."""
        check_is_fitted(self, "_learner")
        objective = self._learner.objective
        assert isinstance(objective, ObservedEntries)
        return objective

    @property
    def gap_(self) -> float:
        """The certificate of the current model."""
        check_is_fitted(self, "_learner")
        return self._learner.certificate()

    @property
    def factors_(self) -> tuple[Array, Array, Array]:
        """(U, s, V) with low-rank part = U diag(s) V'."""
        u, s, v = self.objective_._low_rank.svd()
        k = int(np.count_nonzero(s > s[0] * 10 * np.finfo(self.objective_.dtype).eps))
        return to_host(u[:, :k]), s[:k], to_host(v[:, :k])

    @property
    def rank_(self) -> int:
        """The rank of the low-rank part."""
        return self.factors_[1].size

    @property
    def radius_(self) -> float:
        """The radius in use."""
        check_is_fitted(self, "_learner")
        return float(self._learner.constraint.radius)  # type: ignore[attr-defined]

    @property
    def n_rounds_(self) -> int:
        """Rounds played."""
        check_is_fitted(self, "_learner")
        return self._learner.t

    @property
    def history_(self) -> dict[str, Array]:
        """What happened, as columns ready for pandas."""
        check_is_fitted(self, "_learner")
        return self._history.as_dict()


def _choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if not any(
        value is option or (isinstance(value, str) and value == option) for option in allowed
    ):
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {options}, got {value!r}")


def _shape_of(X: Array) -> tuple[int, int]:
    """Return the rows and columns that the observations are in."""
    row, column = X.max(axis=0)
    return int(row) + 1, int(column) + 1


def _race_rounds(rounds: int, size: int) -> int:
    """Return over how many of the rounds of a fit radii race each other."""
    race = max(10, min(ceil(RACE_SHARE * rounds), ceil(RACE_SIZE / size)))
    return min(race, rounds)
