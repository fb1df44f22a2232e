"""Table 1 and the theorems around it, in parts.

- "convex": anytime and regret rates of Table 1, Theorems 1 and 2 (``convex_rates``);
- "non-convex": duality gaps and stationarity, Theorem 3 (``nonconvex_rates``);
- "bounds": the theorems' bounds where they say something (``bounds``);
- "matrix": why matrix completion is slower than log t / t for long (``matrix_rate``);
- "propositions": how fast the aggregated gradient becomes exact (``propositions``);
- and those of ``rate_parts``.
"""

from __future__ import annotations

from .bounds import Bounds
from .convex_rates import ConvexRates
from .experiment import Experiment
from .matrix_rate import MatrixRate
from .nonconvex_rates import NonConvexRates
from .propositions import Propositions
from .rate_parts import PARTS, make_part
from .seeds import fresh_seeds

__all__ = ["DATASETS", "make", "usual_datasets"]

DATASETS = ("convex", "non-convex", "bounds", "matrix", "propositions", *PARTS)

#: Bounds are judged in every run, so few will do; slopes need many.
SEEDS = {"convex": 40, "non-convex": 40, "bounds": 3, "propositions": 30, "matrix": 5}
#: Their number was raised after a first run had left claims undecided: full runs take fresh ones.
RAISED = ("convex", "non-convex")


def usual_datasets() -> list[str]:
    """Return all parts: nothing has to be downloaded."""
    return list(DATASETS)


def make(dataset: str, *, quick: bool, seeds: int | None) -> Experiment:
    """Return one part of the table, with 3 seeds if quick, and as many as it needs if not."""
    if dataset not in DATASETS:
        raise ValueError(f"Table 1 has the parts {', '.join(DATASETS)}; there is no {dataset!r}")
    if dataset in PARTS:
        return make_part(dataset, quick=quick, seeds=seeds)
    if seeds is None:
        seeds = 3 if quick else SEEDS[dataset]
    used = fresh_seeds(seeds) if dataset in RAISED and not quick else range(seeds)
    if dataset == "convex":
        return ConvexRates(T=1_000 if quick else 10_000, seeds=used, quick=quick)
    if dataset == "non-convex":
        return NonConvexRates(T=600 if quick else 4_000, seeds=used, quick=quick)
    if dataset == "bounds":
        return Bounds(T=2_000 if quick else 10_000, seeds=seeds, quick=quick)
    if dataset == "matrix":
        return MatrixRate(T=2_000 if quick else 10_000, seeds=seeds, quick=quick)
    return Propositions(T=600 if quick else 5_000, seeds=seeds, quick=quick)
