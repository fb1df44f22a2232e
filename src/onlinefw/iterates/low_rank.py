"""A matrix held as low-rank factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from .._devices import namespace, to_host
from .._threads import all_blas_threads, threads_for
from .._typing import Array, Direction, Shape, State
from ..atoms import Atom, LowRankAtom, RankOne

__all__ = ["LowRank"]

#: Factors with more rows than this are orthonormalised through their Gram matrix.
LONG_FACTOR = 8192


class LowRank:
    """A matrix held as ``left @ diag(weights) @ right.T``; starts at zero.

    A learner's low-rank theta is this object itself and changes as it learns; ``copy()`` keeps it.

    Factors are stored entry by entry (all atoms of a row together), so reading scattered entries
    touches two short runs of memory for each. A common scale is kept apart, so multiplying theta
    by a number costs nothing. When ``max_atoms`` are held the factors are recompressed (QR and a
    small SVD) to at most ``max_rank`` singular pairs; what is left out is added to ``truncated``.

    Parameters
    ----------
    shape : tuple of int
        (m1, m2).
    max_atoms : int, optional
        Recompress when this many atoms are held; default ``2 * min(m1, m2)``, at least 8.
    max_rank : int, optional
        The rank that recompression keeps; by default all of it, to rounding.
    dtype : dtype
        Of the factors.

    Attributes
    ----------
    truncated : float
        A bound on the trace norm of all that recompression has left out of theta so far.

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

    __array_priority__ = 100.0
    _xp: Any = np  # where the factors live; the weights are always on the host

    def __init__(
        self,
        shape: Shape,
        max_atoms: int | None = None,
        *,
        max_rank: int | None = None,
        dtype: DTypeLike = float,
    ) -> None:
        m1, m2 = shape
        self.shape = (int(m1), int(m2))
        self.max_atoms = max(8, 2 * min(m1, m2)) if max_atoms is None else max_atoms
        self.max_rank = max_rank
        if self.max_atoms < 2:
            raise ValueError(f"LowRank needs max_atoms of at least 2, got {max_atoms}")
        if max_rank is not None and not 1 <= max_rank < self.max_atoms:
            raise ValueError(
                f"LowRank needs 1 <= max_rank < max_atoms, got {max_rank} and {self.max_atoms}"
            )
        self.dtype = np.dtype(dtype)
        self.truncated = 0.0
        self._left = self._xp.empty((m1, 0), self.dtype)
        self._right = self._xp.empty((m2, 0), self.dtype)
        self._weights = np.empty(0)
        self._scale = 1.0
        self._k = 0

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
        iterate._reserve(k)
        iterate._left[:], iterate._right[:], iterate._weights[:] = left, right, weights
        iterate._k = k
        return iterate

    @property
    def theta(self) -> LowRank:
        """The iterate itself."""
        return self

    @property
    def left(self) -> Array:
        """(m1, k) factor."""
        return self._left[:, : self._k]

    @property
    def right(self) -> Array:
        """(m2, k) factor."""
        return self._right[:, : self._k]

    @property
    def weights(self) -> Array:
        """The k weights."""
        return self._scale * self._weights[: self._k]

    @property
    def n_atoms(self) -> int:
        """How many rank-one terms are held (an upper bound on the rank)."""
        return self._k

    def dense(self) -> Array:
        """Return theta as an ndarray."""
        return (to_host(self.left) * self.weights) @ to_host(self.right).T

    toarray = dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.dense().astype(dtype or float, copy=False)

    def entries(self, rows: Any, cols: Any) -> Array:
        """Return theta[rows[i], cols[i]] for every i."""
        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        for name, index, size in zip(("row", "column"), (rows, cols), self.shape, strict=True):
            if index.size and not 0 <= index.min() <= index.max() < size:
                wrong = index[(index < 0) | (index >= size)][0]
                raise IndexError(f"theta has {size} {name}s, but {name} {wrong} was asked for")
        return self._entries(rows, cols)

    def _entries(self, rows: Array, cols: Array) -> Array:
        """Return theta at indices that have been checked."""
        from ..kernels.entries import factor_entries

        out = np.zeros(rows.size, self.dtype)
        if self._k:
            weights = self.weights.astype(self.dtype)
            with threads_for(rows.size * self._k):
                factor_entries(self.left, self.right, weights, rows, cols, out)
        return out

    @property
    def _weights_there(self) -> Array:
        """The weights, where the factors are."""
        return self._xp.asarray(self.weights)

    def matvec(self, v: Array) -> Array:
        """Return theta @ v."""
        return self.left @ (self._weights_there * (self.right.T @ v))

    def rmatvec(self, u: Array) -> Array:
        """Return theta.T @ u."""
        return self.right @ (self._weights_there * (self.left.T @ u))

    def as_operator(self) -> LinearOperator:
        """Return theta as a scipy LinearOperator."""
        return LinearOperator(
            self.shape,
            self.matvec,
            self.rmatvec,
            matmat=lambda x: self.left @ (self._weights_there[:, None] * (self.right.T @ x)),
            rmatmat=lambda x: self.right @ (self._weights_there[:, None] * (self.left.T @ x)),
            dtype=float,
        )

    def squared_norm(self) -> float:
        """Return the squared Frobenius norm of theta, from the factors."""
        overlap = to_host((self.left.T @ self.left) * (self.right.T @ self.right))
        return float(self.weights @ overlap @ self.weights)

    def dot(self, direction: Direction) -> float:
        """Return <theta, direction>, with one product per atom."""
        if self._k == 0:
            return 0.0
        image = aslinearoperator(direction).matmat(np.ascontiguousarray(self.right))
        return float(to_host(self._xp.einsum("ik,ik->k", self.left, image)) @ self.weights)

    def move(self, atom: Atom, step: float) -> None:
        """Theta <- (1 - step) theta + step * atom, for a RankOne or a LowRankAtom."""
        if isinstance(atom, RankOne):
            terms: list[Any] = [(atom.u, atom.scale, atom.v)]
        elif isinstance(atom, LowRankAtom):
            terms = list(zip(atom.u.T, atom.scales, atom.v.T, strict=True))
        else:
            raise TypeError(f"a LowRank iterate moves along RankOne atoms, got {atom!r}")
        self._scale *= 1.0 - step
        self.truncated *= abs(1.0 - step)
        if step == 1.0:
            self._k, self._scale = 0, 1.0
        elif not 1e-100 < abs(self._scale) < 1e100:
            self._weights[: self._k] *= self._scale
            self._scale = 1.0
        for u, scale, v in terms:
            self._append(u, step * scale, v)

    def _append(self, u: Array, weight: float, v: Array) -> None:
        self._make_room()
        _set_column(self._left, self._k, u)
        _set_column(self._right, self._k, v)
        self._weights[self._k] = weight / self._scale
        self._k += 1

    def _make_room(self) -> None:
        """Make room for one more atom."""
        if self._k >= self.max_atoms:
            self.recompress()
        if self._k == self._weights.size:
            self._reserve(min(self.max_atoms, max(8, 2 * self._k)))

    def shrink(self, factor: float) -> None:
        """Theta <- factor * theta."""
        self._weights[: self._k] *= self._scale * factor
        self._scale = 1.0
        self.truncated *= abs(factor)

    def place(self, left: Array, weights: Array, right: Array) -> None:
        """Put theta at left diag(weights) right', all copied; nothing counts as left out.

        More than ``max_atoms`` terms are recompressed, and theta is what remains.
        """
        k = weights.size
        if k > self._weights.size:
            self._k = 0  # nothing of what was held needs to be copied
            self._reserve(k)
        self._left[:, :k], self._right[:, :k], self._weights[:k] = left, right, weights
        self._scale, self._k = 1.0, k
        if k > self.max_atoms:
            self.recompress()
        self.truncated = 0.0

    def recompress(self) -> None:
        """Replace the factors by at most ``max_rank`` singular pairs."""
        u, s, v = self.svd()
        keep = int(np.count_nonzero(s > s[0] * np.finfo(self.dtype).eps)) if s.size else 0
        if self.max_rank is None:
            self.max_atoms = max(self.max_atoms, 2 * keep)
        else:
            keep = min(keep, self.max_rank)
            self.truncated += float(s[keep:].sum())
        self._left[:, :keep] = u[:, :keep]
        self._right[:, :keep] = v[:, :keep]
        self._weights[:keep] = s[:keep]
        self._scale, self._k = 1.0, keep

    def svd(self) -> tuple[Array, Array, Array]:
        """Return (U, s, V) with theta = U diag(s) V', orthonormal U and V."""
        with all_blas_threads():
            return self._svd()

    def _svd(self) -> tuple[Array, Array, Array]:
        to_left, r_left = _orthonormaliser(self.left)
        to_right, r_right = _orthonormaliser(self.right)
        u, s, vt = np.linalg.svd((r_left * self.weights) @ r_right.T, full_matrices=False)
        return to_left(u), s, to_right(vt.T)

    def singular_values(
        self, row_scale: Array | None = None, column_scale: Array | None = None
    ) -> Array:
        """Return the singular values of theta, or of diag(row_scale) theta diag(column_scale)."""
        left, right = self.left, self.right
        if row_scale is not None and column_scale is not None:
            left = self._xp.asarray(row_scale)[:, None] * left
            right = self._xp.asarray(column_scale)[:, None] * right
        product = (_triangle(left) * self.weights) @ _triangle(right).T
        return np.linalg.svd(product, compute_uv=False)

    def grow(self, shape: Shape, max_atoms: int, max_rank: int | None) -> None:
        """Add rows and columns of zeros at the end, with the limits for the new shape."""
        self.max_atoms, self.max_rank = max_atoms, max_rank
        for name, size in (("_left", shape[0]), ("_right", shape[1])):
            old = getattr(self, name)
            grown = self._xp.zeros((size, old.shape[1]), self.dtype)
            grown[: old.shape[0]] = old
            setattr(self, name, grown)
        self.shape = (int(shape[0]), int(shape[1]))

    def _reserve(self, capacity: int) -> None:
        for name in ("_left", "_right"):
            old = getattr(self, name)
            grown = self._xp.empty((old.shape[0], capacity), self.dtype)
            grown[:, : self._k] = old[:, : self._k]
            setattr(self, name, grown)
        weights = np.empty(capacity)
        weights[: self._k] = self._weights[: self._k]
        self._weights = weights

    def copy(self) -> LowRank:
        """Return an independent copy."""
        return type(self).from_state(self.state_dict())

    def state_dict(self) -> State:
        """Return the factors."""
        return {
            "kind": "LowRank",
            "left": to_host(self.left).copy(),
            "weights": self._weights[: self._k].copy(),
            "right": to_host(self.right).copy(),
            "scale": self._scale,
            "truncated": self.truncated,
            "max_atoms": self.max_atoms,
            "max_rank": self.max_rank,
            "capacity": self._weights.size,
        }

    @classmethod
    def from_state(cls, state: State) -> LowRank:
        """Make the iterate that ``state_dict`` described."""
        left, right = (cls._xp.asarray(state[name]) for name in ("left", "right"))
        iterate = cls(
            (left.shape[0], right.shape[0]),
            max_atoms=int(state["max_atoms"]),
            max_rank=state["max_rank"],
            dtype=left.dtype,
        )
        k = left.shape[1]
        # The same memory layout as before, so that products round the same way.
        iterate._reserve(int(state["capacity"]))
        iterate._left[:, :k], iterate._right[:, :k] = left, right
        iterate._weights[:k] = state["weights"]
        iterate._scale, iterate.truncated = float(state["scale"]), float(state["truncated"])
        iterate._k = k
        return iterate

    def __getstate__(self) -> State:
        # Without what lies in the unused columns.
        return self.state_dict()

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(type(self).from_state(state).__dict__)

    def __repr__(self) -> str:
        return f"LowRank(shape={self.shape}, n_atoms={self._k})"


