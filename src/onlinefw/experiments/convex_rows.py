"""The rows of Table 1: settings that are run, with their predicted rates, and what is quoted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .convex_problems import (
    LeastSquaresStream,
    Problem,
    inexact_quadratic,
    least_squares,
    make_fixed_design,
    make_random_design,
    matrix_completion,
)
from .rate_rows import RateShape, log_over, root_log_over

__all__ = ["FAST", "IMPROVED", "QUOTED", "SETTINGS", "Setting"]

#: Predicted for h_t and the regret: Theorem 1; with the gradient errors of LASSO and matrix
#: completion; without its assumptions; Theorem 2 with an error of order t^(-1/2).
FAST = (log_over(2), log_over(3, "T"))
IMPROVED = (log_over(1), log_over(2, "T"))
SLOW = (root_log_over(2), root_log_over(2, "T"))
EXACT_ERROR = (log_over(0), log_over(1, "T"))


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    id: str
    #: Of the picture.
    title: str
    #: "O-FW" or "O-AW".
    algorithm: str
    #: Assumptions and problem, in words.
    about: str
    #: Where the paper predicts the rates.
    source: str
    #: Predicted for h_t and for the regret.
    rates: tuple[RateShape, RateShape]
    #: Called with the seed and T.
    make: Callable[[int, int], Problem]
    #: What the paper says has rounds of constant cost, if it does.
    cost: str = ""


def _small(seed: int, m: int = 40, n: int = 20) -> LeastSquaresStream:
    return make_fixed_design(m, n, sparsity=0.25, sigma=10.0, seed=seed)


def _large(seed: int) -> LeastSquaresStream:
    # With few nonzeros a minimiser on the boundary lies on a face of a few dimensions, or is a
    # vertex: h_t then has as few degrees of freedom, and the slopes of single seeds scatter much
    # more. A minimiser inside is also that of F_t from round 500 or so on, long before slopes are
    # measured; with fewer nonzeros the ball is nearer to the truth, and F_t has its minimiser on
    # the boundary for thousands of rounds.
    return make_fixed_design(80, 40, sparsity=0.5, sigma=10.0, seed=seed)


def _random(seed: int) -> LeastSquaresStream:
    return make_random_design(1, 40, sparsity=0.5, sigma=1.0, seed=seed)


def _paper(seed: int) -> LeastSquaresStream:
    return make_fixed_design(80, 300, sparsity=0.1, sigma=10.0, seed=seed)


SETTINGS = (
    Setting(
        "ofw-interior",
        "O-FW, minimiser inside the l1 ball",
        "O-FW",
        "strongly convex (LASSO, 80 x 40), minimiser inside the l1 ball (r = 1.1 ||truth||)",
        "Theorem 1, improved for LASSO (appendix)",
        IMPROVED,
        lambda seed, T: least_squares(_large(seed), "O-FW", T, 1.1),
        cost="LASSO",
    ),
    Setting(
        "ofw-interior-l2",
        "O-FW, minimiser inside the l2 ball",
        "O-FW",
        "strongly convex (least squares, 80 x 40), minimiser inside the l2 ball "
        "(r = 1.1 ||truth||)",
        "Theorem 1, improved as for LASSO (appendix)",
        IMPROVED,
        lambda seed, T: least_squares(_large(seed), "O-FW", T, 1.1, ball="l2"),
    ),
    Setting(
        "ofw-random-design",
        "O-FW, random design, inside",
        "O-FW",
        "strongly convex (one row of 40 signs a round), minimiser inside the l1 ball "
        "(r = 1.1 ||truth||)",
        "Theorem 1",
        FAST,
        lambda seed, T: least_squares(_random(seed), "O-FW", T, 1.1),
    ),
    Setting(
        "oaw-polytope",
        "O-AW, minimiser on the boundary",
        "O-AW",
        "strongly convex (LASSO, 80 x 40), polytope, minimiser on its boundary (r = 0.5 ||truth||)",
        "Theorem 1, improved for LASSO (appendix)",
        IMPROVED,
        lambda seed, T: least_squares(_large(seed), "O-AW", T, 0.5),
    ),
    Setting(
        "oaw-small-face",
        "O-AW, minimiser on a small face",
        "O-AW",
        "strongly convex (LASSO, 40 x 20), polytope, minimiser on a face of few dimensions "
        "(r = 0.5 ||truth||)",
        "Theorem 1, improved for LASSO (appendix)",
        IMPROVED,
        lambda seed, T: least_squares(_small(seed), "O-AW", T, 0.5),
    ),
    Setting(
        "ofw-boundary",
        "O-FW, minimiser on the boundary",
        "O-FW",
        "strongly convex (LASSO, 80 x 40), minimiser on the boundary (r = 0.5 ||truth||): H1 fails",
        "Table 1, Hazan and Kale 2012",
        SLOW,
        lambda seed, T: least_squares(_large(seed), "O-FW", T, 0.5),
    ),
    Setting(
        "ofw-convex",
        "O-FW, not strongly convex",
        "O-FW",
        "convex, mu = 0 (LASSO, 20 x 75, r = 0.15 ||truth||)",
        "Table 1, Hazan and Kale 2012",
        SLOW,
        lambda seed, T: least_squares(_small(seed, 20, 75), "O-FW", T, 0.15),
    ),
    Setting(
        "oaw-convex",
        "O-AW, not strongly convex",
        "O-AW",
        "f = g(A theta), mu = 0, polytope (the paper's LASSO, 80 x 300, r = 0.15 ||truth||)",
        "Appendix, O-AW without strong convexity",
        FAST,
        lambda seed, T: least_squares(_paper(seed), "O-AW", T, 0.15),
        cost="the paper's LASSO",
    ),
    Setting(
        "ofw-matrix",
        "O-FW, matrix completion, inside",
        "O-FW",
        "strongly convex (matrix completion, 30 x 40, rank 3, 50 entries a round), truth inside "
        "the trace-norm ball (R = 1.1 ||truth||)",
        "Section 5.1",
        IMPROVED,
        lambda seed, T: matrix_completion((30, 40), 3, 50, T, 1.1, seed)[0],
        cost="matrix completion, once every entry has been seen,",
    ),
    Setting(
        "theorem2-ofw",
        "Theorem 2, O-FW, error (t+1)^-1/2",
        "O-FW",
        "strongly convex quadratic in 10 variables, minimiser inside the l2 ball, gradient error "
        "of norm exactly 0.3 / (t + 1)^(1/2)",
        "Theorem 2 (the regret summed from it)",
        EXACT_ERROR,
        lambda seed, T: inexact_quadratic("O-FW", 10, 0.3, seed),
    ),
    Setting(
        "theorem2-oaw",
        "Theorem 2, O-AW, error (t+1)^-1/2",
        "O-AW",
        "strongly convex quadratic in 10 variables, l1 ball, minimiser on its boundary, gradient "
        "error of norm exactly 0.3 / (t + 1)^(1/2)",
        "Theorem 2 (the regret summed from it)",
        EXACT_ERROR,
        lambda seed, T: inexact_quadratic("O-AW", 10, 0.3, seed),
    ),
)

#: What the paper's table says of other work: (who, setting, regret, anytime).
QUOTED = (
    ("Garber and Hazan 2015", "hybrid, Lipschitz convex loss", "sqrt(1/T)", "sqrt(log t / t)"),
    ("Garber and Hazan 2015", "hybrid, strongly convex loss", "log T / T", "log t / t"),
)
