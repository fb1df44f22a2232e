"""``ofw fit`` on files larger than what it may take of memory: peak, and who waits for whom.

    python benchmarks/fit_large.py [--megabytes 2000] [--write]

Makes a CSV of ratings (138,493 users, 26,744 items, popular ones far more often) and one of rows
(20 features), learns from each with ``ofw fit`` in a process of its own, and reads each once
without learning. Peak memory is that of the process, less what it takes to start; what the model
keeps of the past (lists of ratings by user and by item; sums, for regression) is counted by itself.
Linux only. ``--write`` replaces fit_large.md. The generated files are removed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyarrow import csv
from table import write_table

PIECE = 1_000_000
USERS, ITEMS, FEATURES = 138_493, 26_744, 20

CHILD = """
import json, resource, sys
from time import perf_counter
import onlinefw.cli.fit, onlinefw.cli.app
from onlinefw.cli.app import app
from onlinefw.factors.lists import EntryLists
made, make = [], EntryLists.__init__
EntryLists.__init__ = lambda self, *args, **more: (made.append(self), make(self, *args, **more))[1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = perf_counter()
try:
    app(sys.argv[1:], standalone_mode=False)
finally:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = max((lists.nbytes for lists in made), default=0) / 1e6
    cost = {"seconds": perf_counter() - started, "peak": (peak - before) / 1e3, "kept": kept}
    print(json.dumps(cost))
"""


def write_ratings(path, megabytes):
    rng, rows = np.random.default_rng(0), 0
    with csv.CSVWriter(path, pa.schema([("user", pa.int64()), ("item", pa.int64()),
                                        ("rating", pa.float64())])) as writer:  # fmt: skip
        while not path.exists() or path.stat().st_size < megabytes * 1e6:
            user = (rng.random(PIECE) ** 2 * USERS).astype(np.int64)
            item = (rng.random(PIECE) ** 3 * ITEMS).astype(np.int64)
            stars = np.clip(np.round(7 + 2 * rng.standard_normal(PIECE)), 1, 10) / 2
            writer.write_table(pa.table({"user": user, "item": item, "rating": stars}))
            rows += PIECE
    return rows


def write_rows(path, megabytes):
    rng, rows = np.random.default_rng(0), 0
    names = [f"x{j}" for j in range(FEATURES)]
    truth = np.zeros(FEATURES)
    truth[:3] = 1.0, -2.0, 0.5
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with csv.CSVWriter(path, schema) as writer:
        while not path.exists() or path.stat().st_size < megabytes * 1e6:
            X = np.round(rng.standard_normal((PIECE // 10, FEATURES)), 4)
            y = np.round(X @ truth + rng.standard_normal(len(X)), 4)
            columns = {name: X[:, j] for j, name in enumerate(names)}
            writer.write_table(pa.table({**columns, "y": y}))
            rows += len(X)
    return rows


def read_alone(kind, path):
    from onlinefw.readers import IdMap, read_ratings, read_rows

    started = perf_counter()
    if kind == "matrix":
        users, items = IdMap(), IdMap()
        for chunk in read_ratings(str(path)):
            users.add(chunk.users), items.add(chunk.items)
    else:
        for _ in read_rows(str(path), target="y"):
            pass
    return perf_counter() - started


def measure(kind, folder, megabytes):
    path = folder / "data.csv"
    rows = (write_ratings if kind == "matrix" else write_rows)(path, megabytes)
    reading = read_alone(kind, path)
    words = ["fit", kind, str(path), "-o", str(folder / "model.ofw"), "--json"]
    words += ["--target", "y"] if kind == "regression" else []
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *words], capture_output=True, text=True, check=True
    )
    cost = json.loads(done.stdout.splitlines()[-1])
    past = cost["kept"] if kind == "matrix" else 8 * (FEATURES + 1) ** 2 / 1e6
    return (
        f"| {kind} | {path.stat().st_size / 1e6:,.0f} | {rows:,} | {cost['seconds']:.0f} | "
        f"{rows / reading / 1e6:.1f} | {1 - reading / cost['seconds']:.0%} | {cost['peak']:,.0f} | "
        f"{past:,.0f} | {cost['peak'] - past:,.0f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--only", choices=["matrix", "regression"])
    parser.add_argument("--write", action="store_true", help="replace fit_large.md")
    options = parser.parse_args()
    lines = [
        "Asked: at most 1,500 MB beyond what is kept, and at least 1 million ratings/s read or "
        "60% of the time spent learning.",
        "",
        "| | CSV, MB | rows | seconds | read alone, million rows/s | learning | peak MB | past "
        "kept, MB | beyond it, MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in [options.only] if options.only else ["regression", "matrix"]:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(measure(kind, Path(folder), options.megabytes))
            print(lines[-1], flush=True)
    if options.write:
        title = "Files larger than the memory they may take"
        write_table(Path(__file__).with_suffix(".md"), title, lines, ["pyarrow"])


if __name__ == "__main__":
    main()
