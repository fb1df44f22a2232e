"""The shards of one past: messages to all, answers of all, and what is lost comes back."""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..._typing import Array
from .cluster import MESSAGE_BYTES, PATIENCE, Cluster, import_ray
from .errors import ClusterLost, OutOfStep, WorkerFailed
from .wire import Parcel
from .worker import Method

__all__ = ["Message", "Shards", "added", "waited"]

#: What a shard is to do, and the arguments.
Message = tuple[Method, tuple[Any, ...]]

#: So many messages may wait for a worker before the driver does.
MOST_WAITING = 64
#: From so many workers on, sums are made in a tree of so many at a time; one exchange of messages
#: more at every level costs less than that many vectors through the driver's link.
TREE_FROM, FAN_IN = 8, 4
#: A worker that dies so often over one question is given up.
MOST_DEATHS = 5
#: What a lost cluster leaves to do.
REMEDY = (
    "state_dict() of the learner still holds the whole past, as does the last checkpoint: both go "
    "on with workers=None in one process, or with workers=N on another cluster"
)


class Shards:
    """N shards, shard k with worker k.

    Parameters
    ----------
    workers : int
        N.
    device : "cpu" or "cuda"
        Where shards live; each on "cuda" has a GPU of its own.
    opening : method
        ``opening(k)`` returns a function and its arguments: what makes shard k, without data.
    rebuild : method
        ``rebuild(k)`` returns the messages that bring a new shard k to where it should be now.
    """

    def __init__(
        self,
        workers: int,
        device: str,
        opening: Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]],
        rebuild: Callable[[int], Iterable[Message]],
    ) -> None:
        self.n = workers
        # Not a cycle: a past, with its workers, goes as soon as nobody needs it.
        self._opening, self._rebuild = weakref.WeakMethod(opening), weakref.WeakMethod(rebuild)
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
            if not isinstance(error, RuntimeError):  # else a shard itself has said what it needs
                why += (
                    "; are onlinefw and classes of your own installed there, in the same versions?"
                )
            raise WorkerFailed(why) from error

    def close(self) -> None:
        """Give shards and workers back."""
        self._closer()

    @property
    def closed(self) -> bool:
        """Whether they have been given back."""
        return not self._closer.alive

    def _open(self, k: int) -> Any:
        self._numbers[k] = 0
        opening = self._opening()
        assert opening is not None
        make, args = opening(k)
        return self._workers[k].open.remote(self._name, make, args, self._threads)

    # Messages -------------------------------------------------------------------------------------

    def tell(self, method: Method, args: Sequence[tuple[Any, ...] | None]) -> None:
        """Send each shard a message (None: nothing to say), without waiting.

        What goes wrong shows at the next question.
        """
        self.check_alive()
        parcel = self._parcel()
        for k, arguments in enumerate(args):
            if arguments is not None:
                self._send(k, method, arguments, parcel)
        self._waiting += 1
        if self._waiting >= MOST_WAITING:
            errors = import_ray().exceptions.RayTaskError
            with suppress(ClusterLost, WorkerFailed, errors):  # the message itself is on its way
                self.ask(waited, [()] * self.n)

    def ask(self, method: Method, args: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Ask the shards and return their answers (None where nothing was asked)."""
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
        """Ask all shards, whose answers have as many parts as ``summed``; return part by part.

        Workers add up the parts that are summed among themselves, so that one sum comes here. If
        something goes wrong the answer is None: the plain way finds out whose fault it is.
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
        """Return a reference to a sum, which workers make in a tree."""
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

    def lose_step(self) -> None:
        """Let all shards be rebuilt at the next question: they may have heard too little."""
        self._numbers = [number + 1 for number in self._numbers]

    def start(self, k: int, function: Callable[..., Any], *args: Any, returns: int) -> list[Any]:
        """Let a worker call a function; return references to its results."""
        self.check_alive()
        return self._workers[k].call.options(num_returns=returns).remote(function, *args)

    def first_of(self, refs: list[Any], again: Callable[[], list[Any]]) -> list[Any]:
        """Wait for the first of some results; the others stay where they are.

        If the worker has died, it is asked again.
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
                for method, args in self._messages(k):
                    ray.get(self._send(k, method, args, self._parcel()))
                self.restarts += 1
                return
            except ray.exceptions.GetTimeoutError as error:
                raise self._lost(f"worker {k} has not come back in {PATIENCE:g} s") from error
            except (ray.exceptions.RayActorError, OutOfStep) as error:
                if time.monotonic() > deadline:
                    raise self._lost(error) from error
                time.sleep(0.05)

    def _messages(self, k: int) -> Iterable[Message]:
        rebuild = self._rebuild()
        assert rebuild is not None
        return rebuild(k)

    def check_alive(self) -> None:
        """Refuse to go on without a cluster, before anything changes."""
        if self.closed:
            raise RuntimeError(
                "the workers of this past have been closed, with all they held; "
                'use_place("cpu", None), or state_dict(), before close() keeps it'
            )
        if self._gone is not None or not self._cluster.alive:
            raise self._lost(self._gone or "Ray was shut down")

    def _lost(self, why: Any) -> ClusterLost:
        self._gone = (str(why).splitlines() or [""])[0]
        return ClusterLost(f"the Ray cluster is lost ({self._gone}); {REMEDY}")


def added(*parts: Array) -> Array:
    """Return the sum of arrays, in this order.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.ray.shards import added
    >>> added(np.ones(2), np.arange(2.0))
    array([1., 2.])
    """
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
