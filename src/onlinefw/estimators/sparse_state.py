"""Sparse matrices and names as plain arrays, checked as they are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._state import check_state
from .._typing import Array, State
from .._validation import check_compressed

__all__ = ["csr_from_state", "csr_state", "names_from_state", "names_state"]

#: Arrays of these kinds are kept as they are: numbers, text, bytes, times.
PLAIN = "biufSUmM"


def csr_state(matrix: Any) -> State:
    """Return a sparse matrix as arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.estimators.sparse_state import csr_from_state, csr_state
    >>> csr_from_state(csr_state(np.array([[0.0, 2.0]]))).toarray()
    array([[0., 2.]])
    """
    csr = sparse.csr_array(matrix)
    return {
        "shape": list(csr.shape),
        "indptr": csr.indptr,
        "indices": csr.indices,
        "data": csr.data,
    }


def csr_from_state(state: State) -> Any:
    """Return the sparse matrix that was described."""
    check_state(state, "shape", "indptr", "indices", "data")
    rows, columns = (int(n) for n in state["shape"])
    check_compressed(state["indptr"], state["indices"], rows, columns)
    if np.shape(state["data"]) != np.shape(state["indices"]):
        raise ValueError("values and column indices differ in number")
    parts = (state["data"], state["indices"], state["indptr"])
    return sparse.csr_array(parts, shape=(rows, columns))


def names_state(name: str, values: Any) -> Any:
    """Return labels or names: numbers and text as an array, text objects as a list."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind in PLAIN:
        return array
    texts = array.tolist()
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(
                f"{name} must be numbers or text to be saved, got {text!r}; convert them first"
            )
    return texts


def names_from_state(name: str, state: Any) -> Array:
    """Return the labels or names that were described."""
    if isinstance(state, list) and all(isinstance(text, str) for text in state):
        return np.array(state, dtype=object)
    if isinstance(state, np.ndarray) and state.ndim == 1 and state.dtype.kind in PLAIN:
        return state
    raise ValueError(f"{name} must be a one-dimensional array of numbers or text")
