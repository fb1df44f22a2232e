"""Random generators as plain values, and back."""

from __future__ import annotations

import numpy as np

from .._typing import State
from ..objectives.row_store import BIT_GENERATORS

__all__ = ["generator_from_tree", "generator_to_tree"]


def generator_to_tree(generator: np.random.Generator) -> State:
    """Return where a generator stands.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.files.randomness import generator_from_tree, generator_to_tree
    >>> rng = np.random.default_rng(0)
    >>> copy = generator_from_tree(generator_to_tree(rng))
    >>> copy.random() == rng.random()
    True
    """
    state = dict(generator.bit_generator.state)
    if state["bit_generator"] not in BIT_GENERATORS:
        raise ValueError(
            f"a file cannot hold a {state['bit_generator']}; use numpy.random.default_rng(seed)"
        )
    return state


def generator_from_tree(tree: State) -> np.random.Generator:
    """Return a generator that goes on from there."""
    if tree["bit_generator"] not in BIT_GENERATORS:
        raise ValueError(f"unknown random generator {tree['bit_generator']!r}")
    bits = getattr(np.random, tree["bit_generator"])()
    bits.state = tree
    return np.random.Generator(bits)
