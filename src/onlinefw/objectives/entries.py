"""The mean loss over the observed entries of a matrix, for matrix completion."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._state import describe, rebuild
from .._threads import one_blas_thread, threads_for
from .._typing import Array, Direction, Shape, State
from .._validation import (
    check_indices,
    check_magnitude,
    check_part,
    check_precision,
    check_targets,
    check_weights,
    check_whole,
)
from ..atoms import Atom, LowRankAtom, RankOne
from ..iterates import LowRank
from ..kernels import entries as kernels
from ..kernels.lanes import LANES
from ..losses import (
    Bernoulli,
    Correntropy,
    Exponential,
    Gaussian,
    Loss,
    Poisson,
    Square,
)
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall
from .base import Line, Objective
from .biases import RunningBiases
from .entries_gradient import EntriesGradient
from .entries_line import entries_line, mean_loss
from .entries_place import as_factors, heaviest_entry, move_entries, predict_entries
from .entry_store import NEWEST, EntryStore
from .row_loss import compiled
from .sorted_store import SortedStore
from .tail import Tail

__all__ = ["ObservedEntries"]

#: What the factors of theta may take before they are recompressed.
FACTOR_BYTES = 2**27

#: Losses for which repeated observations of one entry can be summed up: count and sum suffice.
_SUMMABLE = (Square, Gaussian, Bernoulli, Poisson, Exponential)


class ObservedEntries(Objective):
    """F_t(theta) = weighted mean of loss(theta[i, j], y) over every observed entry (i, j, y).

    The past is kept sorted by rows (columns in order of popularity), with new observations in a
    short tail that is merged now and then; each entry carries its prediction. The gradient is a
    sparse matrix that is never built: an operator whose products read the store once. theta is
    kept as :class:`~onlinefw.iterates.LowRank` factors.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    loss : Loss
        Any loss; for the square loss and the exponential families repeated observations of an
        entry are summed up, any other loss keeps each.
    dtype : dtype
        float32 (about 20 bytes per entry) or float64.
    growing : bool
        Accept indices beyond the shape: new rows and columns are zero until they are learned.
    offsets : RunningBiases, optional
        What is predicted besides theta: running row and column means, learned from the same
        stream. Gaps and certificates hold F_t to be a function of theta alone, with the offsets
        that it has now.
    max_atoms : int, optional
        How many rank-one terms theta holds before it is recompressed to half of them; by default
        what fits into 128 MB. Recompression loses nothing while twice the smaller side fits.
    lmo_steps : int
        Reads of the store per linear minimisation, at most: the first multiplies the eight best
        vectors of the round before, every further one is a Krylov step.
    lmo_tol : float
        Stop earlier when the last read has added less than this fraction of the duality gap to
        the step's value.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.ObservedEntries((3, 4), dtype=float)
    >>> learner = ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(2.0))
    >>> X = np.array([[0, 1], [2, 3], [1, 0]])  # (row, column) of each observation
    >>> learner.observe(X, np.array([1.0, -1.0, 0.5])).loss
    0.375
    >>> learner.theta.shape
    (3, 4)
    """

    exact_lmo = False

    def __init__(
        self,
        shape: Shape,
        loss: Loss = Square(),  # noqa: B008 (immutable)
        *,
        dtype: DTypeLike = np.float32,
        growing: bool = False,
        offsets: RunningBiases | None = None,
        max_atoms: int | None = None,
        lmo_steps: int = 5,
        lmo_tol: float = 0.1,
    ) -> None:
        check_part("loss", loss, Loss, "Square()")
        if np.shape(shape) != (2,) or min(shape) < 1:
            raise ValueError(f"shape must be (rows, columns), both positive, got {shape}")
        self.dtype: Any = check_precision(dtype)
        if max_atoms is not None:
            max_atoms = check_whole("max_atoms", max_atoms, 2, " or None")
        self.loss, self.growing, self.max_atoms = loss, bool(growing), max_atoms
        self.lmo_steps, self.lmo_tol = check_whole("lmo_steps", lmo_steps), float(lmo_tol)
        if offsets is not None:
            check_part("offsets", offsets, RunningBiases, "RunningBiases()")
        if offsets is not None and not isinstance(loss, (Square, Gaussian, Correntropy)):
            raise ValueError(
                f"means make sense as offsets of a regression loss, not of {loss}; use Square() or "
                "Correntropy(sigma), or leave offsets out"
            )
        self.offsets = offsets
        self.total_weight, self.reads, self.certificate_reads = 0.0, 0, 0
        self._kind, self._parameter = compiled(loss)
        combine = type(loss) in _SUMMABLE
        self._yy = 0.0  # the weighted sum of y^2, for the value of the square loss
        self._block: Array | None = None  # where the next linear minimisation starts
        self._pending: tuple[float, Array, Array] | None = None  # a move yet to be carried out
        self._due = True  # whether slopes have to be renewed
        self._renewals = 0
        self._buffers: dict[str, Array] = {}
        super().__init__(tuple(shape))
        m1, m2 = self._matrix_shape
        self._row_offset, self._col_offset = np.zeros(m1, self.dtype), np.zeros(m2, self.dtype)
        self._store = EntryStore((m1, m2), self.dtype, combine)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_buffers": {}}  # memory to work in, no state

    @property
    def _matrix_shape(self) -> tuple[int, int]:
        assert self.shape is not None
        return self.shape[0], self.shape[1]

    @property
    def _low_rank(self) -> LowRank:
        iterate = self.iterate
        assert isinstance(iterate, LowRank)
        return iterate

    @property
    def quadratic(self) -> bool:
        """Whether the loss is a parabola in the prediction."""
        return self._kind == kernels.QUADRATIC

    @property
    def n_entries(self) -> int:
        """How many entries are stored (repeated ones count until they are merged)."""
        return len(self._store)

    def _new_iterate(self, shape: Shape) -> LowRank:
        max_atoms, max_rank = self._atom_limits(shape)
        return LowRank(shape, max_atoms, max_rank=max_rank, dtype=self.dtype)

    def _atom_limits(self, shape: Shape) -> tuple[int, int | None]:
        """How many atoms theta may hold, and the rank that recompression keeps (None: all)."""
        lossless = max(8, 2 * min(shape))
        affordable = FACTOR_BYTES // (self.dtype.itemsize * sum(shape))
        limit = max(32, affordable) if self.max_atoms is None else self.max_atoms
        return (lossless, None) if lossless <= limit else (limit, limit // 2)

    def attach(self, owner: str, constraint: ConvexSet) -> None:
        """Claim this objective for one learner, on a trace-norm ball."""
        if not isinstance(constraint, (TraceNormBall, WeightedTraceNormBall)):
            raise ValueError(
                f"ObservedEntries keeps a low-rank theta, which needs a TraceNormBall, "
                f"got {constraint}"
            )
        super().attach(owner, constraint)

    # Observing ------------------------------------------------------------------------------------

    def working(self) -> AbstractContextManager[Any]:
        """Return a context for one round: BLAS threads would be in the way."""
        return one_blas_thread()

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Add observations: X is (n, 2) with row and column, y their values."""
        rows, cols = check_indices(X, self._matrix_shape, self.growing)
        y = check_targets(y, rows.size, self.loss)
        w = check_weights(sample_weight, rows.size)
        if self.growing and self._constraint is not None:
            m1, m2 = self._matrix_shape
            self._constraint.check_shape((max(m1, rows.max() + 1), max(m2, cols.max() + 1)))
        check_magnitude(y, w, self.dtype)
        with one_blas_thread(), threads_for(self.n_entries):
            return self._add(rows, cols, y, w)

    def _add(self, rows: Array, cols: Array, y: Array, w: Array) -> float:
        self.grow(int(rows.max()) + 1, int(cols.max()) + 1)
        z = self._low_rank.entries(rows, cols)
        self._store.append(rows, cols, z, w, w * y if self._store.combine else y)
        self._yy += float(w @ y**2)
        self.n_observations += rows.size
        self.total_weight += float(w.sum())
        self._due = True
        if self._pending is None:  # a merge that had to carry a move out would cost a read
            self._store.merge_if_due()
        at = z.astype(float) + self._row_offset[rows] + self._col_offset[cols]
        if self.offsets is not None:
            self.offsets.update(rows, cols, y, w, z)
            self.offsets.refresh_if_due(self)
            self.set_offsets(*self.offsets.offsets(self._matrix_shape))
        return float(w @ self.loss.value(at, y) / w.sum())

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return theta plus offsets at entries of the matrix."""
        return self._low_rank.entries(rows, cols) + (
            self._row_offset[rows] + self._col_offset[cols]
        )

    def grow(self, m1: int, m2: int) -> None:
        """Make room for m1 rows and m2 columns, if there are fewer."""
        old1, old2 = self._matrix_shape
        if m1 <= old1 and m2 <= old2:
            return
        m1, m2 = max(m1, old1), max(m2, old2)
        self._flush()
        self.shape = (m1, m2)
        self._low_rank.grow((m1, m2), *self._atom_limits((m1, m2)))
        self._store.grow(m1, m2)
        self._row_offset = np.pad(self._row_offset, (0, m1 - old1))
        self._col_offset = np.pad(self._col_offset, (0, m2 - old2))
        if self.offsets is not None:  # of a row never seen the mean is known
            self.set_offsets(*self.offsets.offsets((m1, m2)))
        if self._block is not None:
            self._block = np.pad(self._block, ((0, m2 - old2), (0, 0)))

    def refresh_offsets(self) -> None:
        """Bring running biases up to date with everything held (and with theta, if joint)."""
        if self.offsets is not None:
            self.offsets.refresh(self)
            self.set_offsets(*self.offsets.offsets(self._matrix_shape))

    def set_offsets(self, rows: Array, columns: Array) -> None:
        """Predict theta[i, j] + rows[i] + columns[j] from now on (biases, say)."""
        m1, m2 = self._matrix_shape
        if np.shape(rows) != (m1,) or np.shape(columns) != (m2,):
            raise ValueError(
                f"offsets must have one value per row and per column, {m1} and {m2}, "
                f"got shapes {np.shape(rows)} and {np.shape(columns)}"
            )
        self._row_offset = np.array(rows, self.dtype)
        self._col_offset = np.array(columns, self.dtype)
        self._due = True

    def _merge(self, held_out: int = 0) -> None:
        """Sort everything but the ``held_out`` newest entries into the bulk."""
        self._flush()
        self._store.merge(len(self._store.tail) - held_out)
        self._due = True

    # Moving ---------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta; the sorted predictions follow when the next gradient reads them anyway."""
        if self._pending is not None:
            self._flush()
        self._store.merge_if_due()  # the slopes are due in any case
        if isinstance(atom, LowRankAtom):
            move_entries(self, 1.0 - step, atom.u * (step * atom.scales), atom.v)
            self._due = True
            self.iterate.move(atom, step)
            return
        assert isinstance(atom, RankOne)
        u = (step * atom.scale) * atom.u
        right = self._store.by_rank(atom.v, self.dtype)
        self._pending = (1.0 - step, u.astype(self.dtype), right)
        self._move_tail()
        self.iterate.move(atom, step)

    def shrink(self, factor: float) -> None:
        """Theta <- factor * theta, with its predictions."""
        self._flush()
        _, u, right = self._no_move()
        self._pending = (float(factor), u, right)
        self._move_tail()
        self._low_rank.shrink(factor)

    def _move_tail(self) -> None:
        assert self._pending is not None
        keep, u, right = self._pending
        tail = self._store.tail
        kernels.tail_move(tail.row, tail.col, tail.z, self.dtype.type(keep), u, right)

    def _no_move(self) -> tuple[float, Array, Array]:
        m1, m2 = self._matrix_shape
        return 1.0, np.zeros(m1, self.dtype), np.zeros(m2, self.dtype)

    def _flush(self) -> None:
        """Carry a pending move out and renew the slopes, without a product."""
        if self._pending is not None or self._due:
            m1, m2 = self._matrix_shape
            self._read_all(np.zeros((m2, LANES), self.dtype), np.ones(m1, self.dtype))

    def _read_all(self, v: Array, row_scale: Array) -> tuple[Array, Array, float]:
        """Carry out what is pending; return G V, G' (row_scale G V) and <z, g>.

        Everything is unscaled, and V a block of eight columns by rank.
        """
        keep, u, right = self._pending or self._no_move()
        self._pending, self._due = None, False
        self._renewals += 1
        m1, m2 = self._matrix_shape
        columns = np.empty((m2, 2), self.dtype)
        columns[:, 0] = right
        columns[self._store.rank, 1] = self._col_offset
        self._renew_tail(columns[:, 1])
        blocks = self._store.blocks()
        y = self._zeros("y", (m1, LANES))
        acc = self._zeros("acc", (len(blocks) - 1, m2, LANES))
        self._store.tail.multiply(v, y)
        sums = np.zeros(len(blocks) - 1)
        fused = (
            kernels.move_and_normal_quadratic if self.quadratic else kernels.move_and_normal_general
        )
        fused(
            blocks, *self._store.bulk.arrays, self.dtype.type(keep), u,
            self._row_offset, columns, max(self._kind, 0), self._parameter,
            row_scale, v, y, acc, sums,
        )  # fmt: skip
        self.reads += 1
        z_dot_g = float(sums.sum())
        if self._kind < 0:  # a loss of the user's own: its slopes in numpy, then the products
            z_dot_g = self._renew_by_loss()
            y, w = self._block_by_block(v, row_scale)
        else:
            w = acc.sum(axis=0)
            self._store.tail.multiply_transposed(row_scale, y, w)
        return y, w, z_dot_g + float(np.dot(self._store.tail.z.astype(float), self._store.tail.g))

    def _zeros(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return zeros in memory that is used again: fresh pages cost more than the products."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.shape != shape:
            buffer = self._buffers[name] = np.empty(shape, self.dtype)
        buffer.fill(0)
        return buffer

    def _renew_tail(self, col_offset: Array) -> None:
        tail = self._store.tail
        if self._kind >= 0:
            kernels.tail_slopes(
                tail.row, tail.col, tail.z, tail.c, tail.s, tail.g,
                self._row_offset, np.ascontiguousarray(col_offset), self._kind, self._parameter,
            )  # fmt: skip
        else:
            tail.g[:] = self._slopes(self._predictions(tail), tail.c, tail.s)

    def _renew_by_loss(self) -> float:
        store = self._store.bulk
        store.g[:] = self._slopes(self._predictions(store), store.c, store.s)
        return float(store.z @ store.g)

    def _predictions(self, part: SortedStore | Tail) -> Array:
        """Return theta plus offsets at the entries of a part of the store."""
        if not (self._row_offset.any() or self._col_offset.any()):
            return part.z
        by_rank = self._store.by_rank(self._col_offset)
        rows = part.row if isinstance(part, Tail) else part.rows()
        return part.z + (self._row_offset[rows] + by_rank[part.col])

    def _slopes(self, at: Array, c: Array, s: Array) -> Array:
        """Slopes by the loss itself (its kernel would be faster, where there is one)."""
        if self._store.combine:
            return c * self.loss.derivative(at, 0.0) - s
        return c * self.loss.derivative(at, s)

    def _block_by_block(self, v: Array, row_scale: Array) -> tuple[Array, Array]:
        columns = [self._normal(np.ascontiguousarray(x), row_scale) for x in v.T]
        self.reads -= len(columns) - 1  # slow losses are slow for another reason
        return np.column_stack([y for y, _ in columns]), np.column_stack([w for _, w in columns])

    def _normal(self, v: Array, row_scale: Array) -> tuple[Array, Array]:
        """Return G v and G' (row_scale G v) (unscaled, columns by rank) with one read."""
        m1, m2 = self._matrix_shape
        y = np.zeros((m1, 1), self.dtype)
        self._store.tail.multiply(v[:, None], y)
        with threads_for(self.n_entries):
            blocks = self._store.blocks()
            acc = np.zeros((len(blocks) - 1, m2), self.dtype)
            kernels.normal(
                blocks, *self._store.bulk.products, row_scale, v, y[:, 0], acc, self._store.combine
            )  # fmt: skip
        w = acc.sum(axis=0)
        self._store.tail.multiply_transposed(row_scale, y, w[:, None])
        self.reads += 1
        return y[:, 0], w

    # Asking ---------------------------------------------------------------------------------------

    def gradient(self) -> EntriesGradient:
        """Return the gradient as an operator; making it is the first of its products."""
        self._needs_data()
        with one_blas_thread(), threads_for(self.n_entries):
            return EntriesGradient(self, getattr(self._constraint, "scales", None))

    def _start_block(self) -> Array:
        """Return eight orthonormal columns (fewer, if the matrix has fewer): the best known."""
        m2 = self._matrix_shape[1]
        block = np.empty((m2, 0)) if self._block is None else self._block
        missing = min(LANES, m2) - block.shape[1]
        if missing > 0:
            rng = np.random.default_rng(self.n_observations)
            block = np.column_stack((block, rng.standard_normal((m2, missing))))
            block = np.linalg.qr(block)[0]
        return block

    def gap(self, gradient: Direction, atom: Atom) -> float:
        """Return <gradient, theta - atom> from what the gradient already knows."""
        if isinstance(gradient, EntriesGradient) and isinstance(atom, RankOne):
            return gradient.theta_dot - gradient.score(atom)
        return super().gap(gradient, atom)

    def upper_gap(self, gradient: Direction, constraint: ConvexSet) -> float:
        """Return an upper bound on the FW gap of theta: of its predictions, plus the truncation.

        The carried predictions are those of theta plus the part E that recompression has left
        out. For a convex L-smooth loss, moving back from there to theta itself costs no more than
        ``|G|_op |E|_* + (L / 2) max(c) / sum(c) |E|_*^2``.
        """
        assert isinstance(gradient, EntriesGradient)
        assert isinstance(constraint, (TraceNormBall, WeightedTraceNormBall))
        norm = gradient.norm_bound(constraint.radius, constraint.scales)
        gap = gradient.theta_dot + constraint.radius * norm
        dropped = self._low_rank.truncated
        if dropped > 0.0:
            operator_norm = norm if constraint.scales is None else gradient.frobenius_bound
            gap += operator_norm * dropped + 0.5 * self.smoothness() * dropped**2
        return float(gap)

    def certificate(self, constraint: ConvexSet) -> float:
        """Return an upper bound on the FW gap; its reads are counted apart."""
        reads, block, moving, due = self.reads, self._block, self._pending is not None, self._due
        bound = super().certificate(constraint)
        self.certificate_reads += self.reads - reads
        # What is decided later depends on these, so that who asks goes on like who does not.
        self.reads, self._block, self._due = reads, block, due
        if moving:
            self._pending = self._no_move()
        return bound

    def value(self) -> float:
        """Return F_t at the current iterate, from the carried predictions."""
        self._needs_data()
        self._flush()
        with threads_for(self.n_entries):
            return mean_loss(self)

    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta); for the square loss by one read of the store."""
        assert isinstance(atom, RankOne)
        self._needs_data()
        self._flush()
        with threads_for(self.n_entries):
            return entries_line(self, atom)

    def place(self, point: Array | LowRank) -> None:
        """Put theta anywhere; the predictions of all entries are recomputed.

        Parameters
        ----------
        point : ndarray or LowRank
            An array becomes factors by a full SVD. Of more terms than theta may hold
            (``max_atoms``) only the leading half of that remains.
        """
        factors = as_factors(point, self._matrix_shape)
        self._low_rank.place(*factors)
        self._refresh()

    def smoothness(self) -> float:
        """Return a bound: loss.smoothness times the share of the entry that weighs most."""
        self._needs_data()
        return self.loss.smoothness * heaviest_entry(self) / self.total_weight

    def weighted_sums(
        self, rows: Array, columns: Array, *, with_theta: bool = False
    ) -> tuple[Array, Array]:
        """Return the sums of w * columns[j] in every row, and of w * rows[i] in every column.

        w is the total weight of what was observed at entry (i, j). With ``with_theta`` its
        prediction theta[i, j] is added to both. One read of the store.
        """
        if with_theta and self._pending is not None:
            self._flush()
        self.reads += 1
        return self._store.weighted_sums(rows, columns, float(with_theta))

    def newest_loss(self, theta: LowRank) -> float:
        """Return the mean loss of another theta on the newest entries, those of the tail."""
        tail = self._store.tail
        cols = np.argsort(self._store.rank)[tail.col]
        at = theta.entries(tail.row, cols) + (self._row_offset[tail.row] + self._col_offset[cols])
        at, c, s = (x.astype(float) for x in (at, tail.c, tail.s))
        y = np.divide(s, c, where=c > 0.0, out=0.0 * s) if self._store.combine else s
        return float(c @ self.loss.value(at, y)) / max(float(c.sum()), np.finfo(float).tiny)

    def regressions(self, everything: bool) -> tuple[Array, Array, Array, Array, Array]:
        """Return the store as regressions of what the offsets leave over (square loss).

        Parameters
        ----------
        everything : bool
            With the newest entries, those that stay in the tail otherwise.

        Returns
        -------
        indptr, col, weight, target, position
            Compressed rows, with all columns numbered by ``position``; ``weight`` is empty if
            all are 1, ``target`` is weighted. They are views, good until the next read or merge.
        """
        self._merge(0 if everything else min(len(self._store.tail) // 2, NEWEST))
        store, bulk = self._store, self._store.bulk
        all_ones = bulk.size == 0 or bulk.c.min() == 1.0 == bulk.c.max()
        weight = bulk.c[:0] if all_ones else bulk.c
        target = bulk.g  # the slopes are due after a merge, so their memory is free
        kernels.targets(
            store.blocks(), bulk.indptr, bulk.col, bulk.c, bulk.s,
            self._row_offset, store.by_rank(self._col_offset), target,
        )  # fmt: skip
        return bulk.indptr, bulk.col, weight, target, store.rank

    def curvatures(self, u: Array, v: Array) -> Array:
        """Return the mean of w (u_ip v_jp)^2 over all observations, for every p. One read."""
        self.reads += 1
        y = self._store.weighted_products(v**2)
        return np.einsum("ip,ip->p", u**2, y) / self.total_weight

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        return self._store.columns_of(row)

    def constrain(self, constraint: ConvexSet) -> None:
        """Go on over another set (other weights of a weighted trace norm)."""
        constraint.check_shape(self._matrix_shape)
        self._constraint = constraint

    def _refresh(self) -> None:
        """Recompute the predictions of all entries from theta."""
        predict_entries(self)
        self._pending, self._due = None, True

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return store, tail and iterate as plain arrays and JSON-able values."""
        pending = self._pending
        return {
            **self._base_state(),
            "loss": describe(self.loss),
            "dtype": self.dtype.name,
            "options": {
                "growing": self.growing,
                "max_atoms": self.max_atoms,
                "lmo_steps": self.lmo_steps,
                "lmo_tol": self.lmo_tol,
            },
            "store": self._store.state_dict(),
            "pending": None if pending is None else [pending[0], pending[1], pending[2]],
            "due": self._due,
            "block": None if self._block is None else self._block.copy(),
            "offset": [self._row_offset.copy(), self._col_offset.copy()],
            "offsets": None if self.offsets is None else self.offsets.state_dict(),
            "yy": self._yy,
            "total_weight": self.total_weight,
            "reads": [self.reads, self.certificate_reads],
        }

    @classmethod
    def from_state(cls, state: State, *, loss: Loss | None = None) -> ObservedEntries:
        """Make the objective that ``state_dict`` described; a loss of your own is passed in."""
        objective = cls(
            tuple(state["shape"]),
            rebuild(state["loss"], "loss", loss),
            dtype=state["dtype"],
            **state["options"],
        )
        objective._load_base(state)
        combine = objective._store.combine
        objective._store = EntryStore.from_state(state["store"], objective.dtype, combine)
        if state["pending"] is not None:
            keep, u, right = state["pending"]
            objective._pending = (float(keep), np.array(u), np.array(right))
        objective._due = bool(state["due"])
        objective._block = None if state["block"] is None else np.array(state["block"])
        objective._row_offset, objective._col_offset = (np.array(x) for x in state["offset"])
        if state["offsets"] is not None:
            objective.offsets = RunningBiases.from_state(state["offsets"])
        objective._yy, objective.total_weight = float(state["yy"]), float(state["total_weight"])
        objective.reads, objective.certificate_reads = (int(n) for n in state["reads"])
        return objective

    def __repr__(self) -> str:
        return f"ObservedEntries({self.shape}, {self.loss}, n_observations={self.n_observations})"
