"""The kernels over stored rows, against a loop that only reads them.

    python benchmarks/linear/kernels.py [--threads 2] [--repeats 41] [--write]

All kernels take turns in one run on the same array. The times are medians; the ratios are medians
over the turns of a kernel's time divided by that of the reading loop in the same turn, and, after a
stroke, of the shortest times: what is left when other work on the machine is out of the way.
``--write`` replaces kernels.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

import numba
import numpy as np
from numba import njit, prange

from onlinefw._threads import share, use_threads
from onlinefw.kernels import entries, rows
from onlinefw.kernels.bytes import fused_bytes, suits

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

CASES = [
    (40_000, 900, "float32"),
    (20_000, 900, "float32"),
    (20_000, 911, "float32"),
    (60_000, 784, "uint8"),
    (30_000, 784, "uint8"),
    (10_000, 3072, "uint8"),
    (20_000, 900, "float64"),
]


@njit(parallel=True, fastmath={"reassoc"})
def pure_read(words, blocks, out):
    """Sum the words: one read of the memory, and as little else as can be."""
    for thread in prange(len(blocks) - 1):
        total = words.dtype.type(0)
        for i in range(np.uint64(blocks[thread]), np.uint64(blocks[thread + 1])):
            total += words[i]
        out[thread] = total


def boundaries(n, threads):
    return np.arange(threads + 1) * n // threads


def kernels(n_rows, n, dtype, threads):
    """Return the reading loop and the kernels as functions without arguments."""
    rng = np.random.default_rng(0)
    if dtype == "uint8":
        X = rng.integers(0, 256, (n_rows, n), dtype=np.uint8)
        words = X.reshape(-1).view(np.uint64)
    else:
        X = rng.standard_normal((n_rows, n), dtype=dtype)
        words = X.reshape(-1)
    number = np.float64 if dtype == "float64" else np.float32
    a = (rng.standard_normal(n) / 1000).astype(number)
    z, y = np.zeros(n_rows), rng.choice([-1.0, 1.0], n_rows)
    w, s, acc = np.ones(n_rows), y.astype(number), np.empty((threads, n))
    blocks, word_blocks = boundaries(n_rows, threads), boundaries(len(words), threads)
    sums = np.zeros(threads, words.dtype)

    best = fused_bytes if suits(X) else rows.fused_gradient
    logistic = entries.LOGISTIC, 0.0, z, y, w, 0.0

    def fused(kind, kernel=best):
        moving = n_rows, 0.9, 0.1, a
        return lambda: share(kernel, blocks, X, *moving, z, y, w, 0.0, kind, 0.0, acc)

    return X.nbytes, {
        "read": lambda: pure_read(words, word_blocks, sums),
        "fused, square": fused(entries.QUADRATIC),
        "fused, logistic": fused(entries.LOGISTIC),
        "fused in floats": fused(entries.QUADRATIC, rows.fused_gradient),
        "move": lambda: share(rows.move_rows, blocks, X, 0.9, 0.1, a, z),
        "gradient": lambda: share(rows.slope_gradient, blocks, X, s, acc),
        "value": lambda: share(rows.values, blocks, *logistic, acc[:, 0]),
        "intercept": lambda: share(rows.totals, blocks, *logistic, acc),
    }


def take_turns(functions, repeats):
    """Return the seconds of every function in every turn, shape (functions, repeats)."""
    for function in functions:
        function()
    times = np.empty((len(functions), repeats))
    for turn in range(repeats):
        for k, function in enumerate(functions):
            started = perf_counter()
            function()
            times[k, turn] = perf_counter() - started
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=41)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    use_threads(options.threads)
    numba.set_num_threads(options.threads)
    lines, head = [], None
    for n_rows, n, dtype in CASES:
        n_bytes, functions = kernels(n_rows, n, dtype, options.threads)
        times = take_turns(list(functions.values()), options.repeats)
        if head is None:
            names = list(functions)[1:]
            head = ["rows", "columns", "type", "read, ms", "GB/s", *names]
            lines += ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
        read = np.median(times[0])
        ratios = np.median(times[1:] / times[0], axis=1)
        cells = [f"{n_rows:,}", f"{n}", dtype, f"{1e3 * read:.2f}", f"{n_bytes / read / 1e9:.0f}"]
        best = times[1:].min(axis=1) / times[0].min()
        cells += [f"{ratio:.2f} / {least:.2f}" for ratio, least in zip(ratios, best, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    words = (
        f"{options.threads} threads. Time against one read of the rows, medians over the turns / "
        "shortest times:"
    )
    lines = [words, "", *lines]
    print("\n".join(lines))
    if options.write:
        write_table(Path(__file__).with_suffix(".md"), "The kernels over stored rows", lines)


if __name__ == "__main__":
    main()
