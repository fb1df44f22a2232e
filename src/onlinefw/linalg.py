"""Inner products and top singular pairs of arrays, sparse matrices and linear operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from ._devices import namespace, to_host
from ._typing import Array, Direction
from .native import Pointer, loops, struct

__all__ = [
    "PairOperator",
    "entries",
    "inner",
    "krylov_pair",
    "ritz_pairs",
    "row_products",
    "top_singular_pair",
    "vector_norm",
]

#: Numbers of rows that are multiplied as they are, besides double precision.
NARROW = (np.dtype(np.float32), np.dtype(np.uint8))
Products = struct(
    "Products",
    rows=int,
    columns=int,
    models=int,
    X=Pointer("real", read=True),
    thetas=Pointer(np.float64),
    out=Pointer(np.float64),
)

#: What the rows and the columns of a matrix are multiplied with.
Scales = tuple[Array, Array]

#: Below this many multiplications a full LAPACK decomposition is faster than Krylov steps.
SMALL_SVD = 2**20


def row_products(X: Any, thetas: Array) -> Array:
    """Return X T for rows in this process's memory.

    The numbers of a row do not depend on the rows beside it, to the last bit, as those of BLAS do.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.linalg import row_products
    >>> row_products(np.eye(2, 3), np.array([[1.0], [2.0], [3.0]]))
    array([[1.],
           [2.]])
    """
    if sparse.issparse(X):
        return np.asarray(X @ thetas, dtype=float)
    X = np.ascontiguousarray(X, X.dtype if X.dtype in NARROW else float)
    thetas = np.array(thetas.T, dtype=float, order="C")
    out = np.empty((len(X), len(thetas)))
    call = Products(
        X.dtype, rows=len(X), columns=X.shape[1], models=len(thetas), X=X, thetas=thetas, out=out
    )
    loops.of("products", X.dtype)(call.pointer)
    return out


def inner(point: Array, direction: Direction) -> float:
    """Return <point, direction> for a dense point and any kind of direction.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from onlinefw.linalg import inner
    >>> inner(np.ones((2, 2)), sp.csr_array([[1.0, 0.0], [0.0, 2.0]]))
    3.0
    """
    if isinstance(direction, np.ndarray):
        return float(np.dot(point.reshape(-1), direction.reshape(-1)))
    if isinstance(direction, LinearOperator):
        return float(np.vdot(point, direction @ np.eye(direction.shape[1])))
    if sparse.issparse(direction):
        coo = direction.tocoo()
        return float(point.reshape(coo.shape)[coo.coords] @ coo.data)
    return float(np.dot(point.reshape(-1), np.reshape(direction, -1)))


def entries(direction: Direction, flat: Array | int) -> Array:
    """Return the entries of an ndarray or sparse direction at flat (C order) positions."""
    if sparse.issparse(direction):
        where = np.unravel_index(flat, direction.shape)
        return np.asarray(direction.tocsr()[where]).reshape(-1)
    return np.asarray(np.reshape(direction, -1)[flat])


def vector_norm(x: Array, p: float = 2.0) -> float:
    """Return ||x||_p of a vector, safe from overflow and underflow."""
    largest = float(np.abs(x).max(initial=0.0))
    if largest == 0.0 or p == np.inf or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(x / largest, p))


def top_singular_pair(
    direction: Direction,
    *,
    start: Array | None = None,
    tol: float = 1e-10,
    steps: int = 40,
    restarts: int = 50,
) -> tuple[Array, float, Array]:
    """Return (u, s, v): the largest singular value and its unit singular vectors.

    Small arrays go to LAPACK. Everything else goes through Golub-Kahan bidiagonalisation with
    full re-orthogonalisation, which needs products with the matrix and its transpose only, and
    is restarted from the best right vector every ``steps`` products.

    Parameters
    ----------
    direction : ndarray, sparse matrix or LinearOperator
        The matrix.
    start : ndarray, optional
        A right vector to start from; by default a fixed pseudo-random one.
    tol : float
        Stop when ``||G' u - s v|| <= tol * s``.
    steps, restarts : int
        Krylov steps between restarts, and how many restarts at most.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.linalg import top_singular_pair
    >>> u, s, v = top_singular_pair(np.diag([1.0, 3.0, 2.0]))
    >>> round(s, 12)
    3.0
    """
    m, n = direction.shape
    if isinstance(direction, np.ndarray) and m * n * min(m, n) <= SMALL_SVD:
        if not np.isfinite(direction).all():
            raise ValueError("the matrix has NaN or infinity: it has no singular values")
        u_all, s_all, vt_all = np.linalg.svd(direction, full_matrices=False)
        return u_all[:, 0], float(s_all[0]), vt_all[0]

    operator = aslinearoperator(direction)
    v = np.random.default_rng(0).standard_normal(n)
    if start is not None:
        # A little of everything: from an exact lower singular vector there is no way up.
        v = start / np.linalg.norm(start) + 1e-6 / np.sqrt(n) * v
    v /= np.linalg.norm(v)
    size = vector_norm(operator.matvec(v))
    if not np.isfinite(size):
        raise ValueError("the matrix has NaN or infinity: it has no singular values")
    if not 1e-100 < size < 1e100 and size > 0.0:  # squares would underflow or overflow
        u, s, v = top_singular_pair(
            (1.0 / size) * operator, start=start, tol=tol, steps=steps, restarts=restarts
        )
        return u, size * s, v
    u, s = np.zeros(m), 0.0
    for _ in range(restarts):
        u, s, v, residual = _golub_kahan(operator, v, min(steps, m + 1, n + 1), tol)
        if residual <= tol * s:
            break
    if s == 0.0:
        u = np.zeros(m)
        u[0] = 1.0
    return u, s, v


class PairOperator(LinearOperator):
    """A linear operator that finds its own top singular pair, as accurately as is useful."""

    @abstractmethod
    def top_pair(self, radius: float, scales: Scales | None) -> tuple[Array, float, Array]:
        """Return (u, s, v) for a Frank-Wolfe step on the trace-norm ball of this radius.

        With ``scales = (a, b)``: for the operator diag(a) G diag(b); u and v are scaled back, so
        that s = u' G v.
        """

    @abstractmethod
    def look_closely(self) -> None:
        """Make the next ``top_pair`` spare no effort: a decision depends on it."""

    @abstractmethod
    def norm_bound(self, radius: float, scales: Scales | None) -> float:
        """Return an upper bound on the (scaled) top singular value, for a certificate."""


def ritz_pairs(
    overlap: Array, w: Array, precision: float, gram: Array | None = None
) -> tuple[Array, Array, Array, float]:
    """Return singular pairs from one product w = G' (G v) with a block v of vectors.

    The left vectors are the best in the span of G v, the right ones G' times those; so each s is
    never above the true singular value.

    Parameters
    ----------
    overlap : ndarray
        v' w, where v has k orthonormal columns of length n.
    w : ndarray
        The product, (n, k).
    precision : float
        Of the products.
    gram : ndarray, optional
        w' w, if it is known: saves a product. Squares are taken of what is at least ``precision``
        times the largest, so it must be well above the precision of the numbers themselves.

    Returns
    -------
    to_left, s, to_right, before
        The left vectors are ``(G v) @ to_left``, the right ones ``w @ to_right``; s in decreasing
        order; ``before`` is what the block v itself knew about the largest s.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.linalg import ritz_pairs
    >>> G, v = np.diag([1.0, 3.0, 2.0]), np.eye(3)[:, 1:]
    >>> w = G.T @ (G @ v)
    >>> ritz_pairs(v.T @ w, w, 1e-14)[1]
    array([3., 2.])
    """
    # What is as small as the block is wide is done on the host, wherever the block is.
    values, vectors = np.linalg.eigh(_symmetric(overlap))
    kept = values > max(precision * values[-1], 0.0)
    if not kept.any():
        return np.zeros((w.shape[1], 0)), np.zeros(0), np.zeros((w.shape[1], 0)), 0.0
    to_left = vectors[:, kept] / np.sqrt(values[kept])
    if gram is None:
        right = w @ namespace(w).asarray(to_left)
        images = to_host(right.T @ right)
    else:
        images = to_left.T @ gram @ to_left
    squares, turn = np.linalg.eigh(_symmetric(images))
    s = np.sqrt(np.maximum(squares[::-1], np.finfo(float).tiny))
    to_left = to_left @ turn[:, ::-1]
    return to_left, s, to_left / s, float(np.sqrt(values[-1]))


def _symmetric(matrix: Array) -> Array:
    return 0.5 * (matrix + matrix.T)


def krylov_pair(
    normal: Callable[[Array], tuple[Array, Array]],
    start: Array,
    *,
    steps: int = 5,
    enough: Callable[[float, float, int], bool] = lambda s, gain, k: False,
    precision: float = 1e-14,
) -> tuple[Array, float, Array]:
    """Return an approximate top singular pair from a few Golub-Kahan (Lanczos) steps.

    Each step takes one ``normal(v) = (G v, G' G v)``, which reads the matrix once. The pair
    satisfies s = u' G v exactly, so s is never above the top singular value.

    Parameters
    ----------
    normal : callable
        v -> (G v, G' (G v)).
    start : ndarray
        A unit right vector to start from.
    steps : int
        How many steps at most.
    enough : callable
        ``enough(s, gain, k)`` after k steps, with what the last one added to s: True stops.
    precision : float
        Of the products: a residual below it means that nothing is left to be found.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.linalg import krylov_pair
    >>> G = np.diag([1.0, 3.0, 2.0])
    >>> u, s, v = krylov_pair(lambda v: (G @ v, G.T @ (G @ v)), np.ones(3) / np.sqrt(3))
    >>> round(s, 12)
    3.0
    """
    xp = namespace(start)
    steps = min(steps, start.size)
    basis = xp.empty((steps, start.size))
    images: list[Array] = []
    projected = np.zeros((steps, steps))
    v, s = xp.asarray(start, dtype=float), 0.0
    for k in range(steps):
        basis[k] = v
        image, w = normal(v)
        images.append(image)
        w = xp.asarray(w, dtype=float)
        projected[: k + 1, k] = projected[k, : k + 1] = to_host(basis[: k + 1] @ w)
        residual = w.copy()
        _orthogonalise(residual, basis[: k + 1])
        beta = float(xp.linalg.norm(residual))
        values, vectors = np.linalg.eigh(projected[: k + 1, : k + 1])
        q, gain = vectors[:, -1], -s
        s = float(np.sqrt(max(values[-1], 0.0)))
        gain += s
        if beta <= precision * values[-1] or enough(s, gain, k + 1):
            break
        v = residual / beta
    u = xp.zeros(images[0].size)
    for weight, image in zip(q.tolist(), images, strict=True):
        u += weight * image
    s = float(xp.linalg.norm(u))
    v = xp.asarray(q) @ basis[: len(images)]
    if s == 0.0:
        u[0] = 1.0
        return u, 0.0, v
    return u / s, s, v


def _golub_kahan(
    operator: LinearOperator, v: Array, steps: int, tol: float
) -> tuple[Array, float, Array, float]:
    """Run up to ``steps`` Golub-Kahan steps from v; return the best pair and its residual."""
    m, n = operator.shape
    left, right = np.empty((steps, m)), np.empty((steps, n))
    bidiagonal = np.zeros((steps, steps))
    right[0] = v
    for k in range(steps):
        u = operator.matvec(right[k])
        _orthogonalise(u, left[:k])
        bidiagonal[k, k] = alpha = np.linalg.norm(u)
        scale = np.abs(bidiagonal[: k + 1, : k + 1]).max()
        # The new right vector adds nothing: the pair found so far is exact.
        if alpha <= 1e-14 * scale:
            return _best_pair(bidiagonal[:k, : k + 1], left[:k], right[: k + 1], 0.0)
        left[k] = u / alpha
        w = operator.rmatvec(left[k])
        _orthogonalise(w, right[: k + 1])
        beta = float(np.linalg.norm(w))
        last = beta <= 1e-14 * scale or k + 1 == steps
        if last or k % 4 == 0:
            pair = _best_pair(bidiagonal[: k + 1, : k + 1], left[: k + 1], right[: k + 1], beta)
            if last or pair[3] <= tol * pair[1]:
                break
        bidiagonal[k, k + 1] = beta
        right[k + 1] = w / beta
    return pair


def _orthogonalise(vector: Array, basis: Array) -> None:
    for _ in range(2):  # twice is enough
        vector -= basis.T @ (basis @ vector)


def _best_pair(
    bidiagonal: Array, left: Array, right: Array, beta: float
) -> tuple[Array, float, Array, float]:
    """Return the top pair in the Krylov space, and how far it is from a pair of the operator."""
    if bidiagonal.shape[0] == 0:
        return np.zeros(left.shape[1]), 0.0, right[0], 0.0
    p, s, qt = np.linalg.svd(bidiagonal)
    return left.T @ p[:, 0], float(s[0]), right.T @ qt[0], beta * abs(p[-1, 0])
