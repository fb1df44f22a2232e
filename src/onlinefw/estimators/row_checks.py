"""Rows, targets and weights that users pass in: checked once, and quickly where they are plain."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.utils.validation import _check_sample_weight, validate_data

from .._arrays import received_here
from .._typing import Array
from .._validation import (
    TOO_LARGE,
    TOO_LARGE_FOR_FLOAT32,
    check_finite,
    check_sparse,
    check_unmasked,
)
from ..readers.id_tables import as_objects
from .pairs import column_of

__all__ = ["checked_rows", "checked_weights", "plain_rows"]

#: Types that are kept; all other numbers become double precision.
KEPT = (np.float64, np.float32, np.uint8)
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


def plain_rows(X: Any, n_features: int) -> bool:
    """Whether X needs no conversion: a C-ordered array of numbers of the right width, all moderate.

    Compressed rows are as plain, if their columns are in order and none comes twice. Everything
    else goes through the full check, which says what is wrong.
    """
    stored = type(X) in (csr_array, csr_matrix)
    if not stored and type(X) is not np.ndarray:
        return False
    if X.ndim != 2 or X.shape[1] != n_features or not X.shape[0]:
        return False
    if X.dtype is FLOAT64 or X.dtype == FLOAT64:
        limit = TOO_LARGE
    elif X.dtype == FLOAT32:
        limit = TOO_LARGE_FOR_FLOAT32
    else:
        return False
    if stored:
        return _in_order(X) and bool(np.abs(X.data).max(initial=0.0) <= limit)
    return X.flags.c_contiguous and bool(np.abs(X).max() <= limit)  # NaN compares as False


def _in_order(X: Any) -> bool:
    """Whether compressed rows are valid, each with increasing columns."""
    try:
        check_sparse("X", X)
    except ValueError:
        return False
    if X.data.shape != X.indices.shape or X.indices.size != X.indptr[-1]:
        return False
    steps_back = np.flatnonzero(X.indices[1:] <= X.indices[:-1]) + 1
    return bool(np.isin(steps_back, X.indptr).all())


def checked_rows(model: Any, X: Any, y: Any = None, *, first: bool = False) -> Any:
    """Return rows (and targets) as scikit-learn wants them checked.

    ``n_features_in_`` and ``feature_names_in_`` of the model are compared, or set by the first.
    """
    X = _received("X", X, model.device)
    if issparse(X):
        check_sparse("X", X)  # before scikit-learn converts it
    options: dict[str, Any] = {
        "reset": first,
        "accept_sparse": "csr",
        "dtype": KEPT,
        "ensure_all_finite": False,  # check_finite says where
    }
    if y is None:
        X = validate_data(model, X, **options)
    else:
        y = _received("y", y, model.device)
        if not issparse(y):
            check_finite("y", np.asarray(y))
        X, y = validate_data(model, X, y, order="C", y_numeric=False, **options)
    check_finite("X", X, getattr(model, "feature_names_in_", None))
    return X if y is None else (X, y)


def _received(name: str, values: Any, device: str) -> Any:
    check_unmasked(name, values)  # before scikit-learn converts it
    return received_here(name, values, device)


def checked_ids(ids: Any, n: int) -> Array | None:
    """Return the ids of n rows as objects, all text or all whole numbers; None of None."""
    if ids is None:
        return None
    check_unmasked("ids", ids)
    values = ids if isinstance(ids, np.ndarray) else as_objects(ids)
    if values.shape != (n,):
        raise ValueError(f"ids must have one id for each of the {n} rows, got shape {values.shape}")
    column = column_of("row", values)
    return as_objects(column.ids.tolist())[column.codes]


def check_no_ids(ids: Any) -> None:
    """Refuse ids beside files."""
    if ids is not None:
        raise ValueError("ids come with arrays, not with files: X, y, weight = batch.read()")


def checked_weights(model: Any, sample_weight: Any, X: Any) -> Array:
    """Return weights, of which at least one is positive."""
    sample_weight = _received("sample_weight", sample_weight, model.device)
    w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not w.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count")
    return w
