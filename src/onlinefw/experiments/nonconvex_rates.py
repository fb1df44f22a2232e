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

from collections.abc import Mapping
from functools import partial
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
from .experiment import Advance, Experiment, Record, Run
from .recorder import late_minimum, log_rounds, play
from .results import Claim, Series
from .shapes import RateShape, power

__all__ = ["NonConvexRates"]

ALPHAS = (0.5, 0.75)
SHARPNESS, FLIP, RADIUS = 10.0, 0.25, 1.0
#: Theorem 3 for O-AW holds from T = 20 on.
FIRST = 20
#: No smaller gap is distinguished from 0.
ROUNDING = 1e-16
#: Slopes are fitted from this share of the rounds on.
FIT_FROM = 0.05


class NonConvexRates(Experiment):
    """Gaps and stationarity of O-FW and O-AW on the sigmoid loss."""

    figure = "table1"
    dataset = "non-convex"

    def __init__(
        self, T: int, seeds: int, *, quick: bool, n: int = 30, nonzeros: int = 5, batch: int = 5
    ):
        self.T, self.seeds, self.n, self.nonzeros, self.batch = T, seeds, n, nonzeros, batch
        self.fit_from = max(FIRST, FIT_FROM * T)
        self.settings = {
            "quick": quick,
            "T": T,
            "seeds": seeds,
            "n": n,
            "nonzeros": nonzeros,
            "batch": batch,
            "loss": f"Sigmoid({SHARPNESS:g})",
            "flip": FLIP,
            "radius": RADIUS,
            "steps": [f"t^-{alpha}" for alpha in ALPHAS],
            "fit_from": self.fit_from,
        }

    def runs(self) -> list[Run]:
        """Return one run an algorithm, exponent and seed."""
        return [
            Run(
                _name(algorithm, alpha, seed),
                self.T,
                partial(self._play, algorithm, alpha, seed),
            )
            for alpha in ALPHAS
            for algorithm in ALGORITHMS
            for seed in range(self.seeds)
        ]

    def _play(self, algorithm: str, alpha: float, seed: int, advance: Advance) -> Record:
        labels = FlippedLabels.make(
            self.n, self.nonzeros, flip=FLIP, sharpness=SHARPNESS, seed=seed
        )
        ball = L1Ball(RADIUS)

        def learner() -> Learner:
            objective = LinearObjective(Sigmoid(SHARPNESS), n_features=self.n)
            return ALGORITHMS[algorithm](objective, ball, step=Power(alpha))

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
        kind = "fw" if algorithm == "O-FW" else "aw"
        return {
            "T": ends.tolist(),
            "gap": _late(trace.gap, ends),
            "stationarity": _late(trace.looks["stationarity"], ends),
            "bound": [
                theory.gap_bound(int(T), algorithm=kind, alpha=alpha, **constants) for T in ends
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

    def _each(self, records: Mapping[str, Record], case: tuple[str, float], key: str) -> Array:
        return np.array([records[_name(*case, seed)][key] for seed in range(self.seeds)])

    def curves(self, records: Mapping[str, Record]) -> list[Series]:
        """Return the late minima of gap and stationarity, means over seeds, with their bounds."""
        series = []
        for alpha in ALPHAS:
            for key, what in (("gap", "gap"), ("stationarity", "stationarity for f")):
                y_name = f"smallest {what} in (T/2, T]"
                where = {"panel": f"{what}, steps t^-{alpha}", "dataset": self.dataset}
                for algorithm in ALGORITHMS:
                    case = (algorithm, alpha)
                    T = self._each(records, case, "T")[0]
                    mean = self._each(records, case, key).mean(axis=0)
                    series.append(Series.of(algorithm, "round", y_name, T, mean, **where))
                    if key == "gap":
                        bound = self._each(records, case, "bound").mean(axis=0)
                        label = f"bound, {algorithm}"
                        series.append(Series.of(label, "round", y_name, T, bound, **where))
                shape = _gap_shape(alpha) if key == "gap" else _stationary_shape(alpha)
                late = T >= self.fit_from
                guide = shape.through(T[late], 3.0 * mean[late][0])
                name = f"shape {shape.name}"
                series.append(Series.of(name, "round", y_name, T[late], guide, **where))
        return series

    def claims(self, records: Mapping[str, Record]) -> list[Claim]:
        """Judge rate and bound of the gap, and the rate of stationarity."""
        claims = []
        for alpha in ALPHAS:
            for algorithm in ALGORITHMS:
                case = (algorithm, alpha)
                T = self._each(records, case, "T")[0]
                word = f"{algorithm.lower().replace('-', '')}-{alpha}"
                gap = "g^FW" if algorithm == "O-FW" else "g^AW"
                shape = _gap_shape(alpha)
                claims.append(
                    verdicts.no_slower_than(
                        T,
                        self._each(records, case, "gap"),
                        shape.of,
                        shape.name,
                        first=self.fit_from,
                        id=f"t1-gap-{word}",
                        statement=f"{algorithm}, steps t^-{alpha}, non-convex loss: the smallest "
                        f"{gap} of the rounds T/2 + 1 to T is O({shape.name})",
                        source="Theorem 3",
                        dataset=self.dataset,
                    )
                )
                claims.append(
                    verdicts.never_above(
                        self._each(records, case, "gap"),
                        self._each(records, case, "bound"),
                        id=f"t1-gap-bound-{word}",
                        statement=f"{algorithm}, steps t^-{alpha}: the smallest {gap} is under the "
                        "bound with the constants of the appendix, for every T and seed",
                        source="Theorem 3 (appendix)",
                        dataset=self.dataset,
                    )
                )
                shape = _stationary_shape(alpha)
                claims.append(
                    verdicts.no_slower_than(
                        T,
                        self._each(records, case, "stationarity"),
                        shape.of,
                        shape.name,
                        first=self.fit_from,
                        id=f"t1-stationary-{word}",
                        statement=f"{algorithm}, steps t^-{alpha}: the best theta_t of the rounds "
                        f"T/2 + 1 to T is O({shape.name})-stationary for the expected loss",
                        source="Proposition after Theorem 3",
                        dataset=self.dataset,
                    )
                )
        return claims

    def extra(self, records: Mapping[str, Record]) -> dict[str, Any]:
        """Return the slopes as a table, and the constants of the bounds by run."""
        table = []
        for alpha in ALPHAS:
            for algorithm in ALGORITHMS:
                case = (algorithm, alpha)
                T = self._each(records, case, "T")[0]
                row: dict[str, Any] = {
                    "setting": f"non-convex, steps t^-{alpha}",
                    "algorithm": algorithm,
                    "seeds": self.seeds,
                }
                for key, shape in (
                    ("gap", _gap_shape(alpha)),
                    ("stationarity", _stationary_shape(alpha)),
                ):
                    rate = verdicts.slopes(T, self._each(records, case, key), self.fit_from)
                    row[f"predicted_{key}"] = shape.name
                    row[f"predicted_{key}_slope"] = shape.slope(T[self.fit_from <= T])
                    row[f"measured_{key}_slope"] = rate.slope
                    row[f"measured_{key}_interval"] = [rate.low, rate.high]
                table.append(row)
        return {
            "table": table,
            "constants": {name: record["constants"] for name, record in records.items()},
        }


def _name(algorithm: str, alpha: float, seed: int) -> str:
    return f"{algorithm}, steps t^-{alpha}, seed {seed}"


def _late(values: Array, ends: Array) -> list[float]:
    # At a stationary vertex the gap is 0 up to rounding, which has no logarithm.
    return np.maximum(late_minimum(values, ends), ROUNDING).tolist()


def _gap_shape(alpha: float) -> RateShape:
    return power(1.0 - alpha)


def _stationary_shape(alpha: float) -> RateShape:
    slow = power(1.0 - alpha)
    return RateShape(
        f"max{{{slow.name}, sqrt(log T / T)}}",
        lambda T: np.maximum(slow.of(T), np.sqrt(np.log(T) / T)),
    )
