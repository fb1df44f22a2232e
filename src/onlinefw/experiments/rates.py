"""Table 1 and the theorems around it, in parts.

- "convex": anytime and regret rates of Table 1, Theorems 1 and 2 (``convex_rates``);
- "non-convex": duality gaps and stationarity, Theorem 3 (``nonconvex_rates``);
- "propositions": how fast the aggregated gradient becomes exact (``propositions``);
- and those of ``rate_parts``.
"""

from __future__ import annotations

from .convex_rates import ConvexRates
from .experiment import Experiment
from .nonconvex_rates import NonConvexRates
from .propositions import Propositions
from .rate_parts import PARTS, make_part

__all__ = ["DATASETS", "make", "usual_datasets"]

DATASETS = ("convex", "non-convex", "propositions", *PARTS)


def usual_datasets() -> list[str]:
    """Return all parts: nothing has to be downloaded."""
    return list(DATASETS)


def make(dataset: str, *, quick: bool, seeds: int | None) -> Experiment:
    """Return one part of the table, with 10 seeds (3 if quick) unless stated."""
    if dataset in PARTS:
        return make_part(dataset, quick=quick, seeds=seeds)
    seeds = (3 if quick else 10) if seeds is None else seeds
    if dataset == "convex":
        return ConvexRates(T=1_000 if quick else 10_000, seeds=seeds, quick=quick)
    if dataset == "non-convex":
        return NonConvexRates(T=600 if quick else 4_000, seeds=seeds, quick=quick)
    if dataset == "propositions":
        return Propositions(T=600 if quick else 5_000, seeds=seeds, quick=quick)
    raise ValueError(f"Table 1 has the parts {', '.join(DATASETS)}; there is no {dataset!r}")
