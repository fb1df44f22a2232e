"""Many small ridge regressions at once: one per row of a sparse matrix, on the same features.

This is half a sweep of alternating least squares. Per row, the augmented matrix [A | b] of the
normal equations is summed up in square tiles that stay in registers, over panels of a few dozen
entries; each panel's sums are added in double precision, so long rows lose nothing. Eliminating
the augmented matrix row by row is Cholesky without square roots, and solves for b on the way.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

#: A tile is 4 x 8 numbers; factors are padded with zeros to whole tiles.
WIDTH = 8
#: Entries gathered at once: two panels of 64 x 64 numbers still fit the nearest cache.
PANEL = 64

# Sums may be fused with products. Nothing else is reordered, so that results are reproducible.
CONTRACT = {"contract"}


@njit(inline="always")
def _load(x, i, j):
    """Return x[i, j : j + 8] as values, which the compiler keeps in one register."""
    return (
        x[i, j],
        x[i, j + np.uint64(1)],
        x[i, j + np.uint64(2)],
        x[i, j + np.uint64(3)],
        x[i, j + np.uint64(4)],
        x[i, j + np.uint64(5)],
        x[i, j + np.uint64(6)],
        x[i, j + np.uint64(7)],
    )


@njit(inline="always")
def _store(x, i, j, v):
    """x[i, j : j + 8] = v."""
    x[i, j] = v[0]
    x[i, j + np.uint64(1)] = v[1]
    x[i, j + np.uint64(2)] = v[2]
    x[i, j + np.uint64(3)] = v[3]
    x[i, j + np.uint64(4)] = v[4]
    x[i, j + np.uint64(5)] = v[5]
    x[i, j + np.uint64(6)] = v[6]
    x[i, j + np.uint64(7)] = v[7]


@njit(inline="always")
def _axpy(y, a, x):
    """Return y + a x."""
    return (
        y[0] + a * x[0],
        y[1] + a * x[1],
        y[2] + a * x[2],
        y[3] + a * x[3],
        y[4] + a * x[4],
        y[5] + a * x[5],
        y[6] + a * x[6],
        y[7] + a * x[7],
    )


@njit(inline="always")
def _zeros(x):
    zero = x.dtype.type(0)
    return zero, zero, zero, zero, zero, zero, zero, zero


@njit(inline="always")
def _add_tile(normal, left, right, n, a, b):
    """normal[a : a + 4, b : b + 8] += left[:n, a : a + 4]' right[:n, b : b + 8]."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    y0 = y1 = y2 = y3 = _zeros(left)
    q = np.uint64(0)
    while q < n:
        x = _load(right, q, b)
        y0 = _axpy(y0, left[q, a], x)
        y1 = _axpy(y1, left[q, a + one], x)
        y2 = _axpy(y2, left[q, a + two], x)
        y3 = _axpy(y3, left[q, a + three], x)
        q += one
    _store(normal, a, b, _axpy(_load(normal, a, b), 1.0, y0))
    _store(normal, a + one, b, _axpy(_load(normal, a + one, b), 1.0, y1))
    _store(normal, a + two, b, _axpy(_load(normal, a + two, b), 1.0, y2))
    _store(normal, a + three, b, _axpy(_load(normal, a + three, b), 1.0, y3))


@njit(inline="always")
def _gather(left, right, col, weight, target, other, rank, start, n):
    """Fill left with the features of n entries, right with weight times them and the target."""
    one, eight, width = np.uint64(1), np.uint64(8), np.uint64(other.shape[1])
    zero = _zeros(other)
    q = np.uint64(0)
    while q < n:
        k = start + q
        j = col[k]
        w = weight[k] if len(weight) else weight.dtype.type(1)
        b = np.uint64(0)
        while b < width:
            x = _load(other, j, b)
            _store(left, q, b, x)
            _store(right, q, b, _axpy(zero, w, x) if len(weight) else x)
            b += eight
        right[q, rank] = target[k]
        q += one


@njit(inline="always")
def _eliminate(normal, rank, width):
    """Bring the first ``rank`` rows into upper triangular form; below the diagonal is scratch."""
    one, eight = np.uint64(1), np.uint64(8)
    j = np.uint64(0)
    while j < rank:
        pivot = 1.0 / normal[j, j]
        i = j + one
        while i < rank:
            factor = -normal[j, i] * pivot
            b = i & ~np.uint64(7)
            while b < width:
                _store(normal, i, b, _axpy(_load(normal, i, b), factor, _load(normal, j, b)))
                b += eight
            i += one
        j += one


@njit(inline="always")
def _substitute(normal, rank, solution):
    """Solve the upper triangular system, whose right-hand side is column ``rank``."""
    one = np.uint64(1)
    i = rank
    while i > 0:
        i -= one
        total = normal[i, rank]
        b = i + one
        while b < rank:
            total -= normal[i, b] * solution[b]
            b += one
        solution[i] = total / normal[i, i]


