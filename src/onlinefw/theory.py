"""The paper's bounds with the constants its appendix proves, and measured rates to set beside them.

Notation: C_f = L * diameter^2 (Euclidean diameter of the set), rho the diameter in the dual of
the norm that measures the gradient error, which in round t is at most
sigma (eta_t / (K + t - 1))^alpha for the step rule gamma_t = K / (K + t - 1).
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ._typing import Array, Shape
from .sets import Box, ConvexSet, L1Ball, LinfBall, LpBall, Simplex

__all__ = [
    "Rate",
    "anytime_bound",
    "fit_rate",
    "gap_bound",
    "lasso_gradient_error",
    "matrix_gradient_error",
    "pyramidal_width",
    "regret_bound",
    "tracking_bound",
]


def anytime_bound(
    t: ArrayLike,
    *,
    algorithm: str = "fw",
    rate: str = "fast",
    K: float = 2,
    alpha: float = 0.5,
    sigma: float,
    eta: ArrayLike = 1.0,
    rho: float,
    L: float,
    diameter: float,
    mu: float | None = None,
    delta: float | None = None,
    width: float | None = None,
    n_steps: ArrayLike | None = None,
) -> Any:
    """Return the bound on h_t = f(theta_t) - min f for inexact gradients, t >= 2.

    With C_f = L diameter^2 and beta = 1 + 2 alpha / (K - alpha), the appendix proves

    - O-FW, slow (f convex):  D_0 (eta_t / (t + K - 1))^alpha,
      D_0 = (K^2 C_f / 2 + rho sigma K) / (K - alpha);
    - O-AW, slow:  D_2' (eta_t / (n_{t-1} + K))^alpha,
      D_2' = K / (K - alpha) (K C_f / 2 + 2 rho sigma);
    - O-FW, fast (f mu-strongly convex, minimiser at distance delta from the boundary):
      D_1 (eta_t / (t + K - 1))^(2 alpha),
      D_1 = max{4 ((K+1)/K)^(2 alpha), beta^2} (rho sigma + K C_f / 2)^2 / (2 delta^2 mu);
    - O-AW, fast (f mu-strongly convex, polytope of pyramidal width ``width``):
      D_2 (eta_t / (n_{t-1} + K))^(2 alpha),
      D_2 = max{((K+1)/K)^(2 alpha), beta^2} 2 (2 rho sigma + K C_f / 2)^2 / (width^2 mu).

    Parameters
    ----------
    t : array-like of int
        Rounds, from 2.
    algorithm : {"fw", "aw"}
        O-FW or O-AW.
    rate : {"fast", "slow"}
        With or without strong convexity.
    K : float
        Of the step rule gamma_t = K / (K + t - 1).
    alpha : float
        Exponent of the gradient error, in (0, 1] and below K; 1 with sigma = 0 for exact gradients.
    sigma : float
        Constant of the gradient error. (For the aggregated gradient the paper gives its order
        only, so it is an argument.)
    eta : array-like
        eta_t of the gradient error, one number or one for every t; increasing and at least 1.
    rho, L, diameter : float
        Diameter in the dual norm, smoothness, Euclidean diameter.
    mu, delta, width : float
        Strong convexity; distance of the minimiser from the boundary (fast "fw"); pyramidal
        width (fast "aw").
    n_steps : array-like of int, optional
        n_{t-1} for every t (O-AW): the step counter *before* round t. By default its smallest
        possible value, (t - 1) / 2.

    Notes
    -----
    The printed Theorem 2 (K = 2) differs from its proof: for O-FW it has (2 delta sqrt(mu))^2 =
    4 delta^2 mu in the denominator where the proof has 2 delta^2 mu, and max{2 (3/2)^alpha, ...}
    squared; for O-AW it writes t + 1 where the proof has n_{t-1} + 2.

    Examples
    --------
    >>> from onlinefw.theory import anytime_bound
    >>> round(anytime_bound(9, rate="slow", alpha=1.0, sigma=0.0, rho=1.0, L=1.0, diameter=1.0), 3)
    0.2
    """
    if algorithm not in ("fw", "aw"):
        raise ValueError(f"algorithm must be 'fw' or 'aw', got {algorithm!r}")
    if rate not in ("fast", "slow"):
        raise ValueError(f"rate must be 'fast' or 'slow', got {rate!r}")
    if not (0.0 < alpha <= 1.0 and alpha < K):
        raise ValueError(f"the bounds need 0 < alpha <= 1 and alpha < K, got {alpha=}, {K=}")
    t = np.asarray(t)
    if np.any(t < 2):
        raise ValueError("the bounds hold from round t = 2 on: round 1 plays theta = 0")
    # n_{t-1} + K for O-AW, t - 1 + K for O-FW, which never drops
    if algorithm == "fw":
        counter = t - 1.0
    else:
        counter = (t - 1) / 2.0 if n_steps is None else np.asarray(n_steps, dtype=float)
    decay = np.asarray(eta, dtype=float) / (counter + K)
    error = rho * sigma * (1.0 if algorithm == "fw" else 2.0)
    total = error + K * (L * diameter**2) / 2.0
    growth = ((K + 1.0) / K) ** (2.0 * alpha)
    beta_squared = (1.0 + 2.0 * alpha / (K - alpha)) ** 2
    if rate == "slow":
        constant, exponent = K * total / (K - alpha), alpha
    elif algorithm == "fw":
        mu, delta, exponent = _needed("mu", mu), _needed("delta", delta), 2.0 * alpha
        constant = max(4.0 * growth, beta_squared) * total**2 / (2.0 * delta**2 * mu)
    else:
        mu, width, exponent = _needed("mu", mu), _needed("width", width), 2.0 * alpha
        constant = max(growth, beta_squared) * 2.0 * total**2 / (width**2 * mu)
    bound = constant * decay**exponent
    return float(bound) if np.ndim(bound) == 0 else bound


def _needed(name: str, value: float | None) -> float:
    if value is None or not value > 0:
        raise ValueError(
            f"the fast bound needs a positive {name}, got {value}; where there is none "
            "(mu = 0, a minimiser on the boundary) only rate='slow' exists"
        )
    return float(value)


def regret_bound(T: int, **same: Any) -> float:
    """Return the mean of the anytime bounds of rounds 2 to T: a bound on their mean h_t.

    Round 1 plays theta = 0 before any data and has no bound; its share in the regret is h_1 / T.
    The keyword arguments are those of :func:`anytime_bound`; ``eta`` and ``n_steps`` may have one
    value for each of the rounds 2 to T.

    Examples
    --------
    >>> from onlinefw.theory import regret_bound
    >>> constants = dict(rate="slow", alpha=1.0, sigma=0.0, rho=1.0, L=1.0, diameter=1.0)
    >>> round(regret_bound(3, **constants), 4)  # (2/3 + 2/4) / 2
    0.5833
    """
    if T < 2:
        raise ValueError(f"regret_bound needs T >= 2, got {T}")
    return float(np.mean(anytime_bound(np.arange(2, T + 1), **same)))


def gap_bound(
    T: int, *, algorithm: str = "fw", alpha: float, G: float, rho: float, L: float, diameter: float
) -> float:
    """Return Theorem 3's bound on the smallest gap in rounds T/2 + 1 to T, convex or not.

    For the step rule t^-alpha, G-Lipschitz and L-smooth losses, C_f = L diameter^2:

    - O-FW, T >= 6: (1 - alpha) (4 G rho + C_f / 2) / (1 - (2/3)^(1 - alpha)) T^-(1 - alpha);
    - O-AW, T >= 20: (1 - alpha) 2 (4 G rho + C_f) / (1 - (4/5)^(1 - alpha)) T^-(1 - alpha).

    Parameters
    ----------
    T : int
        The number of rounds; even.
    algorithm : {"fw", "aw"}
        O-FW (bounds g^FW) or O-AW (bounds g^AW).
    alpha : float
        Of the step rule, 0.5 <= alpha < 1.
    G, rho, L, diameter : float
        Lipschitz constant, diameter in the dual norm, smoothness, Euclidean diameter.

    Notes
    -----
    The printed theorem has no factor 2 for O-AW; the proof sums gamma g / 2, so it is needed.

    Examples
    --------
    >>> from onlinefw.theory import gap_bound
    >>> round(gap_bound(100, alpha=0.5, G=1.0, rho=1.0, L=2.0, diameter=1.0), 3)
    1.362
    """
    if not 0.5 <= alpha < 1.0:
        raise ValueError(f"gap_bound needs 0.5 <= alpha < 1, got {alpha}")
    if algorithm not in ("fw", "aw"):
        raise ValueError(f"algorithm must be 'fw' or 'aw', got {algorithm!r}")
    least = 6 if algorithm == "fw" else 20
    if T < least or T % 2:
        raise ValueError(f"gap_bound needs an even T >= {least} for {algorithm!r}, got {T}")
    curvature = L * diameter**2
    beta = 1.0 - alpha
    if algorithm == "fw":
        return beta * (4.0 * G * rho + curvature / 2.0) / (1.0 - (2.0 / 3.0) ** beta) * T**-beta
    return beta * 2.0 * (4.0 * G * rho + curvature) / (1.0 - 0.8**beta) * T**-beta


def tracking_bound(
    steps: ArrayLike, changes: ArrayLike, *, L: float, diameter: float, start: float | None = None
) -> Array:
    """Return bounds on h_t = F_t(theta_t) - min F_t for O-FW on convex functions that change.

    Here theta_t is what round t plays, before its step. The mean of these numbers bounds the mean
    of all h_t: the dynamic regret, in which the best point of every round is a point of its own.

    Parameters
    ----------
    steps : array-like of shape (T,)
        gamma_1, ..., gamma_T.
    changes : array-like of shape (T,)
        D_1, ..., D_T: how much F_{t+1} - F_t varies over the set, its largest value less its
        smallest. With a half-life F_{t+1} - F_t = s (f - F_t), where s is the share of the newest
        batch, and f its mean loss: at most s times the variation of f - F_t.
    L, diameter : float
        Smoothness of all F_t, Euclidean diameter of the set; C_f = L diameter^2.
    start : float, optional
        A bound on h_1; it is not needed if gamma_1 = 1.

    Returns
    -------
    ndarray of shape (T,)
        The bounds of rounds 2 to T + 1.

    Notes
    -----
    The bound is B_{t+1} = (1 - gamma_t) B_t + gamma_t^2 C_f / 2 + D_t. *Proof.* Let s minimise
    <grad F_t(theta_t), .> over the set and x any point of it. By smoothness::

        F_t(theta_{t+1}) <= F_t(theta_t) + gamma_t <grad F_t(theta_t), s - theta_t>
                            + gamma_t^2 L |s - theta_t|^2 / 2

    where the product is at most <grad F_t(theta_t), x* - theta_t> <= -h_t, with x* the minimiser of
    F_t, by convexity. So F_t(theta_{t+1}) - min F_t <= (1 - gamma_t) h_t + gamma_t^2 C_f / 2. With
    x the minimiser of F_{t+1}::

        h_{t+1} = F_{t+1}(theta_{t+1}) - F_{t+1}(x)
                = [F_t(theta_{t+1}) - F_t(x)] + [(F_{t+1} - F_t)(theta_{t+1}) - (F_{t+1} - F_t)(x)]

    of which the first difference is at most F_t(theta_{t+1}) - min F_t, and the second D_t.

    For a step and a change that stay the same, B_t tends to gamma C_f / 2 + D / gamma. That is
    least, sqrt(2 C_f D), for gamma = sqrt(2 D / C_f): a step that goes on shrinking, as 2 / (t + 1)
    does, loses a target that moves.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.theory import tracking_bound
    >>> bounds = tracking_bound([1.0, *[0.1] * 99], np.full(100, 0.005), L=1.0, diameter=1.0)
    >>> bounds[[0, -1]].round(3)  # towards 0.1 / 2 + 0.005 / 0.1
    array([0.505, 0.1  ])
    """
    gamma, change = np.asarray(steps, dtype=float), np.asarray(changes, dtype=float)
    if gamma.ndim != 1 or gamma.shape != change.shape or gamma.size == 0:
        raise ValueError(
            f"there must be as many steps as changes, got {gamma.shape} and {change.shape}"
        )
    if not ((gamma >= 0.0) & (gamma <= 1.0)).all() or not (change >= 0.0).all():
        raise ValueError("steps must be between 0 and 1, and changes at least 0")
    if start is None and gamma[0] != 1.0:
        raise ValueError(f"the first step is {gamma[0]:g}, not 1: pass start, a bound on h_1")
    bound, bounds = 0.0 if start is None else float(start), []
    for step, moved in zip(gamma.tolist(), change.tolist(), strict=True):
        bound = (1.0 - step) * bound + step**2 * (L * diameter**2) / 2.0 + moved
        bounds.append(bound)
    return np.array(bounds)


def pyramidal_width(constraint: ConvexSet, n: int) -> float:
    """Return the pyramidal width (facial distance) of a polytope in R^n, where it is known.

    - l1 ball: radius / sqrt(n - 1) for n >= 2, the whole length 2 radius for n = 1;
    - simplex: 2 radius / sqrt(n) for even n, 2 radius / sqrt(n - 1/n) for odd n;
    - boxes with sides s_i: 1 / sqrt(sum of s_i^-2), so 2 radius / sqrt(n) for the cube.

    Examples
    --------
    >>> from onlinefw.sets import L1Ball
    >>> from onlinefw.theory import pyramidal_width
    >>> pyramidal_width(L1Ball(3.0), 10)
    1.0
    """
    if int(n) != n or n < 1:
        raise ValueError(f"pyramidal_width needs a dimension n >= 1, got {n}")
    constraint.check_shape((n,))
    if isinstance(constraint, LpBall) and constraint.is_polytope:
        constraint = (L1Ball if constraint.p == 1 else LinfBall)(constraint.radius)
    if isinstance(constraint, L1Ball):
        return 2.0 * constraint.radius if n == 1 else constraint.radius / sqrt(n - 1.0)
    if isinstance(constraint, Simplex):
        if n == 1:
            raise ValueError("a simplex with one entry is a point: it has no pyramidal width")
        return 2.0 * constraint.radius / sqrt(n if n % 2 == 0 else n - 1.0 / n)
    if isinstance(constraint, LinfBall):
        return 2.0 * constraint.radius / sqrt(n)
    if isinstance(constraint, Box):
        sides = np.broadcast_to(np.subtract(constraint.upper, constraint.lower), (n,))
        sides = sides[sides > 0]
        if sides.size == 0:
            raise ValueError("a box whose bounds agree is a point: it has no pyramidal width")
        return float(1.0 / np.sqrt(np.sum(sides**-2.0)))
    raise ValueError(
        f"the pyramidal width of {constraint} is not known in closed form; "
        "pass width= to the bound if you know it"
    )


class Rate(NamedTuple):
    """A fitted power law h ~ exp(intercept) t^slope with a confidence interval of the slope."""

    slope: float
    low: float
    high: float
    intercept: float


def fit_rate(t: ArrayLike, h: ArrayLike, confidence: float = 0.95) -> Rate:
    """Fit log h = intercept + slope log t by least squares.

    Parameters
    ----------
    t, h : array-like
        Rounds and positive values, at least three of them.
    confidence : float
        Level of the interval (low, high) for the slope, from Student's t. Values of one run are
        correlated, so for an honest interval fit the mean over seeds at well-separated rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.theory import fit_rate
    >>> t = np.arange(1, 100)
    >>> round(fit_rate(t, 3.0 / t).slope, 12)
    -1.0
    """
    t, h = np.asarray(t, dtype=float), np.asarray(h, dtype=float)
    if t.shape != h.shape or t.ndim != 1 or t.size < 3:
        raise ValueError(
            f"fit_rate needs two arrays of one length >= 3, got {t.shape} and {h.shape}"
        )
    if not (np.all(t > 0) and np.all(h > 0)):
        raise ValueError("fit_rate takes logarithms: all t and h must be positive")
    fit = stats.linregress(np.log(t), np.log(h))
    margin = stats.t.ppf(0.5 + confidence / 2.0, t.size - 2) * fit.stderr
    return Rate(
        float(fit.slope),
        float(fit.slope - margin),
        float(fit.slope + margin),
        float(fit.intercept),
    )


def lasso_gradient_error(
    t: ArrayLike,
    *,
    n: int,
    m: int,
    B1: float,
    B2: float,
    sigma_w: float,
    c: float,
    epsilon: float = 0.05,
) -> Array:
    """Bound ``||grad F_t - grad f||_inf`` for online LASSO, for all t at once.

    (c B_1 + sqrt(m) B_2 sigma_w) sqrt(2 (log(2 n^2 t^2) - log epsilon) / t), with probability at
    least 1 - (1 + 1/n) pi^2 epsilon / 6, for losses ``||y_t - A_t theta||^2 / 2`` with m rows.

    Parameters
    ----------
    t : array-like
        Rounds.
    n, m : int
        Features, rows per round.
    B1, B2 : float
        Bounds on the entries of A_t' A_t - E[A'A] (0 for a fixed design) and of A_t.
    sigma_w : float
        Sub-Gaussian parameter (standard deviation) of the noise.
    c : float
        The largest ``||theta - theta_bar||_1`` over the set.
    epsilon : float
        One minus the probability, up to the factor above.

    Notes
    -----
    The printed proposition has sqrt(m B_2 sigma_w^2); A_s' w_s is a sum of m terms, each bounded
    by ``B_2 |w|``, so its variance proxy is m B_2^2 sigma_w^2.

    Examples
    --------
    >>> from onlinefw.theory import lasso_gradient_error
    >>> round(float(lasso_gradient_error(100, n=10, m=4, B1=0, B2=1, sigma_w=1, c=1)), 3)
    1.183
    """
    t = np.asarray(t, dtype=float)
    scale = c * B1 + np.sqrt(m) * B2 * sigma_w
    return scale * np.sqrt(2.0 * (np.log(2.0 * n**2 * t**2) - np.log(epsilon)) / t)


def matrix_gradient_error(
    t: ArrayLike,
    *,
    shape: Shape,
    sigma: float,
    kappa: float,
    epsilon: float = 0.05,
    constant: float = 1.0,
) -> Array:
    """Bound the operator norm of grad F_t - grad f for matrix completion, t large enough.

    constant (2 kappa + sigma) sqrt((log(1 + 2 t^2 / epsilon) + log(m1 + m2)) / (t min(m1, m2))).

    Parameters
    ----------
    t : array-like
        The number of observed entries, drawn uniformly.
    shape : (int, int)
        (m1, m2).
    sigma : float
        Bound on the standard deviation of an observation given its entry.
    kappa : float
        Bound on the Euclidean norm of any row or column of the mean parameters.
    epsilon : float
        One minus the probability.
    constant : float
        The paper's constant c_lambda depends on the tail of the noise and is not given.

    Examples
    --------
    >>> from onlinefw.theory import matrix_gradient_error
    >>> error = matrix_gradient_error([1e4, 1e6], shape=(20, 50), sigma=1.0, kappa=2.0)
    >>> bool(error[0] > error[1])
    True
    """
    t = np.asarray(t, dtype=float)
    m1, m2 = shape
    log_term = np.log(1.0 + 2.0 * t**2 / epsilon) + np.log(m1 + m2)
    return constant * (2.0 * kappa + sigma) * np.sqrt(log_term / (t * min(m1, m2)))
