"""The mean loss over the observed entries of a matrix, for matrix completion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg

from .._devices import to_host
from .._state import check_state, describe, rebuild
from .._typing import Array, Direction, Shape, State
from .._validation import MOST, check_whole
from ..atoms import Atom, RankOne
from ..iterates import LowRank
from ..linalg import Scales
from ..line_search import Line
from ..losses import Loss, Square
from ..past.entries_state import Counts, check_entries_shape
from ..past.place import loaded_entries, low_rank_class
from ..past.protocols import EntriesPast
from ..sets import ConvexSet, TraceNormBall, WeightedTraceNormBall
from . import merge_rule
from .biases import RunningBiases
from .entries_batch import EntriesBatch
from .entries_gradient import Effort, EntriesGradient, Scaling, WarmStart
from .half_life import clock_from_state
from .held_entries import HeldEntries
from .lines import Parabola, PastLine

__all__ = ["EntriesBatch", "ObservedEntries"]


class ObservedEntries(HeldEntries):
    """F_t(theta) = weighted mean of loss(theta[i, j], y) over every observed entry (i, j, y).

    The past is kept sorted by rows (columns in order of popularity), with new observations in a
    short tail that is merged now and then, each entry with its prediction. The gradient is a
    sparse matrix that is never built: an operator whose products read the store once. theta is
    kept as :class:`~onlinefw.iterates.LowRank` factors.

    Parameters
    ----------
    shape : (int, int)
        The number of rows and of columns.
    loss : Loss
        Any loss; for the square loss and the exponential families repeated observations of an
        entry are summed up, any other loss keeps each.
    dtype : dtype
        float32 (about 20 bytes per entry) or float64.
    growing : bool
        Accept indices beyond the shape: new rows and columns are zero until they are learned.
    max_rows, max_columns : int
        How far the matrix may grow. Memory follows the largest index, so one wrong index is refused
        before it takes all of it.
    offsets : RunningBiases, optional
        What is predicted besides theta: running row and column means, learned from the same
        stream. Gaps and certificates hold F_t to be a function of theta alone, with the offsets
        that it has now.
    max_atoms : int, optional
        How many rank-one terms theta holds before it is recompressed to half of them; by default
        what fits into 128 MB (1 GB on a GPU). Recompression loses nothing while twice the smaller
        side fits; otherwise theta is what remains, and the predictions of all entries are
        computed from it again.
    lmo_steps : int
        Reads of the store per linear minimisation, at most: the first multiplies the eight best
        vectors of the round before, every further one is a Krylov step.
    lmo_tol : float
        Stop earlier when the last read has added less than this fraction of the duality gap to
        the step's value.
    half_life : float, optional
        After how many observations (at least 1) one weighs half as much: F_t is then the mean with
        weights 2**(-age / half_life). What weighs less than a thousandth of a new observation is
        dropped now and then, so memory does not grow for ever; F_t, gaps and certificates speak of
        what is kept. By default nothing fades.
    unobserved : float
        For clicks: every entry that was not observed counts as a 0 of this weight (square loss
        only), in units of a new observation. F_t is then divided by the weight of what was
        observed plus that of all other entries. An entry that is observed again weighs more. The
        gradient gets a part of low rank, and a read takes rank times (rows + columns) more.
    device : "cpu", "cuda" or "auto"
        Where entries, predictions and factors are; "auto" is a GPU if there is one. On a GPU what
        crosses per round is the batch and a few numbers. There the newest entries are added up in
        any order, so runs agree to rounding.
    workers : int, optional
        Spread the entries over this many workers of a Ray cluster (:mod:`onlinefw.distributed`),
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
        max_rows: int = MOST,
        max_columns: int = MOST,
        offsets: RunningBiases | None = None,
        max_atoms: int | None = None,
        lmo_steps: int = 5,
        lmo_tol: float = 0.1,
        half_life: float | None = None,
        unobserved: float = 0.0,
        device: str = "cpu",
        workers: int | None = None,
        log_dir: Any = None,
    ) -> None:
        steps, tol = check_whole("lmo_steps", lmo_steps), float(lmo_tol)
        self.lmo_steps, self.lmo_tol, self._effort = steps, tol, Effort(steps, tol)
        self.certificate_reads = 0
        self._scaling: Scaling | None = None
        place = (device, workers, log_dir)
        limits = max_rows, max_columns
        parts = dtype, growing, limits, offsets, max_atoms, half_life, unobserved
        super().__init__(shape, loss, *parts, *place)

    def attach(self, owner: str, constraint: ConvexSet) -> None:
        """Claim this objective for one learner, on a trace-norm ball."""
        if not isinstance(constraint, (TraceNormBall, WeightedTraceNormBall)):
            raise ValueError(
                f"ObservedEntries keeps a low-rank theta, which needs a TraceNormBall, "
                f"got {constraint}"
            )
        super().attach(owner, constraint)

    def constrain(self, constraint: ConvexSet) -> None:
        """Go on with another set (other weights of a weighted trace norm)."""
        constraint.check_shape(self.shape)
        self._constraint = constraint

    # Moving ---------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta and all predictions."""
        assert isinstance(atom, RankOne)
        past, norm, before = self._past, self._known_norm(), self._past.theta.version
        u = (step * atom.scale) * atom.u
        past.theta.move(atom, step)
        if past.theta.version == before + 1:
            past.move(1.0 - step, u, atom.v)
        else:  # it was recompressed first, to a lower rank
            past.refresh()
        if self.unobserved > 0.0:
            self._norm.move(self._low_rank, norm, 1.0 - step, u, atom.v)

    def shrink(self, factor: float) -> None:
        """Let theta <- factor * theta, with its predictions."""
        self._low_rank.shrink(factor)
        self._past.move(float(factor), None, None)

    def put(self, point: Array | LowRank) -> None:
        """Put theta anywhere; the predictions of all entries are computed from it.

        Parameters
        ----------
        point : ndarray or LowRank
            An array becomes factors by a full SVD. Of more terms than theta may hold
            (``max_atoms``) only the leading half of that remains.
        """
        self._low_rank.put(*_as_factors(point, self._low_rank.shape))
        self._refresh()

    def _refresh(self) -> None:
        self._past.refresh()

    # Asking ---------------------------------------------------------------------------------------

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return theta plus offsets at entries of the matrix."""
        z, past = self._low_rank.entries(rows, cols), self._past
        return z + (past.row_offset[rows] + past.col_offset[cols]) if self._has_offsets else z

    def gradient(self) -> EntriesGradient:
        """Return the gradient as an operator; making it is the first of its products."""
        ball = self._constraint
        scaling = None
        if ball is not None and ball.scales is not None:
            scaling = self._scaling_of(ball.scales)
        parts = self._past, self.total_weight_of_all, self._background()
        return EntriesGradient(*parts, scaling, self._start, self._effort)

    def _scaling_of(self, scales: Scales) -> Scaling:
        """Return a scaling at the place of the entries, the last one if it is the same."""
        known = self._scaling
        if known is None or known.scales is not scales:
            self._scaling = known = Scaling(scales, self._low_rank._xp, self.dtype)
        return known

    def gap(self, gradient: Direction, atom: Atom) -> float:
        """Return <gradient, theta - atom> from what the gradient already knows."""
        if isinstance(gradient, EntriesGradient) and isinstance(atom, RankOne):
            return gradient.theta_dot - gradient.score(atom)
        return super().gap(gradient, atom)

    def upper_gap(self, gradient: Direction, constraint: ConvexSet) -> float:
        """Return an upper bound on the FW gap of theta."""
        assert isinstance(gradient, EntriesGradient)
        assert isinstance(constraint, (TraceNormBall, WeightedTraceNormBall))
        norm = gradient.norm_bound(constraint.radius, constraint.scales)
        return float(gradient.theta_dot + constraint.radius * norm)

    def certificate(self, constraint: ConvexSet) -> float:
        """Return an upper bound on the FW gap; its reads are counted apart, and nothing changes."""
        past, start = self._past, WarmStart(self._start.block)  # a copy: its block is replaced
        before = past.reads
        with self.working():
            parts = past, self.total_weight_of_all, self._background(self._norm.copy())
            gradient = EntriesGradient(*parts, None, start, self._effort)
            bound = self.upper_gap(gradient, constraint)
        self.certificate_reads += past.reads - before
        past.reads = before
        return bound

    def value(self) -> float:
        """Return F_t at the current iterate, from the predictions held."""
        self._needs_data()
        total = self._past.total_loss() + self._constant(self._past.counts)
        background = self._background(self._norm.copy())
        if background is not None:
            total += background.value
        return total / self.total_weight_of_all

    def _constant(self, counts: Counts) -> float:
        """Return what the square loss adds to c x^2 / 2 - s x."""
        return 0.5 * counts.squares if type(self.loss) is Square else 0.0

    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta); for the square loss by one read of the store."""
        assert isinstance(atom, RankOne)
        counts = self._past.counts
        if counts.weight == 0.0:
            self._needs_data()
        parabola = self._past.line(atom.scale * atom.u, atom.v)
        constant, weight = self._constant(counts), self.total_weight_of_all
        if parabola is None:
            return PastLine(self._past, weight, constant=constant)
        value, slope, curvature = self._with_zeros(parabola, atom)
        return Parabola((value + constant) / weight, slope / weight, curvature / weight)

    def smoothness(self) -> float:
        """Return a bound: loss.smoothness times the share of the entry that weighs most.

        That entry may be sorted in and newest at once.
        """
        self._needs_data()
        largest = max(sum(self._past.heaviest()), self._weight_of_zeros)
        return self.loss.smoothness * largest / self.total_weight_of_all

    def weighted_sums(
        self, rows: Array, columns: Array, *, with_theta: bool = False
    ) -> tuple[Array, Array]:
        """Return the sums of w * columns[j] in every row, and of w * rows[i] in every column.

        w is the total weight of what was observed at entry (i, j). With ``with_theta`` its
        prediction theta[i, j] is added to both. One read of the store.
        """
        return self._past.weighted_sums(rows, columns, with_theta)

    def newest_loss(self, theta: LowRank) -> float:
        """Return the mean loss of another theta on the newest entries.

        Zeros that were not observed count in proportion.
        """
        loss, weight = self._past.newest_sums(theta)
        mean = loss / max(weight, np.finfo(float).tiny)
        return mean + self._zeros_of(theta) / self._past.counts.weight

    def regressions(self, everything: bool) -> EntriesPast:
        """Return the past, ready for regressions of what the offsets leave over (square loss).

        Its ``solve_rows`` and ``solve_columns`` are valid until the next gradient or batch.

        Parameters
        ----------
        everything : bool
            Whether the newest entries take part, which otherwise only Frank-Wolfe steps use.
        """
        past = self._past
        past.merge(past.n_newest - (0 if everything else merge_rule.held_out(past.n_newest)))
        past.begin_regressions()
        return past

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything as plain arrays and JSON-able values."""
        block = self._start.block
        return {
            **self._base_state(),
            "loss": describe(self.loss),
            "dtype": self.dtype.name,
            "options": {
                "growing": self.growing,
                "max_rows": self.max_rows,
                "max_columns": self.max_columns,
                "max_atoms": self.max_atoms,
                "lmo_steps": self.lmo_steps,
                "lmo_tol": self.lmo_tol,
                "unobserved": self.unobserved,
            },
            "past": self._past.state_dict(),
            "block": None if block is None else to_host(block).copy(),
            "offsets": None if self.offsets is None else self.offsets.state_dict(),
            "has_offsets": self._has_offsets,
            "last_batch": self._last_batch,
            "clock": None if self._clock is None else self._clock.state_dict(),
            "certificate_reads": self.certificate_reads,
            "squared_norm": self._known_norm(),
        }

    def load_state(self, state: State) -> None:
        """Become what a ``state_dict`` described, of an objective with the same parts."""
        needed = "iterate past block offsets last_batch has_offsets shape certificate_reads"
        check_state(state, *needed.split())
        kind = low_rank_class(self._place)
        theta = kind.from_state(state["iterate"])
        if theta.dtype != self.dtype or list(theta.shape) != list(state["shape"]):
            raise ValueError(
                f"theta is {theta.dtype} of shape {theta.shape} in a state of {self.dtype} and "
                f"shape {tuple(state['shape'])}"
            )
        block, m2 = state["block"], theta.shape[1]
        if block is not None:
            real = isinstance(block, np.ndarray) and block.dtype.kind == "f"
            fits = real and block.ndim == 2 and block.shape[0] <= m2
            if not fits or not np.isfinite(block).all():
                raise ValueError(f"the block of a state has shape {np.shape(block)}, not ({m2}, 8)")
            block = kind._xp.array(block)
        offsets = None if state["offsets"] is None else RunningBiases.from_state(state["offsets"])
        clock = clock_from_state(state.get("clock"))  # states of earlier versions have none
        past = loaded_entries(self._place, theta, self.dtype, self.loss, state["past"])
        old, self._past = self._past, past
        old.close()
        self._iterate, self.shape, self.offsets = theta, theta.shape, offsets
        self._start, self._has_offsets = WarmStart(block), bool(state["has_offsets"])
        self._last_batch, self._clock = int(state["last_batch"]), clock
        self._norm = self._loaded_norm(state, theta)
        self.certificate_reads = int(state["certificate_reads"])
        if state["iterate"].get("truncated", 0.0) > 0.0:  # of earlier versions: theta was cut, and
            past.refresh()  # predictions were not

    @classmethod
    def from_state(cls, state: State, *, loss: Loss | None = None, **place: Any) -> ObservedEntries:
        """Make the objective that ``state_dict`` described; a loss of your own is passed in.

        Wherever its entries were, they go to the ``place``: ``device``, ``workers``, ``log_dir``.
        """
        check_state(state, "shape", "loss", "dtype", "options", "certificate_reads", "past")
        shape = tuple(state["shape"])
        check_entries_shape(state["past"], shape)  # before memory is taken for that many
        objective = cls(
            shape,
            rebuild(state["loss"], "loss", loss),
            dtype=state["dtype"],
            **state["options"],
            **place,
        )
        objective.load_state(state)
        return objective

    def __repr__(self) -> str:
        return f"ObservedEntries({self.shape}, {self.loss}, n_observations={self.n_observations})"


def _as_factors(point: Array | LowRank, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Return (left, weights, right) with point = left diag(weights) right'."""
    if not isinstance(point, LowRank):
        point = np.asarray(point, dtype=float)
    if tuple(point.shape) != shape:
        raise ValueError(f"the point has shape {tuple(point.shape)}, but theta has shape {shape}")
    parts = (point.left, point.weights, point.right) if isinstance(point, LowRank) else (point,)
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError("the point has NaN or infinity: theta cannot be put there")
    return parts if len(parts) == 3 else _svd(*parts)


def _svd(point: Array) -> tuple[Array, Array, Array]:
    u, s, vt = linalg.svd(point, full_matrices=False)
    k = int(np.count_nonzero(s > s[0] * np.finfo(float).eps))
    return u[:, :k], s[:k], vt[:k].T
