"""Whatever is sent, the server goes on, says no traceback, and stays as small as it was."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from .client import Server
from .helpers import ratings
from .malformed import send_malformed


def test_hundreds_of_malformed_requests_leave_the_server_as_it_was(forks, tmp_path):
    server = Server("--new", "matrix", "--log", tmp_path / "events.db", forks=forks)
    server.ask("POST", "/learn", {"events": ratings(0, 50)})
    before = server.ask("GET", "/model")[1]

    def some(seed):
        chance = random.Random(seed)
        return [send_malformed(server.port, chance) for _ in range(60)]

    with ThreadPoolExecutor(8) as pool:
        statuses = [one for found in pool.map(some, range(8)) for one in found]
    assert 500 not in statuses and {400, 404, 413, 422} & set(statuses)
    assert server.ask("GET", "/model")[1]["digest"] == before["digest"]
    assert server.ask("POST", "/learn", {"events": ratings(50, 60)})[1]["learned"] == 10
    assert server.stop() == 0
