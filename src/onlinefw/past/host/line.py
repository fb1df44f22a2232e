"""The total loss of observed entries, at theta and along a line from theta to an atom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._threads import blocks_for, one_blas_thread, share
from ..._typing import Array
from ...kernels import lines as kernels

if TYPE_CHECKING:
    from .entries import HostEntries

__all__ = ["HostLine"]

#: Losses without a kernel are evaluated so many entries at a time, so that numpy's temporary arrays
#: stay in the cache.
CHUNK = 2**15


class HostLine:
    """The total loss along z + t (u_i v_j - z), and its slope; for the square loss, without y^2.

    Parameters
    ----------
    past : HostEntries
        With predictions and slopes that are up to date.
    u, v : ndarray, optional
        The atom; without one there is only the loss at t = 0.

    Attributes
    ----------
    parabola : (float, float, float) or None
        Value, slope and curvature at t = 0 of a quadratic loss, from one read of the entries. For
        other losses each evaluation reads the entries; their directions are computed once.
    """

    def __init__(self, past: HostEntries, u: Array | None = None, v: Array | None = None) -> None:
        self._past: HostEntries = past
        self.parabola: tuple[float, float, float] | None = None
        self._directions: list[Array] | None = None
        if u is None or v is None:
            return
        right = past._store.by_rank(v)
        if past.unobserved > 0.0:
            self.parabola = self._shifted(u, right)
        elif past.quadratic:
            self.parabola = self._find_parabola(u, right)
        else:
            self._directions = self._find_directions(u, right)
        past.reads += 1

    def _find_parabola(self, u: Array, right: Array) -> tuple[float, float, float]:
        store = self._past._store
        held, blocks = store.sorted, store.blocks()
        sums = np.zeros((len(blocks) - 1, 3))
        arrays = held.indptr, held.col, held.z, held.c, held.s, held.g
        share(kernels.quadratic_line, blocks, *arrays, u, right, sums)
        row, col, z, c, s, g, _ = store.tail.arrays
        newest = kernels.tail_quadratic_line(row, col, z, c, s, g, u, right)
        value, slope, curvature = (sums.sum(axis=0) + newest).tolist()
        return value, slope, curvature

    def _shifted(self, u: Array, right: Array) -> tuple[float, float, float]:
        """Return the same where entries that were not observed count, of the observed ones."""
        past, store = self._past, self._past._store
        held, blocks = store.sorted, store.blocks()
        sums = np.zeros((len(blocks) - 1, 3))
        less, rows = past.dtype.type(past.unobserved), past.row_offset
        columns = store.by_rank(past.col_offset)
        arrays = held.indptr, held.col, held.z, held.c, held.s, held.g
        share(kernels.shifted_line, blocks, *arrays, less, rows, columns, u, right, sums)
        row, col, z, c, s, g, first = store.tail.arrays
        newest = kernels.tail_shifted_line(
            row, col, z, c, s, g, first, less, rows, columns, u, right
        )
        value, slope, curvature = (sums.sum(axis=0) + newest).tolist()
        return value, slope, curvature

    def _find_directions(self, u: Array, right: Array) -> list[Array]:
        store, held = self._past._store, self._past._store.sorted
        row, col, z = store.tail.arrays[:3]
        out = np.empty_like(held.z)
        arrays = held.indptr, held.col, held.z, u, right, out
        share(kernels.directions, store.blocks(), *arrays)
        return [out, u[row] * right[col] - z]

    def value(self, t: float) -> float:
        """Return the total loss at t."""
        past = self._past
        with one_blas_thread():
            if self._directions is None:
                return self._value_here()
            past.reads += 1
            return sum(
                _loss(past, at + t * d, c, s)
                for direction, (at, c, s, _) in zip(self._directions, past.parts(), strict=True)
                for d, at, c, s in _chunks(direction, at, c, s)
            )

    def _value_here(self) -> float:
        past, store = self._past, self._past._store
        if past.unobserved > 0.0:
            return self._shifted(past._nothing, past._nothing)[0]
        if past.quadratic:
            parts = (store.sorted.c, store.sorted.s, store.sorted.g), store.tail.arrays[3:6]
            return sum(_summed(kernels.quadratic_total, *part) for part in parts)
        chunks = [chunk for at, c, s, _ in past.parts() for chunk in _chunks(at, c, s)]
        return sum(_loss(past, *chunk) for chunk in chunks)

    def slope(self, t: float) -> float:
        """Return its derivative at t."""
        assert self._directions is not None
        past, t = self._past, float(t)
        past.reads += 1
        with one_blas_thread():
            parts = zip(self._directions, past.parts(), strict=True)
            return sum(self._part_slope(d, at, c, s, t) for d, (at, c, s, _) in parts)

    def _part_slope(self, direction: Array, at: Array, c: Array, s: Array, t: float) -> float:
        past = self._past
        if past.kind >= 0:
            kind, parameter = past.kind, past.parameter
            return _summed(kernels.line_slope, at, direction, c, s, t, before=(kind, parameter))
        chunks = _chunks(direction, at, c, s)
        return sum(float(past.slopes(x + t * d, c, s) @ d) for d, x, c, s in chunks)


def _chunks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Yield pieces of arrays of equal length, in double precision."""
    for start in range(0, arrays[0].size, CHUNK):
        yield tuple(array[start : start + CHUNK].astype(float) for array in arrays)


def _loss(past: HostEntries, x: Array, c: Array, s: Array) -> float:
    """Return the total loss of some entries, without a kernel."""
    if past.sums_repeats:  # c G(x) - s x
        return float(c @ past.loss.value(x, 0.0) - s @ x)
    return float(c @ past.loss.value(x, s))


def _summed(kernel: Any, *arrays: Any, before: tuple[Any, ...] = ()) -> float:
    """Return the sum over all entries of what a kernel sums up by block."""
    blocks = blocks_for(len(arrays[0]), len(arrays[0]))
    sums = np.zeros(len(blocks) - 1)
    share(kernel, blocks, *before, *arrays, sums)
    return float(sums.sum())
