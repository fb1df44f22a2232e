"""Where the past is, and the one way to make it there or to move it there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._devices import check_device, check_device_name
from .._typing import State
from ..iterates import LowRank
from ..losses import Loss

__all__ = [
    "Place",
    "check_place",
    "here",
    "is_compiled",
    "loaded_entries",
    "low_rank_class",
    "moved",
    "new_entries",
    "new_gram",
    "new_rows",
    "new_summary",
]


@dataclass(frozen=True)
class Place:
    """Where data are."""

    device: str = "cpu"  # or "cuda": of this process or, with workers, of each worker
    workers: int | None = None  # how many workers of a Ray cluster hold them; None: this process
    log_dir: Any = None  # where to log what workers have received, for those that are restarted


def check_place(device: Any, workers: Any, log_dir: Any = None) -> Place:
    """Return a place that exists, or say what is missing."""
    if workers is None:
        return Place(check_device(device), None, log_dir)
    from .ray.cluster import Cluster, check_workers

    workers = check_workers(workers)
    return Place(Cluster.device_for(workers, device), workers, log_dir)


def here(device: str) -> Place:
    """Return a place here for saved data that were on ``device``: a GPU only if there is one."""
    return Place("cpu" if check_device_name(device) == "cpu" else check_device("auto"))


def moved(past: Any, new: Any) -> Any:
    """Load the state of a past into a new, empty one, at any two places; close the old one."""
    try:
        new.load_state(past.state_dict())
    except BaseException:
        new.close()
        raise
    past.close()
    return new


def new_rows(place: Place) -> Any:
    """Return a :class:`~onlinefw.past.protocols.RowsPast` without rows."""
    if place.workers is not None:
        from .ray.rows import TABLE, RowsPlacement
        from .ray.split_past import SplitPast

        return SplitPast(TABLE, RowsPlacement(place.workers), place)
    if place.device == "cuda":
        from .cuda.rows import CudaRows

        return CudaRows()
    from .host.rows import HostRows

    return HostRows()


def new_gram(place: Place, n: int) -> Any:
    """Return a :class:`~onlinefw.past.protocols.GramPast` of no rows with n features."""
    if place.workers is not None:
        from .ray.gram import TABLE, GramPlacement
        from .ray.split_past import SplitPast

        return SplitPast(TABLE, GramPlacement(n, place.workers), place)
    if place.device == "cuda":
        from .cuda.gram import CudaGram

        return CudaGram(n)
    from .host.gram import HostGram

    return HostGram(n)


def new_entries(place: Place, theta: LowRank, dtype: np.dtype, loss: Loss) -> Any:
    """Return an :class:`~onlinefw.past.protocols.EntriesPast` without entries.

    ``theta`` is of the place's own class (:func:`low_rank_class`).
    """
    if place.workers is not None:
        from .ray.entries import TABLE, EntriesPlacement
        from .ray.split_past import SplitPast

        return SplitPast(TABLE, EntriesPlacement(theta, dtype, loss, place.workers), place)
    if place.device == "cuda":
        from .cuda.entries import CudaEntries

        return CudaEntries(theta, dtype, loss)
    from .host.entries import HostEntries

    return HostEntries(theta, dtype, loss)


def loaded_entries(place: Place, theta: LowRank, dtype: np.dtype, loss: Loss, state: State) -> Any:
    """Return entries with the state of others, from any place."""
    past = new_entries(place, theta, dtype, loss)
    try:
        past.load_state(state)
    except BaseException:
        past.close()
        raise
    return past


def is_compiled(loss: Loss) -> bool:
    """Whether compiled loops know a loss; they do not know those of users."""
    from .host.row_loss import compiled

    return compiled(loss)[0] >= 0


def low_rank_class(place: Place) -> type[LowRank]:
    """Return the class of a low-rank theta: on a GPU with the entries, or in this process's memory.

    If workers hold the entries, on whatever device, theta is in this process's memory.
    """
    if place.device == "cpu" or place.workers is not None:
        return LowRank
    from .cuda.low_rank import CudaLowRank

    return CudaLowRank


def new_summary(
    loss: Loss, n: int, fit_intercept: bool, estimator: str, half_life: float | None
) -> Any:
    """Return a summary of no rows with n features; there are some in this process's memory only."""
    from .host.summary import HostSummary

    return HostSummary(loss, n, fit_intercept, estimator, half_life)
