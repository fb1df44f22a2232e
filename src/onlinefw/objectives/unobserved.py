"""Entries that were not observed and count as zeros (clicks): what an objective has to know."""

from __future__ import annotations

from abc import ABC
from math import inf, isfinite
from numbers import Real
from typing import Any

from .._typing import State
from ..atoms import RankOne
from ..iterates import LowRank
from ..losses import Loss, Square
from ..past.protocols import EntriesPast
from .background import Background, SquaredNorm

__all__ = ["UnobservedEntries", "check_unobserved"]


def check_unobserved(weight: Any, loss: Loss) -> float:
    """Return the weight of entries that were not observed, or say why there cannot be one."""
    is_number = isinstance(weight, Real) and not isinstance(weight, bool)
    if not is_number or not isfinite(weight) or weight < 0.0:
        raise ValueError(
            "unobserved must be the weight of an entry that was not observed, 0 or a positive "
            f"number, got {weight!r}"
        )
    if weight > 0.0 and type(loss) is not Square:
        raise ValueError(
            f"unobserved={weight} needs the square loss, got {loss}; use Square(), or unobserved=0"
        )
    return float(weight)


class UnobservedEntries(ABC):
    """The part of :class:`~onlinefw.objectives.ObservedEntries` that knows of all other entries.

    Each counts as a 0 of weight ``unobserved``. Their part of F_t is that of all entries, as a
    :class:`~onlinefw.objectives.background.Background`, less that of those that were observed,
    for which the past sees to it.
    """

    unobserved: float
    unit: Any
    _past: EntriesPast
    _norm: SquaredNorm
    _low_rank: Any
    _has_offsets: bool

    def _weigh_zeros(self) -> None:
        """Let the past know what a zero weighs: as much as ``unobserved`` new observations."""
        if self.unobserved > 0.0:
            self._past.set_unobserved(self._weight_of_zeros)

    @property
    def _weight_of_zeros(self) -> float:
        return self.unobserved * self.unit

    @property
    def total_weight_of_all(self) -> float:
        """What F_t is divided by: the weight of the observations and of all other entries."""
        past, weight = self._past, self._past.counts.weight
        if self.unobserved == 0.0:
            return weight
        m1, m2 = past.shape
        return weight + self._weight_of_zeros * (m1 * m2 - past.n_distinct())

    def _background(self, norm: SquaredNorm | None = None) -> Background | None:
        """Return the zeros everywhere; None if they do not count."""
        if self.unobserved == 0.0:
            return None
        return self._background_of(self._low_rank, norm or self._norm)

    def _background_of(self, theta: LowRank, norm: SquaredNorm) -> Background:
        past = self._past
        offsets = (past.row_offset, past.col_offset) if self._has_offsets else None
        return Background(self._weight_of_zeros, theta, offsets, norm)

    def _known_norm(self) -> float | None:
        """Return the squared norm of theta, if it is needed and known."""
        return self._norm.known(self._low_rank) if self.unobserved > 0.0 else None

    def _zeros_of(self, theta: LowRank) -> float:
        """Return what zeros everywhere add to the sum of losses of another theta."""
        return self._background_of(theta, SquaredNorm()).value if self.unobserved > 0.0 else 0.0

    def _with_zeros(
        self, parabola: tuple[float, float, float], atom: RankOne
    ) -> tuple[float, float, float]:
        """Return value, slope and curvature along a line, of observed and all other entries."""
        background = self._background(self._norm.copy())
        if background is None:
            return parabola
        value, slope, curvature = background.line(atom.scale * atom.u, atom.v)
        return parabola[0] + value, parabola[1] + slope, parabola[2] + curvature

    def _loaded_norm(self, state: State, theta: LowRank) -> SquaredNorm:
        """Return the squared norm of theta as a state has it; earlier versions had none."""
        square = state.get("squared_norm")
        if square is None:
            return SquaredNorm()
        if not (isinstance(square, float) and 0.0 <= square < inf):
            raise ValueError(f"the state of the entries is damaged: a squared norm of {square!r}")
        return SquaredNorm(float(square), theta)
