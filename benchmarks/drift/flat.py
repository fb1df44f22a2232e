"""Time and memory over a million observations, with a half-life of ten thousand.

    python benchmarks/drift/flat.py [--n 1000000] [--write]

Regression by sums of rows, classification by rows that are kept, and ratings, each learned one
observation at a time, and predicted before. ``--write`` replaces flat.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

import onlinefw as ofw

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HALF_LIFE, PIECE = 10_000, 10_000
MEGA = 2.0**20


def resident():
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MEGA


def rows(rng):
    X = rng.standard_normal((PIECE, 20))
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(PIECE)


def labels(rng):
    X, y = rows(rng)
    return X, (y > 0).astype(int)


def ratings(rng):
    X = np.column_stack((rng.integers(2000, size=PIECE), rng.integers(1000, size=PIECE)))
    return X, 3.0 + np.sin(X.sum(axis=1)) + 0.3 * rng.standard_normal(PIECE)


def models():
    yield "regression, 20 features: sums", ofw.FrankWolfeRegressor(half_life=HALF_LIFE), rows
    model = ofw.FrankWolfeClassifier(loss="logistic", half_life=HALF_LIFE)
    yield "classification, 20 features: rows", model, labels
    yield "ratings, 2,000 x 1,000", ofw.FrankWolfeMatrixCompletion(half_life=HALF_LIFE), ratings


def line(name, model, stream, n):
    """Return the line of a table: seconds for ten thousand, and memory, in fifths of the stream."""
    rng, seconds, memory = np.random.default_rng(0), [], []
    for _ in range(n // PIECE):
        X, y = stream(rng)
        began = process_time()
        model.learn(X, y)
        seconds.append(process_time() - began)
        memory.append(resident())
    fifths = [float(np.median(part)) for part in np.array_split(seconds, 5)]
    held = [float(np.max(part)) for part in np.array_split(memory, 5)]
    shown = [f"{one:.2f}" for one in fifths] + [f"{one:.0f}" for one in held]
    return f"| {name} | {' | '.join(shown)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    fifths = [f"{k}/5" for k in range(1, 6)]
    lines = [
        f"{options.n:,} observations at a half-life of {HALF_LIFE:,}, learned one at a time. "
        f"Processor seconds for {PIECE:,} of them (the median of each fifth of the stream), and "
        "the most memory of the whole process in MB in each fifth.",
        "",
        f"| model | {' | '.join([*(f's, {k}' for k in fifths), *(f'MB, {k}' for k in fifths)])} |",
        "|" + " --- |" * 11,
    ]
    with threadpool_limits(1):
        for name, model, stream in models():
            lines.append(line(name, model, stream, options.n))
            print(lines[-1], flush=True)
    if options.write:
        path = Path(__file__).with_suffix(".md")
        write_table(path, "A million observations, with a half-life", lines)


if __name__ == "__main__":
    main()
