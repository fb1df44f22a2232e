"""The propositions: how fast grad F_t(theta_t) approaches grad f(theta_t).

Problems, all with O-FW and steps 2 / (t + 1), radius 1.1 times the truth's norm unless stated:

- LASSO, fixed 20 x 40 design (B_1 = 0) with the paper's noise 10, and random designs of 4 x 40
  signs +-1 (B_1 = 4, B_2 = 1 almost surely) with noise 1;
- matrix completion, 30 x 40, rank 3, entries drawn uniformly, 50 a round, noise of variance 3;
- the sigmoid loss of ``nonconvex_rates`` (30 features, 5 rows a round, l1 ball of radius 1).

Theory: LASSO: the largest entry of the error is at most (c B_1 + sqrt(m) B_2 sigma_w)
sqrt(2 (log(2 n^2 t^2) - log epsilon) / t), so O(sqrt(log t / t)). Matrix completion: the
operator norm is O(sqrt(log t / t)); the paper does not give the constant c_lambda, so that only the
rate is a prediction: whether the expression with constant 1 is above the measured error is reported
beside it. In general (sub-Gaussian gradients): O(sqrt(log t log(nt) / t)), no constants given. That
proposition assumes that f(theta; omega) is L-smooth for every omega, with one L. The sigmoid loss
on Gaussian rows does not satisfy it: L is k^2 ||x||^2 / (6 sqrt(3)), which has no bound. The rate
is looked at all the same.

Units: the paper's. LASSO losses sum over the rows of a round; the others are means over the
observations of a round. The bound for matrix completion counts entries. epsilon = 0.05. kappa,
which bounds the rows and columns of any theta in the ball, is its radius. A bound is judged where
it is below the largest error that the gradient of a single round has: there it would be violated
without averaging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from .._typing import Array
from ..algorithms import Learner, OnlineFrankWolfe
from ..losses import Sigmoid
from ..objectives import LinearObjective, RunningLeastSquares
from ..sets import L1Ball
from . import verdicts
from .convex_problems import (
    EPSILON,
    LeastSquaresStream,
    lasso_error,
    make_fixed_design,
    make_random_design,
    matrix_completion,
)
from .expected_sigmoid import FlippedLabels
from .experiment import Advance, Record, Records
from .rate_rows import RateShape, TablePart, root_log_over
from .recorder import log_rounds, play
from .results import Claim, Series

__all__ = ["PROPOSITIONS", "Proposition", "Propositions", "Watched"]

#: Features of the sigmoid loss.
FEATURES = 30


@dataclass(frozen=True)
class Watched:
    """What a gradient error is measured on: a learner, and the stream as far as it has come.

    ``stream`` passes every batch to ``add`` before the learner has it, so when theta_t is looked at
    the sums hold rounds 1 to t and ``error(theta_t)`` is that of grad F_t(theta_t).
    """

    learner: Callable[[], Learner]
    batches: Callable[[], Iterable[tuple[Any, Any]]]
    add: Callable[[Any, Any], None]
    error: Callable[[Any], float]
    bound: Callable[[Array], Array] | None = None
    #: The error of the gradient of the newest round alone: what it is without averaging.
    single: Callable[[Any], float] | None = None

    def stream(self) -> Iterator[tuple[Any, Any]]:
        """Yield the batches, each taken into the sums first."""
        for X, y in self.batches():
            self.add(X, y)
            yield X, y


@dataclass(frozen=True)
class Proposition:
    """A statement on the gradient error."""

    id: str
    #: Of the picture.
    title: str
    #: The problem, in words.
    about: str
    #: Where the paper says so.
    source: str
    #: Of the error.
    norm: str
    #: The predicted rate.
    shape: RateShape
    #: Called with the seed and T, returns what is watched.
    make: Callable[[int, int], Watched]
    #: Whether the paper gives the constant of the bound.
    proved: bool = True


def _lasso(stream: LeastSquaresStream, T: int) -> Watched:
    n = stream.theta.size
    radius = 1.1 * float(np.abs(stream.theta).sum())
    gram, moment, rounds = np.zeros((n, n)), np.zeros(n), np.zeros(1)
    newest: list[Array] = []

    def add(A: Array, y: Array) -> None:
        newest[:] = A, y
        gram[:] += A.T @ A
        moment[:] += A.T @ y
        rounds[0] += 1

    def error(theta: Array) -> float:
        measured = (gram @ theta - moment) / rounds[0]
        return float(np.abs(measured - stream.gram @ (theta - stream.theta)).max())

    def single(theta: Array) -> float:
        A, y = newest
        measured = A.T @ (A @ theta - y)
        return float(np.abs(measured - stream.gram @ (theta - stream.theta)).max())

    return Watched(
        lambda: OnlineFrankWolfe(RunningLeastSquares(n), L1Ball(radius)),
        lambda: stream.rounds(T),
        add,
        error,
        lambda t: lasso_error(stream, radius, t),
        single,
    )


def _matrix(seed: int, T: int, batch: int = 50) -> Watched:
    problem, data = matrix_completion((30, 40), 3, batch, T, 1.1, seed)
    truth = data.left @ data.right.T
    counts, sums = np.zeros(data.shape), np.zeros(data.shape)

    def add(where: Array, values: Array) -> None:
        np.add.at(counts, (where[:, 0], where[:, 1]), 1.0)
        np.add.at(sums, (where[:, 0], where[:, 1]), values)

    def error(theta: Any) -> float:
        dense = theta.dense()
        measured = (counts * dense - sums) / counts.sum()
        return float(np.linalg.norm(measured - (dense - truth) / truth.size, 2))

    def bound(t: Array) -> Array:
        kappa = problem.constants["rho"] / 2.0
        sigma = float(np.sqrt(3.0))
        return theory.matrix_gradient_error(
            batch * t, shape=data.shape, sigma=sigma, kappa=kappa, epsilon=EPSILON
        )

    return Watched(problem.learner, problem.stream, add, error, bound)


def _sigmoid(seed: int, T: int, n: int = FEATURES, batch: int = 5) -> Watched:
    labels = FlippedLabels.make(n, 5, flip=0.25, sharpness=10.0, seed=seed)
    loss = Sigmoid(labels.sharpness)
    X, y, seen = np.empty((T * batch, n)), np.empty(T * batch), [0]

    def add(rows: Array, targets: Array) -> None:
        place = slice(seen[0], seen[0] + targets.size)
        X[place], y[place] = rows, targets
        seen[0] = place.stop

    def error(theta: Array) -> float:
        past, targets = X[: seen[0]], y[: seen[0]]
        measured = past.T @ loss.derivative(past @ theta, targets) / seen[0]
        return float(np.abs(measured - labels.gradient(theta)).max())

    return Watched(
        lambda: OnlineFrankWolfe(LinearObjective(loss, n_features=n), L1Ball(1.0)),
        lambda: labels.rounds(T, batch),
        add,
        error,
    )


PROPOSITIONS = (
    Proposition(
        "lasso-fixed",
        "gradient error, LASSO, fixed design",
        "LASSO with a fixed 20 x 40 design",
        "Appendix, proposition on online LASSO",
        "largest entry",
        root_log_over(1),
        lambda seed, T: _lasso(make_fixed_design(20, 40, sparsity=0.1, sigma=10.0, seed=seed), T),
    ),
    Proposition(
        "lasso-random",
        "gradient error, LASSO, random design",
        "LASSO with random 4 x 40 designs of signs",
        "Appendix, proposition on online LASSO",
        "largest entry",
        root_log_over(1),
        lambda seed, T: _lasso(make_random_design(4, 40, sparsity=0.1, sigma=1.0, seed=seed), T),
    ),
    Proposition(
        "matrix",
        "gradient error, matrix completion",
        "Matrix completion, 30 x 40, uniform sampling",
        "Appendix, improved gradient error for matrix completion",
        "operator norm",
        root_log_over(1),
        lambda seed, T: _matrix(seed, T),
        proved=False,
    ),
    Proposition(
        "general",
        "gradient error, sigmoid loss",
        f"Sigmoid loss with flipped labels, {FEATURES} Gaussian features (no one L for all rows)",
        "Proposition 1",
        "largest entry",
        RateShape(
            "sqrt(log t log(n t) / t)",
            lambda t: np.sqrt(np.log(t) * np.log(FEATURES * t) / t),
        ),
        lambda seed, T: _sigmoid(seed, T),
    ),
)


class Propositions(TablePart):
    """Measured gradient errors beside the bounds of the propositions."""

    dataset = "propositions"
    rows: Sequence[Proposition]

    def __init__(self, T: int, seeds: int, *, quick: bool):
        super().__init__(PROPOSITIONS, T, seeds, quick=quick)
        self.settings |= {
            "step": "2 / (t + 1)",
            "fit_from": self.fit_from,
            "epsilon": EPSILON,
            "noise": "LASSO: standard deviation 10, random design 1; matrix completion: variance 3",
            "radius": "1.1 times the truth's norm; 1 for the sigmoid loss",
            "propositions": {one.id: one.about for one in PROPOSITIONS},
            "constant of the matrix bound": 1.0,
        }

    def play(self, row: Proposition, seed: int, advance: Advance) -> Record:
        """Play the learner of a proposition with one seed, and measure the gradient's error."""
        watched, at = row.make(seed, self.T), log_rounds(self.T)
        # No warm-up: nothing is timed, and the sums must get each batch once.
        trace = play(
            watched.learner,
            watched.stream,
            self.T,
            {"error": watched.error, "single": watched.single or watched.error},
            advance,
            at=at,
            warm_up=0,
        )
        record: Record = {"t": at.tolist(), "error": trace.looks["error"].tolist()}
        if watched.bound is not None:
            record["bound"] = watched.bound(at).tolist()
            record["single"] = trace.looks["single"].tolist()
        return record

    def curves(self, records: Records) -> list[Series]:
        """Return the measured errors, means over seeds, with shapes and bounds."""
        series = []
        for one in self.rows:
            where = {"panel": one.title, "y_name": one.norm}
            error = self.mean(records, one, "error", label="O-FW", **where)
            series += [error, self.shape(one.shape, error, 2.0)]
            if self.has_bound(records, one):
                label = "bound" if one.proved else "bound with constant 1"
                series.append(self.mean(records, one, "bound", label=label, **where))
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge each rate, and each bound."""
        claims = []
        for one in self.rows:
            rate = self.named(
                f"t1-gradient-{one.id}",
                f"{one.about}: the {one.norm} of grad F_t(theta_t) - grad f(theta_t) is "
                f"O({one.shape.name})",
                one.source,
            )
            claims.append(self.judge_rate(records, one, "error", one.shape, **rate))
            if one.proved and self.has_bound(records, one):
                bound = self.named(
                    f"t1-gradient-{one.id}-bound",
                    f"{one.about}: the {one.norm} of the gradient error is under the bound of the "
                    "proposition, in every round looked at and for every seed",
                    one.source,
                )
                errors, bounds, single = (
                    self.each(records, one.id, key) for key in ("error", "bound", "single")
                )
                worst, whose = single.max(axis=1)[:, None], "the gradient of a single round"
                claims.append(
                    verdicts.never_above(errors, bounds, worst=worst, whose=whose, **bound)
                )
        return claims

    def extra(self, records: Records) -> dict[str, Any]:
        """Return how the errors compare with an expression whose constant the paper leaves open."""
        rows = []
        for one in self.rows:
            if not one.proved and self.has_bound(records, one):
                share = self.each(records, one.id, "error") / self.each(records, one.id, "bound")
                rows.append(
                    {"gradient error": one.about, "largest share of the bound": float(share.max())}
                )
        return {"with the constant 1, which the paper does not give": rows}
