"""Entries spread over workers: shard k of n has the rows i of the matrix with i % n == k.

One worker has a whole row, so a product G' (scale G V) takes one exchange of messages: V is sent to
all workers, each returns its rows of G V and its part of the sum. Nobody waits for a move.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ..._batches import BatchHandle
from ..._typing import Array, State
from ..entries_state import check_entries_state, check_unobserved
from ..leaving import Forgotten, sums_of
from ..stored_entries import NONE
from . import entries_in_worker as in_worker
from .entries_files import OpenedEntries
from .entries_placement import EntriesPlacement
from .entries_state import joined_state, parts_of_state
from .errors import ClusterLost
from .joins import compressed, first, interleaved, sums, total
from .recovery import Message, Recovery
from .split_past import SplitPast
from .splits import each_one, only, row_count, rows, same, theta_rows
from .table import Table, Verb

__all__ = ["TABLE", "EntriesPlacement"]

#: A product G V of more bytes stays with the workers: mostly one of its eight columns is needed,
#: and another message for it costs less than to send all eight.
LARGE_BLOCK = 2**20
#: Normal equations with so many coefficients in all are solved at a time.
AT_ONCE = 2**22

# How arguments are split --------------------------------------------------------------------------


def _same(past: SplitPast, values: Array) -> list[Any]:
    """Give all shards the same values, in the precision of the entries."""
    return same(past, np.asarray(values, past.placement.dtype))


def _rows(past: SplitPast, values: Array) -> list[Any]:
    """Give each shard its rows, in the precision of the entries."""
    return rows(past, None if values is None else np.asarray(values, past.placement.dtype))


def _batch(past: SplitPast, rows: Array, cols: Array, w: Array, y: Array, z: Array) -> list[Any]:
    """Give each shard the entries of its rows."""
    owner, local = rows % past.n, (rows // past.n).astype(np.uint32)
    columns = local, cols.astype(np.uint32), w, y, z
    chosen = [np.flatnonzero(owner == k) for k in range(past.n)]
    return [tuple(x[mine] for x in columns) if mine.size else None for mine in chosen]


def _without_predictions(
    recovery: Recovery, k: int, rows: Array, cols: Array, w: Array, y: Array, z: Array
) -> Message:
    """Return what the log keeps: a rebuilt shard computes its predictions from theta."""
    return "append", (rows, cols, w, y)


def _sizes(past: SplitPast, m1: int, m2: int) -> list[Any]:
    return [(row_count(k, past.n, m1), m2) for k in range(past.n)]


def _oldest(past: SplitPast, n: int) -> list[Any]:
    """Tell each shard how many of the n oldest entries are its own."""
    return [(int(mine),) for mine in past.placement.tail_lengths(n)]


def _owner(past: SplitPast, row: int) -> list[Any]:
    return only(past, row % past.n, row // past.n)


def _block(answers: list[Any]) -> Array | None:
    """Return G V, unless it stays with the workers."""
    return None if answers[0] is None else interleaved(answers)


def _up_to_date(past: SplitPast, *args: Any) -> None:
    """Compute predictions again if theta has moved and ``move`` was not called."""
    if past.placement.version != past.placement.theta.version:
        refresh(past)


def _up_to_date_with_theta(past: SplitPast, rows: Array, columns: Array, with_theta: bool) -> None:
    if with_theta:
        _up_to_date(past)


# Verbs that take more than one message ------------------------------------------------------------


def append(
    past: SplitPast, rows: Array, cols: Array, w: Array, y: Array, z: Array | None = None
) -> Array:
    """Add entries to the tails, with predictions that this process computes; return those."""
    z = past.placement.theta.at(rows, cols) if z is None else z
    past.append_predicted(rows, cols, w, y, z)
    return z


def merge(past: SplitPast, n: int) -> None:
    """Sort in the n oldest entries of all tails together."""
    n_sorted = past.merge_oldest(n)
    past.placement.merged(n, int(n_sorted))


def drop(past: SplitPast, least: float) -> tuple[float, float]:
    """Sort everything in, and drop entries that weigh less."""
    merge(past, past.placement.n_newest)
    n_sorted, *gone = past.drop_light(least)
    past.placement.left(n_sorted, *gone)
    return gone[0], gone[1]


def forget(past: SplitPast, row: int) -> Forgotten:
    """Sort everything in, and let the shard of a row remove its entries."""
    merge(past, past.placement.n_newest)
    gone = Forgotten(*past.forget_row(row))  # messages hold plain tuples
    sums = sums_of(gone.weights, gone.values, False)
    past.placement.left(past.placement.n_sorted - gone.columns.size, *sums)
    return gone


def set_unobserved(past: SplitPast, weight: float) -> None:
    """Tell the shards what an entry weighs that was not observed, if that has changed."""
    if weight != past.placement.unobserved:
        past.weigh_zeros(float(weight))


def n_distinct(past: SplitPast) -> int:
    """Return how many entries were observed; shards are asked once after some have come."""
    placement = past.placement
    if placement.distinct is None:
        placement.distinct = int(past.count_distinct())
    return placement.distinct


def move(past: SplitPast, keep: float, u: Array | None, v: Array | None) -> None:
    """Let z <- keep z + u_i v_j, unless an earlier move was interrupted."""
    placement = past.placement
    if placement.version + 1 == placement.theta.version:
        past.move_rows(keep, u, v)
    else:
        placement.version = NONE


def refresh(past: SplitPast) -> None:
    """Send theta to the shards and compute all predictions from it again."""
    placement = past.placement
    if placement.shape != placement.theta.shape:
        past.grow(*placement.theta.shape)
    past.refresh_from(placement.theta)


def _send_row_scale(past: SplitPast, new: Array | None) -> None:
    """Send the weights of rows when they have changed."""
    old = past.placement.row_scale
    if new is old or (new is not None and old is not None and np.array_equal(new, old)):
        return
    past.set_row_scale(new)
    past.placement.row_scale = None if new is None else np.array(new)


def read(
    past: SplitPast, V: Array, row_scale: Array | None, plus: Array | None = None
) -> tuple[Array, float]:
    placement = past.placement
    _send_row_scale(past, row_scale)
    large = placement.shape[0] * V.shape[1] * placement.dtype.itemsize > LARGE_BLOCK
    stay = large and plus is None  # who adds something wants all of it back (``products``)
    placement.block, W, z_dot_g = past.read_rows(V, stay, plus)
    return W.astype(float, copy=False), float(z_dot_g)


def products(past: SplitPast) -> Array:
    block: Array | None = past.placement.block
    assert block is not None
    return block


def overlaps(
    past: SplitPast, V: Array, W: Array, z_dot_g: float
) -> tuple[Array, None, None, float]:
    """Return V'W, None and None (W'W and (G V)'(G V) are not cheap here), and <z, g>."""
    return V.T @ W, None, None, z_dot_g


