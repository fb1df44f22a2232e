"""Objects as plain values and arrays, with what they share, and back.

A frozen graph is ``{"root": value, "objects": [node, ...]}``. Values that cannot change are written
where they stand; everything else is a node that others refer to by number, so what was shared is
shared again and cycles are no obstacle. Classes are those of :mod:`onlinefw.files.registry`:
nothing else can be named, so thawing calls nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._typing import State
from ..estimators.learnable import check_can_learn
from .randomness import generator_from_tree, generator_to_tree
from .registry import class_name, registry
from .tree import KINDS

__all__ = ["freeze", "thaw"]

#: Types of numbers that objects hold as such.
NUMBER_TYPES: dict[str, type] = {"float32": np.float32, "float64": np.float64}
SPARSE: dict[str, Any] = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
}


def freeze(value: Any) -> State:
    """Return an estimator, or dicts and lists with estimators in them, as a tree.

    Examples
    --------
    >>> import onlinefw as ofw
    >>> from onlinefw.files.freeze import freeze, thaw
    >>> one = ofw.FrankWolfeRegressor(ofw.sets.L1Ball(2.0))
    >>> first, second = thaw(freeze([one, one]))
    >>> first is second, first
    (True, FrankWolfeRegressor(constraint=L1Ball(radius=2.0)))
    """
    freezer = _Freezer()
    root = freezer.value(value, "")
    return {"root": root, "objects": freezer.nodes}


def thaw(tree: State) -> Any:
    """Return what was frozen."""
    return _Thawer(tree["objects"]).value(tree["root"])


class _Freezer:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._number: dict[int, int] = {}
        self._alive: list[Any] = []  # an id stays an object's own as long as that lives

    def value(self, value: Any, place: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is tuple:
            return {"tuple": [self.value(item, place) for item in value]}
        if id(value) not in self._number:
            self._number[id(value)] = number = len(self.nodes)
            self._alive.append(value)
            self.nodes.append(None)
            self.nodes[number] = self._node(value, kind, place)
        return {"ref": self._number[id(value)]}

    def _node(self, value: Any, kind: type, place: str) -> State:
        if kind is np.ndarray:
            return self._array(value, place)
        if kind is list:
            return {"list": [self.value(item, place) for item in value]}
        if kind is dict:
            pairs = [(self.value(k, place), self.value(v, _at(place, k))) for k, v in value.items()]
            return {"dict": [list(pair) for pair in pairs]}
        if kind in (set, frozenset):
            return {kind.__name__: [self.value(item, place) for item in value]}
        if kind is range:
            return {"range": [value.start, value.stop, value.step]}
        if kind is slice:
            parts = (value.start, value.stop, value.step)
            return {"slice": [self.value(part, place) for part in parts]}
        if kind is bytes:
            return {"bytes": np.frombuffer(value, np.uint8)}
        if isinstance(value, np.generic) and value.dtype.kind in KINDS:
            return {"number": [value.dtype.str, value.tobytes().hex()]}
        if isinstance(value, np.dtype) and value.kind in KINDS:
            return {"dtype": value.str}
        if kind is np.random.Generator:
            return {"generator": generator_to_tree(value)}
        for name, number_type in NUMBER_TYPES.items():
            if value is number_type:
                return {"type": name}
        if SPARSE.get(kind.__name__) is kind:
            arrays = (value.data, value.indices, value.indptr)
            return {
                "sparse": kind.__name__,
                "arrays": [self.value(array, place) for array in arrays],
                "shape": list(value.shape),
            }
        return self._object(value, kind, place)

    def _array(self, array: Any, place: str) -> State:
        if array.dtype.kind == "O":
            items = [self.value(item, place) for item in array.reshape(-1)]
            return {"values": items, "shape": list(array.shape)}
        if array.dtype.kind not in KINDS:
            raise ValueError(f"a checkpoint cannot hold {array.dtype} values, at {place}")
        return {"array": array, "writeable": bool(array.flags.writeable)}

    def _object(self, value: Any, kind: type, place: str) -> State:
        if hasattr(value, "__dict__"):
            check_can_learn(value)
        state = value.__getstate__
        if hasattr(kind, "home_class"):  # data with workers: frozen as if they were here
            kind, state = kind.home_class, value.home_state
        name = class_name(kind)
        if name is None:
            what = getattr(value, "__qualname__", kind.__qualname__)
            raise ValueError(
                f"a checkpoint holds onlinefw's own parts only, but {place or 'this'} is "
                f"{what} (of {getattr(value, '__module__', kind.__module__)})"
            )
        return {"class": name, "state": self.value(state(), kind.__name__)}


def _at(place: str, key: Any) -> str:
    return f"{place}.{key}" if place else str(key)


class _Thawer:
    def __init__(self, nodes: list[Any]) -> None:
        self._nodes = nodes
        self._made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise ValueError("a list where a value should be")
            return value
        ((mark, content),) = value.items()
        if mark == "tuple":
            return tuple(self.value(item) for item in content)
        if mark != "ref":
            raise ValueError(f"unknown value {mark!r}")
        if content not in self._made:
            self._make(content)
        return self._made[content]

    def _make(self, number: int) -> None:
        node = self._nodes[number]
        if not isinstance(node, dict) or not node:
            raise ValueError("something that is no object")
        mark = next(iter(node))
        if mark in ("list", "dict", "set", "class"):
            self._make_changeable(number, node, mark)
        else:
            self._made[number] = self._leaf(node, mark)

    def _make_changeable(self, number: int, node: State, mark: str) -> None:
        """Put the object where others find it before its contents, which may lead back to it."""
        if mark == "list":
            items: list[Any] = []
            self._made[number] = items
            items.extend(self.value(item) for item in node["list"])
        elif mark == "dict":
            pairs: dict[Any, Any] = {}
            self._made[number] = pairs
            pairs.update((self.value(k), self.value(v)) for k, v in node["dict"])
        elif mark == "set":
            members: set[Any] = set()
            self._made[number] = members
            members.update(self.value(item) for item in node["set"])
        else:
            cls = registry()[node["class"]]
            one: Any = object.__new__(cls)
            self._made[number] = one
            _set_state(one, self.value(node["state"]))

    def _leaf(self, node: State, mark: str) -> Any:
        content = node[mark]
        if mark == "array":
            if not node["writeable"]:
                content.flags.writeable = False
            return content
        if mark == "values":
            array = np.empty(len(content), object)
            array[:] = [self.value(item) for item in content]
            return array.reshape(node["shape"])
        if mark == "frozenset":
            return frozenset(self.value(item) for item in content)
        if mark == "range":
            return range(*content)
        if mark == "slice":
            return slice(*(self.value(part) for part in content))
        if mark == "bytes":
            return content.tobytes()
        if mark == "number":
            dtype, data = _dtype(content[0]), bytes.fromhex(content[1])
            return np.frombuffer(data, dtype)[0]
        if mark == "dtype":
            return _dtype(content)
        if mark == "generator":
            return generator_from_tree(content)
        if mark == "type":
            return NUMBER_TYPES[content]
        if mark == "sparse":
            arrays = tuple(self.value(array) for array in node["arrays"])
            matrix = SPARSE[content](arrays, shape=tuple(node["shape"]))
            matrix.check_format(full_check=True)  # compiled code trusts the indices
            return matrix
        raise ValueError(f"unknown object {mark!r}")


def _dtype(text: str) -> np.dtype:
    dtype = np.dtype(text)
    if dtype.kind not in KINDS:
        raise ValueError(f"unknown type of numbers {text!r}")
    return dtype


def _set_state(one: Any, state: Any) -> None:
    """Do what pickle does with a state, without its means to call anything."""
    if hasattr(one, "__setstate__"):
        one.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        one.__dict__.update(attributes)
    known = {name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())}
    for name, value in (slots or {}).items():
        if name not in known:
            raise ValueError(f"{type(one).__name__} has no {name}")
        object.__setattr__(one, name, value)
