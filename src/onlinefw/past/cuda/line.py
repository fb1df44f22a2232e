"""The total loss of observed entries on a GPU, along a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy as cp
import numpy as np

from ..._devices import to_host
from ..._typing import Array
from .entry_kernels import THREADS, kernels

if TYPE_CHECKING:
    from .entries import CudaEntries

__all__ = ["CudaLine"]

#: At most so many blocks of threads add up the losses; their sums are then added up in order.
MOST_BLOCKS = 1024


class CudaLine:
    """The same as :class:`~onlinefw.past.host.line.HostLine`; no pass is repeated."""

    def __init__(self, past: CudaEntries, u: Array | None = None, v: Array | None = None) -> None:
        self._past, self.parabola = past, None
        run = kernels(past.dtype.name)
        self._parts = []
        for part, first in zip(past._store.parts, (None, past.first), strict=True):
            at, direction = past.predictions(part), None
            if u is not None:
                n, direction = at.size, cp.empty_like(at)
                run.directions(n, n, *part[:3], u, v, direction)
            self._parts.append((at, direction, part[3], part[4], first))
        self._known: dict[float, Array] = {}
        if u is not None:
            past.reads += 1
            if past.quadratic:
                value, slope, curvature = self._at(0.0).tolist()
                self.parabola = value, slope, curvature

    def value(self, t: float) -> float:
        return float(self._at(t)[0])

    def slope(self, t: float) -> float:
        return float(self._at(t)[1])

    def _at(self, t: float) -> Array:
        """Return loss, slope and (of a parabola) curvature at t."""
        if t not in self._known:
            self._known[t] = self._sums(t) if self._past.kind >= 0 else self._own_sums(t)
        return self._known[t]

    def _sums(self, t: float) -> Array:
        past, totals = self._past, cp.zeros(3)
        for at, direction, c, s, first in self._parts:
            if at.size:
                blocks = min(MOST_BLOCKS, -(-at.size // THREADS))
                sums = cp.empty((blocks, 3))
                kernels(past.dtype.name).line_sums(
                    blocks * THREADS, at.size, at, 0 if direction is None else direction, c, s,
                    0 if first is None else first, float(t), past.kind, past.parameter, sums,
                )  # fmt: skip
                totals += sums.sum(axis=0)
        return to_host(totals)

    def _own_sums(self, t: float) -> Array:
        """Return loss and slope at t for a loss of the user's own, computed in this process."""
        loss, totals = self._past.loss, np.zeros(3)
        for at, direction, c, s, _ in self._parts:
            d = np.zeros(at.size) if direction is None else to_host(direction).astype(float)
            x, c, s = (to_host(values).astype(float) for values in (at, c, s))
            x = x + t * d
            totals[:2] += c @ loss.value(x, s), (c * loss.derivative(x, s)) @ d
        return totals
