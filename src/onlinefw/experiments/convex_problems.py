"""Small convex problems whose expected loss and constants are known in closed form.

Losses are in the paper's units: that of online LASSO sums over the m rows of a round (where
``Round.gap`` and ``Round.loss`` are means over rows); that of matrix completion is the loss of one
entry. Norms of gradient errors: largest entry for vectors (so rho is an l1 diameter), operator norm
for matrices (rho is a trace-norm diameter).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from .._typing import Array, Shape
from ..algorithms import Learner, OnlineAwayFrankWolfe, OnlineFrankWolfe
from ..baselines import batch_away_frank_wolfe
from ..datasets import Entries, make_lasso, make_matrix_completion
from ..objectives import GradientOracle, ObservedEntries, RunningLeastSquares
from ..sets import ConvexSet, L1Ball, L2Ball, TraceNormBall
from ..steps import Harmonic
from .recorder import batches

__all__ = [
    "ALGORITHMS",
    "EPSILON",
    "K",
    "LeastSquaresStream",
    "Problem",
    "all_seen",
    "anytime",
    "inexact_quadratic",
    "lasso_error",
    "least_squares",
    "make_fixed_design",
    "make_random_design",
    "matrix_completion",
    "worst_excess",
]

ALGORITHMS: dict[str, type[Learner]] = {"O-FW": OnlineFrankWolfe, "O-AW": OnlineAwayFrankWolfe}
#: Of the step rule 2 / (t + 1) of the paper's convex theorems.
K = 2
#: One minus the probability (up to a small factor) with which the bounds on gradient errors hold.
EPSILON = 0.05


@dataclass(frozen=True)
class Problem:
    """A learner, its stream, and what is known about the expected loss f."""

    #: Makes a new one.
    learner: Callable[[], Learner]
    #: Starts the stream, the same every time.
    stream: Callable[[], Iterable[tuple[Any, Any]]]
    #: f(theta) - min f over the set.
    excess: Callable[[Any], float]
    #: mu, L, rho, diameter, C_f, and where they exist delta, width, sigma, worst (the largest
    #: excess of a feasible theta).
    constants: dict[str, float]
    #: The bound on h_t for given rounds t >= 2 and step counters n_{t-1}.
    bound: Callable[[Array, Array], Array] | None = None
    #: The round from which on every round should cost the same.
    steady_from: int = 0


# Online least squares (LASSO) --------------------------------------------------------------------


@dataclass(frozen=True)
class LeastSquaresStream:
    """Rounds y_t = A_t theta_bar + noise, with what the paper's proposition on LASSO needs."""

    #: The truth theta_bar.
    theta: Array
    #: E[A'A].
    gram: Array
    #: Standard deviation of the noise.
    sigma: float
    #: Rows of a round.
    m: int
    #: Largest entries of A_t'A_t - E[A'A] and of A_t.
    B1: float
    B2: float
    #: Called with T, yields (A_t, y_t), the same every time.
    rounds: Callable[[int], Iterator[tuple[Array, Array]]]

    def excess(self, theta: Array) -> float:
        """Return f(theta) - f(theta_bar) for f = E||y - A theta||^2 / 2."""
        difference = theta - self.theta
        return 0.5 * float(difference @ self.gram @ difference)


def make_fixed_design(
    m: int, n: int, *, sparsity: float, sigma: float, seed: int
) -> LeastSquaresStream:
    """Make the paper's synthetic LASSO at any size: A_t = A, so B_1 = 0."""
    lasso = make_lasso(m, n, sparsity, sigma, seed)
    gram, largest = lasso.A.T @ lasso.A, float(np.abs(lasso.A).max())
    return LeastSquaresStream(lasso.theta, gram, sigma, m, 0.0, largest, lasso.rounds)


def make_random_design(
    m: int, n: int, *, sparsity: float, sigma: float, seed: int
) -> LeastSquaresStream:
    """Make the same with independent signs +-1 in every A_t: E[A'A] = m I, B_1 = m, B_2 = 1."""
    theta = make_lasso(m, n, sparsity, sigma, seed).theta

    def rounds(T: int) -> Iterator[tuple[Array, Array]]:
        rng = np.random.default_rng([seed, 2])
        for _ in range(T):
            A = 2.0 * rng.integers(2, size=(m, n)) - 1.0
            yield A, A @ theta + sigma * rng.standard_normal(m)

    # One row has A'A - I = 0 on the diagonal and +-1 off it.
    return LeastSquaresStream(theta, m * np.eye(n), sigma, m, float(m), 1.0, rounds)


