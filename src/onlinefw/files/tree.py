"""Nested dicts and lists with arrays in them, as JSON plus named arrays, and back.

In the JSON an array is ``{"$array": name}``, a float that JSON does not know is
``{"$float": "nan"}``, and a dict with a key that starts with ``$`` is ``{"$dict": [[key, value],
...]}``. Tuples become lists and numpy numbers plain ones.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["join", "split"]

#: Kinds of arrays that are saved: numbers, text, times; no objects, no records.
KINDS = "biufcSUmM"
#: An array may stand at so many places of a tree; at more it is written again. Whoever reads a tree
#: copies arrays, and a small file must not have one array copied a million times.
MOST_PLACES = 8


def split(tree: Any) -> tuple[Any, dict[str, Array]]:
    """Return the tree as JSON values, and its arrays by name (their keys, joined).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.files.tree import split
    >>> split({"coef": np.array([1.0, 2.0]), "t": 3})
    ({'coef': {'$array': 'coef'}, 't': 3}, {'coef': array([1., 2.])})
    """
    splitter = _Splitter()
    return splitter.split(tree, ()), splitter.arrays


def join(values: Any, arrays: dict[str, Array]) -> Any:
    """Return the tree that was split; KeyError or ValueError if it was none."""
    return _joined(values, arrays, dict.fromkeys(arrays, 0))


def _joined(values: Any, arrays: dict[str, Array], places: dict[str, int]) -> Any:
    if isinstance(values, list):
        return [_joined(item, arrays, places) for item in values]
    if not isinstance(values, dict):
        return values
    if len(values) == 1:
        ((key, value),) = values.items()
        if key == "$array":
            places[value] += 1
            if places[value] > MOST_PLACES:
                raise ValueError(f"one array stands at more than {MOST_PLACES} places")
            return arrays[value]
        if key == "$float":
            return _float(value)
        if key == "$dict":
            return {_key(k): _joined(v, arrays, places) for k, v in value}
    for key in values:
        if key.startswith("$"):
            raise ValueError(f"unknown mark {key!r:.40}")
    return {key: _joined(value, arrays, places) for key, value in values.items()}


class _Splitter:
    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, tuple[str, int]] = {}  # and at how many places it stands

    def split(self, value: Any, keys: tuple[str, ...]) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.ndarray):
            return {"$array": self._name(value, keys)}
        if isinstance(value, np.generic):
            return self.split(value.item(), keys)
        if isinstance(value, (list, tuple)):
            return [self.split(item, (*keys, str(k))) for k, item in enumerate(value)]
        if isinstance(value, dict):
            items = [(_key(k), self.split(v, (*keys, str(k)))) for k, v in value.items()]
            marked = any(k.startswith("$") for k, _ in items)
            return {"$dict": [[k, v] for k, v in items]} if marked else dict(items)
        where = "/".join(keys) or "the tree"
        raise TypeError(f"a file cannot hold the {kind.__name__} at {where}")

    def _name(self, array: Array, keys: tuple[str, ...]) -> str:
        if array.dtype.kind not in KINDS:
            raise TypeError(f"a file cannot hold an array of {array.dtype} at {'/'.join(keys)}")
        shared, places = self._names.get(id(array), ("", MOST_PLACES))
        if places == MOST_PLACES:
            name = "/".join(re.sub(r"[^A-Za-z0-9_-]", "_", part) or "_" for part in keys)[:200]
            name = name or "array"
            if name in self.arrays:
                name = f"{name}.{len(self.arrays)}"
            self.arrays[name] = array
            shared, places = name, 0
        self._names[id(array)] = shared, places + 1
        return shared


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a file holds dicts with text as keys, got the key {key!r}")
    return key


def _float(text: Any) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise ValueError(f"unknown number {text!r}")
    return float(text)
