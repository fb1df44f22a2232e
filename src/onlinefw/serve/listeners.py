"""``GET /events``: what changes from second to second, for the page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .answers import json_bytes
from .engine import Engine, Refusal
from .handlers import Handlers

__all__ = ["Listeners"]

#: So many may listen at the same time, and hear something every so many seconds.
MOST_LISTENERS, EVERY = 32, 1.0
#: So many names of columns are told.
MOST_NAMES = 50
#: Proxies must not wait for more.
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Listeners:
    """Those who listen: each hears how it went so far, then every second how it is.

    Messages are server-sent events. The first is called ``course``; one called ``model`` says what
    the model holds, whenever that was found out anew; those without a name are the numbers of now.
    """

    def __init__(self, engine: Engine, handlers: Handlers) -> None:
        self._engine, self._handlers, self.n = engine, handlers, 0

    async def events(self, request: Request) -> Response:
        """GET /events."""
        if self.n >= MOST_LISTENERS:
            raise Refusal(429, f"{MOST_LISTENERS} listen already: try again later")
        self.n += 1
        return StreamingResponse(self._told(), media_type="text/event-stream", headers=HEADERS)

    async def _told(self) -> AsyncIterator[bytes]:
        stopping, facts = self._handlers.stopping, None
        try:
            yield _message(list(self._engine.course.points), b"course")
            while not stopping.is_set():
                yield _message(self.newest())
                if facts is not self._engine.newest_facts:
                    facts = self._engine.newest_facts
                    yield _message(self._held(facts), b"model")
                try:
                    await asyncio.wait_for(stopping.wait(), EVERY)
                except TimeoutError:
                    continue
        finally:
            self.n -= 1

    def newest(self) -> dict[str, Any]:
        """Return the numbers of now."""
        engine, facts = self._engine, self._engine.newest_facts
        progressive = engine.learned.progressive
        return {
            "time": time.time(),
            "events": engine.learned.n_events,
            "refused": self._handlers.n_refused,
            "waiting": engine.n_waiting,
            "score": engine.face.score_name,
            "progressive": progressive.mean,
            "window": progressive.of_window,
            "gap": facts.get("gap"),
            "mean loss": facts.get("mean loss"),
            "rank": facts.get("rank"),
        }

    def _held(self, facts: dict[str, Any]) -> dict[str, Any]:
        face: Any = self._engine.face
        names = getattr(face, "columns", None) or []
        width = getattr(face, "width", None)
        return {"facts": facts, "columns": names[:MOST_NAMES], "width": width}


def _message(value: Any, name: bytes = b"") -> bytes:
    return (b"event: " + name + b"\n" if name else b"") + b"data: " + json_bytes(value) + b"\n\n"
