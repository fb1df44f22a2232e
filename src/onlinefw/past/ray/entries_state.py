"""The state of all entries from the states of the shards, and back."""

from __future__ import annotations

import numpy as np

from ..._typing import Array, State
from ...kernels import merging
from ..entries_state import VALUES, Counts, entries_state
from .joins import interleaved
from .splits import row_count

__all__ = ["joined_state", "parts_of_state"]


def joined_state(
    states: list[State], owners: Array, counts: Counts, reads: int, unobserved: float
) -> State:
    """Return the state of all entries; ``owners`` are the shards of those in the tail, in order."""
    n, (m1, m2) = len(states), (sum(len(s["offsets"][0]) for s in states), len(states[0]["rank"]))
    held = [_entries(state["sorted"], state["rank"], k, n) for k, state in enumerate(states)]
    row, col, *values = (np.concatenate(column) for column in zip(*held, strict=True))
    indptr, order = np.zeros(m1 + 1, np.int64), np.empty(row.size, np.int64)
    merging.sort_by_row(row, col, indptr, order)
    newest = [_entries(state["tail"], state["rank"], k, n) for k, state in enumerate(states)]
    came = np.argsort(owners, kind="stable")
    tail = []
    for column in zip(*newest, strict=True):
        tail.append(np.empty_like(column[0], shape=owners.size))
        tail[-1][came] = np.concatenate(column)
    return entries_state(
        (indptr, col[order], *(x[order] for x in values)),
        tuple(tail),
        np.arange(m2),
        0,  # columns are numbered by popularity at the next merge
        (interleaved([s["offsets"][0] for s in states]), states[0]["offsets"][1]),
        counts,
        reads,
        unobserved,
    )


def _entries(part: State, rank: Array, k: int, n: int) -> list[Array]:
    """Return row, column, z, c and s in terms of the whole matrix."""
    if "row" in part:
        rows = part["row"]
    else:
        rows = np.repeat(np.arange(len(part["indptr"]) - 1), np.diff(part["indptr"]))
    columns = np.argsort(rank).astype(np.uint32)[part["col"]]
    whole = (rows.astype(np.int64) * n + k).astype(np.uint32)
    return [whole, columns, *(part[name] for name in VALUES)]


def parts_of_state(state: State, n: int) -> list[State]:
    """Return a state for each shard: its rows."""
    held, tail, (row_offset, col_offset) = state["sorted"], state["tail"], state["offsets"]
    lengths = np.diff(held["indptr"])
    owner = np.repeat(np.arange(lengths.size) % n, lengths).astype(np.uint16)
    owners = tail["row"] % n
    parts = []
    for k in range(n):
        mine, new = np.flatnonzero(owner == k), np.flatnonzero(owners == k)
        indptr = np.zeros(row_count(k, n, lengths.size) + 1, np.int64)
        np.cumsum(lengths[k::n], out=indptr[1:])
        parts.append(
            entries_state(
                (indptr, *(held[name][mine] for name in ("col", *VALUES))),
                (tail["row"][new] // n, *(tail[name][new] for name in ("col", *VALUES))),
                state["rank"],
                state["ranked_at"],
                (row_offset[k::n], col_offset),
                Counts(mine.size + new.size),
                state["reads"],
                state.get("unobserved", 0.0),
            )
        )
    return parts
