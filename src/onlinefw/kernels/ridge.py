"""Many small ridge regressions at once: one per row of a sparse matrix, on the same features.

This is half a sweep of alternating least squares. Per row, the augmented matrix [A | b] of the
normal equations is summed up in square tiles that stay in registers, over panels of a few dozen
entries; each panel's sums are added in double precision, so long rows lose nothing. Eliminating
the augmented matrix row by row is Cholesky without square roots, and solves for b on the way.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from .._threads import share
from .lanes import LANES, fused, spread

#: The side of a tile. Factors are padded with zeros to whole tiles.
WIDTH = LANES
#: Entries gathered at once: two panels of 64 x 64 numbers still fit the nearest cache.
PANEL = 64


def _vector(context, builder, kind, array, i, j):
    """Return a pointer to array[i, j : j + WIDTH]."""
    struct = context.make_array(kind)(context, builder, array)
    pointer = cgutils.get_item_pointer(context, builder, kind, struct, (i, j), wraparound=False)
    vector = ir.VectorType(context.get_data_type(kind.dtype), WIDTH)
    return builder.bitcast(pointer, vector.as_pointer())


def _load(context, builder, kind, array, i, j):
    pointer = _vector(context, builder, kind, array, i, j)
    return builder.load(pointer, align=kind.dtype.bitwidth // 8)


@intrinsic
def scale_tile(typingctx, y, i, b, a, x, j, c):
    """y[i, b : b + WIDTH] = a x[j, c : c + WIDTH]."""

    def codegen(context, builder, signature, args):
        y_kind, x_kind = signature.args[0], signature.args[4]
        y, i, b, a, x, j, c = args
        value = _load(context, builder, x_kind, x, j, c)
        value = builder.fmul(spread(builder, a), value)
        to = _vector(context, builder, y_kind, y, i, b)
        builder.store(value, to, align=y_kind.dtype.bitwidth // 8)

    return types.void(y, i, b, x.dtype, x, j, c), codegen


@intrinsic
def _add_scaled(typingctx, y, i, a, j, b):
    """y[i, b : b + WIDTH] += a y[j, b : b + WIDTH]."""

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        y, i, a, j, b = args
        value = fused(
            builder,
            _load(context, builder, kind, y, i, b),
            spread(builder, a),
            _load(context, builder, kind, y, j, b),
        )
        to = _vector(context, builder, kind, y, i, b)
        builder.store(value, to, align=kind.dtype.bitwidth // 8)

    return types.void(y, i, y.dtype, j, b), codegen


def _tile(rows):
    """Make an intrinsic that adds so many rows of a tile."""

    @intrinsic
    def add(typingctx, normal, left, right, n, a, b):
        def codegen(context, builder, signature, args):
            normal_kind, left_kind, right_kind, *_ = signature.args
            normal, left, right, n, a, b = args
            vector = ir.VectorType(context.get_data_type(right_kind.dtype), WIDTH)
            double = ir.VectorType(ir.DoubleType(), WIDTH)
            places = [builder.add(a, a.type(m)) for m in range(rows)]
            sums = [cgutils.alloca_once_value(builder, vector(None)) for _ in places]
            with cgutils.for_range(builder, n) as loop:
                x = _load(context, builder, right_kind, right, loop.index, b)
                struct = context.make_array(left_kind)(context, builder, left)
                for place, total in zip(places, sums, strict=True):
                    at = (loop.index, place)
                    pointer = cgutils.get_item_pointer(context, builder, left_kind, struct, at)
                    factor = spread(builder, builder.load(pointer))
                    builder.store(fused(builder, builder.load(total), factor, x), total)
            for place, total in zip(places, sums, strict=True):
                to = _vector(context, builder, normal_kind, normal, place, b)
                value = builder.load(total)
                value = value if vector == double else builder.fpext(value, double)
                builder.store(builder.fadd(builder.load(to, align=8), value), to, align=8)

        return types.void(normal, left, right, n, a, b), codegen

    return add


#: normal[a : a + WIDTH, b : b + WIDTH] += left[:n, a : a + WIDTH]' right[:n, b : b + WIDTH].
#: The sums of the tile stay in WIDTH registers, and are widened to double precision once.
add_tile = _tile(WIDTH)
#: The same for the first two rows only, where a rank has no more (10, say).
_add_two_rows = _tile(2)


@njit(inline="always")
def _gather(left, right, col, weight, target, other, rank, start, n):
    """Fill left with the features of n entries, right with weight times them and the target.

    Without weights both would be the same, so only right is filled.
    """
    one, width = np.uint64(1), np.uint64(other.shape[1])
    unit, weighted = other.dtype.type(1), len(weight) > 0
    q = np.uint64(0)
    while q < n:
        k = start + q
        j = np.uint64(col[k])
        w = weight[k] if weighted else unit
        b = np.uint64(0)
        while b < width:
            if weighted:
                scale_tile(left, q, b, unit, other, j, b)
            scale_tile(right, q, b, w, other, j, b)
            b += np.uint64(WIDTH)
        right[q, rank] = target[k]
        q += one


@njit(inline="always")
def _add_row(normal, left, right, col, weight, target, other, rank, start, end):
    """Add the upper triangle of [A | b] of some entries of a row."""
    side, panel, width = np.uint64(WIDTH), np.uint64(PANEL), np.uint64(other.shape[1])
    features = left if len(weight) else right
    while start < end:
        n = min(end - start, panel)
        _gather(left, right, col, weight, target, other, rank, start, n)
        a = np.uint64(0)
        while a < rank:
            b = a
            while b < width:
                if rank - a <= np.uint64(2):
                    _add_two_rows(normal, features, right, n, a, b)
                else:
                    add_tile(normal, features, right, n, a, b)
                b += side
            a += side
        start += n


@njit(inline="always")
def eliminate(normal, scaled, rank, width, least):
    """Bring the first ``rank`` rows into upper triangular form; below the diagonal is scratch.

    ``least`` is positive, and no eigenvalue is smaller. So no pivot is, but for rounding; where
    that has left less than half of it, the unknown will be 0.

    WIDTH rows at a time: what earlier rows take off them is a product of tiles, too. ``scaled``
    keeps the rows divided by minus their pivots.
    """
    one, side = np.uint64(1), np.uint64(WIDTH)
    first = np.uint64(0)
    while first < rank:
        b = first
        while b < width:
            add_tile(normal, scaled, normal, first, first, b)
            b += side
        last = min(first + side, rank)
        j = first
        while j < last:
            if normal[j, j] < 0.5 * least:
                normal[j, j] = np.inf
            pivot = -1.0 / normal[j, j]
            b = first
            while b < width:
                scale_tile(scaled, j, b, pivot, normal, j, b)
                b += side
            i = j + one
            while i < last:
                b = first
                while b < width:
                    _add_scaled(normal, i, scaled[j, i], j, b)
                    b += side
                i += one
            j += one
        first += side


@njit(inline="always")
def substitute(normal, rank, solution):
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


@njit(cache=True, nogil=True, fastmath={"contract"})
def _solve_rows(
    from_block, to_block, blocks, indptr, col, weight, target, other, ridge, common, offset, out
):
    """Write the solution of every row; ``other`` is padded to whole tiles."""
    rank, width = np.uint64(out.shape[1]), np.uint64(other.shape[1])
    shared = len(common) > 0
    for block in range(from_block, to_block):
        left = np.empty((PANEL, other.shape[1]), other.dtype)
        right = np.empty((PANEL, other.shape[1]), other.dtype)
        normal = np.empty((other.shape[1], other.shape[1]))
        scaled = np.empty((other.shape[1], other.shape[1]))
        solution = np.empty(out.shape[1])
        for i in range(blocks[block], blocks[block + 1]):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            if shared:
                _begin_row(normal, common, offset[i])
            elif start == end:
                out[i] = 0
                continue
            else:
                normal[:] = 0.0
            _add_row(normal, left, right, col, weight, target, other, rank, start, end)
            for a in range(out.shape[1]):
                normal[a, a] += ridge[i]
            eliminate(normal, scaled, rank, width, ridge[i])
            substitute(normal, rank, solution)
            for a in range(out.shape[1]):
                out[i, a] = solution[a]


@njit(inline="always")
def _begin_row(normal, common, offset):
    """Begin with what all rows have in common; the last column is for an offset of the row."""
    rank = len(common)
    normal[:] = 0.0
    for a in range(rank):
        for b in range(rank + 1):
            normal[a, b] = common[a, b]
        normal[a, rank] += offset * common[a, rank + 1]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _sum_rows(from_block, to_block, blocks, indptr, col, weight, target, other, rank, out):
    """Write the upper triangle of [A | b] of every row; ``other`` is padded to whole tiles."""
    for block in range(from_block, to_block):
        left = np.empty((PANEL, other.shape[1]), other.dtype)
        right = np.empty((PANEL, other.shape[1]), other.dtype)
        normal = np.empty((other.shape[1], other.shape[1]))
        for i in range(blocks[block], blocks[block + 1]):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            normal[:] = 0.0
            _add_row(normal, left, right, col, weight, target, other, np.uint64(rank), start, end)
            at = 0
            for a in range(rank):
                for b in range(a, rank + 1):
                    out[i, at] = normal[a, b]
                    at += 1


def _padded(other):
    """Return ``other`` with zero columns up to whole tiles, one of them for the target."""
    n_cols, rank = other.shape
    padded = np.zeros((n_cols, -(-(rank + 1) // WIDTH) * WIDTH), other.dtype)
    padded[:, :rank] = other
    return padded


NOTHING_COMMON = np.empty((0, 0)), np.empty(0)


def ridge_rows(blocks, indptr, col, weight, target, other, ridge, out, common=NOTHING_COMMON):
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
    common : (ndarray, ndarray)
        What is added to the equations of every row: a matrix [A | b | d] of shape (r, r + 2) in
        double precision, and a number t_i for each row: A to the left side, b + t_i d to the right
        one. Weights may be negative as long as sums are not. Empty: nothing.
    """
    share(_solve_rows, blocks, indptr, col, weight, target, _padded(other), ridge, *common, out)


def normal_rows(blocks, indptr, col, weight, target, other, out):
    """Write the normal equations that :func:`ridge_rows` solves, for every row, without a ridge.

    Parameters are the same. ``out`` has shape (n_rows, r (r + 3) / 2): the upper triangle of the
    r x (r + 1) matrix [A | b], row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.kernels.ridge import normal_rows
    >>> blocks, indptr, col = np.array([0, 1]), np.array([0, 2]), np.array([0, 1], np.uint32)
    >>> ones, target = np.empty(0), np.array([8.0, 4.0])
    >>> out = np.empty((1, 2))
    >>> normal_rows(blocks, indptr, col, ones, target, np.array([[1.0], [2.0]]), out)
    >>> out
    array([[ 5., 16.]])
    """
    share(_sum_rows, blocks, indptr, col, weight, target, _padded(other), other.shape[1], out)
