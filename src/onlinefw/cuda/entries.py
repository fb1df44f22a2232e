"""Observed entries on a CUDA device: their predictions, slopes and products."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy import sparse

from .._devices import to_host
from .._typing import Array, State
from ..iterates import LowRank
from ..losses import Loss
from ..objectives.host_entries import HostEntries
from ..objectives.stored_entries import StoredEntries
from .entry_kernels import LANES, THREADS, kernels
from .entry_store import CudaEntryStore
from .line import CudaLine
from .low_rank import CudaLowRank
from .regressions import CudaRegressions

__all__ = ["CudaEntries"]


#: What is known of an entry.
COLUMNS = ("row", "col", "z", "c", "s", "g")
#: So many blocks of threads add up Gram matrices.
GRAM_BLOCKS = 128


class CudaEntries(StoredEntries):
    """:class:`~onlinefw.objectives.stored_entries.StoredEntries` on a device.

    Vectors come and go as CuPy arrays; offsets, new entries and sums for biases as numpy arrays.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    dtype, loss
        As there.
    """

    store: CudaEntryStore

    def __init__(self, shape: tuple[int, int], dtype: Any, loss: Loss) -> None:
        super().__init__(dtype, loss)
        self._run = kernels(self.dtype.name)
        self.store = CudaEntryStore(shape, self.dtype, self.combine)
        self.set_offsets(*(np.zeros(n, self.dtype) for n in shape))
        self._moved = 0  # how many of the oldest in the tail have to follow a pending move

    @staticmethod
    def there(array: Array) -> Array:
        """Return an array where the entries are."""
        return cp.asarray(array)

    @staticmethod
    def theta_there(theta: LowRank) -> LowRank:
        """Return theta where the entries are."""
        return CudaLowRank.from_state(theta.state_dict())

    # Growing --------------------------------------------------------------------------------------

    def observe(self, theta: LowRank, rows: Array, cols: Array, w: Array, y: Array) -> Array:
        """Add entries with their weights and values; return theta there."""
        assert isinstance(theta, CudaLowRank)
        n = rows.size
        # Everything is sent in one piece: what a call costs is not the bytes.
        piece = np.empty(4 * n + theta.n_atoms, self.dtype)
        for start, index in ((0, rows), (n, cols)):
            piece[start : start + n].view(np.uint32)[:n] = index
        piece[2 * n : 3 * n], piece[3 * n : 4 * n] = w, (w * y if self.combine else y)
        piece[4 * n :] = theta.weights
        new = self.store.make_room(n)
        self._run.admit(
            32 * n, n, cp.asarray(piece), *theta.factors_there, theta.n_atoms,
            new["row"], new["col"], new["z"], new["c"], new["s"],
        )  # fmt: skip
        z = to_host(new["z"])
        self._have_come()
        return z

    def grow(self, m1: int, m2: int) -> None:
        """Make room for m1 rows and m2 columns."""
        self.settle()
        old1, old2 = self.shape
        self.store.grow(m1, m2)
        self._due = True
        grown = ((self.row_offset, m1 - old1), (self.col_offset, m2 - old2))
        self.set_offsets(*(np.pad(offset, (0, extra)) for offset, extra in grown))

    def set_offsets(self, rows: Array, columns: Array) -> None:
        """Predict theta[i, j] + rows[i] + columns[j] from now on."""
        self.row_offset, self.col_offset = np.array(rows, self.dtype), np.array(columns, self.dtype)
        self._offsets = cp.asarray(self.row_offset), cp.asarray(self.col_offset)
        self._due = True

    # Moving ---------------------------------------------------------------------------------------

    def _held(self, u: Array, v: Array) -> tuple[Array, Array]:
        there = cp.empty(u.size, self.dtype), cp.empty(v.size, self.dtype)
        u, v = (cp.ascontiguousarray(x, dtype=float) for x in (u, v))
        self._run.cast_pair(u.size + v.size, u.size, v.size, u, v, *there)
        return there

    def _nothing(self) -> tuple[Array, Array]:
        m1, m2 = self.shape
        return cp.zeros(m1, self.dtype), cp.zeros(m2, self.dtype)

    def _let_wait(self, keep: float, u: Array, v: Array) -> None:
        self._pending, self._moved = (keep, u, v), self.store.n_tail

    def place(self, theta: LowRank) -> None:
        """Z <- theta at every entry."""
        weights = cp.asarray(theta.weights.astype(self.dtype))
        self._move_now(0.0, theta.left, theta.right * weights)
        self._pending = None

    def _move_now(self, keep: float, left: Array, right: Array) -> None:
        left, right = (cp.ascontiguousarray(x, self.dtype) for x in (left, right))
        store, tail, n = self.store, self.store.tail, self.store.n_tail
        factors = (self.dtype.type(keep), left, right, left.shape[1])
        self._run.factor_segments(
            32 * store.rows.n, *store.rows.bounds, store.rows.row, store.col, store.z, *factors
        )
        self._run.tail_factor(n, n, tail["row"], tail["col"], tail["z"], *factors)
        self.reads += 1
        self._due = True

    def settle(self) -> None:
        """Carry a pending move out and renew the slopes, without a product."""
        if self._pending is not None or self._due:
            self._renew(None)
            self.store.g.take(self.store.by_column, out=self.store.g_by_column)

    # Products with the slopes ---------------------------------------------------------------------

    def read(self, v: Array, row_scale: Array | None) -> tuple[Array, Array, Array]:
        """Carry out what is pending; return G V, G' (row_scale G V) and the parts of <z, g>.

        V is a block of at most eight columns; without a ``row_scale`` it is 1 for all rows.
        """
        k, store = v.shape[1], self.store
        block = v.astype(self.dtype) if k == LANES else cp.zeros((v.shape[0], LANES), self.dtype)
        if k < LANES:
            block[:, :k] = v
        y, z_dot_g = self._renew(block)
        assert y is not None
        self._add_tail(y, block, transposed=False)
        scaled = y if row_scale is None else row_scale[:, None] * y
        w = store.columns.gathered_block(
            store.row_by_column, store.by_column, store.g, store.g_by_column, scaled
        )
        self._add_tail(w, scaled, transposed=True)
        return y[:, :k], w[:, :k].astype(float), z_dot_g

    def _renew(self, block: Array | None) -> tuple[Array | None, Array]:
        """Carry out what is pending, renew the slopes; multiply a block on the way.

        Returns the product of the sorted entries, and <z, g> by segment. The slopes are in the
        order of rows only.
        """
        keep, u, v = self._pending or (1.0, None, None)
        self._pending, self._due = None, False
        store, tail, n = self.store, self.store.tail, self.store.n_tail
        sums: Any = None if block is None else cp.empty((store.rows.n, LANES), self.dtype)
        z_dot_g = cp.zeros(store.rows.n + 1)  # the last one is for the tail
        own_loss = self.kind < 0
        self._run.move_and_multiply(
            32 * store.rows.n, *store.rows.bounds, store.rows.row, store.col,
            store.z, store.c, store.s, store.g, self.dtype.type(keep), *map(_or_null, (u, v)),
            *self._offsets, max(self.kind, 0), self.parameter,
            _or_null(None if own_loss else block), _or_null(sums), z_dot_g,
        )  # fmt: skip
        self._run.tail_slopes(
            n, n, 0 if u is None else self._moved, tail["row"], tail["col"], tail["z"],
            tail["c"], tail["s"], tail["g"], self.dtype.type(keep), *map(_or_null, (u, v)),
            *self._offsets, max(self.kind, 0), self.parameter, z_dot_g[-1:],
        )  # fmt: skip
        if own_loss:
            z_dot_g = self._renew_by_loss()
        self.reads += 1
        if block is None:
            return None, z_dot_g
        if own_loss:
            return store.rows.block(store.col, store.g, block), z_dot_g
        return store.rows.added_up(sums), z_dot_g

    def _renew_by_loss(self) -> Array:
        """Renew the slopes by a loss of the user's own, on the host."""
        for part in self.parts():
            at, c, s = (to_host(x) for x in (self.predictions(part), part["c"], part["s"]))
            part["g"][:] = cp.asarray((c * self.loss.derivative(at, s)).astype(self.dtype))
        return cp.concatenate([part["z"].astype(float) * part["g"] for part in self.parts()])

    def predictions(self, part: dict[str, Array]) -> Array:
        """Return theta plus offsets at the entries of a part of the store."""
        rows, columns = self._offsets
        return part["z"] + (rows[part["row"]] + columns[part["col"]])

    def parts(self) -> list[dict[str, Array]]:
        """The sorted entries and the tail, by name."""
        return [{name: getattr(self.store, name) for name in COLUMNS}, self.store.tail]

    def _add_tail(self, y: Array, x: Array, transposed: bool) -> None:
        """Y += G X over the tail (W += G' X, transposed)."""
        tail, n = self.store.tail, self.store.n_tail
        to, source = ("col", "row") if transposed else ("row", "col")
        lanes = 1 if x.ndim == 1 else x.shape[1]
        self._run.tail_multiply(n * lanes, n, lanes, tail[to], tail[source], tail["g"], x, y)

    def normal(self, v: Array, row_scale: Array | None) -> tuple[Array, Array]:
        """Return G v and G' (row_scale G v)."""
        store, x = self.store, v.astype(self.dtype)
        y = store.rows.dots(store.col, store.g, x)
        self._add_tail(y, x, transposed=False)
        scaled = y if row_scale is None else row_scale * y
        w = store.columns.dots(store.row_by_column, store.g_by_column, scaled)
        self._add_tail(w, scaled, transposed=True)
        self.reads += 1
        return y, w

    def brought_home(
        self, v: Array, w: Array, y: Array, z_dot_g: Array
    ) -> tuple[Array, Array | None, Array | None, float]:
        """Return V' W, W' W and Y' Y on the host, and <z, g>: in one piece, since calls cost."""
        k = v.shape[1]
        if k < LANES or self.dtype == np.float64:
            # Squares of doubles would lose what the smallest singular values are made of.
            return to_host(v.T @ w), None, None, float(z_dot_g.sum())
        (m1, m2), blocks = self.shape, GRAM_BLOCKS
        parts, numbers = cp.empty((3 * LANES * LANES, blocks)), cp.empty(3 * LANES * LANES + 1)
        v, w, y = (cp.ascontiguousarray(x) for x in (v, w, y))
        self._run.grams(blocks * THREADS, m1, m2, v, w, y, blocks, parts)
        self._run.add_parts(
            numbers.size * THREADS, numbers.size - 1, blocks, parts, z_dot_g.size, z_dot_g, numbers
        )
        found = to_host(numbers)
        overlap, gram, left_gram = found[:-1].reshape(3, LANES, LANES)
        return overlap, gram, left_gram, float(found[-1])

    def mixed(self, y: Array, to_left: Array, w: Array, to_right: Array) -> tuple[Array, Array]:
        """Return Y to_left and W to_right, in double precision."""
        if y.shape[1] < LANES or y.dtype != np.float32 or w.dtype != np.float64:
            return y.astype(float) @ cp.asarray(to_left), w @ cp.asarray(to_right)
        m1, m2, k = y.shape[0], w.shape[0], to_right.shape[1]
        factors = cp.asarray(np.concatenate((to_left, to_right.T.reshape(-1))))
        u, right = cp.empty(m1), cp.empty((m2, k))
        self._run.mix(m1 + m2, m1, m2, k, y, w, factors, u, right)
        return u, right

    def forward(self, v: Array) -> Array:
        """Return G V, in double precision."""
        self.reads += 1
        return self._matrix("g") @ cp.asarray(v, dtype=float)

    def backward(self, u: Array) -> Array:
        """Return G' U, in double precision."""
        self.reads += 1
        return self._matrix("g").T @ cp.asarray(u, dtype=float)

    def _matrix(self, name: str) -> Any:
        """Return g or c as a sparse matrix, in double precision."""
        bulk, tail = self.parts()
        row, col, values = (cp.concatenate((bulk[x], tail[x])) for x in ("row", "col", name))
        where = (row.astype(cp.int32), col.astype(cp.int32))
        return sparse.coo_matrix((values.astype(float), where), shape=self.shape).tocsr()

    def squared_norms(self) -> tuple[float, float]:
        """Return those of the slopes, sorted ones and newest; infinite where repeats are apart."""
        if not self.combine:
            return np.inf, np.inf
        bulk, tail = self.parts()
        newest = self._by_entry(tail, "g")
        return float(cp.sum(cp.square(bulk["g"].astype(float)))), float(newest @ newest)

    def _by_entry(self, part: dict[str, Array], name: str) -> Array:
        """Return the sums of c or g of every entry of a part, which may stand there repeatedly."""
        if part["row"].size == 0:
            return cp.zeros(1)
        keys = part["row"].astype(cp.int64) * self.shape[1] + part["col"]
        return cp.bincount(cp.unique(keys, return_inverse=True)[1], part[name])

    def dense_slopes(self) -> Array:
        """Return the slopes as a matrix, on the host."""
        slopes = np.zeros(self.shape)
        np.add.at(slopes, self.store.rows_and_columns(), self.store.carried("g"))
        return slopes

    # Other sums -----------------------------------------------------------------------------------

    def total_loss(self) -> float:
        """Return the total loss; of the square loss, without the squares of the values."""
        self.settle()
        return CudaLine(self).value(0.0)

    def line(self, u: Array, v: Array) -> CudaLine:
        """Return the total loss along z + t (u_i v_j - z)."""
        self.settle()
        return CudaLine(self, u.astype(self.dtype), v.astype(self.dtype))

    def heaviest_parts(self) -> tuple[float, float]:
        """Return the largest total weight of one entry, sorted ones and newest."""
        bulk, tail = self.parts()
        once = self.combine and self.n_sorted > 0  # an entry stands there once
        weights = bulk["c"] if once else self._by_entry(bulk, "c")
        return float(weights.max()), float(self._by_entry(tail, "c").max())

    def weighted_sums(
        self, rows: Array, columns: Array, with_theta: bool = False
    ) -> tuple[Array, Array]:
        """Return the sums of w * columns[j] in every row, and of w * rows[i] in every column."""
        if with_theta and self._pending is not None:
            self.settle()
        self.reads += 1
        bulk, tail = self.parts()
        there, sums = (cp.asarray(rows, dtype=float), cp.asarray(columns, dtype=float)), []
        for this, other, value, segments in (
            ("row", "col", there[1], self.store.rows),
            ("col", "row", there[0], self.store.columns),
        ):
            parts = []
            for part in (bulk, tail):
                theta = part["z"].astype(float) if with_theta else 0.0
                parts.append(part["c"] * (value[part[other]] + theta))
            ordered = parts[0] if this == "row" else parts[0][self.store.by_column]
            total = segments.sums(ordered.astype(float))
            if self.store.n_tail:
                total += cp.bincount(tail[this], parts[1], minlength=total.size)
            sums.append(to_host(total))
        return sums[0], sums[1]

    def weighted_products(self, v: Array) -> Array:
        """Return W V for a block of columns, where W holds the weights."""
        self.reads += 1
        return self._matrix("c") @ cp.asarray(v, dtype=float)

    def _newest(self, theta: LowRank | None, since: int) -> tuple[Array, Array, Array]:
        self._move_tail()
        part = {name: values[since:] for name, values in self.store.tail.items()}
        if theta is not None:
            assert isinstance(theta, CudaLowRank)
            part["z"] = theta.entries_there(part["row"], part["col"])
        return to_host(self.predictions(part)), to_host(part["c"]), to_host(part["s"])

    def regressions_of_sorted(self) -> CudaRegressions:
        """Return the regressions of what has been sorted in, just after a merge."""
        return CudaRegressions(self.store, *self._offsets)

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        store, tail = self.store, self.store.tail
        start, end = (int(x) for x in store.indptr[row : row + 2])
        found = store.col[start:end], tail["col"][tail["row"] == row]
        return np.unique(to_host(cp.concatenate(found)))

    def seen(self) -> tuple[Array, Array]:
        """Return the columns in which each row has been observed, increasing: indptr, columns."""
        return self.on_host().seen()

    def on_host(self) -> HostEntries:
        """Return the same entries in this process's memory."""
        entries = HostEntries(self.shape, self.dtype, self.loss)
        entries.load_state(self.state_dict())
        return entries

    # State ----------------------------------------------------------------------------------------

    def columns(self) -> tuple[list[Array], list[Array]]:
        """Return row, column, z, c, s and g of the sorted entries, and of the newest.

        A pending move is carried out in what is returned, and in the tail.
        """
        self._move_tail()
        bulk, tail = self.parts()
        if self._pending is not None:
            keep, u, v = self._pending
            bulk["z"] = self.dtype.type(keep) * bulk["z"] + u[bulk["row"]] * v[bulk["col"]]
        newest = [to_host(tail[name]) for name in COLUMNS]
        return [to_host(bulk[name]) for name in COLUMNS], newest

    def state_dict(self) -> State:
        """Return everything as the host's entries would, in numpy arrays."""
        self._move_tail()
        pending = self._pending
        if pending is not None:
            pending = (pending[0], *(to_host(x) for x in pending[1:]))  # type: ignore[assignment]
        return {
            "store": self.store.state_dict(),
            "pending": None if pending is None else list(pending),
            "due": self._due,
            "offset": [self.row_offset.copy(), self.col_offset.copy()],
            "reads": self.reads,
        }

    def _move_tail(self) -> None:
        """Carry a pending move out in the tail, as the host does at once."""
        if self._pending is not None and self._moved:
            keep, u, v = self._pending
            part = {name: values[: self._moved] for name, values in self.store.tail.items()}
            part["z"] *= self.dtype.type(keep)
            part["z"] += u[part["row"]] * v[part["col"]]
            self._moved = 0

    def load_state(self, state: State) -> None:
        """Take over what this or the host's ``state_dict`` described."""
        self.store = CudaEntryStore.from_state(state["store"], self.dtype, self.combine)
        self.set_offsets(*state["offset"])
        if state["pending"] is not None:
            keep, u, right = state["pending"]
            self._pending = (float(keep), cp.asarray(u), cp.asarray(right[state["store"]["rank"]]))
        self._due, self.reads = bool(state["due"]), int(state["reads"])


def _or_null(array: Array | None) -> Any:
    """Return an array, or the null pointer."""
    return 0 if array is None else array
