"""What runs in the process of a worker."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._devices import namespace, to_host
from ..._threads import one_blas_thread, use_threads
from .errors import OutOfStep
from .wire import unpacked

__all__ = ["Shard", "Worker"]

#: A verb of the past, or a function of the shard where the past itself has no such verb.
Method = str | Callable[..., Any]


class Shard:
    """A past of ``host/`` or ``cuda/`` with a part of the data."""

    def __init__(self, past: Any) -> None:
        self.past = past
        self.notes: dict[str, Any] = {}  # what functions of a table keep between messages

    def carry_out(self, method: Method, args: Any) -> Any:
        """Return the answer to one message, with numpy arrays."""
        with one_blas_thread():
            if isinstance(method, str):
                return answer_to_host(getattr(self.past, method)(*args))
            return answer_to_host(method(self, *args))


class Worker:
    """Holds shards of several pasts and carries out messages to them.

    The messages to a shard are numbered. A worker that was restarted has no shards, and one that
    has missed a message sees that from the number of the next; both raise
    :class:`~onlinefw.past.ray.errors.OutOfStep`, and the driver rebuilds the shard.
    """

    def __init__(self) -> None:
        self._shards: dict[str, _Held] = {}

    def ready(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def open(self, name: str, make: Callable[..., Any], args: tuple[Any, ...], threads: int) -> int:
        """Make a shard, in place of an older one of that name."""
        use_threads(threads)
        self._shards[name] = _Held(Shard(make(*args)), threads)
        return os.getpid()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that needs no shard."""
        return function(*args)

    def drop(self, name: str) -> None:
        """Forget a shard."""
        self._shards.pop(name, None)

    def do(self, name: str, number: int, method: Method, plan: list[Any], *pieces: Any) -> Any:
        """Carry out message ``number`` to a shard."""
        held = self._shards.get(name)
        if held is None:
            raise OutOfStep
        if held.next != number:
            raise OutOfStep(held.failure)
        use_threads(held.threads)
        try:
            answer = held.shard.carry_out(method, unpacked(plan, pieces))
        except Exception as error:
            held.next, held.failure = -1, f"{type(error).__name__}: {error}"
            raise
        held.next += 1
        return answer


class _Held:
    def __init__(self, shard: Shard, threads: int) -> None:
        self.shard, self.threads = shard, threads
        self.next = 0
        self.failure: str | None = None


def answer_to_host(answer: Any) -> Any:
    """Return an answer with its arrays in this process's memory."""
    if isinstance(answer, tuple):
        return tuple(map(answer_to_host, answer))
    if isinstance(answer, list):
        return list(map(answer_to_host, answer))
    if isinstance(answer, dict):
        return {name: answer_to_host(value) for name, value in answer.items()}
    return answer if namespace(answer) is np else to_host(answer)
