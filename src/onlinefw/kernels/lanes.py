"""Eight numbers at a time, for numba kernels: rows of (n, 8) arrays as vector registers.

Numba's compiler does not merge eight scalar sums into one vector sum by itself; these operations
are on vectors from the start. LLVM maps them onto whatever registers the machine has.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, register_model

from . import LANES

__all__ = [
    "LANES",
    "Vector",
    "add_scaled",
    "fused",
    "load",
    "moved",
    "not_unrolled",
    "spread",
    "store",
    "zero",
]

# A product may be fused with the sum that follows it; nothing else is reordered.
_FUSE = ("contract",)


class Vector(types.Type):
    """Numbers in registers: so many of one type, whole or with a fraction."""

    def __init__(self, scalar, width=LANES):
        self.scalar, self.width = scalar, width
        number = ir.FloatType() if scalar == types.float32 else ir.DoubleType()
        if isinstance(scalar, types.Integer):
            number = ir.IntType(scalar.bitwidth)
        self.vector = ir.VectorType(number, width)
        super().__init__(name=f"Vector({scalar}, {width})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, fe_type.vector)


def _row_pointer(context, builder, array_type, array, row_type, row):
    data = context.make_array(array_type)(context, builder, array).data
    row = context.cast(builder, row, row_type, types.uint64)
    start = builder.mul(row, ir.Constant(row.type, LANES))
    vector = ir.VectorType(context.get_value_type(array_type.dtype), LANES)
    return builder.bitcast(builder.gep(data, [start]), ir.PointerType(vector))


@intrinsic
def load(typingctx, array, row):
    """Return row ``row`` of a contiguous (n, 8) array."""

    def codegen(context, builder, signature, args):
        pointer = _row_pointer(context, builder, array, args[0], row, args[1])
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return Vector(array.dtype)(array, row), codegen


@intrinsic
def store(typingctx, array, row, lanes):
    """Write eight numbers into row ``row`` of a contiguous (n, 8) array."""

    def codegen(context, builder, signature, args):
        pointer = _row_pointer(context, builder, array, args[0], row, args[1])
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, row, lanes), codegen


@intrinsic
def zero(typingctx, like):
    """Return eight zeros of the type of the number ``like``."""
    lanes = Vector(like)

    def codegen(context, builder, signature, args):
        return ir.Constant(lanes.vector, None)

    return lanes(like), codegen


@intrinsic
def not_unrolled(typingctx):
    """Keep the compiler from unrolling the loop that this stands in; it does nothing itself.

    Unrolled four times, the fused loop over entries takes longer: rows are short, and what a
    multiple of four leaves over is a loop of its own, whose length is guessed wrong.
    """

    def codegen(context, builder, signature, args):
        nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
        # A convergent call may not be copied to where it would run for other reasons.
        builder.call(nothing, []).attributes.add("convergent")
        return context.get_dummy_value()

    return types.void(), codegen


def spread(builder, number, width=LANES):
    """Return a vector that holds ``number`` in every place (for intrinsics)."""
    undefined = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return builder.shuffle_vector(first, undefined, everywhere)


def fused(builder, total, a, x):
    """Return total + a x, for numbers or vectors (for intrinsics)."""
    return builder.fadd(total, builder.fmul(a, x, flags=_FUSE), flags=_FUSE)


@intrinsic
def add_scaled(typingctx, total, number, lanes):
    """Return total + number * lanes."""

    def codegen(context, builder, signature, args):
        total, number, lanes = args
        return fused(builder, total, spread(builder, number), lanes)

    return total(total, number, lanes), codegen


@intrinsic
def moved(typingctx, keep, z, u, v):
    """Return keep z + u v for four numbers of one type.

    The sum is rounded once, the product u v before it, in whichever loop this is: so it makes no
    difference which one moves a prediction.
    """

    def codegen(context, builder, signature, args):
        keep, z, u, v = args
        return builder.fma(keep, z, builder.fmul(u, v))

    return z(z, z, z, z), codegen
