"""Table 1: anytime and regret rates for convex losses, measured, with the theorems' bounds.

Problems: small ones whose expected loss f is known in closed form (``convex_problems``), so that
h_t = f(theta_t) - min f and the regret R_T = (h_1 + ... + h_T) / T are exact. h_t is computed in
every round; curves and slopes use about 60 rounds, evenly in log t.

Theory: Theorem 1 (strongly convex f; O-FW with the minimiser inside, O-AW on a polytope) gives
log^2 t / t and a regret of log^3 T / T; with the gradient errors that the paper proves for LASSO
and matrix completion, log t / t and log^2 T / T. Where its assumptions fail, the row of Hazan and
Kale in the table applies: sqrt(log^2 t / t). O-AW keeps the rate of Theorem 1 for
f(theta) = g(A theta) on a polytope (appendix; its Hoffman constant is not computed, so the
fast bound is not drawn there). Theorem 2 bounds h_t for inexact gradients.

Settings: step 2 / (t + 1). Least squares with 80 x 40 designs and half of the truth nonzero unless
stated (so that F_t has its own minimiser inside, too, long before slopes are measured, or the
minimiser is on a large face), the paper's noise of standard deviation 10 (random design: 1); the
paper gives no sizes for its table. Slopes are those of the mean of h_t over seeds from round 0.3 T
on, with a jackknife interval over seeds, and are judged by the slope of the rate over the same
rounds. Bounds hold with probability about 0.91 (epsilon = 0.05) where a gradient error is random,
always for Theorem 2 with an error of given norm. A bound above what the worst feasible theta has is
not counted (part "bounds" has problems on which bounds say something); n_t >= t/2, which the
algorithm cannot violate, is among the tests of the library.

Units: the paper's (LASSO: summed over the rows of a round; matrix completion: one entry).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import verdicts
from .convex_problems import EPSILON
from .convex_rows import FAST, IMPROVED, QUOTED, SETTINGS, Setting
from .experiment import Advance, Record, Records
from .rate_rows import RateShape, TablePart
from .recorder import log_rounds, play
from .results import Claim, Series

__all__ = ["ConvexRates"]

#: No h_t below this share of h_1 is distinguished from 0.
ROUNDING = 1e-14
#: Parts of a run whose median milliseconds are compared.
PARTS = 10


class ConvexRates(TablePart):
    """The rows of Table 1 that can be run."""

    dataset = "convex"
    rows: Sequence[Setting]

    def __init__(
        self, T: int, seeds: int | range, *, quick: bool, settings: tuple[Setting, ...] = SETTINGS
    ):
        super().__init__(settings, T, seeds, quick=quick)
        self.settings |= {
            "step": "2 / (t + 1)",
            "fit_from": self.fit_from,
            "noise": "LASSO: standard deviation 10, random design 1; matrix completion: variance 3",
            "nonzeros": "half of the truth; a quarter in 40 x 20 and 20 x 75, a tenth in 80 x 300",
            "epsilon": EPSILON,
            "rows": {row.id: f"{row.algorithm}: {row.about}" for row in settings},
        }

    def play(self, row: Setting, seed: int, advance: Advance) -> Record:
        """Play a row with one seed, and look at every theta_t."""
        problem, every = row.make(seed, self.T), np.arange(1, self.T + 1)
        looks = {"h": problem.excess}
        trace = play(problem.learner, problem.stream, self.T, looks, advance, at=every)
        # h_t is 0 if the learner is at the minimiser (a vertex), and 0 has no logarithm.
        h = np.maximum(trace.looks["h"], ROUNDING * trace.looks["h"][0])
        at = log_rounds(self.T) - 1
        steady = trace.round_seconds[problem.steady_from :]
        record: Record = {
            "t": (at + 1).tolist(),
            "h": h[at].tolist(),
            "regret": (np.cumsum(h) / every)[at].tolist(),
            "milliseconds": [1e3 * float(np.median(p)) for p in np.array_split(steady, PARTS)],
            "constants": problem.constants,
        }
        if problem.bound is not None:
            # The bound at round t depends on the counter n_{t-1}; round 1 has no bound.
            bound = problem.bound(every[1:], trace.n_steps[:-1])
            record["bound"] = bound[at - 1].tolist()
        return record

    # What follows from the records ---------------------------------------------------------------

    def curves(self, records: Records) -> list[Series]:
        """Return h_t, the regret, their predicted shapes and the bounds; means over seeds."""
        series = []
        for row in self.rows:
            where = {"panel": row.title, "y_name": "f - min f"}
            for key, _, symbol, shape in _rates(row):
                label = f"{row.algorithm}: {symbol}" if key == "h" else key
                measured = self.mean(records, row, key, label=label, **where)
                series += [measured, self.shape(shape, measured, 2.0)]
            if self.has_bound(records, row):
                label = f"{self._bound_kind(records, row)} bound on h_t"
                series.append(self.mean(records, row, "bound", label=label, **where))
        return series

    def _bound_kind(self, records: Records, row: Setting) -> str:
        return "fast" if self.records_of(records, row.id)[0]["constants"]["fast_bound"] else "slow"

    def claims(self, records: Records) -> list[Claim]:
        """Judge each row's two rates and its bound, and the cost of a round."""
        claims = []
        for row in self.rows:
            claims += [*self._rate_claims(records, row), *self._bound_claims(records, row)]
        for row in self.rows:
            if row.cost:
                named = self.named(
                    f"t1-cost-{row.id}",
                    f"A round of {row.algorithm} on {row.cost} has a constant cost",
                    "Remark on the complexity per iteration",
                )
                parts = np.median(self.each(records, row.id, "milliseconds"), axis=0)
                claims.append(verdicts.flat(parts, **named))
        return claims

    def _rate_claims(self, records: Records, row: Setting) -> list[Claim]:
        claims = []
        for key, word, symbol, shape in _rates(row):
            statement = f"{row.algorithm}, {row.about}: {symbol} = O({shape.name})"
            named = self.named(f"t1-{row.id}-{word}", statement, row.source)
            claims.append(self.judge_rate(records, row, key, shape, **named))
        return claims

    def _bound_claims(self, records: Records, row: Setting) -> list[Claim]:
        if not self.has_bound(records, row):
            return []
        h, bound = (self.each(records, row.id, key) for key in ("h", "bound"))
        worst = [[r["constants"]["worst"]] for r in self.records_of(records, row.id)]
        kind = self._bound_kind(records, row)
        named = self.named(
            f"t1-{row.id}-bound",
            f"{row.algorithm}, {row.about}: h_t is under the {kind} bound with the constants of "
            "the appendix, in every round looked at and for every seed",
            "Appendix, proof of Theorem 2" if kind == "fast" else "Appendix, slow rates",
        )
        return [verdicts.never_above(h, bound, worst=worst, **named)]

    def extra(self, records: Records) -> dict[str, Any]:
        """Return the table, and every constant by row and seed.

        ``general_...`` is what Theorem 1 gives without a better bound on the gradient error.
        """
        table = [self._table_row(records, row) for row in self.rows]
        table += [
            {
                "setting": setting,
                "algorithm": who,
                "predicted_anytime": anytime,
                "predicted_regret": regret,
                "status": "quoted; run in the part hybrid",
                "source": "Table 1",
            }
            for who, setting, regret, anytime in QUOTED
        ]
        constants = {
            row.id: [record["constants"] for record in self.records_of(records, row.id)]
            for row in self.rows
        }
        return {"table": table, "constants": constants}

    def _table_row(self, records: Records, row: Setting) -> dict[str, Any]:
        t = self.rounds(records, row)
        late = t[t >= self.fit_from]
        out: dict[str, Any] = {
            "setting": row.about,
            "algorithm": row.algorithm,
            "status": "measured",
            "source": row.source,
            "seeds": len(self.seeds),
            "rounds": [int(late[0]), int(late[-1])],
        }
        for (key, word, _, shape), general in zip(_rates(row), FAST, strict=True):
            out[f"predicted_{word}"] = shape.name
            if row.rates is IMPROVED:
                out[f"general_{word}"] = general.name
            out |= self.slope_columns(records, row, key, shape, word)
        return out


def _rates(row: Setting) -> tuple[tuple[str, str, str, RateShape], ...]:
    """Return what is measured: its name in the records, in words, as a symbol; the prediction."""
    anytime, regret = row.rates
    return ("h", "anytime", "h_t", anytime), ("regret", "regret", "R_T", regret)
