"""Figure 4: a picture from the readings of a single-pixel camera, by online LASSO.

Problem: a picture theta of 64 x 64 pixels from readings y_i = <a_i, theta> + noise, where a_i is
the camera's mask of 0s and 1s; loss (y_i - <a_i, theta>)^2 over {||theta||_1 <= r}.

Algorithms: O-FW and O-AW with steps 2 / (1 + n), B = 5 new readings an iteration, and 50
repetitions of the step in each; 500 iterations.

Prediction: F_T(theta_t), the mean loss of all T readings, falls like 1/t, and the pictures after
500 iterations show the object. As min F_T over the ball is not 0 with noisy readings, the rate is
that of F_T(theta_t) - min F_T. It is judged in two windows, iterations 50 to 200 and 200 to 500: a
curve may have two regimes, and one slope across both is no rate. (After 500 iterations 2,500 of the
readings have been seen: the rest of F_T is new to the learners.)

Data: "R64" is the paper's; "mug64" is another object in front of the same camera; "simulated" is a
letter R under random masks, whose truth is known.

Chosen here, as the paper does not say:

- The radius. A picture has no negative pixels, and a mask lets through the share of the light that
  its open pixels have, so the l1 norm of the picture is about mean(y) / mean(a): r is that, which
  takes no truth. Half and twice that radius are shown beside it.
- Masks and readings as they are, without centring.
- The order of the readings: drawn with the seed (the real camera's readings drift with time); three
  orders, of which the first is drawn.
- What a picture is compared with: the truth where it is known, else ridge regression on all
  readings, solved directly, its penalty chosen on a held-out fifth of them. The paper's criterion
  is a picture that people recognise; as a number, a correlation of at least 0.9. At 0.95 the letter
  is read at a glance. At 0.77 the mug is a bright cloud without handle or print, which nobody takes
  for a mug, so half of the variance (0.71) would be too kind.

Units are the paper's: F_T is without the factor 1/2 of ``Square()``.
"""

from __future__ import annotations

from functools import cached_property, partial
from math import sqrt
from typing import Any

import numpy as np
from scipy import linalg

from .._typing import Array
from ..algorithms import Learner
from ..baselines import batch_away_frank_wolfe
from ..datasets import available, fetch_single_pixel, make_single_pixel
from ..objectives import RunningLeastSquares
from ..sets import L1Ball
from . import verdicts
from .convex_problems import ALGORITHMS as LEARNERS
from .experiment import Advance, Record, Records, Run, SeededExperiment, run_name
from .recorder import batches, play
from .results import Claim, Series

__all__ = ["DATASETS", "SinglePixelImaging", "make", "usual_datasets"]

DATASETS = ("R64", "mug64", "simulated")

#: In multiples of mean(y) / mean(a); the first is the one chosen.
RADII = {"r": 1.0, "r / 2": 0.5, "2 r": 2.0}
CHOSEN, *OTHERS = RADII
#: The least correlation with which a picture counts as one that people recognise.
RESEMBLES = 0.9
#: Ridge penalties to try, in multiples of the sum of a pixel's squared deviations.
PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
HELD_OUT = 0.2
#: The ends of the windows in which 1/t is judged, as shares of the iterations.
WINDOWS = {"early": (0.1, 0.4), "late": (0.4, 1.0)}
SOURCE = "Appendix, Online LASSO, realistic data"


def usual_datasets() -> list[str]:
    """Return the paper's readings if they are in the data folder, else the mug's; simulated ones.

    The camera's files have no lasting address to download them from.
    """
    real = [name for name in ("R64", "mug64") if available(name)]
    return [*real[:1], "simulated"]


def make(dataset: str, *, quick: bool, seeds: int | None) -> SinglePixelImaging:
    """Return the experiment on one data set."""
    if dataset not in DATASETS:
        raise ValueError(f"dataset must be one of {', '.join(DATASETS)}, got {dataset!r}")
    if not quick:
        return SinglePixelImaging(dataset, seeds=seeds or 3)
    return SinglePixelImaging(
        dataset,
        size=32,
        readings=2000,
        iterations=200,
        inner_steps=50,
        minimum_steps=10_000,
        seeds=seeds or 1,
        quick=True,
    )


