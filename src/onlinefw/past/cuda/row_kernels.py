"""Launches of the kernels over rows: grids and arguments, no decisions.

The kernels are in the ``.cu`` files of this folder. They are compiled once for each type of numbers
that is used: CuPy keeps them on disk.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..._devices import cupy

#: Numbers that are read at once, by the type of the rows.
WIDTHS = {np.dtype(np.uint8): 4, np.dtype(np.float32): 4, np.dtype(np.float64): 2}
#: Sums over all rows are formed in at most this many parts, whatever the device, and added in
#: order: results do not depend on timing. Two blocks for each of an H200's 132 processors.
PARTS = 264
#: Partial sums take no more than this many numbers, so wide rows have fewer parts.
MOST_PARTIAL = 2**24
#: A warp holds rows of up to 32 times this many words in its registers, by the width of a word.
MOST_CHUNKS = {4: 8, 2: 16}
#: Vectors that are multiplied in one pass over the rows.
MOST_LANES = 8
#: Threads of a block; rows that a warp of the fused pass holds at once, by the type of the rows.
THREADS, ROWS = 256, {np.dtype(np.uint8): 2, np.dtype(np.float32): 2, np.dtype(np.float64): 1}
#: Blocks of a pass in which a warp goes from row to row, at most.
MOST_BLOCKS = 2112
NAMES = {
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}


@cache
def _kernel(name: str, source: str, *defined: tuple[str, Any]) -> Any:
    lines = [f"#define {key} {value}\n" for key, value in defined]
    here = Path(__file__).parent
    texts = [(here / file).read_text() for file in ("row_losses.cu", source)]
    return cupy().RawModule(code="".join([*lines, *texts])).get_function(name)


def _dense(name: str, dtype: Any, **defined: int) -> Any:
    dtype = np.dtype(dtype)
    sizes = {"WIDTH": WIDTHS[dtype], "ROWS": ROWS[dtype]}
    kinds = {"BYTES": int(dtype == np.uint8), "SINGLES": int(dtype == np.float32)}
    settings = {"NUMBER": NAMES[dtype], **sizes, **kinds, **defined}
    return _kernel(name, "dense_rows.cu", *settings.items())


def _sparse(name: str, dtype: Any) -> Any:
    return _kernel(name, "sparse_rows.cu", ("NUMBER", NAMES[np.dtype(dtype)]))


def _blocks(n: int, each: int) -> tuple[int]:
    """Blocks for n items, of which one block takes ``each``."""
    return (max(1, -(-n // each)),)


def _warps(n: int) -> tuple[int]:
    """Blocks for n items with a warp each, or several in turn."""
    return (min(_blocks(n, THREADS // 32)[0], MOST_BLOCKS),)


def n_parts(size: int) -> int:
    """Return in how many parts sums of so many numbers are formed, at most."""
    return min(PARTS, max(1, MOST_PARTIAL // size))


# Losses -------------------------------------------------------------------------------------------


def row_sums(
    loss: tuple[int, float], n: int, z: Any, d: Any, c: float, y: Any, w: Any, b: float, out: Any
) -> int:
    """Write sums of w phi, w phi', w phi'', w phi' d and w phi'' d^2 at z + c d + b to ``out``.

    Return how many rows of ``out`` (at most PARTS, each of five sums) they are spread over.
    """
    blocks = min(_blocks(n, THREADS)[0], PARTS)
    kind, parameter = np.int32(loss[0]), np.float64(loss[1])
    args = (kind, parameter, np.int64(n), z, d, np.float64(c), y, w, np.float64(b), out)
    _kernel("row_sums", "row_sums.cu")((blocks,), (THREADS,), args)
    return blocks


def row_slopes(loss: tuple[int, float], n: int, z: Any, y: Any, w: Any, b: float, out: Any) -> None:
    """out_i = w_i phi'(z_i + b, y_i)."""
    args = (np.int32(loss[0]), np.float64(loss[1]), np.int64(n), z, y, w, np.float64(b), out)
    _kernel("row_slopes", "row_sums.cu")(_blocks(n, THREADS), (THREADS,), args)


def row_bends(loss: tuple[int, float], n: int, z: Any, y: Any, w: Any, b: float, out: Any) -> None:
    """out_i = w_i times a curvature >= 0 of phi at (z_i + b, y_i)."""
    args = (np.int32(loss[0]), np.float64(loss[1]), np.int64(n), z, y, w, np.float64(b), out)
    _kernel("row_bends", "row_sums.cu")(_blocks(n, THREADS), (THREADS,), args)


# Dense rows ---------------------------------------------------------------------------------------


