"""A matrix held as low-rank factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._devices import to_host
from .._threads import blocks_for, share
from .._typing import Array, Shape, State
from ..atoms import Atom, RankOne
from .factored import LONG_FACTOR, Factored, Held, svd_of

__all__ = ["LowRank"]


class LowRank(Factored):
    """A matrix held as ``left @ diag(weights) @ right.T``; starts at zero.

    A learner's low-rank theta is this object itself and changes as it learns; ``copy()`` keeps it.

    Factors are stored entry by entry (all atoms of a row together), so reading scattered entries
    touches two short runs of memory for each. A common scale is kept apart, so multiplying theta
    by a number costs nothing. When ``max_atoms`` are held the factors are recompressed (QR and a
    small SVD) to at most ``max_rank`` singular pairs; if that leaves something out, theta is what
    remains, and has changed.

    Parameters
    ----------
    shape : tuple of int
        (m1, m2).
    max_atoms : int, optional
        Recompress when this many atoms are held; default ``2 * min(m1, m2)``, at least 8.
    max_rank : int, optional
        The rank that recompression keeps; by default all of it, to rounding.
    dtype : dtype
        The type of the factors.

    Attributes
    ----------
    version : int
        How often theta has changed.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.atoms import RankOne
    >>> from onlinefw.iterates import LowRank
    >>> theta = LowRank((2, 3))
    >>> theta.move(RankOne(np.array([1.0, 0.0]), 4.0, np.array([0.0, 0.0, 1.0])), 0.5)
    >>> theta.entries([0, 1], [2, 2])
    array([2., 0.])
    """

    def __init__(
        self,
        shape: Shape,
        max_atoms: int | None = None,
        *,
        max_rank: int | None = None,
        dtype: DTypeLike = float,
    ) -> None:
        m1, m2 = shape
        self.max_atoms = max(8, 2 * min(m1, m2)) if max_atoms is None else max_atoms
        self.max_rank = max_rank
        _check_limits(self.max_atoms, max_rank)
        self.dtype = np.dtype(dtype)
        left, right = (self._xp.empty((int(m), 0), self.dtype) for m in (m1, m2))
        self.version = 0
        self._held = Held(left, np.empty(0), right, 0, 1.0)

    @classmethod
    def from_factors(
        cls, left: Array, weights: Array, right: Array, *, max_atoms: int | None = None
    ) -> LowRank:
        """Make the iterate ``left @ diag(weights) @ right.T``, with copies of the factors.

        Examples
        --------
        >>> import numpy as np
        >>> from onlinefw.iterates import LowRank
        >>> LowRank.from_factors(np.ones((2, 1)), np.array([3.0]), np.eye(2)[:, :1]).dense()
        array([[3., 0.],
               [3., 0.]])
        """
        left, right = (cls._xp.asarray(x) for x in (left, right))
        weights = np.asarray(weights)
        k = weights.size
        if left.ndim != 2 or right.ndim != 2 or not left.shape[1] == right.shape[1] == k:
            raise ValueError(
                f"LowRank needs factors (m1, k), (k,) and (m2, k), got {left.shape}, "
                f"{weights.shape} and {right.shape}"
            )
        dtype = np.result_type(left.dtype, right.dtype, np.float32)
        iterate = cls((left.shape[0], right.shape[0]), max_atoms, dtype=dtype)
        iterate.max_atoms = max(iterate.max_atoms, k)
        iterate._held = iterate._copied(left, weights, right, k)
        return iterate

    @property
    def theta(self) -> LowRank:
        """The iterate itself."""
        return self

    @property
    def capacity(self) -> int:
        """How many rank-one terms fit into the memory of the factors."""
        return int(self._held.weights.size)

    def move(self, atom: Atom, step: float) -> None:
        """Let theta <- (1 - step) theta + step * atom, for a RankOne."""
        if not isinstance(atom, RankOne):
            raise TypeError(f"a LowRank iterate moves along RankOne atoms, got {atom!r}")
        held = self._held
        if step == 1.0:
            held = self._copied(held.left[:, :0], held.weights[:0], held.right[:, :0], 8)
        elif held.k == held.weights.size or held.k >= self.max_atoms:
            held = self._with_space()
        left, weights, right, k, scale = held
        scale *= 1.0 - step
        if step == 1.0:
            scale = 1.0
        elif not 1e-100 < abs(scale) < 1e100:
            weights, scale = scale * weights, 1.0
        # After the last column in use: theta changes with the assignment in _publish only.
        self._set_columns(left, right, k, atom.u, atom.v)
        weights[k] = step * atom.scale / scale
        self._publish(Held(left, weights, right, k + 1, scale))

    def _publish(self, held: Held) -> None:
        """Replace theta in one assignment.

        After an interrupt between the two lines a change is counted that did not happen, which
        does no harm.
        """
        self.version += 1
        self._held = held

    def _set_columns(self, left: Array, right: Array, k: int, u: Array, v: Array) -> None:
        """Write column k of both factors."""
        for factor, values in ((left, u), (right, v)):
            if values.size <= LONG_FACTOR:
                factor[:, k] = values
            else:
                blocks = blocks_for(values.size, values.size)
                share(_set_column, blocks, factor[:, k], values)

    def _with_space(self) -> Held:
        """Return theta with space for one more term; recompress first if there are too many."""
        if self.n_atoms >= self.max_atoms:
            self.recompress()
        held = self._held
        k = held.k
        if k < held.weights.size:
            return held
        terms = held.left[:, :k], held.weights[:k], held.right[:, :k]
        capacity = min(self.max_atoms, _most_space(k))
        return self._copied(*terms, capacity, held.scale)

    def shrink(self, factor: float) -> None:
        """Let theta <- factor * theta."""
        left, weights, right, k, scale = self._held
        self._publish(Held(left, scale * factor * weights, right, k, 1.0))

    def put(self, left: Array, weights: Array, right: Array) -> None:
        """Put theta at left diag(weights) right', all copied.

        More than ``max_atoms`` terms are recompressed, and theta is what remains.
        """
        k = weights.size
        if k > self.max_atoms:
            left, right = (self._xp.asarray(x, self.dtype) for x in (left, right))
            left, weights, right, _ = self._compressed(left, weights, right)
            k = weights.size
        capacity = min(self._held.weights.size, _most_space(k))
        self._publish(self._copied(left, weights, right, max(k, capacity)))

    def hold(self, left: Array, weights: Array, right: Array) -> None:
        """Put theta at left diag(weights) right', and hold these very arrays."""
        self._publish(Held(left, weights, right, weights.size, 1.0))

    def rewrite(self, left: Array, weights: Array, right: Array) -> None:
        """Hold other factors of the same theta, all copied: it does not count as a change."""
        k = max(weights.size, min(8, self.max_atoms))
        self._held = self._copied(left, weights, right, k)

    def recompress(self) -> None:
        """Replace the factors by at most ``max_rank`` singular pairs, without spare memory.

        If the rank was larger, theta is another one now, and that counts as a change: who holds
        predictions of it has to compute them again.
        """
        u, s, v, is_cut = self._compressed(self.left, self.weights, self.right)
        if self.max_rank is None:
            self.max_atoms = max(self.max_atoms, 2 * s.size)
        left, right = (self._xp.ascontiguousarray(x, dtype=self.dtype) for x in (u, v))
        held = Held(left, np.array(s, float), right, s.size, 1.0)
        if is_cut:
            self._publish(held)
        else:
            self._held = held

    def _compressed(
        self, left: Array, weights: Array, right: Array
    ) -> tuple[Array, Array, Array, bool]:
        """Return factors of at most ``max_rank`` terms, and whether more than rounding is cut."""
        u, s, v = svd_of(left, weights, right)
        k = int(np.count_nonzero(s > s[0] * np.finfo(self.dtype).eps)) if s.size else 0
        kept = k if self.max_rank is None else min(k, self.max_rank)
        return u[:, :kept], s[:kept], v[:, :kept], kept < k

    def remember(self) -> dict[str, Any]:
        """Return what ``go_back`` needs; nothing is copied, as nothing held is overwritten."""
        return dict(vars(self))

    def go_back(self, memory: dict[str, Any]) -> None:
        """Undo what has happened since, if that was growth only."""
        vars(self).update(memory)

    def grow(self, shape: Shape, max_atoms: int, max_rank: int | None) -> None:
        """Add rows and columns of zeros at the end, with the limits for the new shape."""
        _check_limits(max_atoms, max_rank)
        held, factors = self._held, []
        for old, size in ((held.left, shape[0]), (held.right, shape[1])):
            factor = self._xp.zeros((int(size), old.shape[1]), self.dtype)
            factor[: old.shape[0]] = old
            factors.append(factor)
        self.max_atoms, self.max_rank = max_atoms, max_rank
        self._publish(held._replace(left=factors[0], right=factors[1]))

    def _copied(
        self,
        left: Array,
        weights: Array,
        right: Array,
        capacity: int,
        scale: float = 1.0,
    ) -> Held:
        """Return copies of factors in memory for ``capacity`` terms."""
        k, longer = weights.size, np.empty(capacity)
        longer[:k] = weights
        factors = []
        for factor in (left, right):
            memory = self._xp.empty((factor.shape[0], capacity), self.dtype)
            memory[:, :k] = self._xp.asarray(factor)
            factors.append(memory)
        return Held(factors[0], longer, factors[1], k, scale)

    def copy(self) -> LowRank:
        """Return an independent copy."""
        return type(self).from_state(self.state_dict())

    def state_dict(self) -> State:
        """Return the factors."""
        held = self._held
        return {
            "kind": "LowRank",
            "left": to_host(self.left).copy(),
            "weights": held.weights[: held.k].copy(),
            "right": to_host(self.right).copy(),
            "scale": held.scale,
            "max_atoms": self.max_atoms,
            "max_rank": self.max_rank,
            "capacity": held.weights.size,
        }

    def load_state(self, state: State) -> None:
        """Become what a ``state_dict`` described."""
        left, weights, right = _checked_factors(state)
        max_atoms, max_rank = int(state["max_atoms"]), state["max_rank"]
        _check_limits(max_atoms, max_rank)
        capacity, k = int(state["capacity"]), weights.size
        scale, whole = float(state["scale"]), k <= capacity <= _most_space(k)
        if not (whole and np.isfinite(scale)):
            raise ValueError("the state of theta is damaged: a number is out of range")
        self.max_atoms, self.max_rank, self.dtype = max_atoms, max_rank, left.dtype
        # The same memory layout as before, so that products round the same way. Factors without
        # terms may have any number of rows, so they get no space before they are moved.
        capacity = capacity if k else 0
        self._publish(self._copied(left, weights, right, capacity, scale))

    @classmethod
    def from_state(cls, state: State) -> LowRank:
        """Make the iterate that ``state_dict`` described."""
        iterate = cls((0, 0))
        iterate.load_state(state)
        return iterate

    def __getstate__(self) -> State:
        return self.state_dict()

    def __setstate__(self, state: State) -> None:
        self.__init__((0, 0))  # type: ignore[misc]
        self.load_state(state)

    def __repr__(self) -> str:
        return f"LowRank(shape={self.shape}, n_atoms={self.n_atoms})"


