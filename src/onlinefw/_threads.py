"""How many threads BLAS and compiled loops use.

Loops are shared by threads of Python's own, which work without its lock. So several threads may
learn and predict, a forked process may go on, and on a busy machine nobody spins while he waits.

BLAS libraries let their threads spin for a while after every call, however small. Next to loops on
all cores that takes cores away from the loops. So BLAS has one thread while they run.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from threadpoolctl import ThreadpoolController  # comes with scikit-learn, as joblib does

from ._typing import Array

__all__ = [
    "BlasThreads",
    "balanced_blocks",
    "blas_threads_for",
    "blocks_for",
    "n_threads",
    "one_blas_thread",
    "share",
    "use_threads",
]

#: A context that does nothing.
NOTHING = nullcontext()
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
    cores: int = joblib.cpu_count()
    return max(1, min(int(os.environ.get("NUMBA_NUM_THREADS") or cores), cores))


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
        return np.array([0, indptr.size - 1], np.int64)
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], threads + 1)[1:-1])
    return np.concatenate(([0], cuts, [indptr.size - 1])).astype(np.int64)


def blocks_for(n: int, work: int, parts: int | None = PARTS) -> Array:
    """Return ranges of n items, in equal parts (None: one per thread); one if work is little."""
    if work < SMALL_LOOP:
        return np.array([0, n], np.int64)
    parts = n_threads() if parts is None else parts
    return np.arange(parts + 1, dtype=np.int64) * n // parts


# BLAS ---------------------------------------------------------------------------------------------

#: Multiplications from which several BLAS threads are quicker than one, also on a busy machine.
LONG_WORK = 2**26
#: For fewer than this BLAS takes one thread by itself.
SHORT_WORK = 2**13

_lock = threading.Lock()
_holder: weakref.ref[BlasThreads] | None = None  # the outermost block of the thread that set it
_found: list[int] = []  # what was set before; empty once it has been put back


@cache
def _blas_libraries() -> list[Any]:
    """Return the loaded BLAS libraries. To look for them is slow, so it is done once."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


class BlasThreads:
    """Lets BLAS use at most n threads within a block, whatever the block around it says.

    BLAS has one setting for the whole process. The first thread that comes here changes it, and
    puts it back when it leaves; others that come meanwhile take it as it is.
    """

    __slots__ = ("__weakref__", "_n", "_outer", "_thread")
    #: What the holder has set; 0 without one.
    _set = 0

    def __init__(self, n: int) -> None:
        self._n = n

    def __enter__(self) -> None:
        global _holder, _found
        self._outer: int | None = None
        self._thread = threading.get_ident()
        holder = None if _holder is None else _holder()
        if holder is None:  # nobody, or a block that was left by an error before it could end
            if not _found and all(one.num_threads <= self._n for one in _blas_libraries()):
                return
            with _lock:
                if _holder is None or _holder() is None:
                    _found = _found or [library.num_threads for library in _blas_libraries()]
                    BlasThreads._set, _holder, holder = 0, weakref.ref(self), self
        if holder is None or holder._thread != self._thread or BlasThreads._set == self._n:
            return
        self._outer = BlasThreads._set
        try:
            self._let(self._n)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        global _holder, _found
        if self._outer is None:
            return
        if self._outer > 0:
            self._let(self._outer)
            return
        with _lock:
            _holder = None
            self._let(0)
            _found = []  # if it fails before this, the next one puts it back

    @staticmethod
    def _let(n: int) -> None:
        """Let BLAS use n threads, or as many as it had (0)."""
        BlasThreads._set = n
        for library, found in zip(_blas_libraries(), _found, strict=False):
            if hasattr(library, "clear_controlling_thread"):
                # threadpoolctl lets one thread only change it, for ever; here they take turns
                library.clear_controlling_thread(force=True)
            library.set_num_threads(min(n, found) if n else found)


def one_blas_thread() -> BlasThreads:
    """Let BLAS calls use one thread. A use within another one costs nothing."""
    return BlasThreads(1)


def blas_threads_for(work: int) -> AbstractContextManager[None]:
    """Let BLAS use as many threads as suit so many multiplications: one, or one per core."""
    if work < SHORT_WORK:
        return NOTHING
    return BlasThreads(1 if work < LONG_WORK else n_threads())


def _forget_holder() -> None:
    """Put back, in a forked process, what a thread that is not there had changed."""
    global _lock, _holder, _found
    _lock = threading.Lock()
    holder = None if _holder is None else _holder()
    if holder is not None and holder._thread != threading.get_ident():
        BlasThreads._let(0)
        _holder, _found = None, []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_holder)
