"""Figure 1: online matrix completion (Section 5.1).

Problem: entries (k_t, l_t, Y_t) of an m1 x m2 matrix arrive, B a round; f_t is their mean square
loss (theta_kl - Y)^2 / 2, over {||theta||_trace <= R}.

========================  =================  ======  ======  =======================  ============
data                      matrix             B       rounds  R                        measured
========================  =================  ======  ======  =======================  ============
synthetic                 200 x 5000         1000    2000    1.1 ||theta_bar||_trace  excess of f
movielens100k             943 x 1682         80      1000    10,000                   test MSE
movielens20m              138,493 x 26,744   10,000  1600    150,000                  test MSE
movielens1m               6040 x 3706        800     1000    32,000                   test MSE
generated20m              138,493 x 26,744   10,000  1600    1.1 ||mean||_trace       test MSE
========================  =================  ======  ======  =======================  ============

The first three are the paper's. The synthetic matrix has rank 20 and 2 million entries drawn
uniformly, with noise of variance 3. The other two are played if MovieLens 20M is not available:
movielens1m with as many rounds as movielens100k, and a radius that grows like the square root of
the number of ratings (as the paper's two radii do); generated20m has the shape of MovieLens 20M
(:func:`~onlinefw.datasets.make_movielens_like`). Its radius is 1.1 times the trace norm of the
matrix with the mean training value everywhere: with less not even a constant could be learned.
(The truth's norm is half as much again, and steps in a larger ball go farther astray.)

Algorithms: O-FW with gamma_t = 2 / (1 + t), its gradient kept on observed entries. O-PG, projected
gradient on the aggregated gradient with step 1 / L, by a full SVD a round (one BLAS thread). Batch
FW with line search. Active ALT (Hsieh and Olsen 2014) on the same ball. Batch methods have no
rounds; their clock includes observing the data. Numbers are in double precision, and theta keeps
all its atoms.

Prediction: on the synthetic data theta_bar is inside the ball and f is strongly convex, so
f(theta_t) - f(theta_bar) = O(log t / t), about 1/t; a round costs at most O(min{m1 m2, T}).

Units: the excess of f is ||theta_t - theta_bar||_F^2 / (2 m1 m2); the duality gap is that of F_t, a
mean of halved squares, with the singular pair that O-FW finds (``matrix_players.LMO``): by how much
that is off at the end of the run, from a pair found anew, is in a table. The test MSE is not
halved. Seconds are those of the learner alone.

How races are judged: to a level below what the mean of the training values has everywhere, or not
at all (:func:`~.verdicts.sooner`). The methods overfit at these radii, so each is taken at the best
test MSE along its iterations. docs/results.md lists what was chosen where the paper is silent.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from .._typing import Array
from ..datasets import available, fetch_movielens, make_movielens_like
from . import matrix_players as players
from . import verdicts
from .experiment import Experiment, Record, Records, Run
from .matrix_problems import MatrixProblem, norm_of_mean, ratings_problem, synthetic_problem
from .results import Claim, Series, plain

__all__ = ["DATASETS", "MatrixCompletion", "Plan", "make", "usual_datasets"]

DATASETS = ("synthetic", "movielens100k", "movielens20m", "movielens1m", "generated20m")

SOURCE = "Section 5.1"
#: R / ||theta_bar||_trace on synthetic data: theta_bar is inside. On generated ratings the mean is.
RADIUS_FACTOR = 1.1
#: The decay of the gap is judged from this share of the rounds on, ...
EARLY = 0.1
#: ... and rates from here on, after the plateau on which theta is hardly better than nothing.
LATE = 0.5
#: "Significantly" less time: at most this share of it.
SIGNIFICANT = 0.5
#: "Comparable" running time: at most this many times as long.
COMPARABLE = 3.0
#: "The same MSE level": at most this many times as large.
SAME_LEVEL = 1.05
#: The label of what a constant has, and of O-PG in the figure.
CONSTANT = "mean of the training values"
LABELS = {"O-PG": "O-PG, full SVD"}


@dataclass(frozen=True)
class Plan:
    """The sizes of an experiment."""

    #: T and B; the training entries are the first T B of the stream.
    rounds: int
    batch: int
    #: R; None: ``RADIUS_FACTOR`` times the trace norm of the truth, on generated ratings the mean.
    radius: float | None
    #: How long the batch methods play.
    batch_steps: int
    alt_iterations: int
    #: Whether O-PG plays, in all rounds.
    opg: bool = False
    #: Of the matrix; of real ratings only the first rows and columns; None: all.
    shape: tuple[int, int] | None = None
    #: Of the synthetic truth.
    rank: int = 20
    #: Test entries, at most; None: all.
    n_test: int | None = None

    @property
    def n_train(self) -> int:
        """The number of training entries."""
        return self.rounds * self.batch


# Batch FW runs about as long as O-FW: a step on all the data costs more than two rounds.
_20M = Plan(rounds=1600, batch=10_000, radius=150_000.0, batch_steps=600, alt_iterations=7)
FULL = {
    "synthetic": Plan(
        rounds=2000, batch=1000, radius=None, opg=True, batch_steps=1000, alt_iterations=15,
        shape=(200, 5000),
    ),
    "movielens100k": Plan(
        rounds=1000, batch=80, radius=10_000.0, opg=True, batch_steps=1000, alt_iterations=20
    ),
    "movielens20m": _20M,
    "movielens1m": Plan(
        rounds=1000, batch=800, radius=32_000.0, batch_steps=400, alt_iterations=15
    ),
    "generated20m": replace(_20M, radius=None, shape=(138_493, 26_744), n_test=500_000),
}  # fmt: skip
#: Smaller matrices; the radii shrink with the square root of the number of ratings.
_QUICK_20M = Plan(
    rounds=200, batch=4000, radius=33_500.0, batch_steps=60, alt_iterations=6,
    shape=(20_000, 5000), n_test=100_000,
)  # fmt: skip
QUICK = {
    "synthetic": Plan(
        rounds=1000, batch=100, radius=None, opg=True, batch_steps=300, alt_iterations=8,
        shape=(60, 400), rank=5,
    ),
    "movielens100k": Plan(
        rounds=200, batch=80, radius=4_600.0, opg=True, batch_steps=200, alt_iterations=8,
        shape=(300, 500),
    ),
    "movielens20m": _QUICK_20M,
    "movielens1m": Plan(
        rounds=200, batch=450, radius=10_700.0, batch_steps=200, alt_iterations=8,
        shape=(1500, 1500),
    ),
    "generated20m": replace(_QUICK_20M, radius=None),
}  # fmt: skip


def usual_datasets() -> list[str]:
    """Return the paper's data sets, with others for MovieLens 20M unless it is available."""
    large = ["movielens20m"] if available("movielens20m") else ["movielens1m", "generated20m"]
    return ["synthetic", "movielens100k", *large]


