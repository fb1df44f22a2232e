"""What is kept of the past moves to workers, to a device, or back into this process's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..objectives.least_squares import Moments
from ..objectives.linear import LinearObjective
from ..objectives.row_store import RowStore
from .linear import ShardedLinearObjective
from .moments import ShardedMoments
from .row_store import ShardedRowStore
from .rows_shard import all_rows

__all__ = ["moved", "spread_rows"]


def moved(past: Any, device: str, workers: int | None, log_dir: Any = None) -> Any:
    """Return the same past on a device of this process, or on those of so many workers.

    Its objectives go on with that. If it cannot be moved, all is as it was.
    """
    before = [(one, type(one), dict(one.__dict__)) for one in (past, *past.lanes)]
    try:
        new = _moved(past, device, workers, log_dir)
    except BaseException:
        for one, kind, state in before:
            one.__class__ = kind
            one.__dict__.clear()
            one.__dict__.update(state)
        raise
    if new is not past:
        past.close()
    return new


def _moved(past: Any, device: str, workers: int | None, log_dir: Any) -> Any:
    if isinstance(past, Moments):
        return _moved_sums(past, device, workers, log_dir)
    if isinstance(past, ShardedRowStore):
        past = _gathered_rows(past)
    if workers is not None:
        return spread_rows(past, workers, device, log_dir)
    past.use_device(device)
    return past


def _moved_sums(past: Moments, device: str, workers: int | None, log_dir: Any) -> Moments:
    n, H = past.mean.size, past.gram.values()
    new = (
        Moments(n, past.centred, device)
        if workers is None
        else ShardedMoments(n, past.centred, workers=workers, device=device, log_dir=log_dir)
    )
    new.gram.load(H)
    new.mean, new.total_weight, new.lanes = past.mean, past.total_weight, past.lanes
    for lane in new.lanes:
        lane._bring_batch()
        lane._moments = new
    return new


def _gathered_rows(past: ShardedRowStore) -> RowStore:
    store = object.__new__(RowStore)
    store.__dict__.update(past.home_state())
    lanes: list[Any] = past.lanes
    states = [lane.home_state() for lane in lanes]
    for lane, state in zip(lanes, states, strict=True):
        lane.__class__ = LinearObjective
        lane.__dict__.update({**state, "_store": store})
        lane._carried._store = store
    return store


def spread_rows(
    store: RowStore, workers: int, device: str = "cpu", log_dir: Any = None
) -> ShardedRowStore:
    """Move the rows of a store to workers; its objectives ask them from now on."""
    spread = ShardedRowStore(
        store.past, store.max_past, workers=workers, device=device, log_dir=log_dir
    )
    spread.n_seen, spread.total_weight = store.n_seen, store.total_weight
    spread._rng = store._rng
    lanes: list[Any] = store.lanes
    Z = np.column_stack([lane._carried.values() for lane in lanes])
    Y = np.column_stack([lane._carried.targets() for lane in lanes])
    spread.lanes = store.lanes
    X = None if store.rows is None else all_rows(store.rows)
    if X is not None:
        spread._prepare(X)
    for lane in lanes:
        lane.__dict__.update({**lane.__getstate__(), "_device": device, "_store": spread})
        lane.__class__ = ShardedLinearObjective
        lane._carried = lane._new_carried()
    if X is None:
        return spread
    cuts = np.linspace(0, X.shape[0], workers + 1).astype(int)
    for k in range(workers):
        part = slice(cuts[k], cuts[k + 1])
        spread._give(k, X[part], Z[part], Y[part], store.w[part])
    spread.ask("wait")  # until all is there
    return spread
