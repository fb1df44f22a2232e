"""Iterates: the current theta, and the active set of away-step methods.

Every Frank-Wolfe move has the form ``theta <- (1 - step) theta + step * atom``: a positive step
goes towards the atom, a negative one away from it. That is the one verb, ``move``, that every
iterate (and every objective, for its predictions) understands.
"""

from __future__ import annotations

from typing import Any

from .._typing import State
from .active_set import ActiveSet
from .dense import DenseIterate
from .low_rank import LowRank

__all__ = ["ActiveSet", "DenseIterate", "LowRank", "iterate_from_state"]


def iterate_from_state(state: State) -> DenseIterate | LowRank:
    """Make the iterate that ``state_dict`` described."""
    kinds: dict[str, Any] = {"DenseIterate": DenseIterate, "LowRank": LowRank}
    if state["kind"] not in kinds:
        raise ValueError(f"unknown kind of iterate {state['kind']!r} in the state")
    return kinds[state["kind"]].from_state(state)
