"""Active ALT: nuclear-norm matrix completion by active subspaces and alternating ridge sweeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse
from scipy.optimize import OptimizeResult

from .._threads import balanced_blocks, one_blas_thread
from .._typing import Array
from .._validation import check_part
from ..iterates import LowRank
from ..iterates.factored import factor_entries
from ..kernels.ridge import ridge_rows
from ..kernels.transpose import transpose
from ..linalg import top_singular_pair
from ..losses import Square
from ..objectives import ObservedEntries
from ..past.entries_state import all_entries
from ..sets import TraceNormBall
from .batch import stops

__all__ = ["active_alt"]

HISTORY = ("objective", "gap", "penalty", "trace_norm", "rank")
#: The penalty changes when the gap within x's own ball is at most this share of the whole.
OWN_SHARE = 0.3
#: One change of the penalty is at most by this factor.
LONGEST = 4.0
#: The least penalty that is tried, as a share of the least one whose solution is zero.
LEAST = 1e-10


def active_alt(
    objective: ObservedEntries,
    constraint: TraceNormBall | None = None,
    *,
    penalty: float | None = None,
    max_iter: int = 200,
    tol: float = 1e-4,
    extra: int = 40,
    power_steps: int = 3,
    sweeps: int = 2,
    callback: Callable[[OptimizeResult], Any] | None = None,
    random_state: int | Generator | None = 0,
) -> OptimizeResult:
    """Complete a matrix by Active ALT (Hsieh and Olsen, 2014), a batch solver for the square loss.

    It solves min (1/2) sum of weight (theta_ij - y)^2 + penalty ||theta||_*. Each iteration finds
    the active subspaces, the singular vectors of a gradient step above the penalty, by block power
    iteration, and then improves the factors in them by alternating ridge regressions. With a
    constraint, the penalty whose solution has that trace norm is found on the way, by secant steps
    on its logarithm.

    Parameters
    ----------
    objective : ObservedEntries
        With the square loss; it has observed all its data. It is only read, so it may belong to a
        learner.
    constraint : TraceNormBall, optional
        The ball, unless a penalty is given.
    penalty : float, optional
        The penalty on the trace norm, in units of the *sum* of (weighted) halved squares.
    max_iter : int
        How many iterations at most.
    tol : float
        Stop when the duality gap is at most this, in units of the mean loss F.
    extra : int
        Columns that the block power iteration has beyond the current rank.
    power_steps : int
        Products with the matrix and its transpose per block power iteration.
    sweeps : int
        Alternating ridge sweeps per iteration.
    callback : callable, optional
        Called with an ``OptimizeResult`` after every iteration; raise ``StopIteration`` to stop.
    random_state : int, Generator or None
        For the extra columns.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``theta`` (:class:`~onlinefw.iterates.LowRank`), ``objective`` (F at theta, the mean loss),
        ``gap``, ``penalty``, ``history`` (a dict of arrays objective, gap, penalty, trace_norm and
        rank), ``nit``, ``success``, ``message``. The gap is that of the problem asked for, in units
        of F: the Frank-Wolfe gap over the ball, or the duality gap of the penalised problem. It
        uses the top singular value that Krylov steps find, an estimate from below.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.ObservedEntries((2, 2), dtype=float)
    >>> _ = objective.observe([[0, 0], [0, 1], [1, 0], [1, 1]], np.array([4.0, 0.0, 0.0, 2.0]))
    >>> ofw.baselines.active_alt(objective, penalty=1.0).theta.dense().round(3) + 0.0
    array([[3., 0.],
           [0., 1.]])
    >>> result = ofw.baselines.active_alt(objective, ofw.sets.TraceNormBall(4.0))
    >>> round(result.penalty, 2)
    1.0
    """
    _check(objective, constraint, penalty)
    for name, number in (("max_iter", max_iter), ("power_steps", power_steps), ("sweeps", sweeps)):
        if number < 1:
            raise ValueError(f"active_alt needs {name} of at least 1, got {number}")
    if extra < 1:
        raise ValueError(f"active_alt needs at least 1 extra column to find new ones, got {extra}")
    with one_blas_thread():
        solver = _ActiveAlt(_Entries(objective), (extra, power_steps, sweeps), random_state)
        if constraint is None:
            assert penalty is not None
            target: _Penalty | _Radius = _Penalty(float(penalty))
        else:
            target = _Radius(constraint.radius, solver.state.sigma)
        return solver.run(target, max_iter, tol, callback)


def _check(objective: Any, constraint: Any, penalty: Any) -> None:
    check_part("objective", objective, ObservedEntries, "ObservedEntries((10, 20))")
    if not isinstance(objective.loss, Square):
        raise ValueError(
            f"active_alt solves least squares, and the loss is {objective.loss}: use "
            "ObservedEntries(shape, Square()), or batch_frank_wolfe(..., step=Harmonic(2)), which "
            "takes any loss"
        )
    if objective.unobserved > 0.0:
        raise ValueError(
            "active_alt reads observed entries only, and here all others count as zeros: use "
            "unobserved=0, or batch_frank_wolfe"
        )
    objective._needs_data()
    if (constraint is None) == (penalty is None):
        raise ValueError(
            "active_alt takes either a constraint such as TraceNormBall(10.0) or a penalty=, "
            f"got {constraint} and {penalty}"
        )
    if constraint is not None:
        check_part("constraint", constraint, TraceNormBall, "TraceNormBall(10.0)")
    if penalty is not None and not 0.0 < penalty < np.inf:
        raise ValueError(f"active_alt needs a positive, finite penalty, got {penalty!r}")


class _Factors:
    """A matrix as its singular value decomposition u diag(s) v'."""

    def __init__(self, u: Array, s: Array, v: Array) -> None:
        self.u, self.s, self.v = u, s, v

    @classmethod
    def of_product(cls, left: Array, right: Array) -> _Factors:
        """Balance left @ right.T, by two QR decompositions and a small SVD."""
        (q_left, r_left), (q_right, r_right) = np.linalg.qr(left), np.linalg.qr(right)
        u, s, vt = np.linalg.svd(r_left @ r_right.T)
        kept = s > 1e-12 * s.max(initial=0.0)
        return cls(q_left @ u[:, kept], s[kept], q_right @ vt[kept].T)

    @property
    def norm(self) -> float:
        return float(self.s.sum())

    def scaled(self, factor: float) -> _Factors:
        return _Factors(self.u, factor * self.s, self.v)


