"""Observed entries in the memory of this process: their predictions, slopes and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._threads import blocks_for, share
from ..._typing import Array
from ...iterates import LowRank
from ...kernels import blocks as block_kernels
from ...kernels import entries as kernels
from ...kernels.lanes import LANES
from ...losses import Loss
from ..stored_entries import NONE, StoredEntries
from ..unobserved import Zeros
from .entry_store import EntryStore, Unfinished
from .line import HostLine
from .regressions import HostRegressions

__all__ = ["HostEntries"]

_NO_SCALE: dict[str, Array] = {name: np.empty(0, name) for name in ("float32", "float64")}


class HostEntries(StoredEntries):
    """:class:`~onlinefw.past.protocols.EntriesPast` in this process's memory.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.iterates import LowRank
    >>> from onlinefw.losses import Square
    >>> from onlinefw.past.host.entries import HostEntries
    >>> past = HostEntries(LowRank((2, 3)), float, Square())
    >>> past.append(np.array([0, 1]), np.array([2, 0]), np.ones(2), np.array([1.0, -4.0]))
    array([0., 0.])
    >>> W, z_dot_g = past.read(np.eye(3), None)
    >>> W.diagonal()  # of G'G, where G has the slopes -1 and 4
    array([16.,  0.,  1.])
    """

    _store: EntryStore
    _line_class = HostLine

    def __init__(self, theta: LowRank, dtype: Any, loss: Loss) -> None:
        super().__init__(theta, dtype, loss)
        self._store = EntryStore.empty(theta.shape, self.dtype)
        self.row_offset, self.col_offset = (np.zeros(n, self.dtype) for n in theta.shape)
        self._nothing = _NO_SCALE[self.dtype.name]
        self._y = np.empty((0, LANES), self.dtype)  # G V of the last read
        self._memory: tuple[Array, ...] = ()
        self._sizes: tuple[int, ...] = ()

    # Growing --------------------------------------------------------------------------------------

    def append(self, rows: Array, cols: Array, w: Array, y: Array, z: Array | None = None) -> Array:
        self._line = self._regressions = None
        z, store = self.theta.at(rows, cols) if z is None else z, self._store
        s = w * y if self.sums_repeats else y
        counts, finding = store.counts.plus(w, y), self.unobserved > 0.0
        store = store.extended(rows, cols, z, w, s, counts, finding)
        self._due = True
        self._store = store
        return z

    def _merge(self, n: int) -> None:
        if n:
            self._change(self._store.merged(n, self.sums_repeats))
        if self._store.wants_ranking:
            self._change(self._store.reranked())

    def _change(self, store: EntryStore | Unfinished) -> None:
        if isinstance(store, Unfinished):
            self._store = store  # type: ignore[assignment] # it acts as the old or the new one
            store = store.finish()
        self._store = store

    def set_offsets(self, rows: Array, columns: Array) -> None:
        self._line = self._regressions = None
        rows, columns = np.array(rows, self.dtype), np.array(columns, self.dtype)
        self._due = True
        self.row_offset, self.col_offset = rows, columns

    # Moving ---------------------------------------------------------------------------------------

    def _image(self, u: Array | None, v: Array | None) -> tuple[Array, Array]:
        if u is None or v is None:
            return self._nothing, self._nothing
        return u.astype(self.dtype), v.astype(self.dtype)

    def _carry_out(self) -> None:
        assert self._pending is not None
        keep, (u, v), count = self._pending
        version, self._version = self._version, NONE
        store, held = self._store, self._store.sorted
        right = store.by_rank(v) if v.size else v
        row, col, z = store.tail.arrays[:3]
        keep = self.dtype.type(keep)
        share(kernels.move_rows, store.blocks(), held.indptr, held.col, held.z, keep, u, right)
        kernels.move_tail(row, col, z, keep, u, right, count - held.size)
        self._pending, self._due = None, True
        self._version = version

    def _predict(self) -> None:
        theta, store, held = self.theta, self._store, self._store.sorted
        right = store.by_rank(theta.right * theta.weights.astype(self.dtype), self.dtype)
        left = np.ascontiguousarray(theta.left, self.dtype)
        row, col, z = store.tail.arrays[:3]
        arrays = held.indptr, held.col, left, right, held.z
        share(block_kernels.factor_rows, store.blocks(), *arrays)
        block_kernels.tail_factor(row, col, left, right, z)

    def _renew(self) -> None:
        self._read(np.zeros((self.shape[1], 1)), self._nothing)

    # Products with the slopes ---------------------------------------------------------------------

    def read(
        self, V: Array, row_scale: Array | None, plus: Array | None = None
    ) -> tuple[Array, float]:
        self._line = self._regressions = None
        return self._read(V, self._nothing if row_scale is None else row_scale, plus)

    def _read(self, V: Array, row_scale: Array, plus: Array | None = None) -> tuple[Array, float]:
        if self._version != self.theta.version:
            self.refresh()
        if self.kind < 0:  # a loss of the user's own: slopes by numpy, then the products
            if self._pending is not None:
                self._carry_out()
            for at, c, s, g in self.parts():
                g[:] = self.slopes(at, c, s)
        store = self._store
        held, rank, blocks = store.sorted, store.rank, store.blocks()
        keep, (u, v), count = self._pending or (1.0, (self._nothing, self._nothing), 0)
        if self._sizes != (len(blocks) - 1, *store.shape):
            self._reserve_memory(len(blocks) - 1, *store.shape)
        y, acc, columns, block = self._memory
        row, col, z, c, s, g, first = store.tail.arrays
        loss, keep = (self.kind, self.parameter), self.dtype.type(keep)
        version, self._version = self._version, NONE
        V = np.ascontiguousarray(V)
        z_dot_g = kernels.begin_read(
            row, col, z, c, s, g, first, rank, keep, u, v, count - store.n_sorted,
            self.row_offset, self.col_offset, *loss, V, columns, block, y, acc,
        )  # fmt: skip
        if plus is not None:
            y[:, : V.shape[1]] += plus
        sums = np.zeros(len(blocks) - 1)
        share(
            _FUSED[self.quadratic], blocks, held.indptr, held.col, held.z, held.c, held.s, held.g,
            keep, u, self.row_offset, columns, *loss, row_scale, block, y, acc, sums,
        )  # fmt: skip
        self._pending, self._due = None, False
        self._version = version
        self._y = y[:, : V.shape[1]]
        self.reads += 1
        W = kernels.end_read(row, col, g, rank, row_scale, y, acc, V.shape[1])
        return W, z_dot_g + sum(sums.tolist())

    def _reserve_memory(self, parts: int, m1: int, m2: int) -> None:
        """Reserve memory for G V, G' G V by thread, two numbers of each column, and V.

        Fresh pages for every read would cost more than the products.
        """
        shapes = (m1, LANES), (parts, m2, LANES), (m2, 2), (m2, LANES)
        self._memory = tuple([np.empty(shape, self.dtype) for shape in shapes])
        self._sizes = parts, m1, m2

    def parts(self) -> list[tuple[Array, Array, Array, Array]]:
        """Return predictions plus offsets, c, s and g: of the sorted entries, and of the tail."""
        store, held = self._store, self._store.sorted
        row, col, z, c, s, g, _ = store.tail.arrays
        at = held.z, z
        if self.row_offset.any() or self.col_offset.any():
            by_rank = store.by_rank(self.col_offset)
            at = (
                held.z + (self.row_offset[held.rows()] + by_rank[held.col]),
                z + (self.row_offset[row] + by_rank[col]),
            )
        return [(at[0], held.c, held.s, held.g), (at[1], c, s, g)]

    def overlaps(
        self, V: Array, W: Array, z_dot_g: float
    ) -> tuple[Array, Array | None, Array | None, float]:
        """Return V'W, None and None (W'W and (G V)'(G V) are not cheap here), and <z, g>."""
        return kernels.overlap(V, W), None, None, z_dot_g

    def combine(self, to_left: Array, W: Array, to_right: Array) -> tuple[Array, Array]:
        return (self._y @ to_left.astype(self.dtype)).astype(float), W @ to_right

    def normal(
        self, v: Array, row_scale: Array | None, plus: Array | None = None
    ) -> tuple[Array, Array]:
        store = self._store
        held, rank, blocks = store.sorted, store.rank, store.blocks()
        row_scale = self._nothing if row_scale is None else row_scale
        (m1, m2), (row, col, _, _, _, g, _) = store.shape, store.tail.arrays
        y, by_rank = np.empty(m1, self.dtype), np.empty(m2, self.dtype)
        acc = np.zeros((len(blocks) - 1, m2), self.dtype)
        kernels.begin_normal(row, col, g, rank, v, by_rank, y)
        if plus is not None:
            y += plus.astype(self.dtype)
        arrays = *held.products, row_scale, by_rank, y, acc
        share(kernels.normal, blocks, *arrays, self.sums_repeats)
        self.reads += 1
        return y, kernels.end_normal(row, col, g, rank, row_scale, y, acc)

    def forward(self, V: Array) -> Array:
        store, by_rank = self._store, self._store.by_rank(V, float)
        row, col, _, _, _, g, _ = store.tail.arrays
        y = np.zeros((self.shape[0], V.shape[1]))
        share(block_kernels.forward, store.blocks(), *store.sorted.products, by_rank, y)
        kernels.tail_forward(row, col, g, by_rank, y)
        self.reads += 1
        return y

    def backward(self, U: Array) -> Array:
        store, blocks = self._store, self._store.blocks()
        row, col, _, _, _, g, _ = store.tail.arrays
        y = np.ascontiguousarray(U, dtype=float)
        acc = np.zeros((len(blocks) - 1, self.shape[1], U.shape[1]))
        share(block_kernels.backward, blocks, *store.sorted.products, y, acc)
        w = acc.sum(axis=0)
        kernels.tail_backward(row, col, g, y, w)
        self.reads += 1
        return w[store.rank]

    def squared_norms(self) -> tuple[float, float]:
        if not self.sums_repeats:
            return np.inf, np.inf
        newest = self._store.newest_by_entry(self._store.tail.arrays[5])
        g = self._store.sorted.g
        blocks = blocks_for(g.size, g.size)
        sums = np.zeros(len(blocks) - 1)
        share(kernels.sum_of_squares, blocks, g, sums)
        return float(sums.sum()), float(newest @ newest)

    def dense_slopes(self) -> Array:
        slopes = np.zeros(self.shape)
        np.add.at(slopes, self._store.rows_and_columns(), self._store.values("g"))
        return slopes

    # Other sums -----------------------------------------------------------------------------------

    def heaviest(self) -> tuple[float, float]:
        store, held = self._store, self._store.sorted
        if self.sums_repeats:  # then each entry is there once
            total = float(held.c.max(initial=0.0))
        else:
            blocks = store.blocks()
            largest = np.zeros(len(blocks) - 1)
            share(block_kernels.heaviest, blocks, held.indptr, held.col, held.c, largest)
            total = float(largest.max())
        return total, float(store.newest_by_entry(store.tail.arrays[3]).max(initial=0.0))

    def weighted_sums(self, rows: Array, columns: Array, with_theta: bool) -> tuple[Array, Array]:
        if with_theta and (self._pending is not None or self._version != self.theta.version):
            self._renew()
        self.reads += 1
        return self._store.weighted_sums(rows, columns, float(with_theta))

    def _newest(self, theta: LowRank) -> tuple[Array, Array, Array]:
        store = self._store
        row, col, _, c, s, *_ = store.tail.arrays
        cols = np.argsort(store.rank)[col]
        at = theta.at(row, cols) + (self.row_offset[row] + self.col_offset[cols])
        return at, c, s

    def begin_regressions(self) -> None:
        store, held = self._store, self._store.sorted
        if self._pending is not None:
            self._carry_out()
        self._due = True  # the targets overwrite the slopes
        target = held.g
        share(
            kernels.targets, store.blocks(), held.indptr, held.col, held.c, held.s,
            self.dtype.type(self.unobserved), self.row_offset, store.by_rank(self.col_offset),
            target,
        )  # fmt: skip
        weight, zeros = held.c, None
        if self.unobserved > 0.0:
            weight = held.c - self.dtype.type(self.unobserved)
            zeros = Zeros(self.unobserved, self.row_offset, self.col_offset)
        elif held.size == 0 or held.c.min() == 1.0 == held.c.max():
            weight = held.c[:0]
        entries = held.indptr, held.col, weight, target
        self._regressions = HostRegressions(*entries, store.rank, zeros)

    def columns_of(self, row: int) -> Array:
        return self._store.columns_of(row)

    def seen(self) -> tuple[Array, Array]:
        return self._store.seen()


#: The fused kernel by whether the loss is quadratic.
_FUSED = {True: kernels.move_and_normal_quadratic, False: kernels.move_and_normal_general}
