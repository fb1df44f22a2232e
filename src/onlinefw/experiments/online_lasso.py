"""The paper's synthetic online LASSO.

Problem: f(theta) = E ||y_t - A theta||^2 / 2 over {||theta||_1 <= r}, A fixed, 80 x 300, and
y_t = A theta_bar + noise of standard deviation 10; r = 1.1 ||theta_bar||_1 (the minimiser is
inside) or 0.15 ||theta_bar||_1 (it is on the boundary).

Theory: A'A has rank at most 80 < 300, so mu = 0 and of the paper's bounds on h_t for O-FW and
O-AW with constants only the slow one, O(sqrt(log t / t)), applies; its figure shows about 1/t.

Units are the paper's: losses are summed over the 80 rows of a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from .. import theory
from .._typing import Array
from ..algorithms import Learner, OnlineAwayFrankWolfe, OnlineFrankWolfe
from ..baselines import StochasticProjectedGradient, batch_away_frank_wolfe
from ..datasets import LassoStream
from ..objectives import RunningLeastSquares
from ..sets import L1Ball

__all__ = ["LEARNERS", "Curve", "minimum_excess", "run_online_lasso", "slow_bound"]

LEARNERS: dict[str, type[Learner]] = {
    "O-FW": OnlineFrankWolfe,
    "O-AW": OnlineAwayFrankWolfe,
    "sPG": StochasticProjectedGradient,
}


@dataclass(frozen=True)
class Curve:
    """What one learner did: h_t and the FW gap of theta_t at some rounds t, and how it ended.

    ``seconds_per_round`` is the time inside ``observe``, storing the data included.
    """

    t: Array
    h: Array
    gap: Array
    final_h: float
    final_certificate: float
    nonzeros: int
    seconds_per_round: float

    def rate(self, first: int) -> theory.Rate:
        """Fit the log-log slope of h_t from round ``first`` on."""
        late = self.t >= first
        return theory.fit_rate(self.t[late], self.h[late])


def run_online_lasso(
    problem: LassoStream,
    radius: float,
    T: int,
    learner_class: type[Learner],
    *,
    minimum: float = 0.0,
    on_round: Callable[[int], None] | None = None,
) -> Curve:
    """Stream T rounds through a learner and record h_t at about 60 log-spaced rounds."""
    m, n = problem.A.shape
    learner = learner_class(RunningLeastSquares(n), L1Ball(radius))  # type: ignore[call-arg]
    recorded = np.unique(np.geomspace(2, T, 60).round().astype(int))
    wanted = set(recorded.tolist())
    h, gap, seconds = [], [], 0.0
    for t, (A, y) in enumerate(problem.rounds(T), start=1):
        if t in wanted:
            h.append(problem.expected_excess(np.asarray(learner.theta)) - minimum)
        started = perf_counter()
        round_ = learner.observe(A, y)
        seconds += perf_counter() - started
        if t in wanted:
            gap.append(m * round_.fw_gap)
        if on_round is not None:
            on_round(t)
    theta = np.asarray(learner.theta)
    return Curve(
        t=recorded,
        h=np.array(h),
        gap=np.array(gap),
        final_h=problem.expected_excess(theta) - minimum,
        final_certificate=m * learner.certificate(),
        nonzeros=int(np.count_nonzero(theta)),
        seconds_per_round=seconds / T,
    )


def minimum_excess(problem: LassoStream, radius: float) -> float:
    """Return the smallest expected excess over the ball: 0 if the truth is inside."""
    if np.abs(problem.theta).sum() <= radius:
        return 0.0
    m, n = problem.A.shape
    noiseless = RunningLeastSquares(n)
    noiseless.observe(problem.A, problem.A @ problem.theta)
    result = batch_away_frank_wolfe(noiseless, L1Ball(radius), max_iter=20_000, tol=1e-10)
    return m * result.objective


def slow_bound(problem: LassoStream, radius: float, t: Array, epsilon: float = 0.05) -> Array:
    """Return the paper's slow bound on h_t for O-FW, with probability about 1 - 2 epsilon.

    The gradient error of the LASSO proposition (B_1 = 0 for a fixed design) is written as
    sigma sqrt(eta_t / (t + 1)) with (t + 1) / t <= 2 taken into eta_t.
    """
    m, n = problem.A.shape
    ball = L1Ball(radius)
    return theory.anytime_bound(
        t,
        rate="slow",
        alpha=0.5,
        sigma=np.sqrt(m) * np.abs(problem.A).max() * problem.sigma,
        eta=4.0 * (np.log(2.0 * n**2 * np.square(t, dtype=float)) - np.log(epsilon)),
        rho=ball.diameter(1),
        L=float(np.linalg.norm(problem.A, 2)) ** 2,
        diameter=ball.diameter(2),
    )
