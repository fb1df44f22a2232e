"""An objective known only through a gradient function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from .._state import describe, rebuild
from .._typing import Array, Direction, Shape, State
from .._validation import check_sparse
from ..atoms import Atom
from ..iterates import DenseIterate, LowRank
from ..linalg import inner
from ..sets import ConvexSet
from .base import Objective

__all__ = ["GradientOracle"]


class GradientOracle(Objective):
    """Any objective whose (exact or inexact) gradient the user can compute.

    ``learner.observe()`` then takes no data: each call is one round.

    Parameters
    ----------
    fn : callable
        ``fn(theta, t)`` returns the gradient at theta in round t = 1, 2, ...: an ndarray, a sparse
        matrix, or (spectral sets) a LinearOperator of the same shape as theta. In round 1 theta
        is 0, whether or not the set contains 0.
    shape : int or tuple of int
        The shape of theta.
    value : callable, optional
        ``value(theta)`` returns the objective, for ``Round.loss`` and line searches.
    low_rank : bool
        Keep theta as :class:`~onlinefw.iterates.LowRank` factors and pass those to ``fn``: for
        matrices too large to be dense, with a set whose atoms have rank one.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.GradientOracle(lambda theta, t: 2 * theta, shape=5)
    >>> learner = ofw.OnlineFrankWolfe(objective, ofw.sets.Simplex())
    >>> for _ in range(1000):
    ...     _ = learner.observe()
    >>> round(float(learner.theta @ learner.theta), 3)  # the minimum of ||x||^2 is 1/5
    0.2
    """

    def __init__(
        self,
        fn: Callable[[Any, int], Direction],
        shape: Shape | int,
        value: Callable[[Any], float] | None = None,
        *,
        low_rank: bool = False,
    ) -> None:
        shape = (int(shape),) if np.ndim(shape) == 0 else tuple(shape)  # type: ignore[arg-type]
        if not shape or min(shape) < 1:
            raise ValueError(f"shape must have positive sides, got {shape}")
        if low_rank and len(shape) != 2:
            raise ValueError(f"low_rank=True needs a matrix shape (m1, m2), got {shape}")
        if not callable(fn):
            raise ValueError(f"fn must be a function of (theta, t), got {fn!r}")
        self.fn, self.value_fn, self.low_rank = fn, value, low_rank
        self._t = 0
        self._fresh: Direction | None = None
        super().__init__(shape)

    def attach(self, owner: str, constraint: ConvexSet) -> None:
        """Claim this objective for one learner; low-rank factors need rank-one atoms."""
        if self.low_rank and not constraint.has_rank_one_atoms:
            raise ValueError(
                f"low_rank=True needs a set with atoms of rank one, and {constraint} is not one; "
                "use TraceNormBall or Spectrahedron, or low_rank=False"
            )
        super().attach(owner, constraint)

    def _new_iterate(self, shape: Shape) -> DenseIterate | LowRank:
        return LowRank(shape) if self.low_rank else DenseIterate(shape)

    def check(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> None:
        """Refuse data: there are none."""
        if not (X is None and y is None and sample_weight is None):
            raise ValueError("a GradientOracle takes no data: call observe() with no arguments")

    def add(self, batch: None) -> float:
        """Begin a round; return the objective at the current iterate (nan if it is not known)."""
        # The gradient is evaluated before the round is counted: if fn fails, nothing has changed.
        gradient = self._evaluate(self._t + 1)
        loss = self.value()
        self._t += 1
        self.n_observations += 1
        self._fresh = gradient
        return loss

    def gradient(self) -> Direction:
        """Return fn(theta, t)."""
        if self._fresh is None:
            self._fresh = self._evaluate(max(self._t, 1))
        return self._fresh

    def _evaluate(self, t: int, theta: Array | None = None) -> Direction:
        gradient = self.fn(self.theta if theta is None else theta, t)
        if sparse.issparse(gradient):
            check_sparse("the gradient that fn returned", gradient)
            gradient = gradient.tocsr()  # entries are looked up atom by atom
        elif not isinstance(gradient, LinearOperator):
            gradient = np.asarray(gradient, dtype=float)
        if tuple(gradient.shape) != self.shape:
            raise ValueError(
                f"fn returned a gradient of shape {tuple(gradient.shape)} for theta of shape "
                f"{self.shape}; they must agree"
            )
        values = gradient.data if sparse.issparse(gradient) else gradient
        if isinstance(values, np.ndarray) and not _is_finite(values):
            start = " (where theta is still 0)" if t == 1 else ""
            raise ValueError(f"fn returned a gradient with NaN or infinity in round {t}{start}")
        return gradient

    def value(self) -> float:
        """Return value(theta), or nan if no function was given."""
        return np.nan if self.value_fn is None else float(self.value_fn(self.theta))

    def move(self, atom: Atom, step: float) -> None:
        """Move theta."""
        self.iterate.move(atom, step)
        self._fresh = None

    def _refresh(self) -> None:
        self._fresh = None

    def line(self, atom: Atom) -> _OracleLine:
        """Return F along theta + c (atom - theta), each point one call of fn (or value)."""
        if self.low_rank:
            raise ValueError("a line search needs a dense iterate: use low_rank=False")
        return _OracleLine(self, np.asarray(atom) - np.asarray(self.theta))

    def state_dict(self) -> State:
        """Return the iterate and the round number; the functions are passed in again."""
        return {
            **self._base_state(),
            "fn": describe(self.fn),
            "value": None if self.value_fn is None else describe(self.value_fn),
            "low_rank": self.low_rank,
            "t": self._t,
        }

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        self._load_base(state)
        self._t, self._fresh = int(state["t"]), None

    @classmethod
    def from_state(
        cls,
        state: State,
        *,
        fn: Callable[[Any, int], Direction] | None = None,
        value: Callable[[Any], float] | None = None,
    ) -> GradientOracle:
        """Make the objective that ``state_dict`` described, with its functions passed in."""
        if state["value"] is not None:
            value = rebuild(state["value"], "value", value)
        fn = rebuild(state["fn"], "fn", fn)
        objective = cls(fn, tuple(state["shape"]), value, low_rank=state["low_rank"])
        objective.load_state(state)
        return objective

    def __repr__(self) -> str:
        return f"GradientOracle(shape={self.shape})"


class _OracleLine:
    curvature = None

    def __init__(self, objective: GradientOracle, direction: Array) -> None:
        self._objective, self._direction = objective, direction
        self._start = np.asarray(objective.theta)

    def _at(self, c: float) -> Array:
        return self._start + c * self._direction

    def value(self, c: float) -> float:
        value_fn = self._objective.value_fn
        return np.nan if value_fn is None else float(value_fn(self._at(c)))

    def slope(self, c: float) -> float:
        t = max(self._objective._t, 1)
        return inner(self._direction, self._objective._evaluate(t, self._at(c)))


def _is_finite(gradient: Array) -> bool:
    # One fused pass is nearly always enough; only after an overflow or a NaN a second is needed.
    flat = gradient.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.dot(flat, flat)) or np.isfinite(flat).all())
