"""Kernels for few items, on the thread that calls them."""

from __future__ import annotations

from types import FunctionType

from numba import njit

__all__ = ["on_one_thread"]


def on_one_thread(kernel):
    """Return a parallel kernel compiled without threads: the same loops, in the same order.

    Waking other threads takes longer than a loop over few items, and much longer on a busy machine.
    """
    python = kernel.py_func
    name = f"{python.__name__}_on_one_thread"
    copy = FunctionType(python.__code__, python.__globals__, name, python.__defaults__)
    copy.__qualname__, copy.__module__, copy.__doc__ = name, python.__module__, python.__doc__
    # A name of its own, so that the cache on disk does not take one for the other.
    return njit(cache=True, fastmath=kernel.targetoptions.get("fastmath", False))(copy)
