"""Cells to values: numbers must be finite, ids are integers or text.

Text is an integer id only if the integer, written out, gives the text back: so "7" is 7, and "007"
stays text. Each kind is read in two ways: whole Arrow columns at once, and one cell at a time for
the blocks in which something is wrong.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .._typing import Array
from .._validation import moderate
from ..losses import Loss
from .errors import shown
from .id_tables import as_objects

__all__ = [
    "EXACT",
    "Outcome",
    "as_text",
    "id_cell",
    "ids_from_arrow",
    "ids_from_cells",
    "labels",
    "number_cell",
    "numbers",
    "remedy_for",
    "text_cell",
    "texts_from_arrow",
    "usable",
]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
#: Whole numbers of this size and above are no longer exact as floats.
EXACT = 2.0**53
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_UNPADDED = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?", re.ASCII)

#: value, reason, problem: reason is "" where the value is good.
Outcome = tuple[Any, str, str]

_EMPTY: Outcome = (None, "empty", "the cell is empty")


_REMEDIES = {
    "too large": "rescale the column",
    "not for this loss": "correct it, choose another --loss",
}


def remedy_for(reason: str) -> str:
    """Return what to do about a cell that is refused for this reason."""
    return _REMEDIES.get(reason, "correct it")


def usable(values: Array, loss: Loss | None = None) -> bool:
    """Whether all numbers are finite, can be squared, and are targets that the loss takes."""
    return moderate(values) and (loss is None or bool(loss.allows(values).all()))


def number_cell(cell: Any, loss: Loss | None = None) -> Outcome:
    """A number from one cell (a target that the loss takes), or why there is none."""
    if cell is None:
        return _EMPTY
    if isinstance(cell, bytes):
        cell = _decoded(cell)
    if isinstance(cell, str):
        text = cell.strip()
        if not text:
            return _EMPTY
        if not _NUMBER.fullmatch(text) and not _NOT_FINITE.fullmatch(text):
            return None, "not a number", f"{shown(cell)} is not a number"
        value = float(text)
    else:
        try:
            value = float(cell)
        except (TypeError, ValueError, OverflowError):
            return None, "not a number", f"{shown(cell)} is not a number"
    if not np.isfinite(value):
        return None, "not finite", f"{shown(cell)} is not a finite number"
    if not usable(np.array(value)):
        return None, "too large", f"{shown(cell)} is too large to be squared"
    if loss is not None and not usable(np.array(value), loss):
        needs = f"the {type(loss).__name__.lower()} loss needs {loss.targets}"
        return None, "not for this loss", f"{needs}, not {shown(cell)}"
    return value, "", ""


def id_cell(cell: Any) -> Outcome:
    """An id (int or str) from one cell, or why there is none."""
    if isinstance(cell, bytes):
        cell = _decoded(cell)
    if isinstance(cell, str):
        text = cell.strip()
        if not text:
            return _EMPTY
        if not text.isascii() and any("\udc80" <= c <= "\udcff" for c in text):
            raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
            return None, "not UTF-8", f"{shown(raw)} is not UTF-8 text"
        return (int(text) if _INTEGER.fullmatch(text) else text), "", ""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return _EMPTY
    if isinstance(cell, bool | np.bool_):
        return int(cell), "", ""
    if isinstance(cell, int | np.integer):
        return (int(cell) if abs(int(cell)) < 10**18 else str(cell)), "", ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell), "", ""
    if isinstance(cell, list | dict):
        return None, "not an id", f"{shown(cell)} is neither text nor an integer"
    return str(cell), "", ""


def text_cell(cell: Any) -> Outcome:
    """A text from one cell, whatever it is; empty if there is none."""
    value, reason, problem = id_cell(cell)
    return str(value) if not reason else "", reason, problem


def _decoded(cell: bytes) -> str:
    return cell.decode("utf-8", "surrogateescape")


def ids_from_cells(cells: list[Any]) -> Array:
    """Return ids as int64 if all are integers, otherwise as text."""
    if all(isinstance(cell, int) for cell in cells):
        return np.array(cells, dtype=np.int64)
    return as_objects([str(cell) for cell in cells])


def as_text(ids: Array) -> Array:
    """Return ids as text, whatever they were."""
    return ids if ids.dtype == object else as_objects([str(i) for i in ids.tolist()])


def labels(ids: Array) -> Array:
    """Labels, each read by itself, so that those beside it do not matter: as integers if all are.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.readers.cells import labels
    >>> labels(np.array(["1.0", "2"], dtype=object)), labels(np.array(["1.0", "01"], dtype=object))
    (array([1, 2]), array(['1', '01'], dtype=object))
    """
    if ids.dtype != object:
        return ids
    found = {text: _label(text) for text in set(ids.tolist())}
    if all(_INTEGER.fullmatch(label) for label in found.values()):
        return np.array([int(found[text]) for text in ids.tolist()], dtype=np.int64)
    if all(text == label for text, label in found.items()):
        return ids
    return as_objects([found[text] for text in ids.tolist()])


def _label(text: str) -> str:
    """A whole number in its shortest form ("1.0" is 1); with leading zeros it is a code, as ids."""
    number = float(text) if _UNPADDED.fullmatch(text) else 0.5
    return str(int(number)) if number.is_integer() and abs(number) < EXACT else text


def numbers(column: Any, loss: Loss | None = None, *, may_miss: bool = False) -> Array | None:
    """An Arrow column as float64, or None if any cell must be looked at one by one.

    Where values ``may_miss``, they are NaN.
    """
    import pyarrow as pa

    if column.null_count and not may_miss:
        return None
    try:
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    known = values[~np.isnan(values)] if may_miss else values
    return values if usable(known, loss) else None


def texts_from_arrow(column: Any) -> Array:
    """An Arrow column as text, empty where there is none."""
    import pyarrow as pa

    if pa.types.is_temporal(column.type):
        column = column.cast(pa.string())
    # Each text is made a Python string once, however often it occurs.
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = as_objects([text_cell(cell)[0] for cell in [*coded.dictionary.to_pylist(), None]])
    indices = coded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    return texts[indices]


def ids_from_arrow(column: Any) -> Array | None:
    """An Arrow column as ids, or None if any cell must be looked at one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        return None
    kind = column.type
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        values = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return values if _short(values) else None
    if _is_text(kind):
        integers = _integers(column)
        if integers is not None:
            return integers
        column = column.dictionary_encode()
    elif pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        return ids_from_arrow(column.dictionary_decode())
    elif not pa.types.is_dictionary(kind):
        return None
    if column.dictionary.null_count:
        return None
    different = pc.utf8_trim_whitespace(column.dictionary)
    indices = column.indices.to_numpy(zero_copy_only=False)
    if len(different) and pc.min(pc.utf8_length(different)).as_py() == 0:
        return None
    integers = _integers(different)
    # Each text is made a Python string once, however often it occurs.
    return (as_objects(different.to_pylist()) if integers is None else integers)[indices]


def _integers(texts: Any) -> Array | None:
    """The texts as integers, or None if any of them is not written as an integer is."""
    import pyarrow as pa

    try:
        integers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    if not integers.cast(texts.type).equals(texts):
        return None
    values = integers.to_numpy(zero_copy_only=False)
    return values if _short(values) else None


def _short(values: Array) -> bool:
    """At most 18 digits each: longer integers stay text, in every format alike."""
    return bool(((values > -(10**18)) & (values < 10**18)).all())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
