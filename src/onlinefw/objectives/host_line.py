"""The total loss of observed entries, at theta and along a line from theta to an atom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .._threads import one_blas_thread
from .._typing import Array
from ..kernels import lines as kernels
from .base import Line

if TYPE_CHECKING:
    from .host_entries import HostEntries

__all__ = ["entries_line", "total_loss"]

#: Losses without a kernel are evaluated so many entries at a time: what numpy needs in between
#: stays in the cache.
CHUNK = 2**15


def total_loss(entries: HostEntries) -> float:
    """Return the loss at the carried predictions, which must be up to date.

    Of the square loss, without the squares of the values.
    """
    with one_blas_thread():
        if entries.quadratic:
            return float(sum(kernels.quadratic_total(p.c, p.s, p.g) for p in entries.store.parts))
        return sum(_loss(entries, *chunk) for part in _parts(entries) for chunk in _chunks(*part))


def entries_line(entries: HostEntries, u: Array, right: Array) -> Line:
    """Return the loss along z + t (u_i right_j - z); predictions must be up to date."""
    return (_QuadraticLine if entries.quadratic else _GeneralLine)(entries, u, right)


class _QuadraticLine:
    """A parabola: all that is needed comes from one read of the store."""

    def __init__(self, entries: HostEntries, u: Array, right: Array) -> None:
        blocks, sums = entries.store.blocks(), np.zeros(3)
        indptr, col, z, c, s, g = entries.store.bulk.arrays
        sums += kernels.quadratic_line(blocks, indptr, col, z, c, s, g, u, right).sum(axis=0)
        tail = entries.store.tail
        sums += kernels.tail_quadratic_line(
            tail.row, tail.col, tail.z, tail.c, tail.s, tail.g, u, right
        )
        entries.reads += 1
        self._value, self._slope, self.curvature = sums.tolist()

    def value(self, c: float) -> float:
        return self._value + c * (self._slope + 0.5 * c * self.curvature)

    def slope(self, c: float) -> float:
        return self._slope + c * self.curvature


class _GeneralLine:
    """Each evaluation reads the store once; the direction of every entry is found once."""

    curvature = None

    def __init__(self, entries: HostEntries, u: Array, right: Array) -> None:
        self._entries = entries
        blocks = entries.store.blocks()
        bulk, tail = entries.store.parts
        out = np.empty_like(bulk.z)
        kernels.directions(blocks, bulk.indptr, bulk.col, bulk.z, u, right, out)
        self._directions = [out, u[tail.row] * right[tail.col] - tail.z]
        entries.reads += 1

    def value(self, c: float) -> float:
        return self._sum(self._total_loss, c)

    def slope(self, c: float) -> float:
        built_in = self._entries.kind >= 0
        return self._sum(self._built_in_slope if built_in else self._own_slope, c)

    def _sum(self, total: Callable[..., float], t: float) -> float:
        """Sum ``total`` over the stores and the tail."""
        entries = self._entries
        with one_blas_thread():
            parts = zip(self._directions, _parts(entries), strict=True)
            result = sum(total(direction, *part, float(t)) for direction, part in parts)
        entries.reads += 1
        return result

    def _total_loss(self, direction: Array, x: Array, c: Array, s: Array, t: float) -> float:
        chunks = _chunks(direction, x, c, s)
        return sum(_loss(self._entries, x + t * d, c, s) for d, x, c, s in chunks)

    def _built_in_slope(self, direction: Array, x: Array, c: Array, s: Array, t: float) -> float:
        kind, parameter = self._entries.kind, self._entries.parameter
        return float(kernels.line_slope(kind, parameter, x, direction, c, s, t))

    def _own_slope(self, direction: Array, x: Array, c: Array, s: Array, t: float) -> float:
        slopes, chunks = self._entries.slopes, _chunks(direction, x, c, s)
        return sum(float(slopes(x + t * d, c, s) @ d) for d, x, c, s in chunks)


def _parts(entries: HostEntries) -> Iterator[tuple[Array, Array, Array]]:
    """Predictions, c and s of the bulk and the tail."""
    for part in entries.store.parts:
        yield entries.predictions(part), part.c, part.s


def _chunks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Pieces of arrays of equal length, in double precision."""
    for start in range(0, arrays[0].size, CHUNK):
        yield tuple(array[start : start + CHUNK].astype(float) for array in arrays)


def _loss(entries: HostEntries, x: Array, c: Array, s: Array) -> float:
    """The loss of some entries, by the loss itself."""
    if entries.combine:  # c G(x) - s x
        return float(c @ entries.loss.value(x, 0.0) - s @ x)
    return float(c @ entries.loss.value(x, s))
