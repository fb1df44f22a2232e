"""Random generators as plain values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._typing import State

__all__ = ["generator_from_state", "generator_state"]

#: What a state may hold, by the name of its generator: for a number the largest one, for an array
#: its type and length. numpy believes whatever it is given, and reads beyond its memory.
_HALF = {"has_uint32": 1, "uinteger": 2**32 - 1}
_PCG = {"state": {"state": 2**128 - 1, "inc": 2**128 - 1}, **_HALF}
_PHILOX = {"counter": (np.uint64, 4), "key": (np.uint64, 2)}
FIELDS: dict[str, dict[str, Any]] = {
    "MT19937": {"state": {"key": (np.uint32, 624), "pos": 624}},
    "PCG64": _PCG,
    "PCG64DXSM": _PCG,
    "Philox": {"state": _PHILOX, "buffer": (np.uint64, 4), "buffer_pos": 4, **_HALF},
    "SFC64": {"state": {"state": (np.uint64, 4)}, **_HALF},
}


def generator_state(generator: np.random.Generator) -> State:
    """Return the state of a generator as plain values.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw._randomness import generator_from_state, generator_state
    >>> rng = np.random.default_rng(0)
    >>> generator_from_state(generator_state(rng)).random() == rng.random()
    True
    """
    state = dict(generator.bit_generator.state)
    if state["bit_generator"] not in FIELDS:
        raise ValueError(
            f"a file cannot hold a {state['bit_generator']}; use numpy.random.default_rng(seed)"
        )
    return state


def generator_from_state(state: Any) -> np.random.Generator:
    """Return a generator that goes on from such a state, every field of which is checked."""
    name = state["bit_generator"]
    if name not in FIELDS:
        raise ValueError(f"unknown random generator {name!r} in the state")
    bits = getattr(np.random, name)()
    bits.state = {"bit_generator": name, **_checked(FIELDS[name], state, name)}
    return np.random.Generator(bits)


def _checked(fields: dict[str, Any], values: Any, name: str) -> State:
    found: State = {}
    for field, most in fields.items():
        value = values[field]
        if isinstance(most, dict):
            found[field] = _checked(most, value, name)
        elif isinstance(most, tuple):
            dtype, length = most
            if getattr(value, "dtype", None) != dtype or value.shape != (length,):
                raise ValueError(f"{field} of a {name} is not {length} numbers of {dtype.__name__}")
            found[field] = value
        else:
            if type(value) is not int or not 0 <= value <= most:
                raise ValueError(f"{field} of a {name} is {value!r:.40}, not 0 to {most}")
            found[field] = value
    return found
