"""The parts of Table 1 whose size is a number of rounds alone.

- "growth": how the gradient error depends on n, epsilon and min(m1, m2) (``error_growth``);
- "lemma": the gap's lower bound, in every round (``lemma``);
- "inexact": Theorem 2 for other exponents and step rules (``inexact_gradients``);
- "slow": where O-FW is slower than O-AW, or than 1 / t (``slow_instances``);
- "hybrid": the method of Garber and Hazan that the table quotes (``hybrid_rates``);
- "families": matrix completion with other observations (``observation_families``).
"""

from __future__ import annotations

from collections.abc import Callable

from .error_growth import ErrorGrowth
from .experiment import Experiment
from .hybrid_rates import HybridRates
from .inexact_gradients import InexactGradients
from .lemma import Lemma
from .observation_families import ObservationFamilies
from .seeds import fresh_seeds
from .slow_instances import SlowInstances

__all__ = ["PARTS", "make_part"]

#: The class of each part; T of a quick and of a full run; the seeds of a full run.
PARTS: dict[str, tuple[Callable[..., Experiment], int, int, int]] = {
    "growth": (ErrorGrowth, 1, 2, 10),
    "lemma": (Lemma, 200, 1_000, 10),
    "inexact": (InexactGradients, 600, 4_000, 40),
    "slow": (SlowInstances, 600, 4_000, 10),
    "hybrid": (HybridRates, 600, 4_000, 40),
    "families": (ObservationFamilies, 300, 8_000, 10),
}


#: Their number of seeds was raised after a first run: a full run takes fresh ones.
RAISED = ("inexact", "hybrid")


def make_part(dataset: str, *, quick: bool, seeds: int | None) -> Experiment:
    """Return a part of the table, with as many seeds as it needs (3 if quick) unless stated."""
    part, few, many, needed = PARTS[dataset]
    seeds = (3 if quick else needed) if seeds is None else seeds
    used = fresh_seeds(seeds) if dataset in RAISED and not quick else range(seeds)
    return part(T=few if quick else many, seeds=used, quick=quick)