def _set_column(first: int, last: int, blocks: Array, column: Array, values: Array) -> None:
    """Copy some blocks: every number has a cache line of its own, so two threads help."""
    part = slice(blocks[first], blocks[last])
    column[part] = values[part]


def _most_space(k: int) -> int:
    """Return for how many terms there is space at most, if there are k."""
    return max(8, 2 * k)


def _check_limits(max_atoms: int, max_rank: int | None) -> None:
    if max_atoms < 2:
        raise ValueError(f"LowRank needs max_atoms of at least 2, got {max_atoms}")
    if max_rank is not None and not 1 <= max_rank < max_atoms:
        raise ValueError(f"LowRank needs 1 <= max_rank < max_atoms, got {max_rank} and {max_atoms}")


def _checked_factors(state: State) -> tuple[Array, Array, Array]:
    """Return left, weights and right of a state, or say what is wrong with them."""
    names = "left", "weights", "right"
    for name in (*names, "scale", "max_atoms", "max_rank", "capacity"):
        if name not in state:
            raise ValueError(f"this is not a whole state of theta: {name!r} is missing")
    left, weights, right = (state[name] for name in names)
    for name, array, ndim in zip(names, (left, weights, right), (2, 1, 2), strict=True):
        is_array = isinstance(array, np.ndarray) and array.ndim == ndim
        if not is_array or array.dtype not in (np.float32, np.float64):
            raise ValueError(f"the state of theta is damaged: {name} is no array of numbers")
    if not left.shape[1] == weights.size == right.shape[1] or left.dtype != right.dtype:
        raise ValueError(
            f"the state of theta is damaged: factors {left.shape} {left.dtype} and {right.shape} "
            f"{right.dtype} with {weights.size} weights"
        )
    return left, weights, right
