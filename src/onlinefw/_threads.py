"""How many threads BLAS and compiled loops use.

Loops are shared by threads of Python's own, which work without its lock. So several threads may
learn and predict, a forked process may go on, and on a busy machine nobody spins while he waits.

BLAS libraries let their threads spin for a while after every call, however small. Next to loops on
all cores that takes cores away from the loops. So BLAS has one thread while they run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

import joblib  # type: ignore[import-untyped]
import numba
import numpy as np
from threadpoolctl import ThreadpoolController  # comes with scikit-learn, as joblib does

from ._typing import Array

__all__ = [
    "all_blas_threads",
    "balanced_blocks",
    "blocks_for",
    "n_threads",
    "one_blas_thread",
    "share",
    "use_threads",
]

#: Loops over fewer entries than this are over before a second thread has started.
SMALL_LOOP = 2**17
#: Sums over many items are formed in this many blocks, whatever the number of threads.
PARTS = 16

# Loops --------------------------------------------------------------------------------------------

_wanted: int | None = None
_team: ThreadPoolExecutor | None = None


def n_threads() -> int:
    """Return how many threads share a long loop.

    Those that ``use_threads`` has set; without it the cores that this process may use (joblib
    looks at its affinity and at the limits of a container), or ``NUMBA_NUM_THREADS`` if fewer.
    """
    return _cores() if _wanted is None else _wanted


@cache
def _cores() -> int:
    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    return max(1, min(most, joblib.cpu_count()))


def use_threads(n: int | None) -> int | None:
    """Let long loops use n threads (None: as many as there are cores); return what was set."""
    global _wanted
    before, _wanted = _wanted, n
    return before


def share(kernel: Callable[..., Any], blocks: Array, *args: Any) -> None:
    """Call kernel(first, last, blocks, ...) for all blocks, which threads share in equal parts.

    The kernel is compiled to run without Python's lock, and works on blocks ``first`` to ``last``.
    """
    parts = len(blocks) - 1
    threads = 1 if parts == 1 else min(parts, n_threads())
    if threads == 1:
        kernel(0, parts, blocks, *args)
        return
    cuts = [parts * k // threads for k in range(threads + 1)]
    others = [
        _members().submit(kernel, cuts[k], cuts[k + 1], blocks, *args) for k in range(1, threads)
    ]
    try:
        kernel(0, cuts[1], blocks, *args)
    finally:
        wait(others)  # nobody may still write when the caller goes on
    for one in others:
        one.result()


def _members() -> ThreadPoolExecutor:
    """Return the threads that help; a forked process has none yet."""
    global _team
    if _team is None:
        _team = ThreadPoolExecutor(max(1, os.cpu_count() or 1), "onlinefw")
    return _team


def _forget_members() -> None:
    global _team
    _team = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_members)


def balanced_blocks(indptr: Array, work: int | None = None) -> Array:
    """Return row ranges, one per thread, with about equally many entries; one for few entries."""
    entries = int(indptr[-1]) if work is None else work
    threads = n_threads() if entries >= SMALL_LOOP else 1
    if threads == 1:
        return np.array([0, indptr.size - 1])
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], threads + 1)[1:-1])
    return np.concatenate(([0], cuts, [indptr.size - 1])).astype(np.int64)


def blocks_for(n: int, work: int, parts: int | None = PARTS) -> Array:
    """Return ranges of n items, in equal parts (None: one per thread); one if work is little."""
    if work < SMALL_LOOP:
        return np.array([0, n])
    parts = n_threads() if parts is None else parts
    return np.arange(parts + 1) * n // parts


# BLAS ---------------------------------------------------------------------------------------------


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
