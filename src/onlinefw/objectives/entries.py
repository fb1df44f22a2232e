"""The mean loss over the observed entries of a matrix, for matrix completion."""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._arrays import received_here
from .._devices import namespace, to_host
from .._state import describe, rebuild
from .._threads import one_blas_thread, threads_for
from .._typing import Array, Direction, Shape, State
from .._validation import (
    check_alone,
    check_indices,
    check_magnitude,
    check_part,
    check_precision,
    check_targets,
    check_weights,
    check_whole,
)
from ..atoms import Atom, LowRankAtom, RankOne
from ..distributed.parquet import ParquetBatch
from ..iterates import LowRank
from ..kernels.lanes import LANES
from ..losses import Correntropy, Gaussian, Loss, Square
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall
from .base import Line, Objective
from .biases import RunningBiases
from .entries_gradient import EntriesGradient, complete_basis
from .factors import as_factors
from .from_files import is_in_a_file
from .places import check_places, low_rank_class, new_entries

__all__ = ["ObservedEntries"]

#: What the factors of theta may take before they are recompressed.
FACTOR_BYTES = {"cpu": 2**27, "cuda": 2**30}


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
        what fits into 128 MB (1 GB on a GPU). Recompression loses nothing while twice the smaller
        side fits.
    lmo_steps : int
        Reads of the store per linear minimisation, at most: the first multiplies the eight best
        vectors of the round before, every further one is a Krylov step.
    lmo_tol : float
        Stop earlier when the last read has added less than this fraction of the duality gap to
        the step's value.
    device : "cpu", "cuda" or "auto"
        Where entries, predictions and factors live; "auto" is a GPU if there is one. On a GPU what
        crosses per round is the batch and a few numbers. There the newest entries are added up in
        any order, so runs agree to rounding.
    workers : int, optional
        Spread the entries over so many workers of a Ray cluster (:mod:`onlinefw.distributed`),
        whole rows each; by default they are in the memory of this process. The device is theirs
        then, a GPU for each, and theta is in this process's memory.
    log_dir : path, optional
        Where to log what workers have received, for those that are restarted; by default where
        temporary files are.

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
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
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
        device, workers = check_places(device, workers)
        self._set_device(device, workers)
        self.total_weight, self.certificate_reads = 0.0, 0
        self._yy = 0.0  # the weighted sum of y^2, for the value of the square loss
        self._block: Array | None = None  # where the next linear minimisation starts
        super().__init__(tuple(shape))
        self._entries = self._new_entries(self.device, workers, log_dir)
        self._has_offsets = False

    def _set_device(self, device: str, workers: int | None) -> None:
        self.device = device
        # Theta is with the entries or, if workers hold those, in this process's memory.
        self._theta_device = device if workers is None else "cpu"

    def _new_entries(self, device: str, workers: int | None, log_dir: Any) -> Any:
        """Return empty entries, with somebody who answers questions about them."""
        me = weakref.ref(self)  # not a cycle: entries, with their workers, go with the objective

        def theta() -> LowRank:
            objective = me()
            assert objective is not None
            return objective._low_rank

        parts = self._matrix_shape, self.dtype, self.loss
        return new_entries(device, workers, *parts, theta=theta, log_dir=log_dir)

    @property
    def workers(self) -> int | None:
        """How many workers hold the entries; None: they are in this process."""
        return getattr(self._entries, "workers", None)

    def use_places(self, device: str, workers: int | None, log_dir: Any = None) -> None:
        """Move the entries to so many workers (None: into this process), on that device."""
        if workers == self.workers and device in (self.device, workers and "auto"):
            return  # workers have settled what "auto" is
        device, workers = check_places(device, workers)
        if (device, workers) == (self.device, self.workers):
            return
        before, theta, block = self._entries, self._low_rank, self._block
        kind = low_rank_class(device if workers is None else "cpu")
        if type(theta) is not kind:
            theta = kind.from_state(theta.state_dict())
        if block is not None:
            block = kind._xp.asarray(to_host(block))
        entries = self._new_entries(device, workers, log_dir)
        entries.load_state(before.state_dict())
        self._entries, self._iterate, self._block = entries, theta, block
        self._set_device(device, workers)
        if hasattr(before, "close"):
            before.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a file or a pickle holds: the data, not where they were."""
        if self.device == "cpu":
            return self.__dict__
        if self.workers is not None:
            return {**self.__dict__, "device": "cpu"}
        theta = None if self._iterate is None else LowRank.from_state(self._low_rank.state_dict())
        block = None if self._block is None else to_host(self._block)
        home = {"device": "cpu", "_theta_device": "cpu", "_entries": self._entries.on_host()}
        return {**self.__dict__, **home, "_iterate": theta, "_block": block}

    def close(self) -> None:
        """Give the workers back, if there are any; without this, they go with the objective."""
        if self.workers is not None:
            self._entries.close()

    @property
    def _iterate_class(self) -> type[LowRank]:
        return low_rank_class(self._theta_device)

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
        return self._entries.quadratic

    @property
    def reads(self) -> int:
        """How often all entries have been read."""
        return self._entries.reads

    @reads.setter
    def reads(self, count: int) -> None:
        self._entries.reads = count

    @property
    def n_entries(self) -> int:
        """How many entries are stored (repeated ones count until they are merged)."""
        return len(self._entries)

    def _new_iterate(self, shape: Shape) -> LowRank:
        max_atoms, max_rank = self._atom_limits(shape)
        return self._iterate_class(shape, max_atoms, max_rank=max_rank, dtype=self.dtype)

    def _atom_limits(self, shape: Shape) -> tuple[int, int | None]:
        """How many atoms theta may hold, and the rank that recompression keeps (None: all)."""
        lossless = max(8, 2 * min(shape))
        affordable = FACTOR_BYTES[self._theta_device] // (self.dtype.itemsize * sum(shape))
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
        """Add observations: X is (n, 2) with row and column, y their values.

        Or X is a batch of :class:`~onlinefw.distributed.ParquetRatings`, without y.
        """
        if is_in_a_file(X):
            if not isinstance(X, ParquetBatch):
                raise ValueError(f"{X}: ratings are needed, in batches of ParquetRatings")
            check_alone(y, sample_weight)
            if self.workers is not None and self.offsets is None:
                return self._add_file(X)
            X, y = X.read()
        given = {"X": X, "y": y, "sample_weight": sample_weight}
        X, y, sample_weight = (received_here(*item, self.device) for item in given.items())
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
        z = self._entries.observe(self._low_rank, rows, cols, w, y)
        at = z.astype(float)
        if self._has_offsets:
            at += self._offsets_at(rows, cols)
        self._yy += float(w @ y**2)
        self.n_observations += rows.size
        self.total_weight += float(w.sum())
        if self.offsets is not None:
            self.offsets.update(rows, cols, y, w, z)
            self.offsets.refresh_if_due(self)
            self.set_offsets(*self.offsets.offsets(self._matrix_shape))
        return float(w @ self.loss.value(at, y) / w.sum())

    def _add_file(self, batch: Any) -> float:
        """Let workers read a batch; here are only sums."""
        length, row, column, pieces = self._entries.read_file(batch, self.growing)
        if self.growing and self._constraint is not None:
            m1, m2 = self._matrix_shape
            self._constraint.check_shape((max(m1, row + 1), max(m2, column + 1)))
        self.grow(row + 1, column + 1)
        loss, weight, squares = self._entries.append_file(batch, length, pieces)
        self._yy += squares
        self.n_observations += length
        self.total_weight += weight
        return loss / weight

    def _offsets_at(self, rows: Array, cols: Array) -> Array:
        return self._entries.row_offset[rows] + self._entries.col_offset[cols]

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return theta plus offsets at entries of the matrix."""
        z = self._low_rank.entries(rows, cols)
        return z + self._offsets_at(rows, cols) if self._has_offsets else z

    def grow(self, m1: int, m2: int) -> None:
        """Make room for m1 rows and m2 columns, if there are fewer."""
        old1, old2 = self._matrix_shape
        if m1 <= old1 and m2 <= old2:
            return
        m1, m2 = max(m1, old1), max(m2, old2)
        self._entries.grow(m1, m2)
        self.shape = (m1, m2)
        self._low_rank.grow((m1, m2), *self._atom_limits((m1, m2)))
        if self.offsets is not None:  # of a row never seen the mean is known
            self.set_offsets(*self.offsets.offsets((m1, m2)))
        if self._block is not None:
            self._block = namespace(self._block).pad(self._block, ((0, m2 - old2), (0, 0)))

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
        self._entries.set_offsets(rows, columns)
        self._has_offsets = True

    # Moving ---------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta and all predictions."""
        if isinstance(atom, LowRankAtom):
            scales = namespace(atom.u).asarray(step * atom.scales)
            self._entries.move_block(1.0 - step, atom.u * scales, atom.v)
        else:
            assert isinstance(atom, RankOne)
            self._entries.move(1.0 - step, (step * atom.scale) * atom.u, atom.v)
        self.iterate.move(atom, step)

    def shrink(self, factor: float) -> None:
        """Theta <- factor * theta, with its predictions."""
        self._entries.shrink(factor)
        self._low_rank.shrink(factor)

    def place(self, point: Array | LowRank) -> None:
        """Put theta anywhere; the predictions of all entries are recomputed.

        Parameters
        ----------
        point : ndarray or LowRank
            An array becomes factors by a full SVD. Of more terms than theta may hold
            (``max_atoms``) only the leading half of that remains.
        """
        self._low_rank.place(*as_factors(point, self._matrix_shape))
        self._refresh()

    def _refresh(self) -> None:
        """Recompute the predictions of all entries from theta."""
        self._entries.place(self._low_rank)

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
            block = self._completed(block, rng.standard_normal((m2, missing)))
        return block

    def _completed(self, block: Array, more: Array) -> Array:
        """Return an orthonormal basis of a block (orthonormal itself) and more columns."""
        if self._theta_device == "cpu" or block.shape[1] == 0:
            whole = np.linalg.qr(np.column_stack((to_host(block), more)))[0]
            return self._iterate_class._xp.asarray(whole)
        return complete_basis(block, namespace(block).asarray(more))

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
        reads, block = self.reads, self._block
        with self._entries.undisturbed():
            bound = super().certificate(constraint)
        self.certificate_reads += self.reads - reads
        self.reads, self._block = reads, block
        return bound

    def value(self) -> float:
        """Return F_t at the current iterate, from the carried predictions."""
        self._needs_data()
        return (self._entries.total_loss() + self._constant) / self.total_weight

    @property
    def _constant(self) -> float:
        """What the square loss adds to c x^2 / 2 - s x."""
        return 0.5 * self._yy if type(self.loss) is Square else 0.0

    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta); for the square loss by one read of the store."""
        assert isinstance(atom, RankOne)
        self._needs_data()
        total = self._entries.line(atom.scale * atom.u, atom.v)
        return _MeanLine(total, self._constant, self.total_weight)

    def smoothness(self) -> float:
        """Return a bound: loss.smoothness times the share of the entry that weighs most."""
        self._needs_data()
        return self.loss.smoothness * self._entries.heaviest() / self.total_weight

    def weighted_sums(
        self, rows: Array, columns: Array, *, with_theta: bool = False
    ) -> tuple[Array, Array]:
        """Return the sums of w * columns[j] in every row, and of w * rows[i] in every column.

        w is the total weight of what was observed at entry (i, j). With ``with_theta`` its
        prediction theta[i, j] is added to both. One read of the store.
        """
        return self._entries.weighted_sums(rows, columns, with_theta)

    @property
    def n_newest(self) -> int:
        """How many of the newest entries only Frank-Wolfe steps have seen."""
        return self._entries.n_newest

    def newest_loss(self, theta: LowRank) -> float:
        """Return the mean loss of another theta on the newest entries."""
        return self._entries.newest_loss(theta)

    def regressions(self, everything: bool) -> Any:
        """Return the regressions of what the offsets leave over (square loss).

        Parameters
        ----------
        everything : bool
            With the newest entries, those that only Frank-Wolfe steps see otherwise.
        """
        return self._entries.regressions(everything)

    def curvatures(self, u: Array, v: Array) -> Array:
        """Return the mean of w (u_ip v_jp)^2 over all observations, for every p. One read."""
        y = self._entries.weighted_products(v**2)
        return to_host(namespace(y).einsum("ip,ip->p", u**2, y)) / self.total_weight

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        return self._entries.columns_of(row)

    def constrain(self, constraint: ConvexSet) -> None:
        """Go on over another set (other weights of a weighted trace norm)."""
        constraint.check_shape(self._matrix_shape)
        self._constraint = constraint

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return store, tail and iterate as plain arrays and JSON-able values."""
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
            "entries": self._entries.state_dict(),
            "block": None if self._block is None else to_host(self._block).copy(),
            "offsets": None if self.offsets is None else self.offsets.state_dict(),
            "yy": self._yy,
            "total_weight": self.total_weight,
            "certificate_reads": self.certificate_reads,
        }

    @classmethod
    def from_state(
        cls,
        state: State,
        *,
        loss: Loss | None = None,
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> ObservedEntries:
        """Make the objective that ``state_dict`` described; a loss of your own is passed in.

        Its entries may have been on any device, in one process or with any number of workers, and
        go where you say.
        """
        objective = cls(
            tuple(state["shape"]),
            rebuild(state["loss"], "loss", loss),
            dtype=state["dtype"],
            device=device,
            workers=workers,
            log_dir=log_dir,
            **state["options"],
        )
        objective._load_base(state)
        if state["iterate"] is not None:
            objective._iterate = objective._iterate_class.from_state(state["iterate"])
        objective._entries.load_state(state["entries"])
        objective._has_offsets = any(offset.any() for offset in state["entries"]["offset"])
        if state["block"] is not None:
            objective._block = objective._iterate_class._xp.array(state["block"])
        if state["offsets"] is not None:
            objective.offsets = RunningBiases.from_state(state["offsets"])
        objective._yy, objective.total_weight = float(state["yy"]), float(state["total_weight"])
        objective.certificate_reads = int(state["certificate_reads"])
        return objective

    def __repr__(self) -> str:
        return f"ObservedEntries({self.shape}, {self.loss}, n_observations={self.n_observations})"


class _MeanLine:
    """A line of totals as a line of means."""

    def __init__(self, total: Line, constant: float, weight: float) -> None:
        self._total, self._constant, self._weight = total, constant, weight
        curvature = total.curvature
        self.curvature = None if curvature is None else curvature / weight

    def value(self, c: float) -> float:
        return (self._total.value(c) + self._constant) / self._weight

    def slope(self, c: float) -> float:
        return self._total.slope(c) / self._weight
