"""What answers from a model while one thread lets it learn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Condition, Thread
from time import monotonic
from typing import Any

from ..files import digest
from ..fitting.described import described
from .rebuilding import Learned
from .sides import Sides

__all__ = ["Engine", "Refusal"]

#: What takes long to say about a model is said again after so many seconds at the earliest.
FACTS_FOR = 10.0


class Refusal(Exception):
    """A request that is not carried out: an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str, **more: Any) -> None:
        super().__init__(sentence)
        self.status, self.more = status, more


class Engine:
    """A model that answers; kinds of engines differ in what it learns from.

    One thread does everything that changes the model, or takes long.
    """

    #: Why events cannot be learned here.
    no_learning = "this is a model file, which only predicts: serve a checkpoint to learn"

    def __init__(self, learned: Learned) -> None:
        self.learned, self.face = learned, learned.face
        self.sides = Sides(learned.model)
        learned.model = None  # the two copies of it are in ``sides``
        self._tasks: deque[Any] = deque()
        self._wake = Condition()
        self._closing = False
        #: Whether the end should not wait for what can be made again.
        self.in_haste = False
        self._facts: tuple[int, float, dict[str, Any]] | None = None
        self._digest: tuple[int, str] | None = None
        #: Grows when the model becomes another one without an event, as in forgetting.
        self._version = 0
        self._thread = Thread(target=self._run, name="ofw-learns", daemon=True)

    def start(self) -> None:
        """Let the thread run."""
        self._thread.start()

    def close(self) -> None:
        """Finish what waits, and end."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        self._thread.join()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Lend the model for a question; nobody who learns is waited for."""
        with self.sides.reading() as model:
            yield model

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def _has_died(self) -> bool:
        return self._thread.ident is not None and not self._thread.is_alive()

    @property
    def n_waiting(self) -> int:
        """How many events wait to be learned."""
        return 0

    def lag(self) -> dict[str, Any]:
        """Return how far behind the model is."""
        return {"events": self.n_waiting}

    # Questions that take long ---------------------------------------------------------------------

    def ask(self, job: Callable[[Any], Any]) -> Future[Any]:
        """Let the thread ask the copy that nobody reads, which is as new as the other."""
        return self._put(("ask", job))

    def facts(self) -> Future[Any]:
        """Return what the model is and holds, with the digest of now."""
        return self.ask(self._said)

    def _said(self, model: Any) -> dict[str, Any]:
        learned = self.learned
        said: dict[str, Any] = {"events": learned.n_events, "digest": self._digest_of(model)}
        if not model.__sklearn_is_fitted__():
            return {**said, "model": type(model).__name__, "rounds": 0}
        now, kept = monotonic(), self._facts
        if kept is None or (now - kept[1] > FACTS_FOR and kept[0] != learned.seq):
            kept = self._facts = learned.seq, now, described(model)
        told = {"facts of event": kept[0]}
        return {**said, **kept[2], **told, **self._counts(model)}

    def _counts(self, model: Any) -> dict[str, Any]:
        learned = self.learned
        counts: dict[str, Any] = {"rounds": int(model.n_rounds_), "score": self.face.score_name}
        for name, scores in (("progressive", learned.progressive), ("served", learned.served)):
            if scores.n:
                counts[name] = {
                    "mean": scores.mean,
                    "newest 1000": scores.of_window,
                    "events": scores.n,
                }
        return counts

    def _digest_of(self, model: Any) -> str:
        now = self.learned.seq + (self._version << 48)
        if self._digest is None or self._digest[0] != now:
            self._digest = now, digest(model)
        return self._digest[1]

    @property
    def newest_facts(self) -> dict[str, Any]:
        """What was last said about the model, at no cost."""
        return {} if self._facts is None else self._facts[2]

    # The thread -----------------------------------------------------------------------------------

    def _put(self, task: tuple[str, Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # whoever does not wait for it cannot call it off
        with self._wake:
            if self._closing:
                raise Refusal(503, "the server is shutting down: send it again in a while")
            if self._has_died:
                raise Refusal(503, "the thread that learns has ended: restart the server")
            self._tasks.append((*task, future))
            self._wake.notify_all()
        return future

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._tasks and not self._closing and not self._due():
                    self._wake.wait(self._patience())
                if self._closing and not self._tasks:
                    break
            self._turn()
        self._end()

    def _turn(self) -> None:
        """Do what waits longest."""
        if not self._tasks:
            return
        _, job, future = self._tasks.popleft()
        try:
            future.set_result(job(self.sides.back))
        except BaseException as error:
            future.set_exception(error)

    def _due(self) -> bool:
        """Whether there is something to do though nobody waits."""
        return False

    def _patience(self) -> float | None:
        """How long to wait before it may be due, in seconds."""
        return None

    def _end(self) -> None:
        """Do what is left at the end."""
