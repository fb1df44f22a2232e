"""How fast ratings are read, and in how much memory.

    python benchmarks/readers.py [--megabytes 200] [--folder FOLDER] [--write]

Writes a CSV of user,item,rating with integer ids, then the same as Parquet, JSON lines, gzip and
with text ids, reads each in chunks in a process of its own, and prints rows per second and the
peak memory of the process beyond what it takes to start (Linux only). The generated files are
removed. ``--write`` replaces readers.md.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from table import write_table

from onlinefw.readers import IdMap, read_ratings

N_USERS, N_ITEMS, PIECE = 1_000_000, 50_000, 500_000


def pieces(megabytes: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    for _ in range(max(1, megabytes * 1_000_000 // (15 * PIECE))):
        yield (
            (rng.random(PIECE) ** 3 * N_USERS).astype(int),
            (rng.random(PIECE) ** 3 * N_ITEMS).astype(int),
            rng.integers(1, 11, PIECE) / 2,
        )


def write_files(folder: Path, megabytes: int) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("ratings.csv", "text.csv", "ratings.csv.gz", "ratings.jsonl", "ratings.parquet")
    paths = [folder / name for name in names]
    schema = pa.schema([("user", pa.int64()), ("item", pa.int64()), ("rating", pa.float64())])
    with (
        paths[0].open("w") as csv,
        paths[1].open("w") as text,
        gzip.open(paths[2], "wt", compresslevel=1) as packed,
        paths[3].open("w") as lines,
        pq.ParquetWriter(paths[4], schema) as parquet,
    ):
        for file in (csv, text, packed):
            file.write("user,item,rating\n")
        for k, columns in enumerate(pieces(megabytes)):
            rows = list(zip(*(c.tolist() for c in columns), strict=True))
            block = "".join(f"{u},{i},{r}\n" for u, i, r in rows)
            csv.write(block)
            parquet.write_table(pa.table(list(columns), schema=schema))
            if k < 4:  # the slower ones need not be as long
                packed.write(block)
                text.write("".join(f"u{u},i{i},{r}\n" for u, i, r in rows))
                lines.write(
                    "".join(f'{{"user":{u},"item":{i},"rating":{r}}}\n' for u, i, r in rows)
                )
    return paths


def peak() -> float:
    # Not ru_maxrss: it outlives exec, so that a child would begin with its parent's peak.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def read(path: str) -> None:
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet  # noqa: F401

    before = peak()
    users, items = IdMap(), IdMap()
    n, reading, mapping = 0, 0.0, 0.0
    started = perf_counter()
    for chunk in read_ratings(path):
        read_at = perf_counter()
        reading += read_at - started
        users.add(chunk.users)
        items.add(chunk.items)
        n += len(chunk)
        started = perf_counter()
        mapping += started - read_at
    size = Path(path).stat().st_size / 1e6
    print(
        f"| {Path(path).name} | {size:,.0f} | {n / 1e6:.2f} | {n / reading / 1e6:.2f} | "
        f"{n / mapping / 1e6:.2f} | {peak() - before:,.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", action="store_true", help="replace readers.md")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read(arguments.read)
        return
    lines = [
        "| file | MB | million rows | millions/s read | millions/s mapped | MB more memory |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for path in write_files(Path(folder), arguments.megabytes):
            child = [sys.executable, __file__, "--read", str(path)]
            done = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True)
            lines.append(done.stdout.strip())
            print(lines[-1], flush=True)
    if arguments.write:
        title = "How fast ratings are read, and in how much memory"
        write_table(Path(__file__).with_suffix(".md"), title, lines, ["pyarrow"])


if __name__ == "__main__":
    main()
