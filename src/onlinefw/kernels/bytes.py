"""The fused pass over rows of bytes, in whole numbers: where VNNI multiplies bytes by bytes.

To multiply bytes by floating point numbers, every 16 of them take two conversions and a product.
VNNI adds 64 products of unsigned and signed bytes at once, four each to 16 sums. So the other
factors, atom and slopes, are written with three signed digits in base 256, relative to the largest
of them: as exact as single precision there. A product is then three of bytes by digits, and only
sums are converted.

Rows are read in pieces of 64 bytes. The last piece of a row ends with the row, and so may overlap
with the one before; there must be one at least.
"""

from __future__ import annotations

from math import nan

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from .lanes import fused, spread
from .rows import LARGE, row_slope
from .wide import _INDEX, LINE, _pointer, add_up, fetch, line_of, write

#: Whether numba compiles for a machine that has these instructions.
HAS_VNNI = "+avx512vnni" in cpu_target.target_context.codegen().magic_tuple()[2]
#: The largest number that three digits surely hold.
TOP = 127 * 2**16
#: Where all numbers are smaller than this, they are taken for 0.
TINY = 1e-290
#: Rows between two conversions of the gradient, a multiple of 4.
ROWS = 128
#: ROWS rows with more columns would not stay in the cache. (Sums would overflow at 2**20.)
MAX_COLUMNS = 2**12


def suits(X):
    """Say whether ``fused_bytes`` can be used for these rows."""
    return HAS_VNNI and X.dtype == np.uint8 and LINE <= X.shape[1] < MAX_COLUMNS


#: 64 bytes of whole numbers: 64 of one byte, signed or not, or 16 sums of four bytes.
BYTES, SUMS = line_of(types.int8), line_of(types.int32)


@intrinsic
def _no_sums(typingctx):
    """Return four times 16 zeros."""

    def codegen(context, builder, signature, args):
        zeros = [ir.Constant(SUMS.vector, None)] * 4
        return context.make_tuple(builder, signature.return_type, zeros)

    return types.UniTuple(SUMS, 4)(), codegen


