"""How the gradient error grows with n and epsilon, and falls with min(m1, m2): the propositions.

No learner is played: rounds are drawn, and the error of grad F_t is taken at its largest over the
set (Proposition 1, LASSO), or its two parts are (matrix completion).

- Proposition 1 has (error / sigma_D)^2 at most n times a logarithm of n / epsilon, with a constant
  left open: exponent 1/2 in n. Its proof has exp(-t error^2 / (2 sigma_D^2)) at each point: squared
  and times t / sigma_D^2, 2 more for each unit of log 1/epsilon. The sigmoid loss with flipped
  labels, sharpness k = 10, one row a round, t = 400: slopes are at most k / 4 = sigma_D. n = 8 to
  256 for the largest error over the vertices of the unit l1 ball and 100 points inside (over the
  whole ball it may be larger: the loss is not quadratic). For epsilon the error at 0, n = 30.
- LASSO. With s = c B_1 + sqrt(m) B_2 sigma_w the proposition has (error / s)^2 t at most
  2 log(2 n^2 t^2 / epsilon): 4 more for each unit of log n, 2 for each unit of log 1/epsilon. The
  error is affine in theta, so it is largest at a vertex of the l1 ball. One random row of signs a
  round (B_1 = B_2 = 1), noise 1, t = 400; n = 8 to 256 for the sup over the ball. For epsilon the
  noise part alone, a fixed design of 20 x 50 signs (B_1 = 0): its 1 - epsilon quantiles, epsilon =
  0.2 to 0.005.
- Matrix completion, t = 40,000 uniform entries. Both parts of the error, the noise's operator norm
  and that of P_t (how unevenly entries were drawn), are O(sqrt(log(m1 + m2) / (t min(m1, m2)))):
  exponent -1/2 in the side of a square, and none in the longer side alone.

One number a seed is fitted; criteria leave 0.1 for logarithms and finite sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from .._typing import Array
from ..losses import Sigmoid
from .expected_sigmoid import FlippedLabels
from .experiment import Advance, Record, Records
from .exponents import between
from .rate_rows import TablePart
from .results import Claim, Series

__all__ = ["ErrorGrowth"]

ROUNDS, ENTRIES, DRAWS, POINTS = 400, 40_000, 4_000, 100
#: Of the sigmoid loss; its slopes are at most a quarter of it.
SHARPNESS = 10.0
NO_LIMIT = float("inf")


def flipped_labels(n: int, rng: np.random.Generator) -> FlippedLabels:
    """Return labels by five of n features, a quarter of them wrong."""
    seed = int(rng.integers(2**31))
    return FlippedLabels.make(n, 5, flip=0.25, sharpness=SHARPNESS, seed=seed)


def sigmoid_error(n: int, rng: np.random.Generator) -> float:
    """Return the largest error seen in the unit l1 ball: at its vertices and at points inside."""
    labels = flipped_labels(n, rng)
    ((X, y),) = labels.rounds(1, ROUNDS)
    inside = rng.dirichlet(np.ones(n), POINTS) * rng.choice([-1.0, 1.0], (POINTS, n))
    points = np.vstack([np.eye(n), -np.eye(n), inside])
    slopes = Sigmoid(SHARPNESS).derivative(X @ points.T, y[:, None])
    expected = np.column_stack([labels.gradient(theta) for theta in points])
    return float(np.abs(X.T @ slopes / ROUNDS - expected).max())


def sigmoid_quantiles(epsilons: Array, rng: np.random.Generator) -> Array:
    """Return the 1 - epsilon quantiles of (error / sigma_D)^2 t at theta = 0."""
    n, largest = 30, np.empty(DRAWS)
    labels = flipped_labels(n, rng)
    expected = labels.gradient(np.zeros(n))
    for k, (X, y) in enumerate(labels.rounds(DRAWS, ROUNDS)):
        largest[k] = np.abs(-SHARPNESS / 4.0 * (y @ X) / ROUNDS - expected).max()
    return np.quantile(largest / (SHARPNESS / 4.0), 1.0 - epsilons) ** 2 * ROUNDS


def lasso_error_squared(n: int, rng: np.random.Generator) -> float:
    """Return (error / s)^2 t for random rows of signs: the sup over the unit l1 ball."""
    star = np.zeros(n)
    star[:2] = 0.5
    A = 2.0 * rng.integers(2, size=(ROUNDS, n)) - 1.0
    noise = A.T @ rng.standard_normal(ROUNDS) / ROUNDS
    uneven = A.T @ A / ROUNDS - np.eye(n)
    at_vertices = np.hstack([uneven, -uneven]) - (uneven @ star + noise)[:, None]
    s = 2.0 + 1.0  # c B_1 + sqrt(m) B_2 sigma_w, where c = 1 + ||star||_1
    return float(np.abs(at_vertices).max() / s) ** 2 * ROUNDS


def noise_quantiles(epsilons: Array, rng: np.random.Generator) -> Array:
    """Return the 1 - epsilon quantiles of (error / s)^2 t for a fixed design."""
    m, n = 20, 50
    A = 2.0 * rng.integers(2, size=(m, n)) - 1.0
    # The mean noise of t rounds has variance 1 / t, which the factor t takes out.
    largest = np.abs(rng.standard_normal((DRAWS, m)) @ A).max(axis=1) / np.sqrt(m)
    return np.quantile(largest, 1.0 - epsilons) ** 2


def matrix_errors(shape: tuple[int, int], rng: np.random.Generator) -> tuple[float, float]:
    """Return the operator norms of the noise (variance 1) and of P_t."""
    where = rng.integers(shape[0], size=ENTRIES), rng.integers(shape[1], size=ENTRIES)
    noise, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(noise, where, rng.standard_normal(ENTRIES) / ENTRIES)
    np.add.at(counts, where, 1.0 / ENTRIES)
    uneven = counts - 1.0 / (shape[0] * shape[1])
    return float(np.linalg.norm(noise, 2)), float(np.linalg.norm(uneven, 2))


@dataclass(frozen=True)
class Growth:
    """What is varied, what is measured, and how it is to grow."""

    id: str
    #: What x and y are, for the picture and the table.
    x_name: str
    y_name: str
    statement: str
    source: str
    x: tuple[float, ...]
    #: Called with x and a generator: one value for each x.
    measure: Callable[[Array, np.random.Generator], Array]
    #: Of x and y, returns the number that is judged.
    fitted: Callable[[Array, Array], float]
    #: What that number is, the range for it, and why.
    what: str
    limits: tuple[float, float]
    why: str


def _per_log(x: Array, y: Array) -> float:
    return float(np.polyfit(np.log(x), y, 1)[0])


def _exponent(x: Array, y: Array) -> float:
    return theory.fit_rate(x, y).slope


def _matrix(part: int, shape: Callable[[int], tuple[int, int]]) -> Callable[..., Array]:
    def measure(x: Array, rng: np.random.Generator) -> Array:
        return np.array([matrix_errors(shape(int(side)), rng)[part] for side in x])

    return measure


def _square(side: int) -> tuple[int, int]:
    return side, side


def _wide(side: int) -> tuple[int, int]:
    return 20, side


GENERAL = "Proposition 1"
LASSO = "Appendix, proposition on online LASSO"
MATRIX = "Appendix, improved gradient error for matrix completion"
SIDES = (10.0, 16.0, 25.0, 40.0, 63.0, 100.0)
GROWTHS = (
    Growth(
        "general-n",
        "n",
        "largest error",
        "Sigmoid loss with flipped labels: the gradient error, at its largest over the vertices of "
        "the l1 ball and points inside, grows with n like n^1/2 at most",
        GENERAL,
        (8.0, 16.0, 32.0, 64.0, 128.0, 256.0),
        lambda x, rng: np.array(
            [np.mean([sigmoid_error(int(n), rng) for _ in range(5)]) for n in x]
        ),
        _exponent,
        "exponent of n",
        (-NO_LIMIT, 0.5 + 0.1),
        "n^1/2",
    ),
    Growth(
        "general-epsilon",
        "1 / epsilon",
        "squared error t / sigma_D^2",
        "Sigmoid loss with flipped labels: the 1 - epsilon quantile of the squared gradient error "
        "at theta = 0 grows by at most 2 sigma_D^2 / t for each unit of log 1/epsilon",
        GENERAL,
        (5.0, 10.0, 20.0, 50.0, 100.0, 200.0),
        lambda x, rng: sigmoid_quantiles(1.0 / x, rng),
        _per_log,
        "growth of (error / sigma_D)^2 t for each unit of log 1/epsilon",
        (-NO_LIMIT, 2.0 + 0.1),
        "exp(-t s^2 / (2 sigma_D^2)) in the proof",
    ),
    Growth(
        "lasso-n",
        "n",
        "squared error t / s^2",
        "LASSO: the squared gradient error, at its largest over the l1 ball, grows with n by at "
        "most 4 s^2 / t for each unit of log n",
        LASSO,
        (8.0, 16.0, 32.0, 64.0, 128.0, 256.0),
        lambda x, rng: np.array(
            [np.mean([lasso_error_squared(int(n), rng) for _ in range(10)]) for n in x]
        ),
        _per_log,
        "growth of (error / s)^2 t for each unit of log n",
        (-NO_LIMIT, 4.0),
        "2 log(n^2 ...)",
    ),
    Growth(
        "lasso-epsilon",
        "1 / epsilon",
        "squared error t / s^2",
        "LASSO, fixed design: the 1 - epsilon quantile of the squared gradient error grows by at "
        "most 2 s^2 / t for each unit of log 1/epsilon",
        LASSO,
        (5.0, 10.0, 20.0, 50.0, 100.0, 200.0),
        lambda x, rng: noise_quantiles(1.0 / x, rng),
        _per_log,
        "growth of (error / s)^2 t for each unit of log 1/epsilon",
        (-NO_LIMIT, 2.0 + 0.1),
        "2 log(... / epsilon)",
    ),
    *(
        Growth(
            f"matrix-{word}-{name}",
            "side",
            "operator norm",
            f"Matrix completion: the operator norm of {about} falls like min(m1, m2)^-1/2{also}",
            MATRIX,
            SIDES if name == "min" else (80.0, 160.0, 320.0, 640.0, 1280.0),
            _matrix(part, _square if name == "min" else _wide),
            _exponent,
            "exponent of the side" if name == "min" else "exponent of the longer side, m1 = 20",
            (-NO_LIMIT, -0.5 + 0.1) if name == "min" else (-0.25, NO_LIMIT),
            "min(m1, m2)^-1/2" if name == "min" else "it would be -1/2 of (m1 m2)^-1/2",
        )
        for part, (word, about) in enumerate(
            (("noise", "the noise's part of the error"), ("uneven", "P_t, uneven sampling"))
        )
        for name, also in (("min", ""), ("longer", ", the shorter side: not with the longer one"))
    ),
)


class ErrorGrowth(TablePart):
    """Exponents of the propositions on gradient errors."""

    dataset = "growth"
    rounds_key = "x"
    rows: Sequence[Growth]

    def __init__(self, T: int, seeds: int, *, quick: bool):
        super().__init__(GROWTHS, T, seeds, quick=quick)
        self.settings |= {
            "rounds": ROUNDS,
            "entries": ENTRIES,
            "draws": DRAWS,
            "points": POINTS,
            "sharpness": SHARPNESS,
        }

    def play(self, row: Growth, seed: int, advance: Advance) -> Record:
        """Measure along the grid with one seed."""
        x = np.array(row.x)
        y = row.measure(x, np.random.default_rng([seed, 14]))
        advance(self.T)
        return {"x": x.tolist(), "y": y.tolist(), "fitted": row.fitted(x, y)}

    def curves(self, records: Records) -> list[Series]:
        """Return what was measured along each grid, means over seeds."""
        series = []
        for row in self.rows:
            y = self.each(records, row.id, "y").mean(axis=0)
            panel = f"Gradient error, {row.id}"
            series.append(self.series(panel, "measured", row.x_name, row.y_name, row.x, y))
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge every growth."""
        return [
            between(
                self.each(records, row.id, "fitted"),
                *row.limits,
                row.what,
                row.why,
                **self.named(f"t1-growth-{row.id}", row.statement, row.source),
            )
            for row in self.rows
        ]

    def extra(self, records: Records) -> dict[str, Any]:
        """Return the fitted numbers as a table."""
        return {
            "growth": [
                {
                    "measured": row.what,
                    "mean over seeds": float(self.each(records, row.id, "fitted").mean()),
                    "predicted": row.why,
                }
                for row in self.rows
            ]
        }
