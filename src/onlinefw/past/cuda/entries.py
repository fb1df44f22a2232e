"""Observed entries on a GPU: their predictions, slopes and products."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy import sparse

from ..._devices import to_host
from ..._typing import Array
from ...iterates import LowRank
from ...losses import Loss
from ..stored_entries import NONE, StoredEntries
from ..unobserved import Zeros
from .entry_kernels import LANES, THREADS, kernels
from .entry_store import CudaEntryStore
from .line import CudaLine
from .low_rank import CudaLowRank
from .regressions import CudaRegressions

__all__ = ["CudaEntries"]

#: The number of blocks of threads that add up Gram matrices.
GRAM_BLOCKS = 128
#: The positions of row, col, z, c, s and g in a part of the entries; the tail has more.
ROW, COL, Z, C, S, G, FIRST = range(7)


class CudaEntries(StoredEntries):
    """:class:`~onlinefw.past.protocols.EntriesPast` on a device.

    Vectors are passed as CuPy arrays; offsets, new entries and sums for biases as numpy arrays.
    """

    theta: CudaLowRank
    _store: CudaEntryStore
    _line_class = CudaLine
    _changed_by_growth = (*StoredEntries._changed_by_growth, "_offsets")

    def __init__(self, theta: LowRank, dtype: Any, loss: Loss) -> None:
        super().__init__(theta, dtype, loss)
        self._run = kernels(self.dtype.name)
        self._store = CudaEntryStore.empty(theta.shape, self.dtype)
        m1, m2 = theta.shape
        self.set_offsets(np.zeros(m1, self.dtype), np.zeros(m2, self.dtype))
        self._y: Any = None  # G V of the last read

    # Growing --------------------------------------------------------------------------------------

    def append(self, rows: Array, cols: Array, w: Array, y: Array, z: Array | None = None) -> Array:
        self._line = self._regressions = None
        n, theta, store = rows.size, self.theta, self._store
        # Everything is sent in one array: calls take the time, not bytes.
        k = theta.n_atoms if z is None else 0
        piece = np.empty(4 * n + k, self.dtype)
        for start, index in ((0, rows), (n, cols)):
            piece[start : start + n].view(np.uint32)[:n] = index
        piece[2 * n : 3 * n], piece[3 * n : 4 * n] = w, (w * y if self.sums_repeats else y)
        if k:
            piece[4 * n :] = theta.weights
        tail, new = store.tail.lengthened(n)
        self._run.admit(
            32 * n, n, cp.asarray(piece), *theta.device_factors, k,
            new[ROW], new[COL], new[Z], new[C], new[S],
        )  # fmt: skip
        if z is None:
            z = to_host(new[Z])
        else:
            new[Z][:] = cp.asarray(z, dtype=self.dtype)
        if self.unobserved > 0.0:
            new[FIRST][:] = store.first(new[ROW], new[COL], *store.tail.arrays[:2])
        self._due = True
        self._store = CudaEntryStore(store.sorted, tail, store.counts.plus(w, y))
        return z

    def _merge(self, n: int) -> None:
        if n:
            self._store = self._store.merged(n, self.sums_repeats)

    def set_offsets(self, rows: Array, columns: Array) -> None:
        self._line = self._regressions = None
        rows, columns = np.array(rows, self.dtype), np.array(columns, self.dtype)
        device = cp.asarray(rows), cp.asarray(columns)
        self._due = True
        self.row_offset, self.col_offset, self._offsets = rows, columns, device

    # Moving ---------------------------------------------------------------------------------------

    def _image(self, u: Array | None, v: Array | None) -> tuple[Any, Any]:
        if u is None or v is None:
            m1, m2 = self.shape
            return cp.zeros(m1, self.dtype), cp.zeros(m2, self.dtype)
        image = cp.empty(u.size, self.dtype), cp.empty(v.size, self.dtype)
        u, v = (cp.ascontiguousarray(cp.asarray(x), dtype=float) for x in (u, v))
        self._run.cast_pair(u.size + v.size, u.size, v.size, u, v, *image)
        return image

    def _carry_out(self) -> None:
        self._renew_slopes(None)
        self._due = True

    def _predict(self) -> None:
        theta, held, n = self.theta, self._store.sorted, self.n_newest
        weights = cp.asarray(theta.weights.astype(self.dtype))
        left = cp.ascontiguousarray(theta.left, self.dtype)
        right = cp.ascontiguousarray(theta.right * weights, self.dtype)
        row, col, z = self._store.tail.arrays[:3]
        factors = (self.dtype.type(0), left, right, left.shape[1])
        self._run.factor_segments(
            32 * held.rows.n, *held.rows.bounds, held.rows.row, held.col, held.z, *factors
        )
        self._run.tail_factor(n, n, row, col, z, *factors)

    def _renew(self) -> None:
        self._renew_slopes(None)
        held = self._store.sorted
        held.g.take(held.by_column, out=held.g_by_column)

    # Products with the slopes ---------------------------------------------------------------------

    def read(
        self, V: Array, row_scale: Array | None, plus: Array | None = None
    ) -> tuple[Array, Array]:
        self._line = self._regressions = None
        V = cp.asarray(V)
        k = V.shape[1]
        block = V.astype(self.dtype) if k == LANES else cp.zeros((V.shape[0], LANES), self.dtype)
        if k < LANES:
            block[:, :k] = V
        y, z_dot_g = self._renew_slopes(block)
        assert y is not None
        held = self._store.sorted
        self._add_tail(y, block, transposed=False)
        if plus is not None:
            y[:, :k] += cp.asarray(plus, dtype=self.dtype)
        scaled = y if row_scale is None else cp.asarray(row_scale)[:, None] * y
        w = held.columns.gathered_block(
            held.row_by_column, held.by_column, held.g, held.g_by_column, scaled
        )
        self._add_tail(w, scaled, transposed=True)
        self._y = y[:, :k]
        return w[:, :k].astype(float), z_dot_g

    def _renew_slopes(self, block: Array | None) -> tuple[Array | None, Array]:
        """Carry out a move that waits, renew the slopes and multiply a block, in one read.

        Return the product of the sorted entries with the block, and <z, g> by segment. Only the
        slopes in the order of rows are renewed, not those in the order of columns.
        """
        if self._version != self.theta.version:
            self.refresh()
        keep, (u, v), count = self._pending or (1.0, (None, None), 0)
        held, n = self._store.sorted, self.n_newest
        moved = 0 if u is None else count - held.size
        row, col, z, c, s, g, _ = self._store.tail.arrays
        sums: Any = None if block is None else cp.empty((held.rows.n, LANES), self.dtype)
        z_dot_g = cp.zeros(held.rows.n + 1)  # the last one is for the tail
        own_loss = self.kind < 0
        version, self._version = self._version, NONE
        self._run.move_and_multiply(
            32 * held.rows.n, *held.rows.bounds, held.rows.row, held.col,
            held.z, held.c, held.s, held.g, self.dtype.type(keep), *map(_or_null, (u, v)),
            *self._offsets, max(self.kind, 0), self.parameter,
            _or_null(None if own_loss else block), _or_null(sums), z_dot_g,
        )  # fmt: skip
        self._run.tail_slopes(
            n, n, moved, row, col, z, c, s, g, _or_null(self.first), self.dtype.type(keep),
            *map(_or_null, (u, v)), *self._offsets, max(self.kind, 0), self.parameter, z_dot_g[-1:],
        )  # fmt: skip
        self._pending, self._due = None, False
        self._version = version
        if own_loss:
            z_dot_g = self._give_slopes()
        self.reads += 1
        if block is None:
            return None, z_dot_g
        if own_loss:
            return held.rows.block(held.col, held.g, block), z_dot_g
        return held.rows.added_up(sums), z_dot_g

    def _give_slopes(self) -> Array:
        """Compute slopes with a loss of the user's own, in this process; return all z g."""
        products = []
        for part in self._store.parts:
            at, c, s = (to_host(x) for x in (self.predictions(part), part[C], part[S]))
            part[G][:] = cp.asarray((c * self.loss.derivative(at, s)).astype(self.dtype))
            products.append(part[Z].astype(float) * part[G])
        return cp.concatenate(products)

    def predictions(self, part: tuple[Array, ...]) -> Array:
        """Return theta plus offsets at the entries of a part."""
        rows, columns = self._offsets
        return part[Z] + (rows[part[ROW]] + columns[part[COL]])

    def _add_tail(self, y: Array, x: Array, transposed: bool) -> None:
        """Let Y += G X over the tail (W += G' X, transposed)."""
        tail, n = self._store.tail.arrays, self.n_newest
        to, source = (COL, ROW) if transposed else (ROW, COL)
        lanes = 1 if x.ndim == 1 else x.shape[1]
        self._run.tail_multiply(n * lanes, n, lanes, tail[to], tail[source], tail[G], x, y)

    def overlaps(
        self, V: Array, W: Array, z_dot_g: Array
    ) -> tuple[Array, Array | None, Array | None, float]:
        """Return V'W, W'W, (G V)'(G V) and <z, g> on the host, in one call to save time."""
        k = V.shape[1]
        if k < LANES or self.dtype == np.float64:
            # Squares of doubles would lose what the smallest singular values are made of.
            return to_host(V.T @ W), None, None, float(z_dot_g.sum())
        (m1, m2), blocks = self.shape, GRAM_BLOCKS
        parts, numbers = cp.empty((3 * LANES * LANES, blocks)), cp.empty(3 * LANES * LANES + 1)
        v, w, y = (cp.ascontiguousarray(x) for x in (V, W, self._y))
        self._run.grams(blocks * THREADS, m1, m2, v, w, y, blocks, parts)
        self._run.add_parts(
            numbers.size * THREADS, numbers.size - 1, blocks, parts, z_dot_g.size, z_dot_g, numbers
        )
        found = to_host(numbers)
        overlap, gram, left_gram = found[:-1].reshape(3, LANES, LANES)
        return overlap, gram, left_gram, float(found[-1])

    def combine(self, to_left: Array, W: Array, to_right: Array) -> tuple[Array, Array]:
        y, wide = self._y, to_left.ndim > 1 or W.shape[0] != self.shape[1]
        if wide or y.shape[1] < LANES or y.dtype != np.float32 or W.dtype != np.float64:
            left = y.astype(float) @ cp.asarray(to_left, dtype=float)
            return left, cp.asarray(W) @ cp.asarray(to_right)
        W = cp.ascontiguousarray(W)
        m1, m2, k = y.shape[0], W.shape[0], to_right.shape[1]
        factors = cp.asarray(np.concatenate((to_left, to_right.T.reshape(-1))))
        u, right = cp.empty(m1), cp.empty((m2, k))
        self._run.mix(m1 + m2, m1, m2, k, y, W, factors, u, right)
        return u, right

    def normal(
        self, v: Array, row_scale: Array | None, plus: Array | None = None
    ) -> tuple[Array, Array]:
        held, x = self._store.sorted, cp.asarray(v).astype(self.dtype)
        y = held.rows.dots(held.col, held.g, x)
        self._add_tail(y, x, transposed=False)
        if plus is not None:
            y += cp.asarray(plus, dtype=self.dtype)
        scaled = y if row_scale is None else cp.asarray(row_scale) * y
        w = held.columns.dots(held.row_by_column, held.g_by_column, scaled)
        self._add_tail(w, scaled, transposed=True)
        self.reads += 1
        return y, w

    def forward(self, V: Array) -> Array:
        self.reads += 1
        return self._slope_matrix() @ cp.asarray(V, dtype=float)

    def backward(self, U: Array) -> Array:
        self.reads += 1
        return self._slope_matrix().T @ cp.asarray(U, dtype=float)

    def _slope_matrix(self) -> Any:
        """Return G as a sparse matrix, in double precision."""
        sorted_entries, tail = self._store.parts
        row, col, g = (cp.concatenate((sorted_entries[x], tail[x])) for x in (ROW, COL, G))
        where = (row.astype(cp.int32), col.astype(cp.int32))
        return sparse.coo_matrix((g.astype(float), where), shape=self.shape).tocsr()

    def squared_norms(self) -> tuple[float, float]:
        if not self.sums_repeats:
            return np.inf, np.inf
        sorted_entries, tail = self._store.parts
        newest = _by_entry(tail, G, self.shape[1])
        return float(cp.sum(cp.square(sorted_entries[G].astype(float)))), float(newest @ newest)

    def dense_slopes(self) -> Array:
        slopes, store = np.zeros(self.shape), self._store
        np.add.at(slopes, (store.values(ROW), store.values(COL)), store.values(G))
        return slopes

    # Other sums -----------------------------------------------------------------------------------

    def heaviest(self) -> tuple[float, float]:
        sorted_entries, tail = self._store.parts
        once = self.sums_repeats and self.n_sorted > 0  # then each entry is there once
        weights = sorted_entries[C] if once else _by_entry(sorted_entries, C, self.shape[1])
        return float(weights.max()), float(_by_entry(tail, C, self.shape[1]).max())

    def weighted_sums(self, rows: Array, columns: Array, with_theta: bool) -> tuple[Array, Array]:
        if with_theta and (self._pending is not None or self._version != self.theta.version):
            self._renew()
        self.reads += 1
        sorted_entries, tail = self._store.parts
        held, sums = self._store.sorted, []
        for this, other, given, segments in (
            (ROW, COL, columns, held.rows),
            (COL, ROW, rows, held.columns),
        ):
            value, parts = cp.asarray(given, dtype=float), []
            for part in (sorted_entries, tail):
                theta = part[Z].astype(float) if with_theta else 0.0
                parts.append(part[C] * (value[part[other]] + theta))
            ordered = parts[0] if this == ROW else parts[0][held.by_column]
            total = segments.sums(ordered.astype(float))
            if self.n_newest:
                total += cp.bincount(tail[this], parts[1], minlength=total.size)
            sums.append(to_host(total))
        return sums[0], sums[1]

    def _newest(self, theta: LowRank) -> tuple[Array, Array, Array]:
        assert isinstance(theta, CudaLowRank)
        row, col, _, c, s, *_ = self._store.tail.arrays
        z = theta.at_device(row, col)
        at = self.predictions((row, col, z))
        return to_host(at), to_host(c), to_host(s)

    def begin_regressions(self) -> None:
        zeros = Zeros(self.unobserved, *self._offsets) if self.unobserved > 0.0 else None
        self._regressions = CudaRegressions(self._store.sorted, *self._offsets, zeros)

    def columns_of(self, row: int) -> Array:
        held, (rows, cols) = self._store.sorted, self._store.tail.arrays[:2]
        start, end = (int(x) for x in held.indptr[row : row + 2])
        return np.unique(to_host(cp.concatenate((held.col[start:end], cols[rows == row]))))

    def seen(self) -> tuple[Array, Array]:
        store, (m1, m2) = self._store, self.shape
        rows = cp.concatenate([part[ROW] for part in store.parts]).astype(cp.int64)
        cols = cp.concatenate([part[COL] for part in store.parts]).astype(cp.int64)
        keys = to_host(cp.unique(rows * m2 + cols))
        rows, cols = np.divmod(keys, max(m2, 1))
        indptr = np.searchsorted(rows, np.arange(m1 + 1)).astype(np.int64)
        return indptr, cols.astype(np.uint32)


def _or_null(array: Array | None) -> Any:
    """Return an array, or the null pointer."""
    return 0 if array is None else array


def _by_entry(part: tuple[Array, ...], which: int, n_cols: int) -> Array:
    """Return the sums of c or g at every entry of a part, which may be there repeatedly."""
    if part[ROW].size == 0:
        return cp.zeros(1)
    keys = part[ROW].astype(cp.int64) * n_cols + part[COL]
    return cp.bincount(cp.unique(keys, return_inverse=True)[1], part[which])
