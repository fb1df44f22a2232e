"""Connections that take too long to ask or to read are ended, and too many are refused."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .answers import error_answer, json_bytes

__all__ = ["impatient"]

#: More connections than this are answered with 503.
MOST_CONNECTIONS = 512


class _Impatient(HttpToolsProtocol):
    """uvicorn's, with two clocks: who sends byte by byte, or does not read, is not waited for.

    uvicorn itself counts the seconds between requests, not those of a request that does not end,
    nor those of an answer that nobody fetches.
    """

    seconds: float
    _clock: TimerHandle | None = None
    _fetching: TimerHandle | None = None
    _own: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._own = self.app
        self._wait(self.seconds)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait(self.seconds)

    def on_headers_complete(self) -> None:
        # A body that is read is given up by whoever reads it, who says so: later is soon enough.
        self._wait(2.0 * self.seconds)
        # uvicorn has a limit, too, but its answer is no JSON.
        is_over = len(self.connections) >= MOST_CONNECTIONS
        self.app = _too_many() if is_over else self._own
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._stop_fetching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Answers wait in memory, as they are not read: see whether they become fewer."""
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        """What waited has been read."""
        self._stop_fetching()
        super().resume_writing()

    def _look_again(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._fetching = self.loop.call_later(self.seconds, self._is_it_read, waiting)

    def _is_it_read(self, waiting: int) -> None:
        if self.transport.get_write_buffer_size() < waiting:
            self._look_again()
        else:
            self.transport.abort()

    def _stop_fetching(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None

    def _wait(self, seconds: float) -> None:
        self._stop()
        self._clock = self.loop.call_later(seconds, self._give_up)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _give_up(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is None:  # no request had its headers: nobody else answers
            why = f"the request did not come within {self.seconds:g} seconds"
            self._say("408 Request Timeout", why)
        elif not self.cycle.response_complete:  # the request before is being answered
            self._wait(self.seconds)
            return
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._say("400 Bad Request", "this is no HTTP: send a request such as GET /openapi.json")
        self.transport.close()

    def _say(self, status: str, why: str) -> None:
        """Answer what no application has heard of."""
        body = json_bytes({"error": why})
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)


def _too_many() -> Any:
    answer = error_answer(
        503, f"{MOST_CONNECTIONS} connections are open, and no more may be: send it again later"
    )
    answer.headers["connection"] = "close"
    return answer


def impatient(seconds: float) -> type[HttpToolsProtocol]:
    """Return the protocol that gives headers so many seconds, and a body twice as many."""
    return type("Impatient", (_Impatient,), {"seconds": seconds})