@njit(cache=True, parallel=True, fastmath=CONTRACT)
def _solve_rows(blocks, indptr, col, weight, target, other, ridge, out):
    """Write the solution of every row; ``other`` is padded to whole tiles."""
    four, eight, panel = np.uint64(4), np.uint64(8), np.uint64(PANEL)
    rank, width = np.uint64(out.shape[1]), np.uint64(other.shape[1])
    for thread in prange(len(blocks) - 1):
        left = np.empty((PANEL, other.shape[1]), other.dtype)
        right = np.empty((PANEL, other.shape[1]), other.dtype)
        normal = np.empty((other.shape[1], other.shape[1]))
        solution = np.empty(out.shape[1])
        for i in range(blocks[thread], blocks[thread + 1]):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            if start == end:
                out[i] = 0
                continue
            normal[:] = 0.0
            while start < end:
                n = min(end - start, panel)
                _gather(left, right, col, weight, target, other, rank, start, n)
                a = np.uint64(0)
                while a < rank:
                    b = a & ~np.uint64(7)
                    while b < width:
                        _add_tile(normal, left, right, n, a, b)
                        b += eight
                    a += four
                start += n
            for a in range(out.shape[1]):
                normal[a, a] += ridge[i]
            _eliminate(normal, rank, width)
            _substitute(normal, rank, solution)
            for a in range(out.shape[1]):
                out[i, a] = solution[a]


def _padded(other):
    """Return ``other`` with zero columns up to whole tiles, one of them for the target."""
    n_cols, rank = other.shape
    padded = np.zeros((n_cols, -(-(rank + 1) // WIDTH) * WIDTH), other.dtype)
    padded[:, :rank] = other
    return padded


def ridge_rows(blocks, indptr, col, weight, target, other, ridge, out):
    """Solve (sum_k weight_k h_k h_k' + ridge_i I) w = sum_k target_k h_k for every row i.

    The sums run over the entries k of the row, h_k = other[col_k].

    Parameters
    ----------
    blocks : ndarray of int
        Row ranges, one per thread.
    indptr, col : ndarray
        Where the rows start, and the column of every entry. Columns may repeat in a row.
    weight : ndarray
        The weight of every entry; an empty array means 1 for all.
    target : ndarray
        The weighted target of every entry, weight times value.
    other : ndarray of shape (n_cols, r)
        The features of the columns, float32 or float64.
    ridge : ndarray of shape (n_rows,)
        Positive.
    out : ndarray of shape (n_rows, r)
        The solutions; 0 for a row without entries.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.kernels.ridge import ridge_rows
    >>> blocks, indptr, col = np.array([0, 1]), np.array([0, 2]), np.array([0, 1], np.uint32)
    >>> ones, target = np.empty(0), np.array([8.0, 4.0])
    >>> other, ridge, out = np.array([[1.0], [2.0]]), np.array([3.0]), np.empty((1, 1))
    >>> ridge_rows(blocks, indptr, col, ones, target, other, ridge, out)
    >>> out  # (1 + 4 + 3) w = 1 * 8 + 2 * 4
    array([[2.]])
    """
    _solve_rows(blocks, indptr, col, weight, target, _padded(other), ridge, out)


@njit(cache=True, parallel=True)
def _count_columns(blocks, indptr, col, place):
    """Count the entries of every column, by block of rows."""
    for thread in prange(len(blocks) - 1):
        count = place[thread]
        k, end = np.uint64(indptr[blocks[thread]]), np.uint64(indptr[blocks[thread + 1]])
        while k < end:
            count[col[k]] += 1
            k += np.uint64(1)


@njit(cache=True, parallel=True)
def _place_columns(blocks, indptr, col, weight, target, place, row, t_weight, t_target):
    """Put every entry into the next place of its column. Every block has places of its own."""
    one = np.uint64(1)
    for thread in prange(len(blocks) - 1):
        following = place[thread]
        for i in range(blocks[thread], blocks[thread + 1]):
            k, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            while k < end:
                j = col[k]
                at = following[j]
                following[j] = at + one
                row[at] = i
                t_target[at] = target[k]
                if len(weight):
                    t_weight[at] = weight[k]
                k += one


def transpose(blocks, indptr, col, n_cols, weight, target):
    """Sort the entries by columns, and by rows within a column.

    Parameters
    ----------
    blocks, indptr, col, weight, target
        As for :func:`ridge_rows`; an empty weight stays empty.
    n_cols : int
        How many columns there are.

    Returns
    -------
    indptr, row, weight, target : ndarray
        Where the columns start, and the row, weight and target of every entry.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.kernels.ridge import transpose
    >>> indptr, col = np.array([0, 2, 3]), np.array([0, 2, 0], np.uint32)
    >>> target = np.array([1.0, 2.0, 3.0])
    >>> transpose(np.array([0, 1, 2]), indptr, col, 3, target[:0], target)[3]
    array([1., 3., 2.])
    """
    place = np.zeros((len(blocks) - 1, n_cols), np.uint64)
    _count_columns(blocks, indptr, col, place)
    t_indptr = np.zeros(n_cols + 1, np.int64)
    np.cumsum(place.sum(axis=0), out=t_indptr[1:])
    # In every column the first block's entries come first.
    starts = np.cumsum(place, axis=0) - place + t_indptr[:-1].astype(np.uint64)
    row = np.empty(col.size, np.uint32)
    t_weight, t_target = np.empty_like(weight), np.empty_like(target)
    _place_columns(blocks, indptr, col, weight, target, starts, row, t_weight, t_target)
    return t_indptr, row, t_weight, t_target
