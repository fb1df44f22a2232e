"""Table 1 and the theorems around it, in parts.

- "convex": anytime and regret rates of Table 1, Theorems 1 and 2 (``convex_rates``);
- "non-convex": duality gaps and stationarity, Theorem 3 (``nonconvex_rates``);
- "propositions": how fast the aggregated gradient becomes exact (``propositions``);
- "growth": how its error depends on n, epsilon and min(m1, m2) (``error_growth``);
- "lemma": the gap's lower bound, in every round (``lemma``);
- "inexact": Theorem 2 for other exponents and step rules (``inexact_gradients``);
- "slow": where O-FW is slower than O-AW, or than 1 / t (``slow_instances``);
- "hybrid": the method of Garber and Hazan that the table quotes (``hybrid_rates``);
- "families": matrix completion with other observations (``observation_families``).
"""

from __future__ import annotations

from collections.abc import Callable

from .convex_rates import ConvexRates
from .error_growth import ErrorGrowth
from .experiment import Experiment
from .hybrid_rates import HybridRates
from .inexact_gradients import InexactGradients
from .lemma import Lemma
from .nonconvex_rates import NonConvexRates
from .observation_families import ObservationFamilies
from .propositions import Propositions
from .slow_instances import SlowInstances

__all__ = ["DATASETS", "make", "usual_datasets"]

DATASETS = (
    "convex",
    "non-convex",
    "propositions",
    "growth",
    "lemma",
    "inexact",
    "slow",
    "hybrid",
    "families",
)
#: The classes of the parts whose sizes are plain, with T of a quick and of a full run.
PLAIN: dict[str, tuple[Callable[..., Experiment], int, int]] = {
    "growth": (ErrorGrowth, 1, 2),
    "lemma": (Lemma, 200, 1_000),
    "inexact": (InexactGradients, 600, 4_000),
    "slow": (SlowInstances, 600, 4_000),
    "hybrid": (HybridRates, 600, 4_000),
    "families": (ObservationFamilies, 300, 8_000),
}


def usual_datasets() -> list[str]:
    """Return all parts: nothing has to be downloaded."""
    return list(DATASETS)


def make(dataset: str, *, quick: bool, seeds: int | None) -> Experiment:
    """Return one part of the table, with 10 seeds (3 if quick) unless stated."""
    seeds = (3 if quick else 10) if seeds is None else seeds
    if dataset == "convex":
        return ConvexRates(T=1_000 if quick else 10_000, seeds=seeds, quick=quick)
    if dataset == "non-convex":
        return NonConvexRates(T=600 if quick else 4_000, seeds=seeds, quick=quick)
    if dataset == "propositions":
        return Propositions(T=600 if quick else 5_000, seeds=seeds, quick=quick)
    if dataset in PLAIN:
        part, few, many = PLAIN[dataset]
        return part(T=few if quick else many, seeds=seeds, quick=quick)
    raise ValueError(f"Table 1 has the parts {', '.join(DATASETS)}; there is no {dataset!r}")
