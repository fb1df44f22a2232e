"""Whether two states are the same."""

import numpy as np


def same_state(one, two):
    """Whether states have the same values under the same names."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same_state(one[name], two[name]) for name in one)
    return np.array_equal(one, two)