class SinglePixelImaging(SeededExperiment):
    """Figure 4 on one of ``DATASETS``.

    ``size`` is the side of the simulated picture; ``readings`` is T, all by default, and the
    paper's 4319 for a simulated camera. Every iteration has ``batch`` new readings and
    ``inner_steps`` steps; batch away-step Frank-Wolfe takes ``minimum_steps`` to min F_T. Each seed
    is an order of the readings.
    """

    figure = "fig4"

    def __init__(
        self,
        dataset: str,
        *,
        size: int = 64,
        readings: int | None = None,
        iterations: int = 500,
        batch: int = 5,
        inner_steps: int = 50,
        minimum_steps: int = 40_000,
        seeds: int = 3,
        quick: bool = False,
    ) -> None:
        self.dataset = dataset
        self._size, self._readings = size, readings
        self._iterations, self._batch, self._inner_steps = iterations, batch, inner_steps
        self._minimum_steps, self.seeds = minimum_steps, range(seeds)
        self.settings = {
            "quick": quick,
            "readings": readings or "all",
            "iterations": iterations,
            "new readings an iteration": batch,
            "repetitions in an iteration": inner_steps,
            "step": "2 / (1 + n)",
            "r": "mean reading / mean mask",
            "radii": RADII,
            "steps to the minimum": minimum_steps,
            "seeds of the order": list(self.seeds),
            **({"size": size, "noise": 0.5} if dataset == "simulated" else {}),
        }

    @cached_property
    def _camera(self) -> tuple[Array, Array, Array | None]:
        """Masks, readings, and the truth if it is known; pixels in the order of rows."""
        if self.dataset == "simulated":
            camera = make_single_pixel(self._size, self._readings or 4319, noise=0.5)
        else:
            camera = fetch_single_pixel(self.dataset)
        masks = np.asarray(camera.masks[: self._readings], dtype=float)
        return masks, camera.y[: self._readings], camera.image

    @cached_property
    def _radius(self) -> float:
        masks, y, _ = self._camera
        return float(y.mean() / masks.mean())

    def runs(self) -> list[Run]:
        """Return the learners in every order, O-FW with other radii, the minimum, the reference."""
        played = [(label, CHOSEN, seed) for label in LEARNERS for seed in self.seeds]
        played += [("O-FW", radius, self.seeds[0]) for radius in OTHERS]
        return [
            *(
                Run(
                    run_name(_case(label, radius), seed),
                    self._iterations,
                    partial(self._play, label, radius, seed),
                )
                for label, radius, seed in played
            ),
            Run("minimum", len(RADII), self._minimise),
            Run("reference", 1, self._refer),
        ]

    def _play(self, label: str, radius: str, seed: int, advance: Advance) -> Record:
        masks, y, _ = self._camera
        order = np.random.default_rng(seed).permutation(y.size)
        ball = L1Ball(RADII[radius] * self._radius)

        def start() -> Learner:
            objective = RunningLeastSquares(masks.shape[1])
            return LEARNERS[label](objective, ball, inner_steps=self._inner_steps)  # type: ignore[call-arg]

        trace = play(
            start,
            lambda: ((masks[rows], y[rows]) for rows, _ in batches(order, order, self._batch)),
            self._iterations,
            {"F": self._mean_loss},
            advance,
            warm_up=1,
        )
        theta = np.asarray(trace.learner.theta)
        return {
            "t": trace.t,
            "F": trace.looks["F"],
            "final F": self._mean_loss(theta),
            "radius": ball.radius,
            "nonzeros": int(np.count_nonzero(theta)),
            "image": _picture(theta),
        }

    def _mean_loss(self, theta: Any) -> float:
        """Return F_T(theta), in the paper's units."""
        masks, y, _ = self._camera
        return float(np.mean(np.square(masks @ np.asarray(theta) - y)))

    def _minimise(self, advance: Advance) -> Record:
        """Minimise F_T over each ball, with all readings at once."""
        masks, y, _ = self._camera
        everything = RunningLeastSquares(masks.shape[1])
        everything.observe(masks, y)
        record = {}
        for done, (name, factor) in enumerate(RADII.items(), start=1):
            result = batch_away_frank_wolfe(
                everything,
                L1Ball(factor * self._radius),
                max_iter=self._minimum_steps,
                tol=1e-10 * float(np.mean(np.square(y))),
            )
            record[name] = {"F": self._mean_loss(result.theta), "gap": 2.0 * result.gap}
            advance(done)
        return record

    def _refer(self, advance: Advance) -> Record:
        """Solve ridge regression directly, in its dual form: one matrix serves every penalty."""
        masks, y, truth = self._camera
        products = masks @ masks.T
        scale = y.size * float(masks.var(axis=0).mean())
        order = np.random.default_rng(0).permutation(y.size)
        held, kept = np.split(order, [round(HELD_OUT * y.size)])
        errors = [
            float(np.mean(np.square(products[np.ix_(held, kept)] @ dual - y[held])))
            for penalty in PENALTIES
            for dual in [_ridge(products[np.ix_(kept, kept)], y[kept], penalty * scale)]
        ]
        penalty = PENALTIES[int(np.argmin(errors))]
        theta = masks.T @ _ridge(products, y, penalty * scale)
        advance(1)
        return {
            "penalty": penalty,
            "held-out F": min(errors),
            "image": _picture(theta),
            "truth": None if truth is None else _picture(truth),
        }

    def curves(self, records: Records) -> list[Series]:
        """Return F_T(theta_t), its distance from the minimum (means over orders), other radii."""
        series = []
        for label in LEARNERS:
            t, F = self._orders_of(records, label)
            F = F.mean(axis=0)
            distance = F - self._least(records)
            series.append(self.series("objective", label, "iteration", "F", t, F))
            series.append(self.series("distance", label, "iteration", "F - min F", t, distance))
        for radius in RADII:
            record = self._first(records, "O-FW", radius)
            curve = f"radius {radius}", "iteration", "F of O-FW", record["t"], record["F"]
            series.append(self.series("radius", *curve))
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Return the verdicts on what the appendix says of this figure."""
        return [
            *(self._rate(records, label, window) for label in LEARNERS for window in WINDOWS),
            *(self._resembles(records, label) for label in LEARNERS),
        ]

    def _least(self, records: Records) -> float:
        """Return min F_T over the ball from below: what the solver found, less its duality gap."""
        found = records["minimum"][CHOSEN]
        return max(0.0, found["F"] - max(0.0, found["gap"]))

    def _rate(self, records: Records, label: str, window: str) -> Claim:
        first, last = (round(share * self._iterations) for share in WINDOWS[window])
        named = self._named(
            f"rate-{label.lower().replace('-', '')}-{window}",
            f"The objective value F_T(theta_t) of {label} falls like 1/t towards min F_T, "
            f"iterations {first} to {last}",
            SOURCE,
        )
        t, F = self._orders_of(records, label)
        inside = (t >= first) & (t <= last)
        distance = F[:, inside] - self._least(records)
        return verdicts.no_slower_than(t[inside], distance, lambda t: 1.0 / t, "1/t", **named)

    def _resembles(self, records: Records, label: str) -> Claim:
        named = self._named(
            f"image-{label.lower().replace('-', '')}",
            f"The picture that {label} makes in {self._iterations} iterations is one in which "
            "people recognise the object (the number is ours: the paper shows the pictures)",
            "Appendix, figure of reconstructed images",
        )
        truth = records["reference"]["truth"]
        known = "the truth" if truth is not None else "ridge regression on all readings"
        picture = self._first(records, label, CHOSEN)["image"]
        correlation = _correlation(picture, truth or records["reference"]["image"])
        return verdicts.at_least(correlation, RESEMBLES, f"correlation with {known}", **named)

    def _named(self, name: str, statement: str, source: str) -> dict[str, Any]:
        return self.named(f"pixel-{name}-{self.dataset.lower()}", statement, source)

    def extra(self, records: Records) -> dict[str, Any]:
        """Return the pictures, and a table of how the learners ended."""
        reference = records["reference"]
        best = reference["truth"] or reference["image"]
        pictures = [
            *((label, CHOSEN, self._first(records, label, CHOSEN)) for label in LEARNERS),
            *(("O-FW", radius, self._first(records, "O-FW", radius)) for radius in OTHERS),
        ]
        images = [
            (label if radius == CHOSEN else f"{label}, radius {radius}", record["image"])
            for label, radius, record in pictures
        ]
        images.insert(len(LEARNERS), ("ridge, all readings", reference["image"]))
        if reference["truth"] is not None:
            images.insert(len(LEARNERS) + 1, ("truth", reference["truth"]))
        return {
            "images": [
                {"label": label, "values": values, "dataset": self.dataset}
                for label, values in images
            ],
            "table": [
                {
                    "learner": label,
                    "radius": record["radius"],
                    "final F": record["final F"],
                    "min F": records["minimum"][radius]["F"],
                    "min F is at least": max(
                        0.0, records["minimum"][radius]["F"] - records["minimum"][radius]["gap"]
                    ),
                    "nonzeros": record["nonzeros"],
                    "correlation": _correlation(record["image"], best),
                }
                for label, radius, record in pictures
            ],
            "ridge": {name: reference[name] for name in ("penalty", "held-out F")},
        }

    def _orders_of(self, records: Records, label: str) -> tuple[Array, Array]:
        """Return the iterations, and F_T of the learner there in every order of the readings."""
        case = _case(label, CHOSEN)
        return self.each(records, case, "t")[0], self.each(records, case, "F")

    def _first(self, records: Records, label: str, radius: str) -> Record:
        """Return the record of the first order of the readings."""
        return records[run_name(_case(label, radius), self.seeds[0])]


def _ridge(products: Array, y: Array, penalty: float) -> Array:
    return linalg.solve(products + penalty * np.eye(y.size), y, assume_a="pos")


def _picture(theta: Any) -> list[list[float]]:
    """Return the rows of the picture, to four digits."""
    side = round(sqrt(np.size(theta)))
    return [[float(f"{pixel:.4g}") for pixel in row] for row in np.reshape(theta, (side, side))]


def _correlation(one: Any, other: Any) -> float:
    return float(np.corrcoef(np.ravel(one), np.ravel(other))[0, 1])


def _case(label: str, radius: str) -> str:
    return f"{label}, radius {radius}"
