"""Where the bounds of the theorems say something: small sets, little noise, many rounds.

On most problems of this table the proved bounds are above what the worst feasible theta has for any
number of rounds that can be played: nothing could violate them there. On these they fall below it,
so that a learner which stops learning, or learns too slowly, would be found out.

Problems:

- quadratics ||theta - c||^2 / 2 in two variables with a gradient error of norm exactly
  0.05 / (t + 1)^(1/2) that always points against the gradient (Theorem 2 and the slow rates): O-FW
  on the l2 ball with c inside, O-AW and O-FW on the l1 ball with c outside; and O-FW there with
  exact gradients (alpha = 1);
- LASSO with the fixed 2 x 2 design of orthogonal signs and noise 0.1, so that the gradient error is
  that of the paper's proposition: minimiser deep inside (O-FW), or on the boundary (O-FW, O-AW);
- the correntropy loss 1 - exp(-(<theta, x> - y)^2 / 2), which is not convex, on one row x of two
  signs a round over the l1 ball of radius 0.3, with y = <(0.1, 0.05), x> +- 0.1, but + 3 in a
  quarter of the rows (Theorem 3, steps t^-0.5). As there are 12 different rows, the gradient of F_t
  needs their counts only.

The worst feasible theta has the largest h of a vertex (l1 ball) or of a point of the sphere, and
for Theorem 3 the largest gap that a vertex has on F_T. Bounds are judged only in rounds in which
they are below it, all of about 60 that are looked at. Steps are 2 / (t + 1) but for Theorem 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from .._typing import Array
from ..losses import Correntropy
from ..objectives import GradientOracle
from ..sets import ConvexSet, L1Ball, L2Ball
from ..steps import Harmonic, Power
from . import verdicts
from .convex_problems import (
    ALGORITHMS,
    EPSILON,
    K,
    LeastSquaresStream,
    Problem,
    anytime,
    least_squares,
    worst_excess,
)
from .experiment import Advance, Record, Records
from .rate_rows import TablePart
from .recorder import late_minimum, log_rounds, play
from .results import Claim, Series

__all__ = ["BITING", "Biting", "Bounds", "against_the_gradient", "small_gap"]

#: Of the problem for Theorem 3, which begins at round 20 for O-AW.
RADIUS, ALPHA, FIRST = 0.3, 0.5, 20


@dataclass(frozen=True)
class Biting:
    """A bound, and a problem on which it is below what the worst feasible theta has."""

    id: str
    #: Of the picture.
    title: str
    #: The claim, in words.
    about: str
    source: str
    #: Rounds, as multiples of those of the part.
    longer: int
    #: Called with the seed, T and the progress, returns t, value, bound and worst.
    run: Callable[[int, int, Advance], Record]


def against_the_gradient(
    algorithm: str, rate: str, center: tuple[float, float], sigma: float, seed: int
) -> Problem:
    """Return ||theta - c||^2 / 2, whose gradient has an error of norm sigma / (t + 1)^(1/2).

    The error points against the gradient, so that a small gradient is turned round. O-FW with the
    fast rate: l2 ball; else the l1 ball, and the error is measured by its largest entry. The seed
    turns c. With sigma = 0 the bound is that with alpha = 1.
    """
    ball: ConvexSet = L2Ball(1.0) if (algorithm, rate) == ("O-FW", "fast") else L1Ball(1.0)
    euclidean = isinstance(ball, L2Ball)
    rng, c = np.random.default_rng([seed, 7]), np.array(center)
    if euclidean:
        angle = rng.uniform(0.0, 2.0 * np.pi)
        c = np.linalg.norm(c) * np.array([np.cos(angle), np.sin(angle)])
    else:
        c *= rng.choice([-1.0, 1.0], size=2) * rng.uniform(0.8, 1.2)
    nearest = ball.project(c)
    minimum = 0.5 * float(np.sum(np.square(nearest - c)))
    constants = {
        "mu": 1.0,
        "L": 1.0,
        "sigma": sigma,
        "rho": ball.diameter(2 if euclidean else 1, shape=(2,)),
        "diameter": ball.diameter(2),
        "worst": worst_excess(np.eye(2), c, ball) - minimum,
    }
    if euclidean:
        constants["delta"] = 1.0 - float(np.linalg.norm(c))
    elif rate == "fast":
        constants["width"] = theory.pyramidal_width(ball, 2)

    def gradient(theta: Array, t: int) -> Array:
        exact = theta - c
        norm = np.linalg.norm(exact)
        if sigma == 0.0 or norm == 0.0:
            return exact
        error = exact / norm if euclidean else np.sign(exact)
        return exact - sigma / np.sqrt(K + t - 1.0) * error

    return Problem(
        learner=lambda: ALGORITHMS[algorithm](GradientOracle(gradient, 2), ball, step=Harmonic(K)),
        stream=_nothing,
        excess=lambda theta: 0.5 * float(np.sum(np.square(theta - c))) - minimum,
        constants=constants,
        bound=lambda t, n: anytime(
            t, algorithm, rate, constants, n, alpha=0.5 if sigma > 0.0 else 1.0
        ),
    )


def _nothing() -> Iterator[tuple[None, None]]:
    while True:
        yield None, None


def _orthogonal_lasso(algorithm: str, inside: bool, seed: int, T: int) -> Problem:
    A = np.array([[1.0, 1.0], [1.0, -1.0]])
    theta = np.random.default_rng([seed, 8]).choice([-1.0, 1.0], size=2) * [0.6, 0.4]

    def rounds(T: int) -> Iterator[tuple[Array, Array]]:
        rng = np.random.default_rng([seed, 9])
        for _ in range(T):
            yield A, A @ theta + 0.1 * rng.standard_normal(2)

    stream = LeastSquaresStream(theta, A.T @ A, 0.1, 2, 0.0, 1.0, rounds)
    return least_squares(stream, algorithm, T, 10.0 if inside else 0.5)


def _play_convex(problem: Problem, T: int, advance: Advance) -> Record:
    assert problem.bound is not None
    at = log_rounds(T)
    looks = {"h": problem.excess}
    trace = play(problem.learner, problem.stream, T, looks, advance, at=at, warm_up=0)
    return {
        "t": at,
        "value": trace.looks["h"],
        # The bound at round t depends on the counter n_{t-1}.
        "bound": problem.bound(at, trace.n_steps[at - 2]),
        "worst": np.full(at.size, problem.constants["worst"]),
    }


def small_gap(algorithm: str, seed: int, T: int, advance: Advance) -> Record:
    """Play correntropy over a small l1 ball; return the smallest late gaps and their bounds."""
    n, ball, loss = 2, L1Ball(RADIUS), Correntropy(1.0)
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    X = np.repeat(signs, 3, axis=0)
    y = X @ [0.1, 0.05] + np.tile([-0.1, 0.1, 3.0], 4)
    chances = np.tile([0.375, 0.375, 0.25], 4) / 4.0
    drawn = np.random.default_rng([seed, 10]).choice(y.size, size=T, p=chances)
    counts = np.zeros((T, y.size), dtype=np.int32)
    counts[np.arange(T), drawn] = 1
    np.cumsum(counts, axis=0, out=counts)

    def gradient(theta: Array, t: int) -> Array:
        return X.T @ (counts[t - 1] * loss.derivative(X @ theta, y)) / t

    def largest_of_a_vertex(t: int) -> float:
        """Return the largest g^FW on F_t that a vertex of the ball has; g^AW is no smaller."""
        vertices = RADIUS * np.concatenate([np.eye(n), -np.eye(n)])
        slopes = [(vertex, gradient(vertex, t)) for vertex in vertices]
        return max(float(v @ g + RADIUS * np.abs(g).max()) for v, g in slopes)

    trace = play(
        lambda: ALGORITHMS[algorithm](GradientOracle(gradient, n), ball, step=Power(ALPHA)),
        _nothing,
        T,
        {},
        advance,
        warm_up=0,
    )
    ends = np.unique(log_rounds(T, first=FIRST) // 2 * 2)
    constants = {
        "G": float(np.exp(-0.5)),  # the largest slope of the loss; entries of a row are +-1
        "rho": ball.diameter(1),
        "L": loss.smoothness * n,
        "diameter": ball.diameter(2),
    }
    kind = "fw" if algorithm == "O-FW" else "aw"
    bound = [theory.gap_bound(int(e), algorithm=kind, alpha=ALPHA, **constants) for e in ends]
    return {
        "t": ends,
        "value": np.maximum(late_minimum(trace.gap, ends), 1e-16),
        "bound": bound,
        "worst": [largest_of_a_vertex(int(e)) for e in ends],
    }


def _quadratic(algorithm: str, rate: str, sigma: float = 0.05) -> Callable[..., Record]:
    center = (0.06, 0.08) if (algorithm, rate) == ("O-FW", "fast") else (0.8, 0.7)
    return lambda seed, T, advance: _play_convex(
        against_the_gradient(algorithm, rate, center, sigma, seed), T, advance
    )


def _lasso(algorithm: str, inside: bool) -> Callable[..., Record]:
    return lambda seed, T, advance: _play_convex(
        _orthogonal_lasso(algorithm, inside, seed, T), T, advance
    )


def _gap(algorithm: str) -> Callable[..., Record]:
    return lambda seed, T, advance: small_gap(algorithm, seed, T, advance)


FAST, SLOW, GAP = "Appendix, proof of Theorem 2", "Appendix, slow rates", "Theorem 3 (appendix)"
ERROR = "a gradient error of norm exactly 0.05 / (t + 1)^(1/2) against the gradient"
BITING = (
    Biting(
        "fast-ofw", "fast bound, O-FW", f"O-FW, fast bound, minimiser inside an l2 ball, {ERROR}",
        FAST, 1, _quadratic("O-FW", "fast"),
    ),
    Biting(
        "fast-oaw", "fast bound, O-AW",
        f"O-AW, fast bound, minimiser on the boundary of an l1 ball, {ERROR}",
        FAST, 1, _quadratic("O-AW", "fast"),
    ),
    Biting(
        "slow-ofw", "slow bound, O-FW",
        f"O-FW, slow bound, minimiser on the boundary of an l1 ball, {ERROR}",
        SLOW, 1, _quadratic("O-FW", "slow"),
    ),
    Biting(
        "slow-oaw", "slow bound, O-AW",
        f"O-AW, slow bound, minimiser on the boundary of an l1 ball, {ERROR}",
        SLOW, 1, _quadratic("O-AW", "slow"),
    ),
    Biting(
        "exact-ofw", "slow bound, O-FW, exact gradients",
        "O-FW, slow bound with alpha = 1, minimiser on the boundary of an l1 ball, exact gradients",
        SLOW, 1, _quadratic("O-FW", "slow", 0.0),
    ),
    Biting(
        "lasso-fast-ofw", "fast bound, O-FW, LASSO",
        "O-FW, fast bound, LASSO with a 2 x 2 design, noise 0.1, minimiser inside",
        FAST, 10, _lasso("O-FW", True),
    ),
    Biting(
        "lasso-fast-oaw", "fast bound, O-AW, LASSO",
        "O-AW, fast bound, LASSO with a 2 x 2 design, noise 0.1, minimiser on the boundary",
        FAST, 10, _lasso("O-AW", False),
    ),
    Biting(
        "lasso-slow-ofw", "slow bound, O-FW, LASSO",
        "O-FW, slow bound, LASSO with a 2 x 2 design, noise 0.1, minimiser on the boundary",
        SLOW, 1, _lasso("O-FW", False),
    ),
    Biting(
        "gap-ofw", "Theorem 3, O-FW", "O-FW, Theorem 3, correntropy loss over a small l1 ball",
        GAP, 20, _gap("O-FW"),
    ),
    Biting(
        "gap-oaw", "Theorem 3, O-AW", "O-AW, Theorem 3, correntropy loss over a small l1 ball",
        GAP, 20, _gap("O-AW"),
    ),
)  # fmt: skip


class Bounds(TablePart):
    """Bounds that could be violated, beside what is measured."""

    dataset = "bounds"
    rows: Sequence[Biting]

    def __init__(self, T: int, seeds: int, *, quick: bool, rows: tuple[Biting, ...] = BITING):
        super().__init__(rows, T, seeds, quick=quick)
        self.settings |= {
            "step": "2 / (t + 1); t^-0.5 for Theorem 3",
            "epsilon": EPSILON,
            "rounds": {row.id: row.longer * T for row in rows},
            "rows": {row.id: row.about for row in rows},
        }

    def play(self, row: Biting, seed: int, advance: Advance) -> Record:
        """Play a row with one seed."""
        return row.run(seed, row.longer * self.T, advance)

    def curves(self, records: Records) -> list[Series]:
        """Return what is measured, its bound, and what the worst feasible theta has."""
        series = []
        for row in self.rows:
            where = {"panel": row.title, "y_name": "gap" if "gap" in row.id else "f - min f"}
            labels = {"value": row.about[:4], "bound": "bound", "worst": "worst feasible theta"}
            series += [
                self.mean(records, row, key, label=label, **where) for key, label in labels.items()
            ]
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge each bound where it says something."""
        return [self._judged(records, row) for row in self.rows]

    def _judged(self, records: Records, row: Biting) -> Claim:
        what = "the smallest gap of rounds T/2 + 1 to T" if "gap" in row.id else "h_t"
        named = self.named(
            f"t1-bites-{row.id}",
            f"{row.about}: {what} is under the bound, in every round looked at and for every seed",
            row.source,
        )
        value, bound, worst = (
            self.each(records, row.id, key) for key in ("value", "bound", "worst")
        )
        return verdicts.never_above(value, bound, worst=worst, **named)

    def extra(self, records: Records) -> dict[str, Any]:
        """Return from which round on each bound says something, and how close it comes."""
        table = []
        for row in self.rows:
            t = self.rounds(records, row)
            value, bound, worst = (
                self.each(records, row.id, key) for key in ("value", "bound", "worst")
            )
            bites = (bound < worst).all(axis=0)
            table.append(
                {
                    "bound": row.about,
                    "rounds": int(t[-1]),
                    "says something from round": int(t[bites][0]) if bites.any() else "never",
                    "worst feasible theta / bound, last round": float((worst / bound)[:, -1].min()),
                    "measured / bound, largest": float((value / bound).max()),
                }
            )
        return {"where bounds say something": table}
