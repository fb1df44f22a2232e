"""What is in a state, and whether two are the same."""

import numpy as np


def same_state(one, two):
    """Whether states have the same values under the same names."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same_state(one[name], two[name]) for name in one)
    return np.array_equal(one, two)


def arrays(state):
    """All arrays of a state."""
    if isinstance(state, dict):
        return [x for value in state.values() for x in arrays(value)]
    if isinstance(state, list):
        return [x for value in state for x in arrays(value)]
    return [state] if isinstance(state, np.ndarray) else []
