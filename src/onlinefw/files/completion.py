"""Matrix completions as trees of arrays and values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._devices import to_host
from .._state import describe, rebuild
from .._typing import State
from ..iterates import LowRank
from ..losses import Loss
from ..objectives import RunningBiases
from ..sets import TraceNormBall
from .labels import labels_from_tree, labels_to_tree
from .linear import check_compressed, columns_from_tree
from .predicting import LearnedEntries, Player

__all__ = ["completion_from_tree", "completion_to_tree"]


def completion_to_tree(model: Any) -> State:
    """Return everything that predicts, and what happened."""
    objective = model.objective_
    theta, biases = objective._low_rank, objective.offsets
    indptr, columns = objective._entries.seen()
    ids = {name: labels_to_tree(getattr(model, f"{name}_"), name) for name in _ids_of(model)}
    return {
        "shape": list(objective.shape),
        "loss": describe(objective.loss),
        "factors": {
            "left": to_host(theta.left),
            "weights": theta.weights,
            "right": to_host(theta.right),
            "padded": bool(theta._weights.size > theta.n_atoms),
        },
        "row_offsets": objective._entries.row_offset,
        "column_offsets": objective._entries.col_offset,
        "biases": None if biases is None else _biases_to_tree(biases),
        "low": float(model._low),
        "high": float(model._high),
        "radius": model.radius_,
        "seen": {"indptr": indptr.astype(np.uint64), "columns": columns},
        **ids,
        "n_rounds": model.n_rounds_,
        "n_observations": objective.n_observations,
        "gap": float(model.gap_),
        "history": model.history_,
    }


def _ids_of(model: Any) -> list[str]:
    return [name for name in ("row_ids", "col_ids") if getattr(model, f"{name}_", None) is not None]


def _biases_to_tree(biases: RunningBiases) -> State:
    return {
        "mean": biases.mean,
        "rows": biases.rows,
        "columns": biases.columns,
        "shrinkage": biases.shrinkage,
        "joint": biases.joint,
    }


def completion_from_tree(model: Any, tree: State) -> None:
    """Put what was saved into a new estimator."""
    m1, m2 = (int(n) for n in tree["shape"])
    factors, seen = tree["factors"], tree["seen"]
    theta = _factors(factors, m1, m2)
    check_compressed(seen["indptr"], seen["columns"], m1, m2)
    loss = rebuild(tree["loss"], "loss")
    if not isinstance(loss, Loss):
        raise ValueError("there is no loss")
    offsets = tree["row_offsets"], tree["column_offsets"]
    for offset, size in zip(offsets, (m1, m2), strict=True):
        if offset.shape != (size,) or offset.dtype != theta.dtype:
            raise ValueError("the offsets do not fit the matrix")
    objective = LearnedEntries(
        theta,
        loss,
        row_offsets=offsets[0],
        column_offsets=offsets[1],
        biases=None if tree["biases"] is None else _biases(tree["biases"], m1, m2),
        seen=(seen["indptr"].astype(np.int64), seen["columns"].astype(np.uint32)),
        n_observations=int(tree["n_observations"]),
    )
    ball = TraceNormBall(float(tree["radius"]))
    t, gap = int(tree["n_rounds"]), float(tree["gap"])
    model._learner = Player(objective, theta, t, gap, ball)
    model._race = model._weights = None
    model._history = columns_from_tree(tree["history"])
    model._low, model._high = float(tree["low"]), float(tree["high"])
    model.n_features_in_ = 2
    for name, size in (("row_ids", m1), ("col_ids", m2)):
        if name in tree:
            ids = labels_from_tree(tree[name])
            if ids.size != size:
                raise ValueError(f"{name} has {ids.size} values for {size}")
            setattr(model, f"{name}_", ids)


def _factors(tree: State, m1: int, m2: int) -> LowRank:
    left, weights, right = tree["left"], tree["weights"], tree["right"]
    k = weights.size
    if left.shape != (m1, k) or right.shape != (m2, k) or weights.shape != (k,):
        raise ValueError("the factors do not fit the matrix")
    if left.dtype not in (np.float32, np.float64) or right.dtype != left.dtype:
        raise ValueError(f"the factors are {left.dtype}")
    state = {"left": left, "weights": weights.astype(float), "right": right, "scale": 1.0}
    limits = {"truncated": 0.0, "max_atoms": max(2, k), "max_rank": None}
    # Room at the end of each row, if there was some: compiled loops over rows that follow each
    # other closely round differently.
    return LowRank.from_state({**state, **limits, "capacity": k + bool(tree["padded"])})


def _biases(tree: State, m1: int, m2: int) -> RunningBiases:
    biases = RunningBiases(tree["shrinkage"], joint=bool(tree["joint"]))
    biases.total, biases.weight = float(tree["mean"]), 1.0
    biases.rows, biases.columns = tree["rows"].astype(float), tree["columns"].astype(float)
    if biases.rows.ndim != 1 or biases.columns.ndim != 1:
        raise ValueError("the biases do not fit the matrix")
    return biases
