"""As many numbers at a time as fill 64 bytes, for numba kernels: pieces of long rows as vectors.

LLVM maps these operations onto whatever registers the machine has. By itself it makes vectors of
simple sums only: not of two different sums in one loop, and not in a loop with a prefetch.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .lanes import Vector, fused, spread

#: Bytes in a vector, and in a line of the cache.
LINE = 64

_INDEX = ir.IntType(32)


def line_of(scalar):
    """Return the type of a vector that fills a line."""
    return Vector(scalar, 8 * LINE // scalar.bitwidth)


def _pointer(context, builder, array_type, array, place_types, place):
    """Return a pointer to an element of a contiguous array with one or two axes."""
    view = context.make_array(array_type)(context, builder, array)
    start = ir.Constant(ir.IntType(64), 0)
    for axis, (index_type, index) in enumerate(zip(place_types, place, strict=True)):
        index = context.cast(builder, index, index_type, types.uint64)
        start = builder.mul(start, builder.extract_value(view.shape, axis))
        start = builder.add(start, index)
    return builder.gep(view.data, [start])


def _read(context, builder, array, place, wide, args, mask=None):
    place_values = [builder.extract_value(args[1], k) for k in range(len(place))]
    pointer = _pointer(context, builder, array, args[0], place, place_values)
    stored = ir.VectorType(context.get_value_type(array.dtype), wide.width)
    pointer = builder.bitcast(pointer, ir.PointerType(stored))
    align = array.dtype.bitwidth // 8
    if mask is None:
        numbers = builder.load(pointer, align=align)
    else:
        masked_load = ir.FunctionType(stored, [pointer.type, _INDEX, mask.type, stored])
        name = f"llvm.masked.load.v{wide.width}{'fi'[align == 1]}{8 * align}.p0"
        masked_load = cgutils.get_or_insert_function(builder.module, masked_load, name)
        arguments = [pointer, ir.Constant(_INDEX, align), mask, ir.Constant(stored, None)]
        numbers = builder.call(masked_load, arguments)
    if isinstance(array.dtype, types.Integer):  # unsigned bytes
        numbers = builder.zext(numbers, ir.VectorType(_INDEX, wide.width))
        return builder.sitofp(numbers, wide.vector)
    if array.dtype != wide.scalar:
        return builder.fpext(numbers, wide.vector)
    return numbers


@intrinsic
def read(typingctx, array, place, like):
    """Return the numbers from array[place] on, of the type of ``like``."""
    wide = line_of(like)

    def codegen(context, builder, signature, args):
        return _read(context, builder, array, place, wide, args)

    return wide(array, place, like), codegen


@intrinsic
def read_first(typingctx, array, place, like, count):
    """Return ``count`` numbers from array[place] on, then zeros; no more is read."""
    wide = line_of(like)

    def codegen(context, builder, signature, args):
        count_value = context.cast(builder, args[3], count, types.uint32)
        places = ir.Constant(ir.VectorType(_INDEX, wide.width), list(range(wide.width)))
        mask = builder.icmp_unsigned("<", places, spread(builder, count_value, wide.width))
        return _read(context, builder, array, place, wide, args, mask)

    return wide(array, place, like, count), codegen


@intrinsic
def write(typingctx, array, start, numbers):
    """Write numbers into array from ``start`` on."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, array, args[0], [start], [args[1]])
        pointer = builder.bitcast(pointer, ir.PointerType(args[2].type))
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, start, numbers), codegen


@intrinsic
def everywhere(typingctx, number):
    """Return a vector that holds ``number`` in every place."""
    wide = line_of(number)

    def codegen(context, builder, signature, args):
        return spread(builder, args[0], wide.width)

    return wide(number), codegen


@intrinsic
def add_product(typingctx, total, a, x):
    """Return total + a x."""

    def codegen(context, builder, signature, args):
        return fused(builder, *args)

    return total(total, a, x), codegen


@intrinsic
def add_up(typingctx, numbers):
    """Return the sum of the numbers: halves are added until one is left."""

    def codegen(context, builder, signature, args):
        left, width = args[0], numbers.width
        while width > 1:
            width //= 2
            kind = ir.VectorType(_INDEX, width)
            low = ir.Constant(kind, list(range(width)))
            high = ir.Constant(kind, list(range(width, 2 * width)))
            left = builder.fadd(
                builder.shuffle_vector(left, left, low), builder.shuffle_vector(left, left, high)
            )
        return builder.extract_element(left, ir.Constant(_INDEX, 0))

    return numbers.scalar(numbers), codegen


@intrinsic
def fetch(typingctx, array, place, distance):
    """Prefetch the line of memory ``distance`` bytes after array[place]; it need not exist."""

    def codegen(context, builder, signature, args):
        place_values = [builder.extract_value(args[1], k) for k in range(len(place))]
        pointer = _pointer(context, builder, array, args[0], place, place_values)
        byte = ir.IntType(8).as_pointer()
        distant = context.cast(builder, args[2], distance, types.uint64)
        pointer = builder.gep(builder.bitcast(pointer, byte), [distant])
        signature = ir.FunctionType(ir.VoidType(), [byte, _INDEX, _INDEX, _INDEX])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], signature)
        # 0: to be read; 2: into the second level of the cache, where it does not displace the rows
        # in use; 1: data.
        builder.call(prefetch, [pointer, *(ir.Constant(_INDEX, k) for k in (0, 2, 1))])
        return context.get_dummy_value()

    return types.void(array, place, distance), codegen