def lasso_error(stream: LeastSquaresStream, radius: float, t: Array) -> Array:
    """Return the paper's bound on the gradient error over the l1 ball of this radius."""
    return theory.lasso_gradient_error(
        t,
        n=stream.theta.size,
        m=stream.m,
        B1=stream.B1,
        B2=stream.B2,
        sigma_w=stream.sigma,
        c=radius + float(np.abs(stream.theta).sum()),
        epsilon=EPSILON,
    )


def least_squares(
    stream: LeastSquaresStream, algorithm: str, T: int, factor: float, ball: str = "l1"
) -> Problem:
    """Return online least squares over the ball of radius ``factor`` times the truth's norm.

    The bound is the fast one where Theorem 2 gives one (mu > 0, and the minimiser inside for O-FW),
    else the slow one; sigma and eta_t are those of the paper's proposition on LASSO.
    """
    n = stream.theta.size
    norm = float(np.linalg.norm(stream.theta, 1 if ball == "l1" else 2))
    constraint: ConvexSet = (L1Ball if ball == "l1" else L2Ball)(factor * norm)
    # Nearest facet of the l1 ball: the signs of theta_bar, at (r - ||theta_bar||_1) / sqrt(n).
    delta = max(0.0, factor - 1.0) * norm / (np.sqrt(n) if ball == "l1" else 1.0)
    minimum = 0.0 if factor >= 1.0 else _minimum(stream.gram, stream.theta, constraint)
    spectrum = np.linalg.eigvalsh(stream.gram)
    mu = float(spectrum[0]) if spectrum[0] > 1e-9 * spectrum[-1] else 0.0
    rho = constraint.diameter(1, shape=(n,))
    farthest = rho / 2.0 + float(np.abs(stream.theta).sum())  # at least ||theta - theta_bar||_1
    constants = {
        "mu": mu,
        "L": float(spectrum[-1]),
        "delta": float(delta),
        "rho": rho,
        "diameter": constraint.diameter(2),
        "C_f": float(spectrum[-1]) * constraint.diameter(2) ** 2,
        "sigma": farthest * stream.B1 + np.sqrt(stream.m) * stream.B2 * stream.sigma,
        "minimum": minimum,
        "worst": worst_excess(stream.gram, stream.theta, constraint) - minimum,
    }
    if constraint.is_polytope:
        constants["width"] = theory.pyramidal_width(constraint, n)
    fast = mu > 0.0 and (delta > 0.0 if algorithm == "O-FW" else constraint.is_polytope)

    def bound(t: Array, n_steps: Array) -> Array:
        # (t + 1) / t <= 2 is taken into eta_t: the theorem divides by t + 1, the proposition by t.
        eta = 4.0 * (np.log(2.0 * n**2 * np.square(t, dtype=float)) - np.log(EPSILON))
        return anytime(t, algorithm, "fast" if fast else "slow", constants, n_steps, eta)

    return Problem(
        learner=lambda: ALGORITHMS[algorithm](RunningLeastSquares(n), constraint, step=Harmonic(K)),
        stream=lambda: stream.rounds(T),
        excess=lambda theta: stream.excess(theta) - minimum,
        constants={**constants, "fast_bound": float(fast)},
        bound=bound,
    )


def anytime(
    t: Array,
    algorithm: str,
    rate: str,
    constants: dict[str, float],
    n_steps: Array,
    eta: Any = 1.0,
    alpha: float = 0.5,
) -> Array:
    """Return the bound of the paper's appendix with these constants."""
    known = {
        name: constants[name]
        for name in ("sigma", "rho", "L", "diameter", "mu", "delta", "width")
        if name in constants
    }
    kind = "fw" if algorithm == "O-FW" else "aw"
    return theory.anytime_bound(
        t, algorithm=kind, rate=rate, K=K, alpha=alpha, eta=eta, n_steps=n_steps, **known
    )


def worst_excess(Q: Array, target: Array, constraint: ConvexSet) -> float:
    """Return the largest (theta - target)'Q(theta - target) / 2 of a feasible theta.

    On the l1 ball it is that of a vertex, as the function is convex. On another set it is the
    largest that is found: theta moves to the point of the set farthest along its gradient, from
    where the function is largest without a target. All these points are feasible.
    """
    if isinstance(constraint, L1Ball):
        r = constraint.radius
        return float(np.max(r * r * np.diag(Q) / 2.0 + r * np.abs(Q @ target)) + _half(Q, target))
    top = np.linalg.eigh(Q)[1][:, -1]
    worst = 0.0
    for theta in (top, -top):
        for _ in range(100):
            theta = constraint.lmo(-Q @ (theta - target)).dense()
        worst = max(worst, _half(Q, theta - target))
    return worst


def _half(Q: Array, point: Array) -> float:
    return 0.5 * float(point @ Q @ point)


