"""Arrays of text (labels, names, identifiers) as bytes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, State
from ..estimators.sparse_state import names_state

__all__ = ["labels_from_tree", "labels_to_tree"]

#: Arrays of these kinds are kept as they are; text ("U") becomes UTF-8.
PLAIN = "biufSmM"
#: An array of text has room for the longest in every place. One that would take so many times the
#: memory of the strings themselves is an array of objects instead.
MOST_ROOM = 16


def labels_to_tree(values: Any, name: str) -> State | Array:
    """Return numbers as an array, and text as UTF-8 bytes with the end of each string.

    Examples
    --------
    >>> from onlinefw.files.labels import labels_from_tree, labels_to_tree
    >>> labels_from_tree(labels_to_tree(["yes", "no"], "classes"))
    array(['yes', 'no'], dtype='<U3')
    """
    array = np.asarray(values)
    names = names_state(name, array)
    if array.dtype.kind in PLAIN:
        return names
    encoded = [text.encode("utf-8", "surrogatepass") for text in array.tolist()]
    return {
        "utf8": np.frombuffer(b"".join(encoded), np.uint8),
        "ends": np.cumsum([len(text) for text in encoded], dtype=np.uint64),
        "objects": array.dtype.kind == "O",
    }


def labels_from_tree(tree: State | Array) -> Array:
    """Return the array that was described."""
    if isinstance(tree, np.ndarray):
        if tree.ndim != 1 or tree.dtype.kind not in PLAIN:
            raise ValueError("labels must be a one-dimensional array of numbers")
        return tree
    utf8, ends = tree["utf8"], tree["ends"]
    if utf8.dtype != np.uint8 or ends.dtype != np.uint64 or not utf8.ndim == ends.ndim == 1:
        raise ValueError("labels must be text")
    whole, ends = utf8.tobytes(), ends.astype(np.int64)
    starts = np.concatenate(([0], ends[:-1])) if ends.size else ends
    if (starts > ends).any() or (ends.size and ends[-1] != len(whole)):
        raise ValueError("the ends of the strings do not fit their bytes")
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    texts = [whole[start:end].decode("utf-8", "surrogatepass") for start, end in pairs]
    room = 4 * max(map(len, texts), default=0) * len(texts)
    uneven = room > MOST_ROOM * (len(whole) + ends.nbytes)
    return np.array(texts, object if tree["objects"] or uneven else str).reshape(-1)
