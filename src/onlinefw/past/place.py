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
    "listed",
    "loaded_entries",
    "loaded_local_models",
    "low_rank_class",
    "models_for",
    "moved",
    "new_entries",
    "new_gram",
    "new_local_models",
    "new_rows",
    "new_summary",
]


#: The rank of local models on a GPU or with workers, where none is given.
PLACED_RANK = 14


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

    ``theta`` is of the place's own class (:func:`low_rank_class`). For local corrections entries
    are ``listed`` by row and by column; on a GPU they are in both orders anyway.
    """
    if place.workers is not None:
        from .ray.entries import TABLE, EntriesPlacement
        from .ray.split_past import SplitPast

        listed = listed and place.device == "cpu"
        placement = EntriesPlacement(theta, dtype, loss, place.workers, listed)
        return SplitPast(TABLE, placement, place)
    if place.device == "cuda":
        from .cuda.entries import CudaEntries

        return CudaEntries(theta, dtype, loss)
    if listed:
        from .host.listed_entries import ListedEntries

        return ListedEntries(theta, dtype, loss)
    from .host.entries import HostEntries

    return HostEntries(theta, dtype, loss)


def loaded_entries(place: Place, theta: LowRank, dtype: np.dtype, loss: Loss, state: State) -> Any:
    """Return entries with the state of others, from any place; those in lists stay in lists."""
    in_lists = isinstance(state, dict) and "lists" in state
    if in_lists and place.device != "cpu":
        from .host.listed_entries import sorted_state

        state, in_lists = sorted_state(state, theta, dtype, loss), False
    past = new_entries(place, theta, dtype, loss, in_lists)
    try:
        past.load_state(state)
    except BaseException:
        past.close()
        raise
    return past


def listed(past: Any, place: Place, theta: LowRank) -> Any:
    """Return entries for local corrections; where they are others, the old ones are closed."""
    if place.workers is not None:
        past.opens_handles = False  # values are predicted in this process before they are learned
    if place.device != "cpu" or getattr(past, "listed", False):
        return past
    from .host.listed_entries import listed_state

    past_state = past.state_dict() if len(past) else None
    new = new_entries(place, theta, past.dtype, past.loss, listed=True)
    if past_state is not None:
        new.load_state(listed_state(past_state, past.dtype, past.loss))
    if place.workers is not None:
        new.opens_handles = False
    past.close()
    return new


def new_local_models(
    past: Any, unobserved: float, rank: int | None, ridges: Any, biased: bool, clipped: bool
) -> Any:
    """Return models without data, which learn with the entries of a past.

    Without a rank, models in this process's memory find it; others have one that is large enough
    for most. ``unobserved`` is the weight of entries that were not observed.
    """
    from .host.click_models import ClickModels
    from .host.local_models import LocalModels
    from .placed_models import PlacedModels

    lists = getattr(past, "lists", None)
    if unobserved > 0.0:
        models = ClickModels(lists, rank, ridges, False, False)
        models.unobserved = unobserved
        return models
    if lists is None:
        return PlacedModels(past, PLACED_RANK if rank is None else rank, ridges, biased, clipped)
    return LocalModels(lists, rank, ridges, biased, clipped, past.local_loss)


def models_for(models: Any, past: Any) -> Any:
    """Return models that learn with this past: these, or others in the same state."""
    from .host.click_models import ClickModels
    from .host.local_models import LocalModels
    from .models_state import without_sums
    from .placed_models import PlacedModels

    lists = getattr(past, "lists", None)
    if lists is None:
        if not isinstance(models, PlacedModels):
            models = PlacedModels.from_state(models.state_dict())
        if models.past is not past:
            models.use_past(past)
        return models
    is_local = isinstance(models, LocalModels)
    if is_local and models.lists is lists:
        return models
    if not is_local or (models.lists is not None and len(models.lists) > 0):
        # The entries were elsewhere, in another order, on which running sums depend.
        kind = ClickModels if isinstance(models, ClickModels) else LocalModels
        models = kind.from_state(without_sums(models.state_dict()))
    models.use_lists(lists, past.counts.observations, past.local_loss)
    return models


def loaded_local_models(state: State) -> Any:
    """Return the models that a state describes."""
    from .host.click_models import ClickModels
    from .host.local_models import LocalModels

    clicks = isinstance(state, dict) and state.get("clicks") is not None
    return (ClickModels if clicks else LocalModels).from_state(state)


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