@intrinsic
def _read(typingctx, array, i, j):
    """Return the 64 bytes from array[i, j] on."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, array, args[0], [i, j], args[1:])
        return builder.load(builder.bitcast(pointer, ir.PointerType(BYTES.vector)), align=1)

    return BYTES(array, i, j), codegen


@intrinsic
def _read_four(typingctx, array, i, j):
    """Return the four bytes from array[i, j] on, sixteen times."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, array, args[0], [i, j], args[1:])
        four = builder.load(builder.bitcast(pointer, ir.PointerType(_INDEX)), align=1)
        return builder.bitcast(spread(builder, four, LINE // 4), BYTES.vector)

    return BYTES(array, i, j), codegen


@intrinsic
def _add_products(typingctx, totals, x, digits):
    """Add to each sum of four vectors the products of four unsigned bytes and four digits."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(SUMS.vector, [SUMS.vector] * 3)
        add = builder.module.declare_intrinsic("llvm.x86.avx512.vpdpbusd.512", (), kind)
        factor, vectors = builder.bitcast(args[2], SUMS.vector), []
        for k in range(4):
            total, bytes_k = (builder.extract_value(arg, k) for arg in args[:2])
            bytes_k = builder.bitcast(bytes_k, SUMS.vector)
            vectors.append(builder.call(add, [total, bytes_k, factor]))
        return context.make_tuple(builder, signature.return_type, vectors)

    return totals(totals, x, digits), codegen


@intrinsic
def _side_by_side(typingctx, x):
    """Return the bytes of four rows such that those of one column are next to each other.

    The 64 columns come in four vectors; vector q has columns 4 q to 4 q + 3 of every 16.
    """

    def codegen(context, builder, signature, args):
        def zipped(x, y, size, half):  # alternately from x and y, out of one half of every 16 bytes
            first = [k for k in range(LINE) if k % 16 // 8 == half and k % size == 0]
            order = [k + m + s for k in first for s in (0, LINE) for m in range(size)]
            order = ir.Constant(ir.VectorType(_INDEX, LINE), order)
            return builder.shuffle_vector(x, y, order)

        x0, x1, x2, x3 = (builder.extract_value(args[0], k) for k in range(4))
        vectors = []
        for half in 0, 1:
            x01, x23 = zipped(x0, x1, 1, half), zipped(x2, x3, 1, half)
            vectors += [zipped(x01, x23, 2, part) for part in (0, 1)]
        return context.make_tuple(builder, x, vectors)

    return x(x), codegen


@intrinsic
def _combined(typingctx, high, middle, low):
    """Return 65536 high + 256 middle + low in single precision."""
    wide = line_of(types.float32)

    def codegen(context, builder, signature, args):
        kind = wide.vector
        high, middle, low = (builder.sitofp(arg, kind) for arg in args)
        base = ir.Constant(kind, [256.0] * wide.width)
        return fused(builder, low, base, fused(builder, middle, base, high))

    return wide(high, middle, low), codegen


@njit(cache=True)
def _write_digits(numbers, out):
    """Write numbers as unit * (65536 out[0] + 256 out[1] + out[2]) and return the unit."""
    largest, known = 0.0, True
    for k in range(len(numbers)):
        largest = max(largest, abs(numbers[k]))
        known &= numbers[k] == numbers[k]
    scale = TOP / largest if largest > TINY else 0.0
    for k in range(len(numbers)):
        number = np.int32(np.rint(numbers[k] * scale))
        low = np.int32(np.int8(number))
        number = (number - low) >> np.int32(8)
        middle = np.int32(np.int8(number))
        out[0, k], out[1, k], out[2, k] = (number - middle) >> np.int32(8), middle, low
    return largest / TOP if known else nan


@njit(cache=True)
def _dots(X, first, end, digits, out):
    """Write <x_i, digits> for ``first`` <= i < ``end`` to out, four rows at a time.

    This prefetches half of the rows that come next, and ``_sums`` the other half, so that memory is
    read without pauses.
    """
    n, ahead = X.shape[1], np.uint64(ROWS * X.shape[1])
    high, middle, low = np.uint64(0), np.uint64(1), np.uint64(2)
    for i in range(first, end, 4):
        r0, r1 = np.uint64(i), np.uint64(min(i + 1, end - 1))
        r2, r3 = np.uint64(min(i + 2, end - 1)), np.uint64(min(i + 3, end - 1))
        highs = middles = lows = _no_sums()
        for k in range(0, n, LINE):
            j, k = np.uint64(min(k, n - LINE)), np.uint64(k)
            fetch(X, (r0, j), ahead)
            fetch(X, (r1, j), ahead)
            x = _read(X, r0, j), _read(X, r1, j), _read(X, r2, j), _read(X, r3, j)
            highs = _add_products(highs, x, _read(digits, high, k))
            middles = _add_products(middles, x, _read(digits, middle, k))
            lows = _add_products(lows, x, _read(digits, low, k))
        for k in range(4):
            out[i - first + k] = add_up(_combined(highs[k], middles[k], lows[k]))


@njit(cache=True)
def _sums(X, first, end, digits, alone, out):
    """Write sum_i digits_i x_i to out, in the order of ``_side_by_side``.

    If it is ``alone``, without ``_dots``, it prefetches all of the rows that come next.
    """
    n, ahead = X.shape[1], np.uint64(ROWS * X.shape[1])
    high, middle, low = np.uint64(0), np.uint64(1), np.uint64(2)
    for k in range(0, n, LINE):
        j = np.uint64(min(k, n - LINE))
        highs = middles = lows = _no_sums()
        for i in range(first, end, 4):
            r0, r1 = np.uint64(i), np.uint64(min(i + 1, end - 1))
            r2, r3 = np.uint64(min(i + 2, end - 1)), np.uint64(min(i + 3, end - 1))
            if alone:
                fetch(X, (r0, j), ahead)
                fetch(X, (r1, j), ahead)
            fetch(X, (r2, j), ahead)
            fetch(X, (r3, j), ahead)
            x = _read(X, r0, j), _read(X, r1, j), _read(X, r2, j), _read(X, r3, j)
            x = _side_by_side(x)
            place = np.uint64(i - first)
            highs = _add_products(highs, x, _read_four(digits, high, place))
            middles = _add_products(middles, x, _read_four(digits, middle, place))
            lows = _add_products(lows, x, _read_four(digits, low, place))
        for q in range(4):
            write(out, k + 16 * q, _combined(highs[q], middles[q], lows[q]))


@njit(cache=True)
def _in_pieces(a):
    """Return a in pieces of 64; the last ends with the end of a, and begins with zeros."""
    rest = len(a) % LINE
    pieces = np.zeros(-(-len(a) // LINE) * LINE, a.dtype)
    pieces[: len(a) - rest] = a[: len(a) - rest]
    pieces[len(pieces) - rest :] = a[len(a) - rest :]
    return pieces


@njit(cache=True)
def _in_order(pieces, out):
    """Write to out what is in pieces, each in the order of ``_side_by_side``."""
    whole = len(out) - len(out) % LINE
    for j in range(len(out)):
        k = j if j < whole else j + len(pieces) - len(out)
        out[j] = pieces[k - k % 64 + 16 * (k % 16 // 4) + 4 * (k % 64 // 16) + k % 4]


@njit(cache=True)
def _rows_between(start, stop, X, moved, keep, step, digits, z, y, w, b, kind, parameter, total):
    """Work on the rows from ``start`` to ``stop``, ``ROWS`` at a time, read twice while cached."""
    part = np.empty(len(total), np.float32)
    s, s_digits = np.empty(ROWS), np.empty((3, ROWS), np.int8)
    for first in range(start, stop, ROWS):
        end = min(first + ROWS, stop)
        if first < moved:
            _dots(X, first, min(end, moved), digits, s)
            for i in range(first, min(end, moved)):
                z[i] = keep * z[i] + step * s[i - first]
        for i in range(first, end):
            slope = row_slope(kind, parameter, z[i] + b, y[i], w[i])
            s[i - first] = min(max(slope, -LARGE), LARGE)
        s[end - first :] = 0.0
        unit = _write_digits(s, s_digits)
        _sums(X, first, end, s_digits, first >= moved, part)
        for k in range(len(total)):
            total[k] += unit * part[k]


@njit(cache=True, nogil=True)
def fused_bytes(
    from_block, to_block, blocks, X, moved, keep, step, a, z, y, w, b, kind, parameter, acc
):
    """Do as ``rows.fused_gradient``, for bytes."""
    a = _in_pieces(a)
    digits = np.empty((3, len(a)), np.int8)
    step = step * _write_digits(a, digits)
    for block in range(from_block, to_block):
        start, stop, total = blocks[block], blocks[block + 1], np.zeros(len(a))
        _rows_between(start, stop, X, moved, keep, step, digits, z, y, w, b, kind, parameter, total)
        _in_order(total, acc[block])