def _set_column(factor: Array, k: int, values: Array) -> None:
    if values.size <= LONG_FACTOR or not isinstance(factor, np.ndarray):
        factor[:, k] = values
        return
    from ..kernels.entries import set_column

    set_column(factor, k, np.ascontiguousarray(values))


def _orthonormaliser(factor: Array) -> tuple[Callable[[Array], Array], Array]:
    """Return r and a function x -> q @ x with factor = q r and orthonormal q.

    By QR for short factors. For long ones from the eigenvalues of factor' factor, summed in
    double precision: one matrix product instead of a QR, which is much slower there.
    """
    xp = namespace(factor)
    if factor.shape[0] <= LONG_FACTOR:
        q, r = xp.linalg.qr(factor)
        return lambda x: q @ xp.asarray(x.astype(factor.dtype)), to_host(r)
    values, vectors = np.linalg.eigh(gram(factor))
    kept = values > 1e-13 * values[-1]
    root, vectors = np.sqrt(values[kept]), vectors[:, kept]
    inverse = vectors / root
    return (
        lambda x: factor @ xp.asarray((inverse @ x).astype(factor.dtype)),
        root[:, None] * vectors.T,
    )


def _triangle(factor: Array) -> Array:
    """Return r with r' r = factor' factor: by QR, or faster from that product itself.

    The product loses singular values below 1e-8 of the largest, which do not count in a sum.
    """
    if factor.shape[0] <= LONG_FACTOR:
        return to_host(namespace(factor).linalg.qr(factor, mode="r"))
    values, vectors = np.linalg.eigh(gram(factor))
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def gram(factor: Array) -> Array:
    """Return factor' factor, summed in double precision, on the host."""
    if not isinstance(factor, np.ndarray):
        wide = factor.astype(float)
        return to_host(wide.T @ wide)
    total = np.zeros((factor.shape[1], factor.shape[1]))
    for start in range(0, factor.shape[0], LONG_FACTOR):
        part = factor[start : start + LONG_FACTOR].astype(float)
        total += part.T @ part
    return total
