"""Moves along a pair of atoms: one gives weight to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from ..atoms import Atom, DenseAtom, sparse_difference
from ..line_search import Line

__all__ = ["Exchanges"]


class Exchanges:
    """Lets an objective, which moves towards atoms, move along theta + c (new - old) as well.

    An objective that ``takes_changes`` of a few coordinates does it by ``begin_change`` and
    ``finish_change`` if the atoms are sparse.
    """

    takes_changes = False

    def exchange(self, new: Atom, old: Atom, step: float) -> None:
        """Let theta <- theta + step (new - old), with all predictions of the past."""
        objective: Any = self
        change = self._change(new, old)
        if change is None:
            objective.move(self._exchanged(new, old), step)
        else:
            objective.begin_change(*change)
            objective.finish_change(*change, step)

    def exchange_line(self, new: Atom, old: Atom) -> Line:
        """Return F along theta + c (new - old), with the intercept as it is."""
        objective: Any = self
        change = self._change(new, old)
        if change is None:
            return objective.line(self._exchanged(new, old))
        b = objective.intercept
        return objective.begin_change(*change, b)

    def _change(self, new: Atom, old: Atom) -> tuple[Array, Array] | None:
        return sparse_difference(new, old) if self.takes_changes else None

    def _exchanged(self, new: Atom, old: Atom) -> Atom:
        """Return theta + new - old: perhaps outside the set, but theta moves towards any point."""
        objective: Any = self
        point = np.array(objective.theta, dtype=float)
        new.add_to(point, 1.0)
        old.add_to(point, -1.0)
        return DenseAtom(point)
