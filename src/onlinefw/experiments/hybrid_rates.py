"""The two rows of Table 1 that quote Garber and Hazan, run beside O-FW and O-AW.

Problem: one row of 10 signs a round, noise of standard deviation 1, 8 of 10 coefficients nonzero,
in the l1 ball of 1.1 times the truth's norm (inside) and of half of it (on the boundary).
E[A'A] = I, so f(theta) - min f is exact: the minimiser is the projection of the truth.

The hybrid (``OnlineLocalFrankWolfe``): with mu = 1 known; and for Lipschitz losses with
eta_t = 2 r / (2 rho G sqrt(t)), rho = sqrt(10), G = sqrt(10): the usual length of a gradient near
the minimiser. Their rates hold for any sequence of losses, ours for these.

Theory (as the table quotes it): log T / T (regret) and log t / t, with strong convexity;
sqrt(1 / T) and sqrt(log t / t) without. O-FW inside and O-AW: log^3 T / T and log^2 t / t
(Theorem 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algorithms import Learner, OnlineAwayFrankWolfe, OnlineFrankWolfe
from ..baselines import OnlineLocalFrankWolfe
from ..objectives import RunningLeastSquares
from ..sets import L1Ball
from .convex_problems import make_random_design
from .experiment import Advance, Record, Records
from .rate_rows import RateShape, TablePart, log_over, root_log_over
from .recorder import log_rounds, play
from .results import Claim, Series

__all__ = ["HybridRates"]

SIZE = 10
ROUNDING = 1e-16
STRONG = (log_over(1), log_over(1, "T"))
LIPSCHITZ = (root_log_over(1), root_log_over(0, "T"))
FAST = (log_over(2), log_over(3, "T"))
THEIRS, OURS = "Table 1, Garber and Hazan 2015", "Theorem 1"


@dataclass(frozen=True)
class Case:
    """A learner, in a ball of so many times the truth's norm."""

    learner: str
    factor: float
    #: Predicted for h_t and the regret, and where.
    rates: tuple[RateShape, RateShape] | None
    source: str = ""

    @property
    def where(self) -> str:
        """Where the minimiser is."""
        return "inside" if self.factor > 1.0 else "on the boundary"

    @property
    def id(self) -> str:
        """By which its runs are called."""
        return f"{self.learner}, {self.where}"

    def make(self, radius: float) -> Learner:
        """Return a new learner."""
        objective, ball = RunningLeastSquares(SIZE), L1Ball(radius)
        if self.learner == "O-FW":
            return OnlineFrankWolfe(objective, ball)
        if self.learner == "O-AW":
            return OnlineAwayFrankWolfe(objective, ball)
        if self.learner == "hybrid, mu known":
            return OnlineLocalFrankWolfe(objective, ball, mu=1.0)
        balanced = radius / SIZE  # 2 r / (2 rho G)
        return OnlineLocalFrankWolfe(objective, ball, step=lambda t: balanced / np.sqrt(t))


CASES = tuple(
    case
    for factor in (1.1, 0.5)
    for case in (
        # On the boundary the fast rate of O-FW is not proved.
        Case("O-FW", factor, FAST if factor > 1.0 else None, OURS),
        Case("O-AW", factor, FAST, OURS),
        Case("hybrid, mu known", factor, STRONG, THEIRS),
        Case("hybrid, Lipschitz", factor, LIPSCHITZ, THEIRS),
    )
)


class HybridRates(TablePart):
    """The hybrid beside O-FW and O-AW."""

    dataset = "hybrid"
    rows: Sequence[Case]

    def __init__(self, T: int, seeds: int | range, *, quick: bool):
        super().__init__(CASES, T, seeds, quick=quick)
        self.settings |= {"step of O-FW and O-AW": "2 / (t + 1)", "fit_from": self.fit_from}

    def play(self, row: Case, seed: int, advance: Advance) -> Record:
        """Play a learner with one seed, and look at every theta_t."""
        stream = make_random_design(1, SIZE, sparsity=0.8, sigma=1.0, seed=seed)
        radius = row.factor * float(np.abs(stream.theta).sum())
        star = L1Ball(radius).project(stream.theta)
        minimum, every = stream.excess(star), np.arange(1, self.T + 1)
        trace = play(
            lambda: row.make(radius),
            lambda: stream.rounds(self.T),
            self.T,
            {"h": lambda theta: stream.excess(theta) - minimum},
            advance,
            at=every,
        )
        h, at = np.maximum(trace.looks["h"], ROUNDING), log_rounds(self.T) - 1
        return {
            "t": (at + 1).tolist(),
            "h": h[at].tolist(),
            "regret": (np.cumsum(h) / every)[at].tolist(),
        }

    def curves(self, records: Records) -> list[Series]:
        """Return h_t and the regret of all learners; means over seeds."""
        series = []
        for row in self.rows:
            for key, what in (("h", "h_t"), ("regret", "regret")):
                where = {"panel": f"Hybrid, {what}, minimiser {row.where}", "y_name": "f - min f"}
                series.append(self.mean(records, row, key, label=row.learner, **where))
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge every rate that is proved."""
        claims = []
        for row in self.rows:
            for k, (key, symbol) in enumerate((("h", "h_t"), ("regret", "R_T"))):
                if row.rates is None:
                    continue
                shape = row.rates[k]
                word = "".join(c if c.isalnum() else "-" for c in row.id.lower())
                named = self.named(
                    f"t1-hybrid-{word}-{key}",
                    f"{row.learner}, one row of {SIZE} signs a round, l1 ball, minimiser "
                    f"{row.where}: {symbol} = O({shape.name})",
                    row.source,
                )
                claims.append(self.judge_rate(records, row, key, shape, **named))
        return claims

    def extra(self, records: Records) -> dict[str, Any]:
        """Return final values and slopes as a table."""
        rows = []
        for row in self.rows:
            anytime, regret = row.rates or FAST
            ends = {
                f"final_{key}": float(self.each(records, row.id, key)[:, -1].mean())
                for key in ("h", "regret")
            }
            slopes = self.slope_columns(records, row, "h", anytime, "anytime")
            slopes |= self.slope_columns(records, row, "regret", regret, "regret")
            if row.rates is None:
                slopes = {k: v for k, v in slopes.items() if not k.startswith("predicted")}
            rows.append({"algorithm": row.learner, "minimiser": row.where} | ends | slopes)
        return {"table": rows}
