"""The state of entries in one process, from those of shards, and back."""

from __future__ import annotations

import numpy as np

from .._typing import Array, State
from ..kernels import entries as kernels
from ..objectives.host_entries import HostEntries

__all__ = ["split_state", "whole_state"]

#: row, col, z, c, s and g of entries.
Part = list[Array]


def whole_state(
    parts: list[tuple[Part, Part, Array]], shape: tuple[int, int], last_batch: int
) -> State:
    """Return the state of an EntryStore with the entries of all shards."""
    (m1, m2), n = shape, len(parts)
    bulk = _together([bulk for bulk, _, _ in parts], n)
    tail = _together([tail for _, tail, _ in parts], n)
    age = np.argsort(np.concatenate([numbers for _, _, numbers in parts]), kind="stable")
    indptr, order = np.zeros(m1 + 1, np.int64), np.empty(bulk[0].size, np.int64)
    kernels.sort_by_row(bulk[0], bulk[1], indptr, order)
    names = ("col", "z", "c", "s", "g")
    return {
        "bulk": {"indptr": indptr, **dict(zip(names, (x[order] for x in bulk[1:]), strict=True))},
        "tail": dict(zip(("row", *names), (x[age] for x in tail), strict=True)),
        "rank": np.arange(m2),
        "ranked_at": 0,  # columns are ranked by popularity at the next merge
        "last_batch": last_batch,
    }


def _together(parts: list[Part], n: int) -> Part:
    for k, part in enumerate(parts):
        part[0] = (part[0].astype(np.int64) * n + k).astype(np.uint32)
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def split_state(host: HostEntries, n: int) -> list[tuple[Part, Part, Array]]:
    """Return each shard's sorted and newest entries, and the newest's numbers, from 1 on."""
    bulk, tail = (part[:5] for part in host.columns())
    parts = []
    for k in range(n):
        mine, new = (np.flatnonzero(part[0] % n == k) for part in (bulk, tail))
        one, other = [x[mine] for x in bulk], [x[new] for x in tail]
        one[0], other[0] = one[0] // n, other[0] // n
        parts.append((one, other, 1 + new))
    return parts
