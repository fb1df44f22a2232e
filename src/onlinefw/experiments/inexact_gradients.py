"""Theorem 2 for other exponents and step rules: errors of norm sigma / (K + t - 1)^alpha exactly.

Problems: strongly convex quadratics in 10 variables with a known minimiser (``known_optimum``):
inside the l2 ball for O-FW, on a face of the l1 ball for O-AW. Steps K / (K + t - 1); alpha from
1/4 to 1, K from 1 to 4, alpha < K. sigma = 0.3.

Theory (appendix, general K): h_t = O(t^(-2 alpha)) for both, with the constants D_1 and D_2. A
bound is judged in the rounds where it is below the excess of the worst vertex (or of the worst of
the ends of the axes, on the l2 ball): elsewhere no theta could be above it, and where that is so in
every round, the claim is listed as one that cannot fail. All rounds count, from 2 on: records hold
the largest h_t / bound, and worst excess / bound, of the rounds from one that is drawn to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from . import verdicts
from .experiment import Advance, Record, Records
from .known_optimum import KnownOptimum, inside, nothing, on_a_face
from .rate_rows import RateShape, TablePart, power
from .recorder import log_rounds, play
from .results import Claim, Series

__all__ = ["InexactGradients"]

SIZE, SIGMA = 10, 0.3
#: h_t is not distinguished from 0 below this.
ROUNDING = 1e-16
#: Slopes are fitted from this share of the rounds on.
EARLY = 0.05


@dataclass(frozen=True)
class Case:
    """An algorithm, the exponent of the error and the K of the step rule."""

    algorithm: str
    alpha: float
    K: int

    @property
    def id(self) -> str:
        """By which its runs are called."""
        return f"{self.algorithm}, alpha {self.alpha:g}, K {self.K}"

    @property
    def shape(self) -> RateShape:
        """The predicted rate of h_t."""
        return power(2.0 * self.alpha, "t")

    def problem(self, seed: int) -> KnownOptimum:
        """Return the problem of a seed."""
        return (
            inside(SIZE, 0.6, seed) if self.algorithm == "O-FW" else on_a_face(SIZE, 5, 0.2, seed)
        )


CASES = tuple(
    Case(algorithm, alpha, K)
    for alpha, K in ((0.25, 2), (0.75, 2), (1.0, 2), (0.5, 1), (0.75, 1), (0.75, 4))
    for algorithm in ("O-FW", "O-AW")
)


class InexactGradients(TablePart):
    """h_t for gradient errors of given norm."""

    dataset = "inexact"
    rows: Sequence[Case]

    def __init__(self, T: int, seeds: int | range, *, quick: bool):
        super().__init__(CASES, T, seeds, quick=quick)
        # Errors of a given norm have no plateau: the power law is there from early on.
        self.fit_from = EARLY * T
        self.settings |= {
            "step": "K / (K + t - 1)",
            "variables": SIZE,
            "error": f"norm {SIGMA} / (K + t - 1)^alpha",
            "bounds": "all listed, judged in every round",
            "fit_from": self.fit_from,
        }

    def play(self, row: Case, seed: int, advance: Advance) -> Record:
        """Play a case with one seed, and look at every theta_t."""
        problem = row.problem(seed)
        every = np.arange(1, self.T + 1)
        trace = play(
            lambda: problem.learner(row.algorithm, SIGMA, row.alpha, row.K, seed),
            nothing,
            self.T,
            {"h": problem.excess},
            advance,
            at=every,
        )
        h = np.maximum(trace.looks["h"], ROUNDING)
        kind = "fw" if row.algorithm == "O-FW" else "aw"
        bound = theory.anytime_bound(
            every[1:],
            algorithm=kind,
            rate="fast",
            K=row.K,
            alpha=row.alpha,
            sigma=SIGMA,
            n_steps=trace.n_steps[:-1],
            **problem.constants,
        )
        at = log_rounds(self.T)
        return {
            "t": at.tolist(),
            "h": h[at - 1].tolist(),
            "bound": bound[at - 2].tolist(),
            "share": np.maximum.reduceat(h[1:] / bound, at - 2).tolist(),
            "worst share": np.maximum.reduceat(problem.worst() / bound, at - 2).tolist(),
        }

    def curves(self, records: Records) -> list[Series]:
        """Return h_t, the predicted shape and the bound; means over seeds."""
        series = []
        for row in self.rows:
            where = {"panel": f"Theorem 2, {row.id}", "y_name": "f - min f"}
            h = self.mean(records, row, "h", label=row.algorithm, **where)
            bound = self.mean(records, row, "bound", label="fast bound", **where)
            series += [h, self.shape(row.shape, h, 2.0), bound]
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge each rate and each bound."""
        claims = []
        for row in self.rows:
            about = (
                f"{row.algorithm}, steps {row.K} / ({row.K} + t - 1), gradient error of norm "
                f"exactly {SIGMA} / ({row.K} + t - 1)^{row.alpha:g}"
            )
            word = f"{row.algorithm.lower().replace('-', '')}-{row.alpha:g}-{row.K}"
            rate = self.named(
                f"t1-inexact-{word}", f"{about}: h_t = O({row.shape.name})", "Theorem 2 (appendix)"
            )
            claims.append(self.judge_rate(records, row, "h", row.shape, **rate))
            bound = self.named(
                f"t1-inexact-{word}-bound",
                f"{about}: h_t is under the fast bound, in every round and for every seed",
                "Appendix, proof of Theorem 2",
            )
            shares, worst = (self.each(records, row.id, key) for key in ("share", "worst share"))
            claims.append(verdicts.never_above(shares, np.ones_like(shares), worst=worst, **bound))
        return claims

    def extra(self, records: Records) -> dict[str, Any]:
        """Return the slopes as a table."""
        rows = []
        for row in self.rows:
            head = {"algorithm": row.algorithm, "alpha": row.alpha, "K": row.K}
            rows.append(head | self.slope_columns(records, row, "h", row.shape, "anytime"))
        return {"table": rows}
