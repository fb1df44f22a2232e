"""The online conditional gradient of Garber and Hazan, which looks for its points near theta."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np

from .._state import check_state, number
from .._typing import Array, State
from ..algorithms.learner import Learner
from ..algorithms.rounds import Outcome
from ..objectives import GradientOracle, Objective, ObservedEntries
from ..sets import ConvexSet, L1Ball
from ..steps import Power
from .local_oracle import local_minimiser

__all__ = ["OnlineLocalFrankWolfe"]


class OnlineLocalFrankWolfe(Learner):
    """theta <- theta + (p - theta) / (2 rho^2), p the best point near theta for a regularised sum.

    The hybrid algorithm that the paper's Table 1 compares with, on an l1 ball: a conditional
    gradient on Phi_t, the sum of all losses (each linear at the theta that paid it) and a
    quadratic. p minimises <p, grad Phi_t(theta)> in a ball around theta that is large enough to
    hold the minimiser of Phi_t.

    - Convex Lipschitz losses (mu = 0):
      Phi_t(x) = sum <grad f_s(theta_s), x> + ||x||^2 / eta_t, with regret O(T^(-1/2));
    - mu-strongly convex ones: Phi_t(x) = sum <grad f_s(theta_s), x> + (mu / 2) ||x - theta_s||^2,
      with regret O(log T / T). No step lengths have to be chosen, but mu has to be known.

    ``Round.gap`` is nan: neither a batch nor Phi_t says anything about F_t. The objective still
    observes every batch, so that ``certificate()`` can answer on F_t.

    Parameters
    ----------
    objective : Objective
        As for :class:`onlinefw.OnlineFrankWolfe`, with batches of rows.
    constraint : L1Ball
        The set; rho = sqrt(n), for the local oracle by l1 distances.
    step : float or callable
        For mu = 0: eta, or eta_t as a function of the round, not rising. For T rounds of losses
        with gradients of length G, eta = 2 radius / (2 rho G sqrt(T)) balances the regret.
    inner_steps : int
        1: the algorithm takes one step a round.
    mu : float
        Strong convexity of a batch's *mean* loss.

    Attributes
    ----------
    excess : float
        An upper bound on Phi_t(theta_{t+1}) - min Phi_t.

    Notes
    -----
    D. Garber and E. Hazan, *A linearly convergent variant of the conditional gradient algorithm
    under strong convexity, with applications to online and stochastic optimization*, SIAM J.
    Optim. 26 (2016), arXiv:1301.4666. They state the distances r_t with constants for all streams.
    Here they follow from the same induction with the gradients that came. Let sigma be the
    curvature of Phi_t and c the length of grad Phi_t - grad Phi_{t-1} at theta_t. Then
    Phi_t(theta_t) - min Phi_t is at most excess_{t-1} + c r_t and at least sigma r_t^2 / 2, if r_t
    is the distance of theta_t from the minimiser; so r_t is at most the root of the equation
    between the two. The step leaves (1 - a) of that excess, and sigma a^2 ||p - theta_t||^2 / 2 for
    its curvature, where a = 1 / (2 rho^2).

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.RunningLeastSquares(2)
    >>> ball = ofw.sets.L1Ball(1.0)
    >>> learner = ofw.baselines.OnlineLocalFrankWolfe(objective, ball, mu=0.5)
    >>> for _ in range(2000):
    ...     _ = learner.observe(np.eye(2), np.array([0.25, -0.5]))
    >>> learner.theta.round(2)
    array([ 0.25, -0.5 ])
    """

    def __init__(
        self,
        objective: Objective,
        constraint: ConvexSet,
        step: float | Callable[[int], float] = Power(0.5),  # noqa: B008 (immutable)
        inner_steps: int = 1,
        *,
        mu: float = 0.0,
    ) -> None:
        if not (isinstance(mu, Real) and 0.0 <= float(mu) < np.inf):
            raise ValueError(f"OnlineLocalFrankWolfe needs a finite mu >= 0, got {mu!r}")
        self.mu: float = float(mu)
        self.excess: float = 0.0
        # Phi_t(x) = <linear, x> + curvature ||x||^2 / 2, up to a constant
        self._linear: Array | None = None
        self._curvature: float = 0.0
        super().__init__(objective, constraint, step, inner_steps)

    def _check_parts(self) -> None:
        name = type(self).__name__
        if not isinstance(self.constraint, L1Ball):
            raise ValueError(
                f"{name} has a local oracle for an L1Ball, and {self.constraint} is not one; use "
                "OnlineFrankWolfe"
            )
        if isinstance(self.objective, GradientOracle | ObservedEntries):
            raise ValueError(
                f"{name} needs the gradient of every batch, and {self.objective} has none: use "
                "LinearObjective or RunningLeastSquares"
            )
        is_length = isinstance(self.step, Real) and 0 < float(self.step) < np.inf
        if not (is_length or (callable(self.step) and not isinstance(self.step, type))):
            raise ValueError(
                f"{name} needs a positive step or a rule of the round, got {self.step!r}"
            )
        if self.inner_steps != 1:
            raise ValueError(
                f"{name} takes one step a round: leave out inner_steps={self.inner_steps!r}"
            )

    def _weight(self, t: int) -> float:
        """Return the curvature of Phi_t."""
        if self.mu > 0.0:
            return self.mu * t
        return max(self._curvature, 2.0 / float(self.step(t) if callable(self.step) else self.step))

    def _update(self) -> Outcome:
        theta = np.array(self.objective.theta, dtype=float)
        ball = self.constraint
        assert isinstance(ball, L1Ball)
        x, n = theta.reshape(-1), theta.size
        linear = np.zeros(n) if self._linear is None else self._linear
        before = linear + self._curvature * x
        t = self.n_steps + 1
        curvature = self._weight(t)
        linear = linear + self.objective.batch_gradient().reshape(-1) - self.mu * x
        gradient = linear + curvature * x
        # The minimiser of Phi_t is at most r away: curvature r^2 / 2 = excess + change r
        change = float(np.linalg.norm(gradient - before))
        r = (change + np.sqrt(change**2 + 2.0 * curvature * self.excess)) / curvature
        p = local_minimiser(x, gradient, np.sqrt(n) * r, ball.radius)
        a = 1.0 / (2.0 * n)
        left = (1.0 - a) * (self.excess + change * r)
        self.excess = float(left + curvature * a**2 * np.sum(np.square(p - x)) / 2.0)
        self._linear, self._curvature, self.n_steps = linear, curvature, t
        self.objective.put((x + a * (p - x)).reshape(theta.shape))
        return Outcome(float("nan"), float("nan"), a, "local")

    def _progress(self) -> State:
        own = {
            "mu": self.mu,
            "excess": self.excess,
            "curvature": self._curvature,
            "linear": self._linear,
        }
        return {**super()._progress(), **own}

    def _load_progress(self, state: State) -> None:
        check_state(state, "mu", "excess", "curvature", "linear")
        super()._load_progress(state)
        self.mu, self.excess = number(state["mu"], "mu"), number(state["excess"], "excess")
        self._curvature = number(state["curvature"], "curvature")
        linear = state["linear"]
        self._linear = None if linear is None else np.array(linear, dtype=float)
