"""Online pairwise and blended pairwise Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .._state import check_state
from .._typing import State
from ..atoms import Atom, as_atom
from ..line_search import search
from ..objectives import Objective
from ..sets import ConvexSet
from ..steps import Harmonic, LineSearch
from .active_set_learner import ActiveSetLearner
from .rounds import Outcome

__all__ = ["OnlinePairwiseFrankWolfe"]


class Pair(NamedTuple):
    """A direction: weight goes from an active atom, by its position, to another one."""

    source: int
    target: Atom


class OnlinePairwiseFrankWolfe(ActiveSetLearner):
    """Online pairwise Frank-Wolfe: weight goes from the worst active vertex to the best one.

    theta is kept both as an array and as a convex combination of *active* vertices
    (``active_set``), as :class:`~onlinefw.OnlineAwayFrankWolfe` keeps it. A pairwise step changes
    two weights and leaves all others as they are: on the l1 ball two coordinates of theta.

    Parameters
    ----------
    objective : Objective
        What is kept of the past, from :mod:`onlinefw.objectives`.
    constraint : ConvexSet
        A polytope from :mod:`onlinefw.sets`.
    step : callable or LineSearch
        The step rule, a function of the step counter 1, 2, ..., with step(1) = 1 (so that the
        starting point 0 leaves the combination). ``LineSearch()`` takes the step that lowers F_t
        most instead, after a first one of length 1. Pairwise steps are made for it: with step
        rules they were no gain over O-AW where we measured (benchmarks/linear/pairwise.md).
    inner_steps : int or "auto"
        How many steps are taken per batch, without new data in between; each advances the counter,
        except for drop steps. "auto" goes on until the gap is below 1% of the mean loss, or 20
        times (more often while there are few rows).
    blended : bool
        Blended pairwise steps [2]_: weight goes from the worst active vertex to the best *active*
        one if that promises at least as much as a Frank-Wolfe step, which is taken otherwise. New
        vertices come by Frank-Wolfe steps only, so models are sparser, and approach the minimum
        more slowly.

    Attributes
    ----------
    theta : ndarray
        The current model, read-only; predictions are ``X @ theta`` (plus ``objective.intercept``,
        if the objective has one).
    t, n_steps : int
        Rounds played, and the step counter.
    active_set : ActiveSet
        The active vertices (``atoms``) and their ``weights``, which sum to 1.

    Notes
    -----
    With s the best vertex of all, v the worst active one and w its weight, a pairwise step is
    theta + gamma (s - v) with gamma <= w [1]_. Its ``Round.gap`` is <grad F_t, v - s>, the same
    number as g^AW, and its ``Round.kind`` is one of

    - "pairwise": gamma is gamma_n, or what the line search finds.
    - "drop": all of w goes to an atom that is active already, so the active set loses an atom. As
      in O-AW that happens if w is below gamma_{n-1} (its line 9), and the counter stands still.
    - "fw": a step of O-FW, gamma_n (s - theta). It is the first step, it is taken if all active
      atoms are equally good, by ``blended``, and if w is below gamma_{n-1} while s is *new*.

    In the last case all of w could go to s. Such a swap step has no part in what the method is
    proven to do [1]_: it may be as short as w is small, and the active set does not get smaller, so
    there can be any number of them. Where the step must shrink with a counter, either the counter
    stands still and a weight can hop between two vertices for ever, or it advances and the steps
    shrink while theta hardly moves. A Frank-Wolfe step is whole. So every step that counts has
    length gamma_n and promises at least g^FW for it, and at least half of all steps count (each
    drop removes an atom which another step brought): what the paper's slow rate for O-AW rests on.
    In our measurements swap steps were now better, now worse. A line search, whose steps do not
    shrink with the counter, keeps them ("pairwise").

    [1]_ and [2]_ minimise one given function. That line searches, and a constant number of steps a
    round, help online Frank-Wolfe to follow functions that change is shown in [3]_.

    References
    ----------
    .. [1] S. Lacoste-Julien and M. Jaggi, "On the Global Linear Convergence of Frank-Wolfe
       Optimization Variants", NeurIPS 2015.
    .. [2] K. Tsuji, K. Tanaka and S. Pokutta, "Sparser Kernel Herding with Pairwise Conditional
       Gradients without Swap Steps", arXiv 2110.12650, 2021.
    .. [3] Y. Wan, L. Zhang and M. Song, "Improved Dynamic Regret for Online Frank-Wolfe",
       arXiv 2302.05620, 2023.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> objective = ofw.objectives.RunningLeastSquares(n_features=20)
    >>> ball, step = ofw.sets.L1Ball(2.0), ofw.steps.LineSearch()
    >>> learner = ofw.OnlinePairwiseFrankWolfe(objective, ball, step)
    >>> for _ in range(200):
    ...     X = rng.standard_normal((10, 20))
    ...     round_ = learner.observe(X, X[:, 0] - 2 * X[:, 1])
    >>> len(learner.active_set), learner.theta[:3].round(1) + 0.0
    (2, array([ 0.5, -1.5,  0. ]))
    """

    def __init__(
        self,
        objective: Objective,
        constraint: ConvexSet,
        step: Callable[[int], float] | LineSearch = Harmonic(2),  # noqa: B008 (immutable)
        inner_steps: int | str = 1,
        *,
        blended: bool = False,
    ) -> None:
        super().__init__(objective, constraint, step, inner_steps)
        self.blended = bool(blended)

    def _update(self) -> Outcome:
        objective, active = self.objective, self.active_set
        gradient = objective.gradient()
        # As line 4 of O-AW: the best vertex of all, and the worst and the best active ones
        fw_atom = as_atom(self.constraint.lmo(gradient), gradient.shape)
        fw_score = fw_atom.dot(gradient)
        scores = active.scores(gradient)
        fw_gap = active.dot(scores) - fw_score
        gap, pair = fw_gap, None
        if scores.size > 0:
            worst, best = int(scores.argmax()), int(scores.argmin())
            gap = float(scores[worst]) - fw_score
            if not self.blended:
                pair = Pair(worst, fw_atom)
            elif scores[worst] - scores[best] >= fw_gap:
                pair = Pair(worst, active.atoms[best])
        if self.inner_steps == "auto" and self._is_enough(fw_gap):
            return Outcome(gap, fw_gap, 0.0, "hold")
        if pair is not None and pair.target.key == active.atoms[pair.source].key:
            pair = None  # all active vertices are equally good

        kind, gamma = ("fw", 0.0) if pair is None else self._pairwise_length(pair)
        if pair is None or kind == "fw":
            gamma = self._fw_length(fw_atom)
            objective.move(fw_atom, gamma)
            active.toward(fw_atom, gamma)
        else:
            objective.exchange(pair.target, active.atoms[pair.source], gamma)
            if active.exchange(*pair, gamma):
                objective.put_combination(active)
        self._updated(self.n_steps + (kind != "drop"))
        return Outcome(gap, fw_gap, gamma, kind)

    def _fw_length(self, atom: Atom) -> float:
        """Return the length of a Frank-Wolfe step; the first one leaves the starting point 0."""
        if not isinstance(self.step, LineSearch):
            return self._gamma(self.n_steps + 1)
        return search(self.objective.line(atom), 1.0, 1.0) if len(self.active_set) else 1.0

    def _pairwise_length(self, pair: Pair) -> tuple[str, float]:
        """Return kind and length of a pairwise step, at most the weight that its source has."""
        active, n = self.active_set, self.n_steps
        longest, shrinks = active.weight(pair.source), pair.target in active
        if isinstance(self.step, LineSearch):
            line = self.objective.exchange_line(pair.target, active.atoms[pair.source])
            gamma = search(line, 1.0, longest)
            return ("drop" if shrinks and gamma >= longest else "pairwise"), gamma
        if longest >= self._gamma(n):  # line 9 of O-AW
            return "pairwise", self._gamma_up_to(longest, n + 1)
        return ("drop", longest) if shrinks else ("fw", 0.0)

    def _progress(self) -> State:
        return {**super()._progress(), "blended": self.blended}

    def _load_progress(self, state: State) -> None:
        check_state(state, "blended")
        super()._load_progress(state)
        self.blended = bool(state["blended"])