def combine(past: SplitPast, to_left: Array, W: Array, to_right: Array) -> tuple[Array, Array]:
    placement = past.placement
    if placement.block is None:
        return past.combined(to_left), W @ to_right
    left = placement.block @ to_left.astype(placement.dtype)
    return left.astype(float), W @ to_right


def normal(
    past: SplitPast, v: Array, row_scale: Array | None, plus: Array | None = None
) -> tuple[Array, Array]:
    _send_row_scale(past, row_scale)
    return past.multiply(v, plus)


def solve_columns(past: SplitPast, left: Array, ridge: Array) -> Array:
    """Return the columns' factor, from the sums of all shards' normal equations."""
    parts = past.column_equations(left)
    return _solved(parts, np.asarray(ridge), left.shape[1]).astype(left.dtype)


def _solved(parts: list[Array], ridge: Array, rank: int) -> Array:
    """Add up packed normal equations [A | b] of shards, add a ridge, and solve them."""
    row, column = np.triu_indices(rank, 0, rank + 1)
    out = np.empty((ridge.size, rank))
    size = max(1, AT_ONCE // (rank * (rank + 1)))
    for start in range(0, ridge.size, size):
        some = slice(start, start + size)
        total = parts[0][some] + sum(part[some] for part in parts[1:])
        equations = np.zeros((len(total), rank, rank + 1))
        equations[:, row, column] = total
        matrix, target = equations[:, :, :rank], equations[:, :, rank]
        matrix = matrix + np.triu(matrix, 1).transpose(0, 2, 1)
        matrix[:, np.arange(rank), np.arange(rank)] += ridge[some, None]
        out[some] = np.linalg.solve(matrix, target[:, :, None])[:, :, 0]
    return out


def state_dict(past: SplitPast) -> State:
    """Return the same state as entries in one process; from the log if the cluster is lost."""
    placement = past.placement
    reads = placement.reads
    numbers = placement.counts, reads, placement.unobserved
    with suppress(ClusterLost):  # shards that are rebuilt from the log predict with theta anyway
        _up_to_date(past)
    placement.reads = reads
    return joined_state(past.states(), placement.owners.data, *numbers)


def load_state(past: SplitPast, state: State) -> None:
    """Load a ``state_dict``, from any place; theta has its shape already."""
    placement = past.placement
    check_entries_state(state, placement.theta.shape, placement.dtype)
    check_unobserved(state, placement.loss)
    if placement.shape != placement.theta.shape:
        past.grow(*placement.theta.shape)
    past.load_parts(parts_of_state(state, past.n))
    placement.start_with(state)


# Files --------------------------------------------------------------------------------------------


def open_handle(past: SplitPast, handle: BatchHandle, growing: bool) -> tuple[int, int]:
    """Let a worker read and check a batch, and cut it into pieces; nothing changes.

    Return the shape of the smallest matrix that has all its entries.
    """
    past.shards.check_alive()
    placement = past.placement
    limits, kind = None if growing else placement.theta.shape, (placement.dtype, placement.loss)
    placement.opened = placement.files.read(past.shards, handle, limits, *kind)
    return placement.opened.shape


def append_handle(past: SplitPast, handle: BatchHandle) -> tuple[float, float]:
    placement = past.placement
    if placement.opened is None or placement.opened.handle != handle:
        open_handle(past, handle, True)
    if placement.known_atoms != placement.theta.n_atoms:
        past.know_theta(placement.theta)
    opened, placement.opened = placement.opened, None
    past.append_pieces(opened)
    return past.batch_loss(), opened.counts.weight


def _pieces(past: SplitPast, opened: OpenedEntries) -> list[Any]:
    lengths = np.bincount(opened.owners, minlength=past.n).tolist()
    pairs = zip(opened.pieces, lengths, strict=True)
    return [(piece, opened.handle, length) for piece, length in pairs]


def _handle_alone(
    recovery: Recovery, k: int, piece: Any, handle: BatchHandle, count: int
) -> Message:
    return in_worker.append_again, (handle, k, recovery.n, count)


# The table ----------------------------------------------------------------------------------------

#: What changes with new entries, offsets or predictions.
CHANGED = ("line", "regressions")
#: What changes with the size of the matrix.
RESIZED = ("line", "regressions", "read_rows", "set_row_scale")

TABLE: Table = {
    "append": append,
    "append_predicted": Verb(
        _batch, run="append", kept="log", logged=_without_predictions, note="came", ends=CHANGED
    ),
    "grow": Verb(_sizes, run=in_worker.grow, kept="log", note="grew", ends=RESIZED),
    "remember": lambda past: None,
    "go_back": lambda past, memory: False,
    "merge": merge,
    "merge_oldest": Verb(_oldest, total, run=in_worker.merge, note="is_due", ends=CHANGED),
    "rescale": Verb((same,), kept="log", note="rescaled", ends=CHANGED),
    "drop": drop,
    "drop_light": Verb(
        (same,), (total, total, total), run=in_worker.drop, kept="log", note="is_due", ends=CHANGED
    ),
    "forget": forget,
    "forget_row": Verb(_owner, first, run="forget", kept="log", note="is_due", ends=CHANGED),
    "value_range": Verb((), (min, max)),
    "set_unobserved": set_unobserved,
    "weigh_zeros": Verb((same,), run="set_unobserved", note="zeros_weigh", ends=CHANGED),
    "n_distinct": n_distinct,
    "count_distinct": Verb((), total, run="n_distinct"),
    "products": products,
    "set_offsets": Verb((_rows, _same), note="offset", ends=CHANGED),
    "move": move,
    "move_rows": Verb((same, _rows, _same), run=in_worker.move, note="moved", ends=CHANGED),
    "refresh": refresh,
    "refresh_from": Verb(
        (theta_rows,), run=in_worker.refresh_from, note="refreshed", ends=CHANGED
    ),
    "read": read,
    "read_rows": Verb(
        (_same, same, _rows), (_block, total, total), run=in_worker.read, before=_up_to_date,
        kept="last", note="was_read", ends=CHANGED, tree=True,
    ),
    "set_row_scale": Verb((_rows,), run=in_worker.set_row_scale, kept="last"),
    "overlaps": overlaps,
    "combine": combine,
    "combined": Verb((same,), interleaved, run=in_worker.combined),
    "normal": normal,
    "multiply": Verb(
        (_same, _rows), (interleaved, total), run=in_worker.normal, note="counted", tree=True
    ),
    "forward": Verb((same,), interleaved, note="counted"),
    "backward": Verb((rows,), total, note="counted"),
    "dense_slopes": Verb((), interleaved),
    "squared_norms": Verb((), sums),
    "total_loss": Verb((), total, before=_up_to_date, note="renewed"),
    "line": Verb((_rows, _same), sums, before=_up_to_date, kept="last", note="line_begun"),
    "line_value": Verb((same,), total, note="line_asked"),
    "line_slope": Verb((same,), total, note="line_asked"),
    "heaviest": Verb((), (max, max)),
    "weighted_sums": Verb(
        (rows, same, same), (interleaved, total), before=_up_to_date_with_theta, note="weighed"
    ),
    "newest_sums": Verb((theta_rows,), sums, run=in_worker.newest_sums),
    "begin_regressions": Verb((), kept="last", slot="regressions", note="is_due"),
    "solve_rows": Verb((same, rows), interleaved),
    "solve_columns": solve_columns,
    "column_equations": Verb((rows,), list),
    "columns_of": Verb(_owner, first),
    "seen": Verb((), compressed),
    "open_handle": open_handle,
    "append_handle": append_handle,
    "know_theta": Verb((theta_rows,), run=in_worker.know_theta, note="theta_known"),
    "append_pieces": Verb(
        _pieces, run=in_worker.append_piece, kept="log", logged=_handle_alone,
        note="pieces_came", ends=CHANGED,
    ),
    "batch_loss": Verb((), total, run=in_worker.batch_loss),
    "state_dict": state_dict,
    "load_state": load_state,
    "load_parts": Verb(each_one, first, run="load_state", kept="log", ends=RESIZED),
}  # fmt: skip
