"""Checks of what users pass in. Each failure names the value, the place and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ._typing import Array, Shape

__all__ = ["check_rows", "check_targets", "check_weights"]


def check_rows(X: Any, shape: Shape | None) -> Any:
    """Return X as a finite (B, n) float ndarray or canonical CSR array.

    ``shape`` is the shape of one row's features, or None if it is not known yet.
    """
    if X is None:
        raise ValueError("X is missing: call observe(X, y) with the new rows and their targets")
    if sparse.issparse(X):
        X = _check_sparse(X)
    else:
        try:
            X = np.asarray(X, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must be numeric: {error}") from None
    if X.ndim < 2:
        raise ValueError(
            f"X must have one row per observation, got shape {X.shape}; "
            "for a single observation pass X.reshape(1, -1)"
        )
    if X.shape[0] == 0:
        raise ValueError(f"the batch is empty (X has shape {X.shape}); pass at least one row")
    if shape is not None and X.shape[1:] not in (tuple(shape), (int(np.prod(shape)),)):
        wanted = " or ".join(
            f"(B, {', '.join(map(str, s))})" for s in {tuple(shape), (int(np.prod(shape)),)}
        )
        raise ValueError(f"X must have shape {wanted}, got {X.shape}")
    if shape is None and X.ndim > 2:
        raise ValueError(
            f"X has matrix-shaped rows {X.shape[1:]}; tell the objective with "
            f"shape={tuple(X.shape[1:])}"
        )
    values = X.data if sparse.issparse(X) else X
    if not np.isfinite(values).all():
        place = _first_bad(X)
        raise ValueError(
            f"X has {place[1]} in row {place[0]}; remove that row or fill in the value"
        )
    return X if sparse.issparse(X) else X.reshape(X.shape[0], -1)


def _check_sparse(X: Any) -> Any:
    if X.ndim != 2:
        raise ValueError(f"a sparse X must be 2-dimensional, got shape {X.shape}")
    X = sparse.csr_array(X)
    if X.dtype.kind != "f":
        X = X.astype(float)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _first_bad(X: Any) -> tuple[int, float]:
    if sparse.issparse(X):
        coo = X.tocoo()
        k = int(np.flatnonzero(~np.isfinite(coo.data))[0])
        return int(coo.coords[0][k]), float(coo.data[k])
    row, *_ = (int(i) for i in np.argwhere(~np.isfinite(X))[0])
    bad = X[row].reshape(-1)
    return row, float(bad[~np.isfinite(bad)][0])


def _check_column(name: str, values: Any, n_rows: int) -> Array:
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric: {error}") from None
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {values.shape}; use ravel()")
    if values.size != n_rows:
        raise ValueError(f"X has {n_rows} rows but {name} has {values.size} values")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{name} has {values[row]} in row {row}; remove that row")
    return values


def check_targets(y: Any, n_rows: int, loss: Any = None) -> Array:
    """Return y as a finite 1-d float array of the right length, allowed by the loss."""
    if y is None:
        raise ValueError("y is missing: call observe(X, y) with the new rows and their targets")
    y = _check_column("y", y, n_rows)
    if hasattr(loss, "check_targets"):
        loss.check_targets(y)
    return y


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Return the weights as a non-negative 1-d float array with a positive sum."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = _check_column("sample_weight", sample_weight, n_rows)
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"sample_weight must not be negative, got {weights[row]:g} in row {row}")
    if weights.sum() == 0.0:
        raise ValueError("sample_weight is zero for every row of the batch; leave such a batch out")
    return weights
