"""How many threads BLAS and compiled loops use.

BLAS libraries let their threads spin for a while after every call, however small. Next to parallel
numba loops that takes cores away from the loops. So BLAS has one thread while they use all cores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
import numpy as np
from threadpoolctl import ThreadpoolController  # comes with scikit-learn

from ._typing import Array

__all__ = ["all_blas_threads", "balanced_blocks", "blocks_for", "one_blas_thread", "threads_for"]

#: Loops over fewer entries than this are over before a second thread has started.
SMALL_LOOP = 2**17


@cache
def _blas_libraries() -> list[Any]:
    """Return the loaded BLAS libraries. To look for them is slow, so it is done once."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS calls use one thread. A use within another one costs nothing."""
    if getattr(_here, "limited", False):
        yield
        return
    before = [(library, library.num_threads) for library in _blas_libraries()]
    for library, _ in before:
        library.set_num_threads(1)
    _here.limited, _here.before = True, before
    try:
        yield
    finally:
        _here.limited = False
        _restore(before)


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Let BLAS use its threads after all, for long work of its own."""
    if not getattr(_here, "limited", False):
        yield
        return
    _restore(_here.before)
    try:
        yield
    finally:
        for library, _ in _here.before:
            library.set_num_threads(1)


def _restore(before: list[tuple[Any, int]]) -> None:
    for library, threads in before:
        library.set_num_threads(threads)


@contextmanager
def threads_for(n_entries: int) -> Iterator[None]:
    """Let compiled loops over few entries run on one thread."""
    if n_entries >= SMALL_LOOP:
        yield
        return
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def balanced_blocks(indptr: Array) -> Array:
    """Return row ranges, one per thread, with about equally many entries."""
    threads = numba.get_num_threads()
    if threads == 1:
        return np.array([0, indptr.size - 1])
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], threads + 1)[1:-1])
    return np.concatenate(([0], cuts, [indptr.size - 1])).astype(np.int64)


def blocks_for(n_rows: int, n_entries: int) -> Array:
    """Return ranges of equally long rows, one per thread; one for few entries."""
    threads = numba.get_num_threads() if n_entries >= SMALL_LOOP else 1
    return np.arange(threads + 1) * n_rows // threads
