"""The mean loss over observed entries, at theta and along a line from theta to an atom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .._threads import one_blas_thread
from .._typing import Array
from ..atoms import RankOne
from ..kernels import lines as kernels
from ..kernels.entries import QUADRATIC
from ..losses import Square
from .base import Line

if TYPE_CHECKING:
    from .entries import ObservedEntries

__all__ = ["entries_line", "mean_loss"]

#: Losses without a kernel are evaluated so many entries at a time: what numpy needs in between
#: stays in the cache.
CHUNK = 2**15


def mean_loss(objective: ObservedEntries) -> float:
    """Return F at the carried predictions, which must be up to date."""
    total = _constant(objective)
    with one_blas_thread():
        if objective._kind == QUADRATIC:
            total += sum(kernels.quadratic_total(p.c, p.s, p.g) for p in objective._store.parts)
        else:
            for part in _parts(objective):
                total += sum(_loss(objective, *chunk) for chunk in _chunks(*part))
    return float(total) / objective.total_weight


def entries_line(objective: ObservedEntries, atom: RankOne) -> Line:
    """Return F along theta + t (atom - theta); the carried predictions must be up to date."""
    dtype = objective.dtype
    u = (atom.scale * atom.u).astype(dtype)
    right = np.empty(atom.v.size, dtype)
    right[objective._store.rank] = atom.v
    if objective._kind == QUADRATIC:
        return _QuadraticLine(objective, u, right)
    return _GeneralLine(objective, u, right)


class _QuadraticLine:
    """A parabola: all that is needed comes from one read of the store."""

    def __init__(self, objective: ObservedEntries, u: Array, right: Array) -> None:
        blocks, sums = objective._store.blocks(), np.zeros(3)
        indptr, col, z, c, s, g = objective._store.bulk.arrays
        sums += kernels.quadratic_line(blocks, indptr, col, z, c, s, g, u, right).sum(axis=0)
        tail = objective._store.tail
        sums += kernels.tail_quadratic_line(
            tail.row, tail.col, tail.z, tail.c, tail.s, tail.g, u, right
        )
        objective.reads += 1
        sums[0] += _constant(objective)
        self._value, self._slope, self.curvature = (sums / objective.total_weight).tolist()

    def value(self, c: float) -> float:
        return self._value + c * (self._slope + 0.5 * c * self.curvature)

    def slope(self, c: float) -> float:
        return self._slope + c * self.curvature


class _GeneralLine:
    """Each evaluation reads the store once; the direction of every entry is found once."""

    curvature = None

    def __init__(self, objective: ObservedEntries, u: Array, right: Array) -> None:
        self._objective = objective
        blocks = objective._store.blocks()
        bulk, tail = objective._store.parts
        out = np.empty_like(bulk.z)
        kernels.directions(blocks, bulk.indptr, bulk.col, bulk.z, u, right, out)
        self._directions = [out, u[tail.row] * right[tail.col] - tail.z]
        objective.reads += 1

    def value(self, c: float) -> float:
        return self._mean(self._total_loss, c)

    def slope(self, c: float) -> float:
        built_in = self._objective._kind >= 0
        return self._mean(self._built_in_slope if built_in else self._own_slope, c)

    def _mean(self, total: Callable[..., float], t: float) -> float:
        """Sum ``total`` over the stores and the tail."""
        objective = self._objective
        with one_blas_thread():
            parts = zip(self._directions, _parts(objective), strict=True)
            result = sum(total(direction, *part, float(t)) for direction, part in parts)
        objective.reads += 1
        return result / objective.total_weight

    def _total_loss(self, direction: Array, x: Array, c: Array, s: Array, t: float) -> float:
        chunks = _chunks(direction, x, c, s)
        return sum(_loss(self._objective, x + t * d, c, s) for d, x, c, s in chunks)

    def _built_in_slope(self, direction: Array, x: Array, c: Array, s: Array, t: float) -> float:
        kind, parameter = self._objective._kind, self._objective._parameter
        return float(kernels.line_slope(kind, parameter, x, direction, c, s, t))

    def _own_slope(self, direction: Array, x: Array, c: Array, s: Array, t: float) -> float:
        slopes, chunks = self._objective._slopes, _chunks(direction, x, c, s)
        return sum(float(slopes(x + t * d, c, s) @ d) for d, x, c, s in chunks)


def _parts(objective: ObservedEntries) -> Iterator[tuple[Array, Array, Array]]:
    """Predictions, c and s of the bulk and the tail."""
    for part in objective._store.parts:
        yield objective._predictions(part), part.c, part.s


def _chunks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Pieces of arrays of equal length, in double precision."""
    for start in range(0, arrays[0].size, CHUNK):
        yield tuple(array[start : start + CHUNK].astype(float) for array in arrays)


def _loss(objective: ObservedEntries, x: Array, c: Array, s: Array) -> float:
    """The total loss of some entries, by the loss itself."""
    if objective._store.combine:  # c G(x) - s x
        return float(c @ objective.loss.value(x, 0.0) - s @ x)
    return float(c @ objective.loss.value(x, s))


def _constant(objective: ObservedEntries) -> float:
    """What the square loss adds to c x^2 / 2 - s x."""
    return 0.5 * objective._yy if type(objective.loss) is Square else 0.0
