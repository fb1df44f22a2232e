"""Parts (losses, sets, step rules) as plain values, and back.

A built-in part becomes ``{"part": name, ...its parameters}`` and is rebuilt by name, from a fixed
list of modules: loading a state runs nothing else. A part of the user's own becomes
``{"custom": its name}`` and must be passed in when the state is loaded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import pairwise
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from . import losses, sets, steps
from ._typing import State

__all__ = ["check_state", "describe", "number", "rebuild", "texts_from_state", "texts_state"]

_MODULES = (losses, sets, steps)


def _built_in(name: str) -> Any:
    for module in _MODULES:
        if name in module.__all__:
            return getattr(module, name)
    return None


def describe(part: Any) -> Any:
    """Return a part (or a number, or None) as plain values."""
    if part is None or isinstance(part, (int, float)):
        return part
    if isinstance(part, Real):  # a numpy number
        return float(part)
    cls = type(part)
    if _built_in(cls.__name__) is cls:
        fields = {f.name: _encode(getattr(part, f.name)) for f in dataclasses.fields(part)}
        return {"part": cls.__name__, **fields}
    return {"custom": getattr(part, "__name__", cls.__name__)}


def rebuild(description: State | float | None, role: str, given: Any = None) -> Any:
    """Return the part that was given, or else the built-in one that was described."""
    if given is not None:
        return given
    if not isinstance(description, dict):
        return description
    if "custom" in description:
        raise ValueError(
            f"this state was saved with a {role} of your own ({description['custom']}): "
            f"pass it again as from_state(state, {role}=...)"
        )
    cls = _built_in(description["part"])
    if cls is None:
        raise ValueError(f"unknown {role} {description['part']!r} in the state")
    return cls(**{name: _decode(v, role) for name, v in description.items() if name != "part"})


def check_state(state: Any, *names: str) -> None:
    """Refuse what is not a state, or one with something missing, before anything is built."""
    if not isinstance(state, dict):
        raise ValueError(
            f"a state is the dict that state_dict() returned, got {type(state).__name__}"
        )
    missing = [name for name in names if name not in state]
    if missing:
        raise ValueError(
            f"this is not a whole state: {missing[0]!r} is missing; pass what state_dict() returned"
        )


def number(value: Any, what: str) -> float:
    """Return a finite number of a state, or refuse anything else."""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise ValueError(f"{what} of the state is {value!r:.40}, not a number")
    return float(value)


def texts_state(texts: Iterable[str]) -> State:
    """Return texts as their UTF-8 bytes, with the end of each."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {"utf8": np.frombuffer(b"".join(encoded), np.uint8), "ends": ends}


def texts_from_state(state: State) -> list[str]:
    """Return the texts that were described, or refuse what cannot be texts."""
    check_state(state, "utf8", "ends")
    utf8, ends = state["utf8"], state["ends"]
    for array, dtype in ((utf8, np.uint8), (ends, np.int64)):
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            raise ValueError("ids that are text must be UTF-8 bytes and the end of each")
    starts = np.concatenate((np.zeros(1, np.int64), ends))
    if (starts[1:] < starts[:-1]).any() or starts[-1] != utf8.size:
        raise ValueError("the ends of ids do not fit their bytes")
    whole = utf8.tobytes()
    cuts = pairwise(starts.tolist())
    return [whole[start:end].decode("utf-8", "surrogatepass") for start, end in cuts]


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy() if value.ndim else value.item()
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str) else describe(value)


def _decode(value: Any, role: str) -> Any:
    if isinstance(value, list):
        return [_decode(item, role) for item in value]
    if isinstance(value, dict):
        return rebuild(value, role)
    return value
