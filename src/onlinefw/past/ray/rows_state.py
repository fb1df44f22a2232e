"""The state of all rows from the states of the shards, and back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..._typing import State
from ..host.dense_rows import DenseRows
from ..host.sparse_rows import SparseRows
from ..stored_rows import feature_shape

__all__ = ["joined_state", "parts_of_state"]


def joined_state(states: list[State], in_order: Callable[[list[Any]], Any]) -> State:
    """Return the state of all rows, in the order in which they came."""
    held = [state for state in states if len(state["w"])]
    if not held:
        return states[0]
    matrices = [_matrix(state["rows"]) for state in held]
    each = [_models(state, X, held) for state, X in zip(held, matrices, strict=True)]
    models = [
        {
            "z": in_order([model["z"] for model in same]),
            "y": in_order([model["y"] for model in same]),
            "pending": _joined_move([model["pending"] for model in same]),
        }
        for same in zip(*each, strict=True)
    ]
    w = in_order([state["w"] for state in held])
    return {"rows": _stored(in_order(matrices)), "w": w, "models": models}


def _models(state: State, X: Any, held: list[State]) -> list[State]:
    """Return the models of a shard, after carrying out moves that do not wait in all shards.

    In a shard that was rebuilt no move waits: its predictions were computed from theta.
    """
    models = []
    for m, model in enumerate(state["models"]):
        move, z = model["pending"], model["z"]
        if move is not None and any(other["models"][m]["pending"] is None for other in held):
            some = slice(move["count"])
            moved = (1.0 - move["step"]) * z[some] + move["step"] * (X[some] @ move["a"])
            model = {**model, "z": np.concatenate((moved, z[move["count"] :])), "pending": None}
        models.append(model)
    return models


def _joined_move(moves: list[State | None]) -> State | None:
    """Return the move that waits in all shards; its rows are the first of all, too."""
    waiting = [move for move in moves if move is not None]
    return {**waiting[0], "count": sum(move["count"] for move in waiting)} if waiting else None


def parts_of_state(state: State, n: int) -> list[State]:
    """Return a state for each shard: rows that came one after the other."""
    if state["rows"] is None:
        return [state] * n
    X, cuts = _matrix(state["rows"]), np.linspace(0, len(state["w"]), n + 1).astype(int)
    parts = []
    for start, stop in pairwise(cuts):
        some = slice(start, stop)
        models = [
            {
                "z": model["z"][some],
                "y": model["y"][some],
                "pending": _part_of_move(model["pending"], start, stop),
            }
            for model in state["models"]
        ]
        parts.append({"rows": _stored(X[some]), "w": state["w"][some], "models": models})
    return parts


def _part_of_move(move: State | None, start: int, stop: int) -> State | None:
    if move is None:
        return None
    return {**move, "count": int(np.clip(move["count"], start, stop) - start)}


def _matrix(rows: State) -> Any:
    """Return rows as one array or CSR matrix."""
    kind = DenseRows if rows["kind"] == "dense" else SparseRows
    return kind.from_state(rows, feature_shape(rows)).matrix()


def _stored(X: Any) -> State:
    kind = DenseRows if isinstance(X, np.ndarray) else SparseRows
    return kind(X.shape[1:]).extended(X).merged().state_dict()
