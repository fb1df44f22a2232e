"""What runs in the process of a worker."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .errors import OutOfStep
from .wire import unpacked

__all__ = ["Worker"]


class Worker:
    """Holds shards of several objectives and carries out messages to them.

    The messages to a shard are numbered. A worker that was restarted holds nothing, and one that
    has missed a message knows from the next; both refuse, and the driver rebuilds the shard.
    """

    def __init__(self) -> None:
        self._shards: dict[str, _Held] = {}

    def ready(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def open(self, name: str, make: Callable[..., Any], args: tuple[Any, ...], threads: int) -> int:
        """Make a shard, in place of an older one of that name."""
        _use(threads)
        self._shards[name] = _Held(make(*args), threads)
        return os.getpid()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function returns that needs no shard."""
        return function(*args)

    def drop(self, name: str) -> None:
        """Forget a shard."""
        self._shards.pop(name, None)

    def do(self, name: str, number: int, method: str, plan: list[Any], *pieces: Any) -> Any:
        """Carry out message ``number`` to a shard."""
        held = self._shards.get(name)
        if held is None:
            raise OutOfStep
        if held.next != number:
            raise OutOfStep(held.failure)
        _use(held.threads)
        try:
            with held.shard.working():
                result = getattr(held.shard, method)(*unpacked(plan, pieces))
        except Exception as error:
            held.next, held.failure = -1, f"{type(error).__name__}: {error}"
            raise
        held.next += 1
        return result


class _Held:
    def __init__(self, shard: Any, threads: int) -> None:
        self.shard, self.threads = shard, threads
        self.next = 0
        self.failure: str | None = None


def _use(threads: int) -> None:
    import numba

    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    numba.set_num_threads(min(threads, most))
