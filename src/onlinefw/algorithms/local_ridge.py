"""Local corrections for matrix completion: an observation's own row and column, solved exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from .._state import check_state
from .._typing import Array, State
from .._validation import check_whole
from ..objectives import Objective, ObservedEntries
from ..objectives.biases import Biases
from ..objectives.entries_batch import EntriesBatch
from ..past.place import loaded_local_models
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall
from .correctives import Corrective

__all__ = ["LocalRidge"]

#: ``ridge="auto"``: a and b of a + b n, and the ridge of biases, of models that race each other ...
RIDGES = (
    (5.0, 0.05, 3.0),
    (10.0, 0.02, 3.0),
    (3.0, 0.08, 6.0),
    (20.0, 0.1, 6.0),
    (0.5, 0.005, 1.0),
)
#: ... until the one that has predicted worst leaves, at each of these numbers of observations.
CUTS = (1_000, 4_000, 16_000, 64_000)
#: The ridge of biases if that of the factors is given.
BIAS_RIDGE = 3.0
#: A ball of this radius holds everything.
NO_CAP = 1e100
#: How often ``correct`` goes through all rows and columns.
SWEEPS = 3


@dataclass
class LocalRidge(Corrective):
    """Re-solve the row and the column of every observation, on everything that they have seen.

    After an observation of entry (i, j) the bias and the factors of row i are the solution of a
    ridge regression on all observations of the row, with the columns held fixed; then those of
    column j. Each solution lowers J, the sum of squared errors plus the penalties of both sides,
    at the current ridges. Frank-Wolfe steps only come with ``refine``: a round's ``kind`` is
    "hold", and its gap nan.

    A ridge a + b n, for a row or column of n observations, belongs to a *weighted* trace norm:
    J is smallest where the squared errors plus twice the trace norm of diag(p) theta diag(q) are,
    with p and q the square roots of the ridges. ``ball`` is the ball of that norm in which theta
    lies on the boundary, and the certificate in it says how far theta is from the best there.
    If the learner's own ball is smaller, theta is scaled into it.

    Ridges are in units of the standard deviation of the values, so it makes no difference in which
    units these are. With ``ridge="auto"`` five pairs race each other: whatever predicts new
    observations worst leaves at 1,000, 4,000, 16,000 and 64,000 of them.

    Besides theta there is a short memory: the average of the latest errors of a row and of a
    column (each new one counts 15%), which are added to predictions with weights that are fitted
    to the stream. They are near 0 where errors of a row do not resemble each other.

    Parameters
    ----------
    rank : int
        Of theta.
    ridge : (float, float) or "auto"
        a and b.
    biases : bool
        Whether rows and columns have biases, and values a mean.
    clip : bool
        Whether predictions are clipped to the range of the values seen.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    >>> X = np.column_stack((rng.integers(60, size=4000), rng.integers(40, size=4000)))
    >>> y = truth[X[:, 0], X[:, 1]]
    >>> objective = ofw.objectives.ObservedEntries((60, 40))
    >>> ball = ofw.sets.TraceNormBall(1e4)
    >>> learner = ofw.OnlineFrankWolfe(objective, ball, corrective=ofw.LocalRidge(4))
    >>> predicted = learner.learn(X, y)  # each one before it is learned
    >>> bool(np.mean((predicted - y)[2000:] ** 2) < 0.05)
    True
    """

    rank: int = 14
    ridge: Any = "auto"
    biases: bool = True
    clip: bool = True
    _models: Any = field(default=None, repr=False)

    takes_rounds = True

    def __post_init__(self) -> None:
        self.rank = check_whole("rank of LocalRidge", self.rank)
        self.biases, self.clip = bool(self.biases), bool(self.clip)
        if isinstance(self.ridge, str) and self.ridge == "auto":
            return
        pair = self.ridge
        if isinstance(pair, str) or np.ndim(pair) != 1 or len(pair) != 2:
            raise ValueError(f'LocalRidge needs a ridge (a, b) or "auto", got {pair!r}')
        a, b = pair
        if not all(isinstance(x, Real) for x in pair) or not (0 < a < inf and 0 <= b < inf):
            raise ValueError(f"LocalRidge needs a ridge (a, b) with a > 0 and b >= 0, got {pair!r}")
        self.ridge = (float(a), float(b))

    def check(self, objective: Objective, constraint: ConvexSet) -> None:
        """Refuse what has no ridge regressions of single rows here."""
        if not isinstance(objective, ObservedEntries) or not objective.quadratic:
            raise ValueError(
                "LocalRidge corrects ObservedEntries with the square loss, "
                f"got {objective}; leave corrective= out"
            )
        if objective.offsets is not None:
            raise ValueError(
                "LocalRidge finds the biases of rows and columns itself: leave offsets= out "
                "(LocalRidge(biases=False) has none)"
            )
        if objective.device != "cpu" or objective.workers is not None:
            raise ValueError(
                "LocalRidge works in the memory of this process: use device='cpu', without workers"
            )

    # Learning -------------------------------------------------------------------------------------

    def begin(self, objective: Objective, constraint: ConvexSet) -> None:
        """Let theta be that of the models, if they have been loaded or copied."""
        if self._models is not None:
            self._show(objective, constraint)

    def receive(self, objective: Objective, constraint: ConvexSet, batch: EntriesBatch) -> None:
        """Solve every row and column of a batch once."""
        rows, cols = batch.rows, batch.cols
        if rows.size == 1:
            self.learn(objective, constraint, batch)
            return
        models = self._grown(objective)
        for part in self._between_cuts(models, rows.size):
            weights = _weights(batch.w[part])
            models.learn(rows[part], cols[part], batch.y[part], weights, solving=False)
            self._cut(models)
        models.solve(np.unique(rows), np.unique(cols))
        self._show(objective, constraint)

    def learn(self, objective: Objective, constraint: ConvexSet, batch: EntriesBatch) -> Array:
        """Learn observations one after another; return what was predicted for each before."""
        models, predicted = self._grown(objective), []
        for part in self._between_cuts(models, batch.rows.size):
            entries = batch.rows[part], batch.cols[part], batch.y[part]
            predicted.append(models.learn(*entries, _weights(batch.w[part])))
            self._cut(models)
        self._show(objective, constraint)
        return predicted[0] if len(predicted) == 1 else np.concatenate(predicted)

    def correct(self, objective: Objective, constraint: ConvexSet) -> None:
        """Solve all rows and all columns, a few times in turn."""
        models = self._grown(objective)
        for _ in range(SWEEPS):
            models.sweep()
        self._show(objective, constraint)

    def _grown(self, objective: Objective) -> Any:
        assert isinstance(objective, ObservedEntries)
        if self._models is None:
            ridges: Any = RIDGES if self.ridge == "auto" else [(*self.ridge, BIAS_RIDGE)]
            options = np.array(ridges), self.biases, self.clip
            self._models = objective.local_models(self.rank, *options)
        elif self._models.shape != objective.shape:
            self._models.grow(*objective.shape)
        return self._models

    def _between_cuts(self, models: Any, n: int) -> list[slice]:
        """Return parts of n observations, so that a model can leave between any two of them."""
        seen = models.n_observations
        edges = [0, *(cut - seen for cut in CUTS if 0 < cut - seen < n), n]
        return [slice(a, b) for a, b in pairwise(edges)]

    def _cut(self, models: Any) -> None:
        if models.n_observations in CUTS and len(models.models.playing) > 1:
            models.drop_worst()

    # Showing --------------------------------------------------------------------------------------

    def _show(self, objective: Objective, constraint: ConvexSet) -> None:
        """Let theta and offsets be those of the best model, in their own memory."""
        assert isinstance(objective, ObservedEntries) and self._models is not None
        models = self._models
        left, right, rows, columns = models.parts(models.best)
        scale = models.sigma
        radius = constraint.radius  # type: ignore[attr-defined]
        if radius < NO_CAP:
            bound = scale * self._norm(left, right, constraint)
            scale *= min(1.0, radius / bound) if bound > 0.0 else 1.0
        objective.hold(left, np.full(self.rank, scale), right, rows, columns)

    def _norm(self, left: Array, right: Array, constraint: ConvexSet) -> float:
        """Return a bound on the trace norm of left right'."""
        sizes = []
        weights: tuple[Any, Any] = (None, None)
        if isinstance(constraint, WeightedTraceNormBall):
            weights = constraint.rows, constraint.columns
        for factor, weight in zip((left, right), weights, strict=True):
            squares = np.einsum("ik,ik->i", factor[:, : self.rank], factor[:, : self.rank])
            sizes.append(squares.sum(dtype=float) if weight is None else weight**2 @ squares)
        return float(np.sqrt(sizes[0] * sizes[1]))

    def ball(self, objective: Objective) -> ConvexSet:
        """Return the ball of the norm that belongs to the ridges, with theta on its boundary."""
        assert isinstance(objective, ObservedEntries) and self._models is not None
        models = self._models
        a, b, _ = models.models.ridges[models.best]
        counts = objective.weighted_sums(*(np.ones(n) for n in objective.shape))
        rows, columns = (np.sqrt(a + b * n) for n in counts)
        norm = WeightedTraceNormBall(1.0, rows, columns).norm(objective.theta)
        if norm == 0.0:
            return TraceNormBall(1.0)
        return WeightedTraceNormBall(norm, rows, columns)

    def found_biases(self) -> Biases | None:
        """Return mean and biases of rows and columns; None without biases."""
        models = self._models
        if models is None or not self.biases:
            return None
        _, _, rows, columns = models.parts(models.best)
        seen = models.by_row.length[: rows.size] > 0
        return Biases(models.mean, np.where(seen, rows - models.mean, 0.0), columns.astype(float))

    def whole_offsets(self) -> tuple[Array, Array] | None:
        """Return all that is added to theta in rows and columns, short memories included."""
        models = self._models
        if models is None:
            return None
        _, _, rows, columns = models.parts(models.best)
        of_rows, of_columns = models.all_memories(models.best)
        return rows + of_rows, columns + of_columns

    def memories(self, rows: Array, cols: Array) -> Array:
        """Return what the short memories add to the predictions of entries."""
        if self._models is None:
            return np.zeros(rows.size)
        return self._models.memories(self._models.best, rows, cols)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return parameters and models."""
        ridge = self.ridge if isinstance(self.ridge, str) else list(self.ridge)
        models = None if self._models is None else self._models.state_dict()
        parameters = {"rank": self.rank, "ridge": ridge, "biases": self.biases, "clip": self.clip}
        return {**parameters, "models": models}

    def load_state(self, state: State) -> None:
        """Take over parameters and models that ``state_dict`` returned."""
        check_state(state, "rank", "ridge", "biases", "clip", "models")
        models = None if state["models"] is None else loaded_local_models(state["models"])
        ridge = state["ridge"] if isinstance(state["ridge"], str) else tuple(state["ridge"])
        new = LocalRidge(state["rank"], ridge, state["biases"], state["clip"], models)
        if models is not None and models.models.rank != new.rank:
            raise ValueError(f"the models have rank {models.models.rank}, not {new.rank}")
        vars(self).update(vars(new))


def _weights(w: Array) -> Array | None:
    """Return the weights of observations, or None if all weigh 1."""
    return None if (w == 1.0).all() else w
