"""The total loss of observed entries on a CUDA device, along a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy as cp
import numpy as np

from .._devices import to_host
from .._typing import Array
from .entry_kernels import THREADS, kernels

if TYPE_CHECKING:
    from .entries import CudaEntries

__all__ = ["CudaLine"]

#: So many blocks of threads add up at most; what they find is added up in order.
MOST_BLOCKS = 1024


class CudaLine:
    """The total loss along z + t (u_i v_j - z), and its slope.

    Parameters
    ----------
    entries : CudaEntries
        With predictions that are up to date.
    u, v : cupy.ndarray, optional
        The atom; without one there is only the loss at t = 0.
    """

    def __init__(
        self, entries: CudaEntries, u: Array | None = None, v: Array | None = None
    ) -> None:
        self._entries = entries
        run = kernels(entries.dtype.name)
        self._parts = []
        for part in entries.parts():
            at, direction = entries.predictions(part), None
            if u is not None:
                n, direction = at.size, cp.empty_like(at)
                run.directions(n, n, part["row"], part["col"], part["z"], u, v, direction)
            self._parts.append((at, direction, part["c"], part["s"]))
        if u is not None:
            entries.reads += 1
        self._known: dict[float, Array] = {}
        self.curvature = None
        if entries.quadratic and u is not None:
            self.curvature = float(self._at(0.0)[2])

    def value(self, t: float) -> float:
        """Return the total loss at t."""
        if self.curvature is None:
            return float(self._at(t)[0])
        start, slope, _ = self._at(0.0)
        return float(start + t * (slope + 0.5 * t * self.curvature))

    def slope(self, t: float) -> float:
        """Return its derivative at t."""
        if self.curvature is None:
            return float(self._at(t)[1])
        return float(self._at(0.0)[1] + t * self.curvature)

    def _at(self, t: float) -> Array:
        """Return loss, slope and (of a parabola) curvature at t."""
        if t not in self._known:
            self._known[t] = self._sums(t) if self._entries.kind >= 0 else self._own_sums(t)
        return self._known[t]

    def _sums(self, t: float) -> Array:
        entries, totals = self._entries, cp.zeros(3)
        for at, direction, c, s in self._parts:
            if at.size:
                blocks = min(MOST_BLOCKS, -(-at.size // THREADS))
                sums = cp.empty((blocks, 3))
                kernels(entries.dtype.name).line_sums(
                    blocks * THREADS, at.size, at, 0 if direction is None else direction, c, s,
                    float(t), entries.kind, entries.parameter, sums,
                )  # fmt: skip
                totals += sums.sum(axis=0)
        return to_host(totals)

    def _own_sums(self, t: float) -> Array:
        """Do that with a loss of the user's own, on the host."""
        loss, totals = self._entries.loss, np.zeros(3)
        for at, direction, c, s in self._parts:
            d = np.zeros(at.size) if direction is None else to_host(direction).astype(float)
            x, c, s = (to_host(values).astype(float) for values in (at, c, s))
            x = x + t * d
            totals[:2] += c @ loss.value(x, s), (c * loss.derivative(x, s)) @ d
        return totals
