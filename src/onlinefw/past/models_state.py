"""States of models that learn from single entries: what must be true before kernels see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._state import check_state
from .._typing import Array, State
from .._validation import check_precision, check_whole
from ..kernels import local_models as kernels
from ..kernels.click_tastes import ARMS

__all__ = ["LARGEST_RANK", "MIXTURE", "check_models_state", "sums_state", "without_sums"]

#: What a state has of the mixture.
MIXTURE = ("weights", "spread")
#: Models have this rank at most: one regression takes 16 bytes for each number of its square, also
#: that of a state, before anything is learned.
LARGEST_RANK = 1000


def sums_state(sums: kernels.Sums, n: int) -> State:
    """Return the running sums of the first n lists as plain arrays."""
    used = int(sums.used[0])
    numbers, added = sums.number[:n].copy(), sums.added[:used].copy()
    return {"place": numbers, "equations": sums.equations[:used].copy(), "added": added}


def without_sums(state: State) -> State:
    """Return a state of models without running sums, which depend on the order of long lists."""
    sides = {}
    for side in ("rows", "columns"):
        its = state[side]
        none = {"equations": its["equations"][:0], "added": its["added"][:0]}
        sides[side] = {**its, "place": np.zeros_like(its["place"]), **none}
    return {**state, **sides}


def check_models_state(state: State) -> None:
    """Refuse a state of models whose parts do not fit each other."""
    check_state(state, "shape", "rank", "check_at", "loss", "biased", "clipped", "dtype")
    check_state(state, "n_observations", "moments", "turns", "ridges", "mixture", "rows", "columns")
    dtype = check_precision(state["dtype"])
    shape = [check_whole("each side of the models", n, 0) for n in state["shape"]]
    rank = check_whole("the rank of the models", state["rank"])
    if rank > LARGEST_RANK:
        raise _damaged(f"their rank is {rank}")
    observations = check_whole("the observations of the models", state["n_observations"], 0)
    if state["check_at"] is not None:
        check_whole("check_at of the models", state["check_at"], observations + 1)
    ridges = _array(state, "ridges", np.float64, (-1, 3))
    if not len(ridges) or not ((ridges[:, 0] > 0.0).all() and (ridges >= 0.0).all()):
        raise _damaged("a ridge is not positive")
    count = len(ridges)
    check_state(state["mixture"], *MIXTURE)
    _array(state["mixture"], "weights", np.float64, (count + 2,))
    _array(state["mixture"], "spread", np.float64, (count + 2, count + 2))
    moments = np.asarray(state["moments"])
    if moments.shape not in ((5,), (7,)) or moments.dtype != float:
        raise _damaged("moments")
    if not np.isfinite(np.concatenate((moments[:3], moments[5:6]))).all():
        raise _damaged("moments")
    positive = moments[0] >= 0.0 and moments[2] >= 0.0 and (moments[5:] > 0.0).all()
    if len(shape) != 2 or np.isnan(moments).any() or not positive:
        raise _damaged("moments or shape")
    turns = _array(state, "turns", np.int64, (5,))
    if (turns < -1).any() or turns[0] < 0 or (turns[1:] >= np.tile(shape, 2)).any():
        raise _damaged("turns")
    clicks = state.get("clicks") is not None
    for name, n in zip(("rows", "columns"), shape, strict=True):
        _check_side(state[name], name, n, count, kernels.width_of(rank), dtype, clicks)
    if clicks:
        _check_clicks(state, kernels.width_of(rank))


def _check_clicks(state: State, width: int) -> None:
    check_state(state["clicks"], "unobserved", "grams", "wins")
    weight = state["clicks"]["unobserved"]
    if not (isinstance(weight, float) and 0.0 < weight < np.inf) or len(state["ridges"]) != 1:
        raise _damaged(f"entries that were not observed weigh {weight!r}")
    _array(state["clicks"], "grams", np.float64, (2, width, width))
    _array(state["clicks"], "wins", np.float64, (ARMS,))


def _check_side(
    side: State, name: str, n: int, count: int, width: int, dtype: np.dtype, clicks: bool
) -> None:
    """Refuse n rows or columns of ``count`` models whose arrays do not fit each other."""
    check_state(side, *kernels.Side._fields, "place", "equations", "added")
    _array(side, "factors", dtype, (n, count * width))
    _array(side, "offsets", dtype, (n, count))
    _array(side, "memory", dtype, (n,))
    added = _array(side, "added", np.int64, (-1, 2))
    numbers = _array(side, "place", np.int64, (n,))
    sums = 2 if clicks else count  # of weighted squares, and of squares
    _array(side, "equations", np.float64, (len(added), 2, sums, width, width))
    taken = np.sort(numbers[numbers != 0])
    if (added < 0).any() or not np.array_equal(taken, np.arange(1, len(added) + 1)):
        raise _damaged(f"the sums of {name}")


def _array(state: State, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Return an array of a state, if it is of this type and shape (-1: any) and finite."""
    array = state[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape):
        raise _damaged(f"{name} is no array of {dtype}")
    fits = all(want in (-1, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or not np.isfinite(array).all():
        raise _damaged(f"{name} has shape {array.shape}")
    return array


def _damaged(what: str) -> ValueError:
    return ValueError(f"the models of a state are damaged: {what}")