def fused_gradient(
    loss: tuple[int, float],
    X: Any,
    n: int,
    moved: int,
    step: float,
    a: Any,
    z: Any,
    y: Any,
    w: Any,
    b: float,
    parts: Any,
    out: Any,
) -> None:
    """z_i <- (1 - step) z_i + step <x_i, a> for i < moved, then out = sum w phi'(z + b, y) x."""
    stride, width, rows = X.shape[1], WIDTHS[X.dtype], ROWS[X.dtype]
    chunks = -(-stride // (32 * width))
    blocks = min(_blocks(n, THREADS // 32 * rows)[0], n_parts(stride))
    args = (
        X,
        np.int64(n),
        np.int32(stride),
        np.int64(moved),
        np.float64(1.0 - step),
        np.float64(step),
        a,
        z,
        y,
        w,
        np.float64(b),
        np.int32(loss[0]),
        np.float64(loss[1]),
        parts,
    )
    _dense("fused_rows", X.dtype, CHUNKS=chunks)((blocks,), (THREADS,), args)
    _add_parts(X.dtype, parts, blocks, stride, out)


def dense_move(X: Any, n: int, keep: float, step: float, a: Any, z: Any) -> None:
    """z_i <- keep z_i + step <x_i, a>."""
    size = (np.int64(n), np.int32(X.shape[1]))
    args = (X, *size, np.float64(keep), np.float64(step), a, z)
    _dense("move_rows", X.dtype)(_warps(n), (THREADS,), args)


def slope_sums(X: Any, n: int, s: Any, parts: Any, out: Any) -> None:
    """out[l] = sum_i s[l, i] x_i, for as many l as ``s`` has rows (at most MOST_LANES)."""
    stride, lanes = X.shape[1], s.shape[0]
    parts_used = min(_blocks(n, 16)[0], n_parts(lanes * stride))
    blocks = (_blocks(stride // WIDTHS[X.dtype], THREADS)[0], parts_used)
    args = (X, np.int64(n), np.int32(stride), s, parts)
    _dense("slope_sums", X.dtype, LANES=lanes)(blocks, (THREADS,), args)
    _add_parts(X.dtype, parts, parts_used, lanes * stride, out)


def some_columns(X: Any, n: int, indices: Any, values: Any, out: Any) -> None:
    """out_i = sum_k values_k x_i[indices_k]."""
    size = (np.int64(n), np.int32(X.shape[1]), np.int32(indices.size))
    args = (X, *size, indices, values, out)
    _dense("some_columns", X.dtype)(_blocks(n, THREADS), (THREADS,), args)


def _add_parts(dtype: Any, parts: Any, n_parts: int, n: int, out: Any) -> None:
    args = (parts, np.int32(n_parts), np.int64(n), out)
    _dense("add_parts", dtype)(_blocks(n, 32), (32, 8), args)


# Sparse rows --------------------------------------------------------------------------------------


def sparse_move(
    indptr: Any, indices: Any, data: Any, n: int, v: Any, keep: float, step: float, out: Any
) -> None:
    """out_i <- keep out_i + step <x_i, v>."""
    args = (indptr, indices, data, np.int64(n), v, np.float64(keep), np.float64(step), out)
    _sparse("row_dots", data.dtype)(_warps(n), (THREADS,), args)


def segment_dots(cuts: Any, n: int, indices: Any, data: Any, r: Any, sums: Any) -> None:
    """sums_s = sum of data_k r[indices_k] from cuts_s to cuts_{s + 1}."""
    args = (cuts, np.int64(n), indices, data, r, sums)
    _sparse("segment_dots", data.dtype)(_warps(n), (THREADS,), args)


def add_segments(dtype: Any, segments: Any, n: int, sums: Any, out: Any) -> None:
    """out_j = sum of sums_s from segments_j to segments_{j + 1}."""
    args = (segments, np.int64(n), sums, out)
    _sparse("add_segments", dtype)(_blocks(n, THREADS), (THREADS,), args)


def scatter_tail(
    indptr: Any, indices: Any, data: Any, first: int, n: int, r: Any, out: Any
) -> None:
    """Out += sum of r_i x_i over the rows from ``first`` to n."""
    args = (indptr, indices, data, np.int64(first), np.int64(n), r, out)
    _sparse("scatter_tail", data.dtype)(_warps(n - first), (THREADS,), args)


def sparse_column(
    j: int,
    by_column: tuple[Any, Any, Any],
    rows: tuple[Any, Any, Any],
    first: int,
    n: int,
    out: Any,
) -> None:
    """out_i = x_i[j] where that is not 0; rows before ``first`` are read from ``by_column``."""
    args = (np.int64(j), *by_column, *rows, np.int64(first), np.int64(n), out)
    _sparse("sparse_column", rows[2].dtype)(_warps(n), (THREADS,), args)


def gather_columns(
    indptr: Any, indices: Any, data: Any, first: int, n: int, position: Any, out: Any
) -> None:
    """out[i - first, position_j] = x_i[j] for rows from ``first`` to n, where position_j >= 0."""
    size = (np.int64(first), np.int64(n))
    args = (indptr, indices, data, *size, position, np.int32(out.shape[1]), out)
    _sparse("gather_columns", data.dtype)(_warps(n - first), (THREADS,), args)
