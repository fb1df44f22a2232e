"""The lemma under Theorem 2: the squared gap is at least 2 mu delta^2 h_t, in every round.

Problems: strongly convex quadratics with a known minimiser (``known_optimum``), 10 variables,
exact gradients, steps 2 / (t + 1):

- O-FW with the minimiser inside the l2 ball and inside the l1 ball, delta its distance from the
  boundary: g^FW(theta_t)^2 >= 2 mu delta^2 h_t;
- O-AW on the l1 ball with the minimiser on a face, and inside, delta the pyramidal width:
  g^AW(theta_t)^2 >= 2 mu delta^2 h_t, where the away vertex is the worst of the active ones.

The gaps are those that the learners report in each round t >= 2; h_t is exact. Reported beside:
the smallest g^FW^2 / (2 mu delta^2 h_t) of O-AW's iterates. The lemma says nothing about it on a
face: where it is below 1, away vertices are what the fast rate needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import verdicts
from .experiment import Advance, Record, Records
from .known_optimum import KnownOptimum, inside, nothing, on_a_face
from .rate_rows import TablePart
from .recorder import log_rounds, play
from .results import Claim, Series

__all__ = ["Lemma"]

SIZE = 10
#: h_t is not compared where it is below this share of h_2: there it is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Case:
    """An algorithm on a kind of problem."""

    id: str
    algorithm: str
    #: Set and minimiser, in words.
    about: str
    #: Which constant the lemma has for delta.
    delta: str
    #: Called with the seed.
    make: Callable[[int], KnownOptimum]

    @property
    def gap(self) -> str:
        """The gap that the lemma is about."""
        return "g^FW" if self.algorithm == "O-FW" else "g^AW"


CASES = (
    Case("ofw-l2", "O-FW", "inside the l2 ball", "delta", lambda seed: inside(SIZE, 0.3, seed)),
    Case(
        "ofw-l1",
        "O-FW",
        "inside the l1 ball",
        "delta",
        lambda seed: inside(SIZE, 0.1, seed, ball="l1"),
    ),
    Case(
        "oaw-face",
        "O-AW",
        "on a face of 5 vertices of the l1 ball",
        "width",
        lambda seed: on_a_face(SIZE, 5, 0.2, seed),
    ),
    Case(
        "oaw-l1",
        "O-AW",
        "inside the l1 ball",
        "width",
        lambda seed: inside(SIZE, 0.1, seed, ball="l1"),
    ),
)


class Lemma(TablePart):
    """Gaps beside what the lemma says they are at least."""

    dataset = "lemma"
    rows: Sequence[Case]

    def __init__(self, T: int, seeds: int, *, quick: bool):
        super().__init__(CASES, T, seeds, quick=quick)
        self.settings |= {"step": "2 / (t + 1)", "variables": SIZE, "gradients": "exact"}

    def play(self, row: Case, seed: int, advance: Advance) -> Record:
        """Play a case with one seed, and compare gap and h_t in every round."""
        problem = row.make(seed)
        trace = play(
            lambda: problem.learner(row.algorithm, 0.0, 1.0, 2, seed),
            nothing,
            self.T,
            {"h": problem.excess},
            advance,
            at=np.arange(1, self.T + 1),
        )
        scale = 2.0 * problem.constants["mu"] * problem.constants[row.delta] ** 2
        h = trace.looks["h"][1:]
        seen = h > ROUNDING * h[0]
        share = {
            name: np.square(gap[1:][seen]) / (scale * h[seen])
            for name, gap in (("own", trace.gap), ("fw", trace.fw_gap))
        }
        at = log_rounds(self.T) - 2
        tiny = np.finfo(float).tiny
        return {
            "t": (at + 2).tolist(),
            "squared gap": np.maximum(np.square(trace.gap[1:])[at], tiny).tolist(),
            "least": np.maximum(scale * h[at], tiny).tolist(),
            "smallest": float(share["own"].min()),
            "smallest_fw": float(share["fw"].min()),
            "rounds": int(seen.sum()),
            "constants": problem.constants,
        }

    def curves(self, records: Records) -> list[Series]:
        """Return the squared gaps and what they are at least, means over seeds."""
        series = []
        for row in self.rows:
            where = {"panel": f"Lemma, {row.algorithm}, {row.about}", "y_name": f"{row.gap}^2"}
            series += [
                self.mean(records, row, "squared gap", label=row.algorithm, **where),
                self.mean(records, row, "least", label=f"2 mu {row.delta}^2 h_t", **where),
            ]
        return series

    def claims(self, records: Records) -> list[Claim]:
        """Judge the lemma in every round."""
        claims = []
        for row in self.rows:
            named = self.named(
                f"t1-lemma-{row.id}",
                f"{row.algorithm}, strongly convex, minimiser {row.about}: {row.gap}^2 >= "
                f"2 mu {row.delta}^2 h_t in every round and for every seed",
                "Appendix, lemma on gap and h_t",
            )
            smallest = float(self.each(records, row.id, "smallest").min())
            what = f"smallest {row.gap}^2 / (2 mu {row.delta}^2 h_t)"
            claims.append(verdicts.at_least(smallest, 1.0, what, **named))
        return claims

    def extra(self, records: Records) -> dict[str, Any]:
        """Return how tight the lemma is, and whether g^FW alone would do."""
        return {
            "how tight the lemma is": [
                {
                    "algorithm": row.algorithm,
                    "minimiser": row.about,
                    "rounds compared": int(self.each(records, row.id, "rounds").sum()),
                    "smallest gap^2 / (2 mu delta^2 h)": float(
                        self.each(records, row.id, "smallest").min()
                    ),
                    "the same with g^FW": float(self.each(records, row.id, "smallest_fw").min()),
                }
                for row in self.rows
            ]
        }
