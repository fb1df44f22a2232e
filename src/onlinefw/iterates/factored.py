"""A matrix given by low-rank factors, and what can be asked of it without the matrix itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from .._devices import namespace, to_host
from .._threads import BlasThreads, blocks_for, n_threads
from .._typing import Array, Direction
from ..native import BLOCKS, Pointer, in_threads, struct

__all__ = ["LONG_FACTOR", "Factored", "Held", "factor_entries", "svd_of"]

#: Factors with more rows than this are orthonormalised through their Gram matrix.
LONG_FACTOR = 8192

FactorEntries = struct(
    "FactorEntries",
    **BLOCKS,
    terms=int,
    left_width=int,
    right_width=int,
    left=Pointer("real", read=True),
    right=Pointer("real", read=True),
    weights=Pointer("real", read=True),
    rows=Pointer(np.int64, read=True),
    cols=Pointer(np.int64, read=True),
    out=Pointer("real"),
)


def factor_entries(left: Array, weights: Array, right: Array, rows: Array, cols: Array) -> Array:
    """Return the entries of left diag(weights) right' at rows and columns, which exist.

    The factors are whole arrays of one type, and may have more columns than there are weights.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.iterates.factored import factor_entries
    >>> factor_entries(np.eye(2), np.array([3.0]), np.ones((4, 2)), np.array([0]), np.array([3]))
    array([3.])
    """
    out = np.zeros(rows.size, left.dtype)
    if weights.size:
        call = FactorEntries(
            left.dtype, blocks=blocks_for(rows.size, rows.size * weights.size), terms=weights.size,
            left_width=left.shape[1], right_width=right.shape[1], left=left, right=right,
            weights=weights, rows=rows, cols=cols, out=out,
        )  # fmt: skip
        in_threads("factor_entries", call)
    return out


class Held(NamedTuple):
    """The factors; always replaced as a whole, in one assignment."""

    left: Array
    weights: Array
    right: Array
    k: int  # how many columns are in use
    scale: float  # of all weights


class Factored:
    """A matrix ``left @ diag(weights) @ right.T``: its entries, products and singular values."""

    __array_priority__ = 100.0
    _xp: Any = np  # where the factors are; the weights are always in this process's memory
    _held: Held
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(m1, m2)."""
        held = self._held
        return held.left.shape[0], held.right.shape[0]

    @property
    def left(self) -> Array:
        """(m1, k) factor."""
        held = self._held
        return held.left[:, : held.k]

    @property
    def right(self) -> Array:
        """(m2, k) factor."""
        held = self._held
        return held.right[:, : held.k]

    @property
    def weights(self) -> Array:
        """The k weights."""
        held = self._held
        return held.scale * held.weights[: held.k]

    @property
    def n_atoms(self) -> int:
        """How many rank-one terms are held (an upper bound on the rank)."""
        return self._held.k

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
        return self.at(rows, cols)

    def at(self, rows: Array, cols: Array) -> Array:
        """Return theta[rows[i], cols[i]] for every i, at indices that have been checked."""
        left, weights, right, k, scale = self._held
        rows, cols = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(cols, np.int64)
        return factor_entries(left, (scale * weights[:k]).astype(self.dtype), right, rows, cols)

    @property
    def _device_weights(self) -> Array:
        """The weights, at the place of the factors."""
        return self._xp.asarray(self.weights)

    def matvec(self, v: Array) -> Array:
        """Return theta @ v."""
        return self.left @ (self._device_weights * (self.right.T @ v))

    def rmatvec(self, u: Array) -> Array:
        """Return theta.T @ u."""
        return self.right @ (self._device_weights * (self.left.T @ u))

    def as_operator(self) -> LinearOperator:
        """Return theta as a scipy LinearOperator."""
        return LinearOperator(
            self.shape,
            self.matvec,
            self.rmatvec,
            matmat=lambda x: self.left @ (self._device_weights[:, None] * (self.right.T @ x)),
            rmatmat=lambda x: self.right @ (self._device_weights[:, None] * (self.left.T @ x)),
            dtype=float,
        )

    def squared_norm(self) -> float:
        """Return the squared Frobenius norm of theta, from the factors."""
        overlap = to_host((self.left.T @ self.left) * (self.right.T @ self.right))
        return float(self.weights @ overlap @ self.weights)

    def dot(self, direction: Direction) -> float:
        """Return <theta, direction>, with one product per atom."""
        if self.n_atoms == 0:
            return 0.0
        image = aslinearoperator(direction).matmat(np.ascontiguousarray(self.right))
        return float(to_host(self._xp.einsum("ik,ik->k", self.left, image)) @ self.weights)

    def svd(self) -> tuple[Array, Array, Array]:
        """Return (U, s, V) with theta = U diag(s) V', orthonormal U and V."""
        return svd_of(self.left, self.weights, self.right)

    def singular_values(
        self, row_scale: Array | None = None, column_scale: Array | None = None
    ) -> Array:
        """Return the singular values of theta, or of diag(row_scale) theta diag(column_scale)."""
        left, right = self.left, self.right
        if row_scale is not None and column_scale is not None:
            left = self._xp.asarray(row_scale)[:, None] * left
            right = self._xp.asarray(column_scale)[:, None] * right
        with _threads_for(left, right):
            product = (_triangle(left) * self.weights) @ _triangle(right).T
            return np.linalg.svd(product, compute_uv=False)


def svd_of(left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
    """Return (U, s, V) of left diag(weights) right', orthonormal U and V."""
    with _threads_for(left, right):
        to_left, r_left = _orthonormaliser(left)
        to_right, r_right = _orthonormaliser(right)
        u, s, vt = np.linalg.svd((r_left * weights) @ r_right.T, full_matrices=False)
        return to_left(u), s, to_right(vt.T)


def _threads_for(left: Array, right: Array) -> BlasThreads:
    """Let BLAS use one thread for short factors: several wait for each other in a QR."""
    return BlasThreads(1 if max(len(left), len(right)) <= LONG_FACTOR else n_threads())


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
