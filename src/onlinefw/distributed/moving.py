"""What is kept of the past moves to workers, or back into this process."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..objectives.host_predictions import HostPredictions
from ..objectives.least_squares import Moments
from ..objectives.linear import LinearObjective
from ..objectives.row_store import RowStore
from ..objectives.rows import DenseRows, SparseRows
from .linear import ShardedLinearObjective
from .moments import ShardedMoments
from .row_store import ShardedRowStore

__all__ = ["moved", "spread_rows"]


def moved(past: Any, workers: int | None, log_dir: Any = None) -> Any:
    """Return the same past with so many workers (None: here); its objectives go on with that."""
    if isinstance(past, Moments):
        return _moved_sums(past, workers, log_dir)
    if isinstance(past, ShardedRowStore):
        past = _gathered_rows(past)
    return past if workers is None else spread_rows(past, workers, log_dir)


def _moved_sums(past: Moments, workers: int | None, log_dir: Any) -> Moments:
    n, H = past.mean.size, past.gram.values()
    if workers is None:
        new = Moments(n, past.centred)
    else:
        new = ShardedMoments(n, past.centred, workers=workers, log_dir=log_dir)
    new.gram.load(H)
    new.mean, new.total_weight, new.lanes = past.mean, past.total_weight, past.lanes
    for lane in new.lanes:
        lane._moments = new
    past.close()
    return new


def _gathered_rows(past: ShardedRowStore) -> RowStore:
    store = object.__new__(RowStore)
    store.__dict__.update(past.home_state())
    lanes: list[Any] = past.lanes
    states = [lane.home_state() for lane in lanes]
    for lane, state in zip(lanes, states, strict=True):
        lane.__class__ = LinearObjective
        lane.__dict__.update({**state, "_store": store})
    past.close()
    return store


def spread_rows(store: RowStore, workers: int, log_dir: Any = None) -> ShardedRowStore:
    """Move the rows of a store to workers; its objectives ask them from now on."""
    spread = ShardedRowStore(store.past, store.max_past, workers=workers, log_dir=log_dir)
    spread.n_seen, spread.total_weight = store.n_seen, store.total_weight
    spread._rng = store._rng
    lanes: list[Any] = store.lanes
    Z = np.column_stack([lane._carried.values() for lane in lanes])
    Y = np.column_stack([lane._carried.targets() for lane in lanes])
    for lane in lanes:
        lane.__class__ = ShardedLinearObjective
        lane._store, lane._image = spread, None
        lane._carried = HostPredictions(spread, lane.loss)  # of no rows
    spread.lanes = store.lanes
    if store.rows is None:
        return spread
    X = _all_rows(store.rows)
    spread._prepare(X)
    cuts = np.linspace(0, len(store.rows), workers + 1).astype(int)
    for k in range(workers):
        part = slice(cuts[k], cuts[k + 1])
        spread._give(k, X[part], Z[part], Y[part], store.w[part])
    return spread


def _all_rows(rows: Any) -> Any:
    if isinstance(rows, DenseRows):
        return rows.data
    assert isinstance(rows, SparseRows)
    rows._merge()
    bulk = (rows._data, rows._indices, rows._indptr)
    return sparse.csc_array(bulk, shape=(len(rows), rows.n_features)).tocsr()
