"""Instances where O-FW is slow, so that the columns of Table 1 differ.

Theorem 2 and the slow bounds say: an error of norm sigma t^-alpha gives h_t = O(t^(-2 alpha)) where
the assumptions hold, and O(t^-alpha) where they do not. Whether O-FW really is slower there:

- *On a face.* Minimiser inside a face of 5 vertices of the l1 ball, where the gradient is not 0;
  steps 1 / t (the step rule of the paper's proof sketch), alpha = 0.9, sigma = 1. theta_t is then
  the plain mean of the vertices chosen; those off the face that early rounds chose keep weights
  1 / t, and h_t is linear in them: O-FW falls like 1 / t, the slow bound's t^-0.9 but for 0.1. O-AW
  drops those vertices, and falls like t^-1.8. Once strongly convex, and once f(theta) = g(A theta)
  with mu = 0.
- *Flat.* f(theta) = sum |theta_i - theta*_i|^8 / 8, convex and smooth and not strongly convex, with
  its minimiser inside the l1 ball; steps 2 / (t + 1), alpha = 1/2 as with stochastic gradients.
  Where grad f is as long as the error, h_t is of order t^(-4/7): slower than the 1 / t of strongly
  convex losses, close to the slow bound's t^(-1/2).

With the paper's own steps, 2 / (t + 1), the early vertices keep weights of order t^-2 only: whether
O-FW is slow on such a face all the same is judged by the same limit.

Table 1 and the slow bounds are upper bounds, which slow instances cannot contradict: that O-FW is
slow here is a claim of ours, about whether the difference between the columns is real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array
from ..algorithms import Learner
from ..objectives import GradientOracle
from ..sets import L1Ball
from ..steps import Harmonic
from .convex_problems import ALGORITHMS
from .experiment import Advance, Record, Records
from .exponents import slower_than
from .known_optimum import KnownOptimum, nothing, on_a_face, on_a_flat_face
from .rate_rows import RateShape, TablePart, power
from .recorder import log_rounds, play
from .results import Claim, Series

__all__ = ["SlowInstances"]

SIGMA, ON_FACE = 1.0, 0.9
#: The exponent of the flat function.
FLAT = 8
ROUNDING = 1e-16
#: Slopes are fitted from this share of the rounds on.
EARLY = 0.05


@dataclass(frozen=True)
class Flat:
    """f(theta) = sum |theta_i - star_i|^8 / 8, with an error of norm (t + 1)^(-1/2)."""

    star: Array

    def excess(self, theta: Array) -> float:
        """Return f(theta)."""
        return float(np.sum((theta - self.star) ** FLAT)) / FLAT

    def learner(self, algorithm: str, sigma: float, alpha: float, K: int, seed: int) -> Learner:
        """Return a learner with steps K / (K + t - 1); the error points one way."""
        direction = np.random.default_rng([seed, 12]).choice([-1.0, 1.0], size=self.star.size)

        def gradient(theta: Array, t: int) -> Array:
            return (theta - self.star) ** (FLAT - 1) + sigma / (K + t - 1.0) ** alpha * direction

        oracle = GradientOracle(gradient, self.star.size)
        return ALGORITHMS[algorithm](oracle, L1Ball(10.0), step=Harmonic(K))


def _flat(seed: int) -> Flat:
    star = np.random.default_rng([seed, 13]).uniform(-1.0, 1.0, 3)
    return Flat(star / np.abs(star).sum())


@dataclass(frozen=True)
class Case:
    """An algorithm on a kind of problem, and what theory says of it."""

    id: str
    algorithm: str
    about: str
    alpha: float
    K: int
    #: What h_t is predicted to fall like at least.
    fast: RateShape | None
    #: The slope that h_t is claimed to stay above, and why.
    slow: tuple[float, str] | None
    make: Callable[[int], KnownOptimum | Flat]

    @property
    def source(self) -> str:
        """Where the paper has the rate that h_t is predicted to fall like."""
        if self.algorithm == "O-FW":
            return "Slow bound (appendix)"
        curved = self.make is _curved_face
        return "Theorem 2 (appendix)" if curved else "Appendix, without strong convexity"

    @property
    def panel(self) -> str:
        """The instances of one problem are drawn together."""
        return self.id.split("-", 1)[1]


FACE = "minimiser on a face of the l1 ball, error t^-0.9, steps 1 / t"
FAST = power(2 * ON_FACE, "t")
ABOVE = (-1.2, "1 / t, between the slow bound's t^-0.9 and the fast one's t^-1.8")


def _curved_face(seed: int) -> KnownOptimum:
    return on_a_face(20, 5, 0.2, seed)


def _flat_face(seed: int) -> KnownOptimum:
    return on_a_flat_face(20, 15, 3, 0.2, seed)


CASES = (
    Case("ofw-face", "O-FW", f"strongly convex, {FACE}", ON_FACE, 1, None, ABOVE, _curved_face),
    Case("oaw-face", "O-AW", f"strongly convex, {FACE}", ON_FACE, 1, FAST, None, _curved_face),
    Case(
        "ofw-face, mu = 0",
        "O-FW",
        f"f = g(A theta) with mu = 0, {FACE}",
        ON_FACE,
        1,
        None,
        ABOVE,
        _flat_face,
    ),
    Case(
        "oaw-face, mu = 0",
        "O-AW",
        f"f = g(A theta) with mu = 0, {FACE}",
        ON_FACE,
        1,
        FAST,
        None,
        _flat_face,
    ),
    Case(
        "ofw-flat",
        "O-FW",
        "convex and flat (8th powers), minimiser inside the l1 ball, error (t + 1)^-0.5, "
        "steps 2 / (t + 1)",
        0.5,
        2,
        power(0.5, "t"),
        (-0.8, "t^-0.57 at the error's level, and 1 / t if f were strongly convex"),
        _flat,
    ),
    Case(
        "ofw-face, steps 2 / (t + 1)",
        "O-FW",
        "strongly convex, minimiser on a face of the l1 ball, error (t + 1)^-0.9, "
        "steps 2 / (t + 1)",
        ON_FACE,
        2,
        None,
        ABOVE,
        _curved_face,
    ),
)


class SlowInstances(TablePart):
    """O-FW and O-AW where they differ."""

    dataset = "slow"
    rows: Sequence[Case]

    def __init__(self, T: int, seeds: int, *, quick: bool):
        super().__init__(CASES, T, seeds, quick=quick)
        # Errors of a given norm have no plateau: the power law is there from early on.
        self.fit_from = EARLY * T
        self.settings |= {
            "fit_from": self.fit_from,
            "rows": {row.id: f"{row.algorithm}: {row.about}" for row in CASES},
        }

    def play(self, row: Case, seed: int, advance: Advance) -> Record:
        """Play a case with one seed."""
        problem = row.make(seed)
        at = log_rounds(self.T)
        trace = play(
            lambda: problem.learner(row.algorithm, SIGMA, row.alpha, row.K, seed),
            nothing,
            self.T,
            {"h": problem.excess},
            advance,
            at=at,
        )
        return {"t": at.tolist(), "h": np.maximum(trace.looks["h"], ROUNDING).tolist()}

    def curves(self, records: Records) -> list[Series]:
        """Return h_t, means over seeds, with the predicted shape where there is one."""
        series = []
        for row in self.rows:
            where = {"panel": f"Slow: {row.panel}", "y_name": "f - min f"}
            h = self.mean(records, row, "h", label=row.algorithm, **where)
            series += [h, *([self.shape(row.fast, h, 2.0)] if row.fast else [])]
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge what is proved to fall fast, and what is to be slow here."""
        claims = []
        for row in self.rows:
            word = "".join(c if c.isalnum() else "-" for c in row.id.lower())
            if row.fast is not None:
                named = self.named(
                    f"t1-slow-{word}-rate",
                    f"{row.algorithm}, {row.about}: h_t = O({row.fast.name})",
                    row.source,
                )
                claims.append(self.judge_rate(records, row, "h", row.fast, **named))
            if row.slow is not None:
                limit, why = row.slow
                named = self.named(
                    f"t1-slow-{word}",
                    f"{row.algorithm}, {row.about}: O-FW is slow where the assumptions fail",
                    "ours; Table 1 has upper bounds only",
                )
                t, h = self.rounds(records, row), self.each(records, row.id, "h")
                judged = slower_than(t, h, limit, why, first=self.fit_from, **named)
                claims.append(judged)
        return claims

    def extra(self, records: Records) -> dict[str, Any]:
        """Return the slopes as a table."""
        rows = []
        for row in self.rows:
            shape = row.fast or power(row.alpha, "t")
            head = {"setting": row.about, "algorithm": row.algorithm}
            head["rate_of"] = "fast or only bound" if row.fast else "slow bound"
            rows.append(head | self.slope_columns(records, row, "h", shape, "anytime"))
        return {"table": rows}
