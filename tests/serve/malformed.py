"""Requests as they should not be: wrong bytes, wrong JSON, wrong values, wrong manners."""

from __future__ import annotations

import json
import random
import socket
from typing import Any

from .helpers import ratings

__all__ = ["send_malformed"]

PATHS = ("/learn", "/predict", "/label", "/recommend", "/recommend-for", "/forget", "/model",
         "/because?user=%ff&item=\\ud800", "/nothing", "/" + "x" * 3000)  # fmt: skip
VALUES: list[Any] = [None, True, -1, 0, 1.5, 1e308, -1e308, 10**30, "", "x" * 1000, "\x00",
                     "\u202e", [], {}, [[]], {"a": 1}, ["u1"], float("nan")]  # fmt: skip


def send_malformed(port: int, chance: random.Random) -> int | None:
    """Send one; return the status of the answer, None if the connection ended without one.

    Whatever comes back must be an answer of a few kilobytes at most, without a traceback.
    """
    data = chance.choice((_bytes, _json, _fields, _http, _half))(chance)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(data)
            if chance.random() < 0.5:
                connection.shutdown(socket.SHUT_WR)
            elif chance.random() < 0.1:
                return None  # leaves without hearing the answer
            connection.settimeout(0.5 if data.endswith(b"\x01half") else 20)
            answer = connection.recv(2**16)
        except (OSError, TimeoutError):
            return None
    assert b"Traceback" not in answer and len(answer) < 2**16
    return int(answer.split()[1]) if answer else None


def _request(path: str, body: bytes, method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _bytes(chance: random.Random) -> bytes:
    """Bytes that are no JSON, or no UTF-8."""
    body = chance.choice((chance.randbytes(chance.randrange(200)), b"[" * 50_000, b'{"a":' * 3000))
    return _request(chance.choice(PATHS), body)


def _json(chance: random.Random) -> bytes:
    """JSON of a wrong shape."""
    body: Any = chance.choice(VALUES)
    for _ in range(chance.randrange(4)):
        name = chance.choice(("events", "rows", "labels", "user", "users", "items", "id", "n"))
        body = chance.choice(({name: body}, [body, body]))
    return _request(chance.choice(PATHS), json.dumps(body).encode())


def _fields(chance: random.Random) -> bytes:
    """Events with one field spoiled or missing, whole or cut short."""
    event: dict[str, Any] = dict(ratings(0, 1)[0])
    name = chance.choice(list(event))
    event[name] = chance.choice(VALUES)
    if chance.random() < 0.3:
        del event[name]
    body = json.dumps({"events": [event]}).encode()
    return _request("/learn", body[: chance.randrange(len(body))])


def _http(chance: random.Random) -> bytes:
    """No HTTP, or half of it."""
    good = _request("/learn", b"{}")
    return chance.choice(
        (
            chance.randbytes(300),
            good.replace(b"HTTP/1.1", b"HTTP/9.9"),
            good.replace(b"POST", b"P\x00ST"),
            good.replace(b"Content-Length: 2", b"Content-Length: -2"),
            good.replace(b"Content-Length: 2", b"Content-Length: 99999999999999999999"),
            good.replace(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"zz\r\n",
            b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
        )
    )


def _half(chance: random.Random) -> bytes:
    """A body of which the rest never comes."""
    head = b"POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n"
    return head + b"\x01half"
