"""Whoever sends slowly is given up, and keeps nobody else waiting."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress

import pytest
import uvicorn

from onlinefw.serve import slow
from onlinefw.serve.app import make_app
from onlinefw.serve.bodies import Limits
from onlinefw.serve.server import bound, configured

from .client import Connection

SECONDS = 0.4
HEAD = b"POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n"


@pytest.fixture
def port(opened, tmp_path):
    """A server in a thread of this process, which waits for less than a second."""
    engine = opened(tmp_path / "log", new="matrix")
    limits = Limits(seconds=SECONDS)
    app = make_app(engine, limits=limits)
    server = uvicorn.Server(configured(app, limits))
    listening = bound("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(30)
    listening.close()


def sent_slowly(port, first, byte, most=20.0):
    """Send a beginning, then a byte every now and then; return all that comes until the end."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(0.1)
        connection.sendall(first)
        answer, end = b"", time.monotonic() + most
        while time.monotonic() < end:
            try:
                part = connection.recv(2**16)
                if not part:
                    return answer
                answer += part
            except TimeoutError:
                pass
            except ConnectionResetError:
                return answer
            try:
                connection.sendall(byte)
            except OSError:
                return answer
    raise AssertionError("the connection is still there")


def error_in(answer):
    assert answer.startswith(b"HTTP/1.1 408 ") and b"connection: close" in answer.lower()
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


def test_a_body_that_comes_byte_by_byte_gets_408(port):
    assert error_in(sent_slowly(port, HEAD + b"\r\n", b" ")) == (
        f"the body did not come within {SECONDS} seconds"
    )


def test_a_body_that_does_not_come_gets_408(port):
    assert "the body did not come" in error_in(sent_slowly(port, HEAD + b"\r\n", b""))


@pytest.mark.parametrize("first", [b"", b"POST /learn HTTP/1.1\r\n", HEAD + b"X: y"])
def test_headers_that_do_not_end_get_408(port, first):
    byte = b"" if not first else b"z"
    assert error_in(sent_slowly(port, first, byte)) == (
        f"the request did not come within {SECONDS} seconds"
    )


def test_a_body_that_nobody_reads_ends_as_well(port):
    answer = sent_slowly(port, HEAD.replace(b"/learn", b"/nothing") + b"\r\n", b" ")
    assert answer.startswith(b"HTTP/1.1 404 ")


def test_a_second_request_that_does_not_end_is_given_up(port):
    good = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = sent_slowly(port, good + HEAD, b"z")
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1") <= 2


def test_those_who_wait_between_requests_or_listen_are_not_slow(port):
    waiting, listening = Connection(port), Connection(port)
    assert waiting.ask("GET", "/health/live")[0] == 200
    listening.send("GET", "/events", b"")
    time.sleep(4 * SECONDS)
    assert waiting.ask("GET", "/health/live")[0] == 200
    listening._more()
    waiting.close()
    listening.close()


def test_slow_ones_keep_nobody_waiting(port):
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for one in slow:
        one.sendall(HEAD + b"\r\n")
    quick = Connection(port)
    event = {"user": "a", "item": "b", "value": 1}
    assert quick.ask("POST", "/learn", {"events": [event]})[0] == 200
    for one in [*slow, quick]:
        one.close()


MANY = 600
PAGE = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n"
ASKED = (MANY - 1) * (PAGE + b"\r\n") + PAGE + b"Connection: close\r\n\r\n"


def answers_fetched(port, wait, pause):
    """Ask for the same page many times; return how many answers come to one who then reads."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        connection.connect(("127.0.0.1", port))
        connection.settimeout(20.0)
        connection.sendall(ASKED)
        time.sleep(wait)
        found = bytearray()
        with suppress(ConnectionResetError):
            while part := connection.recv(2**16):
                found += part
                time.sleep(pause)
        return found.count(b"HTTP/1.1 200 OK")


def test_answers_that_nobody_reads_are_not_kept(port):
    assert answers_fetched(port, wait=6 * SECONDS, pause=0.0) < MANY


def test_who_reads_slowly_gets_all_answers(port):
    assert answers_fetched(port, wait=0.0, pause=1e-4) == MANY


def test_one_connection_too_many_is_told_when_to_come_again(port, monkeypatch):
    monkeypatch.setattr(slow, "MOST_CONNECTIONS", 2)
    first = Connection(port)
    assert first.ask("GET", "/model")[0] == 200
    second = Connection(port)
    status, said = second.ask("GET", "/model")
    assert status == 503 and "connections are open" in said["error"]
    for one in (first, second):
        one.close()
    end = time.monotonic() + 20
    while status == 503:  # until the server has seen that they left
        assert time.monotonic() < end
        third = Connection(port)
        status = third.ask("GET", "/model")[0]
        third.close()
    assert status == 200
