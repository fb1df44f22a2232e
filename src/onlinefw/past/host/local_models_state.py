"""What must be true of the state of local models before compiled loops see it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._state import check_state
from ..._typing import Array, State
from ..._validation import check_precision, check_whole
from ...kernels import local_models as kernels
from ..place import LARGEST_RANK
from .growing_rank import width_of

__all__ = ["MIXTURE", "check_models_state"]

#: What a state has of the mixture.
MIXTURE = ("weights", "spread")


def check_models_state(state: State) -> None:
    """Refuse a state of models whose parts do not fit each other."""
    check_state(state, "shape", "rank", "check_at", "loss", "biased", "clipped", "dtype")
    check_state(state, "n_observations", "moments", "turns", "ridges", "mixture", "rows", "columns")
    dtype = check_precision(state["dtype"])
    shape = [check_whole("each side of the models", n, 0) for n in state["shape"]]
    rank = check_whole("the rank of the models", state["rank"])
    if rank > LARGEST_RANK:
        raise ValueError(f"the models of a state are damaged: their rank is {rank}")
    seen = check_whole("the observations of the models", state["n_observations"], 0)
    if state["check_at"] is not None:
        check_whole("check_at of the models", state["check_at"], seen + 1)
    ridges = _array(state, "ridges", np.float64, (-1, 3))
    if not len(ridges) or not ((ridges[:, 0] > 0.0).all() and (ridges >= 0.0).all()):
        raise ValueError("the models of a state are damaged: a ridge is not positive")
    count = len(ridges)
    check_state(state["mixture"], *MIXTURE)
    _array(state["mixture"], "weights", np.float64, (count + 2,))
    _array(state["mixture"], "spread", np.float64, (count + 2, count + 2))
    moments = np.asarray(state["moments"])
    if moments.shape != (5,) or moments.dtype != float or not np.isfinite(moments[:3]).all():
        raise ValueError("the models of a state are damaged: moments")
    if len(shape) != 2 or np.isnan(moments).any() or moments[0] < 0 or moments[2] < 0:
        raise ValueError("the models of a state are damaged: moments or shape")
    turns = _array(state, "turns", np.int64, (5,))
    if (turns < -1).any() or turns[0] < 0 or (turns[1:] >= np.tile(shape, 2)).any():
        raise ValueError("the models of a state are damaged: turns")
    for name, n in zip(("rows", "columns"), shape, strict=True):
        side, width = state[name], width_of(rank)
        check_state(side, *kernels.Side._fields, "place", "equations", "added")
        _array(side, "factors", dtype, (n, count * width))
        _array(side, "offsets", dtype, (n, count))
        _array(side, "memory", dtype, (n,))
        added = _array(side, "added", np.int64, (-1, 2))
        place = _array(side, "place", np.int64, (n,))
        _array(side, "equations", np.float64, (len(added), 2, count, width, width))
        taken = np.sort(place[place != 0])
        if (added < 0).any() or not np.array_equal(taken, np.arange(1, len(added) + 1)):
            raise ValueError(f"the models of a state are damaged: the sums of {name}")


def _array(state: State, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Return an array of a state, if it is of this type and shape (-1: any) and finite."""
    array = state[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape):
        raise ValueError(f"the models of a state are damaged: {name} is no array of {dtype}")
    fits = all(want in (-1, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or not np.isfinite(array).all():
        raise ValueError(f"the models of a state are damaged: {name} has shape {array.shape}")
    return array
