"""Killed at any moment: no acknowledged event is lost, none is learned twice."""

from __future__ import annotations

import random
import threading
import time

import pytest

from onlinefw.serve.replaying import replayed

from .client import Server
from .helpers import ratings

KILLS = 20


class Load:
    """A client that sends batches in their order, each again until it is acknowledged."""

    def __init__(self, name: str) -> None:
        self.name, self.acknowledged, self.learned = name, 0, 0
        self._stop = threading.Event()

    def run(self, server: Server) -> threading.Thread:
        self._stop.clear()
        thread = threading.Thread(target=self._send, args=(server,))
        thread.start()
        return thread

    def _send(self, server: Server) -> None:
        try:
            connection = server.connection()
            while not self._stop.is_set():
                n = 1 + self.acknowledged % 9
                events = ratings(self.acknowledged, self.acknowledged + n)
                events = [{**one, "id": f"{self.name}-{one['id']}"} for one in events]
                status, said = connection.ask("POST", "/learn", {"events": events})
                assert status == 200, said
                assert said["learned"] + said["repeated"] == n
                self.acknowledged += n
        except OSError:  # it was killed
            return

    def stop(self) -> None:
        self._stop.set()


@pytest.mark.slow
def test_twenty_kills_under_load_lose_nothing(forks, tmp_path):
    path, chance = tmp_path / "events.db", random.Random(0)
    loads = [Load("a"), Load("b"), Load("c")]
    for _ in range(KILLS):
        server = Server("--new", "matrix", "--log", path, "--checkpoint-every", "50", forks=forks)
        acknowledged = sum(load.acknowledged for load in loads)
        said = server.ask("GET", "/model")[1]
        assert acknowledged <= said["events"] <= acknowledged + 9 * len(loads)
        found = replayed(path, [], None)
        assert (found["events"], found["digest"]) == (said["events"], said["digest"])
        threads = [load.run(server) for load in loads]
        time.sleep(chance.uniform(0.0, 0.25))
        server.kill()
        for load, thread in zip(loads, threads, strict=True):
            load.stop()
            thread.join()
    server = Server("--log", path, forks=forks)
    threads = [load.run(server) for load in loads]
    time.sleep(0.2)
    for load, thread in zip(loads, threads, strict=True):
        load.stop()
        thread.join()
    # Every batch that was ever sent is acknowledged now, so the counts are the same.
    assert server.ask("GET", "/model")[1]["events"] == sum(load.acknowledged for load in loads)
    assert server.stop() == 0