def _minimum(Q: Array, target: Array, constraint: ConvexSet) -> float:
    """Return the least (theta - target)'Q(theta - target) / 2 over a polytope, from below."""
    values, vectors = np.linalg.eigh(Q)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    objective = RunningLeastSquares(target.size)
    objective.observe(root, root @ target)
    found = batch_away_frank_wolfe(objective, constraint, tol=1e-12, max_iter=50_000)
    # The objective minus the gap is a lower bound, so that no h_t is negative.
    return target.size * (found.objective - max(0.0, found.gap))


# Matrix completion -------------------------------------------------------------------------------


def matrix_completion(
    shape: Shape, rank: int, batch: int, T: int, factor: float, seed: int
) -> tuple[Problem, Entries]:
    """Return O-FW on a small matrix with the truth inside the ball, noise of variance 3.

    f is the square loss of one entry: mu = L = 1 / (m1 m2). The paper does not give the constant
    of its gradient error, so there is no bound.
    """
    data = make_matrix_completion(shape, rank, T * batch, noise_variance=3.0, seed=seed)
    truth = data.left @ data.right.T
    norm = float(np.linalg.norm(truth, "nuc"))
    ball = TraceNormBall(factor * norm)
    curvature = 1.0 / truth.size
    X = np.column_stack((data.rows, data.cols))
    problem = Problem(
        learner=lambda: OnlineFrankWolfe(ObservedEntries(shape), ball),
        stream=lambda: batches(X, data.values, batch),
        excess=lambda theta: 0.5 * curvature * float(np.sum(np.square(theta.dense() - truth))),
        constants={
            "mu": curvature,
            "L": curvature,
            # The supporting plane at U V' + (its complement): operator norm 1, Frobenius largest.
            "delta": (factor - 1.0) * norm / float(np.sqrt(min(shape))),
            "rho": ball.diameter("nuc"),
            "diameter": ball.diameter(2),
            "C_f": curvature * ball.diameter(2) ** 2,
        },
        steady_from=-(-all_seen(data) // batch),
    )
    return problem, data


def all_seen(data: Entries) -> int:
    """Return how many observations it takes until every entry has been seen."""
    where = data.rows.astype(int) * data.shape[1] + data.cols
    seen, first = np.unique(where, return_index=True)
    if seen.size < data.shape[0] * data.shape[1]:
        raise ValueError("some entries are never seen: make more observations")
    return int(first.max()) + 1


# Theorem 2 itself --------------------------------------------------------------------------------


def inexact_quadratic(algorithm: str, n: int, sigma: float, seed: int) -> Problem:
    """Return a quadratic whose gradient has an error of norm exactly sigma / (t + 1)^(1/2).

    The error pushes along a fixed direction, one time in ten the other way. O-FW: l2 ball, norm of
    the error l2, minimiser inside; O-AW: l1 ball, largest entry, minimiser on the boundary.
    """
    rng = np.random.default_rng([seed, 3])
    mu, L = 0.5, 2.0
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    Q = (basis * np.linspace(mu, L, n)) @ basis.T
    target, direction = rng.standard_normal(n), rng.standard_normal(n)
    constants: dict[str, float] = {"mu": mu, "L": L, "sigma": sigma}
    constraint: ConvexSet
    if algorithm == "O-FW":
        constraint, constants["delta"] = L2Ball(1.0), 0.6
        target *= (1.0 - constants["delta"]) / np.linalg.norm(target)
        direction /= np.linalg.norm(direction)
        minimum, rho = 0.0, constraint.diameter(2)
    else:
        constraint = L1Ball(1.0)
        constants["width"] = theory.pyramidal_width(constraint, n)
        target *= 2.0 / np.abs(target).sum()
        direction /= np.abs(direction).max()
        minimum, rho = _minimum(Q, target, constraint), constraint.diameter(1)
    diameter = constraint.diameter(2)
    constants["worst"] = worst_excess(Q, target, constraint) - minimum
    constants |= {"rho": rho, "diameter": diameter, "C_f": L * diameter**2, "fast_bound": 1.0}

    def learner() -> Learner:
        signs = np.random.default_rng([seed, 4])

        def gradient(theta: Array, t: int) -> Array:
            sign = 1.0 if signs.random() < 0.9 else -1.0
            return Q @ (theta - target) + sign * sigma / np.sqrt(K + t - 1.0) * direction

        return ALGORITHMS[algorithm](GradientOracle(gradient, n), constraint, step=Harmonic(K))

    def nothing() -> Iterator[tuple[None, None]]:
        while True:
            yield None, None

    return Problem(
        learner=learner,
        stream=nothing,
        excess=lambda theta: 0.5 * float((theta - target) @ Q @ (theta - target)) - minimum,
        constants=constants,
        bound=lambda t, n_steps: anytime(t, algorithm, "fast", constants, n_steps),
    )
