"""Ids of rows and columns as users pass them: arrays, lists, and frames of any library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from .._validation import check_unmasked
from ..readers.id_tables import as_objects

__all__ = ["SIDES", "Column", "Pairs", "are_ids", "column_of", "pairs_of", "refuse_ids"]

#: What the two columns of X are about.
SIDES = ("row", "column")
#: Of arrays that hold text, or may: numpy's two kinds of text, and objects.
MAY_BE_TEXT = "UTO"


class Column(NamedTuple):
    """A column of ids: the different ones in the order of their first appearance, and a code each.

    The ids are int64, or objects that are text.
    """

    ids: Array
    codes: Array

    @property
    def is_text(self) -> bool:
        """Whether the ids are text."""
        return self.ids.dtype == object

    def part(self, chosen: Any) -> Column:
        """Return some of the cells."""
        return column_of("", self.ids[self.codes[chosen]])


class Pairs(NamedTuple):
    """Ids of the row and of the column of each observation."""

    rows: Column
    columns: Column

    @property
    def n(self) -> int:
        """How many observations."""
        return self.rows.codes.size

    def part(self, chosen: Any) -> Pairs:
        """Return some of the observations."""
        return Pairs(self.rows.part(chosen), self.columns.part(chosen))


def are_ids(X: Any) -> bool:
    """Whether X holds ids rather than indices: text, objects or a frame."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in MAY_BE_TEXT
    if isinstance(X, (list, tuple)):
        first = X[0] if len(X) else ()
        return isinstance(first, Iterable) and any(isinstance(cell, str) for cell in first)
    return _frame(X) is not None


def refuse_ids(X: Any) -> None:
    """Refuse ids, for a model that has learned indices."""
    if are_ids(X):
        raise ValueError(
            "X holds ids, and this model has learned indices, whole numbers from 0: pass an "
            "array of those (frame.to_numpy()), or call fit with ids to begin anew"
        )


def pairs_of(X: Any, sides: tuple[str, str] = SIDES) -> Pairs:
    """Return the ids in X, checked: two columns, each of text or of whole numbers alone.

    ``sides`` is what the two columns are about, for messages.

    Examples
    --------
    >>> from onlinefw.estimators.pairs import pairs_of
    >>> pairs = pairs_of([["ann", 7], ["bob", 7]])
    >>> pairs.rows.ids, pairs.columns.codes
    (array(['ann', 'bob'], dtype=object), array([0, 0]))
    """
    frame = None if isinstance(X, (np.ndarray, list, tuple)) else _frame(X)
    if frame is not None:
        return _pairs_of_frame(frame, sides)
    check_unmasked("X", X)
    try:
        cells = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    except ValueError:  # rows of different lengths
        cells = np.empty(len(X), dtype=object)
    if cells.ndim != 2 or cells.shape[1] != 2:
        both = " and ".join(f"{_a(what)} id" for what in sides)
        raise ValueError(f"X must have {both} per observation, got {cells.shape}")
    _check_some(len(cells))
    rows, columns = (column_of(what, cells[:, k]) for k, what in enumerate(sides))
    return Pairs(rows, columns)


def column_of(what: str, values: Array, where: str = "X") -> Column:
    """Return a column of ids; ``what`` they name, and where, is said if one cannot be an id."""
    kind = values.dtype.kind
    if kind in "iu":
        return _integers(what, values)
    if kind not in MAY_BE_TEXT:
        value = values.tolist()[0] if values.size else values.dtype
        raise ValueError(_no_id(what, value))
    cells = values.tolist()
    types = set(map(type, cells))
    if types == {str}:
        return _texts(cells)
    if all(issubclass(one, str) for one in types):  # numpy's own text
        return _texts(list(map(str, cells)))
    if all(_is_whole(one) for one in types):
        try:
            return _integers(what, np.array(cells, dtype=np.int64))
        except OverflowError:
            raise ValueError(_no_id(what, max(cells, key=abs))) from None
    raise ValueError(_odd_one(what, cells, where))


