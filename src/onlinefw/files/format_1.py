"""Model files of format 1, converted to the current format."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import State
from .._validation import MOST, check_compressed
from ..estimators.history import COLUMNS
from .labels import labels_from_tree

__all__ = ["from_format_1"]


def from_format_1(tree: State) -> State:
    """Return the content of a model file of format 1 in the current format."""
    parameters = _parameters(tree["parameters"])
    model: State = {"estimator": tree["estimator"], "parameters": parameters}
    for name in ("notes", "row_ids", "col_ids"):
        if name in tree:
            model[name] = tree[name]
    if tree["estimator"] == "RadiusSearch":
        inner = parameters["estimator"]
        parameters["estimator"] = {**inner, "parameters": _parameters(inner["parameters"])}
        model["state"] = _search(tree)
    elif tree["estimator"] == "FrankWolfeMatrixCompletion":
        model["state"] = {"estimator": tree["estimator"], "run": _completion(tree)}
    else:
        model["state"] = {"estimator": tree["estimator"], **_names(tree), "run": _linear(tree)}
    return model


def _parameters(tree: State) -> State:
    # A set given as an object has its own radius.
    own = isinstance(tree.get("constraint"), dict)
    return {**tree, "radius": "auto"} if own else dict(tree)


def _counters(tree: State, radius: float) -> State:
    columns = dict(tree["history"])
    n = len(columns["t"])
    missing: dict[str, Any] = {
        "gap_upper": np.full(n, np.nan),
        "reads": np.zeros(n, int),
        "half_life": np.full(n, np.inf),  # nothing was forgotten then
    }
    columns = {name: columns.get(name, missing.get(name)) for name in COLUMNS}
    elapsed = float(columns["seconds"][-1]) if n else 0.0
    return {
        "radii": np.array([radius]),
        "n_rounds": int(tree["n_rounds"]),
        "n_refined": 0,
        "n_observations": int(tree["n_observations"]),
        "history": {"size": 10_000, "elapsed": elapsed, "columns": columns},
        "gap": float(tree["gap"]),
    }


def _names(tree: State) -> State:
    names: State = {"n_features_in": tree["n_features_in"]}
    for name in ("feature_names_in", "classes"):
        if name in tree:
            values = labels_from_tree(tree[name])
            names[name] = values.tolist() if values.dtype == object else values
    return names


def _linear(tree: State) -> State:
    coef, parameters, path = _dense(tree["coef"]), tree["parameters"], dict(tree["path"])
    constraint = parameters["constraint"]
    radius = constraint.get("radius", "nan") if isinstance(constraint, dict) else None
    size = len(path["t"])
    return {
        **_counters(tree, float(parameters["radius"] if radius is None else radius)),
        "precision": coef.dtype.name,
        "scaling": None,
        "kept": [parameters["past"], parameters["max_past"]],
        "path": {**path, "size": max(size, 2) if size else 0, "spacing": 1.0},
        "coef": coef,
        "intercept": tree["intercept"],
    }


def _dense(tree: State) -> Any:
    if "dense" in tree:
        return tree["dense"]
    rows, columns = (int(n) for n in tree["shape"])
    if rows * columns > MOST:  # nothing but this number says how many there are
        raise ValueError(f"a file of format 1 holds at most {MOST:,} coefficients")
    check_compressed(tree["indptr"], tree["indices"], rows, columns)
    coef = np.zeros((rows, columns), tree["data"].dtype)
    at = np.repeat(np.arange(rows), np.diff(tree["indptr"].astype(np.int64)))
    coef[at, tree["indices"]] = tree["data"]
    return coef


def _completion(tree: State) -> State:
    offsets = tree["row_offsets"], tree["column_offsets"]
    has_offsets = any(side.any() for side in offsets)
    matrix = {
        **tree["factors"],
        **tree["seen"],
        "row_offsets": offsets[0] if has_offsets else None,
        "column_offsets": offsets[1] if has_offsets else None,
        "biases": tree["biases"],
    }
    values = {"low": tree["low"], "high": tree["high"], "many": False, "weights_due": None}
    return {**_counters(tree, float(tree["radius"])), **values, "matrix": matrix}


def _search(tree: State) -> State:
    n, scores = len(tree["radii"]), tree["scores"]
    best = from_format_1(tree["best"])["state"]
    race = {"n": n, "rows": None, "rounds": None, "least_rounds": 1, "late": False}
    race |= {"middle": n // 2, "t": int(tree["n_rounds"]), "n_seen": 0, **scores}
    return {
        "estimator": "RadiusSearch",
        "radii": tree["radii"],
        "race": race,
        "best": int(tree["best_index"]),
        "models": [best],
    }
