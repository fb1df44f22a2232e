"""``ofw serve``: events a second, latencies, memory, kills, and malformed requests.

    ONLINEFW_DATA=folder python benchmarks/serve/serve.py [--only PART ...] [--kills 300] [--write]

The model has learned the million ratings of MovieLens 1M; the events are the same ratings again,
in random order, so users and items have as many ratings as there. Client and server are two
processes on the same machine. ``--write`` replaces serve.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import onlinefw as ofw
from onlinefw.files import save_checkpoint

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from table import write_table  # noqa: E402
from tests.serve.client import Forks, Server  # noqa: E402
from tests.serve.malformed import send_malformed  # noqa: E402
from tests.serve.test_kills import Load  # noqa: E402

HERE = Path(__file__).parent
BATCH = 100


def ml_1m() -> tuple[list, list, list]:
    """Return users, items and ratings in the order of time."""
    folder = Path(os.environ.get("ONLINEFW_DATA", "."))
    with np.load(folder / "ml-1m.npz") as found:
        return tuple(found[name].tolist() for name in ("user", "item", "rating"))


class Stream:
    """Events without end, as bodies of requests."""

    def __init__(self, seed: int = 0) -> None:
        self.columns = ml_1m()
        self.rng, self.n = np.random.default_rng(seed), 0
        self.lock = threading.Lock()

    def events(self, n: int) -> list[dict]:
        """Return the next events."""
        users, items, values = self.columns
        with self.lock:
            chosen = self.rng.integers(len(users), size=n).tolist()
            first, self.n = self.n, self.n + n
        return [
            {"id": f"e{first + k}", "user": users[j], "item": items[j], "value": values[j]}
            for k, j in enumerate(chosen)
        ]

    def body(self, n: int) -> bytes:
        """Return the next events as a request has them."""
        return json.dumps({"events": self.events(n)}).encode()


def base(folder: Path) -> Path:
    """Make a checkpoint of a model that has learned all ratings."""
    path = folder / "ml-1m.ckpt"
    if not path.exists():
        users, items, values = ml_1m()
        model = ofw.FrankWolfeMatrixCompletion()
        model.learn(
            [[str(u), str(i)] for u, i in zip(users, items, strict=True)], np.array(values, float)
        )
        save_checkpoint(model, path)
    return path


def from_many(server: Server, connections: int, bodies: list[bytes]) -> tuple[float, np.ndarray]:
    """Send bodies over several connections; return the seconds, and those of each request."""
    seconds: list[float] = []

    def send(mine: list[bytes]) -> None:
        connection = server.connection()
        for body in mine:
            began = time.perf_counter()
            connection.send("POST", "/learn", body)
            status, text = connection.receive()
            seconds.append(time.perf_counter() - began)
            assert status == 200, text
        connection.close()

    began = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(send, [bodies[k::connections] for k in range(connections)]))
    return time.perf_counter() - began, np.array(seconds)


def throughput(folder: Path, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Learn batches of 100, then single events."""
    stream = Stream()
    server = Server(base(folder), "--log", folder / "throughput.db")
    lines = []
    for connections in (1, 4, 16):
        bodies = [stream.body(BATCH) for _ in range(options.batches)]
        cpu = server.cpu_seconds
        seconds, _ = from_many(server, connections, bodies)
        n, used = BATCH * len(bodies), server.cpu_seconds - cpu
        what = f"events a second, batches of {BATCH}, {connections} connections"
        lines.append((what, f"{n / seconds:,.0f}", f"server CPU {1e6 * used / n:.0f} us an event"))
    bodies = [stream.body(1) for _ in range(options.batches * 4)]
    seconds, each = from_many(server, 16, bodies)
    what = "single events a second, 16 connections"
    p99 = f"p50 {1e3 * np.median(each):.1f} ms, p99 {1e3 * np.percentile(each, 99):.1f} ms"
    lines.append((what, f"{len(bodies) / seconds:,.0f}", p99))
    server.stop()
    lines.append(("a sync of this disk", f"{1e3 * sync_seconds(folder):.1f} ms", "median"))
    return lines


