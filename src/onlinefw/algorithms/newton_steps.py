"""Fully corrective steps on the l1 ball: re-optimise all active coordinates at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, ldexp, log
from numbers import Real

import numpy as np

from .._state import number
from .._typing import Array, Direction, State
from .._validation import check_whole
from ..objectives import LinearObjective, Objective, RunningLeastSquares
from ..objectives.row_objective import RowObjective
from ..sets import ConvexSet, KSparse, L1Ball
from .correctives import Corrective

__all__ = ["NewtonSteps"]

#: The model is minimised to this share of the gap: the next model makes more of no use ...
EXACTNESS = 0.1
#: ... in at most this many pairwise steps per coordinate.
STEPS_PER_COORDINATE = 5
#: A model with at most this many coordinates is minimised to rounding, which costs little and makes
#: the outcome a function of the data alone (a row of weight 2 is the same as two rows).
SMALL, TO_ROUNDING, SMALL_STEPS_PER_COORDINATE = 100, 1e-13, 100
#: A model has at most this many coordinates, as it costs their square; the others come later.
LARGEST_MODEL = 1000
#: Added to the diagonal of the model, relative to its mean, in case columns are repeated.
RIDGE = 1e-10
#: No more candidates than there are coordinates in use, or this many: more of them enter later.
FEW_CANDIDATES = 50
#: On a schedule a model has no more than one coordinate for so many rows: theta needs more of them
#: only if it learns the rows by heart.
ROWS_PER_COORDINATE = 4
#: ``correct`` goes on until the gap is at most this share of F_t, or for so many steps; of a loss
#: that is not convex, where no gap proves anything, for so many.
ENOUGH, MOST_STEPS, MOST_NOT_CONVEX = 0.01, 100, 20
#: On a schedule, theta is corrected by so many steps when the data have grown by the factor.
STEPS_PER_GROWTH = 3
#: Where rows fade, theta is corrected the more often the shorter the half-life is. Once as much is
#: remembered as ever will be (this share of it), no sooner than after so many rows, or after the
#: growth at most: rows of a short memory are few, and each correction costs as much.
FULL, ROWS_WHEN_FULL, GROWTH_WHEN_FULL = 0.75, 48.0, 1.6


@dataclass
class NewtonSteps(Corrective):
    """Minimise a quadratic model of F_t over the active coordinates and the best new ones.

    Frank-Wolfe steps add one coordinate at a time and shrink all others. This step takes the
    coordinates of theta and those ``candidates`` with the largest gradient, makes the second-order
    model of F_t in them, and minimises it over the same l1 ball by pairwise Frank-Wolfe steps,
    each of which costs only the number of coordinates. Theta then moves to that point, or a part
    of the way if F_t would not fall enough. It stays feasible and sparse, so its gap stays valid.
    In the hull of K-sparse vectors (:class:`~onlinefw.sets.KSparse`) no coordinate passes its cap.

    With ``growth`` such steps are taken on a schedule: when the data have grown by that factor
    since the last ones. In the rounds between, rows are predicted and added to F_t, and theta and
    the intercept stay as they are (``kind`` is "hold", and ``gap`` nan). So a round costs little
    more than its own rows, and all corrections together a small multiple of the last one.
    ``learner.correct()`` brings theta to the optimum of now: the gap is then at most 1% of F_t,
    for a convex loss.

    Parameters
    ----------
    candidates : int
        How many coordinates may enter at a time.
    growth : float, optional
        The factor, above 1, by which the data grow from one correction to the next; by default
        every round is corrected. What counts is the weight of the rows that have come (of
        ``past="recent"``, compared with those kept; with a half-life as it has faded, so that a
        correction comes after ``log2(growth)`` half-lives), never the length of batches.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 40))
    >>> objective = ofw.objectives.LinearObjective(ofw.losses.Logistic())
    >>> learner = ofw.OnlineFrankWolfe(
    ...     objective, ofw.sets.L1Ball(5.0), inner_steps="auto", corrective=ofw.NewtonSteps()
    ... )
    >>> round_ = learner.observe(X, np.sign(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(500)))
    >>> learner.certificate() < 0.01 * objective.value()
    True
    """

    candidates: int = 50
    growth: float | None = None
    #: The weight of the rows that had come when theta was last corrected, and when it is due again.
    _corrected_at: float = field(default_factory=float, init=False, repr=False, compare=False)
    _due_at: float = field(default_factory=float, init=False, repr=False, compare=False)
    #: Both are divided by 2**_shift, as the weights of the objective were then.
    _shift: int = field(default_factory=int, init=False, repr=False, compare=False)
    #: Whether theta is being brought to the optimum of now.
    _to_the_end: bool = field(default_factory=bool, init=False, repr=False, compare=False)

    takes_steps = True

    def __post_init__(self) -> None:
        self.candidates = check_whole("candidates of NewtonSteps", self.candidates)
        growth = self.growth
        if growth is not None and not (isinstance(growth, Real) and 1.0 < growth < float("inf")):
            raise ValueError(
                f"growth of NewtonSteps must be a number above 1 or None, got {growth!r}"
            )

    def check(self, objective: Objective, constraint: ConvexSet) -> None:
        """Refuse what has no coordinates to correct."""
        kinds = (LinearObjective, RunningLeastSquares)
        if not isinstance(objective, kinds) or not isinstance(constraint, (L1Ball, KSparse)):
            raise ValueError(
                "NewtonSteps corrects a LinearObjective or RunningLeastSquares on an L1Ball or "
                f"KSparse, got {objective} on {constraint}; leave corrective= out"
            )

    # The schedule ---------------------------------------------------------------------------------

    def begin(self, objective: Objective, constraint: ConvexSet) -> None:
        """Let the objective hold its intercept between corrections."""
        assert isinstance(objective, RowObjective)
        objective.holds = self.growth is not None

    def waits(self, objective: Objective) -> bool:
        """Whether the data have grown too little for a correction."""
        if self.growth is None:
            return False
        assert isinstance(objective, RowObjective)
        return objective.seen_weight < self._scaled(self._due_at, objective.shift)

    def _scaled(self, weight: float, shift: int) -> float:
        """Return a weight that was noted, divided by 2**shift as weights are now."""
        return ldexp(weight, self._shift - shift)

    def room(self, objective: Objective, w: Array) -> int:
        """Return how many of the next rows, of weights w, come until theta is corrected."""
        if self.growth is None:
            return 1
        assert isinstance(objective, RowObjective)
        seen, shift = objective.seen_with(w)
        return min(int(np.searchsorted(seen, self._scaled(self._due_at, shift))) + 1, w.size)

    def most_steps(self, objective: Objective, most: int) -> int:
        """Return how many steps a round may take: few if the data have grown by little."""
        if self.growth is None:
            return most
        assert isinstance(objective, RowObjective)
        before = self._scaled(self._corrected_at, objective.shift)
        if before == 0.0:
            return min(most, 2 * STEPS_PER_GROWTH)
        grown = log(objective.seen_weight / before) / log(self.growth)
        return min(most, ceil(STEPS_PER_GROWTH * max(grown, 1.0)))

    def after_round(self, objective: Objective, constraint: ConvexSet) -> None:
        """Take note that theta has been corrected."""
        if self.growth is not None:
            assert isinstance(objective, RowObjective)
            objective.hold()
            self._corrected_at, self._shift = objective.seen_weight, objective.shift
            self._due_at = self._corrected_at + (self._growth_of(objective) - 1.0) * objective.reach

    def _growth_of(self, objective: RowObjective) -> float:
        """Return the factor until the next correction, larger where a short memory is full."""
        assert self.growth is not None
        clock = objective.clock
        if clock is None or clock.counting < FULL * clock.most:
            return self.growth
        return max(self.growth, min(2.0 ** (ROWS_WHEN_FULL / clock.half_life), GROWTH_WHEN_FULL))

    # Steps ----------------------------------------------------------------------------------------

    def step(
        self, objective: Objective, constraint: ConvexSet, gradient: Direction, gap: float
    ) -> float:
        """Move theta to the minimum of the model, or a part of the way; return which part."""
        from ..kernels.pairwise import pairwise_steps

        assert isinstance(objective, (LinearObjective, RunningLeastSquares))
        assert isinstance(constraint, (L1Ball, KSparse))
        theta = np.asarray(objective.theta).reshape(-1)
        most = LARGEST_MODEL
        if self.growth is not None and not self._to_the_end:
            rows = objective.seen_weight / objective.unit
            most = min(most, max(SMALL, int(rows / ROWS_PER_COORDINATE)))
        chosen = self._coordinates(theta, gradient.reshape(-1), most)
        model = objective.coordinate_model(chosen)
        diagonal = np.einsum("ii->i", model.hessian)
        diagonal += RIDGE * diagonal.mean() + np.finfo(float).tiny
        x = theta[chosen]
        if chosen.size <= SMALL:
            exactness, steps = TO_ROUNDING, SMALL_STEPS_PER_COORDINATE * chosen.size
        else:
            exactness, steps = EXACTNESS, STEPS_PER_COORDINATE * chosen.size
        others = np.abs(theta).sum() - np.abs(x).sum()
        norm, cap = constraint.radius, inf
        if isinstance(constraint, KSparse):
            norm, cap = constraint.k * constraint.radius, constraint.radius
        radius = max(norm - others, np.abs(x).sum())
        slopes = model.gradient.copy()
        pairwise_steps(model.hessian, slopes, x, radius, steps, exactness * gap, cap)
        change = x - theta[chosen]
        return model.move(change) if change.any() else 0.0

    def correct(self, objective: Objective, constraint: ConvexSet) -> None:
        """Take such steps until the gap is at most 1% of F_t."""
        assert isinstance(objective, RowObjective)
        self._to_the_end = True
        try:
            for _ in range(MOST_STEPS if objective.loss.convex else MOST_NOT_CONVEX):
                gradient = objective.gradient()
                gap = objective.gap(gradient, constraint.lmo(gradient))
                if gap <= ENOUGH * abs(objective.value()):
                    break
                if self.step(objective, constraint, gradient, gap) == 0.0:
                    break
        finally:
            self._to_the_end = False
        self.after_round(objective, constraint)

    def _coordinates(self, theta: Array, gradient: Array, most: int) -> Array:
        """Return the coordinates in use and the steepest others, in increasing order.

        If more than ``most`` are in use, those that would rather shrink come first.
        """
        active = np.flatnonzero(theta)
        k = min(self.candidates, theta.size, max(FEW_CANDIDATES, min(active.size, most)))
        steepness = np.abs(gradient)
        steepest = np.argpartition(-steepness, k - 1)[:k]
        if active.size > most:
            shrink = steepness[steepest].max() + np.sign(theta[active]) * gradient[active]
            active = active[np.argpartition(-shrink, most - 1)[:most]]
        return np.union1d(active, steepest)

    def load_state(self, state: State) -> None:
        """Take over parameters that ``state_dict`` returned."""
        super().load_state({**vars(self), **state})
        self._corrected_at = number(self._corrected_at, "the last correction of NewtonSteps")
        self._due_at = number(self._due_at, "the next correction of NewtonSteps")
        self._shift = int(number(self._shift, "the scale of NewtonSteps"))
        self.__post_init__()
