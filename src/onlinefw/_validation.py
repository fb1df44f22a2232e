"""Checks of what users pass in. Each message names the value, where it is, and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ._devices import namespace, to_host
from ._typing import Array, Shape

__all__ = [
    "check_alone",
    "check_compressed",
    "check_finite",
    "check_growth",
    "check_indices",
    "check_magnitude",
    "check_pairs",
    "check_part",
    "check_precision",
    "check_row_magnitude",
    "check_rows",
    "check_sparse",
    "check_targets",
    "check_unmasked",
    "check_weights",
    "check_whole",
    "check_width",
    "moderate",
]

#: Larger values overflow when they are squared.
TOO_LARGE = 1e150
#: The same in single precision.
TOO_LARGE_FOR_FLOAT32 = 1e15
#: Rows of these types of numbers are not converted.
KEPT = (np.dtype(np.float32), np.dtype(np.uint8))
#: Stores keep indices in 32 bits.
LARGEST_INDEX = 2**32
#: Indices are searched for the largest so many at a time.
PIECE = 2**16
#: A matrix that grows does so up to this many rows and columns, unless more are asked for: memory
#: follows the largest index, and one wrong index should not take all of it.
MOST = 10_000_000


def check_alone(y: Any, sample_weight: Any, instead: str = "") -> None:
    """Refuse values and weights beside files, which hold their own; say what to do instead."""
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None:
            how = instead if name == "sample_weight" else ""
            raise ValueError(f"files hold the values themselves: leave {name} out{how}")


def check_part(name: str, part: Any, wanted: type, example: str) -> None:
    """Refuse a class where an object was wanted, or an object of another kind."""
    if isinstance(part, type):
        raise ValueError(
            f"{name} is the class {part.__name__}: pass an object, {part.__name__}(...)"
        )
    if not isinstance(part, wanted):
        raise ValueError(f"{name} must be a {wanted.__name__} such as {example}, got {part!r}")


def check_whole(name: str, value: Any, least: int = 1, otherwise: str = "") -> int:
    """Return a whole number; ``otherwise`` names what else would have been allowed."""
    is_number = isinstance(value, Real)
    if not is_number or value // 1 != value or value < least:
        wanted = f"a whole number of at least {least}{otherwise}"
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    return int(value)


def check_rows(X: Any, shape: Shape | None) -> Any:
    """Return X as a finite (B, n) ndarray or canonical CSR array.

    Single precision stays single, dense bytes stay bytes, everything else becomes double.
    ``shape`` is the shape of one row's features, or None if it is not known yet.
    """
    if X is None:
        raise ValueError("X is missing: call observe(X, y) with the new rows and their targets")
    X = _check_sparse(X) if sparse.issparse(X) else _numeric("X", X, KEPT)
    if X.ndim < 2:
        raise ValueError(
            f"X must have one row per observation, got shape {X.shape}; "
            "for a single observation pass X.reshape(1, -1)"
        )
    if X.shape[0] == 0:
        raise ValueError(f"the batch is empty (X has shape {X.shape}); pass at least one row")
    if 0 in X.shape[1:]:
        raise ValueError(f"X has no features (shape {X.shape}); pass at least one column")
    if shape is None and X.ndim > 2:
        raise ValueError(
            f"X has matrix-shaped rows {X.shape[1:]}; tell the objective with "
            f"shape={tuple(X.shape[1:])}"
        )
    if shape is not None and X.shape[1:] not in (tuple(shape), (prod(shape),)):
        raise ValueError(
            f"X has rows of shape {X.shape[1:]}, but theta has shape {tuple(shape)} (as declared "
            "or as in the first batch); every batch must have the same features"
        )
    values = X.data if sparse.issparse(X) else X
    if not moderate(values):
        row, column, value = _first_bad(X if namespace(X) is np else to_host(X))
        raise ValueError(f"X has {value:g} in row {row}, column {column}; {_remedy(value)}")
    return X if sparse.issparse(X) else X.reshape(X.shape[0], -1)


def check_unmasked(name: str, values: Any) -> None:
    """Refuse a masked array: numpy forgets the mask, and masked values would count.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw._validation import check_unmasked
    >>> check_unmasked("y", np.ma.masked_equal([1.0, -99.0], -99.0))
    Traceback (most recent call last):
    ...
    ValueError: y is a masked array: remove the masked values first, or fill them (y.filled(...))
    """
    if type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} is a masked array: remove the masked values first, or fill them "
            f"({name}.filled(...))"
        )


def _numeric(name: str, values: Any, kept: tuple[np.dtype, ...] = ()) -> Array:
    check_unmasked(name, values)
    array = np.asarray(values) if namespace(values) is np else values
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got complex numbers; take .real if that is meant")
    if array.dtype.kind in "mM":
        raise ValueError(f"{name} must be numeric, got times ({array.dtype}); make them numbers")
    if array.dtype in kept:
        return array
    try:
        if array.dtype.kind in "OUS":
            _check_underscores(array)
        return array.astype(float, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be numeric: {error}; map text to numbers and fill missing values first"
        ) from None


def _check_underscores(array: Array) -> None:
    """Refuse text such as 1_0, which Python takes for 10."""
    for value in array.ravel().tolist():
        if isinstance(value, str | bytes) and "_" in str(value):
            raise ValueError(f"could not convert {value!r} to a number")


def moderate(values: Array) -> bool:
    """Whether all values are finite and small enough to be squared (NaN compares as False)."""
    if values.size == 0:
        return True
    return max(float(values.max()), -float(values.min())) <= _limit(values)


def _limit(values: Any) -> float:
    return TOO_LARGE_FOR_FLOAT32 if values.dtype == np.float32 else TOO_LARGE


def _remedy(value: float) -> str:
    if np.isfinite(value):
        return "its square overflows: rescale the data"
    return "remove that row or fill in the value"


def check_sparse(name: str, X: Any) -> None:
    """Refuse a scipy matrix that points outside itself; scipy builds and converts those unasked.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from onlinefw._validation import check_sparse
    >>> X = sp.csr_array([[0.0, 1.0]])
    >>> X.indices[0] = 7
    >>> check_sparse("X", X)
    Traceback (most recent call last):
    ...
    ValueError: X is not a valid csr matrix: an index is outside 0 to 1; build it anew
    """
    try:
        if X.format == "coo":
            for one, n in zip(X.coords, X.shape, strict=True):
                _check_inside(one, X.data.size, n)
        elif X.format in ("csr", "csc", "bsr"):
            rows, columns = reversed(X.shape) if X.format == "csc" else X.shape
            if X.format == "bsr":
                rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
            used = X.indptr[-1] if X.indptr.size else 0  # room behind it is allowed
            check_compressed(X.indptr, X.indices[:used], rows, columns)
            if len(X.data) < used:
                raise ValueError("it has fewer values than indices")
        # Lists, dicts and diagonals are converted with checks.
    except ValueError as error:
        raise ValueError(
            f"{name} is not a valid {X.format} matrix: {error}; build it anew"
        ) from None


def check_compressed(indptr: Array, indices: Array, rows: int, columns: int) -> None:
    """Refuse compressed rows that point outside their matrix."""
    if indptr.dtype.kind not in "iu" or indptr.shape != (rows + 1,):
        raise ValueError(f"its row pointers are not {rows + 1} whole numbers")
    if indptr[0] != 0 or indptr[-1] != indices.size:
        raise ValueError("its row pointers do not fit its values")
    if np.any(indptr[1:] < indptr[:-1]):
        raise ValueError("its row pointers decrease")
    _check_inside(indices, indices.size, columns)


def _check_inside(indices: Array, size: int, n: int) -> None:
    if indices.dtype.kind not in "iu" or indices.shape != (size,):
        raise ValueError(f"its indices are not {size} whole numbers")
    if size and not 0 <= indices.min() <= indices.max() < n:
        raise ValueError(f"an index is outside 0 to {n - 1}")


def _check_sparse(X: Any) -> Any:
    check_sparse("X", X)
    if X.ndim != 2:
        raise ValueError(f"a sparse X must be 2-dimensional, got shape {X.shape}")
    if X.dtype.kind == "c":
        raise ValueError("X must be real, got complex numbers; take .real if that is meant")
    X = sparse.csr_array(X)
    if X.dtype != np.float32:
        X = X.astype(float, copy=False)
    # scipy remembers whether indices are sorted, and is not told when they are changed.
    steps_back = np.flatnonzero(X.indices[1:] <= X.indices[:-1]) + 1
    if not np.isin(steps_back, X.indptr).all():
        X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
        X.sum_duplicates()
    return X


def _first_bad(X: Any) -> tuple[int, int, float]:
    coo = sparse.coo_array(X if X.ndim == 2 else X.reshape(X.shape[0], -1))
    k = int(np.flatnonzero(~(np.abs(coo.data) <= _limit(coo)))[0])
    return int(coo.coords[0][k]), int(coo.coords[1][k]), float(coo.data[k])


def check_finite(name: str, values: Any, column_names: Any = None) -> None:
    """Refuse rows (dense, or CSR) or a column with NaN or infinity, and say where the first is."""
    numbers = values.data if sparse.issparse(values) else values
    if numbers.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(numbers.sum()):  # one pass; only broken data need the rest
            return
    bad = ~np.isfinite(numbers)
    if not bad.any():
        return
    first = int(np.argmax(bad))
    place: tuple[int, int | None] = (first, None)
    if sparse.issparse(values):
        row = int(np.searchsorted(values.indptr, first, side="right")) - 1
        place = (row, int(values.indices[first]))
    elif values.ndim == 2:
        place = divmod(first, values.shape[1])
    where = f"row {place[0]}"
    if place[1] is not None:
        where += f", column {place[1]}"
        where += "" if column_names is None else f" ({str(column_names[place[1]])!r})"
    value = float(numbers.flat[first])
    shown = "NaN" if np.isnan(value) else f"{value:g}"
    raise ValueError(f"{name} has {shown} in {where}; {_remedy(value)}")


def _check_column(name: str, values: Any, n_rows: int) -> Array:
    values = _numeric(name, values)
    if values.ndim != 1:
        hint = "; use ravel()" if values.ndim > 1 and values.size == n_rows else ""
        raise ValueError(f"{name} must have one value per row, got shape {values.shape}{hint}")
    if values.size != n_rows:
        raise ValueError(
            f"X has {n_rows} rows but {name} has {values.size} values; each row needs its own"
        )
    if not moderate(values):
        row = int(np.flatnonzero(~(np.abs(values) <= TOO_LARGE))[0])
        raise ValueError(f"{name} has {values[row]:g} in row {row}; {_remedy(values[row])}")
    return values


def check_growth(shape: Shape, most: tuple[int, int], named_by: str = "indices") -> None:
    """Refuse to let a matrix have more rows or columns than it may."""
    for n, limit, what in zip(shape, most, ("row", "column"), strict=True):
        if n > limit and named_by == "ids":
            raise ValueError(
                f"there would be {n:,} {what} ids, but a matrix grows to {limit:,} {what}s at "
                f"most: allow more with max_{what}s={n}"
            )
        if n > limit:
            raise ValueError(
                f"X has {what} {n - 1}, but a matrix grows to {limit:,} {what}s at most: number "
                f"the {what}s from 0 (np.unique(..., return_inverse=True) does), or allow more "
                f"with max_{what}s={n}"
            )


def check_width(shape: Shape, most: int) -> None:
    """Refuse rows with more features than a model may have."""
    if len(shape) == 2 and shape[1] > most:
        raise ValueError(
            f"X has {shape[1]:,} features, and theta is as long: hash them into fewer "
            f"(sklearn.feature_extraction.FeatureHasher), or allow more than {most:,} with "
            f"max_features={shape[1]}"
        )


def check_pairs(X: Any) -> tuple[Array, tuple[int, int]]:
    """Return (row, column) pairs as whole numbers, and the shape of the matrix they need.

    Whole numbers are returned as they are, not copied.
    """
    if X is None:
        raise ValueError("X is missing: call observe(X, y) with (row, column) pairs")
    check_unmasked("X", X)
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have a row and a column index per observation, got {X.shape}")
    if X.shape[0] == 0:
        raise ValueError(f"the batch is empty (X has shape {X.shape}); pass at least one row")
    if X.dtype.kind not in "iuf":
        raise ValueError(f"X must hold whole-number indices (row, column), got {X.dtype} values")
    if X.dtype.kind == "f" and not (X == np.trunc(X)).all():
        k = int(np.argmin((X == np.trunc(X)).all(axis=1)))
        raise ValueError(
            f"X must hold whole-number indices (row, column), got {X[k].tolist()} in row {k}"
        )
    low, high = _extremes(X)
    if low < 0:
        raise ValueError(f"X has the negative index {low:.0f}; indices count from 0")
    if max(high) >= LARGEST_INDEX:
        raise ValueError(
            f"X has the index {max(high):.0f}, but indices must be below 2**32; number the rows "
            "and columns from 0 (np.unique(..., return_inverse=True) does)"
        )
    X = X.astype(np.int64) if X.dtype.kind == "f" else X
    return X, (int(high[0]) + 1, int(high[1]) + 1)


def _extremes(X: Array) -> tuple[Any, list[Any]]:
    """Return the least number of two columns, and the largest of each: piece by piece, in cache."""
    least, largest = [], []
    for start in range(0, len(X), PIECE):
        sides = np.ascontiguousarray(X[start : start + PIECE].T)  # faster to search
        least.append(sides.min())
        largest.append(sides.max(axis=1))
    return min(least), list(np.max(largest, axis=0))


def check_indices(X: Any, shape: Shape, growing: bool) -> tuple[Array, Array]:
    """Return row and column indices that lie in the matrix (or beyond it, if it may grow)."""
    X, needed = check_pairs(X)
    for axis, name in enumerate(("row", "column")):
        if not growing and needed[axis] > shape[axis]:
            raise ValueError(
                f"X has {name} {needed[axis] - 1}, but the matrix has shape {tuple(shape)}; use "
                "growing=True to add rows and columns as they come"
            )
    rows, cols = (np.ascontiguousarray(side, np.int64) for side in X.T)
    return rows, cols


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


def check_row_magnitude(X: Any, y: Array, weights: Array) -> None:
    """Refuse rows whose weighted squares would overflow."""
    heaviest = float(weights.max())
    if heaviest <= 1.0:
        return
    values = X.data if sparse.issparse(X) else X
    largest = max(float(np.abs(values).max()) if values.size else 0.0, float(np.abs(y).max()))
    if largest * np.sqrt(heaviest) > TOO_LARGE:
        raise ValueError(
            f"a value of {largest:g} with a weight of {heaviest:g} overflows when it is squared: "
            "rescale the data or the weights"
        )


def check_precision(dtype: DTypeLike) -> np.dtype:
    """Return single or double precision."""
    for known in (np.dtype(np.float32), np.dtype(np.float64)):
        if dtype is not None and known == dtype:
            return known
    raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")


def check_magnitude(
    y: Array, weights: Array | None, dtype: np.dtype, factors: Callable[[], bool] = bool
) -> None:
    """Refuse values and weights (None: all 1) whose products would overflow when squared.

    ``factors`` tells whether they are learned by factors: these measure everything in units of the
    values seen, so one value that is too large for them is so in double precision, too.
    """
    size, heaviest = max(float(y.max()), -float(y.min())), 1.0
    if weights is not None:
        heaviest = float(weights.max())
    if max(size, heaviest, size * heaviest) <= TOO_LARGE_FOR_FLOAT32:
        return
    single = dtype == np.float32
    limit = TOO_LARGE_FOR_FLOAT32 if single or factors() else TOO_LARGE
    weights = np.ones(y.size) if weights is None else weights
    sizes = np.abs(y)
    with np.errstate(over="ignore"):
        largest = np.maximum(np.maximum(sizes, weights), sizes * weights)
    k = int(largest.argmax())
    if largest[k] > limit:
        where, wider = "", ""
        if factors():
            where, wider = " with factors", " or take Frank-Wolfe steps (corrective=None)"
        elif single:
            where, wider = " in single precision", " or use dtype=float"
        raise ValueError(
            f"y has {y[k]:g} with the weight {weights[k]:g} in row {k}; values, weights and their "
            f"products above {limit:g} overflow{where}: rescale the data{wider}"
        )
