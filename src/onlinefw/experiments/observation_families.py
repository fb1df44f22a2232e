"""Matrix completion with Bernoulli and Poisson observations, and the remark on its assumptions.

Problem: a 20 x 30 matrix of rank 2 of natural parameters, entries up to 1 in absolute value,
observed entries drawn uniformly, 50 a round; O-FW in the trace-norm ball of 1.1 times its norm,
steps 2 / (t + 1). f(theta) - f(theta_bar) is the mean over all entries of
G(z) - G(z_bar) - G'(z_bar) (z - z_bar), exact.

Theory: log t / t with the minimiser inside and G'' >= mu (Section 5.1); G'' is positive and bounded
below on the ball for all three families, so mu > 0. A1 asks for G'' <= sigma^2 everywhere; the
paper remarks that "all the exponential family distributions" satisfy it. Whether they do follows
from formulas, with nothing to measure: G'' is 1 (Gaussian), at most 1/4 (Bernoulli), exp(z), which
has no bound (Poisson). A table shows the largest G'' on [-R, R], as one entry of a theta in the
ball can be R, and the largest that theta_t met.

One bit says little of its parameter: with Bernoulli observations h_t stays near h_1 for hundreds of
rounds, so that slopes over fewer than about 8,000 are flatter than the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array
from ..algorithms import OnlineFrankWolfe
from ..losses import Bernoulli, Gaussian, Loss, Poisson
from ..objectives import ObservedEntries
from ..sets import TraceNormBall
from .experiment import Advance, Record, Records
from .rate_rows import TablePart, log_over
from .recorder import batches, log_rounds, play
from .results import Claim, Series

__all__ = ["ObservationFamilies"]

SHAPE, RANK, BATCH, FACTOR = (20, 30), 2, 50, 1.1
RATE = log_over(1)


@dataclass(frozen=True)
class Family:
    """An exponential family."""

    id: str
    loss: Loss

    def draw(self, z: Array, rng: np.random.Generator) -> Array:
        """Draw one observation for each natural parameter."""
        if self.id == "Bernoulli":
            return (rng.random(z.shape) < 1.0 / (1.0 + np.exp(-z))).astype(float)
        return rng.poisson(np.exp(z)).astype(float) if self.id == "Poisson" else _normal(z, rng)

    def excess(self, z: Array, truth: Array) -> float:
        """Return f(z) - f(truth), where the mean of y is G'(truth)."""
        mean = self.loss.derivative(truth, np.zeros_like(truth))
        # G and its derivative: those of an observation of 0
        parts = _log_partition(self.loss, z) - _log_partition(self.loss, truth)
        return float(np.mean(parts - mean * (z - truth)))

    def most_curved(self, R: float) -> float:
        """Return the largest G'' on [-R, R]."""
        z = np.linspace(-R, R, 2001)
        return float(np.max(self.loss.second_derivative(z, np.zeros_like(z))))


def _normal(z: Array, rng: np.random.Generator) -> Array:
    return z + rng.standard_normal(z.shape)


def _log_partition(loss: Loss, z: Array) -> Array:
    return loss.value(z, np.zeros_like(z))


FAMILIES = tuple(Family(type(loss).__name__, loss) for loss in (Gaussian(), Bernoulli(), Poisson()))


class ObservationFamilies(TablePart):
    """Rates of completion, and the largest curvature, for each family."""

    dataset = "families"
    rows: Sequence[Family]

    def __init__(self, T: int, seeds: int, *, quick: bool):
        super().__init__(FAMILIES, T, seeds, quick=quick)
        self.settings |= {
            "shape": list(SHAPE),
            "rank": RANK,
            "batch": BATCH,
            "radius": f"{FACTOR} times the truth's trace norm",
            "fit_from": self.fit_from,
        }

    def play(self, row: Family, seed: int, advance: Advance) -> Record:
        """Play O-FW on a family with one seed."""
        rng = np.random.default_rng([seed, 15])
        truth = rng.standard_normal((SHAPE[0], RANK)) @ rng.standard_normal((RANK, SHAPE[1]))
        truth /= np.abs(truth).max()
        radius = FACTOR * float(np.linalg.norm(truth, "nuc"))
        where = np.column_stack([rng.integers(side, size=self.T * BATCH) for side in SHAPE])
        y = row.draw(truth[where[:, 0], where[:, 1]], rng)
        at = log_rounds(self.T)
        looks = {
            "h": lambda theta: row.excess(theta.dense(), truth),
            "curvature": lambda theta: float(
                np.max(row.loss.second_derivative(theta.dense(), np.zeros(SHAPE)))
            ),
        }
        trace = play(
            lambda: OnlineFrankWolfe(
                ObservedEntries(SHAPE, row.loss, dtype=float), TraceNormBall(radius)
            ),
            lambda: batches(where, y, BATCH),
            self.T,
            looks,
            advance,
            at=at,
        )
        return {
            "t": at.tolist(),
            "h": np.maximum(trace.looks["h"], 1e-300).tolist(),
            "radius": radius,
            "largest": [row.most_curved(radius), row.most_curved(2.0 * radius)],
            "met": float(trace.looks["curvature"].max()),
        }

    def curves(self, records: Records) -> list[Series]:
        """Return h_t with the predicted shape; means over seeds."""
        series = []
        for row in self.rows:
            where = {"panel": f"Completion, {row.id} observations", "y_name": "f - min f"}
            h = self.mean(records, row, "h", label="O-FW", **where)
            series += [h, self.shape(RATE, h, 2.0)]
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge each rate."""
        claims = []
        for row in self.rows:
            rate = self.named(
                f"t1-families-{row.id.lower()}",
                f"O-FW, completion of a {SHAPE[0]} x {SHAPE[1]} matrix, {row.id} observations, "
                f"truth inside the ball: h_t = O({RATE.name})",
                "Section 5.1",
            )
            claims.append(self.judge_rate(records, row, "h", RATE, **rate))
        return claims

    def extra(self, records: Records) -> dict[str, Any]:
        """Return curvatures: what the ball allows, and what theta_t met."""
        return {
            "curvature": [
                {
                    "observations": row.id,
                    "R": float(self.each(records, row.id, "radius").mean()),
                    "largest G'' on [-R, R]": float(
                        self.each(records, row.id, "largest")[:, 0].max()
                    ),
                    "largest G'' on [-2R, 2R]": float(
                        self.each(records, row.id, "largest")[:, 1].max()
                    ),
                    "largest that theta_t met": float(self.each(records, row.id, "met").max()),
                }
                for row in self.rows
            ]
        }
