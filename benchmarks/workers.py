"""Products of a matrix spread over Ray workers on this machine, and what Ray adds to them.

    python benchmarks/workers.py --write                     # 10 and 60 million entries
    python benchmarks/workers.py --sizes 1e6 --repeat 20     # a quick look

One product is G v and G'(G v), what a Krylov step of the linear minimisation needs; as there, a few
come in a row (the first does not count). Systems take turns, so that whatever else runs on the
machine meets all of them. Shown are medians, and (in brackets) what a tenth of the products stays
below: a machine with other work to do disturbs that less. ``--write`` replaces workers.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from table import write_table

import onlinefw as ofw
from onlinefw._threads import use_threads
from onlinefw.past.ray.cluster import Cluster

ROWS, COLUMNS = 138_493, 26_744
CHUNK = 8_000_000
IN_A_ROW = 4


def note_seconds(shard, verb):
    """Let a shard note how long one of its verbs takes; runs in a worker."""
    carry_out = getattr(shard.past, verb)

    def noting(*args):
        start = time.perf_counter()
        result = carry_out(*args)
        shard.notes["seconds"] = time.perf_counter() - start
        return result

    setattr(shard.past, verb, noting)


def last_seconds(shard):
    """Return what was noted; runs in a worker."""
    return shard.notes["seconds"]


def chunks(size):
    """Entries at random; few columns have most of them, as films do."""
    rng = np.random.default_rng(0)
    popularity = np.cumsum(np.arange(50, COLUMNS + 50) ** -0.5)
    popularity /= popularity[-1]
    activity = np.cumsum(rng.lognormal(0.0, 1.0, ROWS))
    activity /= activity[-1]
    for start in range(0, size, CHUNK):
        n = min(CHUNK, size - start)
        rows = np.searchsorted(activity, rng.random(n))
        cols = np.searchsorted(popularity, rng.random(n))
        yield np.column_stack((rows, cols)), rng.standard_normal(n)


def filled(size, workers, timed_verb="normal"):
    objective = ofw.objectives.ObservedEntries((ROWS, COLUMNS), workers=workers)
    for X, y in chunks(size):
        objective.observe(X, y)
    past = objective._past
    past.merge(past.n_newest)
    past.read(np.zeros((COLUMNS, 1), np.float32), None)
    if workers:
        past.ask_all(note_seconds, timed_verb)
    return past


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def products(size, repeat):
    """Median seconds of a product, and (for workers) of what is not their own kernels."""
    systems = {
        "one process, 1 thread": (filled(size, None), 1),
        "one process, 2 threads": (filled(size, None), 2),
        "1 worker": (filled(size, 1), 2),
        "2 workers": (filled(size, 2), 2),
    }
    seconds = {name: [] for name in systems}
    beyond = {name: [] for name in systems}
    v, ones = np.random.default_rng(1).standard_normal(COLUMNS), np.ones(ROWS, np.float32)
    for _ in range(repeat):
        for name, (entries, threads) in systems.items():
            time.sleep(0.02)  # threads of others that wait for more work, spinning, give up
            use_threads(threads)
            for step in range(IN_A_ROW):
                taken = timed(lambda entries=entries: entries.normal(v, ones))
                inside = max(entries.ask_all(last_seconds)) if "worker" in name else 0.0
                if step:  # the first wakes everybody up
                    seconds[name].append(taken)
                    if inside:
                        beyond[name].append(taken - inside)
    stored = len(systems["2 workers"][0])
    return stored, seconds, beyond


def median_and_tenth(values):
    return np.median(values), np.quantile(values, 0.1)


def shown(values, digits):
    return "{:.{d}f} ({:.{d}f})".format(*(1e3 * x for x in median_and_tenth(values)), d=digits)


def gain(slow, fast):
    pairs = zip(median_and_tenth(slow), median_and_tenth(fast), strict=True)
    return "{:.2f} ({:.2f})".format(*(a / b for a, b in pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=float, nargs="*", default=[10.2e6, 62.5e6])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="replace workers.md")
    options = parser.parse_args()
    Cluster.threads = lambda self, workers: 1
    held = Cluster.lease(2)
    lines = [
        f"{options.repeat} turns: medians (and what a tenth of the turns stays below). A matrix of "
        f"{ROWS:,} x {COLUMNS:,} in single precision; workers have one thread each. Asked: less "
        "than 4 ms beyond the workers' kernels at 10 million entries; two workers at least 1.2 "
        "times as fast as one there, and 1.5 times at 60 million.",
        "",
        "| entries | system | a product, ms | beyond the workers' kernels, ms |",
        "| --- | --- | --- | --- |",
    ]
    notes = []
    for size in map(int, options.sizes):
        stored, seconds, beyond = products(size, options.repeat)
        for name, values in seconds.items():
            extra = shown(beyond[name], 2) if beyond[name] else ""
            lines.append(f"| {stored / 1e6:.1f} million | {name} | {shown(values, 1)} | {extra} |")
        workers = gain(seconds["1 worker"], seconds["2 workers"])
        threads = gain(seconds["one process, 1 thread"], seconds["one process, 2 threads"])
        notes += [
            "",
            f"{stored / 1e6:.1f} million entries: two workers are {workers} times as fast as one; "
            f"two threads of one process {threads} times as fast as one.",
        ]
    lines += notes
    print(*lines, sep="\n")
    held.give_back()
    if options.write:
        write_table(Path(__file__).with_suffix(".md"), "Products on Ray workers", lines, ["ray"])


if __name__ == "__main__":
    main()
