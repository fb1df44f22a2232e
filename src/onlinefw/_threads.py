"""One BLAS thread while compiled loops use all cores.

BLAS libraries let their threads spin for a while after every call, however small. Next to parallel
numba loops that takes cores away from them: a pass over 16 million entries took 2 to 3 times as
long with two BLAS threads as with one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # comes with scikit-learn

__all__ = ["one_blas_thread"]


@cache
def _controller() -> Any:
    return ThreadpoolController()  # looking for the libraries takes a while: once


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS calls use one thread."""
    return _controller().limit(limits=1, user_api="blas")
