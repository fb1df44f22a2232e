"""The leading singular triples of a linear operator, from a block of vectors to start with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._typing import Array

__all__ = ["block_svd"]

#: Pairs are good when |A'u - s v| is at most this share of the largest singular value.
TOLERANCE = 1e-7
#: Products with A and A' at most.
MAX_BLOCKS = 30
#: The basis is cut back to its leading vectors when it is this many times as wide as the start.
BASIS_BLOCKS = 3


def block_svd(
    operator: LinearOperator, rank: int, start: Array, floor: Callable[[Array], float]
) -> tuple[Array, Array, Array]:
    """Return (U, s, V) with at most ``rank`` singular triples of the operator, largest first.

    The basis is widened by what is missing from the pairs that count (a block Krylov space), and
    cut back to the leading Ritz vectors when it has become too wide.

    Parameters
    ----------
    operator : LinearOperator
        With block products (``matmat``, ``rmatmat``).
    rank : int
        How many triples.
    start : (n, b) ndarray
        Right vectors to start from, b >= rank unless n is smaller. The better they are, the
        fewer products are needed.
    floor : callable
        s -> the value below which singular values are not used; such pairs need not be
        accurate.
    """
    n = operator.shape[1]
    widest = min(n, max(BASIS_BLOCKS * start.shape[1], start.shape[1] + 8))
    basis = np.linalg.qr(start)[0]
    images = operator.matmat(basis)
    normals = operator.rmatmat(images)
    for _ in range(MAX_BLOCKS - 1):
        values, vectors = _ritz(basis, normals)
        wanted = vectors[:, :rank]
        residual = normals @ wanted - (basis @ wanted) * values[:rank]
        missing = residual[:, _inaccurate(values[:rank], residual, floor)]
        if missing.shape[1] == 0 or basis.shape[1] == n:
            break
        if basis.shape[1] + missing.shape[1] > widest < n:
            kept = vectors[:, : start.shape[1]]
            basis, images, normals = basis @ kept, images @ kept, normals @ kept
        block = _orthonormal(missing[:, : n - basis.shape[1]], basis)
        image = operator.matmat(block)
        basis, images = np.hstack((basis, block)), np.hstack((images, image))
        normals = np.hstack((normals, operator.rmatmat(image)))
    # Ritz values are squares, which lose small singular values; their images do not.
    wanted = _ritz(basis, normals)[1][:, :rank]
    u, s, pt = np.linalg.svd(images @ wanted, full_matrices=False)
    return u, s, basis @ (wanted @ pt.T)


def _ritz(basis: Array, normals: Array) -> tuple[Array, Array]:
    """Eigenvalues (largest first, not negative) and eigenvectors of A'A within the basis."""
    projected = basis.T @ normals
    values, vectors = np.linalg.eigh(0.5 * (projected + projected.T))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _inaccurate(values: Array, residual: Array, floor: Callable[[Array], float]) -> Array:
    """Which pairs may still matter and are not good yet; |A'A v - s^2 v| = s |A'u - s v|."""
    s, errors = np.sqrt(values), np.linalg.norm(residual, axis=0)
    if s[0] == 0.0:
        return np.zeros(s.size, bool)
    least = np.maximum(s, TOLERANCE * s[0])
    may_matter = s + errors / least > floor(s)
    return may_matter & (errors > TOLERANCE * s[0] * least)


def _orthonormal(block: Array, basis: Array) -> Array:
    """The block, orthonormal and orthogonal to the basis."""
    block = block / np.linalg.norm(block, axis=0)
    for _ in range(2):  # twice is enough
        block = np.linalg.qr(block - basis @ (basis.T @ block))[0]
    return block
