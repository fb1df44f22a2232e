"""What a model file keeps of models of clicks: all that recommends, and nothing that learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._state import check_state
from .._typing import State
from ..kernels.lists import packed
from .host.click_models import ClickModels
from .host.entry_lists import EntryLists
from .models_state import without_sums

__all__ = ["clicks_from_state", "clicks_state"]


def clicks_state(models: ClickModels) -> State:
    """Return the models without running sums, and what every row has had, in order."""
    length, columns, _, weights = packed(models.lists.by_row, models.shape[0])
    rows = {"length": length, "columns": columns, "weights": weights}
    return {"models": without_sums(models.state_dict()), "rows": rows}


def clicks_from_state(state: State) -> ClickModels:
    """Return the models that ``clicks_state`` described, or say what is wrong with them."""
    check_state(state, "models", "rows")
    if not isinstance(state["models"], dict) or state["models"].get("clicks") is None:
        raise ValueError("the models of a state are damaged: they are not of clicks")
    models = ClickModels.from_state(state["models"])
    check_state(state["rows"], "length", "columns", "weights")
    length, columns, weights = (state["rows"][x] for x in ("length", "columns", "weights"))
    lists = EntryLists.from_state(
        _both_sides(models, length, columns, weights), models.shape, models.dtype
    )
    models.use_lists(lists, models.n_observations, None)
    return models


def _both_sides(models: ClickModels, length: Any, columns: Any, weights: Any) -> State:
    """Return lists by row and by column, as :class:`EntryLists` checks and reads them."""
    m1, m2 = models.shape
    arrays = all(isinstance(x, np.ndarray) and x.ndim == 1 for x in (length, columns, weights))
    if not arrays or length.dtype.kind != "i" or columns.dtype.kind != "u" or length.size != m1:
        raise ValueError("the lists of entries in a state are damaged: not arrays of rows")
    if (length < 0).any() or not columns.size == weights.size == length.sum():
        raise ValueError("the lists of entries in a state are damaged: of different lengths")
    if columns.size and int(columns.max()) >= m2:
        raise ValueError(f"the lists of entries in a state are damaged: {columns.max()} of {m2}")
    order = np.argsort(columns, kind="stable")
    rows = np.repeat(np.arange(m1, dtype=np.uint32), length)[order]
    of_columns = np.bincount(columns, minlength=m2).astype(np.int64)
    ones = np.ones(columns.size, models.dtype)
    return {
        "rows": {"length": length, "other": columns, "value": ones, "weight": weights},
        "columns": {"length": of_columns, "other": rows, "value": ones, "weight": weights[order]},
    }
