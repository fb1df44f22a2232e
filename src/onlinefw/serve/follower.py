"""A reader beside the writer: it learns what the log has, and answers."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any

from .engine import Engine
from .faces import face_of
from .garbage import let_go
from .log import EventLog, LogError
from .rebuilding import Learned, learn_logged, rebuilt

__all__ = ["Follower"]

#: The log is looked at every so many seconds.
EVERY = 0.05


class Follower(Engine):
    """Learns from a log that another process writes, a moment later, and never writes to it."""

    no_learning = "this server follows the log of another one: send events to that one"

    def __init__(self, learned: Learned, log: EventLog) -> None:
        super().__init__(learned)
        self.log, self._looked = log, 0.0
        #: When the newest event of the log had been learned, and how many were left then.
        self._up_to_date, self._behind = monotonic(), 0
        self.trouble = ""

    def lag(self) -> dict[str, Any]:
        """Return how many events behind the log the model was, and when it last was not."""
        seconds = round(monotonic() - self._up_to_date, 3)
        return {"events": self._behind, "seconds": seconds, "looks every seconds": EVERY}

    def _due(self) -> bool:
        return monotonic() - self._looked >= EVERY

    def _patience(self) -> float:
        return EVERY

    def _turn(self) -> None:
        super()._turn()
        if not self._due():
            return
        try:
            self._catch_up()
            self.trouble = ""
        except (LogError, ValueError) as error:
            if not self.trouble:
                print(f"ofw serve: {error}", file=sys.stderr)
            self.trouble = str(error)
        self._looked = monotonic()

    def _catch_up(self) -> None:
        began = monotonic()
        while True:
            with self.log.at_one_time():
                piece = self._next()
                self._behind = max(0, self.log.last - self.learned.seq - len(piece))
            if not piece:
                break
            if getattr(self.face, "width", 0) is None:
                self.face = self.learned.face = face_of(self.sides.back, self.log.facts)
            self._learn(piece)
            if self._tasks:  # whoever asks does not wait for all of it
                return
        self._up_to_date, self._behind = began, 0

    def _next(self) -> list[Any]:
        """Return the events that come next; begin anew if they do not follow what was learned."""
        if self.log.facts.get("pruned", 0) > self.learned.seq:
            self._rebuild()
        piece = next(self.log.after(self.learned.seq), [])
        if any(one.kind == "forget" for one in piece):
            self._rebuild()
            return []
        return piece

    def _learn(self, piece: list[Any]) -> None:
        learned = self.learned
        learned.model = self.sides.back
        events = learn_logged(learned, piece)
        learned.model = None
        learned.n_events += sum(one.kind != "forget" for one in piece)
        self.sides.swap()
        if events:
            self.face.learn(self.sides.back, [one.values for one in events])

    def _rebuild(self) -> None:
        """Somebody was forgotten, or the log begins later: begin anew."""
        learned = rebuilt(self.log, lambda _: None)
        self.sides.replace(learned.model)
        learned.model = None
        self.learned, self.face = learned, learned.face
        self._version += 1
        self._facts = None
        let_go()

    def _end(self) -> None:
        self.log.close()
