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

Settings: step 2 / (t + 1). Least squares with 40 x 20 designs unless stated, a quarter of the truth
nonzero, the paper's noise of standard deviation 10 (random design: 1); the paper gives no sizes
for its table. Slopes are fitted to the last 95% of the rounds, one for each seed; their mean and
Student's 95% interval are reported, and the rate is judged by its slope over the same rounds.
Bounds hold with probability about 0.91 (epsilon = 0.05) where a gradient error is random, always
for Theorem 2 with an error of given norm.

Units: the paper's (LASSO: summed over the rows of a round; matrix completion: one entry).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._typing import Array
from . import verdicts
from .convex_problems import (
    Problem,
    inexact_quadratic,
    least_squares,
    make_fixed_design,
    make_random_design,
    matrix_completion,
)
from .experiment import Advance, Experiment, Record, Run
from .recorder import log_rounds, play
from .results import Claim, Series
from .shapes import RateShape, log_over, root_log_over

__all__ = ["QUOTED", "SETTINGS", "ConvexRates", "Setting"]

#: Slopes are fitted from this share of the rounds on.
FIT_FROM = 0.05
#: No h_t below this share of h_1 is distinguished from 0.
ROUNDING = 1e-14
#: Parts of a run whose median milliseconds are compared.
PARTS = 10

