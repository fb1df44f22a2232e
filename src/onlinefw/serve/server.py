"""The process: a socket, an engine, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

import uvicorn

from .app import make_app
from .bodies import Limits
from .engine import Engine
from .garbage import keep_for_good
from .rebuilding import Say
from .slow import impatient

__all__ = ["bound", "configured", "serve"]

#: Threads change places after so many seconds: a prediction does not wait longer for the one that
#: learns, while it is in Python.
SWITCH = 0.0005
#: How long the end waits for answers that are being made, in seconds.
PATIENCE = 30
KEEP_ALIVE = 75


def bound(host: str, port: int) -> socket.socket:
    """Return a socket at which requests come; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise OSError(f"{host}:{port}: {error.strerror or error}; choose another --port") from None
    return listening


class _Server(uvicorn.Server):
    """Ends when told to, whole: answers that are being made are finished."""

    def __init__(self, config: uvicorn.Config, engine: Engine, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._engine, self._stopping = engine, stopping
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: Any = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # ours are there from before the start until after the end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:  # Ctrl-C twice: no more waiting
            self.force_exit = True
            self._engine.in_haste = True
        self.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)


def configured(app: Any, limits: Limits) -> uvicorn.Config:
    """Return how uvicorn serves the application."""
    return uvicorn.Config(
        app,
        http=impatient(limits.seconds),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=PATIENCE,
    )


def serve(
    engine: Engine, listening: socket.socket, token: str | None, limits: Limits, say: Say
) -> None:
    """Answer until SIGTERM or Ctrl-C; then finish, and let the engine write its checkpoint."""
    sys.setswitchinterval(SWITCH)
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    app = make_app(engine, token=token, limits=limits)
    server = _Server(configured(app, limits), engine, app.state.handlers.stopping)
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, server.handle_exit)
    keep_for_good()
    engine.start()
    host, port = listening.getsockname()[:2]
    address = f"[{host}]" if ":" in host else host
    say(f"http://{address}:{port} answers; {engine.learned.n_events:,} events learned")
    try:
        server.run(sockets=[listening])
    finally:
        engine.close()
    say(f"ended; {engine.learned.n_events:,} events learned")