def make(dataset: str, *, quick: bool, seeds: int | None) -> MatrixCompletion:
    """Return the experiment on one data set; three seeds on synthetic data, else one."""
    if seeds is None:
        seeds = 3 if dataset == "synthetic" else 1
    return MatrixCompletion(dataset, (QUICK if quick else FULL)[dataset], quick=quick, seeds=seeds)


class MatrixCompletion(Experiment):
    """Online matrix completion on one of ``DATASETS``; O-FW plays the streams of all seeds."""

    figure = "fig1"

    def __init__(self, dataset: str, plan: Plan, *, quick: bool = False, seeds: int = 1) -> None:
        self.dataset, self.plan, self.seeds = dataset, plan, seeds
        self.settings = {
            "quick": quick,
            **plain(asdict(plan)),
            "radius": self._radius_in_words() if plan.radius is None else plan.radius,
            "step": "2 / (1 + t)",
            "loss": "square, raw values",
            "precision": "float64",
            "lmo": players.LMO,
            "pair at the end": f"svds, tol {players.SVDS_TOL:g}",
            "active_alt": players.ALT_OPTIONS,
            "seeds": seeds,
        }
        self._held: tuple[int, MatrixProblem] | None = None

    @property
    def measured(self) -> str:
        """What the curves show."""
        return "excess objective" if self.dataset == "synthetic" else "test MSE"

    def _radius_in_words(self) -> str:
        inside = "truth" if self.dataset == "synthetic" else "mean"
        return f"{RADIUS_FACTOR} ||{inside}||_trace"

    # Data -----------------------------------------------------------------------------------------

    def problem(self, seed: int) -> MatrixProblem:
        """Return the problem of a seed; the last one is kept."""
        if self._held is None or self._held[0] != seed:
            self._held = None  # free the old one first: two large ones may not fit into memory
            self._held = (seed, self._load(seed))
        return self._held[1]

    def _load(self, seed: int) -> MatrixProblem:
        plan = self.plan
        if self.dataset == "synthetic":
            assert plan.shape is not None
            return synthetic_problem(plan.shape, plan.rank, plan.n_train, RADIUS_FACTOR, seed)
        radius = plan.radius
        if self.dataset == "generated20m":
            assert plan.shape is not None
            data: Any = make_movielens_like(*plan.shape, plan.n_train * 5 // 4, seed=seed)
            order = np.arange(data.values.size)  # already random
            radius = RADIUS_FACTOR * norm_of_mean(data.values[: plan.n_train], data.shape)
        else:
            data = fetch_movielens(self.dataset.removeprefix("movielens"))
            if plan.shape is not None:
                data = data.take((data.rows < plan.shape[0]) & (data.cols < plan.shape[1]))
            order = np.random.default_rng(seed).permutation(data.values.size)
        first_test = order.size * 4 // 5
        if first_test < plan.n_train:
            raise ValueError(
                f"{plan.rounds} rounds of {plan.batch} are more than the {first_test} training "
                f"ratings of {self.dataset}"
            )
        test = order[first_test:][: plan.n_test]
        assert radius is not None
        return ratings_problem(data, order[: plan.n_train], test, radius, plan.shape)

    # Runs -----------------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        """Return O-FW and the others on the first seed, then O-FW on the other seeds."""
        plan = self.plan
        return [
            self._run("O-FW", 0, plan.rounds),
            *([self._run("O-PG", 0, plan.rounds)] if plan.opg else []),
            self._run("batch FW", 0, plan.batch_steps),
            self._run("active ALT", 0, plan.alt_iterations),
            *(self._run("O-FW", seed, plan.rounds) for seed in range(1, self.seeds)),
        ]

    def _run(self, player: str, seed: int, rounds: int) -> Run:
        return Run(
            f"{player}, seed {seed}" if seed else player,
            rounds,
            lambda advance: players.PLAYERS[player](
                self.problem(seed), self.plan.batch, rounds, advance
            ),
        )

    # What follows ---------------------------------------------------------------------------------

    def curves(self, records: Records) -> list[Series]:
        """Return the measure and O-FW's gap against rounds (online learners) and seconds (all).

        With them goes what the mean of the training values has, where that is predicted everywhere.
        """
        panels = {"rounds": ("round", "t"), "seconds": ("seconds", "seconds")}
        ours, curves = records["O-FW"], []
        for panel, (x_name, x) in panels.items():
            for name, record in records.items():
                if x in record and "seed" not in name:
                    y, label = record["measure"], LABELS.get(name, name)
                    curves.append(self.series(panel, label, x_name, self.measured, record[x], y))
            constant = (CONSTANT, x_name, self.measured, ours[x], [ours["constant"]] * len(ours[x]))
            gap = "duality gap"
            curves += [
                self.series(panel, *constant),
                self.series(panel, gap, x_name, gap, ours[x], ours["gap"]),
            ]
        return curves

    def extra(self, records: Records) -> dict[str, Any]:
        """Return the radius, how far inside the truth is (if known), and how runs ended.

        With the gap of O-FW's last theta: by the pair it finds, by one found anew, and an upper
        bound.
        """
        ours = records["O-FW"]
        return {
            "radius": ours["radius"],
            "delta": ours["delta"],
            "measure of the mean": ours["constant"],
            "table": [
                {"algorithm": LABELS.get(name, name), "measured": self.measured, **_ends(record)}
                for name, record in records.items()
                if "seed" not in name
            ],
            "duality gap at the end": [
                {
                    "run": name,
                    "with the pair of O-FW": gap["found"],
                    "with the pair of svds": gap["svds"],
                    "off by": f"{1.0 - gap['found'] / gap['svds']:.2g} of it",
                    "certificate": gap["certificate"],
                }
                for name, record in records.items()
                if name.startswith("O-FW")
                for gap in [record["final gap"]]
            ],
        }

    def claims(self, records: Records) -> list[Claim]:
        """Return verdicts on what Section 5.1 says."""
        claims = self._rates(records) if self.dataset == "synthetic" else []
        if "O-PG" in records:
            claims.append(self._against_opg(records))
        if self.dataset not in ("synthetic", "movielens100k"):
            claims += self._against_batch(records)
        t, gaps = self._of_all_seeds(records, "gap")
        named = self._named("gap-decays", "The duality gap of O-FW, which the figure shows, decays")
        claims.append(verdicts.decays(t, gaps, first=EARLY * self.plan.rounds, **named))
        return claims

    def _rates(self, records: Records) -> list[Claim]:
        t, excess = self._of_all_seeds(records, "measure")
        first = LATE * self.plan.rounds
        claims = [
            verdicts.no_slower_than(
                t, excess, lambda t: 1.0 / t, "1 / t", first=first,
                **self._named("rate", "The stochastic objective of O-FW falls like 1 / t"),
            ),
            verdicts.no_slower_than(
                t, excess, lambda t: np.log(t) / t, "log t / t", first=first,
                **self._named(
                    "anytime",
                    "The anytime bound of O-FW is O(log t / t): f is strongly convex, and its "
                    "minimiser is inside the ball",
                ),
            ),
        ]  # fmt: skip
        parts = records["O-FW"]["round_milliseconds"]
        # From here on min{m1 m2, entries seen} grows no more.
        full = ceil(len(parts) * records["O-FW"]["n_matrix"] / self.plan.n_train)
        if full < len(parts) - 1:
            named = self._named(
                "round-cost",
                "A round of O-FW costs O(min{m1 m2, T}): once m1 m2 entries have been seen, "
                "rounds get no dearer",
            )
            claims.append(verdicts.flat(parts[full:], skip=0, **named))
        return claims

    def _against_opg(self, records: Records) -> Claim:
        claim = verdicts.sooner(
            _curve(records["O-FW"]), _curve(records["O-PG"]), self.measured,
            names=("O-FW", "O-PG"), within=SIGNIFICANT, constant=records["O-FW"]["constant"],
            **self._named("faster-than-opg", "O-FW takes significantly less time than O-PG"),
        )  # fmt: skip
        ours, theirs = (
            float(np.median(records[name]["round_milliseconds"])) for name in ("O-FW", "O-PG")
        )
        each = f"; a round takes {ours:.3g} ms and {theirs:.3g} ms"
        return replace(claim, measured=claim.measured + each)

    def _against_batch(self, records: Records) -> list[Claim]:
        ours, batch, alt = (records[name] for name in ("O-FW", "batch FW", "active ALT"))
        constant, best = ours["constant"], min(alt["measure"])
        same = verdicts.no_larger(
            min(ours["measure"]), best, f"best {self.measured}",
            factor=SAME_LEVEL, names=("O-FW", "active ALT"),
            **self._named("same-mse-as-alt", "O-FW achieves the same MSE level as active ALT"),
        )  # fmt: skip
        iteration, end = alt["measure"].index(best) + 1, alt["measure"][-1]
        when = f" (in iteration {iteration} of {len(alt['measure'])}; {end:.4g} at its end)"
        return [
            verdicts.sooner(
                _curve(ours), _curve(batch), self.measured, names=("O-FW", "batch FW"),
                constant=constant,
                **self._named(
                    "faster-than-batch", "O-FW runs faster than batch FW with line search"
                ),
            ),
            verdicts.sooner(
                _curve(ours), _curve(alt), self.measured, names=("O-FW", "active ALT"),
                within=COMPARABLE, level=SAME_LEVEL * best, constant=constant,
                **self._named(
                    "comparable-to-alt",
                    "O-FW reaches the best MSE level of active ALT in a comparable time",
                ),
            ),
            replace(same, measured=same.measured + when),
        ]  # fmt: skip

    def _of_all_seeds(self, records: Records, name: str) -> tuple[Array, Array]:
        """Return the rounds looked at, and a row of values for each seed, all positive."""
        ours = [record for run, record in records.items() if run.startswith("O-FW")]
        t, values = np.array(ours[0]["t"]), np.array([record[name] for record in ours])
        positive = (values > 0.0).all(axis=0)
        return t[positive], values[:, positive]

    def _named(self, what: str, statement: str) -> dict[str, Any]:
        return self.named(f"mc-{what}-{self.dataset}", statement, SOURCE)


def _ends(record: Record) -> dict[str, float]:
    """Return the best and the last value of a run, and how many seconds both took."""
    seconds, measure = record["seconds"], record["measure"]
    best = int(np.argmin(measure))
    return {
        "best": measure[best],
        "in seconds": seconds[best],
        "last": measure[-1],
        "after seconds": seconds[-1],
    }


def _curve(record: Record) -> tuple[Any, Any]:
    return record["seconds"], record["measure"]