FAST = (log_over(2), log_over(3, "T"))
IMPROVED = (log_over(1), log_over(2, "T"))
SLOW = (root_log_over(2), root_log_over(2, "T"))
EXACT_ERROR = (log_over(0), log_over(1, "T"))


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    Attributes
    ----------
    id, title : str
        Names: short, and for the picture.
    algorithm : str
        "O-FW" or "O-AW".
    about : str
        Assumptions and problem, in words.
    source : str
        Where the paper predicts the rates.
    rates : (RateShape, RateShape)
        Predicted for h_t and for the regret.
    make : callable
        ``make(seed, T)`` returns the problem.
    cost : str
        What the paper says has rounds of constant cost, if it does.
    """

    id: str
    title: str
    algorithm: str
    about: str
    source: str
    rates: tuple[RateShape, RateShape]
    make: Callable[[int, int], Problem]
    cost: str = ""

    def run_name(self, seed: int) -> str:
        """Return the name of its run with one seed."""
        return f"{self.id}, seed {seed}"


def _small(seed: int, m: int = 40, n: int = 20) -> Any:
    return make_fixed_design(m, n, sparsity=0.25, sigma=10.0, seed=seed)


def _random(seed: int) -> Any:
    return make_random_design(1, 20, sparsity=0.25, sigma=1.0, seed=seed)


def _paper(seed: int) -> Any:
    return make_fixed_design(80, 300, sparsity=0.1, sigma=10.0, seed=seed)


SETTINGS = (
    Setting(
        "ofw-interior",
        "O-FW, minimiser inside the l1 ball",
        "O-FW",
        "strongly convex (LASSO, 40 x 20), minimiser inside the l1 ball (r = 1.1 ||truth||)",
        "Theorem 1, improved for LASSO (appendix)",
        IMPROVED,
        lambda seed, T: least_squares(_small(seed), "O-FW", T, 1.1),
        cost="LASSO",
    ),
    Setting(
        "ofw-interior-l2",
        "O-FW, minimiser inside the l2 ball",
        "O-FW",
        "strongly convex (least squares, 40 x 20), minimiser inside the l2 ball "
        "(r = 1.1 ||truth||)",
        "Theorem 1, improved as for LASSO (appendix)",
        IMPROVED,
        lambda seed, T: least_squares(_small(seed), "O-FW", T, 1.1, ball="l2"),
    ),
    Setting(
        "ofw-random-design",
        "O-FW, random design, inside",
        "O-FW",
        "strongly convex (one row of 20 signs a round), minimiser inside the l1 ball "
        "(r = 1.1 ||truth||)",
        "Theorem 1",
        FAST,
        lambda seed, T: least_squares(_random(seed), "O-FW", T, 1.1),
    ),
    Setting(
        "oaw-polytope",
        "O-AW, minimiser on the boundary",
        "O-AW",
        "strongly convex (LASSO, 40 x 20), polytope, minimiser on its boundary (r = 0.5 ||truth||)",
        "Theorem 1, improved for LASSO (appendix)",
        IMPROVED,
        lambda seed, T: least_squares(_small(seed), "O-AW", T, 0.5),
    ),
    Setting(
        "ofw-boundary",
        "O-FW, minimiser on the boundary",
        "O-FW",
        "strongly convex (LASSO, 40 x 20), minimiser on the boundary (r = 0.5 ||truth||): H1 fails",
        "Table 1, Hazan and Kale 2012",
        SLOW,
        lambda seed, T: least_squares(_small(seed), "O-FW", T, 0.5),
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
        "Theorem 2",
        EXACT_ERROR,
        lambda seed, T: inexact_quadratic("O-FW", 10, 0.3, seed),
    ),
    Setting(
        "theorem2-oaw",
        "Theorem 2, O-AW, error (t+1)^-1/2",
        "O-AW",
        "strongly convex quadratic in 10 variables, l1 ball, minimiser on its boundary, gradient "
        "error of norm exactly 0.3 / (t + 1)^(1/2)",
        "Theorem 2",
        EXACT_ERROR,
        lambda seed, T: inexact_quadratic("O-AW", 10, 0.3, seed),
    ),
)

#: What the paper's table says of other work: (who, setting, regret, anytime).
QUOTED = (
    ("Garber and Hazan 2015", "hybrid, Lipschitz convex loss", "sqrt(1/T)", "sqrt(log t / t)"),
    ("Garber and Hazan 2015", "hybrid, strongly convex loss", "log T / T", "log t / t"),
    (
        "Hazan and Kale 2012",
        "simple, Lipschitz convex loss",
        "sqrt(log^2 T / T)",
        "sqrt(log^2 t / t)",
    ),
    (
        "Hazan and Kale 2012",
        "simple, strongly convex loss",
        "sqrt(log^2 T / T)",
        "sqrt(log^2 t / t)",
    ),
)


class ConvexRates(Experiment):
    """The rows of Table 1 that can be run."""

    figure = "table1"
    dataset = "convex"

    def __init__(
        self, T: int, seeds: int, *, quick: bool, settings: tuple[Setting, ...] = SETTINGS
    ):
        self.T, self.seeds, self.rows = T, seeds, settings
        self.settings = {
            "quick": quick,
            "T": T,
            "seeds": seeds,
            "step": "2 / (t + 1)",
            "fit_from": FIT_FROM * T,
            "rows": {row.id: f"{row.algorithm}: {row.about}" for row in settings},
        }

    def runs(self) -> list[Run]:
        """Return one run a row and seed."""
        return [
            Run(row.run_name(seed), self.T, partial(self._play, row, seed))
            for row in self.rows
            for seed in range(self.seeds)
        ]

    def _play(self, row: Setting, seed: int, advance: Advance) -> Record:
        problem, every = row.make(seed, self.T), np.arange(1, self.T + 1)
        looks = {"h": problem.excess}
        trace = play(problem.learner, problem.stream, self.T, looks, advance, at=every)
        # A learner may be at the minimiser itself (a vertex), and 0 has no logarithm.
        h = np.maximum(trace.looks["h"], ROUNDING * trace.looks["h"][0])
        at = log_rounds(self.T) - 1
        settled = trace.round_seconds[problem.settled :]
        record: Record = {
            "t": (at + 1).tolist(),
            "h": h[at].tolist(),
            "regret": (np.cumsum(h) / every)[at].tolist(),
            "steps_over_t": float(np.min(trace.n_steps / every)),
            "milliseconds": [1e3 * float(np.median(p)) for p in np.array_split(settled, PARTS)],
            "constants": problem.constants,
        }
        if problem.bound is not None:
            # Round t meets the counter n_{t-1}; round 1 has no bound.
            bound = problem.bound(every[1:], trace.n_steps[:-1])
            record["bound"] = bound[at - 1].tolist()
            record["share_of_bound"] = float(np.max(h[1:] / bound))
        return record

    # What follows from the records ---------------------------------------------------------------

    def _each(self, records: Mapping[str, Record], row: Setting, key: str) -> Array:
        return np.array([records[row.run_name(seed)][key] for seed in range(self.seeds)])

    def curves(self, records: Mapping[str, Record]) -> list[Series]:
        """Return h_t, the regret, their predicted shapes and the bounds; means over seeds."""
        series = []
        for row in self.rows:
            t = self._each(records, row, "t")[0]
            late = t >= FIT_FROM * self.T
            where = {"panel": row.title, "dataset": self.dataset}
            h = self._each(records, row, "h").mean(axis=0)
            regret = self._each(records, row, "regret").mean(axis=0)
            for label, values, shape in (
                (f"{row.algorithm}: h_t", h, row.rates[0]),
                ("regret", regret, row.rates[1]),
            ):
                series.append(Series.of(label, "round", "f - min f", t, values, **where))
                guide = shape.through(t[late], 2.0 * values[late][0])
                name = f"shape {shape.name}"
                series.append(Series.of(name, "round", "f - min f", t[late], guide, **where))
            if "bound" in records[row.run_name(0)]:
                bound = self._each(records, row, "bound").mean(axis=0)
                label = f"{self._bound_kind(records, row)} bound on h_t"
                series.append(Series.of(label, "round", "f - min f", t, bound, **where))
        return series

    def _bound_kind(self, records: Mapping[str, Record], row: Setting) -> str:
        return "fast" if records[row.run_name(0)]["constants"]["fast_bound"] else "slow"

    def claims(self, records: Mapping[str, Record]) -> list[Claim]:
        """Judge each row's two rates and its bound, the number of steps, the cost of a round."""
        claims = []
        for row in self.rows:
            claims += [*self._rate_claims(records, row), *self._bound_claims(records, row)]
        away = [row for row in self.rows if row.algorithm == "O-AW"]
        if away:
            fewest = np.array([self._each(records, row, "steps_over_t").min() for row in away])
            claims.append(
                verdicts.never_above(
                    np.full(fewest.size, 0.5),
                    fewest,
                    id="t1-lemma-steps",
                    statement="O-AW: n_t >= t / 2 in every round (1/2 is never above n_t / t)",
                    source="Appendix, lemma on drop steps",
                    dataset=self.dataset,
                )
            )
        for row in self.rows:
            if row.cost:
                claims.append(
                    verdicts.flat(
                        np.median(self._each(records, row, "milliseconds"), axis=0),
                        id=f"t1-cost-{row.id}",
                        statement=f"A round of {row.algorithm} on {row.cost} has a constant cost",
                        source="Remark on the complexity per iteration",
                        dataset=self.dataset,
                    )
                )
        return claims

    def _rate_claims(self, records: Mapping[str, Record], row: Setting) -> list[Claim]:
        return [
            verdicts.no_slower_than(
                self._each(records, row, "t")[0],
                self._each(records, row, key),
                shape.of,
                shape.name,
                first=FIT_FROM * self.T,
                id=f"t1-{row.id}-{word}",
                statement=f"{row.algorithm}, {row.about}: {what} = O({shape.name})",
                source=row.source,
                dataset=self.dataset,
            )
            for key, word, what, shape in (
                ("h", "anytime", "h_t", row.rates[0]),
                ("regret", "regret", "R_T", row.rates[1]),
            )
        ]

    def _bound_claims(self, records: Mapping[str, Record], row: Setting) -> list[Claim]:
        if "bound" not in records[row.run_name(0)]:
            return []
        shares = self._each(records, row, "share_of_bound")
        kind = self._bound_kind(records, row)
        return [
            verdicts.never_above(
                shares,
                np.ones_like(shares),
                id=f"t1-{row.id}-bound",
                statement=f"{row.algorithm}, {row.about}: h_t is under the {kind} bound with the "
                "constants of the appendix, in every round t >= 2 and for every seed",
                source="Theorem 2 (appendix)",
                dataset=self.dataset,
            )
        ]

    def extra(self, records: Mapping[str, Record]) -> dict[str, Any]:
        """Return the table, and every constant by row and seed."""
        table = [self._table_row(records, row) for row in self.rows]
        table += [
            {
                "setting": setting,
                "algorithm": who,
                "predicted_anytime": anytime,
                "predicted_regret": regret,
                "status": "quoted, not run",
                "source": "Table 1",
            }
            for who, setting, regret, anytime in QUOTED
        ]
        constants = {
            row.id: [records[row.run_name(seed)]["constants"] for seed in range(self.seeds)]
            for row in self.rows
        }
        return {"table": table, "constants": constants}

    def _table_row(self, records: Mapping[str, Record], row: Setting) -> dict[str, Any]:
        t = self._each(records, row, "t")[0]
        late = t[t >= FIT_FROM * self.T]
        out: dict[str, Any] = {
            "setting": row.about,
            "algorithm": row.algorithm,
            "status": "measured",
            "source": row.source,
            "seeds": self.seeds,
            "rounds": [int(late[0]), int(late[-1])],
        }
        for key, word, shape in (
            ("h", "anytime", row.rates[0]),
            ("regret", "regret", row.rates[1]),
        ):
            rate = verdicts.slopes(t, self._each(records, row, key), FIT_FROM * self.T)
            out[f"predicted_{word}"] = shape.name
            out[f"predicted_{word}_slope"] = shape.slope(late)
            out[f"measured_{word}_slope"] = rate.slope
            out[f"measured_{word}_interval"] = [rate.low, rate.high]
        return out
