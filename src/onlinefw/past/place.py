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
    "loaded_local_models",
    "low_rank_class",
    "moved",
    "new_entries",
    "new_gram",
    "new_local_models",
    "new_rows",
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


def new_entries(
    place: Place, theta: LowRank, dtype: np.dtype, loss: Loss, listed: bool = False
) -> Any:
    """Return an :class:`~onlinefw.past.protocols.EntriesPast` without entries.

    ``theta`` is of the place's own class (:func:`low_rank_class`). Entries that are ``listed`` by
    row and by column are in this process's memory.
    """
    if listed:
        from .host.listed_entries import ListedEntries

        if place.workers is not None or place.device != "cpu":
            raise ValueError("local corrections work in this process's memory, without workers")
        return ListedEntries(theta, dtype, loss)
    if place.workers is not None:
        from .ray.entries import TABLE, EntriesPlacement
        from .ray.split_past import SplitPast

        placement = EntriesPlacement(theta, dtype, loss, place.workers)
        return SplitPast(TABLE, placement, place)
    if place.device == "cuda":
        from .cuda.entries import CudaEntries

        return CudaEntries(theta, dtype, loss)
    from .host.entries import HostEntries

    return HostEntries(theta, dtype, loss)


def new_local_models(*parameters: Any) -> Any:
    """Return :class:`~onlinefw.past.host.local_models.LocalModels`, in this process's memory."""
    from .host.local_models import LocalModels

    return LocalModels(*parameters)


def loaded_local_models(state: State) -> Any:
    """Return the models that a state describes."""
    from .host.local_models import LocalModels

    return LocalModels.from_state(state)


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
