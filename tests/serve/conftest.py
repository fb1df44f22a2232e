"""Servers to ask: forked from a process that has loaded everything."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from onlinefw.serve.opening import ServeOptions, open_engine

from .client import Forks, Server


@pytest.fixture(scope="session")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def server(forks, tmp_path):
    """A new server for ratings; its log is ``events.db``."""
    server = Server("--new", "matrix", "--log", tmp_path / "events.db", forks=forks)
    yield server
    server.stop()


@pytest.fixture
def opened():
    """Open engines without HTTP, and close them."""
    with ExitStack() as held:

        def open_(log=None, **options):
            said = []
            engine = open_engine(ServeOptions(log=log, **options), said.append, held)
            engine.said = said
            engine.start()
            held.callback(lambda: engine.is_alive and engine.close())
            return engine

        open_.release = held.close
        yield open_