class _Entries:
    """The data, every entry once, sorted by rows and by columns."""

    def __init__(self, objective: ObservedEntries) -> None:
        assert objective.shape is not None
        shape = (int(objective.shape[0]), int(objective.shape[1]))
        past = objective.state_dict()["past"]
        rows, cols, c, s = all_entries(past)
        weight, target = (sparse.coo_array((x, (rows, cols)), shape).tocsr() for x in (c, s))
        self.shape, self.total_weight = shape, objective.total_weight
        self.indptr = weight.indptr.astype(np.int64)
        self.rows = np.repeat(np.arange(shape[0]), np.diff(self.indptr))
        self.indices, self.cols = weight.indices, weight.indices.astype(np.uint32)
        self._columns = weight.indices.astype(np.int64)
        self.c, self.s = weight.data, target.data
        self.y = np.divide(self.s, self.c, out=np.zeros_like(self.s), where=self.c > 0.0)
        # Repeated observations of an entry disagree by this much whatever theta is.
        self.constant = max(0.5 * (past["counts"][2] - float(self.s @ self.y)), 0.0)
        of_rows, of_columns = past["offsets"]
        offset = of_rows[self.rows] + of_columns[self.indices]
        self.s, self.y = self.s - self.c * offset, self.y - offset
        self.largest = float(self.c.max())
        ridge_weight = self.c[:0] if (self.c == 1.0).all() else self.c
        by_row = (self.indptr, self.cols, ridge_weight, self.s)
        blocks = balanced_blocks(self.indptr)
        by_column = transpose(blocks, self.indptr, self.cols, shape[1], ridge_weight, self.s)
        self._sorted = (by_row, by_column)

    def solve(self, axis: int, other: Array, penalty: float) -> Array:
        """Return the ridge regressions of all rows (axis 0) or columns (1) on the other factor."""
        n, rank = self.shape[axis], other.shape[1]
        indptr, across, weight, target = self._sorted[axis]
        # An elimination takes about as long as summing up this many entries.
        blocks = balanced_blocks(indptr + rank * np.arange(n + 1))
        out = np.empty((n, rank))
        ridge = np.full(n, penalty)
        other = np.ascontiguousarray(other)
        ridge_rows(blocks, indptr, across, weight, target, other, ridge, out)
        return out

    def residuals(self, x: _Factors) -> Array:
        """Return y - x at every entry."""
        left, right = np.ascontiguousarray(x.u), np.ascontiguousarray(x.v)
        return self.y - factor_entries(left, x.s, right, self.rows, self._columns)

    def matrix(self, values: Array) -> Any:
        """Return the sparse matrix that has these values at the entries."""
        return sparse.csr_array((values, self.indices, self.indptr), self.shape)


