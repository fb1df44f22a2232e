"""Algorithm 2 of the paper: online away-step Frank-Wolfe (O-AW)."""

from __future__ import annotations

from ..atoms import as_atom
from ..line_search import search
from ..steps import LineSearch
from .active_set_learner import ActiveSetLearner
from .rounds import Outcome

__all__ = ["OnlineAwayFrankWolfe"]


class OnlineAwayFrankWolfe(ActiveSetLearner):
    """Online away-step Frank-Wolfe: moves towards a vertex or away from an active one.

    theta is kept both as an array and as a convex combination of *active* vertices
    (``active_set``). Moving away from a bad vertex removes its weight, or drops it altogether,
    so the model uses few of them.

    Parameters
    ----------
    objective : Objective
        What is kept of the past, from :mod:`onlinefw.objectives`.
    constraint : ConvexSet
        A polytope from :mod:`onlinefw.sets`.
    step : callable or LineSearch
        The step rule, a function of the step counter 1, 2, ..., with step(1) = 1 (so that the
        starting point 0 leaves the combination). ``LineSearch()`` takes the step that lowers F_t
        most instead, after a first one of length 1 (the paper's rates are for step rules).
    inner_steps : int or "auto"
        How often lines 4-15 are repeated per batch without new data; each advances the counter,
        except for drop steps. "auto" goes on until the gap is below 1% of the mean loss, or 20
        times (more often while there are few rows).

    Attributes
    ----------
    theta : ndarray or LowRank
        The current model, read-only; predictions are ``X @ theta`` (plus ``objective.intercept``,
        if the objective has one).
    t, n_steps : int
        Rounds played, and the step counter.
    active_set : ActiveSet
        The active vertices (``atoms``) and their ``weights``, which sum to 1.

    Notes
    -----
    Line 9 compares gamma_max with the step at n_{t-1}, as printed. The proof of the drop lemma
    uses the next index, n_{t-1} + 1. The two differ for gamma_max from gamma_{n_{t-1}+1} up to (and
    without) gamma_{n_{t-1}}: as printed the atom is dropped, and an away step would fit as well.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> objective = ofw.objectives.RunningLeastSquares(n_features=20)
    >>> learner = ofw.OnlineAwayFrankWolfe(objective, ofw.sets.L1Ball(1.0))
    >>> for _ in range(200):
    ...     X = rng.standard_normal((10, 20))
    ...     round_ = learner.observe(X, X[:, 0] - 2 * X[:, 1])
    >>> len(learner.active_set), learner.theta[:3].round(1) + 0.0
    (2, array([ 0., -1.,  0.]))
    """

    def _update(self) -> Outcome:
        """Lines 4 to 15 of the box. Lines 2 and 3 are ``Learner.play``.

        Line 1, n_0 = 0, theta_1 = 0 and an empty A_1, is the constructor.
        """
        objective, active, n = self.objective, self.active_set, self.n_steps  # n is n_{t-1}
        searched = isinstance(self.step, LineSearch)
        # Line 4: a_FW minimises <a, grad F_t(theta_t)> over C, a_AW maximises it over A_t
        gradient = objective.gradient()
        fw_atom = as_atom(self.constraint.lmo(gradient), gradient.shape)
        fw_score = fw_atom.dot(gradient)
        scores = active.scores(gradient)
        theta_score = active.dot(scores)
        is_empty = scores.size == 0
        away = -1 if is_empty else int(scores.argmax())
        fw_gap = theta_score - fw_score
        gap = fw_gap if is_empty else float(scores[away]) - fw_score
        if self.inner_steps == "auto" and self._is_enough(fw_gap):
            return Outcome(gap, fw_gap, 0.0, "hold")

        # Line 5
        if is_empty or fw_score - theta_score <= theta_score - scores[away]:
            # Line 6, FW step: d_t = a_FW - theta_t and n_t = n_{t-1} + 1
            kind, atom, n = "fw", fw_atom, n + 1
            if not searched:
                gamma = self._gamma(n)
            else:
                gamma = 1.0 if is_empty else search(objective.line(atom), 1.0, 1.0)
        else:
            # Line 8: d_t = theta_t - a_AW and gamma_max = alpha / (1 - alpha)
            atom, gamma_max = active.atoms[away], active.max_away_step(away)
            if not searched:
                # Line 9: an AW step if gamma_max >= gamma_{n_{t-1}}, otherwise a drop step
                is_away_step = gamma_max >= self._gamma(n)
            else:  # a line search drops the atom if it goes all the way to gamma_max
                gamma = search(objective.line(atom), -1.0, gamma_max)
                is_away_step = gamma_max > gamma
            if is_away_step:
                # Line 10, AW step: n_t = n_{t-1} + 1
                kind, n = "away", n + 1
                if not searched:
                    gamma = self._gamma_up_to(gamma_max, n)
            else:
                # Line 12, drop step: n_t = n_{t-1}
                kind, gamma = "drop", gamma_max

        # Line 15: theta_{t+1} <- theta_t + gamma_t d_t; then A_{t+1} and its weights
        objective.move(atom, gamma if kind == "fw" else -gamma)
        if kind == "fw":
            active.toward(atom, gamma)
        elif kind == "away":
            active.away(away, gamma)
        else:
            active.drop(away)
            objective.put_combination(active)
        self._updated(n)
        return Outcome(gap, fw_gap, gamma, kind)
