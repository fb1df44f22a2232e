"""Random generators as plain values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._typing import State

__all__ = ["generator_from_state", "generator_state"]

#: Generators that a state may name.
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


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
    if state["bit_generator"] not in BIT_GENERATORS:
        raise ValueError(
            f"a file cannot hold a {state['bit_generator']}; use numpy.random.default_rng(seed)"
        )
    return state


def generator_from_state(state: Any) -> np.random.Generator:
    """Return a generator that goes on from such a state."""
    if state["bit_generator"] not in BIT_GENERATORS:
        raise ValueError(f"unknown random generator {state['bit_generator']!r} in the state")
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)
