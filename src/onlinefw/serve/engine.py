"""What answers from a model while one thread lets it learn."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Condition, Thread
from time import monotonic, time
from typing import Any, NamedTuple

from ..files import digest
from ..fitting.described import described
from .course import Course
from .rebuilding import Learned
from .sides import Sides

__all__ = ["Engine", "Refusal"]

#: What takes long to say about a model, such as its certificate, is said again after so many
#: seconds if there were events, and later if it would take more than such a part of the time.
FACTS_FOR, FACTS_SHARE = 10.0, 0.05


class _Facts(NamedTuple):
    """What was said about a model, of which event, and when it may be said again."""

    seq: int
    again: float
    said: dict[str, Any]


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
        self._facts: _Facts | None = None
        self._digest: tuple[int, str] | None = None
        #: Grows when the model becomes another one without an event, as in forgetting.
        self._version = 0
        #: Time, events, progressive score of all and of the newest, certificate.
        self.course = Course()
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
        if self._facts_are_due():
            self._renew_facts()
        kept = self._facts
        assert kept is not None
        told = {"facts of event": kept.seq}
        return {**said, **kept.said, **told, **self._counts(model)}

    def _facts_are_due(self) -> bool:
        """Whether there were events since the facts were said, long enough ago."""
        kept = self._facts
        if kept is None:
            return self.sides.back.__sklearn_is_fitted__()
        return kept.seq != self.learned.seq and monotonic() >= kept.again

    def _renew_facts(self) -> None:
        """Describe the copy that nobody reads."""
        began = monotonic()
        said = described(self.sides.back)
        now = monotonic()
        again = now + max(FACTS_FOR, (now - began) / FACTS_SHARE)
        self._facts = _Facts(self.learned.seq, again, said)

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
        return {} if self._facts is None else self._facts.said

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
                while not (self._tasks or self._closing or self._due() or self._facts_are_due()):
                    self._wake.wait(self._pause())
                if self._closing and not self._tasks:
                    break
            self._note()
            self._turn()
            self._keep_facts_new()
        self._end()

    def _pause(self) -> float | None:
        """How long there is nothing to do if nobody asks, in seconds."""
        pauses = [self._patience()]
        if self._facts is not None and self._facts.seq != self.learned.seq:
            pauses.append(max(0.0, self._facts.again - monotonic()))
        return min((one for one in pauses if one is not None), default=None)

    def _note(self) -> None:
        """Note for the charts how it is before the next turn."""
        now = time()
        if self.course.is_due(now):
            learned, scores = self.learned, self.learned.progressive
            gap = self.newest_facts.get("gap")
            self.course.note(now, learned.n_events, scores.mean, scores.of_window, gap)

    def _keep_facts_new(self) -> None:
        if self._closing or not self._facts_are_due():
            return
        try:
            self._renew_facts()
        except Exception as error:  # nobody has asked: the model learns and answers without
            print(f"ofw serve: nothing can be said about the model: {error}", file=sys.stderr)
            again = monotonic() + FACTS_FOR
            self._facts = _Facts(self.learned.seq, again, self.newest_facts)

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
