"""Local corrections for matrix completion: an observation's own row and column, solved exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from ..past.models_state import LARGEST_RANK
from ..past.place import is_compiled, loaded_local_models
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall
from .correctives import Corrective

__all__ = ["LocalRidge"]

#: ``ridge="auto"``: a and b of a + b n of the models that are mixed.
RIDGES = ((10.0, 0.02), (5.0, 0.1), (2.0, 0.02))
#: Where entries that were not observed count, there is one model, and noise has a part in its
#: ridge: a, b and c of a + b n + c noise.
RIDGES_OF_CLICKS = ((0.1, 0.0, 0.55),)
#: The ridge of biases.
BIAS_RIDGE = 8.0
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
    at the current ridges. Every eighth observation solves some more rows and columns in turn, since
    what they were solved with has changed: all of them once while the data double. Frank-Wolfe
    steps only come with ``refine``: a round's ``kind`` is "hold", and its gap nan.

    A list of more than a thousand observations is not read anew each time: it has running sums,
    which are made from the beginning piece by piece. So the time of an observation is bounded. A
    batch that brings a list one of a thousand of its observations, or more, does read all of it.

    Any loss of :mod:`onlinefw.losses` will do. Where it is no parabola a solution is that of a few
    parabolas that touch it (Newton's method, or reweighted squares where it is not convex), each
    drawn back until J does not rise; for long lists J is that of the latest thousand.

    A ridge a + b n, for a row or column of n observations, belongs to a *weighted* trace norm:
    J is smallest where the squared errors plus twice the trace norm of diag(p) theta diag(q) are,
    with p and q the square roots of the ridges. ``ball`` is the ball of that norm in which theta
    lies on the boundary, and the certificate in it bounds how far theta's loss is above the best.
    If the learner's own ball is smaller, theta is scaled into it.

    Ridges are in units of the standard deviation of the values, so it makes no difference in which
    units these are (for other losses, in units of curvature and dispersion). With
    ``ridge="auto"`` three models learn side by side, with strong, medium and weak ridges, and
    theta is their mixture: its weights are those that would have predicted
    observations best before they were learned (recursive least squares). A mixture is of low rank,
    as its models are.

    Besides theta there is a short memory: the average of the latest errors of a row and of a
    column (each new one counts 15%), which are added to predictions with weights that are found in
    the same way. They are near 0 where errors of a row do not resemble each other.

    Where entries that were not observed count as zeros (``ObservedEntries(unobserved=...)``, for
    clicks), a row is solved on all columns, and a column on all rows, though that takes no longer.
    There is one model then, without biases, clipping or memories, in the memory of this process.
    In a + b n, n is the weight of what was observed plus that of as many zeros as there are columns
    (or rows). With ``ridge="auto"`` the penalty is 0.1 plus 0.55 times what noise is worth: the
    root of what the row has been observed, plus the root of what columns have on average. An entry
    that is observed again gets more weight. ``learner.learn(X, y, ranks=True)`` tells which place
    each event's column had before.

    With entries on a GPU or with workers all rows of a batch are solved at once, then all columns.
    A batch there is a batch here, to rounding (but for rows and columns that have a thousand
    observations for each one in the batch, and have running sums here, in which some factors are
    older). Single observations are batches of one, which take much longer there than here.

    Parameters
    ----------
    rank : int or "auto"
        Of each model; theta has that of all of them together. "auto" begins with 14. For clicks it
        is about twice the events of a mean row (or column, if that has fewer), looked at whenever
        these have doubled, and at most 126 (62 where they are learned one by one).
        For values, after 1,000 observations, and whenever they have doubled, it may become 21, if
        all of it is in use: if the smallest singular value of the model with the medium ridge is a
        tenth of the largest or more, and the largest is more than what is left of the start.
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

    rank: int | str = "auto"
    ridge: Any = "auto"
    biases: bool = True
    clip: bool = True
    _models: Any = field(default=None, repr=False)

    takes_rounds = True

    def __post_init__(self) -> None:
        if not (isinstance(self.rank, str) and self.rank == "auto"):
            self.rank = check_whole("rank of LocalRidge", self.rank, otherwise=' or "auto"')
            if self.rank > LARGEST_RANK:
                raise ValueError(
                    f"rank of LocalRidge must be at most {LARGEST_RANK}, got {self.rank}"
                )
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
        """Refuse what has no regressions of single rows here."""
        if not isinstance(objective, ObservedEntries) or not is_compiled(objective.loss):
            raise ValueError(
                "LocalRidge corrects ObservedEntries with a loss of onlinefw.losses, "
                f"got {objective}; leave corrective= out"
            )
        if objective.offsets is not None:
            raise ValueError(
                "LocalRidge finds the biases of rows and columns itself: leave offsets= out "
                "(LocalRidge(biases=False) has none)"
            )
        elsewhere = objective.device != "cpu" or objective.workers is not None
        if elsewhere and not objective.quadratic:
            raise ValueError(
                f"LocalRidge corrects {objective.loss} in the memory of this process only: use "
                "device='cpu', without workers"
            )
        objective.check_local_clicks(objective.device, objective.workers)

    # Learning -------------------------------------------------------------------------------------

    def begin(self, objective: Objective, constraint: ConvexSet) -> None:
        """Have entries listed by row and by column, and theta be that of models that were loaded.

        If ``refine`` had moved theta before, it stays there until the next observation.
        """
        assert isinstance(objective, ObservedEntries)
        objective.list_entries()
        if self._models is not None:
            self._models = self._here(objective)
            if self._holds(objective):
                self._show(objective, constraint)

    def _holds(self, objective: ObservedEntries) -> bool:
        """Whether theta has the factors of the models."""
        theta, (left, _, right) = objective.theta, self._models.factors()
        pairs = (theta.left, left), (theta.right, right)  # type: ignore[union-attr]
        return all(x.shape == y.shape and bool((x == y).all()) for x, y in pairs)

    def receive(self, objective: Objective, constraint: ConvexSet, batch: EntriesBatch) -> float:
        """Solve every row and column of a batch once; return the mean of the losses before."""
        rows, cols, y, w = batch[:4]
        models, *weights = self._counted(objective, batch)
        scaled = constraint.radius < NO_CAP  # type: ignore[attr-defined]
        before = objective.predict(rows, cols) if scaled else None  # type: ignore[attr-defined]
        if rows.size == 1:
            predicted = models.learn(rows, cols, y, *weights)
            self._show(objective, constraint)
        else:
            predicted = models.learn(rows, cols, y, *weights, solving=False)
            in_turn = models.in_turn(rows.size)
            models.solve(np.union1d(rows, in_turn[0]), np.union1d(cols, in_turn[1]))
            self._show(objective, constraint)
        predicted = predicted if before is None else before
        return float(w @ objective.loss.value(predicted, y) / w.sum())  # type: ignore[attr-defined]

    def learn(
        self,
        objective: Objective,
        constraint: ConvexSet,
        batch: EntriesBatch,
        ranks: Array | None = None,
    ) -> Array:
        """Learn observations one after another; return what was predicted for each before.

        ``ranks`` (clicks only) gets the place that its column had then: 1 is the best of those
        that had been seen and that the row had not had; nan for a column that nobody had seen, or
        that the row had.
        """
        assert isinstance(objective, ObservedEntries)
        if ranks is not None and objective.unobserved == 0.0:
            raise ValueError("ranks are those of clicks: use ObservedEntries(..., unobserved=0.1)")
        predicted = []
        for which in objective.stretches(batch.w):
            part = batch if which == slice(0, batch.w.size) else batch.part(which)
            models, *weights = self._counted(objective, part)
            told = {} if ranks is None else {"ranks": ranks[which]}
            predicted.append(models.learn(part.rows, part.cols, part.y, *weights, **told))
        self._show(objective, constraint)
        return predicted[0] if len(predicted) == 1 else np.concatenate(predicted)

    def forget(self, objective: Objective, constraint: ConvexSet, row: int) -> None:
        """Be without a row: its entries leave, and the columns that it had are solved again."""
        assert isinstance(objective, ObservedEntries)
        if self._models is None:
            objective.forget(row)
            return
        self._models = self._here(objective)
        models = self._grown(objective)
        objective.changing()
        gone = objective.remove_entries(row)
        models.forget(row, gone, *objective.value_range())
        self._show(objective, constraint)

    def go_on(self, half_life: float | None) -> None:
        """Let the errors of the models fade as observations do from now on."""
        if self._models is not None:
            self._models.fade(inf if half_life is None else half_life)

    def correct(self, objective: Objective, constraint: ConvexSet) -> None:
        """Solve all rows and all columns, a few times in turn."""
        assert isinstance(objective, ObservedEntries)
        for _ in range(SWEEPS):
            self.sweep(objective, constraint)

    def sweep(self, objective: ObservedEntries, constraint: ConvexSet) -> None:
        """Solve all rows and all columns once."""
        self._models = self._here(objective)
        models = self._grown(objective)
        objective.changing()
        models.sweep()
        self._show(objective, constraint)

    def _counted(
        self, objective: Objective, batch: EntriesBatch
    ) -> tuple[Any, Array | None, Array | None]:
        """Return the models, in a matrix that has the rows and columns of a batch.

        With them come weights (None: all 1) and units of the observations.
        """
        assert isinstance(objective, ObservedEntries)
        self._models = self._here(objective)
        weights, units = objective.count(batch, self._grown(objective))
        return self._models, _weights(weights) if units is None else weights, units

    def _grown(self, objective: ObservedEntries) -> Any:
        """Return the models; if the objective was made larger by itself, they are so now."""
        if self._models.shape != objective.shape:
            self._models.grow(*objective.shape)
        return self._models

    def _here(self, objective: ObservedEntries) -> Any:
        """Return the models at the place of the entries, which may be another since last round."""
        if self._models is not None:
            return objective.local_models(self._models)
        of_clicks = objective.unobserved > 0.0
        if self.ridge == "auto" and of_clicks:
            ridges = np.array(RIDGES_OF_CLICKS)
        else:
            pairs = RIDGES if self.ridge == "auto" else [self.ridge]
            ridges = np.array([(*pair, 0.0 if of_clicks else BIAS_RIDGE) for pair in pairs])
        rank = None if self.rank == "auto" else self.rank
        return objective.local_models(None, rank, ridges, self.biases, self.clip)

    # Showing --------------------------------------------------------------------------------------

    def _show(self, objective: Objective, constraint: ConvexSet) -> None:
        """Let theta and offsets be those of the mixture; its factors are not copied."""
        assert isinstance(objective, ObservedEntries)
        left, weights, right = self._models.factors()
        radius = constraint.radius  # type: ignore[attr-defined]
        if radius < NO_CAP:
            (m1, m2), sides = objective.shape, self._models.models  # in this process's memory
            factors = sides.rows.factors[:m1], weights, sides.columns.factors[:m2]
            bound = _norm_bound(*factors, constraint)
            weights *= min(1.0, radius / bound) if bound > 0.0 else 1.0
        objective.hold(left, weights, right, *self._models.offsets())

    def ball(self, objective: Objective) -> ConvexSet:
        """Return the ball of the norm that belongs to the ridges, with theta on its boundary."""
        assert isinstance(objective, ObservedEntries)
        counts = objective.weighted_sums(*(np.ones(n) for n in objective.shape))
        rows, columns = map(np.sqrt, self._models.penalties(*counts))
        norm = WeightedTraceNormBall(1.0, rows, columns).norm(objective.theta)
        if norm == 0.0:
            return TraceNormBall(1.0)
        return WeightedTraceNormBall(norm, rows, columns)

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return what theta, offsets and short memories say of entries."""
        return self._models.predict(rows, cols)

    def found_biases(self, memories: bool) -> Biases | None:
        """Return mean and biases of rows and columns, with short memories; None without biases."""
        if self._models is None or not self.biases:
            return None
        rows, columns = self.whole_offsets(memories)
        mean = self._models.mean
        return Biases(mean, rows.astype(float) - mean, columns.astype(float))

    @property
    def models(self) -> Any:
        """The models that are mixed; None before the first observation."""
        return self._models

    def whole_offsets(self, memories: bool = True) -> tuple[Array, Array]:
        """Return all that is added to theta in rows and columns, with short memories or without."""
        rows, columns = self._models.all_offsets()
        if not memories:
            return rows, columns
        of_rows, of_columns = self._models.memories()
        return rows + of_rows, columns + of_columns

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
        if models is not None and new.rank not in ("auto", models.models.rank):
            raise ValueError(f"the models have rank {models.models.rank}, not {new.rank}")
        vars(self).update(vars(new))


def _weights(w: Array) -> Array | None:
    """Return the weights of observations, or None if all weigh 1."""
    return None if (w == 1.0).all() else w


def _norm_bound(left: Array, weights: Array, right: Array, constraint: ConvexSet) -> float:
    """Return a bound on the norm of left diag(weights) right': that of all its columns apart."""
    sides = []
    for factor, side in ((left, "rows"), (right, "columns")):
        weighted = isinstance(constraint, WeightedTraceNormBall)
        scale = getattr(constraint, side)[:, None] if weighted else 1.0
        sides.append(np.sqrt(np.square(scale * factor, dtype=float).sum(axis=0)))
    return float(np.abs(weights) @ (sides[0] * sides[1]))