class _State:
    """What is known at a point x; G = -gradient of the sum, sigma its top singular value."""

    def __init__(self, entries: _Entries, x: _Factors) -> None:
        self.x, self.entries = x, entries
        self.residuals = entries.residuals(x)
        slopes = entries.c * self.residuals
        self.slopes = entries.matrix(slopes)
        # From a random start: steps from the last singular vector might not find a larger one.
        _, sigma, _ = top_singular_pair(self.slopes, tol=1e-6, steps=100)
        self.halved_squares = 0.5 * float(slopes @ self.residuals)
        self.slopes_dot_y = float(slopes @ entries.y)
        # <G, x> = <G, y> - <G, y - x>
        self.slopes_dot_x = self.slopes_dot_y - 2.0 * self.halved_squares
        # Where x is nearly optimal this bound from below is as good as the Krylov steps' own.
        self.slope = self.slopes_dot_x / x.norm if x.norm > 0.0 else 0.0
        self.sigma = max(sigma, self.slope)

    @property
    def value(self) -> float:
        """F, the mean loss."""
        return (self.halved_squares + self.entries.constant) / self.entries.total_weight

    def best_scale(self) -> float:
        """The multiple of x with the least squares."""
        x = self.entries.y - self.residuals
        square = float(self.entries.c @ x**2)
        return max(float(self.entries.s @ x) / square, 0.0) if square > 0.0 else 1.0

    def scaled(self, factor: float) -> _State:
        return self if factor == 1.0 else _State(self.entries, self.x.scaled(factor))

    def ball_gap(self, radius: float) -> float:
        """The Frank-Wolfe gap over a ball that contains x."""
        return (radius * self.sigma - self.slopes_dot_x) / self.entries.total_weight

    def penalised_gap(self, penalty: float) -> float:
        """The duality gap, with the best multiple of G that is feasible for the dual."""
        primal = self.halved_squares + penalty * self.x.norm
        if self.halved_squares == 0.0:
            return primal / self.entries.total_weight
        multiple = self.slopes_dot_y / (2.0 * self.halved_squares)
        if self.sigma > 0.0:
            multiple = float(np.clip(multiple, -penalty / self.sigma, penalty / self.sigma))
        dual = multiple * self.slopes_dot_y - multiple**2 * self.halved_squares
        return max(primal - dual, 0.0) / self.entries.total_weight