def _integers(what: str, values: Array) -> Column:
    if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise ValueError(_no_id(what, int(values.max())))
    values = values.astype(np.int64, copy=False)
    ids, first, codes = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    position = np.empty_like(order)  # of each id in the order of first appearance
    position[order] = np.arange(order.size)
    return Column(ids[order], position[codes])


def _texts(cells: list[str]) -> Column:
    known: dict[str, int] = {}
    # len(known) is taken before the text is put in, so it is the next code.
    codes = [known.setdefault(text, len(known)) for text in cells]
    return Column(as_objects(known), np.array(codes, dtype=np.int64))


def _is_whole(kind: type) -> bool:
    return issubclass(kind, (int, np.integer)) and not issubclass(kind, bool)


def _odd_one(what: str, cells: list[Any], where: str) -> str:
    """Say which cell is no id, or is one of another kind than those before it."""
    for k, cell in enumerate(cells):
        if not isinstance(cell, str) and not _is_whole(type(cell)):
            return f"{_no_id(what, cell)} (row {k} of {where})"
        if isinstance(cell, str) != isinstance(cells[0], str):
            break
    return (
        f"{what} ids must be all text or all whole numbers, but {where} has {cells[0]!r:.40} in "
        f"row 0 and {cell!r:.40} in row {k}: convert them to one kind"
    )


def _no_id(what: str, value: Any) -> str:
    return (
        f"{_a(what)} id must be text or a whole number that fits 64 bits, got {value!r:.40}: "
        "convert it, or leave it out"
    )


def _a(what: str) -> str:
    return f"an {what}" if what.startswith(tuple("aeio")) else f"a {what}"


def _check_some(n: int) -> None:
    if not n:
        raise ValueError("the batch is empty; pass at least one pair of ids")


# Frames -------------------------------------------------------------------------------------------


def _frame(X: Any) -> Any:
    """Return X as a frame of narwhals; None if it is no frame."""
    if isinstance(X, (np.ndarray, list, tuple)) or X is None or np.isscalar(X):
        return None
    try:
        import narwhals as nw
    except ImportError:
        if type(X).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ImportError(
                "frames are read with narwhals, which is not installed: pip install narwhals"
            ) from None
        return None
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("X is a lazy frame, whose rows are not there yet: pass X.collect()")
    return frame if isinstance(frame, nw.DataFrame) else None


def _pairs_of_frame(frame: Any, sides: tuple[str, str]) -> Pairs:
    names = frame.columns
    if len(names) != 2:
        raise ValueError(
            f"a frame of ids must have two columns, those of the {sides[0]} ids and of the "
            f"{sides[1]} ids, got {len(names)} ({', '.join(map(str, names))!s:.80}): choose them"
            + (", and pass the values as y" if sides is SIDES else "")
        )
    _check_some(len(frame))
    rows, columns = (_column_of_frame(what, frame[:, k]) for k, what in enumerate(sides))
    return Pairs(rows, columns)


def _column_of_frame(what: str, series: Any) -> Column:
    if series.null_count():
        k = series.is_null().to_list().index(True)
        raise ValueError(
            f"{_a(what)} id is missing, in row {k} of the column {series.name!r}: leave the row out"
        )
    kind = str(series.dtype)
    if kind not in ("String", "Int64", "Int32"):
        return column_of(what, series.to_numpy())
    try:
        encoded = series.to_arrow().dictionary_encode()  # in the order of first appearance
    except (ImportError, TypeError, ValueError):  # no pyarrow, or objects that are no text
        return column_of(what, as_objects(series.to_list()))
    ids = encoded.dictionary.to_pylist()
    different = as_objects(ids) if kind == "String" else np.array(ids, dtype=np.int64)
    return Column(different, encoded.indices.to_numpy().astype(np.int64))
