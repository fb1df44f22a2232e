"""Forged files, one after another, each in the same process: no crash, hang or flood of memory.

    python -m tests.hostile.fuzz --inputs 100000 [--start 0] [--jobs 2] [--write]

An input is named by its target and its number, which seeds it; ``--only model:1234`` plays it
alone. ``--write`` replaces fuzz.md, if nothing has failed.
"""

import argparse
import faulthandler
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np

#: No input may take longer, or allocate more beside what the process had.
SECONDS, MEGABYTES = 5.0, 512


class TooSlow(BaseException):
    """An input took longer than it may."""


def play(target, number, folder):
    """Play one input; return what became of it, or raise what must not happen."""
    from .targets import TARGETS

    forge, consume, suffix = TARGETS[target]
    rng = np.random.default_rng([zlib.crc32(target.encode()), number])
    path = Path(folder) / f"input{suffix}"
    forge(rng, path)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return consume(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def too_slow(*_):
    raise TooSlow


def play_many(names, start, stop):
    """Play these inputs here; print what happened, ``!`` before what must not."""
    faulthandler.enable()
    signal.signal(signal.SIGALRM, too_slow)
    from .targets import ZOO, saved

    for name in ZOO:  # learned and compiled before memory is limited
        saved("model", name), saved("checkpoint", name)
    seen, slowest = Counter(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:  # once, so that everything is compiled and loaded
            play_whole(name, folder)
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        limit = used + MEGABYTES * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        for number in range(start, stop):
            for name in names:
                print(f"at {name}:{number}", flush=True)
                began = time.perf_counter()
                try:
                    seen[name, play(name, number, folder)] += 1
                except (Exception, TooSlow) as error:
                    seen[name, "failed"] += 1
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    print(f"! {name}:{number} {type(error).__name__}: {error!s:.150} at {where}")
                slowest = max(slowest, time.perf_counter() - began)
    for (name, what), count in sorted(seen.items()):
        print(f"= {name} {what.replace(' ', '_')} {count}")
    print(f"= slowest {slowest:.2f}")


def play_whole(name, folder):
    """Play what was not forged, if only to load everything that it needs."""
    for number in range(-3, 0):
        with suppress(Exception):
            play(name, 10**9 - number, folder)


def run(names, inputs, start=0, jobs=1):
    """Play in processes of their own; return counts, failures and the longest time."""
    each = -(-inputs // len(names))
    edges = np.linspace(start, start + each, jobs + 1).astype(int).tolist()
    command = [sys.executable, "-m", "tests.hostile.fuzz", "--here", ",".join(names)]
    processes = [
        subprocess.Popen(
            [*command, "--from", str(a), "--to", str(b)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for a, b in pairwise(edges)
    ]
    counts, failures, slowest = Counter(), [], 0.0
    for process in processes:
        out, err = process.communicate()
        lines = out.splitlines()
        if process.returncode != 0:
            last = [line for line in lines if line.startswith("at ")][-1:]
            failures.append(f"crash ({process.returncode}) {last}: {err[-600:]}")
        failures += [line[2:] for line in lines if line.startswith("! ")]
        for line in lines:
            if line.startswith("= slowest"):
                slowest = max(slowest, float(line.split()[2]))
            elif line.startswith("= "):
                _, name, what, count = line.split()
                counts[name, what] += int(count)
    return counts, failures, slowest


def table(counts, slowest, options):
    """Return the page that says what became of the inputs."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    whats = sorted({what for _, what in counts})
    lines = [
        "# Forged input",
        "",
        f"`python -m tests.hostile.fuzz --inputs {options.inputs} --write` at commit "
        f"{commit.stdout.strip()}: no crash, no traceback, nothing over {SECONDS:g} s (the slowest "
        f"took {slowest:.2f} s), nothing that allocated more than {MEGABYTES} MB.",
        "",
        "| target | " + " | ".join(what.replace("_", " ") for what in whats) + " |",
        "| --- |" + " --- |" * len(whats),
    ]
    for name in sorted({name for name, _ in counts}):
        cells = [f"{counts[name, what]:,}" for what in whats]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--targets", default="")
    parser.add_argument("--only", help="target:number")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--here")
    parser.add_argument("--from", dest="first", type=int)
    parser.add_argument("--to", type=int)
    options = parser.parse_args()
    if options.here:
        play_many(options.here.split(","), options.first, options.to)
        return
    if options.only:
        signal.signal(signal.SIGALRM, too_slow)
        name, number = options.only.split(":")
        with tempfile.TemporaryDirectory() as folder:
            print(play(name, int(number), folder))
        return
    from .targets import TARGETS

    names = options.targets.split(",") if options.targets else list(TARGETS)
    counts, failures, slowest = run(names, options.inputs, options.start, options.jobs)
    for (name, what), count in sorted(counts.items()):
        print(f"{name:12} {what:15} {count}")
    print(f"slowest {slowest:.2f} s; {len(failures)} failures")
    print(*failures, sep="\n")
    if options.write and not failures:
        Path(__file__).with_suffix(".md").write_text(table(counts, slowest, options))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
