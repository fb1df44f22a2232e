"""What a worker does with a shard of rows beyond the verbs of its past."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from ..._batches import BatchHandle
from ..._typing import Array, Shape
from ..._validation import check_rows, check_targets, check_weights
from ...iterates import DenseIterate
from ...losses import Loss
from .worker import Shard

#: Rows, targets and weights.
Checked = tuple[Any, Array, Array]


def new_shard(device: str) -> Any:
    """Return a past without rows."""
    from ..place import check_place, new_rows

    return new_rows(check_place(device, None))


def refresh_from(shard: Shard, m: int, theta: Array) -> None:
    """Keep theta, and compute all predictions from it."""
    iterate = DenseIterate(())
    iterate.put(theta)
    shard.past.iterates[m] = iterate
    shard.past.refresh(m)


def predicted(shard: Shard, m: int) -> tuple[Array, Array]:
    """Return a prediction for each row, and whether its weight is above 0."""
    counts = shard.past.residuals(m)[1] > 0.0
    z = np.zeros(counts.size)
    z[counts] = shard.past.predictions(m)
    return z, counts


# Files --------------------------------------------------------------------------------------------


def stage(shard: Shard, handle: BatchHandle, theta: Array | None, b: float) -> Any:
    """Read a batch, which :func:`keep_staged` may add later.

    Return its mean loss and its weights; or, as a string, what is wrong with it.
    """
    try:
        X, y, w = _read(shard, handle, None if theta is None else theta.shape)
    except (ValueError, OSError) as error:
        return str(error)
    z = np.zeros(y.size)
    if theta is not None:
        z = shard.past.products(X, theta.reshape(-1, 1))[:, 0]
    shard.notes["staged"] = X, z, y, w
    return float(w @ _loss(shard).value(z + b, y) / w.sum()), w


def keep_staged(shard: Shard, handle: BatchHandle, as_sparse: bool) -> None:
    """Add the rows that were read last."""
    X, z, y, w = shard.notes.pop("staged")
    _append(shard, X, z, y, w, as_sparse)


def append_again(shard: Shard, handle: BatchHandle, as_sparse: bool) -> None:
    """Read a batch again, after a restart; its predictions come from theta later."""
    X, y, w = _read(shard, handle, None)
    _append(shard, X, np.zeros(y.size), y, w, as_sparse)


def announce(shard: Shard, handle: BatchHandle, shape: Shape) -> None:
    """Begin to read a batch that will be staged, in another thread."""
    if "reader" not in shard.notes:
        shard.notes["reader"] = ThreadPoolExecutor(1)
    future = shard.notes["reader"].submit(_checked, handle, shape, _loss(shard))
    shard.notes["announced"] = handle, future


def _loss(shard: Shard) -> Loss:
    return shard.past.models()[0][0]


def _read(shard: Shard, handle: BatchHandle, shape: Shape | None) -> Checked:
    announced: tuple[BatchHandle, Future[Checked]] | None = shard.notes.pop("announced", None)
    if announced is not None and announced[0] == handle:
        return announced[1].result()
    return _checked(handle, shape, _loss(shard))


def _checked(handle: BatchHandle, shape: Shape | None, loss: Loss) -> Checked:
    """Read a batch, and refuse what a model with this loss cannot learn from."""
    X, y, w = handle.open()
    X = check_rows(X, shape)
    y = check_targets(y, X.shape[0], loss)
    return np.ascontiguousarray(X), y, check_weights(w, X.shape[0])


def _append(shard: Shard, X: Array, z: Array, y: Array, w: Array, as_sparse: bool) -> None:
    rows = sparse.csr_array(X) if as_sparse else X
    shard.past.append(rows, z[:, None], y[:, None], w)
