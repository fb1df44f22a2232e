"""The constants of docs/scaling.md, its predictions, and a check on local workers.

    python benchmarks/scaling.py [--write]

Systems take turns; shown is what a tenth of the turns stays below, which a machine with other work
to do disturbs less than medians. See docs/scaling.md for the model itself. ``--write`` replaces
scaling.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from table import write_table
from workers import COLUMNS, ROWS, chunks, last_seconds, note_seconds, timed

import onlinefw as ofw
from onlinefw._threads import one_blas_thread, use_threads
from onlinefw.past.ray.cluster import Cluster
from onlinefw.past.ray.shards import FAN_IN, TREE_FROM, waited

#: Assumed of a cluster: bytes per second of a link; how much faster than one thread a worker is.
LINK = 10e9 / 8
THREADS, SPEEDUP = 16, 12
#: Ratings, users, items.
FUTURES = {"1 billion": (1e9, 5e6, 200e3), "100 billion": (1e11, 500e6, 2e6)}
WORKERS = (10, 100, 1000)
BATCH = 10_000
LANES = 8


def bytes_of_round(m1, m2, workers, reads):
    """Bytes that pass through a link one after the other: the driver's, or those of a tree.

    V and v, to all; their products and sums, from all; the rows of a pair, of the Krylov vectors
    and of the atom; new entries.
    """
    columns = (LANES + reads - 1) * 4 * m2
    rows = (reads + 1) * 4 * m1 + 24 * BATCH
    if workers < TREE_FROM:
        return workers * (2 * columns + 4 * m2) + rows
    out = np.ceil(np.log2(workers)) * (columns + 4 * m2)  # workers pass on what is stored
    back = np.ceil(np.log(workers) / np.log(FAN_IN)) * FAN_IN * columns + columns
    return out + back + rows


def predicted(nonzeros, m1, m2, workers, reads, constants, parallel, link):
    """Seconds of a round: in the workers' memory, for calls, for bytes, and the driver's own."""
    read, normal, call, dispatch, told, own, fresh = constants
    memory = nonzeros * (read + (reads - 1) * normal) / parallel
    levels = np.ceil(np.log(workers) / np.log(FAN_IN)) if workers >= TREE_FROM else 0
    calls = (reads + 1) * (call + workers * dispatch) + reads * levels * call + 2 * workers * told
    return (
        memory,
        calls,
        bytes_of_round(m1, m2, workers, reads) / link,
        own * (m1 + m2) + fresh * BATCH,
    )


def filled(size, workers):
    objective = ofw.objectives.ObservedEntries((ROWS, COLUMNS), workers=workers)
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(50_000.0))
    for X, y in chunks(size):
        objective.observe(X, y)
    past = objective._past
    past.merge(past.n_newest)
    objective.gradient()
    if workers:
        past.ask_all(note_seconds, "read")
    return learner


def quiet(values):
    return float(np.quantile(values, 0.1))


class Noted:
    """Adds up how long some calls of an object take."""

    def __init__(self, owner, *names):
        self.seconds = 0.0
        for name in names:
            setattr(owner, name, self._wrapped(getattr(owner, name)))

    def _wrapped(self, function):
        def noted(*args):
            start = time.perf_counter()
            result = function(*args)
            self.seconds += time.perf_counter() - start
            return result

        return noted

    def taken(self):
        """Return what was noted since the last time."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


def measure(size, repeat):
    use_threads(1)
    m2 = COLUMNS
    rng = np.random.default_rng(1)
    learners = {workers: filled(size, workers) for workers in (None, 1, 2, 3)}
    host = learners[None].objective._past
    V, ones = rng.standard_normal((m2, LANES)), np.ones(ROWS, np.float32)
    v = np.ascontiguousarray(V[:, 0])
    kernels = {"read": [], "normal": []}
    both = []  # the same read on two threads
    calls = {1: [], 2: [], 3: []}
    tells = {1: [], 2: [], 3: []}
    carried = {1: [], 2: [], 3: []}  # seconds of messages beyond an empty one
    rounds = {workers: [] for workers in learners}
    reads, own_seconds, fresh_seconds = [], [], []
    passes = Noted(host, "read", "normal")
    arrivals = Noted(learners[None].objective, "check", "add")
    for _ in range(repeat):
        for threads, seconds in ((2, both), (1, kernels["read"])):
            use_threads(threads)
            time.sleep(0.02)  # threads of others that wait for more work, spinning, give up
            with one_blas_thread():  # as in a round
                host.read(V, ones)  # makes room for the sums of so many threads
                seconds.extend(timed(lambda: host.read(V, ones)) for _ in range(3))
        kernels["normal"].append(timed(lambda: host.normal(v, ones)))
        for workers in (1, 2, 3):
            past, nothing = learners[workers].objective._past, [()] * workers
            empty = timed(lambda past=past: past.ask_all(waited))
            calls[workers].append(empty)
            tells[workers].append(
                timed(lambda past=past, args=nothing: past.shards.tell(waited, args))
            )
            past.ask_all(waited)
            taken = timed(lambda past=past: past.read(V, ones))
            beyond = taken - max(past.ask_all(last_seconds)) - empty
            carried[workers].append(beyond)
        X = np.column_stack((rng.integers(ROWS, size=BATCH), rng.integers(m2, size=BATCH)))
        y = rng.standard_normal(BATCH)
        passes.taken()
        for workers, learner in learners.items():
            before = learner.objective.reads
            rounds[workers].append(timed(lambda one=learner, batch=(X, y): one.observe(*batch)))
            if workers is None:
                fresh_seconds.append(arrivals.taken())
                own_seconds.append(rounds[None][-1] - fresh_seconds[-1] - passes.taken())
            reads.append(learner.objective.reads - before)
    stored = len(host)
    times = {workers: quiet(c) for workers, c in calls.items()}
    dispatch = max((times[3] - times[1]) / 2, 0.0)
    link = np.median([4 * LANES * 2 * n * m2 / max(quiet(c), 1e-6) for n, c in carried.items()])
    own = quiet(np.array(own_seconds)) / (ROWS + m2)
    fresh = quiet(fresh_seconds) / BATCH
    often, rounds = np.mean(reads), {k: quiet(r) for k, r in rounds.items()}
    read, normal = (quiet(kernels[name]) / stored for name in ("read", "normal"))
    told = float(np.mean([quiet(seconds) / workers for workers, seconds in tells.items()]))
    constants = read, normal, max(times[1] - dispatch, 0.0), dispatch, told, own, fresh
    return stored, constants, quiet(kernels["read"]) / quiet(both), link, often, rounds