class _Penalty:
    """The problem with a given penalty."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def point(self, state: _State) -> _State:
        return state

    def gap(self, point: _State) -> float:
        return point.penalised_gap(self.penalty)

    def adjust(self, state: _State, gap: float) -> None:
        """Nothing to find."""


class _Radius:
    """The problem with a given radius: finds the penalty whose solution has that trace norm.

    The trace norm falls as the penalty grows. Where the iteration has come close to *some*
    solution, <G, x> / ||x||_* says to which penalty it belongs, more exactly than the penalty that
    was asked for. Secant steps on its logarithm, kept between the two nearest such points.
    """

    def __init__(self, radius: float, largest: float) -> None:
        # From the largest singular value of the data on, the solution is zero.
        self.radius, self.penalty, self._least = radius, 0.5 * largest, LEAST * largest
        self._last: tuple[float, float] | None = None
        self._above, self._below = np.log(largest) if largest > 0.0 else np.inf, -np.inf

    def point(self, state: _State) -> _State:
        """The best point of the ray within the ball."""
        return state.scaled(min(state.best_scale(), self.radius / max(state.x.norm, 1e-300)))

    def gap(self, point: _State) -> float:
        return point.ball_gap(self.radius)

    def adjust(self, state: _State, gap: float) -> None:
        """Change the penalty once most of the gap comes from the trace norm, not from x itself."""
        norm, own = state.x.norm, state.slope
        if norm == 0.0:  # only if the penalty is too near the largest
            self.penalty /= LONGEST
            return
        if own <= 0.0 or state.ball_gap(norm) > OWN_SHARE * gap:
            return
        here = (float(np.log(own)), float(np.log(norm)))
        self._narrow(here)
        wanted = here[0] + self._secant(here)
        if not self._below < wanted < self._above:
            wanted = 0.5 * (here[0] + (self._below if norm < self.radius else self._above))
        self._last, self.penalty = here, max(float(np.exp(wanted)), self._least)

    def _narrow(self, here: tuple[float, float]) -> None:
        """Keep the nearest points on either side; forget the older one if they contradict."""
        if here[1] < np.log(self.radius):
            self._above = here[0]
            if self._below >= self._above:
                self._below = -np.inf
        else:
            self._below = here[0]
            if self._above <= self._below:
                self._above = np.inf

    def _secant(self, here: tuple[float, float]) -> float:
        """The step in log(penalty), at most log(LONGEST), from the last two trace norms."""
        wanted, longest = np.log(self.radius) - here[1], np.log(LONGEST)
        slope = 0.0
        if self._last is not None and self._last[0] != here[0]:
            slope = (here[1] - self._last[1]) / (here[0] - self._last[0])
        if slope >= 0.0:  # not known yet, or lost in rounding: the trace norm falls
            return float(-np.sign(wanted) * longest)
        return float(np.clip(wanted / slope, -longest, longest))


class _ActiveAlt:
    """The iteration, with the penalty of a target."""

    def __init__(
        self, entries: _Entries, sizes: tuple[int, int, int], random_state: int | Generator | None
    ) -> None:
        self.entries, self.rng = entries, np.random.default_rng(random_state)
        self.extra, self.power_steps, self.sweeps = sizes
        m, n = entries.shape
        self.near = np.empty((n, 0))  # right singular vectors that were just below the penalty
        nothing = _Factors(np.empty((m, 0)), np.empty(0), np.empty((n, 0)))
        self.state = _State(entries, nothing)
        self.nit = 0

    def run(
        self,
        target: _Penalty | _Radius,
        max_iter: int,
        tol: float,
        callback: Callable[[OptimizeResult], Any] | None,
    ) -> OptimizeResult:
        history: dict[str, list[float]] = {name: [] for name in HISTORY}
        message = f"the duality gap did not reach tol={tol:g} in max_iter={max_iter} iterations"
        while True:
            penalty, point = target.penalty, target.point(self.state)
            gap = target.gap(point)
            record = (point.value, gap, penalty, point.x.norm, point.x.s.size)
            for name, number in zip(HISTORY, record, strict=True):
                history[name].append(number)
            if self.nit > 0 and stops(callback, partial(self.result, point, history)):
                message = "stopped by the callback"
                break
            if gap <= tol:
                message = f"the duality gap is at most tol={tol:g}"
                break
            if self.nit >= max_iter:
                break
            if self.nit > 0:
                target.adjust(self.state, gap)
            self.state = self.iterate(target.penalty)
            self.nit += 1
        return self.result(point, history, gap <= tol, message)

    def iterate(self, penalty: float) -> _State:
        """One iteration: active subspaces of a gradient step, then ridge sweeps in them."""
        u, s, v = self.gradient_step()
        shrunk = s - penalty / self.entries.largest
        active = shrunk > 1e-12 * s.max(initial=0.0)
        root = np.sqrt(shrunk[active])
        left, right = u[:, active] * root, v[:, active] * root
        self.near = v[:, ~active][:, : self.extra // 2]
        for _ in range(self.sweeps if root.size else 0):
            right = self.entries.solve(1, left, penalty)
            left = self.entries.solve(0, right, penalty)
        return _State(self.entries, _Factors.of_product(left, right))

    def gradient_step(self) -> tuple[Array, Array, Array]:
        """Return the leading singular triplets of x + G / L, low rank plus sparse, L = max weight.

        Block power iteration from the right vectors of x, those that were just below the penalty
        last time, and random ones.
        """
        x, slopes = self.state.x, self.state.slopes * (1.0 / self.entries.largest)
        m, n = self.entries.shape
        kept = x.s.size + self.near.shape[1]
        size = min(m, n, x.s.size + self.extra)
        fresh = self.rng.standard_normal((n, max(size - kept, 0)))
        block = np.concatenate((x.v, self.near, fresh), axis=1)[:, :size]
        for _ in range(self.power_steps):
            block = np.linalg.qr(block)[0]
            image = np.linalg.qr(slopes @ block + x.u @ (x.s[:, None] * (x.v.T @ block)))[0]
            block = slopes.T @ image + x.v @ (x.s[:, None] * (x.u.T @ image))
        right, s, inner = np.linalg.svd(block, full_matrices=False)
        return image @ inner.T, s, right

    def result(
        self, point: _State, history: dict[str, list[float]], success: bool, message: str
    ) -> OptimizeResult:
        x = point.x
        return OptimizeResult(
            theta=LowRank.from_factors(x.u, x.s, x.v),
            objective=history["objective"][-1],
            gap=history["gap"][-1],
            penalty=history["penalty"][-1],
            history={name: np.array(values) for name, values in history.items()},
            nit=self.nit,
            success=success,
            message=message,
        )
