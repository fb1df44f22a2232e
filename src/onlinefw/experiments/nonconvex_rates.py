"""Theorem 3: duality gaps for a non-convex loss, and stationarity for the expected loss.

Problem: the sigmoid loss 1 / (1 + exp(10 y <theta, x>)) over the l1 ball of radius 1; 30 Gaussian
features, a classifier with 5 nonzeros, a quarter of the labels flipped; 5 rows a round.

Algorithms: O-FW and O-AW with steps t^-alpha, alpha = 0.5 and 0.75.

Theory: Theorem 3: the smallest gap (g^FW for O-FW, g^AW for O-AW) of the rounds T/2 + 1 to T is
O(T^-(1 - alpha)), with a bound that holds for any sequence of losses. The proposition after it:
in one of these rounds max over theta of <grad f(theta_t), theta_t - theta>, for the *expected*
loss f, is O(max{T^-(1 - alpha), sqrt(log T / T)}).

Constants of the bound: each f_t is the mean loss of its batch, so G (for the l1 norm) is the
largest batch mean of 10/4 max|x_i|, L the largest of 100 / (6 sqrt 3) ||x||^2: both of the rows
that were really streamed, for Gaussian features have no bound. rho and the diameter of the l1 ball
are 2. The expected gradient is an integral in one variable (``expected_sigmoid``), taken in every
round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from .._typing import Array
from ..algorithms import Learner
from ..losses import Sigmoid
from ..objectives import LinearObjective
from ..sets import L1Ball
from ..steps import Power
from . import verdicts
from .convex_problems import ALGORITHMS
from .expected_sigmoid import FlippedLabels
from .experiment import Advance, Record, Records
from .rate_rows import RateShape, TablePart, power
from .recorder import late_minimum, log_rounds, play
from .results import Claim, Series

__all__ = ["NonConvexRates"]

ALPHAS = (0.5, 0.75)
SHARPNESS, FLIP, RADIUS = 10.0, 0.25, 1.0
#: Theorem 3 for O-AW holds from T = 20 on.
FIRST = 20
#: No smaller gap is distinguished from 0.
ROUNDING = 1e-16


@dataclass(frozen=True)
class Case:
    """An algorithm with steps t^-alpha."""

    algorithm: str
    alpha: float

    @property
    def id(self) -> str:
        """By which its runs are called."""
        return f"{self.algorithm}, steps t^-{self.alpha}"

    @property
    def shapes(self) -> dict[str, RateShape]:
        """The predicted rates of what is measured."""
        slow = power(1.0 - self.alpha)
        stationary = RateShape(
            f"max{{{slow.name}, sqrt(log T / T)}}",
            lambda T: np.maximum(slow.of(T), np.sqrt(np.log(T) / T)),
        )
        return {"gap": slow, "stationarity": stationary}


CASES = tuple(Case(algorithm, alpha) for alpha in ALPHAS for algorithm in ALGORITHMS)


class NonConvexRates(TablePart):
    """Gaps and stationarity of O-FW and O-AW on the sigmoid loss."""

    dataset = "non-convex"
    rounds_key = "T"
    rows: Sequence[Case]

    def __init__(
        self,
        T: int,
        seeds: int | range,
        *,
        quick: bool,
        n: int = 30,
        nonzeros: int = 5,
        batch: int = 5,
    ):
        super().__init__(CASES, T, seeds, quick=quick, first=FIRST)
        self.n, self.nonzeros, self.batch = n, nonzeros, batch
        self.settings |= {
            "n": n,
            "nonzeros": nonzeros,
            "batch": batch,
            "loss": f"Sigmoid({SHARPNESS:g})",
            "flip": FLIP,
            "radius": RADIUS,
            "steps": [f"t^-{alpha}" for alpha in ALPHAS],
            "fit_from": self.fit_from,
        }

    def play(self, row: Case, seed: int, advance: Advance) -> Record:
        """Play a case with one seed, and look at every theta_t."""
        labels = FlippedLabels.make(
            self.n, self.nonzeros, flip=FLIP, sharpness=SHARPNESS, seed=seed
        )
        ball = L1Ball(RADIUS)

        def learner() -> Learner:
            objective = LinearObjective(Sigmoid(SHARPNESS), n_features=self.n)
            return ALGORITHMS[row.algorithm](objective, ball, step=Power(row.alpha))

        def stationarity(theta: Array) -> float:
            gradient = labels.gradient(theta)
            return float(gradient @ theta + RADIUS * np.abs(gradient).max())

        trace = play(
            learner,
            lambda: labels.rounds(self.T, self.batch),
            self.T,
            {"stationarity": stationarity},
            advance,
            at=np.arange(1, self.T + 1),
        )
        ends = np.unique(log_rounds(self.T, first=FIRST) // 2 * 2)
        constants = self._constants(labels, ball)
        kind = "fw" if row.algorithm == "O-FW" else "aw"
        return {
            "T": ends.tolist(),
            "gap": _late(trace.gap, ends),
            "stationarity": _late(trace.looks["stationarity"], ends),
            "bound": [
                theory.gap_bound(int(T), algorithm=kind, alpha=row.alpha, **constants) for T in ends
            ],
            "constants": constants,
        }

    def _constants(self, labels: FlippedLabels, ball: L1Ball) -> dict[str, float]:
        G = L = 0.0
        for X, _ in labels.rounds(self.T, self.batch):
            G = max(G, float(np.abs(X).max(axis=1).mean()))
            L = max(L, float(np.square(X).sum(axis=1).mean()))
        return {
            "G": SHARPNESS / 4.0 * G,
            "L": Sigmoid(SHARPNESS).smoothness * L,
            "rho": ball.diameter(1),
            "diameter": ball.diameter(2),
        }

    # What follows from the records ---------------------------------------------------------------

    def curves(self, records: Records) -> list[Series]:
        """Return the late minima of gap and stationarity, means over seeds, with their bounds."""
        series = []
        for alpha in ALPHAS:
            for key, what in (("gap", "gap"), ("stationarity", "stationarity for f")):
                where = {
                    "panel": f"{what}, steps t^-{alpha}",
                    "y_name": f"smallest {what} in (T/2, T]",
                }
                for case in [case for case in CASES if case.alpha == alpha]:
                    measured = self.mean(records, case, key, label=case.algorithm, **where)
                    series.append(measured)
                    if key == "gap":
                        label = f"bound, {case.algorithm}"
                        series.append(self.mean(records, case, "bound", label=label, **where))
                series.append(self.shape(case.shapes[key], measured, 3.0))
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge rate and bound of the gap, and the rate of stationarity."""
        return [claim for case in CASES for claim in self._claims(records, case)]

    def _claims(self, records: Records, case: Case) -> list[Claim]:
        word = f"{case.algorithm.lower().replace('-', '')}-{case.alpha}"
        gap = "g^FW" if case.algorithm == "O-FW" else "g^AW"
        gap_shape, shape = case.shapes.values()
        rate = self.named(
            f"t1-gap-{word}",
            f"{case.id}, non-convex loss: the smallest {gap} of the rounds T/2 + 1 to T is "
            f"O({gap_shape.name})",
            "Theorem 3",
        )
        bound = self.named(
            f"t1-gap-bound-{word}",
            f"{case.id}: the smallest {gap} is under the bound with the constants of the "
            "appendix, for every T and seed",
            "Theorem 3 (appendix)",
        )
        stationary = self.named(
            f"t1-stationary-{word}",
            f"{case.id}: the best theta_t of the rounds T/2 + 1 to T is O({shape.name})-stationary "
            "for the expected loss",
            "Proposition after Theorem 3",
        )
        gaps, bounds = (self.each(records, case.id, key) for key in ("gap", "bound"))
        # <g, theta - s> is at most G rho for any gradient g of a mean of the losses.
        worst = [
            [r["constants"]["G"] * r["constants"]["rho"]] for r in self.records_of(records, case.id)
        ]
        return [
            self.judge_rate(records, case, "gap", gap_shape, **rate),
            verdicts.never_above(gaps, bounds, worst=worst, **bound),
            self.judge_rate(records, case, "stationarity", shape, **stationary),
        ]

    def extra(self, records: Records) -> dict[str, Any]:
        """Return the slopes as a table, and the constants of the bounds by run."""
        table = []
        for case in CASES:
            row: dict[str, Any] = {
                "setting": f"non-convex, steps t^-{case.alpha}",
                "algorithm": case.algorithm,
                "seeds": len(self.seeds),
            }
            for key, shape in case.shapes.items():
                row |= self.slope_columns(records, case, key, shape, key)
            table.append(row)
        return {
            "table": table,
            "constants": {name: record["constants"] for name, record in records.items()},
        }


def _late(values: Array, ends: Array) -> list[float]:
    # At a stationary vertex the gap is 0 up to rounding, which has no logarithm.
    return np.maximum(late_minimum(values, ends), ROUNDING).tolist()