def constant_lines(constants, two, link, reads):
    """What was measured for the model."""
    read, normal, call, dispatch, told, own, fresh = constants
    return [
        "| constant | measured |",
        "| --- | --- |",
        f"| block read of an entry, one thread | {1e9 * read:.2f} ns |",
        f"| product of an entry, one thread | {1e9 * normal:.2f} ns |",
        f"| two threads read so many times as fast as one | {two:.2f} |",
        f"| an exchange of messages | {1e3 * call:.2f} ms |",
        f"| ... and for every worker | {1e3 * dispatch:.2f} ms |",
        f"| a message without an answer, to a worker | {1e3 * told:.2f} ms |",
        f"| messages on one machine | {link / 1e9:.2f} GB/s |",
        f"| the driver's own work, for every row and column | {1e9 * own:.0f} ns |",
        f"| ... and for every new entry | {1e9 * fresh:.0f} ns |",
        f"| reads of the store a round | {reads:.1f} |",
    ]


def check_lines(stored, constants, two, link, reads, rounds):
    """The model next to rounds on this machine."""
    lines = [
        "## Rounds on this machine",
        "",
        f"Rounds with {BATCH:,} new entries; the work of the driver is that of one process.",
        "",
        "| workers | predicted, ms | measured, ms |",
        "| --- | --- | --- |",
    ]
    for workers in (1, 2, 3):
        parallel = 1.0 if workers == 1 else two
        parts = predicted(stored, ROWS, COLUMNS, workers, reads, constants, parallel, link)
        lines.append(f"| {workers} | {1e3 * sum(parts):.0f} | {1e3 * rounds[workers]:.0f} |")
    return [*lines, f"| none: one process, one thread | | {1e3 * rounds[None]:.0f} |"]


def prediction_lines(constants, reads):
    """What the model says of clusters."""
    lines = [
        "## Predictions",
        "",
        f"Workers with {THREADS} threads, {SPEEDUP} times as fast as one; links of 10 Gbit/s.",
        "",
        "| ratings | users x items | workers | memory, s | calls, s | bytes, s | driver, s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, (nonzeros, m1, m2) in FUTURES.items():
        for workers in WORKERS:
            memory, calls, sent, driver = predicted(
                nonzeros, m1, m2, workers, reads, constants, SPEEDUP * workers, LINK
            )
            lines.append(
                f"| {name} | {m1 / 1e6:.0f} x {m2 / 1e6:g} million | {workers} | {memory:.2f} | "
                f"{calls:.2f} | {sent:.1f} | {driver:.1f} |"
            )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=10.2e6)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="replace scaling.md")
    options = parser.parse_args()
    Cluster.threads = lambda self, workers: 1
    held = Cluster.lease(3)
    stored, constants, two, link, reads, rounds = measure(int(options.size), options.repeat)
    lines = [
        f"{options.repeat} turns; one thread a worker; {stored / 1e6:.1f} million entries, "
        f"{ROWS:,} x {COLUMNS:,}.",
        "",
        *constant_lines(constants, two, link, reads),
        "",
        *check_lines(stored, constants, two, link, reads, rounds),
        "",
        *prediction_lines(constants, reads),
    ]
    print(*lines, sep="\n")
    held.give_back()
    if options.write:
        title = "The cost model of docs/scaling.md: constants, a check, predictions"
        write_table(Path(__file__).with_suffix(".md"), title, lines, ["ray"])


if __name__ == "__main__":
    main()
