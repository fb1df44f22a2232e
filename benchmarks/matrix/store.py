"""The store of observed entries: its product kernel, and a pass in the shape of MovieLens 20M.

    python benchmarks/matrix/store.py [--rounds 1600] [--radius 50000] [--write]

Generated data (``make_movielens_like``): 138,493 x 26,744, the first 16 million entries for
training. Everything is measured in one run: the machine's triad bandwidth, scipy's products, our
kernel on one and two threads, then a pass of 10,000 entries a round. ``--write`` replaces store.md.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import sys
from pathlib import Path
from time import perf_counter

import numba
import numpy as np
import scipy.sparse as sp
from numba import njit, prange

import onlinefw as ofw
from onlinefw._threads import use_threads
from onlinefw.datasets import make_movielens_like
from onlinefw.objectives import ObservedEntries

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

TRAIN, BATCH = 16_000_000, 10_000


@njit(parallel=True)
def triad(a, b, c):
    for i in prange(a.size):
        a[i] = b[i] + 3.0 * c[i]


def seconds(function, repeats=9):
    function()
    times = []
    for _ in range(repeats):
        started = perf_counter()
        function()
        times.append(perf_counter() - started)
    return float(np.median(times))


def triad_bandwidth(n=20_000_000):
    """Bytes per second of a[i] = b[i] + 3 c[i], on arrays that are really in memory."""
    a, b, c = (np.full(n, 1.0) for _ in range(3))
    return 3 * a.nbytes / seconds(lambda: triad(a, b, c))


def kernel_lines(X, y, shape):
    """Our one-read G'(G v) against scipy's two products, on half of the training entries."""
    objective = ObservedEntries(shape)
    objective.observe(X[: TRAIN // 2], y[: TRAIN // 2])
    objective.gradient()
    past = objective._past
    where = past._store.rows_and_columns()
    G = sp.csr_array((past._store.values("g"), where), shape=shape)  # columns as they are
    v = np.random.default_rng(0).standard_normal(shape[1]).astype(np.float32)
    scipy_pair = seconds(lambda: G.T @ (G @ v))
    ours = {}
    for threads in (1, 2):
        use_threads(threads)
        numba.set_num_threads(threads)
        ours[threads] = seconds(lambda: past.normal(v, None))
    return [
        "| product G'(G v), 8 million entries | ms | against scipy's two products |",
        "| --- | --- | --- |",
        f"| scipy `G.T @ (G @ v)` | {scipy_pair * 1e3:.1f} | 1 |",
        f"| one read, one thread | {ours[1] * 1e3:.1f} | {ours[1] / scipy_pair:.2f} "
        "(asked: at most 0.75) |",
        f"| one read, two threads | {ours[2] * 1e3:.1f} | {ours[2] / scipy_pair:.2f}; "
        f"{ours[1] / ours[2]:.2f}x faster than one (asked: 1.7x) |",
    ]


#: Functions of the package by what they do, for the time that a round takes.
DOING = {
    "move, slopes and eight products (one read)": ("move_and_normal",),
    "the tail of the newest entries": (
        "begin_read", "end_read",
    ),
    "sorting the tail into the store": (
        "merge_rows", "merged_lengths", "sort_by_row", "move_rows", "move_tail",
    ),
    "predicting new entries": ("factor_entries",),
    "storing the atom": ("_set_column", "_set_columns", "_copied"),
    "singular pairs from the products": ("ritz_pairs", "overlap", "combine", "_from_block"),
}  # fmt: skip


def where_time_goes(profile, rounds):
    """Lines for the parts of a round, from the time spent in functions themselves."""
    timings = {key[2]: value[2] for key, value in pstats.Stats(profile).stats.items()}
    total = sum(timings.values())
    for what, names in DOING.items():
        spent = sum(timings.get(name, 0.0) for name in names)
        total -= spent
        yield f"| {what} | {1e3 * spent / rounds:.1f} |"
    yield f"| everything else | {1e3 * total / rounds:.1f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=TRAIN // BATCH)
    parser.add_argument("--radius", type=float, default=50_000.0)
    parser.add_argument("--write", action="store_true", help="replace benchmarks/matrix/store.md")
    options = parser.parse_args()
    data = make_movielens_like(seed=0)
    X = np.column_stack((data.rows, data.cols))
    mean = float(data.values[:BATCH].mean())  # the first batch's: nothing is known before it
    y = data.values.astype(float) - mean
    bandwidth = triad_bandwidth()
    lines = kernel_lines(X, y, data.shape)

    objective = ObservedEntries(data.shape)
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(options.radius))
    limit, reads, started = 0.0, 0, perf_counter()
    profile, profiled = cProfile.Profile(), range(options.rounds // 2, options.rounds // 2 + 100)
    for t in range(options.rounds):
        if t == profiled.start:
            profile.enable()
        if t == profiled.stop:
            profile.disable()
        part = slice(t * BATCH, (t + 1) * BATCH)
        round_ = learner.observe(X[part], y[part])
        reads += round_.reads
        limit += 8.0 * objective.n_entries / bandwidth
        if (t + 1) % 200 == 0:
            print(t + 1, f"{perf_counter() - started:.1f} s", f"gap {round_.gap:.4f}", flush=True)
    total = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    test = slice(TRAIN, None)
    guess = learner.theta.entries(X[test, 0], X[test, 1]) + mean
    mse = float(np.mean((np.clip(guess, 0.5, 5.0) - data.values[test]) ** 2))
    lines += [
        "",
        f"One pass, {options.rounds} rounds of {BATCH:,} entries, radius {options.radius:,.0f}, "
        "two threads:",
        "",
        "| what | measured | asked |",
        "| --- | --- | --- |",
        f"| seconds for the pass | {total:.1f} | |",
        f"| one read of the store per round at triad bandwidth ({bandwidth / 1e9:.1f} GB/s) | "
        f"{limit:.1f} s | |",
        f"| ratio | {total / limit:.1f} | at most 10 |",
        f"| reads of the store per round | {reads / options.rounds:.2f} | at most 6 |",
        f"| peak memory of the whole process, data included | {peak:.2f} GiB | under 2 |",
        f"| test MSE (oracle 0.525, global mean 0.940) | {mse:.3f} | |",
        "",
    ]
    lines += [
        f"Where a round's time goes, rounds {profiled.start} to {profiled.stop}:",
        "",
        "| what | ms a round |",
        "| --- | --- |",
        *where_time_goes(profile, len(profiled)),
        "",
        "The first line moves 28 bytes an entry through memory, 3.5 times the 8 that the ratio "
        "above counts, and gathers and scatters two rows of 32 bytes for each entry.",
        "",
    ]
    print("\n".join(lines))
    if options.write:
        path = Path(__file__).with_suffix(".md")
        write_table(path, "The store of observed entries", lines)


if __name__ == "__main__":
    main()