def sync_seconds(folder: Path) -> float:
    """Return how long the disk takes to sync 8 kB."""
    seconds = []
    with (folder / "sync").open("wb") as file:
        for _ in range(100):
            file.write(bytes(8192))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def latency(folder: Path, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Predict while events come at 2,000 a second, with checkpoints and certificates."""
    stream, stop = Stream(1), threading.Event()
    args = ("--checkpoint-every", "10000")
    server = Server(base(folder), "--log", folder / "latency.db", *args)
    sent = [0]

    def teach() -> None:
        connection, began = server.connection(), time.perf_counter()
        while not stop.is_set():
            connection.send("POST", "/learn", stream.body(BATCH))
            assert connection.receive()[0] == 200
            sent[0] += BATCH
            time.sleep(max(0.0, began + sent[0] / 2000 - time.perf_counter()))

    def certify() -> None:
        while not stop.wait(5.0):
            server.ask("GET", "/model")

    threads = [threading.Thread(target=teach), threading.Thread(target=certify)]
    for thread in threads:
        thread.start()
    users, items, _ = ml_1m()
    connection, seconds = server.connection(), []
    began = time.perf_counter()
    while time.perf_counter() < began + options.seconds:
        k = random.randrange(len(users))
        body = json.dumps({"rows": [{"user": users[k], "item": items[k]}]}).encode()
        start = time.perf_counter()
        connection.send("POST", "/predict", body)
        assert connection.receive()[0] == 200
        seconds.append(time.perf_counter() - start)
        time.sleep(0.002)
    rate = sent[0] / (time.perf_counter() - began)
    stop.set()
    for thread in threads:
        thread.join()
    server.stop()
    p50, p99, most = 1e3 * np.percentile(seconds, [50, 99, 100])
    what = f"p99 of /predict while learning {rate:,.0f} events a second"
    more = f"p50 {p50:.2f} ms, longest {most:.0f} ms, {len(seconds):,} predictions"
    return [(what, f"{p99:.1f} ms", f"{more}; a checkpoint and a certificate every 5 s")]


def memory(folder: Path, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Learn a million events with a half-life."""
    stream, path = Stream(2), folder / "memory.db"
    args = ("--new", "matrix", "--set", "half_life=20000", "--log", path, "--prune")
    server, sizes = Server(*args), []
    for _ in range(10):
        bodies = [stream.body(1000) for _ in range(options.events // 10_000)]
        from_many(server, 4, bodies)
        sizes.append(server.memory / 2**20)
    server.stop()
    what = f"memory after each tenth of {options.events:,} events, half-life 20,000"
    return [
        (what, f"{sizes[1]:.0f} to {max(sizes[1:]):.0f} MiB", " ".join(f"{s:.0f}" for s in sizes))
    ]


def start(folder: Path, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Start with many events behind the last checkpoint."""
    stream, path = Stream(3), folder / "start.db"
    server = Server("--new", "matrix", "--log", path, "--checkpoint-every", "100000000")
    from_many(server, 4, [stream.body(1000) for _ in range(options.events // 1000)])
    before = server.ask("GET", "/model")[1]
    server.kill()
    server = Server("--log", path, wait=600)
    after = server.ask("GET", "/model")[1]
    same = "the same digest" if after["digest"] == before["digest"] else "ANOTHER DIGEST"
    server.stop()
    what = f"start with {after['events']:,} events behind the last checkpoint"
    return [(what, f"{server.seconds_to_start:.1f} s", same)]


def kills(folder: Path, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Kill the server at random moments under load."""
    from onlinefw.serve.replaying import replayed

    path, chance, forks = folder / "kills.db", random.Random(0), Forks()
    loads = [Load(name) for name in "abcd"]
    checked = 0
    for k in range(options.kills):
        server = Server("--new", "matrix", "--log", path, "--checkpoint-every", "997", forks=forks)
        acknowledged = sum(load.acknowledged for load in loads)
        said = server.ask("GET", "/model")[1]
        assert acknowledged <= said["events"] <= acknowledged + 9 * len(loads), (k, said)
        if k % 10 == 0 or k == options.kills - 1:
            found = replayed(path, [], None)
            assert (found["events"], found["digest"]) == (said["events"], said["digest"]), k
            checked += 1
        threads = [load.run(server) for load in loads]
        time.sleep(chance.uniform(0.0, 0.4))
        server.kill()
        for load, thread in zip(loads, threads, strict=True):
            load.stop()
            thread.join()
    forks.close()
    n = sum(load.acknowledged for load in loads)
    what = f"kills under load, {n:,} events acknowledged"
    return [(what, str(options.kills), f"none lost, none twice; {checked} replays, same digest")]


def malformed(folder: Path, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Send malformed requests from several connections."""
    server = Server("--new", "matrix", "--log", folder / "malformed.db")
    server.ask("POST", "/learn", {"events": Stream(4).events(1000)})

    def some(seed: int) -> list:
        chance = random.Random(seed)
        return [send_malformed(server.port, chance) for _ in range(options.malformed // 20)]

    sizes, statuses = [], []
    for part in range(2):
        with ThreadPoolExecutor(10) as pool:
            for found in pool.map(some, range(part * 10, part * 10 + 10)):
                statuses += found
        sizes.append(server.memory / 2**20)
    assert 500 not in statuses
    assert server.ask("POST", "/learn", {"events": [{"user": 1, "item": 1, "value": 1}]})[0] == 200
    server.stop()
    said = [line for line in server.said if "Traceback" in line]
    assert not said, said
    counts = {str(one): statuses.count(one) for one in sorted(set(statuses), key=str)}
    what = "malformed requests"
    more = f"memory {sizes[0]:.0f} then {sizes[1]:.0f} MiB; answers {counts}"
    return [(what, f"{len(statuses):,}", more)]


PARTS = {f.__name__: f for f in (throughput, latency, memory, start, kills, malformed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--events", type=int, default=10**6, help="of memory and start")
    parser.add_argument("--batches", type=int, default=1000, help="of throughput")
    parser.add_argument("--seconds", type=float, default=60.0, help="of latency")
    parser.add_argument("--malformed", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where logs go; default: a temporary one")
    parser.add_argument("--write", action="store_true", help="replace serve.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        rows = []
        for name in options.only:
            for row in PARTS[name](folder, options):
                rows.append(row)
                print(" | ".join(row), flush=True)
    if options.write:
        lines = ["| what | result | more |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        write_table(HERE / "serve.md", "`ofw serve`", lines, ["starlette", "uvicorn"])


if __name__ == "__main__":
    main()
