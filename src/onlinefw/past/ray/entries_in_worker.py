"""What a worker does with a shard of entries beyond the verbs of its past.

Usually the theta of a shard holds no factors: new entries come with their predictions, and factors
come with :func:`refresh_from` only. It still counts every move, since the past compares versions.
Where workers open files themselves, theta keeps its factors and moves too (:func:`know_theta`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._batches import BatchHandle
from ..._devices import to_host
from ..._typing import Array
from ...atoms import RankOne
from ...iterates import LowRank
from ...losses import Loss
from .entries_files import Piece, piece_of
from .worker import Shard

#: A shard's theta never compresses itself: the driver decides when.
NO_LIMIT = 2**31 - 1


def new_shard(shape: tuple[int, int], theta_dtype: Any, dtype: Any, loss: Loss, device: str) -> Any:
    """Return a past without entries, whose theta is zero."""
    from ..place import check_place, low_rank_class, new_entries

    place = check_place(device, None)
    theta = low_rank_class(place)(shape, NO_LIMIT, dtype=theta_dtype)
    return new_entries(place, theta, dtype, loss)


# Theta --------------------------------------------------------------------------------------------


def move(shard: Shard, keep: float, u: Array | None, v: Array | None) -> None:
    """Let z <- keep z + u_i v_j, and move theta too if the shard knows it."""
    theta: LowRank = shard.past.theta
    if u is None or v is None:
        theta.shrink(keep)
    elif shard.notes.get("knows_theta") and keep != 1.0:
        xp = theta._xp
        theta.move(RankOne(xp.asarray(u), 1.0 / (1.0 - keep), xp.asarray(v)), 1.0 - keep)
    else:
        theta.shrink(1.0)
    shard.past.move(keep, u, v)


def refresh_from(shard: Shard, theta: LowRank) -> None:
    """Compute all predictions from theta."""
    past = shard.past
    past.theta.put(theta.left, theta.weights, theta.right)
    past.refresh()
    if not shard.notes.get("knows_theta"):
        past.theta.rewrite(theta.left[:, :0], theta.weights[:0], theta.right[:, :0])


def know_theta(shard: Shard, theta: LowRank) -> None:
    """Keep theta from now on, to predict new entries; it moves as predictions do."""
    shard.notes["knows_theta"] = True
    shard.past.theta.rewrite(theta.left, theta.weights, theta.right)


def grow(shard: Shard, m1: int, m2: int) -> None:
    """Let the shard have m1 rows and m2 columns."""
    shard.notes.pop("row_scale", None)
    shard.past.merge(0)  # carries out a move that waits, before theta changes its version
    shard.past.theta.grow((m1, m2), NO_LIMIT, None)
    shard.past.grow(m1, m2)


def newest_sums(shard: Shard, theta: LowRank) -> tuple[float, float]:
    kind = type(shard.past.theta)
    return shard.past.newest_sums(kind.from_factors(theta.left, theta.weights, theta.right))


# Entries and products -----------------------------------------------------------------------------


def merge(shard: Shard, n: int) -> int:
    """Sort the n oldest entries of the tail in; return how many are sorted."""
    shard.past.merge(n)
    return shard.past.n_sorted


def drop(shard: Shard, least: float) -> tuple[int, float, float]:
    """Drop light entries; return how many are left, and weight and squares of the others."""
    gone = shard.past.drop(least)
    return shard.past.n_sorted, *gone


def set_row_scale(shard: Shard, scale: Array | None) -> None:
    """Weigh the rows of products from now on; None: all the same."""
    shard.notes["row_scale"] = scale


def read(
    shard: Shard, V: Array, stay: bool, plus: Array | None
) -> tuple[Array | None, Array, float]:
    """Renew the slopes; return Y = G V + plus (None if it stays in the worker), W and <z, g>."""
    W, z_dot_g = shard.past.read(V, shard.notes.get("row_scale"), plus)
    dtype = shard.past.dtype  # to send: single precision takes half the bytes
    Y = None if stay else shard.past.products()
    return Y, W.astype(dtype, copy=False), float(np.sum(to_host(z_dot_g)))


def combined(shard: Shard, to_left: Array) -> Array:
    """Return combinations of the columns of G V."""
    return shard.past.combine(to_left, np.zeros((0, len(to_left))), to_left)[0]


def normal(shard: Shard, v: Array, plus: Array | None) -> tuple[Array, Array]:
    return shard.past.normal(v, shard.notes.get("row_scale"), plus)


# Files --------------------------------------------------------------------------------------------


def append_piece(shard: Shard, piece: Piece, handle: BatchHandle, count: int) -> None:
    """Add the entries of a batch that a worker has read; the shard knows theta."""
    shard.notes["batch"] = piece
    if count:
        shard.past.append(*piece)


def append_again(shard: Shard, handle: BatchHandle, k: int, n: int, count: int) -> None:
    """Read a batch again, after a restart."""
    piece = piece_of(handle, k, n, shard.past.dtype, shard.past.loss)
    append_piece(shard, piece, handle, count)


def batch_loss(shard: Shard) -> float:
    """Return the sum of the losses of the last batch at theta."""
    past, (rows, cols, w, y) = shard.past, shard.notes["batch"]
    at = past.theta.at(rows, cols).astype(float)
    offsets = to_host(past.row_offset)[rows] + to_host(past.col_offset)[cols]
    return float(w @ past.loss.value(at + offsets, y))
