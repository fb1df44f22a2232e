"""How the gradient error grows with n and epsilon, and falls with min(m1, m2): the propositions.

No learner is played: rounds are drawn, and the error of grad F_t is taken at its largest over the
set (Proposition 1, LASSO), or its two parts are (matrix completion).

- Proposition 1 has the error O(max{sigma_D, rho_bar L} sqrt(n) sqrt(log t log(nt/epsilon) / t)).
  Sigmoid loss, sharpness k = 10, t rows of n signs, labels that are fair coins: the expected
  gradient is 0 at every theta, so that the error is the gradient itself. Its entries are at most
  k / 4 = sigma_D, whatever n. On the Euclidean ball of radius 1 rho_bar is 2, and L is up to
  k^2 n / (6 sqrt(3)), so that rho_bar L sqrt(n), which the proposition has here, grows like n^1.5.
  What is judged is stronger: sqrt(n) in units of sigma_D, up to logarithms, for n = 4 to 64 and
  t = 4,000; and the 1 - epsilon quantiles of the squared error, n = 8, t = 400, which are to be
  linear in log(nt/epsilon) with the factor of the proof: N exp(-t s^2 / (2 sigma_D^2)) for N points
  of a net is epsilon at s^2 t / sigma_D^2 = 2 log(N / epsilon), 2 more for each unit. (An exponent
  of log(nt/epsilon) would not do: that of a + b log(1/epsilon) is above 1 for a small a.) The
  largest error over the ball is searched, by gradient ascent from points near 0 and elsewhere: that
  is a lower bound on it.
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
from .experiment import Advance, Record, Records
from .exponents import between
from .rate_rows import TablePart
from .results import Claim, Series

__all__ = ["ErrorGrowth"]

ROUNDS, ENTRIES, DRAWS = 400, 40_000, 4_000
#: For Proposition 1: rows where n grows, n and the draws where epsilon shrinks.
MANY_ROUNDS, FEATURES, SEARCHES = 4_000, 8, 1_000
#: Of the sigmoid loss; its slopes are at most a quarter of it.
SHARPNESS = 10.0
#: An ascent starts from points of these lengths, for so many coordinates with the largest error
#: there; 0 itself is no place to start from, since every error is stationary there. Its steps have
#: these lengths.
LENGTHS, COORDINATES = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0), 3
STEPS = np.geomspace(0.2, 0.005, 30)
NO_LIMIT = float("inf")


def sigmoid_errors(Z: Array, thetas: Array) -> tuple[Array, Array]:
    """Return the error of every coordinate at thetas, in units of sigma_D, and tanh(k z / 2).

    Z has y_s x_s as rows. The gradient's entries are the means of -k y p (1 - p) x_i, where
    p = 1 / (1 + exp(k y z)); p (1 - p) is (1 - tanh^2) / 4. Each may have an axis of draws before.
    """
    bend = np.tanh(SHARPNESS / 2.0 * thetas @ np.swapaxes(Z, -1, -2))
    return (bend**2 - 1.0) @ Z / Z.shape[-2], bend


def largest_sigmoid_error(Z: Array, rng: np.random.Generator) -> Array:
    """Return the largest error found over the unit ball for each draw, in units of sigma_D.

    By projected gradient ascent; the largest of any coordinate along all paths counts.
    """
    draws, _, n = Z.shape
    several = min(COORDINATES, n)
    points = rng.standard_normal((draws, len(LENGTHS), n))
    points *= np.array(LENGTHS)[:, None] / np.linalg.norm(points, axis=-1, keepdims=True)
    errors, _ = sigmoid_errors(Z, points)
    coordinates = np.argsort(-np.abs(errors), axis=-1)[..., :several]
    signs = np.sign(np.take_along_axis(errors, coordinates, axis=-1)).reshape(draws, -1, 1)
    thetas = np.repeat(points, several, axis=1)
    columns = np.take_along_axis(Z, coordinates.reshape(draws, 1, -1), axis=-1)
    columns = np.swapaxes(columns, -1, -2)
    largest = np.abs(sigmoid_errors(Z, np.zeros((draws, 1, n)))[0]).max(axis=(1, 2))
    for step in STEPS:
        errors, bend = sigmoid_errors(Z, thetas)
        largest = np.maximum(largest, np.abs(errors).max(axis=(1, 2)))
        # The derivative of tanh^2 - 1 by its argument is 2 tanh (1 - tanh^2).
        uphill = signs * ((bend * (1.0 - bend**2) * columns) @ Z)
        thetas = thetas + step * uphill / np.linalg.norm(uphill, axis=-1, keepdims=True)
        thetas /= np.maximum(1.0, np.linalg.norm(thetas, axis=-1, keepdims=True))
    errors, _ = sigmoid_errors(Z, thetas)
    return np.maximum(largest, np.abs(errors).max(axis=(1, 2)))


def coin_rows(draws: int, rounds: int, n: int, rng: np.random.Generator) -> Array:
    """Return rows y x: x of signs, and y a fair coin, of which it is independent."""
    x = rng.choice([-1.0, 1.0], (draws, rounds, n))
    return rng.choice([-1.0, 1.0], (draws, rounds, 1)) * x


def sigmoid_error(n: int, rng: np.random.Generator) -> float:
    """Return the largest error found over the ball with many rows, the mean of three draws."""
    each = [largest_sigmoid_error(coin_rows(1, MANY_ROUNDS, n, rng), rng) for _ in range(3)]
    return float(np.mean(each))


def sigmoid_quantiles(epsilons: Array, rng: np.random.Generator) -> Array:
    """Return the 1 - epsilon quantiles of t times the square of the largest error found."""
    parts = [
        largest_sigmoid_error(coin_rows(10, ROUNDS, FEATURES, rng), rng)
        for _ in range(SEARCHES // 10)
    ]
    return ROUNDS * np.quantile(np.concatenate(parts), 1.0 - epsilons) ** 2


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
        "largest error / sigma_D",
        "Sigmoid loss, rows of n signs, labels by coin: the gradient error, at the largest found "
        "over a Euclidean ball, grows with n like sigma_D n^1/2 at most",
        GENERAL,
        (4.0, 8.0, 16.0, 32.0, 64.0),
        lambda x, rng: np.array([sigmoid_error(int(n), rng) for n in x]),
        _exponent,
        "exponent of n",
        (-NO_LIMIT, 0.5 + 0.1),
        "n^1/2 in units of sigma_D; with L, which grows, the proposition itself has n^1.5",
    ),
    Growth(
        "general-epsilon",
        "1 / epsilon",
        "squared error t / sigma_D^2",
        "Sigmoid loss, rows of n signs, labels by coin: the 1 - epsilon quantile of the squared "
        "gradient error, at the largest found over a Euclidean ball, grows by at most "
        "2 sigma_D^2 / t for each unit of log(nt/epsilon)",
        GENERAL,
        (5.0, 10.0, 20.0, 50.0, 100.0),
        lambda x, rng: sigmoid_quantiles(1.0 / x, rng),
        _per_log,
        "growth of (error / sigma_D)^2 t for each unit of log(nt/epsilon)",
        (-NO_LIMIT, 2.0 + 0.1),
        "N exp(-t s^2 / (2 sigma_D^2)) over a net of N points, in the proof",
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
            "rounds, growing n": MANY_ROUNDS,
            "searches": SEARCHES,
            "starts": [list(LENGTHS), COORDINATES],
            "ascent": len(STEPS),
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
