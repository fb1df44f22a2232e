"""Regressors and classifiers as trees of arrays and values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from .._typing import Array, State
from .labels import labels_from_tree, labels_to_tree
from .predicting import Columns, LearnedRows, Player, Team

__all__ = ["columns_from_tree", "linear_from_tree", "linear_to_tree", "with_coefficients"]

#: Attributes that scikit-learn's estimators share.
NAMED = ("classes_", "feature_names_in_")


def linear_to_tree(model: Any) -> State:
    """Return everything that predicts, and what happened."""
    path = dict(model.path_)
    path["coef"] = csr_to_tree(path["coef"])
    return {
        "coef": coef_to_tree(model._thetas),
        "intercept": model._intercepts,
        **names_to_tree(model),
        "n_rounds": model.n_rounds_,
        "n_observations": model._team.learners[0].objective.n_observations,
        "gap": float(model.gap_),
        "history": model.history_,
        "path": path,
    }


def linear_from_tree(model: Any, tree: State) -> None:
    """Put what was saved into a new estimator."""
    coef, intercept = coef_from_tree(tree["coef"]), tree["intercept"]
    names_from_tree(model, tree)
    lanes = 1
    if hasattr(model, "classes_"):
        lanes = 1 if model.classes_.size == 2 else model.classes_.size
    if coef.shape != (lanes, model.n_features_in_) or intercept.shape != (lanes,):
        raise ValueError(f"the coefficients have shape {coef.shape}")
    if coef.dtype not in (np.float32, np.float64) or intercept.dtype != coef.dtype:
        raise ValueError(f"the coefficients are {coef.dtype}")
    t, n, gap = int(tree["n_rounds"]), int(tree["n_observations"]), float(tree["gap"])
    pairs = zip(coef, intercept, strict=True)
    model._team = Team([Player(LearnedRows(float(b), n), row, t, gap) for row, b in pairs])
    model._precision = coef.dtype.type
    model._history = columns_from_tree(tree["history"])
    path = {**tree["path"], "coef": csr_from_tree(tree["path"]["coef"])}
    model._path = Columns(path)


def with_coefficients(model: Any, coef: Array, intercept: Array) -> Any:
    """Return a copy of a fitted model that predicts with other coefficients, and only predicts."""
    tree = {**linear_to_tree(model), "coef": coef_to_tree(coef), "intercept": intercept}
    copy = clone(model)
    linear_from_tree(copy, tree)
    copy._only_predicts = True
    return copy


def names_to_tree(model: Any) -> State:
    """Return number and names of features, and the classes."""
    held = {name: getattr(model, name) for name in NAMED if hasattr(model, name)}
    names = {name.rstrip("_"): labels_to_tree(value, name) for name, value in held.items()}
    return {"n_features_in": int(model.n_features_in_), **names}


def names_from_tree(model: Any, tree: State) -> None:
    """Set them."""
    model.n_features_in_ = int(tree["n_features_in"])
    for name in NAMED:
        if name.rstrip("_") in tree:
            setattr(model, name, labels_from_tree(tree[name.rstrip("_")]))
    if len(getattr(model, "feature_names_in_", range(model.n_features_in_))) != (
        model.n_features_in_
    ):
        raise ValueError("there are not as many feature names as features")


def columns_from_tree(tree: State) -> Columns:
    """Return a history that only tells."""
    lengths = {column.shape for column in tree.values()}
    if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
        raise ValueError("the columns of the history differ in length")
    seconds = tree["seconds"]
    return Columns(dict(tree), float(seconds[-1]) if seconds.size else 0.0)


def coef_to_tree(coef: Array) -> State:
    """Return coefficients dense, or sparse if that is smaller."""
    bits = coef.view(f"u{coef.dtype.itemsize}")  # -0.0 is kept, too
    rows, columns = np.nonzero(bits)
    if coef.shape[1] >= 2**32 or rows.size * (coef.dtype.itemsize + 4) >= coef.nbytes:
        return {"dense": coef}
    counts = np.bincount(rows, minlength=coef.shape[0])
    return {
        "shape": list(coef.shape),
        "indptr": np.concatenate(([0], np.cumsum(counts))).astype(np.uint64),
        "indices": columns.astype(np.uint32),
        "data": coef[rows, columns],
    }


def coef_from_tree(tree: State) -> Array:
    """Return the coefficients as a dense array."""
    if "dense" in tree:
        if tree["dense"].ndim != 2:
            raise ValueError("coefficients must be a matrix")
        return np.ascontiguousarray(tree["dense"])
    rows, columns = (int(n) for n in tree["shape"])
    check_compressed(tree["indptr"], tree["indices"], rows, columns)
    if tree["data"].shape != tree["indices"].shape:
        raise ValueError("there are not as many coefficients as places")
    coef = np.zeros((rows, columns), tree["data"].dtype)
    at = np.repeat(np.arange(rows), np.diff(tree["indptr"].astype(np.int64)))
    coef[at, tree["indices"]] = tree["data"]
    return coef


def csr_to_tree(matrix: Any) -> State:
    """Return a sparse matrix as arrays."""
    csr = sparse.csr_array(matrix)
    return {
        "shape": list(csr.shape),
        "indptr": csr.indptr,
        "indices": csr.indices,
        "data": csr.data,
    }


def csr_from_tree(tree: State) -> Any:
    """Return the sparse matrix; scipy checks that it is one."""
    rows, columns = (int(n) for n in tree["shape"])
    check_compressed(tree["indptr"], tree["indices"], rows, columns)
    parts = (tree["data"], tree["indices"], tree["indptr"])
    return sparse.csr_array(parts, shape=(rows, columns))


def check_compressed(indptr: Array, indices: Array, rows: int, columns: int) -> None:
    """Refuse compressed rows that point outside the matrix."""
    whole = indptr.ndim == indices.ndim == 1 and indptr.shape == (rows + 1,)
    whole = whole and indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
    if not whole or indptr[0] != 0 or indptr[-1] != indices.size:
        raise ValueError("the rows do not fill their arrays")
    if (np.diff(indptr.astype(np.int64)) < 0).any():
        raise ValueError("the rows are out of order")
    if indices.size and not 0 <= indices.min() <= indices.max() < columns:
        raise ValueError("a column lies outside the matrix")
