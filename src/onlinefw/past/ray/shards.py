"""The shards of one past: messages to them, their answers, and how lost ones are rebuilt."""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from ..._typing import Array
from .cluster import MESSAGE_BYTES, PATIENCE, Cluster, import_ray
from .errors import ClusterLost, OutOfStep, WorkerFailed
from .wire import Parcel
from .worker import Method

__all__ = ["Shards", "added", "waited"]

#: So many messages may wait for a worker before the driver does.
MOST_WAITING = 64
#: From TREE_FROM workers on, workers add up answers in a tree, FAN_IN at a time. Each level costs
#: one more exchange of messages, which takes less time than to send all vectors to the driver.
TREE_FROM, FAN_IN = 8, 4
#: A worker that dies so often over one question is not restarted again.
MOST_DEATHS = 5
#: What the user can do when the cluster is lost.
REMEDY = (
    "state_dict() of the learner still has the whole past, and so has the last checkpoint; go on "
    "from either with workers=None in one process, or with workers=N on another cluster"
)


class Rebuilds(Protocol):
    """Knows how to make a shard, and how to make it again."""

    def opening(self, k: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return a function and its arguments, which make shard k without data."""
        ...

    def messages(self, k: int) -> Iterator[tuple[Method, tuple[Any, ...]]]:
        """Yield the messages that bring a new shard k up to date."""
        ...


class Shards:
    """N shards, shard k with worker k; ``recovery`` knows how to make one, and to make it again."""

    def __init__(self, workers: int, device: str, recovery: Rebuilds) -> None:
        self.n, self._recovery = workers, recovery
        self.restarts = 0
        self._gone: str | None = None  # why the cluster is lost
        self._name = uuid.uuid4().hex
        cluster = Cluster.lease(workers, device)
        self._workers, self._cluster = cluster.workers(workers, device), cluster
        self._in_message = MESSAGE_BYTES if cluster.local else 0
        self._threads = cluster.threads(workers)
        self._closer = weakref.finalize(self, _close, cluster, self._workers, self._name)
        self._numbers = [0] * workers
        self._waiting = 0
        ray = import_ray()
        try:
            self.pids: list[int] = ray.get([self._open(k) for k in range(workers)])
        except ray.exceptions.RayTaskError as error:
            self.close()
            why = f"a worker could not begin: {str(error).strip().splitlines()[-1]}"
            if not isinstance(error, RuntimeError):  # else the message says what is missing
                why += (
                    "; are onlinefw and classes of your own installed there, in the same versions?"
                )
            raise WorkerFailed(why) from error

    def close(self) -> None:
        """Drop the shards and end the lease of the workers."""
        self._closer()

    @property
    def closed(self) -> bool:
        """Whether ``close`` has been called."""
        return not self._closer.alive

    def _open(self, k: int) -> Any:
        self._numbers[k] = 0
        make, args = self._recovery.opening(k)
        return self._workers[k].open.remote(self._name, make, args, self._threads)

    # Messages -------------------------------------------------------------------------------------

    def tell(self, method: Method, args: Sequence[tuple[Any, ...] | None]) -> None:
        """Send each shard a message (no message where ``args`` has None), without waiting.

        An error in a shard is raised by the next ``ask``.
        """
        self.check_alive()
        parcel = self._parcel()
        for k, arguments in enumerate(args):
            if arguments is not None:
                self._send(k, method, arguments, parcel)
        self._waiting += 1
        if self._waiting >= MOST_WAITING:
            errors = import_ray().exceptions.RayTaskError
            with suppress(ClusterLost, WorkerFailed, errors):  # the message was sent all the same
                self.ask(waited, [()] * self.n)

    def ask(self, method: Method, args: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Send each shard a message and return the answers (None where ``args`` has None)."""
        self.check_alive()
        parcel = self._parcel()
        refs = [None if a is None else self._send(k, method, a, parcel) for k, a in enumerate(args)]
        self._waiting = 0
        answers: list[Any] = [None] * self.n
        failure: Exception | None = None
        for k, (ref, arguments) in enumerate(zip(refs, args, strict=True)):
            if arguments is not None:
                try:
                    answers[k] = self._answer(k, ref, method, arguments)
                except import_ray().exceptions.RayTaskError as error:
                    failure = failure or error  # raised when all have answered
        if failure is not None:
            raise failure
        return answers

    def ask_in_tree(
        self, method: Method, args: Sequence[tuple[Any, ...]], summed: Sequence[bool]
    ) -> list[list[Any]] | None:
        """Ask all shards; each answer has as many parts as ``summed``. Return a list for each part.

        Workers add up the parts that are summed, so that only one sum is sent to this process.
        After an error the answer is None: the caller uses ``ask``, which handles it.
        """
        ray = import_ray()
        self.check_alive()
        parcel, parts = self._parcel(), len(summed)
        sent = [self._send(k, method, a, parcel, returns=parts) for k, a in enumerate(args)]
        columns = list(zip(*sent, strict=True)) if parts > 1 else [sent]
        refs = [
            [self._added(list(c))] if add else list(c)
            for c, add in zip(columns, summed, strict=True)
        ]
        try:
            return [ray.get(column) for column in refs]
        except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError):
            return None

    def _added(self, refs: list[Any]) -> Any:
        """Return a reference to the sum of some results, which workers add up in a tree."""
        while len(refs) > 1:
            groups = [refs[k : k + FAN_IN] for k in range(0, len(refs), FAN_IN)]
            refs = [
                self._workers[k * FAN_IN % self.n].call.remote(added, *group)
                for k, group in enumerate(groups)
            ]
        return refs[0]

    def _parcel(self) -> Parcel:
        return Parcel(self._in_message, in_pieces=self.n < TREE_FROM)

    def _send(
        self, k: int, method: Method, args: tuple[Any, ...], parcel: Parcel, returns: int = 1
    ) -> Any:
        number = self._numbers[k]
        self._numbers[k] += 1
        plan, pieces = parcel.pack(args)
        do = (
            self._workers[k].do.options(num_returns=returns) if returns > 1 else self._workers[k].do
        )
        return do.remote(self._name, number, method, plan, *pieces)

    def _answer(self, k: int, ref: Any, method: Method, args: tuple[Any, ...]) -> Any:
        ray = import_ray()
        for _ in range(MOST_DEATHS):
            try:
                return ray.get(ref)
            except OutOfStep as error:
                if error.failure is not None:
                    raise WorkerFailed(f"worker {k} failed earlier: {error.failure}") from None
            except ray.exceptions.RayActorError:
                pass
            except ray.exceptions.RayTaskError:  # an error of the question itself, or of a loss
                self._recover(k)
                raise
            except (ray.exceptions.RaySystemError, ray.exceptions.ObjectLostError) as error:
                raise self._lost(error) from error
            self._recover(k)
            ref = self._send(k, method, args, self._parcel())
        raise self._lost(f"worker {k} keeps dying")

    def rebuild_later(self) -> None:
        """Let all shards be rebuilt at the next ``ask``: they may have missed a message."""
        self._numbers = [number + 1 for number in self._numbers]

    def start(self, k: int, function: Callable[..., Any], *args: Any, returns: int) -> list[Any]:
        """Let a worker call a function; return references to its results."""
        self.check_alive()
        return self._workers[k].call.options(num_returns=returns).remote(function, *args)

    def first_of(self, refs: list[Any], again: Callable[[], list[Any]]) -> list[Any]:
        """Wait for the first of some results; return it, and the references to the others.

        If the worker has died, ``again`` starts the work once more.
        """
        ray = import_ray()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return [ray.get(refs[0]), *refs[1:]]
            except ray.exceptions.RayActorError as error:
                if time.monotonic() > deadline:
                    raise self._lost(error) from error
                time.sleep(0.05)
                refs = again()

    # Recovery -------------------------------------------------------------------------------------

    def _recover(self, k: int) -> None:
        """Wait for the worker's restart and rebuild its shard."""
        ray = import_ray()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                left = max(1.0, deadline - time.monotonic())
                self.pids[k] = ray.get(self._open(k), timeout=left)
                for method, args in self._recovery.messages(k):
                    ray.get(self._send(k, method, args, self._parcel()))
                self.restarts += 1
                return
            except ray.exceptions.GetTimeoutError as error:
                raise self._lost(f"worker {k} has not come back in {PATIENCE:g} s") from error
            except (ray.exceptions.RayActorError, OutOfStep) as error:
                if time.monotonic() > deadline:
                    raise self._lost(error) from error
                time.sleep(0.05)

    def check_alive(self) -> None:
        """Raise an error if the past is closed or the cluster lost, before anything changes."""
        if self.closed:
            raise RuntimeError(
                "this past was closed, and what its workers held is gone; to keep it, call "
                'use_place("cpu", None) or state_dict() before close()'
            )
        if self._gone is not None or not self._cluster.alive:
            raise self._lost(self._gone or "Ray was shut down")

    def _lost(self, why: Any) -> ClusterLost:
        self._gone = (str(why).splitlines() or [""])[0]
        return ClusterLost(f"the Ray cluster is lost ({self._gone}); {REMEDY}")


def added(*parts: Array) -> Array:
    """Return the sum of arrays, in this order."""
    total = np.array(parts[0])
    for part in parts[1:]:
        total += part
    return total


def waited(shard: Any) -> None:
    """Do nothing: the answer says that all earlier messages have been carried out."""


def _close(cluster: Cluster, workers: list[Any], name: str) -> None:
    if cluster.alive:
        for worker in workers:
            worker.drop.remote(name)
    cluster.give_back()
